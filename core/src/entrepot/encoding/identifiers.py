"""Identifiers: ids for engines that do not take any string."""

from __future__ import annotations

from typing import Final
from uuid import UUID, uuid5

ID_NAMESPACE: Final = UUID("6f1c52d4-0d0e-5a55-9b4e-3c1f6e9a7b21")
"""The namespace of `engine_id`. It never changes: stored points are found by it."""


def engine_id(document_id: str) -> UUID:
    """Return the UUID (version 5, RFC 9562) that stands for a document's id in engines that restrict ids.

    Every id is mapped, also one that is a UUID already, so that two ids never meet; the plugin stores the
    original beside it (D1). Of 122 bits; ids are told apart byte by byte of their UTF-8.
    """
    return uuid5(ID_NAMESPACE, document_id)
