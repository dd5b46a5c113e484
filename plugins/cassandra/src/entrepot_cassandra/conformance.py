"""The conformance suite's way to Cassandra: a server that is there, or a container.

Only the suite imports this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from entrepot.urls import parse_url
from entrepot_cassandra.commands import Ask
from entrepot_cassandra.config import CassandraConfig
from entrepot_cassandra.conversations import drop, table_of
from entrepot_cassandra.driver import (
    VERSION,
)
from entrepot_cassandra.servers import server_of
from entrepot_conformance.servers import ServerSpec

if TYPE_CHECKING:
    from entrepot_cassandra.commands import Script
    from entrepot_cassandra.sessions import Server

_FLAGS: Final = (
    "-Dcassandra.config.allow_system_properties=true"
    " -Dcassandra.settings.authenticator=PasswordAuthenticator"
    " -Dcassandra.settings.authorizer=CassandraAuthorizer"
    " -Dcassandra.superuser_setup_delay_ms=0"
    " -Dcassandra.skip_wait_for_gossip_to_settle=0"
    " -Dcassandra.unsafesystem=true"
    " -Dcassandra.settings.auto_snapshot=false"
    " -Dcassandra.auth_bcrypt_gensalt_log2_rounds=4"
)
"""Logins that take little of the processor, no waiting for other nodes, no forced flush after each change of the schema, which
takes most of a test's time, and no copy of each table that is dropped."""

SERVER: Final = ServerSpec(
    name="cassandra",
    image="cassandra:5.0",
    port=9042,
    url="cassandra://cassandra:cassandra@{host}:{port}",
    environment=(
        ("MAX_HEAP_SIZE", "768M"),
        ("HEAP_NEWSIZE", "200M"),
        ("JVM_EXTRA_OPTS", _FLAGS),
        ("JVM_ARGS", _FLAGS),
    ),
    ready="entrepot_cassandra.conformance:ready",
)
"""Cassandra 5: ENTREPOT_CASSANDRA_URL or ENTREPOT_CASSANDRA_IMAGE; no wheel has the server."""


_earlier: list[str] = []


def forget_earlier(url: str) -> None:
    """Drop the tables of memories that earlier tests of this process made: each slows every change of the schema."""
    for other in _earlier:
        options: dict[str, Any] = CassandraConfig.from_url(parse_url(other))
        table = table_of(options["keyspace"], options["collection"])
        server = _server(other, options["keyspace"], 30.0)
        try:
            server.run(drop(table))
        finally:
            server.close()
    _earlier[:] = [url]


def _server(url: str, keyspace: str, timeout: float) -> Server:
    options: dict[str, Any] = CassandraConfig.from_url(parse_url(url))
    return server_of(
        host=options.get("host"), port=options.get("port"), user=options.get("user"),
        password=options.get("password"), keyspace=keyspace, datacenter=None, consistency="quorum",
        create_keyspace=False, replication=1, concurrency=1, tls=False, ca_file=None, cert_file=None, key_file=None,
        check_hostname=True, timeout=timeout, client=None,
    )  # fmt: skip


def _told(url: str, *, timeout: float = 5.0) -> str:
    server = _server(url, "system", timeout)
    try:
        return server.run(_version())
    finally:
        server.close()


def _version() -> Script[str]:
    found = yield Ask("SELECT release_version FROM system.local", level="one")
    return str(found.rows[0][0])


def ready(url: str) -> None:
    """Return if the server answers and lets the user in.

    Raises:
        EntrepotError: It does not.
    """
    _told(url)


def versions(url: str) -> dict[str, str]:
    """Return the versions of server and driver."""
    return {"Cassandra": _told(url), "cassandra-driver": VERSION}
