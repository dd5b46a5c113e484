"""Names in the server: the one place where a name of the user's becomes part of a key. Pure functions.

Keys are made of parts with ``:`` between them (the store) or ``/`` (the memory). A part that a user chose is
escaped so that it holds neither, and no two names share keys. The last part, an id, stands as it is:
nothing follows it, so nothing in it can be taken for something else.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import Final, NamedTuple

_OTHER: Final = re.compile(rb"[^A-Za-z0-9_.-]")
_MAX_ESCAPED: Final = 64
_READABLE: Final = 24


def escaped(name: str) -> str:
    """Return a name in the characters ``A-Z a-z 0-9 _ . - %``, different for every name.

    All others stand as ``%`` and two hexadecimal digits for each byte of their UTF-8. What would be longer
    than 64 characters becomes its beginning, ``%`` and 80 bits of its digest: a ``%`` that is followed by
    lower-case digits is no escape, so the two forms never meet.
    """
    text = _OTHER.sub(lambda found: b"%%%02X" % found[0][0], name.encode()).decode()
    if len(text) <= _MAX_ESCAPED:
        return text
    return f"{text[:_READABLE]}%x{sha256(name.encode()).hexdigest()[:20]}"


class StoreNames(NamedTuple):
    """Keys of a collection.

    Attributes:
        base: What the collection's index and documents begin with; a generation and the id follow.
        record: The HASH in which the collection says what it is.
        columns: The HASH that gives each column of its index a number.
        registry: The HASH of all collections of the namespace, with their generations.
        counter: What numbers generations.
    """

    base: str
    record: str
    columns: str
    registry: str
    counter: str

    def index_of(self, generation: str) -> str:
        """Return the name of the index."""
        return f"{self.base}{generation}"

    def prefix(self, generation: str) -> bytes:
        """Return what the keys of documents begin with; the id follows."""
        return f"{self.base}{generation}:".encode()


def store_names(namespace: str, collection: str) -> StoreNames:
    """Return the keys of a collection; generations are digits, so none is taken for another part."""
    space, name = escaped(namespace), escaped(collection)
    return StoreNames(
        base=f"{space}:{name}:",
        record=f"{space}:{name}",
        columns=f"{space}:{name}:columns",
        registry=f"{space}::collections",
        counter=f"{space}::generation",
    )


class MemoryNames(NamedTuple):
    """Keys of a chat memory.

    Attributes:
        base: What all of them begin with.
        conversations: The sorted set of conversation ids.
        heads: The HASH of generations and the conversations that they belong to, and whether there is an
            index over messages.
        due: The sorted set of generations by the time at which they expire.
        counter: What numbers generations.
        said: The name of the index over messages; its documents follow it, with ``/``.
        unsaid: The set of generations that hold messages which are not in the index.
    """

    base: str
    conversations: str
    heads: str
    due: str
    counter: str
    said: str
    unsaid: str

    def log(self, conversation: str) -> bytes:
        """Return the key of a conversation's list of messages."""
        return f"{self.base}log/{conversation}".encode()

    def ids(self, conversation: str) -> bytes:
        """Return the key of a conversation's ids, with what it records about itself."""
        return f"{self.base}ids/{conversation}".encode()


def memory_names(memory: str) -> MemoryNames:
    """Return the keys of a memory."""
    base = f"{escaped(memory)}/"
    return MemoryNames(
        base=base,
        conversations=f"{base}conversations",
        heads=f"{base}heads",
        due=f"{base}due",
        counter=f"{base}generation",
        said=f"{base}said",
        unsaid=f"{base}unsaid",
    )
