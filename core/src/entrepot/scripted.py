"""`ScriptedVectorStore`: a store whose plugin writes each hook once, for sync and async use (E3).

A plugin writes a hook as a *script*: a generator that yields what it asks of its engine and gets the answers.
What it yields is the plugin's own (a statement, a call of the driver); `Work` alone is the core's. Two methods of
the plugin carry scripts out, one with the driver's sync client, one with its async client::

    def _answer(self, script):
        return carry_out(script, self._ask)  # _ask(what) sends one thing and returns the answer


    async def _aanswer(self, script):
        return await acarry_out(script, self._aask)

An error of the engine is thrown into the script where it waits, so that a script can mend what it may.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from functools import partial
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
)

import msgspec

from entrepot.errors import CollectionMismatchError, CollectionNotFoundError
from entrepot.filters import TRUE
from entrepot.hooks import HOOK_NAMES
from entrepot.records import unchanged
from entrepot.vectorstore import VectorStore

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence

    from entrepot.filters import Normal
    from entrepot.records import CollectionInfo, Hit, IfExists, Page, Query, Record, StoredRecord

T = TypeVar("T")

if TYPE_CHECKING:
    Script: TypeAlias = Generator[Any, Any, T]
    """What an operation that returns T asks of the engine."""


_AT_ONCE: Final = 20_000
"""Characters and numbers of records that are encoded on the event loop: a few milliseconds."""


class Place(Protocol):
    """What a store knows of its collection; a plugin's own has more, such as names and columns."""

    @property
    def info(self) -> CollectionInfo:
        """What the collection records about itself."""
        ...

    @property
    def ann(self) -> bool:
        """Whether its searches are approximate unless they ask for ``exact=True``."""
        ...


PlaceT = TypeVar("PlaceT", bound=Place)


class Work(NamedTuple):
    """Work on the CPU that takes more than a moment: done beside the event loop, if there is one (E3)."""

    function: Callable[[], Any]


def work(function: Callable[..., T], *args: Any, at_once: bool = False) -> Script[T]:
    """Return what a function makes of its arguments.

    Args:
        function: What is to be done; it asks nothing of the engine.
        args: What it is given.
        at_once: Whether it takes less than a few milliseconds here, so that no thread is worth its while.
    """
    if at_once:
        return function(*args)
    return cast("T", (yield Work(partial(function, *args))))


def encode(function: Callable[..., T], records: Sequence[Record], *args: Any) -> Script[T]:
    """Return what a function makes of records that are to be written: in a thread if they are many or long."""
    size = sum(len(record.text or "") + len(record.metadata_json) + len(record.vector) for record in records)
    return work(function, records, *args, at_once=size <= _AT_ONCE)


class Result(NamedTuple, Generic[T]):
    """What a script returned."""

    value: T


def advance(script: Script[T], answer: object = None) -> Any:
    """Hand a script an answer, or an error that it waits for in vain; do the work that it has; blocks.

    Returns:
        What it asks next, or a `Result`. To begin it, the answer is None.
    """
    try:
        asked = script.throw(answer) if isinstance(answer, Exception) else script.send(answer)
        while isinstance(asked, Work):
            try:
                done = asked.function()
            except Exception as error:  # noqa: BLE001 - the script decides what to do with it
                asked = script.throw(error)
            else:
                asked = script.send(done)
    except StopIteration as end:  # which no thread and no coroutine could hand over
        return Result(end.value)
    return asked


async def aadvance(script: Script[T], answer: object = None) -> Any:
    """As `advance`; the script's work is done in a thread."""
    try:
        asked = script.throw(answer) if isinstance(answer, Exception) else script.send(answer)
        while isinstance(asked, Work):
            try:
                done = await asyncio.to_thread(asked.function)
            except Exception as error:  # noqa: BLE001 - as above
                asked = script.throw(error)
            else:
                asked = script.send(done)
    except StopIteration as end:
        return Result(end.value)
    return asked


def carry_out(script: Script[T], ask: Callable[[Any], Any]) -> T:
    """Carry out a script; blocks.

    Args:
        script: The script.
        ask: Sends one thing that the script asks, and returns the answer. What it raises is thrown into the
            script.
    """
    try:
        step: Any = advance(script)
        while not isinstance(step, Result):
            try:
                answer = ask(step)
            except Exception as error:  # noqa: BLE001 - as above
                answer = error
            step = advance(script, answer)
        return cast("Result[T]", step).value
    finally:
        script.close()


async def acarry_out(script: Script[T], ask: Callable[[Any], Awaitable[Any]]) -> T:
    """Carry out a script; its work on the CPU is done in a thread."""
    try:
        step: Any = await aadvance(script)
        while not isinstance(step, Result):
            try:
                answer = await ask(step)
            except Exception as error:  # noqa: BLE001 - as above
                answer = error
            step = await aadvance(script, answer)
        return cast("Result[T]", step).value
    finally:
        script.close()


