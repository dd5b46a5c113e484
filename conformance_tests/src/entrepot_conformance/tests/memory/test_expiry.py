"""M8: a conversation is unknown so many seconds after its last write.

Nothing here sleeps for an expiry. Each reading is held against the clock: if it ended before the
conversation could have expired it must have found it, if it began after the conversation must have
expired it must not; readings in between may say either.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import UnknownMessageError, UnsupportedError
from entrepot_conformance.tests.memory.messages import batch, exchange, ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot import ChatMemoryRepository
    from entrepot_conformance.endpoints import Memories

TTL = 0.25
SLACK = 0.5
"""Seconds by which an engine's clock may be coarse."""


def memory_with_expiry(memories: Memories, ttl: float = TTL) -> ChatMemoryRepository | None:
    """Return a repository whose conversations expire; None, and a loud refusal checked, where that is declined."""
    if memories().capabilities.ttl:
        return memories(ttl=ttl)
    with pytest.raises(UnsupportedError) as caught:
        memories(ttl=ttl)
    assert caught.value.capability == "ttl"
    return None


class Write:
    """A write, and when it happened."""

    def __init__(self, write: Callable[[], object], ttl: float = TTL) -> None:
        self.began = time.monotonic()
        write()
        self.ended = time.monotonic()
        self.ttl = ttl

    def until_gone(self, read: Callable[[], object]) -> None:
        """Read again and again until nothing is found, holding each reading against the clock."""
        while True:
            began = time.monotonic()
            found = read()
            ended = time.monotonic()
            if not found:
                assert ended >= self.began + self.ttl - 0.01, "gone too soon"
                return
            assert began <= self.ended + self.ttl + SLACK, "still there"
            time.sleep(0.01)

    def is_there(self, read: Callable[[], object]) -> bool:
        """Read; what cannot have expired must be found. Returns whether that was to be said."""
        found = read()
        early = time.monotonic() < self.began + self.ttl - 0.01
        assert found or not early, "gone too soon"
        return early


def test_an_expired_conversation_is_unknown(memories: Memories) -> None:
    # M8
    memory = memory_with_expiry(memories)
    if memory is None:
        return
    write = Write(lambda: memory.append("c", exchange("a")))
    write.until_gone(lambda: memory.messages("c"))
    assert memory.messages("c", last=2) == []
    assert memory.latest("c", "user") is None
    assert memory.conversation_ids().items == []
    with pytest.raises(UnknownMessageError):
        memory.truncate("c", after="a question")
    if memory.capabilities.memory_search:
        assert memory.search(text="question") == []
    memory.delete("c")


def test_the_listing_forgets_what_expires(memories: Memories) -> None:
    # M8, M9
    memory = memory_with_expiry(memories)
    if memory is None:
        return
    write = Write(lambda: memory.append("c", batch("a", 0)))
    write.until_gone(lambda: memory.conversation_ids().items)


def test_an_expired_conversation_begins_anew(memories: Memories) -> None:
    # M8: nothing of the old one comes back, and its message ids are new again
    memory = memory_with_expiry(memories)
    if memory is None:
        return
    old = batch("old", 0, size=5)
    for operation in (memory.append, memory.replace):
        Write(partial(operation, "c", old)).until_gone(lambda: memory.messages("c"))
        again = [old[3], *batch("new", 0)]
        write = Write(partial(operation, "c", again))
        read = memory.messages("c")
        assert ids(read) == ids(again) or time.monotonic() > write.began + TTL
        write.until_gone(lambda: memory.messages("c"))


@pytest.mark.parametrize("how", ["append", "retry", "replace", "truncate"])
def test_each_write_starts_the_time_anew(memories: Memories, how: str) -> None:
    # M8: so many seconds after the last write; it survives replace. Of a slow engine a longer time is asked.
    for ttl in (TTL, 4 * TTL, 16 * TTL):
        memory = memory_with_expiry(memories, ttl)
        if memory is None or outlives_its_time(memory, how, ttl):
            return
        memory.delete("c")
    pytest.fail("no reading came in time")


