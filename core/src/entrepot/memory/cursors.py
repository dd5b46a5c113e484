"""Cursors of a listing of conversations (M9): the last name of a page, so that they never expire."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from entrepot.errors import RequestError
from entrepot.records import Page

if TYPE_CHECKING:
    from collections.abc import Sequence


def page_of(names: Sequence[bytes], limit: int) -> Page[str]:
    """Return a page of at most `limit` of the names, which are UTF-8 and sorted; there is a next one if more came."""
    token = base64.urlsafe_b64encode(names[limit - 1]).decode() if len(names) > limit else None
    return Page([name.decode() for name in names[:limit]], token)


def name_behind(cursor: str | None) -> bytes | None:
    """Return the name behind which a page begins; None for the first page.

    Raises:
        RequestError: The cursor is none that `page_of` made.
    """
    if cursor is None:
        return None
    try:
        name = base64.b64decode(cursor, altchars=b"-_", validate=True)
        name.decode()
    except (binascii.Error, ValueError, TypeError):
        raise RequestError(
            "the cursor is none of this repository's", hint="pass the token of a page"
        ) from None
    return name
