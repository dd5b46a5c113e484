"""What a call raises, whatever it is (E1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable


def raised_by(call: Callable[[], object], what: object = "the call") -> Exception:
    """Return the exception of a call that has to raise one; which, is for the test to say."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - any is an answer
        return error
    pytest.fail(f"{what} raised nothing")
