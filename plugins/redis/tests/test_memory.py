"""The memory on its server: expiry and what is left of it, questions, capabilities; what the suite does not see."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

from entrepot import AssistantMessage, SystemMessage, UserMessage
from entrepot.errors import ConfigurationError, CorruptDataError, UnsupportedError

if TYPE_CHECKING:
    from plugins.redis.tests.servers import MakeMemory


def keys_of(admin: Any, namespace: str) -> set[bytes]:
    return {key[len(namespace) + 1 :] for key in admin.keys(f"{namespace}/*")}


def test_what_lies_in_the_server(make_memory: MakeMemory, admin: Any, namespace: str) -> None:
    memory = make_memory(ttl=100)
    memory.append("c", [SystemMessage("s", id="1"), UserMessage("u", id="2")])
    assert keys_of(admin, namespace) == {
        b"log/c", b"ids/c", b"conversations", b"heads", b"due", b"generation", b"said/1/0", b"said/1/1",
    }  # fmt: skip
    ids = admin.hgetall(f"{namespace}/ids/c")
    assert ids == {b"1": b"0", b"2": b"1", b"\0g": b"1", b"\0l": b"100000", b"\0s": b"0", b"\0u": b"1"}
    assert 90_000 < admin.pttl(f"{namespace}/log/c") <= 100_000
    assert admin.pexpiretime(f"{namespace}/log/c") == admin.pexpiretime(f"{namespace}/ids/c")
    memory.delete("c")
    assert keys_of(admin, namespace) == {b"generation", b"heads"}
    assert admin.hgetall(f"{namespace}/heads") == {b"index": b"1"}


def test_questions_ignore_what_expired_and_the_sweep_removes_it(
    make_memory: MakeMemory, admin: Any, namespace: str
) -> None:
    # M8, M10
    keeping, memory = make_memory(), make_memory(ttl=0.2)
    keeping.append("kept", [UserMessage(f"hello {n}", id=f"{n}") for n in range(3)])
    memory.append("brief", [UserMessage(f"hello {n}", id=f"{n}") for n in range(1200)])
    while memory.messages("brief"):
        time.sleep(0.01)
    assert {hit.conversation_id for hit in memory.search(text="hello", limit=5000)} == {"kept"}
    assert memory.conversation_ids().items == ["kept"]
    assert len([key for key in keys_of(admin, namespace) if key.startswith(b"said/")]) == 1203
    while not memory.remove_expired():  # whole seconds count there
        time.sleep(0.05)
    said = [key for key in keys_of(admin, namespace) if key.startswith(b"said/")]
    assert len(said) == 3
    assert admin.zrange(f"{namespace}/conversations", 0, -1) == [b"kept"]
    assert memory.remove_expired() == 0
    assert len(memory.search(text="hello")) == 3


def test_a_conversation_that_begins_anew_is_not_swept(
    make_memory: MakeMemory, admin: Any, namespace: str
) -> None:
    # M8, M10
    memory = make_memory(ttl=0.1)
    memory.append("c", [UserMessage("old", id="1"), UserMessage("old too", id="2")])
    while memory.messages("c"):
        time.sleep(0.01)
    lasting = make_memory(ttl=1000)
    lasting.append("c", [UserMessage("new", id="1")])
    end = time.monotonic() + 10
    while not lasting.remove_expired():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert [message.text for message in lasting.messages("c")] == ["new"]
    assert [hit.message.text for hit in lasting.search()] == ["new"]
    assert lasting.conversation_ids().items == ["c"]
    assert admin.zcard(f"{namespace}/due") == 1


def test_the_sweep_leaves_the_living_alone(make_memory: MakeMemory, admin: Any, namespace: str) -> None:
    # M8: even where the note of their end is wrong
    memory = make_memory(ttl=1000)
    for name in ("a", "b"):
        memory.append(name, [UserMessage("x", id="1")])
    admin.zadd(f"{namespace}/due", {"1": 1, "2": 1, "77": 1})
    admin.persist(f"{namespace}/ids/b")
    assert memory.remove_expired() == 0
    assert memory.conversation_ids().items == ["a", "b"]
    assert len(memory.search()) == 2
    assert admin.zrange(f"{namespace}/due", 0, -1) == [b"1"]
    assert admin.zscore(f"{namespace}/due", "1") == admin.pexpiretime(f"{namespace}/ids/a")


def test_the_latest_of_a_role_after_a_cut(make_memory: MakeMemory) -> None:
    # W2, M4: the chain of places leads back past what was cut
    memory = make_memory()
    roles = [
        SystemMessage,
        UserMessage,
        AssistantMessage,
        UserMessage,
        SystemMessage,
        UserMessage,
        AssistantMessage,
    ]
    memory.append("c", [kind(f"{n}", id=f"{n}") for n, kind in enumerate(roles)])
    for keep in (5, 3, 1, 0):
        memory.truncate("c", after=f"{keep}")
        for role in ("system", "user", "assistant", "tool"):
            expected = [n for n in range(keep + 1) if roles[n]("x").role == role]
            latest = memory.latest("c", role)
            assert (None if latest is None else latest.id) == (str(expected[-1]) if expected else None)
    memory.append("c", [AssistantMessage("again", id="6"), UserMessage("u", id="7")])
    assert [message.id for message in memory.messages("c")] == ["0", "6", "7"]
    assert {hit.message.id for hit in memory.search()} == {"0", "6", "7"}


def test_many_messages_of_one_instant(make_memory: MakeMemory) -> None:
    # M10: more than a page of the same time; by conversation, then the later first
    memory = make_memory()
    first = UserMessage("x", id="0")
    for name in ("b", "a"):
        memory.append(name, [UserMessage("x", id=f"{n}", created=first.created) for n in range(300)])
    memory.append("c", [UserMessage("newer", id="n")])
    expected = [("c", "n")] + [(name, f"{n}") for name in ("a", "b") for n in range(299, -1, -1)]
    for limit in (1, 2, 250, 601, 1000):
        hits = memory.search(limit=limit)
        assert [(hit.conversation_id, hit.message.id) for hit in hits] == expected[:limit]


def test_questions_can_be_left_out(make_memory: MakeMemory, admin: Any, namespace: str) -> None:
    # M10
    memory = make_memory(questions=False)
    assert memory.capabilities.memory_search is False
    memory.append("c", [UserMessage("u", id="1")])
    assert not any(key.startswith(b"said/") for key in keys_of(admin, namespace))
    with pytest.raises(UnsupportedError):
        memory.search(text="u")


def test_another_database_has_no_questions(make_memory: MakeMemory, namespace: str) -> None:
    # M10: Redis has indexes in database 0 alone
    memory = make_memory(db=5)
    memory.append("c", [UserMessage("u", id="1")])
    assert memory.capabilities.memory_search is False
    assert make_memory().messages("c") == []
    memory.delete("c")
    native: Any = memory.native_client
    native.delete(f"{namespace}/generation")
    with pytest.raises(ConfigurationError, match="questions"):
        make_memory(db=5, questions=True)


def test_a_server_that_was_emptied_begins_anew(make_memory: MakeMemory, admin: Any, namespace: str) -> None:
    memory = make_memory()
    memory.append("c", [UserMessage("u", id="1")])
    admin.execute_command("FT.DROPINDEX", f"{namespace}/said")
    for key in admin.keys(f"{namespace}/*"):
        admin.delete(key)
    assert memory.messages("c") == []
    assert memory.search() == []
    memory.append("c", [UserMessage("u", id="1")])
    assert len(memory.search()) == 1


@pytest.mark.parametrize("protocol", [2, 3])
def test_both_protocols_and_colours(make_memory: MakeMemory, protocol: int) -> None:
    memory = make_memory(protocol=protocol, ttl=50)

    async def work() -> None:
        await memory.aappend("c", [UserMessage(f"u {n}", id=f"{n}", metadata={"n": n}) for n in range(300)])
        assert len(await memory.amessages("c")) == 300
        assert [hit.message.id for hit in await memory.asearch(metadata={"n": 7.0})] == ["7"]
        await memory.areplace("c", [UserMessage("new", id="n")])
        latest = await memory.alatest("c", "user")
        assert latest is not None
        assert latest.text == "new"
        assert await memory.aremove_expired() == 0
        assert (await memory.aconversation_ids()).items == ["c"]
        await memory.atruncate("c", after="n")
        await memory.adelete("c")

    asyncio.run(work())
    assert memory.messages("c") == []


def test_what_a_memory_without_questions_wrote_is_found_by_one_with(
    make_memory: MakeMemory, admin: Any, namespace: str
) -> None:
    # M10: never a silent drop
    without, answering = make_memory(questions=False), make_memory()
    without.append("a", [UserMessage(f"old {n}", id=f"{n}", metadata={"n": n}) for n in range(3)])
    without.append("b", [UserMessage("old", id="b")])
    assert [hit.message.text for hit in answering.search(text="old", role="user", metadata={"n": 1})] == [
        "old 1"
    ]
    answering.append("a", [UserMessage("new, not old", id="new")])
    without.append("a", [UserMessage("newest, old", id="newest")])
    answering.append("c", [UserMessage("other", id="c")])
    found = [hit.message.id for hit in answering.search(text="old")]
    assert found == ["newest", "new", "b", "2", "1", "0"]
    assert [hit.message.id for hit in answering.search(text="old", limit=2)] == ["newest", "new"]
    assert [hit.message.id for hit in answering.search(text="other")] == ["c"]
    answering.replace("a", [UserMessage("old again", id="again")])
    without.delete("b")
    assert admin.smembers(f"{namespace}/unsaid") == set()
    assert [hit.message.id for hit in answering.search(text="old")] == ["again"]


def test_the_sweep_forgets_what_was_not_indexed(make_memory: MakeMemory, admin: Any, namespace: str) -> None:
    # M8, M10
    brief = make_memory(questions=False, ttl=0.1)
    brief.append("c", [UserMessage("u", id="1")])
    assert admin.scard(f"{namespace}/unsaid") == 1
    end = time.monotonic() + 10
    while not brief.remove_expired():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert admin.exists(f"{namespace}/unsaid") == 0


async def test_an_index_that_is_gone_is_told(make_memory: MakeMemory, admin: Any, namespace: str) -> None:
    # M10: not "no message answers"
    memory = make_memory()
    memory.append("c", [UserMessage("u", id="1")])
    admin.execute_command("FT.DROPINDEX", f"{namespace}/said")
    for _ in range(2):
        with pytest.raises(CorruptDataError, match="index"):
            memory.search(text="u")
        with pytest.raises(CorruptDataError, match="index"):
            await memory.asearch(text="u")
        memory.append("d", [UserMessage("u", id="1")])
    assert [message.id for message in memory.messages("c")] == ["1"]


@pytest.mark.parametrize("ttl", [1e11, 1e17, 1e300, 1.7e308])
def test_expiries_beyond_the_calendar(make_memory: MakeMemory, ttl: float) -> None:
    # M8: any positive number is one
    memory = make_memory(ttl=ttl)
    memory.append("c", [UserMessage("u", id="1")])
    memory.append("c", [UserMessage("v", id="2")])
    memory.truncate("c", after="1")
    assert [message.id for message in make_memory().messages("c")] == ["1"]
    assert memory.remove_expired() == 0
    assert memory.conversation_ids().items == ["c"]
