"""What a script is made of: requests of Pinecone's HTTP API, written once for sync and async code.

A script is a generator that yields these and gets the answers; an error comes as one of entrepot's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.scripted import Script as Script  # noqa: PLC0414 - for the modules of this package

CONTROL: Final = ""
"""Where indexes are described, made and deleted: stands for the base of the control plane."""

Parameters = tuple[tuple[str, str], ...]


class Call(NamedTuple):
    """A request.

    Attributes:
        base: `CONTROL`, or the URL of an index.
        method: The HTTP method.
        path: The path behind the base.
        parameters: What stands behind the path; names may come several times.
        body: JSON.
        writes: Whether it changes anything.
    """

    base: str
    method: str
    path: str
    parameters: Parameters = ()
    body: bytes | None = None
    writes: bool = False

    def __repr__(self) -> str:
        """Return the request without its parameters and body, which hold values."""
        return f"<{self.method} {self.path}>"


class Answer(NamedTuple):
    """What came back.

    Attributes:
        body: The JSON.
        committed: Of a write: its place in the index's log, if the server tells.
        indexed: Of a query: up to which place of the log it saw, if the server tells.
    """

    body: dict[str, Any]
    committed: int | None = None
    indexed: int | None = None


class Pause(NamedTuple):
    """Wait for so many seconds."""

    seconds: float


def read(base: str, path: str, parameters: Sequence[tuple[str, str]] = ()) -> Call:
    """Return a request that reads."""
    return Call(base, "GET", path, tuple(parameters))


def ask(base: str, path: str, body: dict[str, Any]) -> Call:
    """Return a request that reads and has a body."""
    return Call(base, "POST", path, (), msgspec.json.encode(body))


def change(base: str, method: str, path: str, body: dict[str, Any] | bytes | None = None) -> Call:
    """Return a request that changes something."""
    encoded = msgspec.json.encode(body) if isinstance(body, dict) else body
    return Call(base, method, path, (), encoded, writes=True)
