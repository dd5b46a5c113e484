"""The tables of a memory, and the statements that every database system takes alike.

A conversation is a row of one table; its messages are rows of another, in the order of `place`, which the row
of the conversation hands out. Ids are stored as their UTF-8 bytes: text columns fold case, trim or pad in one
system or another, bytes do so in none (M6). Times are microseconds, integers everywhere. What a system may
take for NULL, an empty value, is never stored.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Delete,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    ScalarSelect,
    Select,
    SmallInteger,
    String,
    Table,
    UniqueConstraint,
    Update,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects import mysql, oracle

if TYPE_CHECKING:
    from sqlalchemy.sql.dml import Insert

LAYOUT_VERSION: Final = 1
"""Version of these tables, recorded in the layout's table."""
LAYOUT_NAME: Final = "chat memory"
ID_BYTES: Final = 4 * 512
"""Bytes that an id takes at most: 512 characters of four bytes (M6)."""

ROLES: Final = {"system": 0, "user": 1, "assistant": 2, "tool": 3}
"""What stands in the column `role`."""

# SQLite makes only an INTEGER PRIMARY KEY count by itself.
_Number: Final = BigInteger().with_variant(Integer, "sqlite")
_Id: Final = (
    LargeBinary()
    .with_variant(mysql.VARBINARY(ID_BYTES), "mysql", "mariadb")
    .with_variant(LargeBinary(1600), "mssql")  # an index takes keys of 1,700 bytes
    .with_variant(oracle.RAW(2000), "oracle")  # RAW ends there
)
_Body: Final = LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")

now: Final = bindparam("now", type_=BigInteger)
"""The present time in microseconds since 1970."""
new_name: Final = bindparam("name", type_=LargeBinary)
count: Final = bindparam("count", type_=BigInteger)
ttl: Final = bindparam("ttl", type_=BigInteger)


