"""Encodings: how one meaning fits engines that index less than filters ask for.

Plugins index documents with these codes and compare the codes of operands with them. All are pure
functions with fixed bytes: an index written today is read by every later version.

**Ordered integers** (`entrepot.encoding.integers`). Codes compare as the values do; equal values,
``1`` and ``1.0`` or ``0.0`` and ``-0.0``, have one code, all others differ.

| function | code | property | for engines that |
|---|---|---|---|
| `number_code` | 75 bits | order of int64 and float together, injective | merge integers past 2^53 |
| `instant_code` | 59 bits | order of instants, injective | keep milliseconds, or lack datetimes |
| `string_code` | 8 bits a byte | order up to a length, then a superset | order strings not, or by locale |
| `scalar_code` | one band a kind | all of these in one column | have few columns (Cassandra) |
| `nearest_double` | a double | order, not injective from 2^53 to 2^63 | have doubles only (Pinecone) |
| `split_double` | double and remainder | order of the pair, injective | have doubles only (Redis) |
| `string_chunks` | 48 bits each | order of the tuples up to a length | compare numbers only (Redis, Qdrant) |

**Ordered text** (`entrepot.encoding.text`). In the alphabet ``0-9a-v`` (base32hex, RFC 4648, in lower
case): sorts alike by code point, by byte, by UTF-16 unit and under any locale, and there is nothing in it
that an engine could trim, fold, split or escape.

| function | characters | property | for engines that |
|---|---|---|---|
| `number_text` | 15 | as `number_code` | order text, not such numbers (Milvus) |
| `instant_text` | 12 | as `instant_code` | order text |
| `iso_instant` | 27 | order, readable | keep text as it is (Milvus, PostgreSQL) |
| `string_text` | at most 88 | identity at any length; order up to 40 bytes | cut, fold or trim text |
| `element_text` | any | kind, order and identity, short | keep text as it is (Elasticsearch, MongoDB, Neo4j) |
| `compact` | shorter | order and identity of codes of one width | pay for bytes |
| `utf16_ordered` | any | UTF-16 order is code-point order | compare UTF-16 units (anything on Java) |

**Tokens** (`entrepot.encoding.tokens`, `entrepot.encoding.intervals`). 24 characters of the same alphabet,
of 120 bits of BLAKE2b.

| function | property | for engines that |
|---|---|---|
| `presence_token` | one a key; answers IS NULL | cannot ask whether a field exists |
| `equality_token` | one a key and value; answers ==, IN | have one multi-valued field for all keys |
| `key_token` | one a key | restrict names of fields |
| `interval_tokens`, `range_tokens` | a range is a bounded union of tokens | know only equality |

**Lists**. `extremes` gives the least and greatest element a key: enough for every one-sided comparison
(F2), because some element is below v exactly if the least is.

**Identifiers**. `engine_id` maps an id to a UUID where an engine restricts ids (D1).

An encoding that loses something says so: `Ordered` carries `exact`. If it is false, `possible` widens the
operator to one that finds every match and perhaps more (a superset, for a plain leaf), `certain` narrows it
to one that finds only matches (whose complement is a superset, for a negated leaf).
"""

from entrepot.encoding.elements import extremes
from entrepot.encoding.identifiers import ID_NAMESPACE, engine_id
from entrepot.encoding.integers import (
    INSTANT_BITS,
    NUMBER_BITS,
    ChunkTest,
    Ordered,
    all_of_any,
    any_of_all,
    certain,
    instant_at,
    instant_code,
    microseconds,
    nearest_double,
    number_code,
    possible,
    scalar_band,
    scalar_code,
    split_double,
    string_chunks,
    string_code,
)
from entrepot.encoding.intervals import interval_tokens, range_tokens
from entrepot.encoding.text import (
    compact,
    element_text,
    instant_text,
    iso_instant,
    number_text,
    string_bound,
    string_text,
    utf16_ordered,
)
from entrepot.encoding.tokens import (
    KIND_LETTERS,
    digest,
    equality_token,
    key_token,
    metadata_tokens,
    presence_token,
)

__all__ = [
    "ID_NAMESPACE",
    "INSTANT_BITS",
    "KIND_LETTERS",
    "NUMBER_BITS",
    "ChunkTest",
    "Ordered",
    "all_of_any",
    "any_of_all",
    "certain",
    "compact",
    "digest",
    "element_text",
    "engine_id",
    "equality_token",
    "extremes",
    "instant_at",
    "instant_code",
    "instant_text",
    "interval_tokens",
    "iso_instant",
    "key_token",
    "metadata_tokens",
    "microseconds",
    "nearest_double",
    "number_code",
    "number_text",
    "possible",
    "presence_token",
    "range_tokens",
    "scalar_band",
    "scalar_code",
    "split_double",
    "string_bound",
    "string_chunks",
    "string_code",
    "string_text",
    "utf16_ordered",
]
