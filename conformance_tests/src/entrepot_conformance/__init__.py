"""The suite that holds every entrepot backend to one contract.

Version 0.1 packages the shared cases: JSON files below the folder ``cases`` of this package, which any
language can read. `case_files` names them, `load_cases` reads one.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

__all__ = ["case_files", "load_cases"]


def case_files() -> list[str]:
    """Return the names of the case files, such as ``filters/ranges``, sorted."""
    return sorted(_below(files(__name__) / "cases", ""))


def load_cases(name: str) -> Any:
    """Return the content of a case file.

    Args:
        name: One of `case_files()`.

    Raises:
        FileNotFoundError: There is no such file.
    """
    return json.loads((files(__name__) / "cases" / f"{name}.json").read_text("utf-8"))


def _below(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _below(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".json"):
            yield prefix + entry.name.removesuffix(".json")
