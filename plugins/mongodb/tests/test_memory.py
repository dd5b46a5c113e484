# pyright: reportPrivateUsage=false
"""Conversations on a server: what the suite does not ask. M1, M3, M4, M5, M7, M8, M9, W2."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import AssistantMessage, Message, SystemMessage, UserMessage
from entrepot.errors import BackendError, UnreachableError
from entrepot_mongodb import conversations
from entrepot_mongodb import log as log_module
from entrepot_mongodb.commands import Find, insert
from entrepot_mongodb.log import key

if TYPE_CHECKING:
    from plugins.mongodb.tests.servers import Remember
    from pymongo.database import Database

    from entrepot_mongodb import MongoDBChatMemoryRepository

pytestmark = pytest.mark.slow  # there is no server but in a container

LARGE = "x" * 3_000_000


def said(*texts: str) -> list[Message]:
    return [UserMessage(text) for text in texts]


def texts(memory: MongoDBChatMemoryRepository, name: str = "c", last: int | None = None) -> list[str]:
    return [message.text for message in memory.messages(name, last=last)]


def log(database: Database[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(database["talk.log"].find(), key=lambda entry: entry["_id"])


def test_the_layout(remember: Remember, database: Database[dict[str, Any]]) -> None:
    memory = remember()
    first: list[Message] = [SystemMessage("s"), UserMessage("u")]
    second: list[Message] = [AssistantMessage("a")]
    memory.append("c", first)
    memory.append("c", second)
    one, two = log(database)
    assert (one["_id"], two["_id"]) == ("c\x00000000000001", "c\x00000000000002")
    assert (one["b"], two["b"]) == (1, 1)
    assert (one["r"], two["r"]) == ("su", "a")
    assert one["i"] == [message.id for message in first]
    assert two["p"] == {"s": [1, 0], "u": [1, 1], "a": [2, 0]}
    assert list(database["talk.heads"].find()) == [{"_id": "c", "s": 1}]


def test_an_append_changes_nothing_that_is_stored(
    remember: Remember, database: Database[dict[str, Any]]
) -> None:
    # M3
    memory = remember()
    for n in range(5):
        before = log(database)
        memory.append("c", said(str(n)))
        assert log(database)[: len(before)] == before


def test_a_batch_of_which_a_part_is_known(remember: Remember, database: Database[dict[str, Any]]) -> None:
    # M3
    memory = remember()
    batch = said("a", "b", "c")
    memory.append("c", batch[:2])
    memory.append("c", batch)
    memory.append("c", batch)
    assert texts(memory) == ["a", "b", "c"]
    assert len(log(database)) == 2


def test_replace_and_delete_free_the_room(remember: Remember, database: Database[dict[str, Any]]) -> None:
    # M4, M5
    memory = remember()
    memory.append("c", said("a"))
    memory.append("c", said("b"))
    memory.replace("c", said("x", "y"))
    assert texts(memory) == ["x", "y"]
    assert [entry["s"] for entry in log(database)] == [3]
    memory.delete("c")
    assert texts(memory) == []
    (left,) = log(database)
    assert left["d"] is True
    assert left["i"] == left["m"] == []
    assert list(database["talk.heads"].find()) == []
    memory.append("c", said("again"))
    assert texts(memory) == ["again"]
    assert memory.conversation_ids(limit=10).items == ["c"]


def test_more_messages_than_a_document_holds(remember: Remember, database: Database[dict[str, Any]]) -> None:
    # M3, M4: they are written in parts first, and are there at once
    memory = remember()
    many = [SystemMessage("s"), *said(*(f"{n}{LARGE}" for n in range(8)))]
    memory.append("c", many)
    assert len(log(database)) > 1
    assert texts(memory) == [message.text for message in many]
    assert texts(memory, last=2) == [message.text for message in many[-2:]]
    latest = memory.latest("c", "system")
    assert latest is not None
    assert latest.text == "s"
    newest = memory.latest("c", "user")
    assert newest is not None
    assert newest.text == many[-1].text
    memory.append("c", many)  # known by their ids
    assert len(memory.messages("c")) == 9
    memory.truncate("c", after=many[6].id)
    assert texts(memory) == [message.text for message in many[:7]]
    memory.replace("c", said("x"))
    assert [entry["_id"] for entry in log(database)] == [key("c", 3)]
    memory.replace("c", many)
    memory.delete("c")
    assert len(log(database)) == 1


def test_one_message_that_is_too_long_is_told(remember: Remember) -> None:
    memory = remember()
    memory.append("c", said("a"))
    with pytest.raises((BackendError, ValueError), match="16 MiB"):
        memory.append("c", said("x" * 17_000_000))
    assert texts(memory) == ["a"]


def test_a_reader_never_sees_a_gap(remember: Remember) -> None:
    # M1, M4
    memory, other = remember(), remember()
    memory.append("c", said("0-0"))
    done = threading.Event()
    errors: list[BaseException] = []

    def guarded(function: Any) -> Any:
        def run() -> None:
            try:
                function()
            except BaseException as error:  # noqa: BLE001 - told below
                errors.append(error)
                done.set()

        return run

    def replace() -> None:
        for n in range(1, 60):
            memory.replace("c", said(*(f"{n}-{m}" for m in range(20))))
            other.append("c", said(f"{n}-20"))
        done.set()

    def read() -> None:
        while not done.is_set():
            found = texts(other)
            generation = found[0].partition("-")[0]
            assert found == [f"{generation}-{m}" for m in range(len(found))]
            assert len(found) in (1, 20, 21)

    threads = [threading.Thread(target=guarded(one)) for one in (replace, read, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


def test_a_replace_whose_answer_is_lost_is_not_done_twice(
    remember: Remember, monkeypatch: pytest.MonkeyPatch
) -> None:
    # M4, E4: what was appended after it stays
    memory, other = remember(), remember()
    memory.append("c", said("old"))
    real = insert

    def lossy(name: str, entry: Any) -> Any:
        if entry.get("c") == "c":
            monkeypatch.setattr(conversations, "insert", real)
            other._server.run(_alone(real(name, entry)))
            other.append("c", said("after"))
            raise UnreachableError("the connection broke", outcome="unknown")
        return real(name, entry)

    monkeypatch.setattr(conversations, "insert", lossy)
    memory.replace("c", said("new"))
    assert texts(memory) == ["new", "after"]


def _alone(call: Any) -> Any:
    yield call


def test_what_was_announced_and_never_came_is_not_listed(
    remember: Remember, database: Database[dict[str, Any]]
) -> None:
    # M9: a writer that broke off before its entry, of a new conversation and of old ones
    memory = remember()
    for name in ("deleted", "lives", "replaced"):
        memory.append(name, said("a"))
    memory.delete("deleted")
    heads = database["talk.heads"]
    heads.insert_one({"_id": "never", "s": 1})
    heads.insert_one({"_id": "deleted", "s": 3})
    heads.update_one({"_id": "replaced"}, {"$set": {"s": 2}})
    assert memory.conversation_ids(limit=10).items == ["lives", "replaced"]
    memory.append("replaced", said("b"))
    memory.append("never", said("now"))
    assert memory.conversation_ids(limit=10).items == ["lives", "never", "replaced"]
    assert texts(memory, "replaced") == ["a", "b"]


def test_listing_goes_by_pages(remember: Remember) -> None:
    # M9
    memory = remember()
    names = [f"{n:03}" for n in range(25)]
    for name in names:
        memory.append(name, said("a"))
    for name in names[::3]:
        memory.delete(name)
    wanted = [name for name in names if name not in names[::3]]
    found: list[str] = []
    token: str | None = None
    while True:
        page = memory.conversation_ids(limit=4, cursor=token)
        found += page.items
        token = page.token
        if token is None:
            break
    assert found == wanted


def test_expiry_is_the_newest_writers(remember: Remember, database: Database[dict[str, Any]]) -> None:
    # M8
    short, plain = remember(ttl=0.4), remember()
    plain.append("never", said("a"))
    short.append("soon", said("a"))
    short.append("kept", said("a"))
    plain.append("soon", said("b"))  # keeps what is set
    remember(ttl=1000).append("kept", said("b"))
    assert plain.conversation_ids(limit=10).items == ["kept", "never", "soon"]
    time.sleep(0.5)  # the server's clock decides, so nothing else can be awaited
    assert plain.conversation_ids(limit=10).items == ["kept", "never"]
    assert texts(plain, "soon") == []
    assert plain.latest("soon", "user") is None
    assert texts(plain, "kept") == ["a", "b"]
    assert short.remove_expired() == 1
    assert short.remove_expired() == 0
    assert [entry["_id"] for entry in database["talk.log"].find({"c": "soon", "d": {"$ne": True}})] == []
    plain.append("soon", said("anew"))
    assert texts(plain, "soon") == ["anew"]
    assert plain.conversation_ids(limit=10).items == ["kept", "never", "soon"]


def test_a_known_batch_renews_the_expiry(remember: Remember) -> None:
    # M8: a write is a write
    memory = remember(ttl=1.0)
    batch = said("a")
    memory.append("c", batch)
    ends = time.monotonic() + 1.3
    while time.monotonic() < ends:
        memory.append("c", batch)
    assert texts(memory) == ["a"]
    assert texts(memory, last=1) == ["a"]
    newest = memory.latest("c", "user")
    assert newest is not None
    assert newest.text == "a"


def test_reading_passes_over_renewals_in_one_step(
    remember: Remember, database: Database[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # M7, M8: whatever their number
    memory = remember(ttl=1000)
    first, second = said("a", "b"), said("c")
    memory.append("c", first)
    for batch in (first, second):
        memory.append("c", batch)
        for _ in range(30):
            memory.append("c", batch)
    assert len(log(database)) > 60
    asked = 0
    real = Find

    def counted(*given: Any, **options: Any) -> Any:
        nonlocal asked
        asked += 1
        return real(*given, **options)

    monkeypatch.setattr(log_module, "Find", counted)
    for last, expected in ((1, ["c"]), (2, ["b", "c"]), (9, ["a", "b", "c"]), (None, ["a", "b", "c"])):
        assert texts(memory, last=last) == expected
    assert asked <= 12
    memory.truncate("c", after=first[1].id)
    assert texts(memory) == ["a", "b"]


def test_memories_of_different_names_are_apart(remember: Remember) -> None:
    # M6
    one, two = remember(memory="one"), remember(memory="x y")
    one.append("c", said("1"))
    two.append("c", said("2"))
    assert (texts(one), texts(two)) == (["1"], ["2"])


def test_indexes_are_made_once(remember: Remember, database: Database[dict[str, Any]]) -> None:
    remember().append("c", said("a"))
    keys = [index["key"] for index in database["talk.log"].list_indexes()]
    assert keys == [{"_id": 1}, {"c": 1, "i": 1}, {"z": 1}]
