"""The tables, and the statements that every database system takes alike.

A conversation is a row of `conversation`; its messages are rows of `message`, in the order of
`place`, which the row of the conversation hands out. Ids are stored as their UTF-8 bytes: text
columns fold case, trim or pad in one system or another, bytes do so in none (M6). Times are
microseconds, integers everywhere.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Delete,
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
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

LAYOUT_VERSION: Final = 1
"""Version of these tables, recorded in `layout`."""
LAYOUT_NAME: Final = "chat memory"

tables = MetaData()

layout = Table(
    "entrepot_layout",
    tables,
    Column("name", String(64), primary_key=True),
    Column("version", Integer, nullable=False),
)
"""What entrepot keeps in this database, and in which version of its tables."""

# SQLite makes only an INTEGER PRIMARY KEY count by itself.
_Number: Final = BigInteger().with_variant(Integer, "sqlite")

conversation = Table(
    "entrepot_conversation",
    tables,
    Column("number", _Number, primary_key=True),
    Column("name", LargeBinary, nullable=False, unique=True),
    Column("next_place", BigInteger, nullable=False),
    Column("written", BigInteger, nullable=False),
    Column("ttl", BigInteger),
)
"""A conversation: its id, the place of the next message, its last write and its expiry (M8)."""

message = Table(
    "entrepot_message",
    tables,
    Column("conversation", _Number, primary_key=True, autoincrement=False),
    Column("place", BigInteger, primary_key=True, autoincrement=False),
    Column("id", LargeBinary, nullable=False),
    Column("role", SmallInteger, nullable=False),
    Column("created", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    UniqueConstraint("conversation", "id", name="entrepot_message_id"),
    Index("entrepot_message_role", "conversation", "role", "place"),
    Index("entrepot_message_created", "created"),
    # Stored in the order of the primary key, so the end of a conversation is read as it lies there.
    sqlite_with_rowid=False,
)
"""A message: `body` is its whole JSON text, the other columns are what it is found by."""

ROLES: Final = {"system": 0, "user": 1, "assistant": 2, "tool": 3}
"""What stands in `message.role`."""

now: Final = bindparam("now", type_=BigInteger)
"""The present time in microseconds since 1970."""

living: Final[ColumnElement[bool]] = or_(
    conversation.c.ttl.is_(None), conversation.c.written + conversation.c.ttl > now
)
"""Whether a conversation has not expired (M8)."""


def _number() -> ScalarSelect[Any]:
    return (
        select(conversation.c.number)
        .where(conversation.c.name == bindparam("name", type_=LargeBinary), living)
        .scalar_subquery()
    )


# One statement each, so that each reads one state of the database, whatever is written meanwhile.
read_all: Final[Select[bytes]] = (
    select(message.c.body).where(message.c.conversation == _number()).order_by(message.c.place)
)
read_last: Final[Select[bytes]] = (
    select(message.c.body)
    .where(message.c.conversation == _number())
    .order_by(message.c.place.desc())
    .limit(bindparam("last", type_=Integer))
)
read_latest: Final[Select[bytes]] = (
    select(message.c.body)
    .where(message.c.conversation == _number(), message.c.role == bindparam("role", type_=SmallInteger))
    .order_by(message.c.place.desc())
    .limit(1)
)
list_names: Final[Select[bytes]] = (
    select(conversation.c.name)
    .where(living, conversation.c.name > bindparam("after", type_=LargeBinary))
    .order_by(conversation.c.name)
    .limit(bindparam("most", type_=Integer))
)
find_place: Final[Select[int, int]] = select(message.c.conversation, message.c.place).where(
    message.c.conversation == _number(), message.c.id == bindparam("message_id", type_=LargeBinary)
)

new_name: Final = bindparam("name", type_=LargeBinary)
count: Final = bindparam("count", type_=BigInteger)
ttl: Final = bindparam("ttl", type_=BigInteger)

touch: Final[Update] = (
    update(conversation)
    .where(conversation.c.number == bindparam("in_number", type_=BigInteger))
    .values(written=now, ttl=func.coalesce(ttl, conversation.c.ttl))
)
"""Records a write that adds nothing: the expiry runs anew."""

delete_messages: Final[Delete] = delete(message).where(
    message.c.conversation
    == select(conversation.c.number)
    .where(conversation.c.name == bindparam("name", type_=LargeBinary))
    .scalar_subquery()
)
delete_conversation: Final[Delete] = delete(conversation).where(
    conversation.c.name == bindparam("name", type_=LargeBinary)
)
_in_number: Final = message.c.conversation == bindparam("in_number", type_=BigInteger)
delete_before: Final[Delete] = delete(message).where(
    _in_number, message.c.place < bindparam("before", type_=BigInteger)
)
delete_after: Final[Delete] = delete(message).where(
    _in_number, message.c.place > bindparam("after", type_=BigInteger)
)

# Physical removal of what has expired, a piece at a time.
window: Final[Select[int, bytes, bool]] = (
    select(conversation.c.number, conversation.c.name, living)
    .where(conversation.c.number > bindparam("after", type_=BigInteger))
    .order_by(conversation.c.number)
    .limit(bindparam("most", type_=Integer))
)
expired_number: Final[Select[int]] = select(conversation.c.number).where(
    conversation.c.name == bindparam("name", type_=LargeBinary), ~living
)
piece_end: Final[Select[int]] = (
    select(message.c.place)
    .where(_in_number)
    .order_by(message.c.place)
    .limit(1)
    .offset(bindparam("most", type_=Integer))
)
highest_number: Final[Select[int]] = select(func.max(conversation.c.number))

read_layout: Final[Select[int]] = select(layout.c.version).where(layout.c.name == LAYOUT_NAME)
write_layout: Final = insert(layout).values(name=LAYOUT_NAME, version=LAYOUT_VERSION)
