"""What commands print: rich tables on a terminal, tab-separated text in a pipe, JSON on demand.

Results go to standard output. Progress and remarks go to standard error, progress only on a terminal.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

# C0 without tab and line end, DEL and C1, and the marks of Unicode that turn or hide what is written.
_COMMANDS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def print_json(value: object) -> None:
    """Print one JSON text, indented on a terminal and on one line in a pipe.

    A datetime is written as in stored metadata: ``{"datetime": "2026-01-31T12:00:00Z"}``.
    """
    sys.stdout.write(json_text(value, indent=2 if sys.stdout.isatty() else None) + "\n")


def json_text(value: object, *, indent: int | None = None) -> str:
    """Return one JSON text; what a terminal could take as a command stands in it as an escape."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=tagged)
    # Outside of its strings a JSON text has no control character but the line end.
    return _COMMANDS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def visible(text: str) -> str:
    """Return text with control characters and marks that turn its direction as escapes, as repr writes them.

    Texts come from documents: raw, an ESC in one of them would be a command to the terminal.
    """
    return _COMMANDS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def tagged(value: object) -> object:
    """Return the JSON form of a datetime, for `json.dumps(default=...)`."""
    if isinstance(value, datetime):
        return {"datetime": iso(value)}
    message = f"{type(value).__name__} has no JSON form"
    raise TypeError(message)


def iso(instant: datetime) -> str:
    """Return an instant in UTC as ISO 8601 text that ends with Z."""
    return instant.isoformat().replace("+00:00", "Z")


def print_line(text: str = "") -> None:
    """Print a line to standard output."""
    sys.stdout.write(visible(text) + "\n")


def remark(text: str) -> None:
    """Print a line to standard error: what a reader wants to know and a pipe does not."""
    sys.stderr.write(visible(text) + "\n")


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None
) -> None:
    """Print rows: a table on a terminal; else a header and tab-separated cells, one row a line.

    Numbers should come formatted. In a pipe tabs and line ends inside of a cell
    become spaces, so that a row stays a line.
    """
    if not sys.stdout.isatty():
        if title:
            print_line(f"# {title}")
        for row in (columns, *rows):
            print_line("\t".join(" ".join(str(cell).split()) for cell in row))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column)
    for row in rows:
        table.add_row(*(Text(visible(str(cell))) for cell in row))
    Console().print(table)


def one_line(text: str | None, width: int = 90) -> str:
    """Return the text on one line, cut to `width` characters."""
    line = " ".join((text or "").split())
    return line if len(line) <= width else line[: width - 1] + "…"


def shown_metadata(metadata: dict[str, Any]) -> str:
    """Return metadata as ``key=value`` for reading."""
    return " ".join(f"{key}={_shown_value(value)}" for key, value in metadata.items())


def _shown_value(value: object) -> str:
    return (
        iso(value) if isinstance(value, datetime) else json.dumps(value, ensure_ascii=False, default=tagged)
    )


@contextmanager
def progress(task: str, total: int | None) -> Generator[Callable[[int], None]]:
    """Show a progress bar on standard error while the block runs, if that is a terminal.

    Yields:
        A function that takes how many more items are done.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task(task, total=total)
        yield lambda done: bars.advance(bar, done)
