"""Server-sent events out of bytes, however they were cut.

Lines end with CR, LF or both, as the standard of HTML says (9.2.6, "Interpreting an event stream"), and nowhere else: JSON may
hold other characters that Python's `splitlines` takes for the end of a line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_END: Final = re.compile(rb"\r\n|\n|\r")


class Events:
    """Takes bytes as they come, and returns the data of those events that are whole."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take a piece; yields the data of each event that it completes."""
        self._rest += piece
        start = 0
        for end in _END.finditer(self._rest):
            # A CR at the end may be half of an end of line.
            if end[0] == b"\r" and end.end() == len(self._rest):
                break
            line = bytes(self._rest[start : end.start()])
            start = end.end()
            yield from self._line(line)
        del self._rest[:start]

    def _line(self, line: bytes) -> Iterator[bytes]:
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
        elif self._data:
            data, self._data = b"\n".join(self._data), []
            yield data

    def finish(self) -> Iterator[bytes]:
        """Say that nothing more comes; yields an event that lacks only the empty line at its end."""
        if self._rest:
            line = bytes(self._rest).rstrip(b"\r")
            self._rest.clear()
            yield from self._line(line)
        yield from self._line(b"")
