"""What stores and memories share: how they open and close, and how their operations run (E3 to E5)."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn, Self, TypeVar

from entrepot.capabilities import Capabilities
from entrepot.errors import ClosedError, EntrepotError, ForkError
from entrepot.exchange import DEFAULT_TIMEOUT, foreign
from entrepot.observation import observed
from entrepot.search import check_timeout
from entrepot.steps import arun, ask, run

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import TracebackType

    from entrepot.steps import Steps

T = TypeVar("T")


class Resource(ABC):
    """Something that talks to an engine, is closed in the end, and stays in its process.

    Attributes:
        backend: The name of the backend, as in URLs; a plugin states its own.
        namespace: What stands above the collection in the engine, such as a database; for spans.
        capabilities: What it offers; a plugin states its own, and may narrow it to what the server can.
        timeout: Seconds for each exchange with the engine, its retries included (E4).
    """

    backend: str = ""
    namespace: str | None = None
    capabilities: Capabilities = Capabilities()

    def __init__(self, *, timeout: float = DEFAULT_TIMEOUT) -> None:
        check_timeout(timeout)
        self.timeout = timeout
        self._closed = False
        self._pid = os.getpid()

    # --- hooks ------------------------------------------------------------------------------------------

    def _open(self) -> None:  # noqa: B027 - most connect, some need not
        """Connect, so that an unreachable server or a refused login shows at once (E2)."""

    @abstractmethod
    def _close(self) -> None:
        """Release what `_open` took; a client that the user brought stays open. Idempotent."""

    async def _aopen(self) -> None:
        return await asyncio.to_thread(self._open)

    async def _aclose(self) -> None:
        return await asyncio.to_thread(self._close)

    # --- operations -------------------------------------------------------------------------------------

    @property
    def _target(self) -> str:
        """Return the name of what is worked on, for spans and errors."""
        return ""

    def _check_usable(self) -> None:
        if self._closed:
            msg = f"this {self.backend} {self._target} was closed".replace("  ", " ")
            raise ClosedError(msg)
        if self._pid != os.getpid():
            msg = f"this {self.backend} {self._target} was opened in another process".replace("  ", " ")
            raise ForkError(msg)

    def _run(self, operation: str, steps: Steps[T], timeout: float | None = None, asked: object = None) -> T:
        """Carry out an operation, as one span (O1); a search hands in what it was asked."""
        self._check_usable()
        with observed(self, operation, self._target, asked):
            return run(steps, timeout or self.timeout)

    async def _arun(
        self,
        operation: str,
        steps: Steps[T],
        timeout: float | None = None,  # noqa: ASYNC109 - for each exchange, not for the whole
        asked: object = None,
    ) -> T:
        self._check_usable()
        with observed(self, operation, self._target, asked):
            return await arun(steps, timeout or self.timeout)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def connect(self) -> Self:
        """Connect now and return the object; `open_vector_store` and `open_chat_memory` do so.

        If that fails, what was taken is released, and the object is closed.
        """
        try:
            self._run("open", ask(self._open, self._aopen))
        except BaseException as error:
            with _beside(error):
                self.close()
            raise
        return self

    async def aconnect(self) -> Self:
        """As `connect`."""
        try:
            await self._arun("open", ask(self._open, self._aopen))
        except BaseException as error:
            with _beside(error):
                await self.aclose()
            raise
        return self

    # --- the end ----------------------------------------------------------------------------------------

    @property
    def native_client(self) -> object:
        """The driver's own client, the way out of this contract; None where there is no driver."""
        return None

    def close(self) -> None:
        """Close it; a client that was given to it stays open. Closing twice is fine (E5).

        Raises:
            BackendError: The driver failed at it; what could be released is released.
        """
        if not self._closed:
            self._closed = True
            with _named():
                self._close()

    async def aclose(self) -> None:
        """As `close`."""
        if not self._closed:
            self._closed = True
            with _named():
                await self._aclose()

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        with _beside(error):
            self.close()

    async def __aenter__(self) -> Self:
        """Return the object itself."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        with _beside(error):
            await self.aclose()

    def __reduce__(self) -> NoReturn:
        """Refuse pickling: a connection cannot follow (E5)."""
        msg = f"a {type(self).__name__} cannot be pickled"
        raise ForkError(msg)

    def __repr__(self) -> str:
        """Show the backend and what is worked on, never a secret."""
        state = " closed" if self._closed else ""
        return " ".join(f"<{type(self).__name__} {self.backend} {self._target}".split()) + f"{state}>"


@contextmanager
def _named() -> Generator[None]:
    """Turn what a driver raises at closing into an error of the library (E1)."""
    try:
        yield
    except EntrepotError:
        raise
    except Exception as error:
        raise foreign(error, "not_done") from error


@contextmanager
def _beside(error: BaseException | None) -> Generator[None]:
    """Let an error of the body through, whatever closing says to it."""
    try:
        yield
    except EntrepotError as failed:
        if error is None:
            raise
        error.add_note(f"closing failed as well: {failed}")
