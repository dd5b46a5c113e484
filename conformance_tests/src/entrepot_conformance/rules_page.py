"""The page of rules: what tests cite each, and what mutants break each.

``python -m entrepot_conformance.rules_page FILE`` writes it; the docs hold a copy.
"""

from __future__ import annotations

import sys
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from entrepot_conformance.citations import Citations, citations
from entrepot_conformance.mutants.model import Mutant, all_mutants
from entrepot_conformance.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from entrepot_conformance.rules import Rule

_HEAD: Final = """# Rules, tests and mutants

Each rule of [the contract](contract.md), the tests of the conformance suite that cite it, and the mutants
that break it. A mutant is a store, a chat memory or a piece of the core with one fault. It counts as killed
only if a test that cites its rule fails on it, so that no citation stands for a test that cannot fail;
`python -m entrepot_conformance.mutants` tries them all, and fails if one survives.

This page is written by `python -m entrepot_conformance.rules_page docs/rules.md`.

"""


def rules_page() -> str:
    """Return the page as Markdown."""
    cited = citations()
    mutants = list(all_mutants().values())
    lines = ["| rule | about | tests | mutants |", "|---|---|---|---|"]
    sections: list[str] = []
    for rule in RULES.values():
        broken_by = [mutant for mutant in mutants if mutant.rule == rule.name]
        tests = cited.tests[rule.name]
        lines.append(
            f"| [{rule.name}](#{rule.name.lower()}) | {rule.title} | {len(tests)} | {len(broken_by)} |"
        )
        sections.append("\n".join(_section(rule, tests, broken_by)))
    total = f"| | in all | {_citing(cited)} | {len(mutants)} |"
    return _HEAD + "\n".join([*lines, total]) + "\n\n" + "\n".join(sections)


def _citing(cited: Citations) -> int:
    return sum(bool(rules) for rules in cited.rules.values())


def _function(test: str) -> str:
    return f"`{test.partition('::')[2]}`"


def _section(rule: Rule, tests: Sequence[str], mutants: Sequence[Mutant]) -> Iterator[str]:
    yield f"## {rule.name} {rule.title} {{#{rule.name.lower()}}}\n"
    if rule.capability is not None:
        yield f"May be declined (`{rule.capability}`); a declined one is refused loudly.\n"
    yield "Tests:\n"
    for file, names in groupby(sorted(tests), lambda test: test.partition("::")[0]):
        yield f"- {file}: {', '.join(map(_function, names))}"
    yield "\nMutants:\n"
    for mutant in mutants:
        yield f"- `{mutant.name}`: {mutant.summary}"
    yield ""


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(rules_page(), "utf-8")
