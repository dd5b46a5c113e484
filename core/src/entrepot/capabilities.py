"""What a backend may decline, and the limits that it declares: the contract's closed list."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Literal

import msgspec


class Metric(StrEnum):
    """How two vectors are compared (S2)."""

    COSINE = "cosine"
    DOT = "dot"
    EUCLIDEAN = "euclidean"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes that a backend takes; None means that nothing but memory bounds it (D8).

    Every backend takes at least the figures given here as defaults, unless its engine cannot.

    Attributes:
        text_bytes: UTF-8 bytes of a document's text.
        metadata_bytes: UTF-8 bytes of all keys and values of a document.
        string_bytes: UTF-8 bytes of one string value.
        keys: Metadata keys of a document.
        list_elements: List elements of a document, in all its keys.
        record_bytes: Text, metadata and id of a document together.
        dimension: Components of a vector.
        write_batch: Documents that one call of the plugin's `_write` takes.
        top_k: Hits of a SEMANTIC search that the plugin's `_search` takes; for more the core ranks a
            scan itself (S5).
    """

    text_bytes: int | None = 32 * 1024
    metadata_bytes: int | None = 16 * 1024
    string_bytes: int | None = 8 * 1024
    keys: int | None = 100
    list_elements: int | None = 1000
    record_bytes: int | None = None
    dimension: int | None = None
    write_batch: int = 1000
    top_k: int | None = None

    @property
    def settled_by_json(self) -> int:
        """Return a length that keeps all limits, if a document's JSON and its text have no more characters.

        JSON is never shorter than what it holds; a character has at most four bytes of UTF-8 and an
        id at most 2,048; a key takes at least five characters of JSON (``"a":1``) and an element of a
        list at least two.
        """
        bounds = [
            self.text_bytes and self.text_bytes // 4,
            self.metadata_bytes,
            self.string_bytes,
            self.keys and 5 * self.keys,
            self.list_elements and 2 * self.list_elements,
            self.record_bytes and max((self.record_bytes - 2048) // 5, 1),
        ]
        return min((bound for bound in bounds if bound is not None), default=sys.maxsize)


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What a store offers. What is declined is refused by the core before any I/O.

    Attributes:
        fulltext: FULLTEXT searches (S9).
        hybrid: HYBRID searches (S9).
        exact: Exact searches on demand (S6).
        ann: An approximate index; without one every search is exact.
        metrics: Metrics that a collection can be made with.
        ttl: Conversations that expire (M8).
        memory_search: Questions across conversations (M10).
        conditional_write: Whether a write can depend on what is stored: ``"atomic"`` (the engine
            compares and writes in one step), ``"checked"`` (read before write), or None.
        atomic_batch: Readers see a call of up to ``limits.write_batch`` documents whole or not at all, not
            only each document (D2).
        pushdown: Whether the engine takes every filter exactly, or part of them (F9).
        limits: Sizes.
    """

    fulltext: bool = False
    hybrid: bool = False
    exact: bool = True
    ann: bool = False
    metrics: frozenset[Metric] = frozenset(Metric)
    ttl: bool = False
    memory_search: bool = False
    conditional_write: Literal["atomic", "checked"] | None = None
    atomic_batch: bool = False
    pushdown: Literal["full", "partial"] = "full"
    limits: Limits = Limits()
