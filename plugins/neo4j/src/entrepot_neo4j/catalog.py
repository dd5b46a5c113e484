"""Collections: what they record about themselves, and how they are made (D5). Scripts.

A collection is a node that says what it is, and the nodes of its documents. These have its label, and a label that was
made with the collection, by which they are read and written: so a collection that was dropped and made anew is never
taken for the old one.

**The seal.** Transactions of the engine see what others commit in between, and even half of a commit. So every write ends
with a new seal on the collection's node, for which it takes an exclusive lock until its end; and every read ends with a
look at the seal under a shared lock. A reader that finds the seal that was there before it began has met no write; any
other reads again, the last time under the lock. The locks are those of the constraint on the node's generation: MERGE
takes it shared for a node that is there, whoever sets the property takes it exclusively. Both hold it for the last moment
of a transaction, so readers do not wait for each other, and writers wait for a commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast
from uuid import uuid4

from entrepot.capabilities import Metric
from entrepot.errors import CollectionMismatchError, CollectionNotFoundError, ConfigurationError
from entrepot.records import LAYOUT_VERSION, CollectionInfo
from entrepot_neo4j.commands import ROWS, Statement, Unit, change, read
from entrepot_neo4j.names import COLLECTIONS, Names, label_of, names_of, new_generation, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from entrepot_neo4j.commands import Script

Kind = Literal["flat", "hnsw"]
OLDEST: Final = (5, 18)
"""The first version of the server that has what is asked of it."""
_MODERN: Final = (2026, 1)
"""The first version that takes vectors as such, and searches by a clause of the language."""
_TRIES: Final = 6
"""Reads that meet a write before one takes the lock first."""
_REMOVED: Final = 5000
"""Documents that one transaction of a drop removes."""
_LABEL: Final = quoted(COLLECTIONS)

Version = tuple[int, ...]
_Read: TypeAlias = "tuple[list[list[list[Any]]], str]"
"""The rows of some statements, and the seal."""


class Seal:
    """The last seal of a collection that was seen; threads may share it, as any seal that was seen will do."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: str | None = None


class Place(NamedTuple):
    """A collection as the engine has it.

    Attributes:
        generation: The label that is its documents' alone.
        names: What queries call things.
        info: What it records about itself.
        kind: How its vectors are indexed.
        modern: Whether the server takes vectors as such, and searches by a clause of the language.
        seal: The last seal that was seen.
    """

    generation: str
    names: Names
    info: CollectionInfo
    kind: Kind
    modern: bool
    seal: Seal

    @property
    def ann(self) -> bool:
        """Whether its searches are approximate unless they ask for ``exact=True``."""
        return self.kind == "hnsw"


class Plan(NamedTuple):
    """What a new collection gets, and how it is searched.

    Attributes:
        kind: How its vectors are indexed.
        m: HNSW: edges of a node.
        ef_construction: HNSW: candidates while the index is made.
        ef_search: HNSW: least candidates of a search.
    """

    kind: Kind = "hnsw"
    m: int = 16
    ef_construction: int = 100
    ef_search: int = 100


# --- whole reads and writes -------------------------------------------------------------------------------


def gone(name: str) -> CollectionNotFoundError:
    """Return the error for a collection that is not there any more."""
    return CollectionNotFoundError(f"there is no collection {name!r}")


def _look(place: Place) -> Script[str]:
    """Return the seal, under a shared lock that is kept until the transaction ends."""
    text = f"MERGE (c:{_LABEL} {{generation: $generation}}) RETURN c.seal"
    [[seal]] = yield change(text, generation=place.generation)
    if seal is None:  # made just now, and undone with the transaction
        raise gone(place.info.name)
    return str(seal)


def whole(place: Place, statement: Statement) -> Script[list[list[Any]]]:
    """Return the rows of a statement that reads, which are those of one moment.

    Raises:
        CollectionNotFoundError: The collection is gone.
    """
    [rows] = yield from together(place, [statement])
    return rows


def together(place: Place, statements: Sequence[Statement]) -> Script[list[list[list[Any]]]]:
    """Return the rows of each of some statements that read, which are all those of one moment.

    Raises:
        CollectionNotFoundError: The collection is gone.
    """
    most = min(statement.rows for statement in statements)

    def answers() -> Script[list[list[list[Any]]]]:
        found: list[list[list[Any]]] = []
        for statement in statements:
            rows = yield statement
            found.append(list(rows))
        return found

    def optimistic() -> Script[_Read]:
        found = yield from answers()
        return found, (yield from _look(place))

    def locked() -> Script[_Read]:
        seal = yield from _look(place)
        return (yield from answers()), seal

    for _ in range(_TRIES):
        known = place.seal.value
        if known is None:
            break
        found, seal = cast("_Read", (yield Unit(optimistic, changes=False, rows=most)))
        place.seal.value = seal  # others may set it at the same time
        if seal == known:
            return found
    found, place.seal.value = cast("_Read", (yield Unit(locked, changes=False, rows=most)))
    return found


