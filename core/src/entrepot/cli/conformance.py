"""`entrepot conformance`: the suite of the distribution entrepot-conformance, run on one target."""

import sys
from contextlib import redirect_stdout
from typing import Annotated, Any

import typer

from entrepot.cli.options import AsJson
from entrepot.cli.output import print_json
from entrepot.errors import PluginNotFoundError


def conformance(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A target's name, or a URL", show_default=False)
    ],
    *,
    slow: Annotated[bool, typer.Option("--slow", help="Run the long tests too")] = False,
    erase: Annotated[
        bool, typer.Option("--erase", help="Allow a URL without {name}; what it names is erased")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run the conformance suite on a backend: every rule, sync and async, nothing skipped.

    A target is named by a plugin, or is a URL such as "shelf://localhost/{name}", in which {name} stands
    for a collection of each test's own and {folder} for an empty folder.
    """
    runner = _runner()
    with redirect_stdout(sys.stderr if as_json else sys.stdout):
        outcome = runner.run(target, slow=slow, erase=erase)
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
