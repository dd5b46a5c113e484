"""Commands over a connection and their replies, within the time that is left; what a failure leaves (E3, E4)."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import hiredis
from redis.exceptions import NoScriptError, RedisError, ResponseError

from entrepot.errors import EntrepotError
from entrepot.scripted import advance
from entrepot_redis import faults
from entrepot_redis.commands import Lua

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from entrepot.errors import Outcome
    from entrepot.scripted import Result
    from entrepot_redis.commands import Ask, Command, Script

T = TypeVar("T")

_GRACE: Final = 0.05
"""Seconds that an answer may come after the end of the exchange, as reading it takes some."""
_AT_ONCE: Final = 500
"""Arguments, rows and fields that an async operation codes on the event loop: about a millisecond."""
_ROW: Final = 2
"""What a row weighs, in entries of a list."""


def left_until(until: float) -> float:
    """Return the seconds that are left, never less than a millisecond, as drivers take 0 for "no limit"."""
    return max(until - time.monotonic(), 0.001)


def exchange(connection: Any, asked: Ask, until: float) -> list[Any]:
    """Send commands and return their replies; an error of one command stands in its place."""
    replies = _sent(connection, asked.commands, until)
    if again := _unknown_scripts(asked.commands, replies):
        late = _sent(connection, [command for _, command in again], until)
        for (place, _), reply in zip(again, late, strict=True):
            replies[place] = reply
    return replies


async def aexchange(connection: Any, asked: Ask, until: float) -> list[Any]:
    """As `exchange`."""
    replies = await _asent(connection, asked.commands, until)
    if again := _unknown_scripts(asked.commands, replies):
        late = await _asent(connection, [command for _, command in again], until)
        for (place, _), reply in zip(again, late, strict=True):
            replies[place] = reply
    return replies


def _packed(commands: Sequence[Command]) -> bytes:
    pack: Callable[[Command], bytes] = cast("Any", hiredis).pack_command  # its own types know one argument
    return b"".join(map(pack, commands))


def _sent(connection: Any, commands: Sequence[Command], until: float) -> list[Any]:
    connection.update_current_socket_timeout(left_until(until))
    whole = False
    try:
        connection.send_packed_command([_packed(commands)])
        replies: list[Any] = []
        for number in range(len(commands)):
            if number and time.monotonic() > until + _GRACE:
                msg = "no answer by the deadline"
                raise faults.DeadlineError(msg)
            try:
                replies.append(connection.read_response(disable_decoding=True))
            except ResponseError as error:
                replies.append(error)
        whole = True
        return replies
    finally:
        if not whole:  # what is still to come would be taken for answers to other commands
            connection.disconnect()


async def _asent(connection: Any, commands: Sequence[Command], until: float) -> list[Any]:
    whole = False
    try:
        async with asyncio.timeout(left_until(until)):
            much = sum(map(len, commands)) > _AT_ONCE
            packed = await asyncio.to_thread(_packed, commands) if much else _packed(commands)
            await connection.send_packed_command([packed])
            replies: list[Any] = []
            weight = 0
            for _ in commands:
                if weight > _AT_ONCE:
                    weight = 0
                    await asyncio.sleep(0)  # what has arrived is parsed without giving the loop a turn
                try:
                    replies.append(await connection.read_response(disable_decoding=True))
                except ResponseError as error:
                    replies.append(error)
                weight += _weight(replies[-1])
            whole = True
            return replies
    finally:
        if not whole:
            await connection.disconnect(nowait=True)


def _unknown_scripts(commands: Sequence[Command], replies: Sequence[Any]) -> list[tuple[int, Command]]:
    """Return the places of scripts that the server does not have, and the commands that bring their texts."""
    return [
        (place, ("EVAL", Lua.known[cast("str", commands[place][1])], *commands[place][2:]))
        for place, reply in enumerate(replies)
        if isinstance(reply, NoScriptError)
    ]


def _weight(reply: Any) -> int:
    """Return about how many rows there are to decode in a reply."""
    if isinstance(reply, dict):
        return len(cast("dict[bytes, Any]", reply).get(b"results", ())) * _ROW
    return len(reply) if isinstance(reply, list) else 1  # pyright: ignore[reportUnknownArgumentType]


def advanced(script: Script[T], replies: list[Any]) -> Ask | Result[T]:
    """Hand a script its replies; return what it asks next, or what it returns."""
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return cast("Ask | Result[T]", advance(script, replies))


async def aadvanced(script: Script[T], replies: list[Any]) -> Ask | Result[T]:
    """As `advanced`; decoding much takes a while, which the event loop shall not wait for (E3)."""
    if sum(map(_weight, replies)) > _AT_ONCE:
        return await asyncio.to_thread(advanced, script, replies)
    return advanced(script, replies)


class State:
    """What is known of an operation if it fails now."""

    def __init__(self, where: str, collection: str) -> None:
        self._where = where
        self._collection = collection
        self._lost: Outcome = "not_done"
        self._wrote = False
        self._writes = False

    def sending(self, asked: Ask) -> Ask:
        """Commands are about to be sent: without an answer, they may have been carried out."""
        self._wrote = self._wrote or self._writes
        self._writes = asked.writes
        if asked.writes:
            self._lost = "unknown"
        return asked

    @contextmanager
    def faults(self) -> Generator[None]:
        """Raise what the driver raises as an error of entrepot."""
        try:
            yield
        except EntrepotError:
            raise
        except (RedisError, OSError) as error:
            fault = faults.running(error, self._where, self._collection, self._lost)
            if self._wrote:  # an earlier part was carried out
                fault.outcome = "unknown"
            raise fault from error
