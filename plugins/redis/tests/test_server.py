"""A server that is killed, is away, is loading or says no: E2, E4, and what is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from plugins.redis.tests.servers import client, free_port, own_server

from entrepot import Document, SearchRequest, UserMessage, open_chat_memory, open_vector_store
from entrepot.errors import AuthenticationError, BackendError, ConfigurationError, UnreachableError

if TYPE_CHECKING:
    from pathlib import Path


def test_with_an_append_only_file_a_kill_loses_nothing_that_returned(tmp_path: Path) -> None:
    # D6, M3: appendonly and appendfsync are the server's business; this is what they give
    with own_server(tmp_path, "--appendonly", "yes", "--appendfsync", "always") as own:
        store = open_vector_store(f"{own.url}/articles")
        memory = open_chat_memory(f"{own.url}/chat", ttl=1000)
        for n in range(50):
            store.add([Document(f"word{n}", id=f"{n}", metadata={"n": n, f"k{n}": f"v{n}"}, vector=[1.0, n])])
            memory.append("c", [UserMessage(f"m {n}", id=f"{n}")])
        store.update(["3"], set={"n": -3})
        store.delete(["4"])
        own.kill()
        with pytest.raises(UnreachableError):
            store.count()
        own.start()
        assert store.count() == 49
        assert store.count("n < 0") == 1
        assert store.count("k17 >= 'v17'") == 1
        assert [hit.id for hit in store.similarity_search(SearchRequest(vector=[1.0, 7.0], top_k=1))] == ["7"]
        assert [hit.id for hit in store.similarity_search("word9", mode="fulltext")] == ["9"]
        assert [message.text for message in memory.messages("c")] == [f"m {n}" for n in range(50)]
        assert len(memory.search(text="m 4")) == 11
        store.add([Document("x", id="after", metadata={"fresh": 1}, vector=[1.0, 1.0])])
        assert store.count("fresh > 0") == 1
        store.close()
        memory.close()


def test_without_one_a_kill_loses_what_was_not_saved(tmp_path: Path) -> None:
    # as the docs say: the store itself stays usable
    with own_server(tmp_path, "--save", "") as own:
        store = open_vector_store(f"{own.url}/articles")
        store.add([Document("x", id="1", vector=[1.0, 1.0])])
        own.kill()
        own.start()
        assert not store.collection_exists()
        store.add([Document("x", id="2", vector=[1.0, 1.0])])
        assert store.count() == 1
        store.close()


def test_what_a_server_refuses(tmp_path: Path) -> None:
    # E2: logins, rights, memory, writes
    with own_server(tmp_path, "--save", "") as own, client(own.url) as connected:
        admin: Any = connected
        address = own.url.rpartition("@")[2]
        admin.execute_command("ACL", "SETUSER", "reader", "on", ">reading", "~*", "+@read", "+eval", "+evalsha",
                              "+hello", "+client", "+ft.search", "+ft.info", "-@write")  # fmt: skip
        for login in ("", ":wrong@", "nobody:x@"):
            with pytest.raises(AuthenticationError):
                open_vector_store(f"redis://{login}{address}/articles")
            with pytest.raises(AuthenticationError):
                open_chat_memory(f"redis://{login}{address}/chat")
        store = open_vector_store(f"{own.url}/articles")
        store.add([Document("x", id="1", metadata={"n": 1}, vector=[1.0, 1.0])])
        reader = open_vector_store(f"redis://reader:reading@{address}/articles")
        assert reader.count("n > 0") == 1
        assert [hit.id for hit in reader.similarity_search(SearchRequest(vector=[1.0, 1.0]))] == ["1"]
        with pytest.raises(BackendError) as denied:
            reader.add([Document("x", id="2", vector=[1.0, 1.0])])
        assert denied.value.retryable is False
        reader.close()
        admin.config_set("maxmemory", "1")
        with pytest.raises(BackendError, match="memory") as full:
            store.add([Document("x", id="3", vector=[1.0, 1.0])])
        assert full.value.outcome == "not_done"
        admin.config_set("maxmemory", "0")
        admin.execute_command("REPLICAOF", "127.0.0.1", "1")
        with pytest.raises(BackendError):
            store.add([Document("x", id="4", vector=[1.0, 1.0])])
        admin.execute_command("REPLICAOF", "NO", "ONE")
        admin.execute_command("SCRIPT", "FLUSH")
        store.add([Document("x", id="5", vector=[1.0, 1.0])])
        assert {document.id for document in store.scan()} == {"1", "5"}
        store.close()


def test_a_cluster_is_refused(tmp_path: Path) -> None:
    # E2
    with own_server(
        tmp_path, "--save", "", "--cluster-enabled", "yes", "--cluster-port", str(free_port())
    ) as own:
        with pytest.raises(ConfigurationError, match="Cluster"):
            open_vector_store(f"{own.url}/articles")
        with pytest.raises(ConfigurationError, match="Cluster"):
            open_chat_memory(f"{own.url}/chat")
