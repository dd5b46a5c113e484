"""M10: messages are found across conversations by what is asked, where that is declared."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

from entrepot import AssistantMessage, Role, SystemMessage, UnsupportedError, UserMessage
from entrepot_conformance.tests.memory.messages import NOON, ODD_IDS, ODD_TEXTS, exchange

if TYPE_CHECKING:
    from entrepot import ChatMemoryRepository, FoundMessage, Message
    from entrepot_conformance.endpoints import Memories

METADATA: Final[list[dict[str, Any]]] = [
    {},
    {"n": 1},
    {"n": 1.0},
    {"n": True},
    {"n": "1"},
    {"n": None},
    {"n": [1]},
    {"n": 2**53 + 1},
    {"n": 2**53},
    {"a": {"b": [1, {"c": "d"}]}},
    {"a": {"b": [1, {"c": "D"}]}},
    {"a": {"b": [True, {"c": "d"}]}},
    {"text": "50% off_*", "n": 1},
    {"when": NOON},
    {"when": "2026-01-31T12:00:00.123456Z"},
    {"k'\"`\\ . $": "x"},
    {"$datetime": "x", "ключ": "😀"},
]


def declared(memories: Memories) -> ChatMemoryRepository | None:
    """Return a repository that answers questions; None, and a loud refusal checked, where that is declined."""
    memory = memories()
    if memory.capabilities.memory_search:
        return memory
    with pytest.raises(UnsupportedError) as caught:
        memory.search(text="a")
    assert caught.value.capability == "memory_search"
    return None


def filled(memory: ChatMemoryRepository) -> list[tuple[str, Message]]:
    """Fill a repository with messages, each created at an instant of its own; return them, newest first."""
    rng = random.Random(7)
    everything: list[tuple[str, Message]] = []
    texts = [
        *ODD_TEXTS,
        "50% off_*",
        "50 percent offer",
        "100 %",
        "Straße",
        "strasse",
        "A",
        "a",
        "needle in hay",
    ]
    kinds = [SystemMessage, UserMessage, AssistantMessage]
    for number in range(120):
        made = kinds[number % 3](
            texts[number % len(texts)],
            id=f"m{number}",
            created=NOON + timedelta(microseconds=(number * 37) % 121),
            metadata=METADATA[rng.randrange(len(METADATA))],
        )
        everything.append((f"c{number % 7}", made))
    for name in {name for name, _ in everything}:
        memory.append(name, [message for other, message in everything if other == name])
    return sorted(everything, key=lambda entry: entry[1].created, reverse=True)


def as_pairs(found: list[FoundMessage]) -> list[tuple[str, str]]:
    return [(hit.conversation_id, hit.message.id) for hit in found]


def equal_json(left: object, right: object) -> bool:
    """Whether JSON values are equal: numbers by value, a boolean is no number. Written for this test."""
    return tagged(left) == tagged(right)


def tagged(value: object) -> object:
    """Return a value with its booleans told from its numbers."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, dict):
        return {key: tagged(item) for key, item in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [tagged(item) for item in cast("list[object]", value)]
    return value


def test_by_text(memories: Memories) -> None:
    # M10: letter by letter and in this case; nothing in the text is syntax
    memory = declared(memories)
    if memory is None:
        return
    everything = filled(memory)
    for text in (
        *ODD_TEXTS,
        "%",
        "_",
        "*",
        "'",
        '"',
        "\\",
        "\n",
        "50%",
        "off_",
        "a",
        "A",
        "ss",
        "ß",
        "é",
        "e",
        "1",
    ):
        expected = [(name, message.id) for name, message in everything if text in message.text]
        assert as_pairs(memory.search(text=text, limit=1000)) == expected, text


def test_only_the_text_of_the_message_is_searched(memories: Memories) -> None:
    # M10: not its metadata, its tool calls, or how it is stored
    memory = declared(memories)
    if memory is None:
        return
    memory.append("c", [*exchange("a"), UserMessage("plain", metadata={"note": "hidden"})])
    for text in ("hidden", "note", "Sofia", "weather", "role", "user", "created", "{", '"'):
        assert memory.search(text=text) == []
    assert len(memory.search(text="plain")) == 1


def test_by_role(memories: Memories) -> None:
    # M10
    memory = declared(memories)
    if memory is None:
        return
    everything = filled(memory)
    for role in Role:
        expected = [(name, message.id) for name, message in everything if message.role is role]
        assert as_pairs(memory.search(role=role, limit=1000)) == expected
        assert as_pairs(memory.search(role=str(role), limit=1000)) == expected
    with pytest.raises(ValueError, match="role"):
        memory.search(role="robot")


def test_by_time(memories: Memories) -> None:
    # M10: since is included, until is not, to the microsecond and in any timezone
    memory = declared(memories)
    if memory is None:
        return
    everything = filled(memory)
    zone = timezone(timedelta(hours=-7))
    for start, end in ((0, 120), (5, 6), (50, 50), (60, 20), (7, 90), (-10, 0), (120, 500)):
        since, until = NOON + timedelta(microseconds=start), NOON + timedelta(microseconds=end)
        expected = [(name, message.id) for name, message in everything if since <= message.created < until]
        assert as_pairs(memory.search(since=since, until=until, limit=1000)) == expected
        assert as_pairs(memory.search(since=since.astimezone(zone), until=until, limit=1000)) == expected
    early, late = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)
    assert len(memory.search(since=early, until=late, limit=1000)) == len(everything)
    assert memory.search(since=late) == []
    assert memory.search(until=early) == []
    for wrong in ({"since": datetime(2026, 1, 1)}, {"until": "2026-01-01"}):  # noqa: DTZ001 - that is what is wrong
        question: dict[str, Any] = dict(wrong)
        with pytest.raises(ValueError, match=next(iter(question))):
            memory.search(**question)


