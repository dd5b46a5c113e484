"""A lock that is handed to whoever has waited longest."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING

from entrepot.errors import OperationTimeoutError

if TYPE_CHECKING:
    from collections.abc import Generator


class Turns:
    """Threads take turns in the order in which they came.

    A `threading.Lock` goes to whoever asks first after it is free, and that is mostly the thread that
    has just released it: one that works in a loop lets the others wait for as long as it likes.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._taken = False

    @contextmanager
    def taken(self, timeout: float) -> Generator[None]:
        """Wait for the turn for at most `timeout` seconds, and pass it on in the end.

        Raises:
            OperationTimeoutError: It did not come in time; nothing was done.
        """
        self._take(timeout)
        try:
            yield
        finally:
            self._pass_on()

    def _take(self, timeout: float) -> None:
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            mine = threading.Event()
            self._waiting.append(mine)
        came = False
        try:
            came = mine.wait(timeout)
        finally:
            if not came:
                self._give_up(mine)
        if not came:
            raise OperationTimeoutError("other threads kept the database for too long", outcome="not_done")

    def _give_up(self, mine: threading.Event) -> None:
        with self._guard:
            if not mine.is_set():
                self._waiting.remove(mine)
                return
        self._pass_on()  # the turn came just now

    def _pass_on(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._taken = False
