# ruff: noqa: FBT001, FBT003, PLC0415, PLR2004, B905, BLE001 - peers are imported where they are measured
"""What people use today, on the same vectors and questions, each against numpy in the same process.

Runs in an environment of its own (`benchmarks/peers.txt`), because none of these packages belongs
to entrepot: `python benchmarks/peers.py` prints one JSON object a line. A package that is not
there, or that this Python cannot use, is left out by name.
"""

from __future__ import annotations

import json
import sqlite3
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS, DIMENSION, TOP_K, REPETITIONS = 20_000, 384, 10, 7


def texts() -> list[str]:
    """Return texts of 300 characters."""
    return [f"document {row} ".ljust(300, "x") for row in range(ROWS)]


def metadata() -> list[dict[str, Any]]:
    """Return five keys for each row; a tenth has a share of 10 or less."""
    return [
        {"country": "BG", "year": 1990 + row % 40, "price": row / 4, "tag": "a", "share": row * 7 % 100 + 1}
        for row in range(ROWS)
    ]


def langchain(vectors: Any) -> tuple[float, Callable[[Any, bool], object]]:
    """LangChain's InMemoryVectorStore."""
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Given(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return [vector.tolist() for vector in vectors[: len(texts)]]

        def embed_query(self, text: str) -> list[float]:
            raise NotImplementedError(text)

    documents = [
        Document(page_content=text, metadata=each) for text, each in zip(texts(), metadata(), strict=True)
    ]
    store = InMemoryVectorStore(Given())
    started = time.perf_counter()
    store.add_documents(documents)
    took = time.perf_counter() - started

    def search(query: Any, filtered: bool) -> object:
        wanted = (lambda document: document.metadata["share"] <= 10) if filtered else None
        return store.similarity_search_with_score_by_vector(query.tolist(), k=TOP_K, filter=wanted)

    return took, search


def llama_index(vectors: Any) -> tuple[float, Callable[[Any, bool], object]]:
    """LlamaIndex's SimpleVectorStore."""
    from llama_index.core.schema import TextNode
    from llama_index.core.vector_stores import (
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
        SimpleVectorStore,
        VectorStoreQuery,
    )

    nodes = [
        TextNode(text=text, metadata=each, embedding=vector.tolist())
        for text, each, vector in zip(texts(), metadata(), vectors, strict=True)
    ]
    store = SimpleVectorStore()
    started = time.perf_counter()
    store.add(nodes)
    took = time.perf_counter() - started
    share = MetadataFilters(filters=[MetadataFilter(key="share", value=10, operator=FilterOperator.LTE)])

    def search(query: Any, filtered: bool) -> object:
        filters = share if filtered else None
        return store.query(
            VectorStoreQuery(query_embedding=query.tolist(), similarity_top_k=TOP_K, filters=filters)
        )

    return took, search


def haystack(vectors: Any) -> tuple[float, Callable[[Any, bool], object]]:
    """Haystack's InMemoryDocumentStore."""
    from haystack import Document
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    documents = [
        Document(content=text, meta=each, embedding=vector.tolist())
        for text, each, vector in zip(texts(), metadata(), vectors, strict=True)
    ]
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    started = time.perf_counter()
    store.write_documents(documents)
    took = time.perf_counter() - started
    share = {"field": "meta.share", "operator": "<=", "value": 10}

    def search(query: Any, filtered: bool) -> object:
        return store.embedding_retrieval(query.tolist(), top_k=TOP_K, filters=share if filtered else None)

    return took, search


def faiss_flat(vectors: Any) -> tuple[float, Callable[[Any, bool], object]]:
    """The flat index of faiss, which has no documents; row numbers are chosen beforehand."""
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(DIMENSION)
    started = time.perf_counter()
    index.add(vectors)
    took = time.perf_counter() - started
    rows = np.array([row for row, each in enumerate(metadata()) if each["share"] <= 10])
    chosen = faiss.SearchParameters(sel=faiss.IDSelectorBatch(rows))

    def search(query: Any, filtered: bool) -> object:
        return index.search(query[None, :], TOP_K, params=chosen if filtered else None)

    return took, search


def sqlite_vec(vectors: Any) -> tuple[float, Callable[[Any, bool], object]]:
    """sqlite-vec, with the share as a metadata column."""
    import sqlite_vec as extension

    connection = sqlite3.connect(":memory:")
    connection.enable_load_extension(True)
    extension.load(connection)
    connection.execute(
        f"CREATE VIRTUAL TABLE v USING vec0(embedding float[{DIMENSION}] distance_metric=cosine, share integer)"
    )
    rows = [
        (row, vector.tobytes(), each["share"]) for row, (vector, each) in enumerate(zip(vectors, metadata()))
    ]
    started = time.perf_counter()
    connection.executemany("INSERT INTO v (rowid, embedding, share) VALUES (?, ?, ?)", rows)
    connection.commit()
    took = time.perf_counter() - started

    def search(query: Any, filtered: bool) -> object:
        share = "AND share <= 10 " if filtered else ""
        return connection.execute(
            f"SELECT rowid, distance FROM v WHERE embedding MATCH ? AND k = ? {share}ORDER BY distance",
            (query.tobytes(), TOP_K),
        ).fetchall()

    return took, search


PEERS = {
    "langchain-core InMemoryVectorStore": langchain,
    "llama-index SimpleVectorStore": llama_index,
    "haystack InMemoryDocumentStore": haystack,
    "faiss flat": faiss_flat,
    "sqlite-vec": sqlite_vec,
}


def main() -> None:
    """Measure each peer and print a JSON object for it."""
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((ROWS, DIMENSION), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = vectors[rng.integers(0, ROWS, REPETITIONS)]
    tenth = np.array([row for row, each in enumerate(metadata()) if each["share"] <= 10])

    def numpy_search(query: Any, filtered: bool) -> object:
        products = (vectors[tenth] if filtered else vectors) @ query
        return np.argpartition(products, products.size - TOP_K)[products.size - TOP_K :]

    for name, make in PEERS.items():
        try:
            took, search = make(vectors)
            line: dict[str, Any] = {"name": name, "rows": ROWS, "documents_per_second": round(ROWS / took)}
            for label, filtered in (("search", False), ("filter of 10 %", True)):
                search(queries[0], filtered)
                theirs, plain = [], []
                for query in queries:
                    for function, times in ((search, theirs), (numpy_search, plain)):
                        started = time.perf_counter()
                        function(query, filtered)
                        times.append(time.perf_counter() - started)
                line[label] = round(statistics.median(theirs) / statistics.median(plain), 2)
        except Exception as error:
            line = {"name": name, "left_out": f"{type(error).__name__}: {error}"[:200]}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main())
