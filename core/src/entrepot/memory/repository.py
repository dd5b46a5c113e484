"""`ChatMemoryRepository`: conversations kept whole, in order, append-only (M1 to M10).

The public methods check and encode, and are the same for every backend; what differs stands in
the hooks. Each hook has an async twin that runs it in a worker thread; a plugin whose driver has
an async client overrides the twin.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import abstractmethod
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

from entrepot.errors import (
    ConfigurationError,
    EntrepotError,
    MessageError,
    RequestError,
    UnknownMessageError,
    UnsupportedError,
)
from entrepot.exchange import DEFAULT_TIMEOUT
from entrepot.lifecycle import Resource
from entrepot.memory.questions import Question
from entrepot.messages import Message, Role, check_batch, decode_message, encode_message, json_fault
from entrepot.metadata import ill_formed, in_utc, name_fault
from entrepot.steps import ask, tell, work

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from entrepot.records import Page
    from entrepot.steps import Steps

_MANY: Final = 500
"""Messages that are coded beside the event loop, not in it: fewer are done sooner than a thread starts (E3)."""
_SWEEP_SECONDS: Final = 10.0
"""Between two looks for what has expired, in a repository that writes."""

_log = logging.getLogger(__name__)


class Entry(NamedTuple):
    """A message to keep: its id, its role and its JSON text, and the message for a backend's indexes."""

    id: str
    role: Role
    json: bytes
    message: Message


class FoundMessage(NamedTuple):
    """A message that `search` found, and the conversation it stands in."""

    conversation_id: str
    message: Message


