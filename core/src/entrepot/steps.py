"""One body for sync and async: operations are generators that yield the calls they need (E3).

An operation is written once, as a generator. Where it needs the driver, a model or heavy work it
says ``hits = yield from call(self._search, self._asearch, query)``; `run` answers such calls by
the first function, `arun` by awaiting the second. Nothing else differs between the two colours.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

T = TypeVar("T")
P = ParamSpec("P")


class Call(NamedTuple):
    """A call in two colours, and its arguments."""

    sync: Callable[..., Any]
    coroutine: Callable[..., Awaitable[Any]]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


if TYPE_CHECKING:
    Steps: TypeAlias = Generator[Call, Any, T]
    """The body of an operation that returns T."""


def call(
    sync: Callable[P, T], coroutine: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> Steps[T]:
    """Ask for a call; the value of ``yield from`` is what it returned."""
    return cast("T", (yield Call(sync, coroutine, args, kwargs)))


def work(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Steps[T]:
    """Ask for work on the CPU: done at once, or in a worker thread if the caller is async (E3)."""

    async def in_thread(*args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(function, *args, **kwargs)

    return cast("T", (yield Call(function, in_thread, args, kwargs)))


def run(steps: Steps[T]) -> T:
    """Carry out an operation; blocks."""
    try:
        wanted = next(steps)
        while True:
            try:
                answer = wanted.sync(*wanted.args, **wanted.kwargs)
            except BaseException as error:  # noqa: BLE001 - the operation decides what to do with it
                wanted = steps.throw(error)
            else:
                wanted = steps.send(answer)
    except StopIteration as end:
        return cast("T", end.value)


async def arun(steps: Steps[T]) -> T:
    """Carry out an operation; awaits what it needs and keeps the caller's context (O2)."""
    try:
        wanted = next(steps)
        while True:
            try:
                answer = await wanted.coroutine(*wanted.args, **wanted.kwargs)
            except BaseException as error:  # noqa: BLE001 - the operation decides what to do with it
                wanted = steps.throw(error)
            else:
                wanted = steps.send(answer)
    except StopIteration as end:
        return cast("T", end.value)
