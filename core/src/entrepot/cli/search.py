"""`entrepot search`: find documents in a store."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from entrepot.cli.options import (
    DEFAULT_EMBEDDING,
    AsJson,
    Embedding,
    FilterText,
    StoreUrl,
    model_named,
    opened,
)
from entrepot.cli.output import one_line, print_json, print_table, shown_metadata

if TYPE_CHECKING:
    from entrepot.documents import Document


def search(
    store: StoreUrl,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for", show_default=False)],
    *,
    embedding: Embedding = DEFAULT_EMBEDDING,
    top_k: Annotated[int, typer.Option("--top-k", "-k", help="Most hits")] = 10,
    mode: Annotated[
        Literal["semantic", "fulltext", "hybrid"], typer.Option(help="How to search", case_sensitive=False)
    ] = "semantic",
    filter_text: FilterText = None,
    threshold: Annotated[
        float | None, typer.Option(help="Least score, from 0 to 1", show_default=False)
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Search exactly, past an approximate index")] = False,
    as_json: AsJson = False,
) -> None:
    """Search a store by meaning, by words, or by both."""
    from entrepot.search import SearchRequest

    request = SearchRequest(
        query, top_k=top_k, mode=mode, filter=filter_text, threshold=threshold, exact=exact
    )
    model = None if mode == "fulltext" else model_named(embedding)
    with opened(store, embedding=model) as opened_store:
        hits = opened_store.similarity_search(request)
    if as_json:
        print_json({"mode": mode, "hits": [hit_record(hit) for hit in hits]})
    else:
        print_hits(hits)


def hit_record(hit: "Document") -> dict[str, Any]:
    """Return a hit as it is printed in JSON."""
    return {
        "id": hit.id,
        "score": hit.score,
        "rank_score": hit.rank_score,
        "text": hit.text,
        "metadata": hit.metadata,
    }


def print_hits(hits: "list[Document]") -> None:
    """Print hits as a table: score, ranking, id, beginning of the text, metadata."""
    print_table(
        ("score", "rank score", "id", "text", "metadata"),
        [
            (
                number(hit.score),
                number(hit.rank_score),
                hit.id,
                one_line(hit.text),
                shown_metadata(hit.metadata),
            )
            for hit in hits
        ],
    )


def number(value: float | None) -> str:
    """Return a score with four decimals, or - where there is none."""
    return "-" if value is None else f"{value:.4f}"
