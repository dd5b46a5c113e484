"""One exchange with the engine: the time that is left, and what a failure leaves (E1, E4)."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from entrepot.errors import ClosedError, EntrepotError
from entrepot.exchange import remaining
from entrepot_milvus import faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot.errors import Outcome
    from entrepot_milvus.commands import Call

_LOGGER: Final = "pymilvus.decorators"


def silence() -> None:
    """Keep the client from logging every failure with its traceback: it quotes expressions (O1).

    A level that the user gave its logger stays.
    """
    logger = logging.getLogger(_LOGGER)
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)


class Exchange:
    """What is known while a script runs.

    Args:
        where: The server.
        collection: What is worked on.
        timeout: Seconds, outside of an exchange of the core.
        is_closed: Whether the client was closed under it.
    """

    def __init__(self, where: str, collection: str, timeout: float, is_closed: Callable[[], bool]) -> None:
        self._where = where
        self._collection = collection
        self._is_closed = is_closed
        self._until = time.monotonic() + remaining(timeout)
        self._wrote = False

    @property
    def left(self) -> float:
        """Seconds that are left, never less than a millisecond, as drivers take 0 for "no limit"."""
        return max(self._until - time.monotonic(), 0.001)

    def arguments(self, call: Call) -> dict[str, Any]:
        """Return what the client is given for a call."""
        return {**call.arguments, "timeout": self.left}

    def done(self, call: Call) -> None:
        """Note that a call was answered."""
        self._wrote = self._wrote or call.writes

    def failed(self, error: Exception, call: Call) -> Exception:
        """Return what goes on for an exception of a call."""
        lost: Outcome = "unknown" if call.writes or self._wrote else "not_done"
        if isinstance(error, EntrepotError):
            return error
        if self._is_closed():
            found: EntrepotError = ClosedError(f"the store on {self._where} was closed", outcome=lost)
        elif isinstance(error, faults.DRIVER_ERRORS):
            found = faults.fault(error, self._where, self._collection, lost)
            if self._wrote:  # part of what the script does is done, whatever became of the rest
                found.outcome = "unknown"
        else:
            return error
        found.__cause__ = error
        return found
