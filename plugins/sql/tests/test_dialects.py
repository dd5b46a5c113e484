"""What is sent to systems that no server was at hand of: compiled statements, and errors by their codes."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import URL, create_engine
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from entrepot import UserMessage, open_chat_memory
from entrepot.errors import (
    AuthenticationError,
    BackendError,
    ConfigurationError,
    MessageError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot_sql import SqlChatMemoryRepository
from entrepot_sql.dialects import SYSTEMS, dialect_of
from entrepot_sql.schema import schema_of
from entrepot_sql.sqlite import SqliteDialect
from entrepot_sql.writes import PlainWrites

if TYPE_CHECKING:
    from pathlib import Path

    from entrepot_sql.schema import Schema
    from entrepot_sql.writes import Writes

mysql_dialect: Any = mysql.dialect
mssql_dialect: Any = mssql.dialect
postgresql_dialect: Any = postgresql.dialect
oracle_dialect: Any = oracle.dialect
LOADED: dict[str, Any] = {
    "postgresql": postgresql_dialect(paramstyle="named"),
    "mysql": mysql_dialect(paramstyle="named"),
    "mariadb": mysql_dialect(paramstyle="named", is_mariadb=True),
    "oracle": oracle_dialect(),
    "mssql": mssql_dialect(deprecate_large_types=True, paramstyle="named", supports_native_boolean=False),
}
LOADED["oracle"].server_version_info = (19,)
LOADED["mssql"].server_version_info = (15,)
HOSTILE = "x'; DROP TABLE entrepot_message; --"
STATEMENTS = [
    "read_all",
    "read_last",
    "read_latest",
    "list_names",
    "lock",
    "lock_any",
    "lock_expired",
    "find_place",
    "touch",
    "delete_all",
    "delete_before",
    "delete_after",
    "delete_conversation",
    "window",
    "piece_end",
    "highest_number",
    "read_layout",
]


def compiled(statement: Any, name: str) -> str:
    return " ".join(str(statement.compile(dialect=LOADED[name])).split())


@pytest.mark.parametrize("name", LOADED)
def test_every_statement_is_compiled_and_binds_every_value(name: str) -> None:
    # F10 in spirit: no value stands in a statement's text, but for the small numbers that are constants of ours
    schema = schema_of("a-b", "c-d")
    for attribute in STATEMENTS:
        text = compiled(getattr(schema, attribute), name)
        without_names = re.sub(r'"[^"]*"|`[^`]*`|\[[^\]]*\]|:\w+|__\[POSTCOMPILE_\w+\]', "", text)
        assert "'" not in without_names, text
        assert not re.search(r"\b[0-9]{2,}\b", without_names), text
        assert "a-b_" in text


@pytest.mark.parametrize("name", LOADED)
def test_names_are_quoted(name: str) -> None:
    # a hyphen is no letter of a name in any system, so it shows where quotes are left out
    quotes = {"mysql": "``", "mariadb": "``", "mssql": "[]"}.get(name, '""')
    for table in schema_of("a-b", "c-d").tables.sorted_tables:
        text = compiled(CreateTable(table), name)
        assert f"{quotes[0]}c-d{quotes[1]}.{quotes[0]}{table.name}{quotes[1]}" in text
        for index in table.indexes:
            assert f"{quotes[0]}{index.name}{quotes[1]}" in compiled(CreateIndex(index), name)


@pytest.mark.parametrize("name", LOADED)
def test_names_of_the_longest_prefix_are_not_shortened(name: str) -> None:
    # PostgreSQL cuts names at 63 bytes without a word
    for table in schema_of("x" * 44, None).tables.sorted_tables:
        names = [table.name, *(str(index.name) for index in table.indexes)]
        names += [str(constraint.name) for constraint in table.constraints if constraint.name]
        assert all(len(one) <= 63 for one in names), (name, names)


def test_types_hold_ids_and_messages() -> None:
    # M2, M6: what the index of a system does not take is refused, not cut
    def columns(name: str) -> str:
        return " ".join(
            compiled(CreateTable(table), name) for table in schema_of("t", None).tables.sorted_tables
        )

    for name, id_type, body_type in (
        ("mysql", "VARBINARY(2048)", "LONGBLOB"),
        ("mariadb", "VARBINARY(2048)", "LONGBLOB"),
        ("mssql", "VARBINARY(1600)", "VARBINARY(max)"),
        ("oracle", "RAW(2000)", "BLOB"),
        ("postgresql", "BYTEA", "BYTEA"),
    ):
        assert f" id {id_type} NOT NULL" in columns(name)
        assert f" name {id_type} NOT NULL" in columns(name)
        assert f" body {body_type} NOT NULL" in columns(name).replace("`body`", "body")
    assert columns("mysql").count("ENGINE=InnoDB") == 2


@pytest.mark.parametrize("name", ["mysql", "mariadb", "oracle", "mssql"])
def test_parameters_stay_within_the_limits(name: str) -> None:
    # Oracle takes 1,000 values in a list, SQL Server 2,100 parameters in a statement
    asked: list[int] = []

    class Connection:
        def execute(self, _statement: Any, parameters: Any) -> Any:
            if "ids" in parameters:
                asked.append(len(parameters["ids"]))
            return SimpleNamespace(scalars=list)

    rows = [{"conversation": 1, "id": str(number).encode()} for number in range(1234)]
    writes: Writes = dialect_of(name).writes(schema_of("t", None))
    writes.store(Connection(), rows)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert sum(asked) == 1234
    assert max(asked) + 1 <= 1000


def test_rows_are_locked_in_each_system() -> None:
    # M1: whoever writes to a conversation has its row
    schema = schema_of("t", None)
    for statement in (schema.lock, schema.lock_any, schema.lock_expired):
        for name in ("postgresql", "mysql", "mariadb", "oracle"):
            assert compiled(statement, name).endswith("FOR UPDATE")
        assert "WITH (UPDLOCK, ROWLOCK) WHERE" in compiled(statement, "mssql")


# --- writes without upserts, on the one database that is always there -------------------------------------


class PlainDialect(SqliteDialect):
    """SQLite, written to as systems without upserts are."""

    def writes(self, schema: Schema) -> Writes:
        return PlainWrites(schema)


def instead_of_sqlite(monkeypatch: pytest.MonkeyPatch, kind: type[SqliteDialect]) -> None:
    modules = {"here": SimpleNamespace(seam=kind)}
    monkeypatch.setitem(SYSTEMS, "sqlite", "here:seam")
    monkeypatch.setattr("entrepot_sql.dialects.import_module", modules.__getitem__)


def test_plain_writes_do_what_upserts_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # M1, M3, M8
    instead_of_sqlite(monkeypatch, PlainDialect)
    now = 1000.0
    memory = SqlChatMemoryRepository(f"sqlite:///{tmp_path}/chat.db", ttl=10, clock=lambda: now)
    with memory.connect():
        memory.append("c", [UserMessage("a", id="1"), UserMessage("b", id="2")])
        memory.append("c", [UserMessage("other", id="2"), UserMessage("c", id="3")])
        assert [(message.id, message.text) for message in memory.messages("c")] == [
            ("1", "a"),
            ("2", "b"),
            ("3", "c"),
        ]
        memory.replace("c", [UserMessage("z", id="2")])
        assert [message.text for message in memory.messages("c")] == ["z"]
        now += 11
        assert memory.messages("c") == []
        memory.append("c", [UserMessage("new", id="1")])  # a new conversation
        assert [message.text for message in memory.messages("c")] == ["new"]
        memory.append("c", [UserMessage(str(number), id=f"n{number}") for number in range(1203)])
        memory.append("c", [UserMessage(str(number), id=f"n{number}") for number in range(1203)])
        assert len(memory.messages("c")) == 1204


# --- what is refused before anything is sent --------------------------------------------------------------


class NarrowDialect(SqliteDialect):
    """SQLite, with an index as narrow as a system's."""


