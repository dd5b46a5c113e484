"""Opening by URL, config and client; files that are not ours; several processes at once (E2, E5)."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import URL, Engine, create_engine
from sqlalchemy.pool import NullPool, StaticPool

from entrepot import UserMessage, aopen_chat_memory, open_chat_memory
from entrepot.errors import (
    ConfigurationError,
    CorruptDataError,
    DriverNotFoundError,
    EntrepotError,
    UnknownOptionError,
    UnreachableError,
)
from entrepot_sql import SqlChatMemoryRepository, SqlConfig
from entrepot_sql.postgresql import PostgresqlDialect

if TYPE_CHECKING:
    from pathlib import Path

HELLO = UserMessage("hello", id="1")


def opened(*arguments: Any, **options: Any) -> SqlChatMemoryRepository:
    memory = open_chat_memory(*arguments, **options)
    assert isinstance(memory, SqlChatMemoryRepository)
    return memory


@pytest.fixture
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the test's folder."""
    monkeypatch.chdir(tmp_path)


def test_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with opened("sql+sqlite:///relative.db?timeout=2.5&ttl=60") as memory:
        assert (memory.timeout, memory.ttl, memory.backend, memory.namespace) == (
            2.5,
            60,
            "sqlite",
            "relative.db",
        )
        memory.append("c", [HELLO])
    assert (tmp_path / "relative.db").exists()
    (tmp_path / "a folder ä").mkdir()
    absolute = tmp_path / "a folder ä" / "chat 100%.db"
    with opened(f"sql+sqlite+pysqlite:///{tmp_path}/a%20folder%20%C3%A4/chat%20100%25.db", ttl=5) as memory:
        assert memory.ttl == 5
        memory.append("c", [HELLO])
    assert absolute.exists()
    with SqlChatMemoryRepository(f"sqlite:///{absolute}").connect() as memory:
        assert memory.messages("c") == [HELLO]
    with opened(SqlConfig(database=str(absolute)), timeout=3) as memory:
        assert memory.messages("c") == [HELLO]
        assert memory.timeout == 3


