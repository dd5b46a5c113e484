"""The two writes that database systems have different words for: claiming places, and storing what is new.

Both run within a transaction. Whoever claims first keeps the conversation's row until the transaction ends, so
the batches of one conversation have one order (M1), and what is stored already cannot change meanwhile (M3).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import LargeBinary, bindparam, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from entrepot_sql.schema import count, new_name, now, ttl

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sqlalchemy import Connection, Row

    from entrepot_sql.schema import Schema

_ASKED: Final = 500
"""Ids that one statement asks for: Oracle takes 1,000 in a list, SQL Server 2,100 parameters in a statement."""


class Writes(ABC):
    """How a database system claims and stores."""

    @abstractmethod
    def claim(self, connection: Connection, wanted: Mapping[str, object]) -> tuple[int, int] | None:
        """Make a conversation or count its next place up, by `name`, `count`, `now` and `ttl`.

        Returns:
            Its number and the next place behind those claimed; None if it has expired.
        """

    @abstractmethod
    def store(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert messages of one conversation, leaving out those whose id it has."""


class UpsertingWrites(Writes):
    """One statement each, for systems with ON CONFLICT and RETURNING.

    Args:
        schema: The tables.
        insert: The INSERT of the system's SQLAlchemy dialect.
    """

    def __init__(self, schema: Schema, insert: Callable[[Any], Any]) -> None:
        conversation = schema.conversation
        self._claim = (
            insert(conversation)
            .values(name=new_name, next_place=count, written=now, ttl=ttl)
            .on_conflict_do_update(
                index_elements=["name"],
                set_={
                    "next_place": conversation.c.next_place + count,
                    "written": now,
                    "ttl": func.coalesce(ttl, conversation.c.ttl),
                },
                where=schema.living,
            )
            .returning(conversation.c.number, conversation.c.next_place)
        )
        self._store = insert(schema.message).on_conflict_do_nothing(index_elements=["conversation", "id"])

    def claim(self, connection: Connection, wanted: Mapping[str, object]) -> tuple[int, int] | None:
        """Upsert the conversation's row and return what came of it."""
        claimed: Row[Any, Any] | None = connection.execute(self._claim, wanted).first()
        if claimed is None:
            return None
        number, next_place = claimed
        return number, next_place

    def store(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert, and let the unique index leave out what is there."""
        connection.execute(self._store, rows)


class PlainWrites(Writes):
    """UPDATE, INSERT and SELECT alone, for all other systems.

    Args:
        schema: The tables.
        begin: An INSERT of a conversation that may find it there; by default one that fails then.
    """

    def __init__(self, schema: Schema, begin: Any = None) -> None:
        conversation, message = schema.conversation, schema.message
        self._message = message
        row = {"name": new_name, "next_place": 0, "written": now, "ttl": ttl}
        self._begin = insert(conversation).values(row) if begin is None else begin.values(row)
        self._count_up = (
            update(conversation)
            .where(conversation.c.name == bindparam("in_name", type_=LargeBinary), schema.living)
            .values(
                next_place=conversation.c.next_place + count,
                written=now,
                ttl=func.coalesce(ttl, conversation.c.ttl),
            )
        )
        self._claimed = select(conversation.c.number, conversation.c.next_place).where(
            conversation.c.name == new_name
        )
        self._known = select(message.c.id).where(
            message.c.conversation == bindparam("in_number", type_=message.c.conversation.type),
            message.c.id.in_(bindparam("ids", type_=LargeBinary, expanding=True)),
        )

    def claim(self, connection: Connection, wanted: Mapping[str, object]) -> tuple[int, int] | None:
        """Count up; make what is not there first, and then wait for whoever makes it at the same time."""
        counted = {"in_name" if name == "name" else name: value for name, value in wanted.items()}
        if not connection.execute(self._count_up, counted).rowcount:
            made = {name: value for name, value in wanted.items() if name != "count"}
            with suppress(IntegrityError), connection.begin_nested():
                connection.execute(self._begin, made)
            if not connection.execute(self._count_up, counted).rowcount:
                return None
        number, next_place = connection.execute(self._claimed, {"name": wanted["name"]}).one()
        return number, next_place

    def store(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Ask which ids are there, and insert the others: nobody else writes to this conversation now."""
        known: set[bytes] = set()
        for start in range(0, len(rows), _ASKED):
            part = rows[start : start + _ASKED]
            asked = {"in_number": part[0]["conversation"], "ids": [row["id"] for row in part]}
            known.update(bytes(name) for name in connection.execute(self._known, asked).scalars())
        new = [row for row in rows if row["id"] not in known]
        if new:
            connection.execute(insert(self._message), new)