@pytest.mark.parametrize(("name", "longest"), [("oracle", 2000), ("mssql", 1600)])
def test_ids_that_an_index_does_not_take_are_refused(
    name: str, longest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # M6: loudly, and before the first byte
    assert dialect_of(name).id_bytes == longest
    monkeypatch.setattr(NarrowDialect, "id_bytes", longest)
    instead_of_sqlite(monkeypatch, NarrowDialect)
    memory = SqlChatMemoryRepository(f"sqlite:///{tmp_path}/chat.db")
    with memory.connect():
        longest_id, longer = ("\U0001f600" * (longest // 4 + more) for more in (0, 1))
        memory.append(longest_id, [UserMessage("a", id=longest_id)])
        assert [message.id for message in memory.messages(longest_id)] == [longest_id]
        for conversation, message_id in ((longer, "1"), ("c", longer)):
            for write in (memory.append, memory.replace):
                with pytest.raises(MessageError, match=f"at most {longest}"):
                    write(conversation, [UserMessage("a", id="x"), UserMessage("b", id=message_id)])
        assert memory.conversation_ids().items == [longest_id]


@pytest.mark.parametrize("prefix", ["", "Upper", "1digit", "x" * 45, HOSTILE, 'a"b', "a b", "ä"])
def test_names_of_tables_are_checked(prefix: str, tmp_path: Path) -> None:
    options: tuple[dict[str, Any], ...] = ({"table": prefix}, {"schema": prefix})
    for option in options:
        with pytest.raises(ConfigurationError, match="letters, digits"):
            SqlChatMemoryRepository(f"sqlite:///{tmp_path}/a.db", **option)
    assert list(tmp_path.iterdir()) == []


def test_two_memories_lie_in_one_database(tmp_path: Path) -> None:
    # M6: nothing leaks from one to the other
    url = f"sql+sqlite:///{tmp_path}/chat.db"
    engine = create_engine(f"sqlite:///{tmp_path}/chat.db")
    with (
        open_chat_memory("sql+sqlite://", client=engine, table="one") as one,
        open_chat_memory("sql+sqlite://", client=engine, table="two") as two,
    ):
        one.append("c", [UserMessage("of one", id="1")])
        two.append("c", [UserMessage("of two", id="1")])
    with open_chat_memory(f"{url}?table=one") as one:
        assert [message.text for message in one.messages("c")] == ["of one"]
    engine.dispose()


@pytest.mark.parametrize("name", ["postgresql", "mysql", "mariadb", "oracle"])
def test_a_url_without_a_database_is_refused(name: str) -> None:
    # E2
    with pytest.raises(ConfigurationError, match="which database"):
        open_chat_memory(f"sql+{name}://user@127.0.0.1")


def test_drivers_for_asyncio_are_refused() -> None:
    # E3: async calls run in worker threads
    with pytest.raises(ConfigurationError, match=r"sql\+postgresql\+psycopg://"):
        SqlChatMemoryRepository("postgresql+psycopg_async://user@127.0.0.1/db")


# --- errors -----------------------------------------------------------------------------------------------


class Failure(Exception):  # noqa: N818 - stands for a driver's
    sqlstate: str | None = None


def failure(*arguments: object, **attributes: object) -> Failure:
    error = Failure(*arguments)
    error.__dict__.update(attributes)
    return error


def oracle_failure(code: str) -> Failure:
    return failure(SimpleNamespace(full_code=code, isrecoverable=code in {"ORA-03113", "DPY-4011"}))


CASES: list[tuple[str, BaseException, type[Exception], bool]] = [
    ("postgresql", failure("x", sqlstate="40P01"), BackendError, True),
    ("postgresql", failure("x", sqlstate="57014"), OperationTimeoutError, True),
    ("postgresql", failure("x", sqlstate="28P01"), AuthenticationError, False),
    ("postgresql", failure("x", sqlstate="3D000"), ConfigurationError, False),
    ("postgresql", failure("x", sqlstate="53100"), BackendError, False),
    ("postgresql", failure("x", sqlstate="57P01"), UnreachableError, True),
    ("postgresql", failure("x", sqlstate="42501"), BackendError, False),
    ("mysql", failure(1213, "Deadlock"), BackendError, True),
    ("mysql", failure(1205, "Lock wait"), OperationTimeoutError, True),
    ("mysql", failure(1045, "Access denied"), AuthenticationError, False),
    ("mysql", failure(1049, "Unknown database"), ConfigurationError, False),
    ("mysql", failure(2013, "Lost connection (timed out)"), OperationTimeoutError, True),
    ("mysql", failure(2013, "Lost connection"), UnreachableError, True),
    ("mysql", failure(1142, "denied"), BackendError, False),
    ("mariadb", failure(1114, "full"), BackendError, False),
    ("oracle", oracle_failure("ORA-00060"), BackendError, True),
    ("oracle", oracle_failure("ORA-01017"), AuthenticationError, False),
    ("oracle", oracle_failure("ORA-12514"), ConfigurationError, False),
    ("oracle", oracle_failure("DPY-4024"), OperationTimeoutError, True),
    ("oracle", oracle_failure("DPY-4011"), UnreachableError, True),
    ("oracle", oracle_failure("ORA-01653"), BackendError, False),
    ("mssql", failure("40001", "Deadlock"), BackendError, True),
    ("mssql", failure("28000", "Login"), AuthenticationError, False),
    ("mssql", failure("HYT00", "Timeout"), OperationTimeoutError, True),
    ("mssql", failure("08S01", "Link"), UnreachableError, True),
    ("mssql", failure("42000", "Syntax"), BackendError, False),
]


@pytest.mark.parametrize(("name", "error", "kind", "retryable"), CASES)
def test_codes_have_their_class(
    name: str, error: BaseException, kind: type[Exception], retryable: bool
) -> None:
    # E1: by code, never by message, and no message of a driver comes through
    told = dialect_of(name).fault(error, "the database 'd'", ending=False)
    assert type(told) is kind
    assert told.retryable is retryable
    assert told.outcome == "not_done"
    for part in ("Deadlock", "denied", "Access", "Lost", "Lock wait"):
        assert part not in str(told)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("postgresql", failure("x", sqlstate="57P01")),
        ("mysql", failure(2013, "Lost connection")),
        ("oracle", oracle_failure("ORA-03113")),
        ("mssql", failure("08S01", "Link")),
    ],
)
def test_a_connection_that_breaks_at_the_commit_leaves_it_open_what_became_of_it(
    name: str, error: Failure
) -> None:
    # E4
    assert dialect_of(name).fault(error, "d", ending=True).outcome == "unknown"
    assert dialect_of(name).fault(error, "d", ending=False).outcome == "not_done"


def test_labels_hold_no_secret() -> None:
    # E1
    url = URL.create("oracle+oracledb", "me", "s3cret", "h", query={"service_name": "orders"})
    assert dialect_of("oracle").label(url) == "orders"
    assert dialect_of("mysql").label(URL.create("mysql+pymysql", "me", "s3cret", "h", None, "chat")) == "chat"
