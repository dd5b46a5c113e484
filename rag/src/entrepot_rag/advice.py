"""One body for calls and streams, sync and async: advisors are generators.

An advisor yields two kinds of things: a `Call` where it needs something done (a model, a store, a function of the
user's), in either colour, and, in a stream, an `Emit` where the caller shall get a piece. Whoever runs the generator
answers; nothing else differs between the four ways to ask.
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

from entrepot import steps
from entrepot.errors import ConfigurationError
from entrepot.steps import Call

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator

    from entrepot.steps import Steps
    from entrepot_rag.chat import Chunk

T = TypeVar("T")


class Emit(NamedTuple):
    """A piece for the caller of a stream."""

    chunk: Chunk


class StreamClosedError(BaseException):
    """The caller wants no more of a stream. Thrown into advisors, so that what must be cleaned up is; never caught."""


if TYPE_CHECKING:
    Item: TypeAlias = Call | Emit
    Advice: TypeAlias = Generator[Item, Any, T]
    """The body of something that returns T."""


def run(advice: Advice[T]) -> T:
    """Carry out a call; blocks. Pieces, which only streams have, go nowhere."""
    return steps.run(_unheard(advice))


async def arun(advice: Advice[T]) -> T:
    """As `run`, and awaits what it needs."""
    return await steps.arun(_unheard(advice))


def stream(advice: Advice[T]) -> Generator[Chunk, None, T]:
    """Carry out, and yield the pieces. Closing early throws `StreamClosedError` into the advisors."""
    try:
        item = next(advice)
        while True:
            try:
                if isinstance(item, Emit):
                    answer = yield item.chunk
                else:
                    answer = item.sync(*item.args, **item.kwargs)
            except GeneratorExit:
                with suppress(StreamClosedError):
                    steps.run(_left(advice))
                raise
            except BaseException as error:  # noqa: BLE001 - the advisors decide what to do with it
                item = advice.throw(error)
            else:
                item = advice.send(answer)
    except StopIteration as end:
        return cast("T", end.value)


async def astream(advice: Advice[T], done: Callable[[T], None]) -> AsyncGenerator[Chunk]:
    """As `stream`; what comes of it goes to `done`."""
    try:
        item = next(advice)
        while True:
            try:
                if isinstance(item, Emit):
                    answer = yield item.chunk
                else:
                    answer = await item.coroutine(*item.args, **item.kwargs)
            except GeneratorExit:
                with suppress(StreamClosedError):
                    await steps.arun(_left(advice))
                raise
            except BaseException as error:  # noqa: BLE001 - the advisors decide what to do with it
                item = advice.throw(error)
            else:
                item = advice.send(answer)
    except StopIteration as end:
        done(cast("T", end.value))


def _unheard(advice: Advice[T], first: Callable[[], Item] | None = None) -> Steps[T]:
    """Return the calls of advice, without its pieces."""
    return cast("Steps[T]", altered(advice, lambda item: None if isinstance(item, Emit) else item, first))


def _left(advice: Advice[T]) -> Steps[T]:
    """Return what is still to be done for advice whose stream is left: it is told, and cleans up."""
    return _unheard(advice, lambda: advice.throw(StreamClosedError()))


def altered(
    advice: Advice[T], alter: Callable[[Item], Item | None], first: Callable[[], Item] | None = None
) -> Advice[T]:
    """Return the same advice, with each item that it yields altered, or left out if `alter` returns None.

    `first` takes the place of the advice's first step.
    """
    try:
        item = next(advice) if first is None else first()
        while True:
            other = alter(item)
            if other is None:
                item = advice.send(None)
                continue
            try:
                answer = yield other
            except BaseException as error:  # noqa: BLE001 - the advisors decide what to do with it
                item = advice.throw(error)
            else:
                item = advice.send(answer)
    except StopIteration as end:
        return cast("T", end.value)


def invoke(function: Callable[..., Any], *args: Any) -> Advice[Any]:
    """Call a function of the user's: sync in either colour, in a thread if the caller is async; async only there."""

    def plainly() -> Any:
        answer = function(*args)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            msg = f"{_named(function)} is async, and was reached by sync code"
            raise ConfigurationError(msg, hint="use the methods with the prefix a, or give a plain function")
        return answer

    async def awaited() -> Any:
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - of an object with an async __call__
        ):
            return await function(*args)
        answer = await asyncio.to_thread(function, *args)
        return (await answer) if inspect.isawaitable(answer) else answer

    return (yield Call(plainly, awaited, (), {}))


def _named(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))
