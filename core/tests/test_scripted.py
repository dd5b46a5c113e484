"""`entrepot.scripted`: one body for a sync and an async client."""

# ruff: noqa: ARG002, ARG005 - a store that is made for tests needs little of what hooks get

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import pytest

from entrepot import Document, SearchRequest
from entrepot.capabilities import Capabilities
from entrepot.errors import CollectionNotFoundError, PluginBrokenError
from entrepot.filters import TRUE
from entrepot.records import CollectionInfo, Hit, Page, Query, StoredRecord
from entrepot.scripted import (
    SCRIPT_NAMES,
    Result,
    ScriptedVectorStore,
    Work,
    aadvance,
    acarry_out,
    advance,
    carry_out,
    encode,
    work,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from entrepot.filters import Normal
    from entrepot.records import IfExists, Record
    from entrepot.scripted import Script


T = TypeVar("T")


def asks(*questions: object) -> Script[list[object]]:
    answers: list[object] = []
    for question in questions:
        try:
            answers.append((yield question))
        except LookupError as error:
            answers.append(error)
    return answers


def echo(question: object) -> object:
    if question == "lost":
        raise LookupError(question)
    if question == "broken":
        raise ZeroDivisionError
    return f"{question}!"


async def aecho(question: object) -> object:
    await asyncio.sleep(0)
    return echo(question)


def both(*questions: object) -> list[object]:
    sync = carry_out(asks(*questions), echo)
    as_coroutine = asyncio.run(acarry_out(asks(*questions), aecho))
    assert [str(each) for each in sync] == [str(each) for each in as_coroutine]
    return sync


def test_answers_come_back_to_where_they_were_asked() -> None:  # E3
    assert both() == []
    assert both("a", "b") == ["a!", "b!"]


def test_errors_are_thrown_to_where_the_script_waits() -> None:  # E2
    answers = both("a", "lost", "b")
    assert answers[0] == "a!"
    assert isinstance(answers[1], LookupError)
    assert answers[2] == "b!"


def test_errors_that_a_script_does_not_mend_reach_the_caller() -> None:  # E2
    ended: list[str] = []

    def script() -> Script[None]:
        try:
            yield "broken"
        finally:
            ended.append("closed")

    with pytest.raises(ZeroDivisionError):
        carry_out(script(), echo)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(acarry_out(script(), aecho))
    assert ended == ["closed", "closed"]


def test_a_cancelled_script_is_closed() -> None:  # E3
    ended: list[str] = []

    def script() -> Script[None]:
        try:
            yield "waits"
        finally:
            ended.append("closed")

    async def forever(_question: object) -> object:
        await asyncio.Event().wait()
        return None

    async def main() -> None:
        task = asyncio.create_task(acarry_out(script(), forever))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert ended == ["closed"]


def test_work_is_done_beside_the_event_loop_alone() -> None:  # E3
    def where() -> str:
        return threading.current_thread().name

    def script(*, at_once: bool) -> Script[str]:
        return (yield from work(where, at_once=at_once))

    here = threading.current_thread().name
    assert carry_out(script(at_once=False), echo) == here
    assert asyncio.run(acarry_out(script(at_once=True), aecho)) == here
    assert asyncio.run(acarry_out(script(at_once=False), aecho)) != here


def test_errors_of_work_are_thrown_into_the_script() -> None:
    def fail() -> None:
        raise LookupError

    def script() -> Script[str]:
        try:
            yield Work(fail)
        except LookupError:
            answer: str = yield "mended"
            return answer
        return "not reached"

    assert carry_out(script(), echo) == "mended!"
    assert asyncio.run(acarry_out(script(), aecho)) == "mended!"
    assert advance(script()) == asyncio.run(aadvance(script())) == "mended"


def test_advance_tells_questions_and_results_apart() -> None:
    running = asks("a")
    assert advance(running) == "a"
    assert advance(running, 5) == Result([5])
    assert advance(asks()) == Result([])


def test_records_are_encoded_in_a_thread_if_they_are_many() -> None:  # E3
    import numpy as np

    from entrepot.records import Record

    def record(size: int) -> Record:
        return Record("x", "t" * size, {}, b"{}", np.zeros(2, np.float32))

    def names(records: Sequence[Record], more: str) -> tuple[int, str, str]:
        return len(records), more, threading.current_thread().name

    here = threading.current_thread().name
    assert asyncio.run(acarry_out(encode(names, [record(3)], "more"), aecho)) == (1, "more", here)
    count, _, thread = asyncio.run(acarry_out(encode(names, [record(30_000)] * 2, "more"), aecho))
    assert (count, thread != here) == (2, True)


# --- the store --------------------------------------------------------------------------------------------


class Place(NamedTuple):
    info: CollectionInfo
    ann: bool = False


class Engine:
    """Collections of records in a dict; questions are callables that get it."""

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        self.rows: dict[str, dict[str, Record]] = {}


def ask(call: Callable[[Engine], T]) -> Script[T]:
    return cast("T", (yield call))


class Store(ScriptedVectorStore[Place]):
    backend = "scripted"
    capabilities = Capabilities()

    def __init__(self, engine: Engine, **options: Any) -> None:
        super().__init__(collection="c", **options)
        self.engine = engine
        self.colours: list[str] = []

    def _open(self) -> None:
        """Nothing to connect to."""

    def _close(self) -> None:
        """Nothing to release."""

    def _answer(self, script: Script[Any]) -> Any:
        def send(question: Any) -> object:
            self.colours.append("sync")
            return question(self.engine)

        return carry_out(script, send)

    async def _aanswer(self, script: Script[Any]) -> Any:
        async def send(question: Any) -> object:
            await asyncio.sleep(0)
            self.colours.append("async")
            return question(self.engine)

        return await acarry_out(script, send)

    def _describe_script(self) -> Script[Place | None]:
        return (yield from ask(lambda engine: engine.places.get("c")))

    def _create_script(self, info: CollectionInfo) -> Script[Place]:
        return (yield from ask(lambda engine: engine.places.setdefault("c", Place(info, ann=True))))

    def _drop_script(self) -> Script[None]:
        yield from ask(lambda engine: vars(engine).update(places={}, rows={}))

    def _list_collections_script(self) -> Script[list[str]]:
        return (yield from ask(lambda engine: sorted(engine.places)))

    def _write_script(
        self, records: Sequence[Record], if_exists: IfExists, inside: Normal = TRUE
    ) -> Script[object]:
        def write(engine: Engine) -> None:
            if "c" not in engine.places:
                msg = "gone"
                raise CollectionNotFoundError(msg)
            engine.rows.setdefault("c", {}).update({record.id: record for record in records})

        yield from ask(write)
        return None

    def _update_script(
        self,
        ids: Sequence[str],
        changes: Mapping[str, Any],
        unset: Sequence[str],
        inside: Normal = TRUE,
    ) -> Script[list[str]]:
        yield from ask(lambda engine: None)
        return []

    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        rows = yield from ask(lambda engine: dict(engine.rows.get("c", {})))
        return [
            StoredRecord(name, rows[name].text, rows[name].metadata, rows[name].vector)
            for name in ids
            if name in rows
        ]

    def _search_script(self, query: Query) -> Script[list[Hit]]:
        place = self._here()
        rows = yield from ask(lambda engine: list(engine.rows.get(place.info.name, {}).values()))
        assert query.vector is not None
        hits = [
            Hit(float(row.vector @ query.vector), StoredRecord(row.id, row.text, row.metadata))
            for row in rows
        ]
        return sorted(hits, key=lambda hit: -hit.raw)[: query.k]

    def _scan_script(self, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
        rows = yield from ask(lambda engine: dict(engine.rows.get("c", {})))
        return Page([StoredRecord(row.id, row.text, row.metadata) for row in rows.values()], None)

    def _count_script(self, query: Query) -> Script[int]:
        return (yield from ask(lambda engine: len(engine.rows.get("c", {}))))

    def _delete_script(self, target: Sequence[str] | Query, inside: Normal = TRUE) -> Script[None]:
        names = [] if isinstance(target, Query) else list(target)
        yield from ask(lambda engine: [engine.rows["c"].pop(name, None) for name in names])


def documents(*names: str) -> list[Document]:
    return [Document(name, id=name, vector=[1.0, float(n)]) for n, name in enumerate(names)]


def test_one_script_serves_both_colours() -> None:  # E3
    store = Store(Engine())
    store.add(documents("a", "b"))
    request = SearchRequest(vector=[1.0, 0.0])
    hits = store.similarity_search(request)
    assert [hit.id for hit in hits] == ["a", "b"]
    assert set(store.colours) == {"sync"}
    store.colours.clear()

    async def main() -> tuple[list[str], int, list[str]]:
        found = await store.asimilarity_search(request)
        return [hit.id for hit in found], await store.acount(), await store.alist_collections()

    assert asyncio.run(main()) == (["a", "b"], 2, ["c"])
    assert set(store.colours) == {"async"}


def test_a_batch_of_searches_is_by_default_one_after_the_other() -> None:
    store = Store(Engine())
    store.add(documents("a", "b"))
    found = store.similarity_search_batch(
        [SearchRequest(vector=[1.0, 0.0]), SearchRequest(vector=[0.0, 1.0])]
    )
    assert [[hit.id for hit in hits] for hits in found] == [["a", "b"], ["b", "a"]]


def test_capabilities_tell_of_the_index_that_the_collection_has() -> None:
    store = Store(Engine())
    assert store.capabilities.ann is False
    store.add(documents("a"))
    assert store.capabilities.ann is True


def test_a_collection_that_is_gone_is_forgotten() -> None:  # D5
    engine = Engine()
    store = Store(engine)
    store.add(documents("a"))
    engine.places.clear()
    with pytest.raises(CollectionNotFoundError):
        store.add(documents("b"))
    with pytest.raises(CollectionNotFoundError):  # asked anew: there is none
        store.similarity_search(SearchRequest(vector=[1.0, 0.0]))
    store.add(documents("c"))  # and made anew
    assert store.count() == 2


def test_documents_are_deleted_if_they_are_as_they_were_read() -> None:  # D7
    store = Store(Engine())
    store.add([Document("a", id="a", metadata={"n": 1}, vector=[1.0, 0.0])])
    store.add([Document("b", id="b", metadata={"n": 1}, vector=[1.0, 0.0])])
    read = [StoredRecord("a", metadata={"n": 1}), StoredRecord("b", metadata={"n": 1.0})]
    hooks: Any = store
    hooks._delete_unchanged(read)
    assert store.count() == 1
    asyncio.run(hooks._adelete_unchanged([StoredRecord("b", metadata={"n": 1})]))
    assert store.count() == 0


def test_every_script_and_no_other_name_of_the_core_may_be_defined() -> None:
    own = {name for name in vars(ScriptedVectorStore) if name.endswith("_script")}
    assert own | {"_answer", "_aanswer"} == set(SCRIPT_NAMES)
    with pytest.raises(PluginBrokenError):
        type("Broken", (Store,), {"_through": advance, "__module__": "other"})
    type("Fine", (Store,), {"_count_script": advance, "__module__": "other"})
