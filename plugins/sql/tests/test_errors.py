"""What SQLite and SQLAlchemy raise has a class of the library, in time, with its cause and without values (E1, E4)."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import create_engine, event

from entrepot import UserMessage, open_chat_memory
from entrepot.errors import BackendError, ClosedError, CorruptDataError, OperationTimeoutError
from entrepot_sql import SqlChatMemoryRepository

if TYPE_CHECKING:
    from pathlib import Path

    from entrepot import ChatMemoryRepository

HELLO = UserMessage("a secret text", id="1")


def test_a_locked_database_is_waited_for_and_then_told(tmp_path: Path) -> None:
    # E4: within the timeout, retryable, and certainly not done
    path = tmp_path / "chat.db"
    with open_chat_memory(f"sql+sqlite:///{path}", timeout=0.4) as memory:
        memory.append("c", [HELLO])
        blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        blocker.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        with pytest.raises(OperationTimeoutError, match="locked") as caught:
            memory.append("c", [UserMessage("another", id="2")])
        took = time.monotonic() - started
        assert 0.3 <= took < 3
        assert (caught.value.retryable, caught.value.outcome) == (True, "not_done")
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
        assert memory.messages("c") == [HELLO]  # readers do not wait for writers
        with pytest.raises(OperationTimeoutError):
            asyncio.run(memory.areplace("c", []))
        threading.Timer(0.15, lambda: blocker.execute("ROLLBACK")).start()
        memory.append("c", [UserMessage("another", id="2")])  # waits until the other is done
        assert len(memory.messages("c")) == 2
        blocker.close()


def test_a_busy_timeout_follows_what_is_left_of_the_exchange(tmp_path: Path) -> None:
    # E4
    with open_chat_memory(f"sql+sqlite:///{tmp_path}/chat.db", timeout=7) as memory:
        assert isinstance(memory, SqlChatMemoryRepository)
        memory.append("c", [HELLO])
        with memory.native_client.connect() as connection:
            assert 6_000 <= connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one() <= 7_000


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    # E1
    path = tmp_path / "chat.db"
    with open_chat_memory(f"sql+sqlite:///{path}") as memory:
        memory.append("c", [UserMessage("x" * 500, id=str(n)) for n in range(500)])
    content = bytearray(path.read_bytes())
    content[4096 * 8 :] = b"\xff" * (len(content) - 4096 * 8)
    path.write_bytes(content)
    with (
        open_chat_memory(f"sql+sqlite:///{path}") as memory,
        pytest.raises(CorruptDataError, match=r"chat\.db"),
    ):
        memory.messages("c")


def test_a_message_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    # M2, E1
    path = tmp_path / "chat.db"
    with open_chat_memory(f"sql+sqlite:///{path}") as memory:
        memory.append("c", [HELLO])
        connection = sqlite3.connect(path)
        connection.execute("UPDATE entrepot_message SET body = x'7b'")
        connection.commit()
        connection.close()
        with pytest.raises(CorruptDataError, match="stored message"):
            memory.messages("c")


def test_a_full_disk_leaves_the_old_conversation(tmp_path: Path) -> None:
    # M4: a failure leaves the old; the message of the error holds no text of a message
    engine = create_engine(f"sqlite:///{tmp_path}/chat.db")

    @event.listens_for(engine, "connect")
    def _small(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA max_page_count = 30")

    with SqlChatMemoryRepository(engine).connect() as memory:
        memory.append("c", [HELLO])
        for operation in (memory.append, memory.replace):
            with pytest.raises(BackendError, match="no room left") as caught:
                operation("c", [UserMessage("secret " * 50, id=str(n)) for n in range(2, 2000)])
            assert "secret" not in str(caught.value)
            assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
            assert "secret" not in str(caught.value.__cause__)
            assert caught.value.outcome == "not_done"
            assert memory.messages("c") == [HELLO]
        memory.append("c", [UserMessage("small", id="2")])
    engine.dispose()


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with open_chat_memory(f"sql+sqlite:///{path}") as memory:
        memory.append("c", [HELLO])
    engine = create_engine(
        f"sqlite:///{path}",
        creator=lambda: sqlite3.connect(f"file:{path}?mode=ro", uri=True, check_same_thread=False),
    )
    with SqlChatMemoryRepository(engine).connect() as memory:
        assert memory.messages("c") == [HELLO]
        with pytest.raises(BackendError, match="cannot be written"):
            memory.append("c", [UserMessage("x", id="2")])
    engine.dispose()


def test_missing_tables_are_told_without_values(tmp_path: Path) -> None:
    # E1: whatever goes wrong, the driver's exception is the cause and nothing quotes what was written
    path = tmp_path / "chat.db"
    engine = create_engine(f"sqlite:///{path}")
    with SqlChatMemoryRepository(engine).connect() as memory:
        with engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE entrepot_message")
        with pytest.raises(BackendError) as caught:
            memory.append("secret name", [HELLO])
        shown = f"{caught.value} {caught.value.__cause__}"
        assert "secret" not in shown
        assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
    engine.dispose()


def test_closing_while_others_work_leaves_nothing_open(tmp_path: Path) -> None:
    # E5: a call that is under way ends well or says that the memory is closed; no connection is left
    for _ in range(10):
        closing_round(open_chat_memory(f"sql+sqlite:///{tmp_path}/chat.db"))


def closing_round(memory: ChatMemoryRepository) -> None:
    assert isinstance(memory, SqlChatMemoryRepository)
    made: set[sqlite3.Connection] = set()
    failed: list[BaseException] = []

    def note(connection: sqlite3.Connection, _record: object, _proxy: object) -> None:
        made.add(connection)

    def work() -> None:
        try:
            while True:
                memory.append("c", [UserMessage("x")])
        except ClosedError:
            pass
        except BaseException as error:  # noqa: BLE001 - looked at below
            failed.append(error)

    event.listen(memory.native_client, "checkout", note)
    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    while not made and any(thread.is_alive() for thread in threads):
        time.sleep(0.001)
    memory.close()
    for thread in threads:
        thread.join(30)
    assert failed == []
    for connection in made:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")
