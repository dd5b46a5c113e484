"""`entrepot conformance`: the suite of the distribution entrepot-conformance, run on one target."""

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, Any

import typer

from entrepot.cli.options import AsJson
from entrepot.cli.output import print_json
from entrepot.errors import PluginNotFoundError


def conformance(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A target's name, a URL, or 'all'", show_default=False)
    ],
    *,
    slow: Annotated[bool, typer.Option("--slow", help="Run the long tests too")] = False,
    erase: Annotated[
        bool, typer.Option("--erase", help="Allow a URL without {name}; what it names is erased")
    ] = False,
    via: Annotated[
        str,
        typer.Option(
            "--via", metavar="WAY,...", help="How servers are had: url, container, process; all if not given"
        ),
    ] = "",
    require: Annotated[
        str, typer.Option("--require", metavar="NAME,...", help="Fail if one of these servers cannot be had")
    ] = "",
    report: Annotated[
        list[Path] | None,
        typer.Option(
            "--report", metavar="FILE", help="Write what was found: a page if called .html, else JSON"
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run the conformance suite on a backend: every rule, sync and async, nothing skipped.

    A target is named by a plugin, or is a URL such as "shelf://localhost/{name}", in which {name} stands
    for a collection of each test's own and {folder} for an empty folder. A target's server is that of
    ENTREPOT_<NAME>_URL, or is started: in a container, or as a process where a wheel has one.
    """
    runner = _runner()
    with redirect_stdout(sys.stderr if as_json else sys.stdout):
        files = [str(path) for path in report or []]
        outcome = runner.run(target, slow=slow, erase=erase, via=via, require=require, report=files)
    if as_json:
        facts = {"passed": outcome.passed, "failed": list(outcome.failed), "skipped": outcome.skipped}
        print_json({"target": target, "held": outcome.code == 0, **facts})
    if outcome.code:
        raise typer.Exit(1)


def _runner() -> Any:
    """Import the suite, which the core does not depend on."""
    from importlib import import_module

    try:
        return import_module("entrepot_conformance.runner")
    except ModuleNotFoundError as error:
        if error.name != "entrepot_conformance":
            raise
        msg = "the conformance suite is not installed"
        raise PluginNotFoundError(msg, hint="pip install entrepot-conformance") from error