def outlives_its_time(memory: ChatMemoryRepository, how: str, ttl: float) -> bool:
    """Write again and again for longer than the first write lasts; return whether a later reading was in time."""
    first = batch("a", 0)

    def write(number: int) -> Write:
        writes: dict[str, Callable[[], object]] = {
            "append": lambda: memory.append("c", batch("a", number)),
            "retry": lambda: memory.append("c", first),
            "replace": lambda: memory.replace("c", batch("a", number)),
            "truncate": lambda: memory.truncate("c", after=first[0].id),
        }
        return Write(writes[how], ttl)

    latest = Write(lambda: memory.append("c", first), ttl)
    began, number, in_time = latest.began, 1, False
    while time.monotonic() < began + 1.6 * ttl:
        late = time.monotonic() > began + ttl
        # Where this thread was held up for so long that it may have expired, there is nothing to say.
        in_time |= latest.is_there(lambda: memory.messages("c")) and late
        try:
            latest = write(number)
        except UnknownMessageError:
            assert time.monotonic() > latest.began + ttl - 0.01
            latest = Write(lambda: memory.append("c", first), ttl)
        number += 1
        time.sleep(ttl / 20)
    latest.until_gone(lambda: memory.messages("c"))
    return in_time


def test_reading_does_not_put_it_off(memories: Memories) -> None:
    # M8: until_gone reads all the while
    memory = memory_with_expiry(memories)
    if memory is None:
        return
    write = Write(lambda: memory.append("c", exchange("a")))
    write.until_gone(
        lambda: (memory.messages("c", last=1), memory.latest("c", "user"), memory.conversation_ids())[0]
    )


def test_each_conversation_has_its_own_time(memories: Memories) -> None:
    # M8
    memory = memory_with_expiry(memories)
    if memory is None:
        return
    write = Write(lambda: memory.append("early", batch("a", 0)))
    while time.monotonic() < write.began + TTL / 2:
        time.sleep(0.01)
    later = Write(lambda: memory.append("late", batch("a", 0)))
    write.until_gone(lambda: memory.messages("early"))
    later.is_there(lambda: memory.messages("late"))
    later.until_gone(lambda: memory.messages("late"))


@pytest.mark.parametrize("ttl", [1e12, 1e16, 1e300])
def test_a_life_beyond_the_calendar_lasts(memories: Memories, ttl: float) -> None:
    # M8: longer than an engine's clock can count is as good as ever
    memory = memory_with_expiry(memories, ttl)
    if memory is None:
        return
    memory.append("c", batch("a", 1))
    memory.append("c", batch("a", 2))
    memory.replace("d", batch("b", 1))
    assert ids(memory.messages("c")) == ids([*batch("a", 1), *batch("a", 2)])
    assert sorted(memory.conversation_ids().items) == ["c", "d"]


def test_without_expiry_nothing_expires(memories: Memories) -> None:
    # M8: a repository without ttl keeps what it writes, whatever others do on the endpoint
    keeping = memories()
    memory = memory_with_expiry(memories, ttl=0.05)
    if memory is None:
        return
    keeping.append("kept", batch("a", 0))
    Write(lambda: memory.append("c", batch("a", 0)), ttl=0.05).until_gone(lambda: memory.messages("c"))
    assert len(keeping.messages("kept")) == 3


def test_the_room_of_what_expired_can_be_freed(memories: Memories) -> None:
    # M8: nothing that lives goes with it; how many there were is the engine's to know
    keeping = memories()
    memory = memory_with_expiry(memories)
    if memory is None:
        return
    keeping.append("kept", batch("a", 0))
    Write(lambda: memory.append("c", batch("b", 0))).until_gone(lambda: memory.messages("c"))
    new = Write(lambda: memory.append("new", batch("c", 0)))
    for _ in range(2):
        removed = memory.remove_expired()
        # Where this thread was held up for so long, the new one has expired as well.
        most = 1 if time.monotonic() < new.began + TTL - 0.01 else 2
        assert 0 <= removed <= most
    new.is_there(lambda: memory.messages("new"))
    assert ids(keeping.messages("kept")) == ids(batch("a", 0))
    assert "kept" in keeping.conversation_ids().items


@pytest.mark.parametrize("ttl", [0, -1, float("nan"), float("inf"), "5", True], ids=repr)
def test_a_time_to_live_is_a_positive_number(memories: Memories, ttl: Any) -> None:
    # M8, E1: a ValueError, or the refusal where expiry is declined
    declined = not memories().capabilities.ttl
    with pytest.raises(UnsupportedError if declined else ValueError, match="ttl"):
        memories(ttl=ttl)
