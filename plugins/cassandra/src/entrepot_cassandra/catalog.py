# ruff: noqa: S608 - names come from `names.quoted`, columns from this package; every value is bound
"""Collections: what they record about themselves, and how they are made (D5). Scripts.

A collection is a table whose name no other ever has, so that whoever knows a collection that was dropped and made anew
reaches nothing of the new one. What it is stands in the keyspace's table `entrepot_collections`, in one row, with the keys
that have a slot: ``keys[3] = 'year'``. A key is given a slot by a conditional write before the first document that has it
is written, and keeps it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from entrepot.capabilities import Metric
from entrepot.errors import (
    BackendError,
    CollectionMismatchError,
    CollectionNotFoundError,
)
from entrepot.records import LAYOUT_VERSION, CollectionInfo
from entrepot_cassandra.commands import Ask, Pause, Schema, change, everything, has_table
from entrepot_cassandra.fields import indexed_columns
from entrepot_cassandra.filters import greatest, least
from entrepot_cassandra.names import CATALOGUE, new_table, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot_cassandra.commands import Script

_FIRST_WAIT: Final = 0.05
_FUNCTIONS: Final = {Metric.COSINE: "dot_product", Metric.DOT: "dot_product", Metric.EUCLIDEAN: "euclidean"}
"""Under cosine the core makes unit vectors, whose cosine is their product: no vector is refused for its dimension."""


class Place(NamedTuple):
    """A collection as the engine has it.

    Attributes:
        keyspace: Its keyspace.
        table: Its table.
        info: What it records about itself.
        slots: How many keys can have a slot.
        keys: Those that have one, as far as they are known here: later ones are put in.
    """

    keyspace: str
    table: str
    info: CollectionInfo
    slots: int
    keys: dict[str, int]

    @property
    def ann(self) -> bool:
        """Whether its searches are approximate unless they ask for ``exact=True``."""
        return True

    @property
    def path(self) -> str:
        """The table as it stands in a statement."""
        return f"{quoted(self.keyspace)}.{quoted(self.table)}"

    @property
    def similarity(self) -> str:
        """The function that compares two vectors."""
        return f"similarity_{_FUNCTIONS[self.info.metric]}"


def _catalogue(keyspace: str) -> str:
    return f"{quoted(keyspace)}.{CATALOGUE}"


def describe(keyspace: str, collection: str) -> Script[Place | None]:
    """Find a collection; one that is still being made is none.

    Raises:
        CollectionMismatchError: A newer layout.
    """
    known = yield from _record(keyspace, collection)
    return None if known is None or not known.ready else known.place


class _Record(NamedTuple):
    """A row of the catalogue.

    Attributes:
        place: The collection.
        ready: Whether its table has all its indexes.
    """

    place: Place
    ready: bool


def _record(keyspace: str, collection: str) -> Script[_Record | None]:
    if not (yield from has_table(keyspace, CATALOGUE)):
        return None
    found = yield Ask(
        "SELECT generation, layout, metric, dimension, model, slots, keys, ready"
        f" FROM {_catalogue(keyspace)} WHERE name = ?",
        (collection,),
        level="serial",
    )
    if not found.rows:
        return None
    table, layout, metric, dimension, model, slots, keys, ready = found.rows[0]
    if layout != LAYOUT_VERSION:
        msg = f"collection {collection!r} has layout {layout}, this version reads layout {LAYOUT_VERSION}"
        raise CollectionMismatchError(
            msg, hint="use the version of entrepot-cassandra that made it, or a newer one"
        )
    info = CollectionInfo(
        name=collection, dimension=dimension, metric=Metric(metric), model=model, layout=layout
    )
    given = cast("dict[int, str]", keys or {})
    place = Place(keyspace, table, info, slots, {key: slot for slot, key in given.items()})
    return _Record(place, bool(ready))


def create(keyspace: str, info: CollectionInfo, slots: int) -> Script[Place]:
    """Make a collection with its indexes; one that is there already is found.

    It is a dozen changes of the schema, which take seconds where there are many nodes. So the record is written first,
    as one that is not ready; whoever comes later, or again after the time was up, goes on with the rest.

    Raises:
        CollectionMismatchError: It was made at the same time with another metric or dimension.
    """
    known = yield from _record(keyspace, info.name)
    if known is None:
        known = yield from _begun(keyspace, info, slots)
    place = _fitting(known.place, info)
    if known.ready:
        return place
    marks = "".join(f", {least(slot)} varint, {greatest(slot)} varint" for slot in range(place.slots))
    yield Schema(
        f"CREATE TABLE IF NOT EXISTS {place.path} (id text PRIMARY KEY, ver uuid, text text, m text, t set<text>,"
        f" v vector<float, {info.dimension:d}>{marks})"
    )
    columns = [column for column in indexed_columns(place.slots) if column != "m"] + ["v"]
    there = yield Ask(
        "SELECT index_name FROM system_schema.indexes WHERE keyspace_name = ? AND table_name = ?",
        (keyspace, place.table),
        level="one",
    )
    made = {row[0] for row in there.rows}
    for column in columns:
        if _index(place, column) in made:
            continue
        function = f" WITH OPTIONS = {{'similarity_function': '{_FUNCTIONS[info.metric]}'}}"
        yield Schema(
            f"CREATE INDEX IF NOT EXISTS {quoted(_index(place, column))} ON {place.path} ({column}) USING 'sai'"
            + (function if column == "v" else "")
        )
    yield from _until_queryable(place, columns)
    told = yield change(
        f"UPDATE {_catalogue(keyspace)} SET ready = true WHERE name = ? IF generation = ?",
        info.name,
        place.table,
    )
    if not told.applied:
        yield Schema(f"DROP TABLE IF EXISTS {place.path}")
        msg = f"collection {info.name!r} was made and dropped at the same time"
        raise BackendError(msg, retryable=True)
    return place


def _catalogue_table(keyspace: str) -> str:
    return (
        f"CREATE TABLE IF NOT EXISTS {_catalogue(keyspace)} (name text PRIMARY KEY, generation text, layout int,"
        " metric text, dimension int, model text, slots int, keys map<int, text>, ready boolean)"
    )


def _begun(keyspace: str, info: CollectionInfo, slots: int) -> Script[_Record]:
    """Write the record of a collection that is not ready, or find that of another writer."""
    if not (yield from has_table(keyspace, CATALOGUE)):  # a change of the schema waits for all others
        yield Schema(_catalogue_table(keyspace))
    place = Place(keyspace, new_table(info.name), info, slots, {})
    told = yield change(
        f"INSERT INTO {_catalogue(keyspace)} (name, generation, layout, metric, dimension, model, slots, ready)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, false) IF NOT EXISTS",
        info.name,
        place.table,
        info.layout,
        str(info.metric),
        info.dimension,
        info.model,
        slots,
    )
    if told.applied:
        return _Record(place, ready=False)
    known = yield from _record(keyspace, info.name)
    if known is None:
        msg = f"collection {info.name!r} was made and dropped at the same time"
        raise BackendError(msg, retryable=True)
    return known


def _fitting(place: Place, info: CollectionInfo) -> Place:
    if (place.info.metric, place.info.dimension) != (info.metric, info.dimension):
        msg = f"collection {info.name!r} was made at the same time with another metric or dimension"
        raise CollectionMismatchError(msg, hint="open the store again")
    return place


def _index(place: Place, column: str) -> str:
    return f"{place.table}_{column}"


def _until_queryable(place: Place, columns: Sequence[str]) -> Script[None]:
    """Wait until the indexes answer; those of an empty table do at once."""
    names = [_index(place, column) for column in columns]
    wait = _FIRST_WAIT
    while True:
        found = yield Ask(
            "SELECT is_queryable FROM system_views.sai_column_indexes WHERE keyspace_name = ? AND index_name IN ?",
            (place.keyspace, names),
            level="one",
        )
        if len(found.rows) >= len(names) and all(row[0] for row in found.rows):
            return
        yield Pause(wait)
        wait *= 2


def drop(keyspace: str, collection: str) -> Script[None]:
    """Remove a collection with all its documents; a missing one is no error."""
    known = yield from _record(keyspace, collection)
    if known is None:
        return
    place = known.place
    # The table goes first: what is left by a failure in between can be dropped again.
    yield Schema(f"DROP TABLE IF EXISTS {place.path}")
    yield change(
        f"DELETE FROM {_catalogue(keyspace)} WHERE name = ? IF generation = ?", collection, place.table
    )


def list_collections(keyspace: str) -> Script[list[str]]:
    """Return the names of this library's collections in the keyspace, sorted by code point."""
    if not (yield from has_table(keyspace, CATALOGUE)):
        return []
    found = yield from everything(Ask(f"SELECT name, ready FROM {_catalogue(keyspace)}"))
    return sorted(row[0] for row in found if row[1])


