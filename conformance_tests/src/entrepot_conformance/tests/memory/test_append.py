"""M3: append is atomic, rewrites nothing, and a retry is safe."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from entrepot import UserMessage
from entrepot_conformance.tests.memory.messages import at_once, batch, exchange, ids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot import ChatMemoryRepository, Message
    from entrepot_conformance.endpoints import Memories

WRITERS, BATCHES, SIZE = 8, 12, 3


def check_interleaving(read: Sequence[Message]) -> None:
    """Check that every batch is there, in one piece, and each writer's in its order."""
    assert len(read) == WRITERS * BATCHES * SIZE
    pieces = [ids(read[start : start + SIZE]) for start in range(0, len(read), SIZE)]
    assert sorted(pieces) == sorted(
        ids(batch(writer, number, SIZE)) for writer in range(WRITERS) for number in range(BATCHES)
    )
    for writer in range(WRITERS):
        own = [piece[0].split("/")[1] for piece in pieces if piece[0].startswith(f"{writer}/")]
        assert own == [str(number) for number in range(BATCHES)]


def test_concurrent_writers_lose_and_split_nothing(memories: Memories) -> None:
    # M3: N writers with M batches each leave N x M batches
    memory = memories()

    def writer(me: int) -> None:
        for number in range(BATCHES):
            memory.append("c", batch(me, number, SIZE))

    at_once(*(partial(writer, me) for me in range(WRITERS)))
    check_interleaving(memory.messages("c"))
    assert memory.conversation_ids().items == ["c"]


def test_concurrent_tasks_lose_and_split_nothing(memories: Memories) -> None:
    # M3, E3
    memory = memories()

    async def writer(me: int) -> None:
        for number in range(BATCHES):
            await memory.aappend("c", batch(me, number, SIZE))

    async def all_writers() -> None:
        await asyncio.gather(*(writer(me) for me in range(WRITERS)))

    asyncio.run(all_writers())
    check_interleaving(memory.messages("c"))


def test_writers_with_objects_of_their_own_lose_nothing(memories: Memories) -> None:
    # M3; where objects do not share an endpoint each has its own conversations
    opened = [memories() for _ in range(WRITERS)]

    def writer(me: int, memory: ChatMemoryRepository) -> None:
        for number in range(BATCHES):
            memory.append("c", batch(me, number, SIZE))

    at_once(*(partial(writer, me, memory) for me, memory in enumerate(opened)))
    if memories.spec.shared:
        for memory in opened:
            check_interleaving(memory.messages("c"))
    else:
        for me, memory in enumerate(opened):
            assert ids(memory.messages("c")) == [
                name for number in range(BATCHES) for name in ids(batch(me, number, SIZE))
            ]


def test_writers_of_many_conversations_do_not_mix_them(memories: Memories) -> None:
    # M3, M6
    memory = memories()

    def writer(me: int) -> None:
        for number in range(BATCHES):
            memory.append(f"c{(me + number) % 5}", batch(me, number, SIZE))

    at_once(*(partial(writer, me) for me in range(WRITERS)))
    for place in range(5):
        read = ids(memory.messages(f"c{place}"))
        expected = [
            name
            for me in range(WRITERS)
            for number in range(BATCHES)
            if (me + number) % 5 == place
            for name in ids(batch(me, number, SIZE))
        ]
        assert sorted(read) == sorted(expected)


def test_a_retry_changes_nothing(memories: Memories) -> None:
    # M3
    memory = memories()
    first, second = exchange("first"), exchange("second")
    memory.append("c", first)
    memory.append("c", second)
    memory.append("c", first)
    memory.append("c", second)
    memory.append("c", [*second, *first])
    assert memory.messages("c") == [*first, *second]


def test_of_a_half_known_batch_the_rest_is_appended(memories: Memories) -> None:
    # M3
    memory = memories()
    known, new = batch("known", 0), batch("new", 0)
    memory.append("c", known)
    memory.append("c", [new[0], known[1], new[1], known[0], new[2]])
    assert memory.messages("c") == [*known, *new]


def test_a_stored_message_stays_as_it_is(memories: Memories) -> None:
    # M2, M3: another message of the same id is no update
    memory = memories()
    memory.append("c", [UserMessage("first", id="1")])
    memory.append("c", [UserMessage("second", id="1"), UserMessage("third", id="2")])
    assert [message.text for message in memory.messages("c")] == ["first", "third"]


def test_an_id_belongs_to_its_conversation(memories: Memories) -> None:
    # M3, M6: message ids are unique in their conversation, not beyond
    memory = memories()
    memory.append("a", [UserMessage("in a", id="1")])
    memory.append("b", [UserMessage("in b", id="1")])
    assert [message.text for message in memory.messages("a")] == ["in a"]
    assert [message.text for message in memory.messages("b")] == ["in b"]


def test_one_batch_sent_by_many_at_once_is_stored_once(memories: Memories) -> None:
    # M3
    memory = memories()
    for number in range(8):
        sent = batch("same", number)
        at_once(*(partial(memory.append, "c", sent) for _ in range(6)))
    assert ids(memory.messages("c")) == [name for number in range(8) for name in ids(batch("same", number))]


def test_the_first_appends_of_a_conversation_may_come_at_once(memories: Memories) -> None:
    # M3: none of them makes a conversation that hides the other's
    memory = memories()
    for number in range(8):
        at_once(*(partial(memory.append, f"c{number}", batch(me, 0)) for me in range(4)))
        assert len(memory.messages(f"c{number}")) == 4 * 3
    assert sorted(memory.conversation_ids().items) == [f"c{number}" for number in range(8)]


def test_appending_nothing_makes_no_conversation(memories: Memories) -> None:
    # M4
    memory = memories()
    memory.append("c", [])
    assert memory.messages("c") == []
    assert memory.conversation_ids().items == []
    memory.append("c", batch("a", 0))
    memory.append("c", [])
    assert ids(memory.messages("c")) == ids(batch("a", 0))
