"""Readings go by index: SQLite's own plans say so, and a question stops when it has enough (M7, M9, M10, W2)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event

from entrepot import UserMessage
from entrepot_sql import SqlChatMemoryRepository

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[SqlChatMemoryRepository]:
    with SqlChatMemoryRepository(f"sqlite:///{tmp_path}/chat.db").connect() as memory:
        for number in range(5):
            memory.append(
                f"c{number}",
                [UserMessage(f"text {n}", created=NOON + timedelta(seconds=n)) for n in range(200)],
            )
        yield memory


def plans(memory: SqlChatMemoryRepository, reading: Callable[[], object]) -> str:
    """Return SQLite's plans of the SELECTs that a reading makes."""
    statements: list[tuple[str, Any]] = []

    def note(_c: object, _k: object, statement: str, parameters: Any, _x: object, _many: bool) -> None:
        if statement.startswith("SELECT"):
            statements.append((statement, parameters))

    event.listen(memory.native_client, "before_cursor_execute", note)
    reading()
    event.remove(memory.native_client, "before_cursor_execute", note)
    assert statements
    with memory.native_client.connect() as connection:
        return "\n".join(
            str(row[-1])
            for statement, parameters in statements
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        )


Reading = Callable[[SqlChatMemoryRepository], object]
READINGS: dict[str, Reading] = {
    "all": lambda memory: memory.messages("c1"),
    "tail": lambda memory: memory.messages("c1", last=20),
    "latest": lambda memory: memory.latest("c1", "user"),
    "listing": lambda memory: memory.conversation_ids(limit=2, cursor=memory.conversation_ids(limit=2).token),
}


@pytest.mark.parametrize("reading", READINGS.values(), ids=READINGS)
def test_nothing_is_scanned_or_sorted(memory: SqlChatMemoryRepository, reading: Reading) -> None:
    # M7, M9, W2
    plan = plans(memory, partial(reading, memory))
    assert "SCAN" not in plan
    assert "TEMP B-TREE FOR ORDER BY" not in plan


def test_a_question_reads_from_the_newest_and_stops(memory: SqlChatMemoryRepository) -> None:
    # M10: by time of creation; a part of the order among equal times may be sorted
    questions: list[dict[str, Any]] = [
        {"text": "text 19"},
        {"role": "user"},
        {"since": NOON + timedelta(seconds=50), "role": "user"},
        {"metadata": {"a": 1}},
    ]
    for question in questions:
        plan = plans(memory, partial(memory.search, limit=3, **question))
        assert "entrepot_message_created" in plan, (question, plan)
