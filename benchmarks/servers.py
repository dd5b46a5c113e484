"""Servers through entrepot, against the same commands by the plain driver, over loopback.

Each server is started for the run: one that ENTREPOT_<NAME>_URL names, a container, or a process out of wheels. The
plain piece sends the commands that the store sends, on a connection of its own, and makes dictionaries of the rows.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import uuid
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from benchmarks.measure import Line, medians, ratio, seconds
from benchmarks.stores import documents, metadata_of

from entrepot import SearchRequest, UserMessage, open_chat_memory, open_vector_store
from entrepot.memory.repository import Entry
from entrepot.messages import encode_message
from entrepot_conformance.servers import ServerAbsentError, ServerSpec, running_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from entrepot import ChatMemoryRepository, VectorStore
    from entrepot.records import Query

BACKENDS = os.environ.get(
    "ENTREPOT_BENCH_SERVERS", "postgres,redis,milvus,elasticsearch,cassandra,neo4j,mongodb"
).split(",")
ROWS, DIMENSION, TOP_K = 10_000, 256, 10
FILTERS = {"no filter": None, "filter of 1 %": "share == 1", "filter of 50 %": "share <= 50"}
SHORT, LONG = 20, 20_000
TEXT = "What one says to another in a chat, now and then somewhat longer. " * 4


def lines() -> Iterator[Line]:
    """Yield a line for each goal, for each server that can be had."""
    for name in BACKENDS:
        backend: Any = importlib.import_module(
            f"benchmarks.on_{name}"
        )  # its driver loads for this group alone
        try:
            with running_server(backend.SERVER) as server:
                yield from _lines(backend.SERVER, server.url, backend)
                yield from _large(name, server.url)
        except ServerAbsentError as error:
            print(f"# {name} is left out: {error}")


def _lines(spec: ServerSpec, url: str, backend: Any) -> Iterator[Line]:
    name = spec.name
    vectors = np.random.default_rng(3).standard_normal((ROWS, DIMENSION), dtype=np.float32)
    everything = list(documents(vectors))
    with (
        open_vector_store(
            f"{url}/bench_{uuid.uuid4().hex}{backend.OPTIONS}", metric="cosine", timeout=600
        ) as store,
        closing(backend.Plain(url)) as plain,
    ):
        store.create_collection(dimension=DIMENSION)
        ours = seconds(lambda: store.add(everything))
        rows = plain.rows(store)
        theirs = seconds(lambda: plain.load(store, rows))
        assert store.count() == ROWS
        yield Line(f"{name}: add {ROWS:,} x {DIMENSION}, against the driver's bulk load", 1.1, ratio=ours / theirs, plain=f"{theirs:.1f} s")  # fmt: skip
        natural = plain.natural_bytes(everything, metadata_of)
        stored = plain.stored_bytes(store)
        yield Line(f"{name}: bytes stored, against a natural schema", 2.5, ratio=stored / natural, plain=f"{natural / ROWS:,.0f} bytes/document")  # fmt: skip
        for what, given in FILTERS.items():
            request = SearchRequest(vector=vectors[7] + 0.1, top_k=TOP_K, filter=given)
            query = asked(store, request)
            ask = plain.search(store, query)
            assert [hit["id"] for hit in ask()] == [hit.id for hit in store.similarity_search(request)]
            yield ratio(f"{name}: search, {what}", 1.1, partial(store.similarity_search, request), ask, repetitions=200)  # fmt: skip
        store.drop_collection()
    if not hasattr(plain, "appends"):
        return
    with (
        open_chat_memory(f"{url}/bench_{uuid.uuid4().hex[:16]}") as memory,
        closing(backend.Plain(url)) as plain,
    ):
        yield from _appends(name, memory, plain)


def _large(name: str, url: str) -> Iterator[Line]:
    """Yield the memory that a process takes for 100,000 documents, with the times it took."""
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.large", f"{url}/bench_{uuid.uuid4().hex}"],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    took: dict[str, float] = json.loads(ended.stdout)
    told = f"load {took['load']} s, search {took['search']} ms, scan {took['scan']} s, delete by filter {took['delete']} s"
    yield Line(f"{name}: memory for 100,000 x 64", 200, value=took["megabytes"], unit="MB", plain=told)


def _appends(name: str, memory: ChatMemoryRepository, plain: Any) -> Iterator[Line]:
    for size in (SHORT, LONG):
        for start in range(0, size, 1_000):
            memory.append(str(size), [UserMessage(TEXT) for _ in range(min(1_000, size - start))])

    def append(size: int) -> Callable[[], None]:
        return lambda: memory.append(str(size), [UserMessage(TEXT, metadata={"number": 1})])

    def entry() -> Entry:
        message = UserMessage(TEXT, metadata={"number": 1})
        return Entry(message.id, message.role, encode_message(message), message)

    memory.append("bare", [UserMessage(TEXT)])
    bare = plain.appends(memory, "bare", entry)
    plainly, short, long = medians(bare, append(SHORT), append(LONG), repetitions=300)
    yield Line(f"{name}: append one message, against the same statements", 1.2, ratio=short / plainly, plain=f"{plainly * 1e6:,.0f} us")  # fmt: skip
    yield Line(f"{name}: append to {LONG:,}, against append to {SHORT}", 1.2, ratio=long / short, plain=f"{short * 1e6:,.0f} us")  # fmt: skip
    for one in (SHORT, LONG, "bare"):
        memory.delete(str(one))


def asked(store: VectorStore, request: SearchRequest) -> Query:
    """Return what a store's plugin is asked for a request."""
    seen: list[Query] = []
    hooks = cast("Any", store)
    search = hooks._search

    def noted(query: Query) -> Any:
        seen.append(query)
        return search(query)

    hooks._search = noted
    store.similarity_search(request)
    del hooks._search
    (query,) = seen
    return query
