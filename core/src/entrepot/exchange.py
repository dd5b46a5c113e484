"""Exchanges with an engine: the time they may take, and when they are tried again (E4).

A store's `timeout` bounds each exchange, that is one hook with its retries; embedding is not
counted. Plugins hand `remaining()` to their driver's connect, read, pool and server-selection
timeouts. An exchange is tried again if its error says `retryable` and a second try cannot do harm:
the call is idempotent, or certainly nothing was done.
"""

from __future__ import annotations

import random
import time
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Final

from entrepot.errors import BackendError, EntrepotError

if TYPE_CHECKING:
    from collections.abc import Generator

    from entrepot.errors import Outcome

DEFAULT_TIMEOUT: Final = 10.0
"""Seconds for each exchange with the engine, unless the store or the request says otherwise."""
MAX_ATTEMPTS: Final = 4
"""How often an exchange is tried at most, the first time included."""
FIRST_PAUSE: Final = 0.05
"""Seconds before the second try; doubled for each further one, and shortened at random by up to half."""
LEAST_TIMEOUT: Final = 0.001
"""Seconds that `remaining` returns at least, as drivers take 0 for "no limit"."""

_deadline: ContextVar[float | None] = ContextVar("entrepot_deadline", default=None)


def start(timeout: float) -> Token[float | None]:
    """Begin an exchange that may take `timeout` seconds; `end` takes the token."""
    return _deadline.set(time.monotonic() + timeout)


def end(token: Token[float | None]) -> None:
    """End an exchange."""
    _deadline.reset(token)


@contextmanager
def deadline(timeout: float) -> Generator[None]:
    """Bound what happens within to `timeout` seconds from now, as an exchange does; for tests of plugins."""
    token = start(timeout)
    try:
        yield
    finally:
        end(token)


def remaining(default: float) -> float:
    """Return the seconds that are left of the exchange under way, never less than a millisecond.

    Outside of an exchange, `default`.
    """
    at = _deadline.get()
    return default if at is None else max(at - time.monotonic(), LEAST_TIMEOUT)


class Tries:
    """The tries of one exchange.

    Args:
        idempotent: Whether a second try does no harm where the first may have been carried out.
    """

    def __init__(self, *, idempotent: bool) -> None:
        self._idempotent = idempotent
        self._failed = 0
        self._may_be_done = False

    def pause_after(self, error: EntrepotError) -> float | None:
        """Return the seconds to wait before the next try, or None to give up with this error.

        If any try may have been carried out, the error of the last one says so too.
        """
        self._failed += 1
        self._may_be_done = self._may_be_done or error.outcome == "unknown"
        pause = self._pause(error)
        if pause is None and self._may_be_done:
            error.outcome = "unknown"
        return pause

    def _pause(self, error: EntrepotError) -> float | None:
        if not error.retryable or self._failed >= MAX_ATTEMPTS:
            return None
        if not self._idempotent and error.outcome == "unknown":
            return None
        pause = FIRST_PAUSE * 2.0 ** (self._failed - 1) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret
        at = _deadline.get()
        if at is not None and time.monotonic() + pause >= at:
            return None
        return pause


def foreign(error: Exception, outcome: Outcome) -> BackendError:
    """Return the error for an exception that a plugin let escape (E1); it becomes the cause.

    The foreign message stays in the cause: it may quote a value or a secret.
    """
    return BackendError(
        f"the driver failed with {type(error).__name__}",
        hint="the cause says more; if it should have its own class, tell the plugin's authors",
        outcome=outcome,
    )
