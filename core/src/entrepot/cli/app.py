"""The tree of commands, and how a run of one ends: exit codes, and errors without a traceback."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from entrepot.cli import conformance, demo, documents, filters, plugins, search, transfer
from entrepot.errors import (
    CollectionError,
    EntrepotError,
    PluginError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

DONE, FAILED, MISTAKE = 0, 1, 2

app = typer.Typer(
    name="entrepot",
    epilog="Exit codes: 0 done, 1 the engine failed, 2 a mistake in what was asked.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,  # plain help: rich alone takes longer to load than all the rest
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"entrepot {version('entrepot')}\n")
        raise typer.Exit


@app.callback()
def entrepot(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Vector stores and filters from the command line. A store is named by its URL."""


app.command("demo")(demo.demo)
app.command("plugins")(plugins.plugins)
app.command("conformance")(conformance.conformance)
app.command("search")(search.search)
app.command("load")(transfer.load)
app.command("dump")(transfer.dump)
app.command("count")(documents.count)
app.command("delete")(documents.delete)
app.command("stats")(documents.stats)
app.add_typer(filters.app, name="filter")


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        app(list(arguments), prog_name="entrepot")
    except EntrepotError as error:
        _report(error, as_json="--json" in arguments)
        return exit_code(error)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else DONE if end.code is None else FAILED
    return DONE


def exit_code(error: EntrepotError) -> int:
    """Return 2 for what the user can mend in the command, 1 for what failed on the way.

    Errors that are the caller's also derive from ValueError or TypeError (E1); asking for a plugin,
    a collection or a capability that is not there is a mistake in the command too.
    """
    mistakes = (ValueError, TypeError, PluginError, CollectionError, UnsupportedError)
    return MISTAKE if isinstance(error, mistakes) else FAILED


def _report(error: EntrepotError, *, as_json: bool) -> None:
    if as_json:
        facts = {"error": type(error).__name__, "message": error.message, "hint": error.hint}
        sys.stderr.write(json.dumps(facts, ensure_ascii=False) + "\n")
    else:
        sys.stderr.write(f"entrepot: {error}\n")
