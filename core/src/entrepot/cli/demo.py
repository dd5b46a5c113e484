"""`entrepot demo`: index a real collection, search it in three modes, and measure the answers."""

import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from entrepot.cli import cranfield, evaluation
from entrepot.cli.options import DEFAULT_EMBEDDING, AsJson, Embedding, opened
from entrepot.cli.output import one_line, print_json, print_line, print_table, progress, remark
from entrepot.cli.search import hit_record, number

if TYPE_CHECKING:
    from entrepot import Document, SearchRequest, VectorStore

CUT: Final = 10
"""Rank at which nDCG and recall are cut."""
_BATCH: Final = 200


def demo(
    *,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="URL",
            help="Where to index; a temporary durable store by default",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Folder of the Cranfield collection", show_default=False),
    ] = None,
    embedding: Embedding = DEFAULT_EMBEDDING,
    as_json: AsJson = False,
) -> None:
    """Index a real collection, search it in three modes, and measure.

    The collection is Cranfield: 1,400 abstracts, 225 queries, and judged answers.

    nDCG@10 uses the gain 5 - relevance code, recall@10 counts the relevant documents among the first ten.
    """
    collection = cranfield.read(cranfield.find(data))
    documents, left_out = _documents(collection)
    with _place(store) as url, opened(url, embedding=embedding, create=True) as opened_store:
        seconds = _index(opened_store, documents)
        runs = [_run(opened_store, mode, collection) for mode in ("semantic", "fulltext", "hybrid")]
        samples = [(request, opened_store.similarity_search(request)) for request in _samples()]
    if as_json:
        print_json(
            {
                "documents": len(documents),
                "left_out": left_out,
                "queries": len(collection.queries),
                "embedding": embedding,
                "index_seconds": round(seconds, 3),
                "modes": {run.mode: run.figures() for run in runs},
                "samples": [
                    {
                        "query": request.query,
                        "mode": str(request.mode),
                        "filter": request.filter,
                        "hits": [hit_record(hit) for hit in hits],
                    }
                    for request, hits in samples
                ],
            }
        )
        return
    print_line(
        f"Cranfield: {len(documents)} abstracts indexed in {seconds:.1f} s "
        f"({len(left_out)} without any text left out), {len(collection.queries)} queries."
    )
    print_table(
        ("mode", f"nDCG@{CUT}", f"recall@{CUT}", "queries/s"),
        [(run.mode, f"{run.ndcg:.3f}", f"{run.recall:.3f}", f"{run.queries_per_second:.0f}") for run in runs],
    )
    for request, hits in samples:
        print_line()
        print_table(("score", "rank score", "year", "title"), map(_row, hits), title=_title(request))
    if store is not None:
        remark(f'The store stays: entrepot search {store} "heat transfer" --top-k 3')


@dataclass(frozen=True)
class _Run:
    """The figures of one mode, over all queries."""

    mode: str
    ndcg: float
    recall: float
    queries_per_second: float

    def figures(self) -> dict[str, float]:
        return {
            f"ndcg@{CUT}": round(self.ndcg, 4),
            f"recall@{CUT}": round(self.recall, 4),
            "queries_per_second": round(self.queries_per_second, 1),
        }


def _documents(collection: cranfield.Collection) -> "tuple[list[Document], list[str]]":
    """Return documents to index, an empty text replaced by the title, and ids that have neither."""
    from entrepot import Document

    documents: list[Document] = []
    left_out: list[str] = []
    for record in collection.documents:
        text = record["text"].strip() or record["title"].strip()
        if not text:
            left_out.append(record["id"])
            continue
        metadata: dict[str, Any] = {
            key: record[key] for key in ("title", "author", "bibliography", "year") if record.get(key)
        }
        documents.append(Document(text, id=record["id"], metadata=metadata))
    return documents, left_out


@contextmanager
def _place(url: str | None) -> Generator[str]:
    """Yield the URL given, or one of a durable store in a temporary folder."""
    if url is not None:
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="entrepot-demo-") as folder:
        yield f"simple:///{(Path(folder) / 'cranfield.db').as_posix()}"


def _index(store: "VectorStore", documents: "list[Document]") -> float:
    """Add the documents in batches; return the seconds it took, embedding and writing to disk included."""
    started = time.perf_counter()
    with progress("indexing", len(documents)) as advance:
        for start in range(0, len(documents), _BATCH):
            batch = documents[start : start + _BATCH]
            store.add(batch)
            advance(len(batch))
    return time.perf_counter() - started


def _run(store: "VectorStore", mode: str, collection: cranfield.Collection) -> _Run:
    """Search all queries one after the other; the clock runs for searches alone, after one to warm up."""
    from entrepot import SearchRequest

    requests = {
        query: SearchRequest(text, top_k=CUT, mode=mode) for query, text in collection.queries.items()
    }
    rankings: dict[str, list[str]] = {}
    store.similarity_search(next(iter(requests.values())))
    seconds = 0.0
    with progress(mode, len(requests)) as advance:
        for query, request in requests.items():
            started = time.perf_counter()
            hits = store.similarity_search(request)
            seconds += time.perf_counter() - started
            rankings[query] = [hit.id for hit in hits]
            advance(1)
    gains = collection.gains
    return _Run(
        mode,
        evaluation.mean([evaluation.ndcg(ranking, gains[query], CUT) for query, ranking in rankings.items()]),
        evaluation.mean(
            [evaluation.recall(ranking, gains[query], CUT) for query, ranking in rankings.items()]
        ),
        len(rankings) / seconds,
    )


def _samples() -> "list[SearchRequest]":
    from entrepot import SearchMode, SearchRequest

    return [
        SearchRequest("how does heat reach the nose of a body flying faster than sound", top_k=3),
        SearchRequest("panel flutter", top_k=3, mode=SearchMode.FULLTEXT),
        SearchRequest(
            "boundary layer transition on a cone",
            top_k=3,
            mode=SearchMode.HYBRID,
            filter="year >= 1955 and year < 1960",
        ),
    ]


def _title(request: "SearchRequest") -> str:
    condition = "" if request.filter is None else f", filter {request.filter}"
    return f"{request.mode}: {request.query}{condition}"


def _row(hit: "Document") -> tuple[object, ...]:
    metadata = hit.metadata
    return (
        number(hit.score),
        number(hit.rank_score),
        metadata.get("year", "-"),
        one_line(metadata.get("title")),
    )