class ChatMemoryRepository(Resource):
    """Keeps the messages of conversations.

    A conversation id is a non-empty str of at most 512 characters, taken exactly (M6). Appends are
    atomic and rewrite nothing; batches of one conversation have one total order (M1).

    Attributes:
        sweeps: Whether what has expired takes room until `_sweep` frees it; an engine that expires by itself
            leaves it False.

    Args:
        ttl: Seconds after the last write at which a conversation reads as unknown (M8), or None.
        timeout: Seconds for each exchange with the engine (E4).
    """

    sweeps: ClassVar[bool] = False

    def __init__(self, *, ttl: float | None = None, timeout: float = DEFAULT_TIMEOUT) -> None:
        super().__init__(timeout=timeout)
        if ttl is not None:
            if not self.capabilities.ttl:
                msg = f"{type(self).__name__} has no expiry"
                raise UnsupportedError(msg, capability="ttl", hint="leave ttl out")
            if type(ttl) not in (int, float) or not 0 < ttl < float("inf"):
                msg = f"ttl must be a positive number of seconds, not {ttl!r}"
                raise ConfigurationError(msg)
        self.ttl = ttl
        self._swept_until: str | None = None
        self._next_sweep = 0.0

    # --- hooks ------------------------------------------------------------------------------------------

    @abstractmethod
    def _append(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        """Append the entries whose ids are not stored yet, in one step (M3), and set the expiry anew (M8)."""

    @abstractmethod
    def _tail(self, conversation_id: str, last: int | None) -> list[bytes]:
        """Return the JSON texts of all messages or of the newest `last`, in order (M7)."""

    @abstractmethod
    def _replace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        """Put entries, at least one, in the place of all messages, in one step (M4)."""

    @abstractmethod
    def _truncate(self, conversation_id: str, after: str) -> bool:
        """Remove what stands after a message, in one step; return whether that message is there (M4)."""

    @abstractmethod
    def _delete(self, conversation_id: str) -> None:
        """Remove a conversation (M5)."""

    @abstractmethod
    def _ids(self, limit: int, cursor: str | None) -> Page[str]:
        """Return some conversation ids and the cursor of the next page (M9).

        Raises:
            RequestError: The cursor is none of this repository's.
        """

    @abstractmethod
    def _latest(self, conversation_id: str, role: Role) -> bytes | None:
        """Return the newest message of a role, without reading the whole conversation (W2)."""

    def _find(self, question: Question) -> list[tuple[str, bytes]]:
        """Return conversation ids and messages that a question finds, newest first; where declared (M10)."""
        raise NotImplementedError(question)

    def _sweep(self, after: str | None) -> tuple[int, str | None]:  # noqa: ARG002 - for those that sweep
        """Free the room of some conversations that have expired; where `sweeps`.

        Args:
            after: Where to begin: what the last call returned, or None for the start.

        Returns:
            How many conversations were removed, and where to go on; None at the end.
        """
        return 0, None

    async def _aappend(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        return await asyncio.to_thread(self._append, conversation_id, entries)

    async def _atail(self, conversation_id: str, last: int | None) -> list[bytes]:
        return await asyncio.to_thread(self._tail, conversation_id, last)

    async def _areplace(self, conversation_id: str, entries: Sequence[Entry]) -> None:
        return await asyncio.to_thread(self._replace, conversation_id, entries)

    async def _atruncate(self, conversation_id: str, after: str) -> bool:
        return await asyncio.to_thread(self._truncate, conversation_id, after)

    async def _adelete(self, conversation_id: str) -> None:
        return await asyncio.to_thread(self._delete, conversation_id)

    async def _aids(self, limit: int, cursor: str | None) -> Page[str]:
        return await asyncio.to_thread(self._ids, limit, cursor)

    async def _alatest(self, conversation_id: str, role: Role) -> bytes | None:
        return await asyncio.to_thread(self._latest, conversation_id, role)

    async def _afind(self, question: Question) -> list[tuple[str, bytes]]:
        return await asyncio.to_thread(self._find, question)

    async def _asweep(self, after: str | None) -> tuple[int, str | None]:
        return await asyncio.to_thread(self._sweep, after)

    # --- writing ----------------------------------------------------------------------------------------

    def append(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """Append a batch in one step; messages whose id is stored already change nothing (M3).

        Appending nothing makes no conversation.

        Raises:
            MessageError: A message or the id is bad; nothing was stored (M2, M6).
        """
        self._run("append", self._append_steps(conversation_id, messages))

    async def aappend(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """As `append`."""
        await self._arun("append", self._append_steps(conversation_id, messages))

    def replace(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """Put other messages in the place of all, in one step; nothing removes the conversation (M4).

        Raises:
            MessageError: A message or the id is bad; the old conversation stays.
        """
        self._run("replace", self._replace_steps(conversation_id, messages))

    async def areplace(self, conversation_id: str, messages: Sequence[Message]) -> None:
        """As `replace`."""
        await self._arun("replace", self._replace_steps(conversation_id, messages))

    def truncate(self, conversation_id: str, *, after: str) -> None:
        """Remove what stands after a message, in one step (M4).

        Raises:
            UnknownMessageError: The conversation holds no message of that id.
        """
        self._run("truncate", self._truncate_steps(conversation_id, after))

    async def atruncate(self, conversation_id: str, *, after: str) -> None:
        """As `truncate`."""
        await self._arun("truncate", self._truncate_steps(conversation_id, after))

    def delete(self, conversation_id: str) -> None:
        """Remove a conversation; an unknown one is no error (M5)."""
        self._run("delete", tell(self._delete, self._adelete, _conversation(conversation_id)))

    async def adelete(self, conversation_id: str) -> None:
        """As `delete`."""
        await self._arun("delete", tell(self._delete, self._adelete, _conversation(conversation_id)))

    # --- reading ----------------------------------------------------------------------------------------

    def messages(self, conversation_id: str, *, last: int | None = None) -> list[Message]:
        """Return all messages, or the newest `last`, in order; an unknown conversation is empty (M5, M7).

        Raises:
            RequestError: `last` is negative (a ValueError).
        """
        return self._run("messages", self._tail_steps(conversation_id, last))

    async def amessages(self, conversation_id: str, *, last: int | None = None) -> list[Message]:
        """As `messages`."""
        return await self._arun("messages", self._tail_steps(conversation_id, last))

    def latest(self, conversation_id: str, role: Role | str) -> Message | None:
        """Return the newest message of a role, or None; its cost does not grow with the conversation (W2)."""
        return self._run("latest", self._latest_steps(conversation_id, role))

    async def alatest(self, conversation_id: str, role: Role | str) -> Message | None:
        """As `latest`."""
        return await self._arun("latest", self._latest_steps(conversation_id, role))

    def conversation_ids(self, *, limit: int = 1000, cursor: str | None = None) -> Page[str]:
        """Return some conversation ids, and in `token` the cursor of the next page, None at the end (M9).

        A conversation that was there throughout comes exactly once.
        """
        return self._run("conversation_ids", self._ids_steps(limit, cursor))

    async def aconversation_ids(self, *, limit: int = 1000, cursor: str | None = None) -> Page[str]:
        """As `conversation_ids`."""
        return await self._arun("conversation_ids", self._ids_steps(limit, cursor))

    def search(  # noqa: PLR0913 - what can be asked
        self,
        *,
        text: str | None = None,
        role: Role | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        limit: int = 100,
    ) -> list[FoundMessage]:
        """Find messages across conversations by all that is given, newest first (M10).

        Args:
            text: Stands in the message's text, in this case.
            role: Who speaks.
            since: Created at this instant or later.
            until: Created before this instant.
            metadata: Top-level metadata keys and the values that they have.
            limit: Most messages.

        Raises:
            UnsupportedError: The repository does not declare ``memory_search``.
            RequestError: Nothing that could be found, such as a naive datetime.
        """
        return self._run("search", self._search_steps(text, role, since, until, metadata, limit))

    async def asearch(  # noqa: PLR0913 - what can be asked
        self,
        *,
        text: str | None = None,
        role: Role | str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        metadata: Mapping[str, Any] | None = None,
        limit: int = 100,
    ) -> list[FoundMessage]:
        """As `search`."""
        return await self._arun("search", self._search_steps(text, role, since, until, metadata, limit))

    # --- what has expired -------------------------------------------------------------------------------

    def remove_expired(self) -> int:
        """Free the room of all conversations that have expired, and return how many they were.

        They read as unknown before that already (M8). It is done in small steps, so that other writers need not
        wait; 0 where the engine does it by itself.
        """
        return self._run("remove_expired", self._remove_expired_steps())

    async def aremove_expired(self) -> int:
        """As `remove_expired`."""
        return await self._arun("remove_expired", self._remove_expired_steps())

    # --- what the methods share -------------------------------------------------------------------------

    def _append_steps(self, conversation_id: str, messages: Sequence[Message]) -> Steps[None]:
        name = _conversation(conversation_id)
        entries = yield from _entries(messages)
        if entries:
            yield from tell(self._append, self._aappend, name, entries)
            yield from self._sweep_sometimes_steps()

    def _replace_steps(self, conversation_id: str, messages: Sequence[Message]) -> Steps[None]:
        name = _conversation(conversation_id)
        entries = yield from _entries(messages)
        if not entries:
            yield from tell(self._delete, self._adelete, name)
            return
        yield from tell(self._replace, self._areplace, name, entries)
        yield from self._sweep_sometimes_steps()

    def _truncate_steps(self, conversation_id: str, after: str) -> Steps[None]:
        name = _conversation(conversation_id)
        found = name_fault(after) is None and (yield from tell(self._truncate, self._atruncate, name, after))
        if not found:
            msg = f"the conversation holds no message {after!r}"
            raise UnknownMessageError(msg)

    def _remove_expired_steps(self) -> Steps[int]:
        removed, after = 0, None
        while self.sweeps:
            count, after = yield from tell(self._sweep, self._asweep, after)
            removed += count
            if after is None:
                break
        return removed

    def _sweep_sometimes_steps(self) -> Steps[None]:
        """After a write that succeeded: free some of what has expired, unless that was done a moment ago."""
        if not self.sweeps or self.ttl is None or time.monotonic() < self._next_sweep:
            return
        self._next_sweep = time.monotonic() + _SWEEP_SECONDS
        try:
            _, self._swept_until = yield from tell(self._sweep, self._asweep, self._swept_until)
        except EntrepotError as error:
            _log.debug("removing expired conversations failed: %s", type(error).__name__)

    def _tail_steps(self, conversation_id: str, last: int | None) -> Steps[list[Message]]:
        name = _conversation(conversation_id)
        if last is not None and (type(last) is not int or last < 0):
            msg = f"last must be an int of at least 0, not {last!r}"
            raise RequestError(msg)
        if last == 0:
            return []
        texts = yield from ask(self._tail, self._atail, name, last)
        if len(texts) > _MANY:
            return (yield from work(_decoded, texts))
        return _decoded(texts)

    def _latest_steps(self, conversation_id: str, role: Role | str) -> Steps[Message | None]:
        text = yield from ask(self._latest, self._alatest, _conversation(conversation_id), _role(role))
        return None if text is None else decode_message(text)

    def _ids_steps(self, limit: int, cursor: str | None) -> Steps[Page[str]]:
        _check_limit(limit)
        return (yield from ask(self._ids, self._aids, limit, cursor))

    def _search_steps(  # noqa: PLR0913, PLR0917 - what can be asked
        self,
        text: str | None,
        role: Role | str | None,
        since: datetime | None,
        until: datetime | None,
        metadata: Mapping[str, Any] | None,
        limit: int,
    ) -> Steps[list[FoundMessage]]:
        if not self.capabilities.memory_search:
            msg = f"{type(self).__name__} answers no questions across conversations"
            raise UnsupportedError(msg, capability="memory_search")
        _check_limit(limit)
        fault = None if text is None else ill_formed(text)
        if fault is not None:
            msg = f"the text to search for {fault}"
            raise RequestError(msg)
        question = Question(
            text,
            None if role is None else _role(role),
            _instant("since", since),
            _instant("until", until),
            _wanted(metadata),
            limit,
        )
        found = yield from ask(self._find, self._afind, question)
        return [FoundMessage(name, decode_message(message)) for name, message in found]


def _conversation(name: str) -> str:
    fault = name_fault(name)
    if fault is not None:
        msg = f"the conversation id {name!r} {fault}"
        raise MessageError(msg)
    return name


def _entries(messages: Sequence[Message]) -> Steps[list[Entry]]:
    if hasattr(messages, "__len__") and len(messages) > _MANY:
        return (yield from work(_encoded, messages))
    return _encoded(messages)


def _decoded(texts: Sequence[bytes]) -> list[Message]:
    return [decode_message(text) for text in texts]


def _encoded(messages: Sequence[Message]) -> list[Entry]:
    batch = check_batch(messages)
    return [Entry(message.id, message.role, encode_message(message), message) for message in batch]


def _role(role: Role | str) -> Role:
    try:
        return Role(role)
    except ValueError:
        msg = f"there is no role {role!r}"
        raise RequestError(msg, hint=f"roles are {', '.join(Role)}") from None


def _check_limit(limit: int) -> None:
    if type(limit) is not int or limit < 1:
        msg = f"limit must be an int of at least 1, not {limit!r}"
        raise RequestError(msg)


def _instant(name: str, given: object) -> datetime | None:
    if given is None:
        return None
    if not isinstance(given, datetime):
        msg = f"{name} must be a datetime, not {type(given).__name__}"
        raise RequestError(msg)
    try:
        return in_utc(given)
    except ValueError as error:
        msg = f"{name} is {error}"
        raise RequestError(msg, hint="use datetime(..., tzinfo=timezone.utc)") from None


def _wanted(metadata: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Check metadata to search for by the rules of a message's metadata."""
    if metadata is None:
        return {}
    fault = json_fault(metadata)
    if fault is not None:
        msg = f"the metadata to search for {fault}"
        raise RequestError(msg)
    return metadata
