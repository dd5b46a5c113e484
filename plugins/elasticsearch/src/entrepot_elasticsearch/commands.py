"""What a script is made of: requests, written once for sync and async code.

A script is a generator that yields requests and gets the JSON of their answers; an error comes as one of entrepot's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

if TYPE_CHECKING:
    from entrepot.scripted import Script as Script  # noqa: PLC0414 - for the modules of this package


class Call(NamedTuple):
    """A request.

    Attributes:
        method: The HTTP method.
        path: Path and parameters, percent-encoded.
        body: What is sent.
        lines: Whether the body is one JSON text a line, as `_bulk` and `_msearch` take it.
        writes: Whether it changes anything.
    """

    method: str
    path: str
    body: bytes | None = None
    lines: bool = False
    writes: bool = False

    def __repr__(self) -> str:
        """Return the request without its body, which holds values."""
        return f"<{self.method} {self.path}>"


def read(path: str, body: object = None) -> Call:
    """Return a request that changes nothing."""
    if body is None:
        return Call("GET", path)
    return Call("POST", path, msgspec.json.encode(body))


def read_lines(path: str, lines: list[Any]) -> Call:
    """Return a request that changes nothing, whose body has several lines."""
    return Call("POST", path, joined([msgspec.json.encode(line) for line in lines]), lines=True)


def change(method: str, path: str, body: object = None) -> Call:
    """Return a request that changes something."""
    return Call(method, path, None if body is None else msgspec.json.encode(body), writes=True)


def change_lines(path: str, body: bytes) -> Call:
    """Return a request that changes something, whose body has several lines."""
    return Call("POST", path, body, lines=True, writes=True)


def joined(lines: list[bytes]) -> bytes:
    """Return lines as one body; the last one ends as well."""
    return b"\n".join([*lines, b""])
