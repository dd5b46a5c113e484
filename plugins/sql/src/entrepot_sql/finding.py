"""Messages that may answer a question, newest first (M10). SQL only leaves most others out."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec
from sqlalchemy import LargeBinary, and_, literal, or_, select

from entrepot_sql.schema import ROLES

if TYPE_CHECKING:
    from collections.abc import Generator

    from sqlalchemy import Connection

    from entrepot.memory.questions import Question
    from entrepot_sql.dialects import Dialect
    from entrepot_sql.schema import Schema

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_FETCHED: Final = 100
"""Messages that are read at a time."""


def candidates(
    connection: Connection, dialect: Dialect, schema: Schema, question: Question, now: int
) -> Generator[tuple[bytes, bytes]]:
    """Yield conversation ids and messages, of one state of the database, for as long as the caller wants some."""
    message, conversation = schema.message, schema.conversation
    wanted = [conversation.c.number == message.c.conversation, schema.living]
    if question.role is not None:
        wanted.append(message.c.role == ROLES[question.role])
    if question.since is not None:
        wanted.append(message.c.created >= microseconds(question.since))
    if question.until is not None:
        wanted.append(message.c.created < microseconds(question.until))
    wanted += [
        dialect.contains(message.c.body, literal(needle, LargeBinary)) for needle in _needles(question)
    ]
    newest = (
        select(conversation.c.name, message.c.body, message.c.created, message.c.place)
        .where(*wanted)
        .order_by(message.c.created.desc(), conversation.c.name, message.c.place.desc())
    )
    if dialect.streams:
        with closing(
            connection.execute(newest, {"now": now}, execution_options={"yield_per": _FETCHED})
        ) as streamed:
            for row in streamed:
                yield bytes(row[0]), bytes(row[1])
        return
    connection.execution_options(isolation_level="REPEATABLE READ")  # for all pages
    page = newest.limit(_FETCHED)
    while rows := connection.execute(page, {"now": now}).all():
        for row in rows:
            yield bytes(row[0]), bytes(row[1])
        name, _, created, place = rows[-1]
        behind = or_(
            message.c.created < created,
            and_(message.c.created == created, conversation.c.name > literal(name, LargeBinary)),
            and_(
                message.c.created == created,
                conversation.c.name == literal(name, LargeBinary),
                message.c.place < place,
            ),
        )
        page = newest.where(message.c.created <= created, behind).limit(_FETCHED)


def microseconds(instant: datetime) -> int:
    """Return the microseconds since 1970."""
    return (instant - _EPOCH) // _MICROSECOND


def _needles(question: Question) -> list[bytes]:
    """Return what stands in the JSON text of every message that answers.

    JSON is written one character after another, so a part of a text is a part of its JSON.
    """
    texts = [_written(question.text)] if question.text else []
    return texts + [b'"' + _written(key) + b'":' for key in question.metadata]


def _written(text: str) -> bytes:
    return msgspec.json.encode(text)[1:-1]
