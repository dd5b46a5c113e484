"""Expiry by a clock that the test moves (M8), and how what has expired is removed."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from entrepot import UserMessage
from entrepot_sql import SqlChatMemoryRepository, repository

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "chat.db"


@pytest.fixture
def opened(path: Path, clock: Clock) -> Callable[[float | None], SqlChatMemoryRepository]:
    return lambda ttl: SqlChatMemoryRepository(f"sqlite:///{path}", ttl=ttl, clock=clock).connect()


def texts(memory: SqlChatMemoryRepository, name: str = "c") -> list[str]:
    return [message.text for message in memory.messages(name)]


def rows(path: Path) -> tuple[int, int]:
    """Return how many conversations and messages the file holds."""
    connection = sqlite3.connect(path)
    (conversations,) = connection.execute("SELECT count(*) FROM entrepot_conversation").fetchone()
    (messages,) = connection.execute("SELECT count(*) FROM entrepot_message").fetchone()
    connection.close()
    return conversations, messages


def test_to_the_second(opened: Callable[[float | None], SqlChatMemoryRepository], clock: Clock) -> None:
    # M8
    with opened(10) as memory:
        memory.append("c", [UserMessage("one")])
        clock.now += 9.999
        assert texts(memory) == ["one"]
        memory.replace("c", [UserMessage("two", id="2"), UserMessage("three")])
        clock.now += 9.999
        memory.truncate("c", after="2")
        clock.now += 9.999
        assert texts(memory) == ["two"]
        assert memory.conversation_ids().items == ["c"]
        clock.now += 0.001
        assert texts(memory) == []
        assert memory.conversation_ids().items == []
        assert memory.latest("c", "user") is None
        assert memory.search(text="t") == []
        memory.append("c", [UserMessage("new", id="2")])
        assert texts(memory) == ["new"]


def test_expiry_belongs_to_the_conversation(
    opened: Callable[[float | None], SqlChatMemoryRepository], clock: Clock
) -> None:
    # M8: a writer without ttl keeps what is set, one with another ttl sets that; it survives replace
    with opened(10) as ten, opened(None) as plain, opened(100) as hundred:
        ten.append("c", [UserMessage("one")])
        clock.now += 8
        plain.append("c", [UserMessage("two")])
        clock.now += 8
        plain.replace("c", [UserMessage("three")])
        clock.now += 8
        assert texts(plain) == ["three"]
        clock.now += 2
        assert texts(plain) == []
        plain.append("c", [UserMessage("kept")])  # a new conversation, which does not expire
        clock.now += 1_000_000
        assert texts(ten) == ["kept"]
        hundred.append("c", [UserMessage("again")])
        clock.now += 99
        assert texts(ten) == ["kept", "again"]
        clock.now += 1
        assert texts(ten) == []


def test_what_has_expired_is_removed_in_small_pieces(
    opened: Callable[[float | None], SqlChatMemoryRepository],
    clock: Clock,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repository, "_SWEEP_CONVERSATIONS", 4)
    monkeypatch.setattr(repository, "_SWEEP_MESSAGES", 10)
    with opened(None) as plain:
        for number in range(7):
            plain.append(f"kept {number}", [UserMessage("x")])
    with opened(10) as memory:
        for number in range(9):
            memory.append(f"c{number}", [UserMessage("x") for _ in range(number * 5 + 1)])
        clock.now += 10
        before = rows(path)
        assert before == (16, 7 + sum(number * 5 + 1 for number in range(9)))
        assert memory.remove_expired() == 9
        assert rows(path) == (7, 7)
        assert memory.remove_expired() == 0
        assert len(memory.conversation_ids().items) == 7


async def test_removing_has_its_twin(
    opened: Callable[[float | None], SqlChatMemoryRepository], clock: Clock, path: Path
) -> None:
    # E3
    with opened(10) as memory:
        memory.append("c", [UserMessage("x")])
        clock.now += 10
        assert await memory.aremove_expired() == 1
        assert rows(path) == (0, 0)


def test_later_writes_remove_what_has_expired(
    opened: Callable[[float | None], SqlChatMemoryRepository],
    clock: Clock,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("entrepot.memory.repository._SWEEP_SECONDS", 0.0)
    with opened(10) as memory:
        for number in range(50):
            memory.append(f"c{number}", [UserMessage("x") for _ in range(3)])
        clock.now += 10
        for _ in range(3):  # the first look may begin anywhere; the next goes on from the start
            memory.append("new", [UserMessage("x")])
        assert rows(path) == (1, 3)


def test_a_write_succeeds_though_removing_fails(
    opened: Callable[[float | None], SqlChatMemoryRepository], monkeypatch: pytest.MonkeyPatch
) -> None:
    from entrepot.errors import BackendError

    def failing(*_: object) -> tuple[int, int]:
        raise BackendError("no")

    monkeypatch.setattr(SqlChatMemoryRepository, "_sweep", failing)
    with opened(10) as memory:
        memory.append("c", [UserMessage("one")])
        assert texts(memory) == ["one"]