SCRIPT_NAMES: Final = frozenset({
    "_answer",
    "_aanswer",
    "_describe_script",
    "_create_script",
    "_drop_script",
    "_list_collections_script",
    "_write_script",
    "_update_script",
    "_fetch_script",
    "_search_script",
    "_search_batch_script",
    "_scan_script",
    "_count_script",
    "_delete_script",
    "_delete_unchanged_script",
    "_visible_script",
    "_details_script",
})  # fmt: skip
"""What a plugin may define of a `ScriptedVectorStore`, beside the hooks `HOOK_NAMES`."""


class ScriptedVectorStore(VectorStore, Generic[PlaceT]):
    """A store whose hooks are scripts; the type parameter is what the plugin knows of a collection.

    A plugin writes `_answer`, the abstract scripts, and `_aanswer` where its driver has an async client. Each
    script answers as the hook of the same name in `entrepot.hooks.VectorStoreHooks` says; `inside`, which
    `_write_script`, `_update_script` and `_delete_script` take, is the filter of a view where writes are
    conditional, and `TRUE` otherwise.
    """

    _plugin_names: ClassVar[frozenset[str]] = HOOK_NAMES | SCRIPT_NAMES
    _place: PlaceT | None = None

    # --- what a plugin writes ---------------------------------------------------------------------------

    @abstractmethod
    def _answer(self, script: Script[T]) -> T:
        """Carry out a script with the sync client; raises the errors of `entrepot.errors`."""

    async def _aanswer(self, script: Script[T]) -> T:
        """Carry out a script with the async client; without one, in a worker thread."""
        return await asyncio.to_thread(self._answer, script)

    @abstractmethod
    def _describe_script(self) -> Script[PlaceT | None]:
        """Find the collection; None if there is none (D5)."""

    @abstractmethod
    def _create_script(self, info: CollectionInfo) -> Script[PlaceT]:
        """Make the collection with its indexes, ready to be written; if it exists by now, find it."""

    @abstractmethod
    def _drop_script(self) -> Script[None]:
        """Remove the collection and everything in it; a missing one is no error."""

    @abstractmethod
    def _list_collections_script(self) -> Script[list[str]]:
        """Return the names of this library's collections on the endpoint, sorted."""

    @abstractmethod
    def _write_script(
        self, records: Sequence[Record], if_exists: IfExists, inside: Normal = TRUE
    ) -> Script[object]:
        """Write whole documents (D2); return a marker for `_visible_script`, or None."""

    @abstractmethod
    def _update_script(
        self,
        ids: Sequence[str],
        changes: Mapping[str, Any],
        unset: Sequence[str],
        inside: Normal = TRUE,
    ) -> Script[list[str]]:
        """Set and unset metadata keys (D10); return the ids that were there."""

    @abstractmethod
    def _fetch_script(self, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
        """Return the documents with these ids, in any order, without those that are not there (D7)."""

    @abstractmethod
    def _search_script(self, query: Query) -> Script[list[Hit]]:
        """Return at most `query.k` hits, best first."""

    def _search_batch_script(self, queries: Sequence[Query]) -> Script[list[list[Hit]]]:
        """Answer several queries, here one after the other."""
        found: list[list[Hit]] = []
        for query in queries:
            hits = yield from self._search_script(query)
            found.append(hits)
        return found

    @abstractmethod
    def _scan_script(self, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
        """Return about `size` matching documents and the token of the next page (D7)."""

    @abstractmethod
    def _count_script(self, query: Query) -> Script[int]:
        """Return how many documents match, exactly (D7)."""

    @abstractmethod
    def _delete_script(self, target: Sequence[str] | Query, inside: Normal = TRUE) -> Script[None]:
        """Delete documents by id, or all that match now and do not change before it comes to them (D7)."""

    def _delete_unchanged_script(self, records: Sequence[StoredRecord]) -> Script[None]:
        """Delete documents whose metadata is still what was read (D7); here read once more, then deleted."""
        found = yield from self._fetch_script([record.id for record in records], ("metadata",))
        same = unchanged(records, found)
        if same:
            yield from self._delete_script(same)

    def _visible_script(self, marker: object) -> Script[None]:  # noqa: ARG002 - for a plugin that has markers
        """Wait until searches see the write that returned the marker (S7)."""
        yield from ()

    def _details_script(self) -> Script[dict[str, Any]]:
        """Return what else `stats` shall tell; JSON values."""
        yield from ()
        return {}

    # --- what is known of the collection ----------------------------------------------------------------

    def _here(self) -> PlaceT:
        """Return what is known of the collection.

        Raises:
            CollectionNotFoundError: There is none, or it was not looked for yet.
        """
        if self._place is None:
            msg = f"there is no collection {self.collection!r}"
            raise CollectionNotFoundError(msg)
        return self._place

    def _seen(self, place: PlaceT | None) -> CollectionInfo | None:
        self._place = place
        if place is None:
            self._info = None
            return None
        if place.ann is not self.capabilities.ann:
            self.capabilities = msgspec.structs.replace(self.capabilities, ann=place.ann)
        return place.info

    def _forget(self) -> None:
        """Look at the collection anew before the next operation: it is not what it was."""
        self._place = self._info = None

    def _through(self, script: Script[T]) -> T:
        try:
            return self._answer(script)
        except (CollectionNotFoundError, CollectionMismatchError):
            self._forget()
            raise

    async def _athrough(self, script: Script[T]) -> T:
        try:
            return await self._aanswer(script)
        except (CollectionNotFoundError, CollectionMismatchError):
            self._forget()
            raise

    # --- the hooks --------------------------------------------------------------------------------------

    def _describe(self) -> CollectionInfo | None:
        return self._seen(self._through(self._describe_script()))

    async def _adescribe(self) -> CollectionInfo | None:
        return self._seen(await self._athrough(self._describe_script()))

    def _create(self, info: CollectionInfo) -> None:
        self._seen(self._through(self._create_script(info)))

    async def _acreate(self, info: CollectionInfo) -> None:
        self._seen(await self._athrough(self._create_script(info)))

    def _drop(self) -> None:
        self._through(self._drop_script())
        self._place = None

    async def _adrop(self) -> None:
        await self._athrough(self._drop_script())
        self._place = None

    def _list_collections(self) -> list[str]:
        return self._through(self._list_collections_script())

    async def _alist_collections(self) -> list[str]:
        return await self._athrough(self._list_collections_script())

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        return self._through(self._write_script(records, if_exists))

    async def _awrite(self, records: Sequence[Record], if_exists: IfExists) -> object:
        return await self._athrough(self._write_script(records, if_exists))

    def _write_inside(self, records: Sequence[Record], if_exists: IfExists, inside: Normal) -> object:
        return self._through(self._write_script(records, if_exists, inside))

    async def _awrite_inside(self, records: Sequence[Record], if_exists: IfExists, inside: Normal) -> object:
        return await self._athrough(self._write_script(records, if_exists, inside))

    def _update(self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]) -> list[str]:
        return self._through(self._update_script(ids, changes, unset))

    async def _aupdate(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]
    ) -> list[str]:
        return await self._athrough(self._update_script(ids, changes, unset))

    def _update_inside(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal
    ) -> list[str]:
        return self._through(self._update_script(ids, changes, unset, inside))

    async def _aupdate_inside(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal
    ) -> list[str]:
        return await self._athrough(self._update_script(ids, changes, unset, inside))

    def _fetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        return self._through(self._fetch_script(ids, include))

    async def _afetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        return await self._athrough(self._fetch_script(ids, include))

    def _search(self, query: Query) -> list[Hit]:
        return self._through(self._search_script(query))

    async def _asearch(self, query: Query) -> list[Hit]:
        return await self._athrough(self._search_script(query))

    def _search_batch(self, queries: Sequence[Query]) -> list[list[Hit]]:
        return self._through(self._search_batch_script(queries))

    async def _asearch_batch(self, queries: Sequence[Query]) -> list[list[Hit]]:
        return await self._athrough(self._search_batch_script(queries))

    def _scan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        return self._through(self._scan_script(query, token, size))

    async def _ascan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        return await self._athrough(self._scan_script(query, token, size))

    def _count(self, query: Query) -> int:
        return self._through(self._count_script(query))

    async def _acount(self, query: Query) -> int:
        return await self._athrough(self._count_script(query))

    def _delete(self, target: Sequence[str] | Query) -> None:
        self._through(self._delete_script(target))

    async def _adelete(self, target: Sequence[str] | Query) -> None:
        await self._athrough(self._delete_script(target))

    def _delete_inside(self, ids: Sequence[str], inside: Normal) -> None:
        self._through(self._delete_script(ids, inside))

    async def _adelete_inside(self, ids: Sequence[str], inside: Normal) -> None:
        await self._athrough(self._delete_script(ids, inside))

    def _delete_unchanged(self, records: Sequence[StoredRecord]) -> None:
        self._through(self._delete_unchanged_script(records))

    async def _adelete_unchanged(self, records: Sequence[StoredRecord]) -> None:
        await self._athrough(self._delete_unchanged_script(records))

    def _visible(self, marker: object) -> None:
        self._through(self._visible_script(marker))

    async def _avisible(self, marker: object) -> None:
        await self._athrough(self._visible_script(marker))

    def _details(self) -> dict[str, Any]:
        return self._through(self._details_script())

    async def _adetails(self) -> dict[str, Any]:
        return await self._athrough(self._details_script())
