"""``python -m entrepot_conformance.mutants``: try every mutant, and print which test killed it."""

from __future__ import annotations

import argparse
import os
import sys
import time

from entrepot_conformance.mutants.model import all_mutants
from entrepot_conformance.mutants.running import Verdict, table, try_all, unbroken_rules


def main(arguments: list[str] | None = None) -> int:
    """Run; 1 if a mutant survived, or if a rule has none."""
    parser = argparse.ArgumentParser(prog="python -m entrepot_conformance.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutants or rules; all by default")
    parser.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 8), help="processes")
    parser.add_argument("--list", action="store_true", help="only list them")
    given = parser.parse_args(arguments)
    mutants = all_mutants()
    names = [
        name
        for name, mutant in mutants.items()
        if not given.names or name in given.names or mutant.rule in given.names
    ]
    if not names:
        parser.error(f"there is no mutant or rule called {', '.join(given.names)}")
    if given.list:
        for name in names:
            print(f"{name:<28} {mutants[name].rule:<4} {mutants[name].summary}")  # noqa: T201 - the answer
        return 0
    began = time.perf_counter()
    verdicts: list[Verdict] = []
    for verdict in try_all(names, given.workers):
        verdicts.append(verdict)
        if verdict.problem:
            print(f"{verdict.name}: {verdict.problem}", file=sys.stderr, flush=True)  # noqa: T201 - as it falls
    print(table(verdicts))  # noqa: T201 - the answer
    killed = sum(verdict.name in mutants and not verdict.problem for verdict in verdicts)
    print(f"{killed} of {len(names)} mutants killed in {time.perf_counter() - began:.0f} s")  # noqa: T201
    lacking = [] if given.names else unbroken_rules()
    if lacking:
        print(f"no mutant breaks {', '.join(lacking)}", file=sys.stderr)  # noqa: T201 - as above
    return 1 if lacking or any(verdict.problem for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