def details(place: Place) -> Script[dict[str, Any]]:
    """Return the table, and the keys that have slots."""
    known = yield from describe(place.keyspace, place.info.name)
    if known is None or known.table != place.table:
        raise gone(place)
    return {"table": known.table, "slots": known.slots, "keys": sorted(known.keys)}


def gone(place: Place) -> CollectionNotFoundError:
    """Return the error for a collection that is not there any more."""
    return CollectionNotFoundError(f"there is no collection {place.info.name!r}")


def claim(place: Place, wanted: Sequence[str]) -> Script[None]:
    """Give slots to keys, as long as there are any; afterwards `place.keys` has those of all writers (D2).

    Raises:
        CollectionNotFoundError: The collection is gone, or another one.
    """
    while True:
        pending = [key for key in wanted if key not in place.keys]
        free = [slot for slot in range(place.slots) if slot not in place.keys.values()]
        given = list(zip(free, pending, strict=False))
        if not given:
            return
        sets = ", ".join(["keys[?] = ?"] * len(given))
        conditions = " AND ".join(["generation = ?"] + ["keys[?] = null"] * len(given))
        told = yield change(
            f"UPDATE {_catalogue(place.keyspace)} SET {sets} WHERE name = ? IF {conditions}",
            *(value for pair in given for value in pair),
            place.info.name,
            place.table,
            *(slot for slot, _ in given),
        )
        if told.applied:
            place.keys.update((key, slot) for slot, key in given)
            continue
        known = yield from describe(place.keyspace, place.info.name)
        if known is None or known.table != place.table:
            raise gone(place)
        place.keys.update(known.keys)
