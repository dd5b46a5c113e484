"""Collections: what there is, how they are made, and what each records about itself (D5). Scripts.

A collection is a HASH that says what it is, a HASH that numbers its columns, an index, and a HASH for each
document. Index and documents carry the collection's *generation* in their names: a number that no other
collection of the namespace ever had, nor will have in a server that lost its data: it is the time in microseconds,
and greater than the last one. Whoever knows an older collection of the same name therefore reaches nothing of the
new one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from entrepot.capabilities import Metric
from entrepot.errors import CollectionMismatchError, CollectionNotFoundError, ConfigurationError
from entrepot.records import LAYOUT_VERSION, CollectionInfo
from entrepot_redis import faults
from entrepot_redis.commands import Ask, Lua
from entrepot_redis.fields import FULL, Columns
from entrepot_redis.replies import mapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot_redis.commands import Command, Script
    from entrepot_redis.names import StoreNames

Kind = Literal["flat", "hnsw"]

_DISTANCES: Final = {Metric.COSINE: "COSINE", Metric.DOT: "IP", Metric.EUCLIDEAN: "L2"}
_FIXED: Final = 5
"""Fields of an index beside its columns: t, q, x, w and v."""
MOST_COLUMNS: Final = 1024 - _FIXED - 19
"""Columns that an index has room for: the engine takes 1,024 fields, and some are kept free."""

_CREATE: Final = Lua("""
local record = redis.call('HGETALL', KEYS[1])
if #record > 0 then return record end
local now = redis.call('TIME')
local last = tonumber(redis.call('GET', KEYS[3]) or '0')
local generation = string.format('%d', math.max(last + 1, now[1] * 1000000 + now[2]))
redis.call('SET', KEYS[3], generation)
local index = ARGV[1] .. generation
redis.call('DEL', KEYS[4])
local vector = {}
for at = 10, #ARGV do vector[#vector + 1] = ARGV[at] end
redis.call('FT.CREATE', index, 'ON', 'HASH', 'PREFIX', '1', index .. ':', 'STOPWORDS', '0', 'NOOFFSETS',
    'SKIPINITIALSCAN', 'SCHEMA',
    't', 'TAG', 'SEPARATOR', ',', 'CASESENSITIVE', 'q', 'NUMERIC', 'SORTABLE',
    'x', 'TEXT', 'NOSTEM', 'w', 'TEXT', 'NOSTEM', 'v', 'VECTOR', unpack(vector))
redis.call('HSET', KEYS[1], 'generation', generation, 'written', '0', 'columns', '0',
    'name', ARGV[2], 'layout', ARGV[3], 'metric', ARGV[4], 'dimension', ARGV[5], 'index', ARGV[6],
    'most_columns', ARGV[7])
if ARGV[8] == '1' then redis.call('HSET', KEYS[1], 'model', ARGV[9]) end
redis.call('HSET', KEYS[2], ARGV[2], generation)
return redis.call('HGETALL', KEYS[1])
""")
"""KEYS: record, registry, counter, columns. ARGV: base, name, layout, metric, dimension, kind, most columns,
whether there is a model, model, then the vector field's options. Returns the record."""

_DROP: Final = Lua("""
local generation = redis.call('HGET', KEYS[1], 'generation')
if generation then
    local gone = redis.pcall('FT.DROPINDEX', ARGV[1] .. generation, 'DD')
    if type(gone) == 'table' and gone.err and not string.find(string.lower(gone.err), 'index') then
        return gone
    end
end
redis.call('DEL', KEYS[1], KEYS[3])
redis.call('HDEL', KEYS[2], ARGV[2])
""")
"""KEYS: record, registry, columns. ARGV: base, name."""

_NUMBER: Final = Lua("""
if redis.call('HGET', KEYS[1], 'generation') ~= ARGV[1] then return false end
local fresh = {}
local full = redis.call('HEXISTS', KEYS[2], 'full') == 1
if not full then
    for at = 3, #ARGV do
        if redis.call('HEXISTS', KEYS[2], ARGV[at]) == 0 then fresh[#fresh + 1] = ARGV[at] end
    end
end
if #fresh > 0 then
    local used = tonumber(redis.call('HGET', KEYS[1], 'columns'))
    local room = tonumber(redis.call('HGET', KEYS[1], 'most_columns')) - used
    local schema = {}
    local entries = {}
    for at = 1, math.min(#fresh, room) do
        local number = string.format('%d', used + at)
        schema[#schema + 1] = 'f' .. number
        schema[#schema + 1] = 'NUMERIC'
        entries[#entries + 1] = fresh[at]
        entries[#entries + 1] = number
    end
    if #schema > 0 then
        redis.call('FT.ALTER', ARGV[2], 'SKIPINITIALSCAN', 'SCHEMA', 'ADD', unpack(schema))
        redis.call('HSET', KEYS[2], unpack(entries))
        redis.call('HSET', KEYS[1], 'columns', string.format('%d', used + #schema / 2))
    end
    if #fresh > room then redis.call('HSET', KEYS[2], 'full', '1') end
end
return redis.call('HGETALL', KEYS[2])
""")
"""KEYS: record, columns. ARGV: generation, index, then names of columns. Returns all columns and their numbers,
or nothing if the collection is another one. The index gets a field before the name gets its number."""