class Schema:
    """The tables of one memory and their statements; `schema_of` makes them once.

    Attributes:
        layout: What entrepot keeps in this database, and in which version of its tables.
        conversation: A conversation: its id, the place of the next message, its last write and its expiry (M8).
        message: A message: `body` is its whole JSON text, the other columns are what it is found by.
        living: Whether a conversation has not expired (M8).
    """

    def __init__(self, prefix: str, schema: str | None) -> None:
        self.schema = schema
        self.tables = MetaData(schema=schema)
        self.layout = Table(
            f"{prefix}_layout",
            self.tables,
            Column("name", String(64), primary_key=True),
            Column("version", Integer, nullable=False),
        )
        self.conversation = Table(
            f"{prefix}_conversation",
            self.tables,
            Column("number", _Number, Identity(), primary_key=True),
            Column("name", _Id, nullable=False, unique=True),
            Column("next_place", BigInteger, nullable=False),
            Column("written", BigInteger, nullable=False),
            Column("ttl", BigInteger),
            mysql_engine="InnoDB",
            mariadb_engine="InnoDB",
        )
        self.message = Table(
            f"{prefix}_message",
            self.tables,
            Column("conversation", _Number, primary_key=True, autoincrement=False),
            Column("place", BigInteger, primary_key=True, autoincrement=False),
            Column("id", _Id, nullable=False),
            Column("role", SmallInteger, nullable=False),
            Column("created", BigInteger, nullable=False),
            Column("body", _Body, nullable=False),
            UniqueConstraint("conversation", "id", name=f"{prefix}_message_id"),
            Index(f"{prefix}_message_role", "conversation", "role", "place"),
            Index(f"{prefix}_message_created", "created"),
            # Stored in the order of the primary key, so the end of a conversation is read as it lies there.
            sqlite_with_rowid=False,
            mysql_engine="InnoDB",
            mariadb_engine="InnoDB",
        )
        conversation = self.conversation
        self.living: ColumnElement[bool] = or_(
            conversation.c.ttl.is_(None), conversation.c.written + conversation.c.ttl > now
        )
        self._read()
        self._write()
        self._sweep()
        self.read_layout: Select[int] = select(self.layout.c.version).where(
            self.layout.c.name == bindparam("layout", type_=String(64))
        )
        self.write_layout: Insert = insert(self.layout).values(name=LAYOUT_NAME, version=LAYOUT_VERSION)

    def _read(self) -> None:
        """Make the readings: one statement each, so that each reads one state of the database (M1)."""
        conversation, message = self.conversation, self.message
        named: ScalarSelect[Any] = (
            select(conversation.c.number)
            .where(conversation.c.name == new_name, self.living)
            .scalar_subquery()
        )
        texts: Select[bytes] = select(message.c.body).where(message.c.conversation == named)
        newest = texts.order_by(message.c.place.desc())
        self.read_all = texts.order_by(message.c.place)
        self.read_last = newest.limit(bindparam("last", type_=Integer))
        self.read_latest = newest.where(message.c.role == bindparam("role", type_=SmallInteger)).limit(1)
        self.list_names: Select[bytes] = (
            select(conversation.c.name)
            .where(self.living, conversation.c.name > bindparam("after", type_=LargeBinary))
            .order_by(conversation.c.name)
            .limit(bindparam("most", type_=Integer))
        )

    def _write(self) -> None:
        """Make what writes. The conversation's row stays locked from the first statement to the commit."""
        conversation, message = self.conversation, self.message
        number: Select[int] = select(conversation.c.number).where(conversation.c.name == new_name)
        self.lock = _locking(number.where(self.living), conversation)
        self.lock_any = _locking(number, conversation)
        self.lock_expired = _locking(number.where(~self.living), conversation)
        in_number = message.c.conversation == bindparam("in_number", type_=BigInteger)
        self.find_place: Select[int] = select(message.c.place).where(
            in_number, message.c.id == bindparam("message_id", type_=LargeBinary)
        )
        self.touch: Update = (
            update(conversation)
            .where(conversation.c.number == bindparam("in_number", type_=BigInteger))
            .values(written=now, ttl=func.coalesce(ttl, conversation.c.ttl))
        )
        self.delete_all: Delete = delete(message).where(in_number)
        self.delete_before: Delete = delete(message).where(
            in_number, message.c.place < bindparam("before", type_=BigInteger)
        )
        self.delete_after: Delete = delete(message).where(
            in_number, message.c.place > bindparam("after", type_=BigInteger)
        )
        self.delete_conversation: Delete = delete(conversation).where(
            conversation.c.number == bindparam("in_number", type_=BigInteger)
        )

    def _sweep(self) -> None:
        """Make what removes the expired, a piece at a time."""
        conversation, message = self.conversation, self.message
        alive = case((self.living, 1), else_=0)  # a condition is no value in every system
        self.window: Select[int, bytes, int] = (
            select(conversation.c.number, conversation.c.name, alive)
            .where(conversation.c.number > bindparam("after", type_=BigInteger))
            .order_by(conversation.c.number)
            .limit(bindparam("most", type_=Integer))
        )
        self.piece_end: Select[int] = (
            select(message.c.place)
            .where(message.c.conversation == bindparam("in_number", type_=BigInteger))
            .order_by(message.c.place)
            .limit(1)
            .offset(bindparam("most", type_=Integer))
        )
        self.highest_number: Select[int] = select(func.max(conversation.c.number))


@lru_cache(maxsize=64)
def schema_of(prefix: str, schema: str | None) -> Schema:
    """Return the tables whose names begin with a prefix, in a schema of the database or in its usual one."""
    return Schema(prefix, schema)


def _locking(statement: Select[int], table: Table) -> Select[int]:
    """Keep the row until the transaction ends; SQL Server says so by a hint, SQLite locks the database."""
    return statement.with_for_update().with_hint(table, "WITH (UPDLOCK, ROWLOCK)", "mssql")
