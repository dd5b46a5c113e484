"""Questions across conversations (M10). A script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec
from psycopg import sql

from entrepot.memory.questions import answers
from entrepot.messages import decode_message
from entrepot_postgres.conversations import ROLES
from entrepot_postgres.scripts import Statement

if TYPE_CHECKING:
    from entrepot.memory.questions import Question
    from entrepot_postgres.names import MemoryNames
    from entrepot_postgres.scripts import Script

_FETCHED: Final = 100
"""Messages that are read at a time."""


def find(names: MemoryNames, question: Question) -> Script[list[tuple[str, bytes]]]:
    """Read candidates of one state, newest first, and ask each whether it answers.

    The SQL only leaves out messages that cannot answer; every value is bound.
    """
    wanted: list[sql.SQL] = [
        sql.SQL("(conversation.expires IS NULL OR conversation.expires > clock_timestamp())")
    ]
    bound: list[object] = []
    if question.role is not None:
        wanted.append(sql.SQL("message.role = %s::smallint"))
        bound.append(ROLES[question.role])
    if question.since is not None:
        wanted.append(sql.SQL("message.created >= %s::timestamptz"))
        bound.append(question.since)
    if question.until is not None:
        wanted.append(sql.SQL("message.created < %s::timestamptz"))
        bound.append(question.until)
    for needle in _needles(question):
        wanted.append(sql.SQL("strpos(message.body, convert_from(%s::bytea, 'UTF8')) > 0"))
        bound.append(needle)
    query = sql.SQL(
        "DECLARE entrepot_found NO SCROLL CURSOR FOR SELECT conversation.name, convert_to(message.body, 'UTF8')"
        " FROM {} AS message JOIN {} AS conversation ON conversation.number = message.conversation WHERE {}"
        " ORDER BY message.created DESC, conversation.name, message.place DESC"
    ).format(names.messages, names.conversations, sql.SQL(" AND ").join(wanted))
    yield Statement(query, bound)
    fetch = Statement(sql.SQL("FETCH FORWARD {} FROM entrepot_found").format(sql.Literal(_FETCHED)))
    found: list[tuple[str, bytes]] = []
    while True:
        rows = yield fetch
        for name, body in rows:
            if answers(question, decode_message(body)):
                found.append((name.decode(), body))
                if len(found) == question.limit:
                    return found
        if len(rows) < _FETCHED:
            return found


def _needles(question: Question) -> list[bytes]:
    """Return what stands in the JSON text of every message that answers.

    JSON is written one character after another, so a part of a text is a part of its JSON.
    """
    texts = [_written(question.text)] if question.text else []
    return texts + [b'"' + _written(key) + b'":' for key in question.metadata]


def _written(text: str) -> bytes:
    return msgspec.json.encode(text)[1:-1]
