"""One body for sync and async: operations are generators that yield the calls they need (E3).

An operation is written once, as a generator. Where it needs the engine it says
``hits = yield from ask(self._search, self._asearch, query)``, where it needs a model `call`, where
it has much to compute `work`. `run` answers such calls by the first function, `arun` by awaiting
the second. Nothing else differs between the two colours.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

from entrepot.errors import EntrepotError
from entrepot.exchange import DEFAULT_TIMEOUT, Tries, end, foreign, start

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from entrepot.errors import Outcome

T = TypeVar("T")
P = ParamSpec("P")


class Call(NamedTuple):
    """A call in two colours, its arguments, and what it is if it goes to the engine."""

    sync: Callable[..., Any]
    coroutine: Callable[..., Awaitable[Any]]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    exchange: Exchange | None = None


class Exchange(NamedTuple):
    """How a call to the engine may fail: whether it is idempotent, and whether it changes anything."""

    idempotent: bool = True
    writes: bool = False

    @property
    def outcome(self) -> Outcome:
        """What is known if it fails without a word."""
        return "unknown" if self.writes else "not_done"


AT_ONCE: Final = 200
"""Documents that an async caller may have worked on in its event loop: about a millisecond."""

READ = Exchange()
WRITE = Exchange(writes=True)
WRITE_ONCE = Exchange(idempotent=False, writes=True)

if TYPE_CHECKING:
    Steps: TypeAlias = Generator[Call, Any, T]
    """The body of an operation that returns T."""


def ask(
    sync: Callable[P, T],
    coroutine: Callable[P, Awaitable[T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Steps[T]:
    """Ask the engine for something; tried again where that can help (E4)."""
    return cast("T", (yield Call(sync, coroutine, args, kwargs, READ)))


def tell(
    sync: Callable[P, T],
    coroutine: Callable[P, Awaitable[T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Steps[T]:
    """Tell the engine to change something, where doing it twice is as doing it once."""
    return cast("T", (yield Call(sync, coroutine, args, kwargs, WRITE)))


def tell_once(
    sync: Callable[P, T],
    coroutine: Callable[P, Awaitable[T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Steps[T]:
    """Tell the engine to change something; tried again only if certainly nothing was done."""
    return cast("T", (yield Call(sync, coroutine, args, kwargs, WRITE_ONCE)))


def call(
    sync: Callable[P, T],
    coroutine: Callable[P, Awaitable[T]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Steps[T]:
    """Ask for a call that is not the engine's; the value of ``yield from`` is what it returned."""
    return cast("T", (yield Call(sync, coroutine, args, kwargs)))


def work(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
    """Ask for work on the CPU: done at once, or in a worker thread if the caller is async (E3)."""

    async def in_thread(*args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(function, *args, **kwargs)

    return cast("T", (yield Call(function, in_thread, args, kwargs)))


def work_on(size: int, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
    """Do work at once if it concerns at most `AT_ONCE` documents, else as `work` does."""
    if size <= AT_ONCE:
        return function(*args, **kwargs)
    return (yield from work(function, *args, **kwargs))


def run(steps: Steps[T], timeout: float = DEFAULT_TIMEOUT) -> T:
    """Carry out an operation; blocks. Each exchange with the engine takes at most `timeout` seconds."""
    try:
        wanted = next(steps)
        while True:
            try:
                answer = _answer(wanted, timeout)
            except BaseException as error:  # noqa: BLE001 - the operation decides what to do with it
                wanted = steps.throw(error)
            else:
                wanted = steps.send(answer)
    except StopIteration as end:
        return cast("T", end.value)


async def arun(steps: Steps[T], timeout: float = DEFAULT_TIMEOUT) -> T:  # noqa: ASYNC109 - for each exchange
    """Carry out an operation; awaits what it needs and keeps the caller's context (O2)."""
    try:
        wanted = next(steps)
        while True:
            try:
                answer = await _aanswer(wanted, timeout)
            except BaseException as error:  # noqa: BLE001 - the operation decides what to do with it
                wanted = steps.throw(error)
            else:
                wanted = steps.send(answer)
    except StopIteration as end:
        return cast("T", end.value)


def _answer(wanted: Call, timeout: float) -> object:
    exchange = wanted.exchange
    if exchange is None:
        return wanted.sync(*wanted.args, **wanted.kwargs)
    token = start(timeout)
    try:
        tries = Tries(idempotent=exchange.idempotent)
        while True:
            try:
                return wanted.sync(*wanted.args, **wanted.kwargs)
            except EntrepotError as error:
                pause = tries.pause_after(error)
                if pause is None:
                    raise
            except Exception as error:
                raise foreign(error, exchange.outcome) from error
            time.sleep(pause)
    finally:
        end(token)


async def _aanswer(wanted: Call, timeout: float) -> object:  # noqa: ASYNC109 - for each exchange
    exchange = wanted.exchange
    if exchange is None:
        return await wanted.coroutine(*wanted.args, **wanted.kwargs)
    token = start(timeout)
    try:
        tries = Tries(idempotent=exchange.idempotent)
        while True:
            try:
                return await wanted.coroutine(*wanted.args, **wanted.kwargs)
            except EntrepotError as error:
                pause = tries.pause_after(error)
                if pause is None:
                    raise
            except Exception as error:
                raise foreign(error, exchange.outcome) from error
            await asyncio.sleep(pause)
    finally:
        end(token)
