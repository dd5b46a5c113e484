"""`Media`: a picture, a sound or a file, by reference or by content."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from entrepot.errors import MessageError

_MIME_TYPE: Final = re.compile(r"[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+(\s*;.*)?")


class Media(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A medium of a message or a document: its type, and either a URL or its bytes.

    Attributes:
        mime_type: Such as ``image/png``.
        url: Where the content lies; stored as it is, never fetched.
        data: The content itself; base64 in JSON.
        name: A name to show, such as the file's.

    Raises:
        MessageError: Neither or both of `url` and `data`, no MIME type, or another type of value.
    """

    mime_type: str
    url: str | None = None
    data: bytes | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        """Check that there is exactly one content and a MIME type."""
        for name, kind in (("mime_type", str), ("url", str), ("data", bytes), ("name", str)):
            value: object = getattr(self, name)
            if not isinstance(value, kind) and (value is not None or name == "mime_type"):
                msg = f"a medium's {name} must be {kind.__name__}, not {type(value).__name__}"
                raise MessageError(msg)
        if (self.url is None) == (self.data is None):
            msg = "media needs either a url or data"
            raise MessageError(msg)
        if not _MIME_TYPE.fullmatch(self.mime_type):
            msg = f"media has the MIME type {self.mime_type!r}, which is none"
            raise MessageError(msg, hint="use a type such as image/png")