class Place(NamedTuple):
    """A collection as the server has it.

    Attributes:
        info: What it records about itself.
        kind: Which index it has.
        generation: Which collection of this name it is.
        columns: The columns of its index, as far as they are known here.
    """

    info: CollectionInfo
    kind: Kind
    generation: str
    columns: Columns

    @property
    def ann(self) -> bool:
        """Whether searches may be approximate."""
        return self.kind == "hnsw"


class IndexPlan(NamedTuple):
    """The index that a new collection gets."""

    kind: Kind
    m: int
    ef_construction: int
    most_columns: int

    def options(self, info: CollectionInfo) -> list[str]:
        """Return the options of the vector field, as FT.CREATE takes them behind VECTOR."""
        options = ["TYPE", "FLOAT32", "DIM", str(info.dimension), "DISTANCE_METRIC", _DISTANCES[info.metric]]
        if self.kind == "hnsw":
            options += ["M", str(self.m), "EF_CONSTRUCTION", str(self.ef_construction)]
        return [self.kind.upper(), str(len(options)), *options]


def check_server() -> Script[None]:
    """Refuse a server that cannot keep the contract.

    Raises:
        ConfigurationError: It is part of a cluster, or has no search engine.
    """
    able = yield from has_search()
    if not able:
        msg = "the server has no search engine"
        raise ConfigurationError(msg, hint="use Redis 8, or Redis Stack 7.4")


def has_search() -> Script[bool]:
    """Return whether the server has a search engine.

    Raises:
        ConfigurationError: It is part of a cluster.
    """
    [cluster, search] = yield Ask([_guarded("INFO", "cluster"), _guarded("FT.INFO", "entrepot::none")])
    if b"cluster_enabled:1" in (cluster or b""):
        raise faults.cluster("the server")
    # An index that is not there is unknown, too.
    return b"unknown" not in (search or b"").lower().replace(b"unknown index", b"")


def _guarded(*command: str) -> Command:
    """Return a command whose error comes as a text: without the right to ask, nothing is known."""
    script = "local a = redis.pcall(unpack(ARGV)) if type(a) == 'table' then return a.err or '' end return a"
    return ("EVAL", script, 0, *command)


def describe(names: StoreNames, collection: str) -> Script[Place | None]:
    """Return a collection, or None if there is none.

    Raises:
        CollectionMismatchError: Something of its name is not this library's, or its layout is newer.
    """
    [record, columns] = yield Ask([("HGETALL", names.record), ("HGETALL", names.columns)])
    return _place(mapped(record), mapped(columns), collection)


def _place(record: dict[bytes, bytes], columns: dict[bytes, bytes], collection: str) -> Place | None:
    if not record:
        return None
    try:
        layout = int(record[b"layout"])
        generation, kind = record[b"generation"].decode(), record[b"index"].decode()
        metric, dimension = Metric(record[b"metric"].decode()), int(record[b"dimension"])
    except (KeyError, ValueError):
        raise _foreign(collection) from None
    if layout != LAYOUT_VERSION:
        msg = f"collection {collection!r} has layout {layout}, this version reads layout {LAYOUT_VERSION}"
        raise CollectionMismatchError(
            msg, hint="use the version of entrepot-redis that made it, or a newer one"
        )
    model = record.get(b"model")
    info = CollectionInfo(
        name=collection,
        dimension=dimension,
        metric=metric,
        model=None if model is None else model.decode(),
        layout=layout,
    )
    numbers = {name: int(number) for name, number in columns.items() if name != FULL}
    return Place(
        info, "hnsw" if kind == "hnsw" else "flat", generation, Columns(numbers, full=FULL in columns)
    )


