"""Conversations out of the table that Spring AI's JDBC chat memory writes.

Its columns are conversation_id, content, type (USER, ASSISTANT, SYSTEM or TOOL) and timestamp, since 1.1 also
sequence_id, which orders a conversation. It keeps no tool calls and no metadata, so none come over.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from itertools import groupby
from typing import TYPE_CHECKING, Final
from uuid import UUID, uuid5

from sqlalchemy import Engine, MetaData, Table, create_engine, inspect, make_url, select
from sqlalchemy.exc import SQLAlchemyError

from entrepot.errors import BackendError, ConfigurationError, CorruptDataError
from entrepot.messages import AssistantMessage, SystemMessage, UserMessage
from entrepot_sql.dialects import with_driver

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sqlalchemy import URL

    from entrepot.memory import ChatMemoryRepository
    from entrepot.messages import Message

_IDS: Final = UUID("5a3c7f0e-5f0b-5a52-9d4c-6f4e6a0c2b11")
"""Namespace of the messages' ids: the same row has the same id each time."""
_KINDS: Final[Mapping[str, type[UserMessage | AssistantMessage | SystemMessage]]] = {
    "USER": UserMessage,
    "ASSISTANT": AssistantMessage,
    "SYSTEM": SystemMessage,
}
_WANTED: Final = ("conversation_id", "content", "type", "timestamp")
_FETCHED: Final = 500


def import_spring_ai(  # noqa: PLR0913 - what an import may be told
    source: str | URL | Engine,
    into: ChatMemoryRepository,
    *,
    table: str = "SPRING_AI_CHAT_MEMORY",
    schema: str | None = None,
    zone: tzinfo = UTC,
    skip_tools: bool = False,
) -> int:
    """Append what Spring AI's JDBC chat memory has stored to the conversations of a repository.

    Doing so again adds only what has come since: a row's message has the same id each time.

    Args:
        source: The database as a SQLAlchemy URL or Engine; it is only read.
        into: Any open repository.
        table: Name of the table, in any case.
        schema: Its schema.
        zone: What its timestamps, which have no zone, are in.
        skip_tools: Leave out rows of the type TOOL. They do not say what was answered to which call, so they
            are refused unless told otherwise.

    Returns:
        How many messages were read and handed over.

    Raises:
        ConfigurationError: There is no such table, or it lacks a column.
        CorruptDataError: A row of another type, or of TOOL; the conversations before it were taken over.
        BackendError: The database failed.
    """
    engine = (
        source
        if isinstance(source, Engine)
        else create_engine(with_driver(make_url(source)), hide_parameters=True)
    )
    try:
        return sum(
            _append(into, conversation, messages)
            for conversation, messages in _conversations(engine, table, schema, zone, skip_tools=skip_tools)
        )
    except SQLAlchemyError as error:
        cause = getattr(error, "orig", None) or error
        msg = f"reading the table {table!r} failed with {type(cause).__name__}"
        raise BackendError(msg) from cause
    finally:
        if engine is not source:
            engine.dispose()


def _append(into: ChatMemoryRepository, conversation: str, messages: list[Message]) -> int:
    into.append(conversation, messages)
    return len(messages)


def _conversations(
    engine: Engine, table: str, schema: str | None, zone: tzinfo, *, skip_tools: bool
) -> Iterator[tuple[str, list[Message]]]:
    found = _table(engine, table, schema)
    columns = {name.lower(): column for name, column in found.columns.items()}
    absent = [name for name in _WANTED if name not in columns]
    if absent:
        msg = f"the table {table!r} has no column {absent[0]!r}"
        raise ConfigurationError(msg, hint="name the table of Spring AI's JDBC chat memory")
    order = columns.get("sequence_id", columns["timestamp"])
    rows = (
        select(*(columns[name].label(name) for name in _WANTED), order.label("place"))
        .order_by(columns["conversation_id"], order)
        .execution_options(yield_per=_FETCHED)
    )
    with engine.connect() as connection:
        read: Iterable[tuple[object, ...]] = (tuple(row) for row in connection.execute(rows))
        for conversation, group in groupby(read, _conversation):
            messages = [
                _message(row, zone) for row in group if not (skip_tools and str(row[2]).upper() == "TOOL")
            ]
            if messages:
                yield conversation, messages


def _table(engine: Engine, table: str, schema: str | None) -> Table:
    """Return the table by its name in any case: systems fold unquoted names up or down."""
    inspector = inspect(engine)
    names = [name for name in inspector.get_table_names(schema=schema) if name.lower() == table.lower()]
    if not names:
        msg = f"there is no table {table!r}"
        raise ConfigurationError(msg, hint="name the table of Spring AI's JDBC chat memory, and its schema")
    return Table(names[0], MetaData(schema=schema), autoload_with=engine)


def _conversation(row: tuple[object, ...]) -> str:
    return str(row[0])


def _message(row: tuple[object, ...], zone: tzinfo) -> Message:
    conversation, content, kind, instant, place = row
    maker = _KINDS.get(str(kind).upper())
    if maker is None:
        msg = f"conversation {conversation!r} has a row of the type {kind!r}"
        raise CorruptDataError(msg, hint="skip_tools=True leaves out rows of the type TOOL")
    name = uuid5(_IDS, f"{conversation}\0{place}\0{kind}\0{content}")
    return maker("" if content is None else str(content), id=str(name), created=_instant(instant, zone))


def _instant(value: object, zone: tzinfo) -> datetime:
    """Return a timestamp with its zone; on SQLite it is a number of milliseconds, or text."""
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value / 1000, UTC)
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
