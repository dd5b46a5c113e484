"""The command line: `entrepot --help`. One module a command group; `main` is the console script.

Needs the extra `entrepot[cli]`. Exit codes: 0 done, 1 the engine or the network failed, 2 the user's
mistake (a wrong URL, filter, file, option, or something missing).
"""

from __future__ import annotations

import importlib.util
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and exit the process with its code."""
    missing = [name for name in ("typer", "rich") if importlib.util.find_spec(name) is None]
    if missing:
        sys.stderr.write(
            f"entrepot: the command line needs {' and '.join(missing)}, which is not installed\n"
            '  hint: pip install "entrepot[cli]"\n'
        )
        sys.exit(2)
    from entrepot.cli.app import run

    sys.exit(run(sys.argv[1:]))
