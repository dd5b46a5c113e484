"""Conversations of Spring AI's JDBC chat memory come over in order, once, and without a silent loss."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import create_engine

from entrepot import InMemoryChatMemoryRepository
from entrepot.errors import ConfigurationError, CorruptDataError
from entrepot_sql import import_spring_ai

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Engine

TABLE = """
    CREATE TABLE {name} (conversation_id TEXT NOT NULL, content TEXT NOT NULL, type TEXT NOT NULL,
        timestamp {time} NOT NULL{more})
"""
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
MILLIS = int(NOON.timestamp() * 1000)


def made(
    path: Path, rows: list[tuple[object, ...]], *, name: str = "SPRING_AI_CHAT_MEMORY", sequence: bool = True
) -> Engine:
    engine = create_engine(f"sqlite:///{path}")
    more, time = (", sequence_id INTEGER NOT NULL", "INTEGER") if sequence else ("", "TEXT")
    with engine.begin() as connection:
        connection.exec_driver_sql(TABLE.format(name=name, more=more, time=time))
        places = ",".join("?" * (5 if sequence else 4))
        for row in rows:
            connection.exec_driver_sql(f"INSERT INTO {name} VALUES ({places})", row)
    return engine


def test_conversations_come_over_in_the_order_of_their_sequence(tmp_path: Path) -> None:
    # M1: timestamps order nothing where there is a sequence
    engine = made(
        tmp_path / "spring.db",
        [
            ("b", "second", "ASSISTANT", MILLIS - 5, 1),
            ("a", "You are brief.", "SYSTEM", MILLIS, 0),
            ("b", "first", "USER", MILLIS, 0),
            ("a", "'; DROP TABLE x; --", "USER", MILLIS + 1, 1),
            ("A", "another", "USER", MILLIS, 0),
        ],
    )
    memory = InMemoryChatMemoryRepository()
    assert import_spring_ai(engine, memory) == 5
    assert [(message.role, message.text) for message in memory.messages("b")] == [
        ("user", "first"),
        ("assistant", "second"),
    ]
    assert [(message.role, message.text) for message in memory.messages("a")] == [
        ("system", "You are brief."),
        ("user", "'; DROP TABLE x; --"),
    ]
    assert [message.created for message in memory.messages("b")] == [NOON, NOON - timedelta(milliseconds=5)]
    assert sorted(memory.conversation_ids().items) == ["A", "a", "b"]
    engine.dispose()


def test_a_second_import_adds_only_what_is_new(tmp_path: Path) -> None:
    # M3
    engine = made(tmp_path / "spring.db", [("c", "one", "USER", MILLIS, 0)])
    memory = InMemoryChatMemoryRepository()
    import_spring_ai(engine, memory)
    with engine.begin() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO SPRING_AI_CHAT_MEMORY VALUES ('c', 'two', 'ASSISTANT', {MILLIS}, 1)"
        )
    assert import_spring_ai(engine, memory) == 2
    assert [message.text for message in memory.messages("c")] == ["one", "two"]
    engine.dispose()


def test_tables_without_a_sequence_go_by_time_and_zone(tmp_path: Path) -> None:
    path = tmp_path / "spring.db"
    rows: list[tuple[object, ...]] = [
        ("c", "later", "ASSISTANT", "2026-01-31 13:00:01"),
        ("c", "earlier", "USER", "2026-01-31 13:00:00"),
    ]
    made(path, rows, name="chat", sequence=False).dispose()
    memory = InMemoryChatMemoryRepository()
    assert import_spring_ai(f"sqlite:///{path}", memory, table="CHAT", zone=timezone(timedelta(hours=1))) == 2
    assert [(message.text, message.created) for message in memory.messages("c")] == [
        ("earlier", NOON),
        ("later", NOON + timedelta(seconds=1)),
    ]


def test_tool_rows_are_refused_or_left_out_on_demand(tmp_path: Path) -> None:
    # the table does not keep what was answered to which call
    engine = made(tmp_path / "spring.db", [("c", "ask", "USER", MILLIS, 0), ("c", "", "TOOL", MILLIS, 1)])
    memory = InMemoryChatMemoryRepository()
    with pytest.raises(CorruptDataError, match="'TOOL'"):
        import_spring_ai(engine, memory)
    assert memory.messages("c") == []
    assert import_spring_ai(engine, memory, skip_tools=True) == 1
    assert [message.text for message in memory.messages("c")] == ["ask"]
    engine.dispose()


def test_what_is_no_such_table_is_said(tmp_path: Path) -> None:
    # E2
    engine = create_engine(f"sqlite:///{tmp_path}/other.db")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE other (x)")
    memory = InMemoryChatMemoryRepository()
    with pytest.raises(ConfigurationError, match="no table 'SPRING_AI_CHAT_MEMORY'"):
        import_spring_ai(engine, memory)
    with pytest.raises(ConfigurationError, match="no column 'conversation_id'"):
        import_spring_ai(engine, memory, table="other")
    engine.dispose()