@pytest.mark.parametrize("url", ["sql+sqlite://", "sql+sqlite:///", "sql+sqlite:///:memory:"])
def test_a_memory_without_file_is_private(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with opened(url) as one, opened(url) as other:
        one.append("c", [HELLO])
        assert one.messages("c") == [HELLO]
        assert other.conversation_ids().items == []
    assert list(tmp_path.iterdir()) == []


async def test_opening_has_its_twin(tmp_path: Path) -> None:
    # E3
    async with await aopen_chat_memory(f"sql+sqlite:///{tmp_path}/chat.db") as memory:
        await memory.aappend("c", [HELLO])
        assert await memory.amessages("c") == [HELLO]


@pytest.mark.parametrize(
    ("url", "options", "error", "says"),
    [
        ("sql://", {}, ConfigurationError, "which database system"),
        ("sql:///chat.db", {}, ConfigurationError, "sql\\+sqlite"),
        ("sql+nosuch:///chat.db", {}, ConfigurationError, "nosuch"),
        ("sql+sqlite+nosuch:///chat.db", {}, ConfigurationError, "nosuch"),
        ("sql+sqlite+aiosqlite:///chat.db", {}, EntrepotError, "aiosqlite"),
        ("sql+sqlite://chat.db", {}, ConfigurationError, "three slashes"),
        ("sql+sqlite://user:s3cret@host/chat.db", {}, ConfigurationError, "user"),
        ("sql+sqlite:///chat.db?tll=5", {}, UnknownOptionError, "ttl"),
        ("sql+sqlite:///chat.db?ttl=soon", {}, ConfigurationError, "ttl"),
        ("sql+sqlite:///chat.db?ttl=-1", {}, ConfigurationError, "ttl"),
        ("sql+sqlite:///chat.db?timeout=0", {}, ValueError, "timeout"),
        ("sql+sqlite:///chat.db?ttl=5", {"ttl": 5}, ConfigurationError, "twice"),
        ("sql+sqlite:///chat.db", {"colour": 5}, UnknownOptionError, "colour"),
        ("sql+sqlite:///no/such/folder/chat.db", {}, UnreachableError, "folder exists"),
    ],
)
@pytest.mark.usefixtures("inside")
def test_what_is_wrong_is_said(
    url: str, options: dict[str, Any], error: type[Exception], says: str, tmp_path: Path
) -> None:
    # E2
    with pytest.raises(error, match=says) as caught:
        opened(url, **options)
    assert "s3cret" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_text_that_is_no_url_is_not_repeated() -> None:
    # E1: it may hold a password
    with pytest.raises(ConfigurationError) as caught:
        SqlChatMemoryRepository("user:s3cret@host")
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_missing_driver_is_named() -> None:
    # E2
    with pytest.raises(DriverNotFoundError, match="pysqlcipher3"):
        SqlChatMemoryRepository("sqlite+pysqlcipher:///chat.db")


def test_a_password_never_shows() -> None:
    # E1
    from rich.pretty import pretty_repr

    config = SqlConfig(
        engine="postgresql+psycopg", user="me", password="s3cret", host="127.0.0.1", port=9, database="d"
    )
    for text in (repr(config), str(config), f"{config}", pretty_repr(config)):
        assert "s3cret" not in text
        assert "'me'" in text
    with pytest.raises(UnreachableError) as caught:
        opened(config, timeout=2)
    assert "s3cret" not in f"{caught.value} {caught.value.__cause__}"


def test_a_url_hands_parameters_to_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    # E2: an option that is a dict is named part by part, and shown by none, as one may be a secret
    seen: list[URL] = []

    def refuse(_self: object, url: URL, _timeout: float) -> Engine:
        seen.append(url)
        raise ConfigurationError("seen")

    monkeypatch.setattr(PostgresqlDialect, "make_engine", refuse)
    url = "sql+postgresql://h/d?parameters.sslmode=require&parameters.sslpassword=s3cret&schema=chat"
    with pytest.raises(ConfigurationError, match="seen"):
        opened(url)
    assert dict(seen[0].query) == {"sslmode": "require", "sslpassword": "s3cret"}
    assert "s3cret" not in repr(SqlConfig(parameters={"sslpassword": "s3cret"}))
    for twice in ("parameters=x&parameters.a=b", "parameters.a=b&parameters=x"):
        with pytest.raises(ConfigurationError, match="'parameters' twice"):
            opened(f"sql+postgresql://h/d?{twice}")
    with pytest.raises(UnknownOptionError, match="parameters"):
        opened("sql+postgresql://h/d?parameter.sslmode=require")


def test_a_client_is_used_and_stays_open(tmp_path: Path) -> None:
    # E5
    engine = create_engine(f"sqlite:///{tmp_path}/app.db")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE of_the_application (x)")
    with opened("sql+sqlite://", client=engine) as memory:
        assert memory.native_client is engine
        memory.append("c", [HELLO])
        memory.replace("c", [HELLO, UserMessage("again", id="2")])
        memory.truncate("c", after="1")
        assert memory.messages("c") == [HELLO]
    with SqlChatMemoryRepository(engine).connect() as memory:
        assert memory.messages("c") == [HELLO]
    with engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM of_the_application").scalar_one() == 0
    engine.dispose()


def test_a_client_that_cannot_keep_the_contract_is_refused(tmp_path: Path) -> None:
    # E5
    for engine in (
        create_engine("sqlite://"),
        create_engine(f"sqlite:///{tmp_path}/a.db", poolclass=StaticPool),
    ):
        with pytest.raises(ConfigurationError, match="threads"):
            opened("sql+sqlite://", client=engine)
        engine.dispose()
    engine = create_engine(f"sqlite:///{tmp_path}/a.db", poolclass=NullPool)
    with pytest.raises(ConfigurationError, match="says where"):
        opened("sql+sqlite:///b.db", client=engine)
    with pytest.raises(ConfigurationError, match="sql\\+sqlite"):
        opened("sql+postgresql://", client=engine)
    client: Any
    for client in ("sqlite://", 5, sqlite3.connect(":memory:")):
        with pytest.raises(ConfigurationError, match="Engine"):
            opened("sql+sqlite://", client=client)
        if isinstance(client, sqlite3.Connection):
            client.close()
    with opened("sql+sqlite://", client=engine) as memory:
        memory.append("c", [HELLO])
    engine.dispose()


def test_the_settings_promise_durability(tmp_path: Path) -> None:
    # what returned survives a crash of the machine because of these
    with opened(f"sql+sqlite:///{tmp_path}/chat.db") as memory, memory.native_client.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 2  # FULL


def test_files_that_are_not_ours_are_refused_and_left_alone(tmp_path: Path) -> None:
    # D5 in spirit: nothing is put into another program's file unasked
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    text = tmp_path / "text.db"
    text.write_text("this is not a database, but it is long enough to be taken for one " * 20)
    before = other.read_bytes(), text.read_bytes()
    with pytest.raises(CorruptDataError, match="other software"):
        opened(f"sql+sqlite:///{other}")
    with pytest.raises(CorruptDataError, match="no SQLite file") as caught:
        opened(f"sql+sqlite:///{text}")
    assert isinstance(caught.value.__cause__, sqlite3.DatabaseError)
    with pytest.raises(UnreachableError) as unreachable:
        opened(f"sql+sqlite:///{tmp_path}")
    assert isinstance(unreachable.value.__cause__, sqlite3.OperationalError)
    assert not unreachable.value.retryable
    assert (other.read_bytes(), text.read_bytes()) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.db", "text.db"]


def test_a_file_of_the_embedded_store_is_refused(tmp_path: Path) -> None:
    from entrepot import Document, open_vector_store

    with open_vector_store(f"simple:///{tmp_path}/s.db") as store:
        store.add([Document("a", vector=[1.0])])
    with pytest.raises(CorruptDataError, match="other software"):
        opened(f"sql+sqlite:///{tmp_path}/s.db")
    with opened(f"sql+sqlite:///{tmp_path}/chat.db") as memory:
        memory.append("c", [HELLO])
    with pytest.raises(CorruptDataError, match="other software"):
        open_vector_store(f"simple:///{tmp_path}/chat.db")


def test_another_layout_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "chat.db"
    with opened(f"sql+sqlite:///{path}") as memory:
        memory.append("c", [HELLO])
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name, version FROM entrepot_layout").fetchall() == [("chat memory", 1)]
    connection.execute("UPDATE entrepot_layout SET version = 2")
    connection.commit()
    connection.close()
    with pytest.raises(CorruptDataError, match="layout 2"):
        opened(f"sql+sqlite:///{path}")


FILES, PROCESSES, BATCHES = 12, 3, 5
OPENER = textwrap.dedent("""
    import sys
    from entrepot import UserMessage, open_chat_memory
    from entrepot_sql import sqlite
    print("ready", flush=True)
    sys.stdin.readline()
    folder, me, files, batches = sys.argv[1], *map(int, sys.argv[2:])
    for file in range(files):
        with open_chat_memory(f"sql+sqlite:///{folder}/{file}.db") as memory:
            for number in range(batches):
                memory.append("c", [UserMessage("x", id=f"{me} {number} {part}") for part in range(3)])
""")


def test_several_processes_may_open_a_new_file_at_once(tmp_path: Path) -> None:
    # M3, E5: the tables are made once; writers of all processes lose and split nothing
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, str(tmp_path), *map(str, (me, FILES, BATCHES))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for me in range(PROCESSES)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    for file in range(FILES):
        with opened(f"sql+sqlite:///{tmp_path}/{file}.db") as memory:
            ids = [message.id for message in memory.messages("c")]
        assert len(ids) == PROCESSES * BATCHES * 3
        pieces = [ids[start : start + 3] for start in range(0, len(ids), 3)]
        assert all(len({name.rpartition(" ")[0] for name in piece}) == 1 for piece in pieces)
        for me in range(PROCESSES):
            own = [name for name in ids if name.startswith(f"{me} ")]
            assert own == [f"{me} {number} {part}" for number in range(BATCHES) for part in range(3)]


def test_the_plugin_loads_no_driver_until_it_is_used() -> None:
    code = """
        import sys
        from entrepot.plugins import plugin_manager
        (info,) = [info for info in plugin_manager().plugins() if info.name == "sql"]
        print(info.provides, info.error, "sqlalchemy" in sys.modules, "entrepot_conformance" in sys.modules)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "('chat memory',) None False False\n"