def sealed(place: Place, script: Callable[[], Script[Any]], *, rows: int = ROWS) -> Script[Any]:
    """Carry out a script that writes as one transaction, which ends with a new seal; return what it returns.

    Raises:
        CollectionNotFoundError: The collection is gone, and nothing was done.
    """
    seal = uuid4().hex

    def unit() -> Script[Any]:
        answer = yield from script()
        # Setting the property takes the lock, if it was removed before.
        text = (
            f"MATCH (c:{_LABEL} {{generation: $generation}}) REMOVE c.generation"
            " SET c.generation = $generation, c.seal = $seal"
            # It may have been found before it was locked, and dropped meanwhile.
            " WITH c WHERE c.gone IS NULL RETURN true"
        )
        if not (yield change(text, generation=place.generation, seal=seal)):
            raise gone(place.info.name)
        return answer

    answer = yield Unit(unit, rows=rows)
    place.seal.value = seal
    return answer


def check(place: Place) -> Script[None]:
    """Look whether a collection is still there.

    Raises:
        CollectionNotFoundError: It is not.
    """

    def unit() -> Script[None]:
        yield from _look(place)

    yield Unit(unit, changes=False)


# --- finding and making -----------------------------------------------------------------------------------


def check_server() -> Script[Version]:
    """Return the server's version.

    Raises:
        ConfigurationError: It is too old.
    """
    text = "CALL dbms.components() YIELD name, versions WITH name, versions WHERE name = 'Neo4j Kernel' RETURN versions[0]"
    rows = yield read(text)
    number = str(rows[0][0]) if rows else ""
    found = tuple(int(part) for part in number.replace("-", ".").split(".")[:2] if part.isdecimal())
    if found < OLDEST:
        msg = f"the server has version {number or 'unknown'}, and this needs {'.'.join(map(str, OLDEST))} or newer"
        raise ConfigurationError(msg, hint="upgrade the server")
    return found


def describe(collection: str, version: Version) -> Script[Place | None]:
    """Return a collection, or None if there is none.

    Raises:
        CollectionMismatchError: Other nodes have its label, or its layout is newer.
    """
    text = f"MATCH (c:{_LABEL} {{name: $name}}) WHERE c.gone IS NULL RETURN properties(c)"
    rows = yield read(text, name=collection)
    if rows:
        return _place(rows[0][0], version)
    label = quoted(label_of(collection))
    ours = "any(l IN labels(n) WHERE l STARTS WITH 'Entrepot_' AND l <> $label)"
    others = yield read(f"MATCH (n:{label}) WHERE NOT {ours} RETURN true LIMIT 1", label=label_of(collection))
    if others:
        msg = f"the nodes with the label of collection {collection!r} were not made by this library"
        raise CollectionMismatchError(msg, hint="choose another name for the collection")
    return None


def _place(record: Mapping[str, Any], version: Version) -> Place:
    name = str(record["name"])
    layout = record.get("layout")
    if layout != LAYOUT_VERSION:
        msg = f"collection {name!r} has layout {layout}, this version reads layout {LAYOUT_VERSION}"
        raise CollectionMismatchError(
            msg, hint="use the version of entrepot-neo4j that made it, or a newer one"
        )
    info = CollectionInfo(
        name=name,
        dimension=int(record["dimension"]),
        metric=Metric(record["metric"]),
        model=record.get("model"),
        layout=layout,
    )
    generation = str(record["generation"])
    kind: Kind = "flat" if record["index"] == "flat" else "hnsw"
    return Place(generation, names_of(label_of(name), generation), info, kind, version >= _MODERN, Seal())


