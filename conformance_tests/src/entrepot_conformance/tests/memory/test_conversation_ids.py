"""M6 and M9: ids are exact, and the listing pages through them."""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import MessageError
from entrepot_conformance.tests.memory.messages import ODD_IDS, at_once, batch, ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from entrepot import ChatMemoryRepository
    from entrepot_conformance.endpoints import Memories


def listed(
    memory: ChatMemoryRepository, limit: int, between: Callable[[], object] = lambda: None
) -> list[str]:
    """Return all ids, page by page."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = memory.conversation_ids(limit=limit, cursor=cursor)
        assert len(page.items) <= limit
        found += page.items
        if page.token is None:
            return found
        assert page.items, "a page that is not the last is not empty"
        cursor = page.token
        between()


def test_ids_are_exact(memories: Memories) -> None:
    # M6
    assert len(set(ODD_IDS)) == len(ODD_IDS)
    memory = memories()
    for number, name in enumerate(ODD_IDS):
        assert memory.messages(name) == [], name
        memory.append(name, batch(number, 0, size=1 + number % 2))
    for number, name in enumerate(ODD_IDS):
        assert ids(memory.messages(name)) == ids(batch(number, 0, size=1 + number % 2)), name
    assert sorted(listed(memory, 7)) == sorted(ODD_IDS)
    for number, name in enumerate(ODD_IDS[::2]):
        memory.delete(name)
        assert memory.messages(name) == []
        assert sorted(listed(memory, 1000)) == sorted({*ODD_IDS} - {*ODD_IDS[::2][: number + 1]})


@pytest.mark.parametrize(
    "bad", ["", "x" * 513, "😀" * 513, "\0", "a\0b", "\ud800", 5, None, b"bytes", ["c"]], ids=repr
)
def test_what_is_no_id_is_refused_by_every_operation(memories: Memories, bad: Any) -> None:
    # M6, D4: and the error is a ValueError (E1)
    memory = memories()
    operations: list[Callable[[], object]] = [
        lambda: memory.append(bad, batch("a", 0)),
        lambda: memory.replace(bad, batch("a", 0)),
        lambda: memory.truncate(bad, after="1"),
        lambda: memory.delete(bad),
        lambda: memory.messages(bad),
        lambda: memory.messages(bad, last=1),
        lambda: memory.latest(bad, "user"),
    ]
    for operation in operations:
        with pytest.raises(MessageError) as caught:
            operation()
        assert isinstance(caught.value, ValueError)
    assert memory.conversation_ids().items == []


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 20, 25])
def test_pages_hold_every_conversation_once(memories: Memories, count: int) -> None:
    # M9
    memory = memories()
    names = [f"conversation {number}" for number in range(count)]
    for name in names:
        memory.append(name, batch(name, 0, size=1))
    assert sorted(listed(memory, 10)) == sorted(names)
    assert sorted(listed(memory, 1)) == sorted(names)
    assert sorted(memory.conversation_ids().items) == sorted(names)
    assert memory.conversation_ids(limit=max(1, count)).token is None


def test_the_cursor_of_another_object_goes_on(memories: Memories) -> None:
    # M9: where objects share an endpoint, a cursor is worth as much to each
    memory = memories()
    for number in range(10):
        memory.append(f"c{number}", batch(number, 0, size=1))
    page = memory.conversation_ids(limit=4)
    other = memories() if memories.spec.shared else memory
    rest = other.conversation_ids(limit=100, cursor=page.token)
    assert sorted([*page.items, *rest.items]) == [f"c{number}" for number in range(10)]


def test_a_conversation_that_is_there_throughout_comes_exactly_once(memories: Memories) -> None:
    # M9: others come and go between the pages, and those that stay are written to and replaced
    memory = memories()
    rng = random.Random(7)
    staying = [f"{rng.random()}" for _ in range(40)]
    passing = [f"{rng.random()}" for _ in range(40)]
    for name in staying + passing[:20]:
        memory.append(name, batch(name, 0, size=1))

    def between() -> None:
        for name in rng.sample(passing, 3):
            memory.delete(name)
        for name in rng.sample(passing, 3):
            memory.append(name, batch(name, 1, size=1))
        memory.replace(rng.choice(staying), batch("new", 0))
        memory.append(rng.choice(staying), batch("more", rng.random()))

    found = listed(memory, 3, between)
    assert len(found) == len(set(found))
    assert sorted(set(found) & set(staying)) == sorted(staying)
    assert set(found) <= {*staying, *passing}


def test_listing_while_others_write(memories: Memories) -> None:
    # M9
    memory = memories()
    staying = [f"stays {number}" for number in range(30)]
    for name in staying:
        memory.append(name, batch(name, 0, size=1))
    done = threading.Event()

    def writer(me: int) -> None:
        for number in range(25):
            memory.append(f"{number} passes {me}", batch(me, number, size=1))
            memory.delete(f"{number - 2} passes {me}")

    def write_all() -> None:
        try:
            at_once(lambda: writer(1), lambda: writer(2))
        finally:
            done.set()

    def reader() -> None:
        while not done.is_set():
            found = listed(memory, 4)
            assert len(found) == len(set(found))
            assert set(found) >= set(staying)

    at_once(write_all, reader)


@pytest.mark.parametrize("limit", [0, -1, 1.5, "3", None, True], ids=repr)
def test_a_page_has_room_for_one_at_least(memories: Memories, limit: Any) -> None:
    # M9, E1
    memory = memories()
    with pytest.raises(ValueError, match="limit"):
        memory.conversation_ids(limit=limit)
