"""The tree of commands, and how a run of one ends: exit codes, and errors without a traceback."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from entrepot.cli import conformance, demo, documents, filters, new_plugin, plugins, rag, search, transfer
from entrepot.cli.output import json_text, remark
from entrepot.errors import (
    CollectionError,
    EntrepotError,
    PluginError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

DONE, FAILED, MISTAKE = 0, 1, 2
# Typer has click inside of it or beside it, by its version: this is click's ClickException in either.
_USAGE_ERROR = cast("type[typer.BadParameter]", typer.BadParameter.__mro__[2])

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
app.command("new-plugin")(new_plugin.new_plugin)
app.command("search")(search.search)
app.command("load")(transfer.load)
app.command("dump")(transfer.dump)
app.command("count")(documents.count)
app.command("delete")(documents.delete)
app.command("stats")(documents.stats)
app.add_typer(filters.app, name="filter")
app.add_typer(rag.app, name="rag")


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    as_json = "--json" in arguments
    if cast("object", sys.stdout) is None:  # Python's way to say that it was closed
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process
        _report("OSError", "standard output is closed", as_json=as_json)
        return FAILED
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except EntrepotError as error:
        _report(type(error).__name__, error.message, error.hint, as_json=as_json)
        return exit_code(error)
    except _USAGE_ERROR as error:
        if as_json:
            _report(type(error).__name__, error.format_message(), as_json=True)
        else:
            error.show()
        return error.exit_code
    except typer.Abort:  # no at a question, or Ctrl-C
        _report("Abort", "aborted", as_json=as_json)
        return FAILED
    except OSError as error:
        _leave_stdout()
        if error.errno != errno.EPIPE:  # the reader of a pipe has had enough: that is no error to tell
            where = f"{error.filename}: " if error.filename else "cannot write the output: "
            _report("OSError", where + (error.strerror or str(error)), as_json=as_json)
        return FAILED
    except RecursionError:
        _report("RecursionError", "the input nests too deeply", as_json=as_json)
        return MISTAKE
    return code


def _run(arguments: Sequence[str]) -> int:
    try:
        # Not standalone: click would print its errors itself, as text even where JSON was asked for.
        code: object = app(list(arguments), prog_name="entrepot", standalone_mode=False)
    except SystemExit as end:
        code = end.code
    return code if isinstance(code, int) else DONE if code is None else FAILED


def _leave_stdout() -> None:
    """Let the interpreter's last flush go nowhere: it would fail again, with words of its own."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):  # it has no file of its own
        return
    finally:
        os.close(nowhere)


def exit_code(error: EntrepotError) -> int:
    """Return 2 for what the user can mend in the command, 1 for what failed on the way.

    Errors that are the caller's also derive from ValueError or TypeError (E1); asking for a plugin,
    a collection or a capability that is not there is a mistake in the command too.
    """
    mistakes = (ValueError, TypeError, PluginError, CollectionError, UnsupportedError)
    return MISTAKE if isinstance(error, mistakes) else FAILED


def _report(name: str, message: str, hint: str = "", *, as_json: bool) -> None:
    if as_json:
        remark(json_text({"error": name, "message": message, "hint": hint}))
    else:
        remark(f"entrepot: {message}" + (f"\n  hint: {hint}" if hint else ""))
