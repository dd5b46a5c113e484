"""Reading the Cranfield collection that the demo searches: documents, queries, judged answers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from entrepot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FILES: Final = ("documents.jsonl", "queries.jsonl", "qrels.tsv")
PLACE: Final = Path("examples", "cranfield")
_GAIN_OF_NOTHING: Final = 5
"""Relevance codes run from 1, a complete answer, to 5, none: the gain is 5 - code."""


@dataclass(frozen=True)
class Collection:
    """A test collection.

    Attributes:
        documents: Records with id, title, author, bibliography, text, and year where it is known.
        queries: Text by id.
        gains: For each query id, the gain (0 to 4) of each judged document.
    """

    documents: list[dict[str, Any]]
    queries: dict[str, str]
    gains: Mapping[str, dict[str, float]]


def find(data: Path | None) -> Path:
    """Return the folder of the collection: the one given, or examples/cranfield of the repository.

    The repository is looked for from the working directory and from this module upwards; an installed
    wheel does not carry the collection.

    Raises:
        ConfigurationError: It is not there.
    """
    if data is not None:
        missing = [name for name in FILES if not (data / name).is_file()]
        if missing:
            message = f"{data} does not hold the Cranfield collection: {', '.join(missing)} not found"
            raise ConfigurationError(message, hint=f"the folder needs {', '.join(FILES)}")
        return data
    for start in (Path.cwd(), Path(__file__).resolve()):
        for folder in (start, *start.parents):
            if all((folder / PLACE / name).is_file() for name in FILES):
                return folder / PLACE
    raise ConfigurationError(
        "the demo searches the Cranfield collection, which stands in the repository of entrepot and not in the installed package",
        hint=f"run it in a clone of the repository, or name the folder: entrepot demo --data DIR (with {', '.join(FILES)})",
    )


def read(folder: Path) -> Collection:
    """Read the collection.

    Raises:
        ConfigurationError: A file does not have the expected form; the message names file and line.
    """
    documents = list(_records(folder / "documents.jsonl", ("id", "title", "text")))
    queries = {
        str(record["id"]): str(record["text"])
        for record in _records(folder / "queries.jsonl", ("id", "text"))
    }
    gains: dict[str, dict[str, float]] = {query: {} for query in queries}
    path = folder / "qrels.tsv"
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        cells = line.split("\t")
        if number == 1 and cells == ["query_id", "document_id", "relevance"]:
            continue
        if (
            len(cells) != len(("query", "document", "code"))
            or cells[0] not in queries
            or not cells[2].isdigit()
        ):
            message = (
                f"{path}, line {number}: expected query_id, document_id and relevance code, tab-separated"
            )
            raise ConfigurationError(message)
        gains[cells[0]][cells[1]] = float(_GAIN_OF_NOTHING - int(cells[2]))
    return Collection(documents, queries, gains)


def _records(path: Path, needed: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                record = json.loads(line)
            except ValueError as error:
                message = f"{path}, line {number}: no JSON ({error})"
                raise ConfigurationError(message) from error
            if not isinstance(record, dict) or not all(name in record for name in needed):
                message = f"{path}, line {number}: expected an object with {', '.join(needed)}"
                raise ConfigurationError(message)
            yield record