def test_by_metadata(memories: Memories) -> None:
    # M10: top-level keys, values equal as JSON: 1 is 1.0 and neither is True; null is a value
    memory = declared(memories)
    if memory is None:
        return
    everything = filled(memory)
    asked: list[dict[str, Any]] = [
        *METADATA,
        {"n": 1, "text": "50% off_*"},
        {"b": [1]},
        {"N": 1},
        {"n": [True]},
    ]
    for metadata in asked:
        expected = [
            (name, message.id)
            for name, message in everything
            if all(
                key in message.metadata and equal_json(message.metadata[key], value)
                for key, value in metadata.items()
            )
        ]
        assert as_pairs(memory.search(metadata=metadata, limit=1000)) == expected, metadata
    with pytest.raises(ValueError, match="metadata"):
        memory.search(metadata={"n": float("nan")})


def test_all_that_is_asked_must_hold_and_the_newest_come_first(memories: Memories) -> None:
    # M10: with a limit, the newest of all answers
    memory = declared(memories)
    if memory is None:
        return
    everything = filled(memory)
    rng = random.Random(11)
    for _ in range(60):
        text = rng.choice([None, "a", "50", "x", " "])
        role = rng.choice([None, Role.USER, Role.SYSTEM])
        since = rng.choice([None, NOON + timedelta(microseconds=rng.randrange(121))])
        until = rng.choice([None, NOON + timedelta(microseconds=rng.randrange(121))])
        metadata = rng.choice([None, None, {"n": 1}, {}])
        limit = rng.choice([1, 2, 5, 1000])
        expected = [
            (name, message.id)
            for name, message in everything
            if (text is None or text in message.text)
            and (role is None or message.role is role)
            and (since is None or message.created >= since)
            and (until is None or message.created < until)
            and (not metadata or ("n" in message.metadata and equal_json(message.metadata["n"], 1)))
        ][:limit]
        found = memory.search(text=text, role=role, since=since, until=until, metadata=metadata, limit=limit)
        assert as_pairs(found) == expected
        assert all((hit.conversation_id, hit.message) in everything for hit in found)
    with pytest.raises(ValueError, match="limit"):
        memory.search(limit=0)


def test_what_is_gone_is_not_found(memories: Memories) -> None:
    # M4, M5, M10
    memory = declared(memories)
    if memory is None:
        return
    for name in ("a", "b", "c", "d"):
        memory.append(name, exchange(name))
    memory.delete("a")
    memory.replace("b", [UserMessage("question anew")])
    memory.truncate("c", after="c call")
    found = {(hit.conversation_id, hit.message.text) for hit in memory.search(limit=1000)}
    assert found == {
        ("b", "question anew"),
        ("c", "question c"),
        ("c", ""),
        ("d", "question d"),
        ("d", "answer d"),
        ("d", ""),
    }


def test_every_conversation_is_searched_and_named_exactly(memories: Memories) -> None:
    # M6, M10
    memory = declared(memories)
    if memory is None:
        return
    for name in ODD_IDS:
        memory.append(name, [UserMessage("the same text", id=name)])
    found = memory.search(text="same", limit=1000)
    assert sorted(as_pairs(found)) == sorted((name, name) for name in ODD_IDS)


def test_answers_are_ordered_to_the_microsecond(memories: Memories) -> None:
    # M10, M2: newest first, also where a float of the instant would lose the difference
    memory = declared(memories)
    if memory is None:
        return
    last = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    times = [last - timedelta(microseconds=number) for number in (3, 0, 2, 1)]
    for number, created in enumerate(times):
        memory.append(f"c{number % 2}", [UserMessage("needle", id=str(number), created=created)])
    assert [found.message.created for found in memory.search(text="needle")] == sorted(times, reverse=True)
    assert [found.message.id for found in memory.search(text="needle", since=last)] == ["1"]
    assert [found.message.id for found in memory.search(text="needle", until=times[2])] == ["0"]