def create(names: StoreNames, info: CollectionInfo, plan: IndexPlan) -> Script[Place]:
    """Make a collection, unless it is there; return it.

    Raises:
        CollectionMismatchError: It is there by now with another metric or dimension, or something else
            has its name.
    """
    command = _CREATE(
        [names.record, names.registry, names.counter, names.columns],
        names.base,
        info.name,
        info.layout,
        str(info.metric),
        info.dimension,
        plan.kind,
        plan.most_columns,
        "0" if info.model is None else "1",
        info.model or "",
        *plan.options(info),
    )
    yield Ask([command], writes=True)
    place = yield from describe(names, info.name)
    if place is None or (place.info.metric, place.info.dimension) != (info.metric, info.dimension):
        msg = f"collection {info.name!r} was made at the same time with another metric or dimension"
        raise CollectionMismatchError(msg, hint="open the store again")
    return place


def drop(names: StoreNames, collection: str) -> Script[None]:
    """Remove a collection with all its documents; a missing one is no error.

    Raises:
        CollectionMismatchError: What has its name is not this library's.
    """
    yield from describe(names, collection)
    yield Ask([_DROP([names.record, names.registry, names.columns], names.base, collection)], writes=True)


def list_collections(names: StoreNames) -> Script[list[str]]:
    """Return the names of the collections of the namespace, sorted by code point."""
    [found] = yield Ask([("HKEYS", names.registry)])
    return sorted(name.decode() for name in found)


def number_columns(names: StoreNames, place: Place, wanted: Sequence[bytes]) -> Script[None]:
    """Give columns a number, as far as there is room.

    Raises:
        CollectionMismatchError, CollectionNotFoundError: The collection is no longer the one that was described.
    """
    index = names.index_of(place.generation)
    [columns] = yield Ask([_NUMBER([names.record, names.columns], place.generation, index, *wanted)])
    if columns is None:
        yield from refuse_stale(names, place)
    else:
        place.columns.learn_all(mapped(columns))


def asked_columns(names: StoreNames, unknown: Sequence[bytes]) -> list[Command]:
    """Return the commands whose replies `learned` takes in; they go before what needs the columns."""
    return [("HMGET", names.columns, FULL, *unknown), ("HGET", names.record, "generation")]


def learned(
    names: StoreNames,
    place: Place,
    unknown: Sequence[bytes],
    numbers: Sequence[Any],
    generation: bytes | None,
) -> Script[bool]:
    """Take in the numbers of columns; return whether there was anything to learn.

    That a column has none is only true for the moment.

    Raises:
        CollectionNotFoundError, CollectionMismatchError: The collection was dropped, or made anew.
    """
    check_generation(place, generation)
    if numbers[0] is not None:  # from now on nothing changes, so all is worth knowing
        [everything] = yield Ask([("HGETALL", names.columns)])
        place.columns.learn_all(mapped(everything))
        return True
    place.columns.learn(unknown, numbers[1:])
    return any(number is not None for number in numbers[1:])


def refuse_stale(names: StoreNames, place: Place) -> Script[None]:
    """Refuse to go on if the collection is no longer the one that was described.

    Raises:
        CollectionNotFoundError: It was dropped.
        CollectionMismatchError: It was dropped and made anew.
    """
    [generation] = yield Ask([("HGET", names.record, "generation")])
    check_generation(place, generation)


def check_generation(place: Place, generation: bytes | None) -> None:
    """As `refuse_stale`, of a generation that was read along with something else."""
    if generation is None:
        msg = f"there is no collection {place.info.name!r}"
        raise CollectionNotFoundError(msg)
    if generation.decode() != place.generation:
        msg = f"collection {place.info.name!r} was dropped and made anew meanwhile"
        raise CollectionMismatchError(
            msg, hint="the store knows the new one now: try again, if it is the one you mean"
        )


def details(names: StoreNames, place: Place) -> Script[dict[str, Any]]:
    """Return what kind of index there is, its size and its columns, and what it failed to take."""
    [info] = yield Ask([("FT.INFO", names.index_of(place.generation))])
    facts = mapped(info)
    size = facts.get(b"total_index_memory_sz_mb")
    return {
        "index": place.kind,
        "index_bytes": None if size is None else round(float(size) * 1024 * 1024),
        "indexing_failures": int(float(facts.get(b"hash_indexing_failures", 0))),
        "columns": len(facts.get(b"attributes", ())) - _FIXED,
        "columns_full": place.columns.full,
    }


def _foreign(collection: str) -> CollectionMismatchError:
    msg = f"the key of collection {collection!r} was not made by this library"
    return CollectionMismatchError(msg, hint="choose another name for the collection, or another namespace")
