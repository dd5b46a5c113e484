"""When sessions are forgotten. A session that returns is built anew, so this is about memory, not about answers."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

from entrepot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


class Eviction(Protocol):
    """Says which sessions go."""

    def used(self, session: str) -> Collection[str]:
        """Note that a session is used, and return those that go now; never the one that is used."""
        ...

    def ended(self, session: str) -> bool:
        """Note that a turn of a session has ended, and return whether the session goes."""
        ...


class NoEviction:
    """Keeps all sessions."""

    def used(self, session: str) -> Collection[str]:  # noqa: ARG002 - as the protocol has it
        """None goes."""
        return ()

    def ended(self, session: str) -> bool:  # noqa: ARG002 - as above
        """It stays."""
        return False


class EachCallEviction(NoEviction):
    """Keeps no session beyond its turn."""

    def ended(self, session: str) -> bool:  # noqa: ARG002 - as above
        """It goes."""
        return True


class LruEviction(NoEviction):
    """Keeps so many sessions, those that were used last.

    Args:
        sessions: At least 1.
    """

    def __init__(self, sessions: int = 1000) -> None:
        if type(sessions) is not int or sessions < 1:
            msg = f"sessions must be an int of at least 1, not {sessions!r}"
            raise ConfigurationError(msg)
        self.sessions = sessions
        self._order: OrderedDict[str, None] = OrderedDict()

    def used(self, session: str) -> Collection[str]:
        """Those that were not used for longest go."""
        self._order[session] = None
        self._order.move_to_end(session)
        return [self._order.popitem(last=False)[0] for _ in range(len(self._order) - self.sessions)]


class TtlEviction(NoEviction):
    """Keeps sessions for so long after they were used.

    Args:
        seconds: Above 0.
        clock: Seconds of a clock that never goes back.
    """

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        if type(seconds) not in (int, float) or not seconds > 0:
            msg = f"seconds must be a number above 0, not {seconds!r}"
            raise ConfigurationError(msg)
        self.seconds = seconds
        self._clock = clock
        self._used: OrderedDict[str, float] = OrderedDict()

    def used(self, session: str) -> Collection[str]:
        """Those that were not used for so long go."""
        now = self._clock()
        self._used[session] = now
        self._used.move_to_end(session)
        gone: list[str] = []
        for other, when in self._used.items():
            if now - when <= self.seconds:
                break
            gone.append(other)
        for other in gone:
            del self._used[other]
        return gone


class CompositeEviction:
    """A session goes if any of several says so."""

    def __init__(self, *evictions: Eviction) -> None:
        self.evictions = evictions

    def used(self, session: str) -> Collection[str]:
        """Those go that any of them lets go."""
        return {gone for one in self.evictions for gone in one.used(session)} - {session}

    def ended(self, session: str) -> bool:
        """It goes if any of them says so."""
        told = [one.ended(session) for one in self.evictions]  # each is to hear of it
        return any(told)
