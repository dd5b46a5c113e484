"""What a script is made of: calls of the client, written once for sync and async code.

A script is a generator that yields calls and gets what they return; an error comes as one of entrepot's.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Call(NamedTuple):
    """A call of the client.

    Attributes:
        method: The name of a method that `MilvusClient` and `AsyncMilvusClient` share.
        arguments: What it is given, by name.
        writes: Whether it changes anything.
    """

    method: str
    arguments: dict[str, Any]
    writes: bool = False


def read(method: str, **arguments: Any) -> Call:
    """Return a call that changes nothing."""
    return Call(method, arguments)


def change(method: str, **arguments: Any) -> Call:
    """Return a call that changes something."""
    return Call(method, arguments, writes=True)