def create(info: CollectionInfo, plan: Plan, version: Version) -> Script[Place]:
    """Make a collection with its indexes; one that is there already is found.

    Raises:
        CollectionMismatchError: It was made at the same time with another metric or dimension.
    """
    found = yield read(f"MATCH (c:{_LABEL} {{name: $name}}) RETURN c.gone", name=info.name)
    if found and found[0][0]:  # whoever dropped it did not come to the end
        yield from drop(info.name)
    generation = new_generation()
    names = names_of(label_of(info.name), generation)
    there = yield read("SHOW CONSTRAINTS YIELD name WHERE name IN $names RETURN name", names=list(_RECORDS))
    if len(there) < len(_RECORDS):
        for text in _RECORDS.values():
            yield change(text)
    schema = _schema(info, plan, names)
    yield Unit(lambda: _all_of(schema.values()))
    yield read(
        "UNWIND $names AS name CALL db.awaitIndex(name, 300) RETURN count(*)",
        names=[name.strip("`") for name in schema],
    )
    record = {
        "generation": generation,
        "layout": info.layout,
        "metric": str(info.metric),
        "dimension": info.dimension,
        "model": info.model,
        "index": plan.kind,
        "seal": uuid4().hex,
    }
    text = f"MERGE (c:{_LABEL} {{name: $name}}) ON CREATE SET c += $record RETURN properties(c)"
    [[properties]] = yield change(text, name=info.name, record=record)
    if properties.get("generation") != generation:
        yield Unit(lambda: _unmake(names))
        if properties.get("gone"):
            return (yield from create(info, plan, version))
    place = _place(properties, version)
    if (place.info.metric, place.info.dimension) != (info.metric, info.dimension):
        msg = f"collection {info.name!r} was made at the same time with another metric or dimension"
        raise CollectionMismatchError(msg, hint="open the store again")
    return place


_RECORDS: Final = {
    name: f"CREATE CONSTRAINT `{name}` IF NOT EXISTS FOR (c:{_LABEL}) REQUIRE c.{key} IS UNIQUE"
    for name, key in (("EntrepotCollection_name", "name"), ("EntrepotCollection_generation", "generation"))
}
"""The constraints on the nodes of all collections, by name."""


def _all_of(texts: Iterable[str]) -> Script[None]:
    for text in texts:
        yield change(text)


def _schema(info: CollectionInfo, plan: Plan, names: Names) -> dict[str, str]:
    """Return the statements that make a collection's indexes, by name; all numbers in them are checked ints."""
    label = names.generation
    # Without quantisation: it would change scores and their order (S1, S2). The core makes unit vectors under dot.
    settings = {
        "`vector.dimensions`": str(int(info.dimension)),
        "`vector.similarity_function`": "'euclidean'" if info.metric is Metric.EUCLIDEAN else "'cosine'",
        "`vector.quantization.enabled`": "false",
        "`vector.hnsw.m`": str(int(plan.m)),
        "`vector.hnsw.ef_construction`": str(int(plan.ef_construction)),
    }
    options = ", ".join(f"{name}: {value}" for name, value in settings.items())
    words = "{indexConfig: {`fulltext.analyzer`: 'whitespace', `fulltext.eventually_consistent`: false}}"
    made = {
        names.key: f"CREATE CONSTRAINT {names.key} FOR (n:{label}) REQUIRE n.id IS UNIQUE",
        names.words: f"CREATE FULLTEXT INDEX {names.words} FOR (n:{label}) ON EACH [n.w] OPTIONS {words}",
    }
    if plan.kind == "hnsw":
        vectors = f"CREATE VECTOR INDEX {names.vectors} FOR (n:{label}) ON (n.embedding)"
        made[names.vectors] = f"{vectors} OPTIONS {{indexConfig: {{{options}}}}}"
    return made


def _unmake(names: Names) -> Script[None]:
    """Remove a collection's indexes."""
    yield change(f"DROP INDEX {names.vectors} IF EXISTS")
    yield change(f"DROP INDEX {names.words} IF EXISTS")
    yield change(f"DROP CONSTRAINT {names.key} IF EXISTS")


def drop(collection: str) -> Script[None]:
    """Remove a collection with all its documents; a missing one is no error.

    It is gone when its node says so, which ends all writes; the rest follows, here or when the name is used again.
    """
    text = (
        f"MATCH (c:{_LABEL} {{name: $name}}) WITH c, coalesce(c.generation, c.gone) AS generation"
        " REMOVE c.generation SET c.gone = generation RETURN generation"
    )
    rows = yield change(text, name=collection)
    if not rows:
        return
    names = names_of(label_of(collection), str(rows[0][0]))
    yield Unit(lambda: _unmake(names))
    removed = _REMOVED
    while removed == _REMOVED:
        text = f"MATCH (n:{names.generation}) WITH n LIMIT $most DETACH DELETE n RETURN count(*)"
        [[removed]] = yield change(text, most=_REMOVED)
    yield change(
        f"MATCH (c:{_LABEL} {{name: $name}}) WHERE c.gone = $was DELETE c", name=collection, was=rows[0][0]
    )


def list_collections() -> Script[list[str]]:
    """Return the names of this library's collections, sorted by code point."""
    rows = yield read(f"MATCH (c:{_LABEL}) WHERE c.gone IS NULL AND c.name IS NOT NULL RETURN c.name")
    return sorted(str(row[0]) for row in rows)


def details(place: Place) -> Script[dict[str, Any]]:
    """Return how vectors are indexed, and the labels of documents."""
    yield from check(place)
    return {"index": place.kind, "label": place.names.label.strip("`"), "generation": place.generation}
