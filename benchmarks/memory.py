"""Chat memory in SQLite, against `sqlite3` by hand with the same durability and the same JSON codec's work."""

from __future__ import annotations

import itertools
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from benchmarks.measure import Line, medians, ratio

from entrepot import UserMessage, open_chat_memory
from entrepot.messages import encode_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from entrepot import ChatMemoryRepository

TEXT = "What one says to another in a chat, now and then somewhat longer. " * 4
SHORT, MIDDLE, LONG = 20, 2_000, 20_000
TAIL = 20


def lines() -> Iterator[Line]:
    """Yield a line for each goal."""
    with tempfile.TemporaryDirectory() as folder:
        plain = by_hand(Path(folder, "plain.db"))
        with open_chat_memory(f"sql+sqlite:///{folder}/chat.db") as memory:
            for size in (SHORT, 200, MIDDLE, LONG):
                memory.append(str(size), messages(size))
            yield from appending(memory, plain)
            yield loading(memory, plain)
            yield from tails(memory)
        plain.close()


def messages(count: int) -> list[UserMessage]:
    """Return messages with ids of their own."""
    return [UserMessage(TEXT, metadata={"number": number}) for number in range(count)]


def by_hand(path: Path) -> sqlite3.Connection:
    """Return a connection with the least table for an ordered log; write-ahead log, each commit synchronised."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(
        "CREATE TABLE message (conversation TEXT, place INTEGER, body BLOB, PRIMARY KEY (conversation, place))"
    )
    return connection


def appending(memory: ChatMemoryRepository, plain: sqlite3.Connection) -> Iterator[Line]:
    """One message to conversations of three lengths, against one INSERT in a transaction of its own."""
    places = itertools.count()

    def insert() -> None:
        body = encode_message(UserMessage(TEXT, metadata={"number": 1}))
        plain.execute("BEGIN IMMEDIATE")
        plain.execute("INSERT INTO message VALUES ('append', ?, ?)", (next(places), body))
        plain.execute("COMMIT")

    def append(size: int) -> Callable[[], None]:
        return lambda: memory.append(str(size), [UserMessage(TEXT, metadata={"number": 1})])

    bare, short, middle, long = medians(insert, append(SHORT), append(MIDDLE), append(LONG), repetitions=400)
    for size, time in ((SHORT, short), (MIDDLE, middle), (LONG, long)):
        name = f"memory: append one message to {size:,}, against a bare INSERT"
        yield Line(name, 3.0, ratio=time / bare, plain=f"{bare * 1e6:,.0f} us")
    for size, time in ((MIDDLE, middle), (LONG, long)):
        name = f"memory: append to {size:,}, against append to {SHORT}"
        yield Line(name, 1.2, ratio=time / short, plain=f"{short * 1e6:,.0f} us")


def loading(memory: ChatMemoryRepository, plain: sqlite3.Connection) -> Line:
    """All of a conversation, against reading as many rows and decoding their JSON."""
    rows = [(number, encode_message(message)) for number, message in enumerate(messages(MIDDLE))]
    with plain:
        plain.execute("BEGIN")
        plain.executemany("INSERT INTO message VALUES ('load', ?, ?)", rows)

    def load() -> list[object]:
        query = "SELECT body FROM message WHERE conversation = 'load' ORDER BY place"
        return [msgspec.json.decode(body) for (body,) in plain.execute(query)]

    memory.replace("load", messages(MIDDLE))
    name = f"memory: load {MIDDLE:,} messages, against rows and JSON"
    return ratio(name, 2.0, lambda: memory.messages("load"), load)


def tails(memory: ChatMemoryRepository) -> Iterator[Line]:
    """The newest messages of a long conversation, against those of a short one."""

    def tail(size: int) -> Callable[[], object]:
        return lambda: memory.messages(str(size), last=TAIL)

    long, short = medians(tail(LONG), tail(200), repetitions=400)
    name = f"memory: the newest {TAIL} of {LONG:,}, against of 200"
    yield Line(name, 1.2, ratio=long / short, plain=f"{short * 1e6:,.0f} us")
    long, short = medians(
        lambda: memory.latest(str(LONG), "user"), lambda: memory.latest("200", "user"), repetitions=400
    )
    name = f"memory: the newest of a role in {LONG:,}, against in 200"
    yield Line(name, 1.2, ratio=long / short, plain=f"{short * 1e6:,.0f} us")
