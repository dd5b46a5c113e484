"""What reads documents by id, by page, and counts them. Scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from entrepot.errors import RequestError
from entrepot.filters import FALSE, TRUE
from entrepot.records import Page, Query, StoredRecord
from entrepot.scripted import work
from entrepot_neo4j.catalog import together, whole
from entrepot_neo4j.commands import ROWS, Statement
from entrepot_neo4j.fields import record_of, stored_id
from entrepot_neo4j.filters import predicate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot_neo4j.catalog import Place
    from entrepot_neo4j.commands import Script
    from entrepot_neo4j.filters import Clause

PIECE: Final = 1000
"""Documents that one statement reads by id."""
AT_ONCE: Final = 100
"""Documents that are taken apart in the event loop."""
_NUMBERS: Final = 8000
"""Numbers that come at a time where vectors come as lists of them."""
_AFTER: Final = "after "
"""What the token of a page begins with; the id of its last document follows."""
DIALECT: Final = "CYPHER 25 "
"""What a statement begins with that uses what version 5 of the language has not."""


class Matching(NamedTuple):
    """What a query's documents must satisfy, behind ``MATCH (n:Label)``.

    Attributes:
        text: Predicates on `n`, with WHERE before them; empty for every document.
        parameters: What is bound.
    """

    text: str
    parameters: dict[str, Any]


def matching(query: Query, *more: str) -> Matching:
    """Return what a query's documents must satisfy.

    Args:
        query: The query.
        more: Further predicates on `n`.
    """
    given: list[str] = list(more)
    parameters: dict[str, Any] = {}
    if query.ids is not None:
        given.append("n.id IN $ids")
        parameters["ids"] = [stored_id(name) for name in dict.fromkeys(query.ids)]
    text = f" WHERE {' AND '.join(given)}" if given else ""
    if query.filter is not TRUE:
        asked = predicate(cast("Clause", query.pushed.query))
        # The list is read once, and named, so that all tests are of one version of it.
        text += f" WITH n, n.t AS t, $f AS f WHERE {asked.text}"
        parameters["f"] = asked.parameter
    return Matching(text, parameters)


def finds_nothing(query: Query) -> bool:
    """Whether no document can satisfy a query."""
    return query.filter is FALSE or query.ids == ()


def shown(place: Place, include: Sequence[str]) -> str:
    """Return what a statement returns of documents, behind a comma: a vector, if it is wanted."""
    if "vector" not in include:
        return ""
    return f", vector(n.embedding, {int(place.info.dimension)}, FLOAT32)" if place.modern else ", n.embedding"


def asked(place: Place, include: Sequence[str], text: str, parameters: dict[str, Any]) -> Statement:
    """Return a statement that reads documents."""
    if "vector" not in include:
        return Statement(text, parameters)
    if place.modern:
        return Statement(DIALECT + text, parameters)
    return Statement(text, parameters, rows=max(1, min(ROWS, _NUMBERS // place.info.dimension)))


def records_of(rows: Sequence[Sequence[Any]], include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return documents of rows of what is kept, and perhaps a vector; many are made beside the event loop (E3)."""
    return (yield from work(_records, rows, include, at_once=len(rows) <= AT_ONCE))


def _records(rows: Sequence[Sequence[Any]], include: Sequence[str]) -> list[StoredRecord]:
    return [record_of(row[0], include, row[1] if len(row) > 1 else None) for row in rows]


def fetch(place: Place, ids: Sequence[str], include: Sequence[str]) -> Script[list[StoredRecord]]:
    """Return the documents with these ids that are there."""
    text = (
        f"UNWIND $ids AS id MATCH (n:{place.names.generation} {{id: id}}) RETURN n.j{shown(place, include)}"
    )
    names = [stored_id(name) for name in ids]
    pieces = [names[at : at + PIECE] for at in range(0, len(names), PIECE)]
    if not pieces:
        return []
    answers = yield from together(place, [asked(place, include, text, {"ids": piece}) for piece in pieces])
    return (yield from records_of([row for rows in answers for row in rows], include))


def count(place: Place, query: Query) -> Script[int]:
    """Return how many documents match."""
    where = Matching(" WHERE false", {}) if finds_nothing(query) else matching(query)
    text = f"MATCH (n:{place.names.generation}){where.text} RETURN count(*)"
    [[number]] = yield from whole(place, Statement(text, where.parameters))
    return int(number)


def scan(place: Place, query: Query, token: str | None, size: int) -> Script[Page[StoredRecord]]:
    """Return a page by ids, which a document keeps when it is replaced: so it comes once (D7).

    Raises:
        RequestError: The token is none.
    """
    given = cast("object", token)
    if given is not None and not (isinstance(given, str) and given.startswith(_AFTER) and given != _AFTER):
        msg = "the token is none of this store's"
        raise RequestError(msg, hint="pass the token of a scan or of one of its pages")
    if finds_nothing(query):
        return Page([], None)
    where = matching(query, "n.id > $after")
    text = (
        f"MATCH (n:{place.names.generation}){where.text} WITH n ORDER BY n.id LIMIT $size"
        f" RETURN n.id, n.j{shown(place, query.include)}"
    )
    after = "" if token is None else token.removeprefix(_AFTER)
    parameters = {**where.parameters, "after": after, "size": size}
    rows = yield from whole(place, asked(place, query.include, text, parameters))
    rows.sort(key=_first)
    records = yield from records_of([row[1:] for row in rows], query.include)
    return Page(records, _AFTER + rows[-1][0] if len(rows) == size else None)


def _first(row: Sequence[Any]) -> str:
    return str(row[0])
