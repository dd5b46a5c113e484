"""The tables of a chat memory: made once, safely by many at once. A script.

The registry is a table of the schema with one row a memory, as it is for collections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from psycopg import sql

from entrepot.errors import ConfigurationError, CorruptDataError
from entrepot_postgres.catalog import LOCK, LOOKS, until_settled
from entrepot_postgres.scripts import Statement

if TYPE_CHECKING:
    from entrepot_postgres.names import MemoryNames
    from entrepot_postgres.scripts import Rows, Script

LAYOUT_VERSION: Final = 1
"""Version of these tables, which the registry records."""


def is_ready(names: MemoryNames, memory: str) -> Script[bool]:
    """Return whether the memory's tables are there.

    Raises:
        ConfigurationError: The database is not in UTF-8.
        CorruptDataError: Other software has a table of the name, a table is missing, or the layout is newer.
    """
    conversations, messages, rows = yield from _looked_up(names, memory)
    for _ in range(LOOKS):
        if conversations is messages is bool(rows):
            break
        # They may have been made between the two looks: again, once nobody is at it.
        yield until_settled()
        conversations, messages, rows = yield from _looked_up(names, memory)
    if not rows:
        if conversations or messages:
            msg = f"tables of the name {names.stem!r} are there, and the memory {memory!r} is not registered"
            raise CorruptDataError(msg, hint="choose another name for the memory, or another schema")
        return False
    if rows[0][0] != LAYOUT_VERSION:
        msg = f"the memory {memory!r} has layout {rows[0][0]}, this version reads layout {LAYOUT_VERSION}"
        raise CorruptDataError(msg, hint="use the version of entrepot-postgres that made it, or a newer one")
    if not (conversations and messages):
        msg = f"the registry lists the memory {memory!r}, and its tables {names.stem!r} are not there"
        raise CorruptDataError(msg, hint="restore them, or delete its row from entrepot_memories")
    return True


def _looked_up(names: MemoryNames, memory: str) -> Script[tuple[bool, bool, Rows]]:
    """Return whether the two tables are there, and the memory's row of the registry, which may be missing."""
    query = sql.SQL(
        "SELECT current_setting('server_encoding'), to_regclass(%s) IS NOT NULL,"
        " to_regclass(%s) IS NOT NULL, to_regclass(%s) IS NOT NULL"
    )
    quoted = [name.text for name in (names.registry, names.conversations, names.messages)]
    [(encoding, registry, conversations, messages)] = yield Statement(query, quoted)
    if encoding != "UTF8":
        msg = f"the database is encoded in {encoding}, which does not hold every text"
        raise ConfigurationError(msg, hint="use a database made with ENCODING 'UTF8'")
    if not registry:
        return conversations, messages, []
    layout = sql.SQL("SELECT layout FROM {} WHERE name = %s").format(names.registry)
    return conversations, messages, (yield Statement(layout, (memory,)))


def make(names: MemoryNames, memory: str) -> Script[None]:
    """Make the tables, unless another program did so meanwhile: an advisory lock lets one after another."""
    yield Statement(sql.SQL("SELECT pg_advisory_xact_lock(%s::bigint)"), (LOCK,))
    if (yield from is_ready(names, memory)):
        return
    query = sql.SQL("SELECT to_regnamespace(%s) IS NULL, to_regclass(%s) IS NULL")
    quoted = (names.schema.text, names.registry.text)
    [(no_schema, no_registry)] = yield Statement(query, quoted)
    if no_schema:
        yield Statement(sql.SQL("CREATE SCHEMA {}").format(names.schema))
    if no_registry:
        yield Statement(
            sql.SQL(
                'CREATE TABLE {} (name text COLLATE "C" PRIMARY KEY, relation text NOT NULL UNIQUE,'
                " layout integer NOT NULL)"
            ).format(names.registry)
        )
    for text in _TABLES:
        statement = sql.SQL(text).format(conversations=names.conversations, messages=names.messages)
        yield Statement(statement)
    register = sql.SQL("INSERT INTO {} (name, relation, layout) VALUES (%s, %s, %s)").format(names.registry)
    yield Statement(register, (memory, names.stem, LAYOUT_VERSION))


# A page of conversations keeps room, so that a row that is written again and again stays on its page.
_TABLES: Final = (
    """
    CREATE TABLE {conversations} (
        number bigint GENERATED ALWAYS AS IDENTITY UNIQUE, name bytea PRIMARY KEY, next_place bigint NOT NULL,
        ttl interval, expires timestamptz
    ) WITH (fillfactor = 70)
    """,
    "CREATE INDEX ON {conversations} (expires) WHERE expires IS NOT NULL",
    """
    CREATE TABLE {messages} (
        conversation bigint, place bigint, id bytea NOT NULL, role smallint NOT NULL,
        created timestamptz NOT NULL, body text COLLATE "C" NOT NULL,
        PRIMARY KEY (conversation, place), UNIQUE (conversation, id)
    )
    """,
    "CREATE INDEX ON {messages} (conversation, role, place)",
    "CREATE INDEX ON {messages} (created)",
)
