"""M4 and M5: replace, truncate and delete."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

import pytest

from entrepot import UnknownMessageError, UserMessage
from entrepot_conformance.tests.memory.messages import at_once, batch, exchange, ids

if TYPE_CHECKING:
    from entrepot_conformance.endpoints import Memories


def test_replace_puts_other_messages_in_the_place_of_all(memories: Memories) -> None:
    # M4
    memory = memories()
    memory.append("c", batch("old", 0))
    memory.append("other", batch("other", 0))
    for number, size in enumerate((5, 1, 30)):
        new = batch("new", number, size)
        memory.replace("c", new)
        assert memory.messages("c") == new
        assert memory.messages("c", last=2) == new[-2:]
    assert len(memory.messages("other")) == 3
    memory.append("c", batch("after", 0))
    assert ids(memory.messages("c")) == [*ids(batch("new", 2, 30)), *ids(batch("after", 0))]


def test_replace_makes_a_conversation(memories: Memories) -> None:
    # M4
    memory = memories()
    memory.replace("c", batch("a", 0))
    assert memory.conversation_ids().items == ["c"]
    assert ids(memory.messages("c")) == ids(batch("a", 0))


def test_replacing_with_nothing_leaves_no_conversation(memories: Memories) -> None:
    # M4
    memory = memories()
    memory.replace("c", [])
    assert memory.conversation_ids().items == []
    memory.append("c", batch("a", 0))
    memory.replace("c", [])
    assert memory.messages("c") == []
    assert memory.conversation_ids().items == []


def test_replace_may_keep_and_reorder_messages(memories: Memories) -> None:
    # M4: ids that were there may be there again, whole and in the new order
    memory = memories()
    old = exchange("a")
    memory.append("c", old)
    new = [old[3], UserMessage("between", id="between"), old[0]]
    memory.replace("c", new)
    assert memory.messages("c") == new
    changed = [UserMessage("rewritten", id=old[3].id)]
    memory.replace("c", changed)
    assert memory.messages("c") == changed


def test_a_reader_sees_the_old_conversation_or_the_new(memories: Memories) -> None:
    # M4
    memory = memories()
    versions = [batch("version", number, size=1 + 7 * (number % 4)) for number in range(40)]
    whole = {tuple(ids(version)) for version in versions}
    memory.replace("c", versions[0])
    done = threading.Event()

    def writer() -> None:
        try:
            for version in versions:
                memory.replace("c", version)
        finally:
            done.set()

    def reader() -> None:
        while not done.is_set():
            assert tuple(ids(memory.messages("c"))) in whole
            tail = tuple(ids(memory.messages("c", last=4)))
            assert tail in {version[-4:] for version in whole}
            assert memory.conversation_ids().items == ["c"]

    at_once(writer, reader, reader)
    assert memory.messages("c") == versions[-1]


def test_a_concurrent_append_lands_before_or_after(memories: Memories) -> None:
    # M4: gone, or kept whole and behind what was put there
    memory = memories()

    def replacer() -> None:
        for number in range(20):
            memory.replace("c", batch("replaced", number))

    def appender() -> None:
        for number in range(40):
            memory.append("c", batch("appended", number))

    at_once(replacer, appender)
    read = ids(memory.messages("c"))
    assert read[:3] == ids(batch("replaced", 19))
    kept = len(read[3:]) // 3
    assert read[3:] == [name for number in range(40 - kept, 40) for name in ids(batch("appended", number))]


def test_concurrent_replaces_leave_one_of_them_whole(memories: Memories) -> None:
    # M4
    memory = memories()
    for number in range(8):
        sent = [batch(writer, number, size=4) for writer in range(5)]
        at_once(*(partial(memory.replace, "c", one) for one in sent))
        assert memory.messages("c") in sent


def test_truncate_cuts_the_tail(memories: Memories) -> None:
    # M4
    memory = memories()
    written = batch("a", 0, size=10)
    memory.append("c", written)
    memory.append("other", written)
    for keep in (10, 7, 1):
        memory.truncate("c", after=written[keep - 1].id)
        assert memory.messages("c") == written[:keep]
    assert memory.messages("other") == written
    memory.append("c", batch("b", 0))
    assert ids(memory.messages("c")) == [written[0].id, *ids(batch("b", 0))]


def test_what_was_cut_may_be_appended_again(memories: Memories) -> None:
    # M3, M4: an id that is not stored any more is a new one
    memory = memories()
    written = batch("a", 0, size=4)
    memory.append("c", written)
    memory.truncate("c", after=written[1].id)
    memory.append("c", [written[3], written[2]])
    assert memory.messages("c") == [written[0], written[1], written[3], written[2]]
    memory.replace("c", written[:1])
    memory.append("c", written)
    assert memory.messages("c") == written


def test_truncating_after_an_unknown_message_is_an_error(memories: Memories) -> None:
    # M4: a ValueError, and nothing changes
    memory = memories()
    memory.append("c", batch("a", 0))
    memory.append("d", batch("d", 0))
    for conversation, after in (
        ("c", "unknown"),
        ("c", "d/0/0"),
        ("unknown", "a/0/0"),
        ("c", ""),
        ("c", "x" * 999),
    ):
        with pytest.raises(UnknownMessageError) as caught:
            memory.truncate(conversation, after=after)
        assert isinstance(caught.value, ValueError)
    assert len(memory.messages("c")) == 3
    assert sorted(memory.conversation_ids().items) == ["c", "d"]


def test_truncate_is_atomic_against_readers(memories: Memories) -> None:
    # M4
    memory = memories()
    written = batch("a", 0, size=30)
    done = threading.Event()

    def writer() -> None:
        try:
            for keep in (25, 20, 11, 3):
                memory.replace("c", written)
                memory.truncate("c", after=written[keep - 1].id)
        finally:
            done.set()

    def reader() -> None:
        while not done.is_set():
            assert len(memory.messages("c")) in {0, 30, 25, 20, 11, 3}

    at_once(writer, reader)


def test_delete_removes_the_conversation(memories: Memories) -> None:
    # M5
    memory = memories()
    memory.append("c", exchange("a"))
    memory.append("d", exchange("d"))
    memory.delete("c")
    assert memory.messages("c") == []
    assert memory.messages("c", last=3) == []
    assert memory.latest("c", "user") is None
    assert memory.conversation_ids().items == ["d"]
    assert len(memory.messages("d")) == 4
    memory.delete("c")
    memory.append("c", exchange("a"))  # and it may begin anew, with the same messages
    assert ids(memory.messages("c")) == ids(exchange("a"))


def test_an_unknown_conversation_is_empty_and_no_error(memories: Memories) -> None:
    # M5
    memory = memories()
    memory.delete("unknown")
    assert memory.messages("unknown") == []
    assert memory.messages("unknown", last=3) == []
    assert memory.latest("unknown", "system") is None
    assert memory.conversation_ids().items == []


def test_deleting_and_appending_at_once_leave_whole_batches(memories: Memories) -> None:
    # M3, M5: whatever the order, the listing agrees with what is read
    memory = memories()
    one, two = batch("a", 0), batch("b", 0)
    possible = [ids(read) for read in ([], one, two, [*one, *two], [*two, *one])]
    for number in range(10):
        name = f"c{number}"
        delete = partial(memory.delete, name)
        at_once(delete, partial(memory.append, name, one), delete, partial(memory.append, name, two))
        read = ids(memory.messages(name))
        assert read in possible
        assert (name in memory.conversation_ids().items) == bool(read)
