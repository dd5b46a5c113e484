"""The page of a report: which rule holds on which backend, what each declares, what failed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jinja2
import msgspec

from entrepot_conformance.report import decode_report, rule_order
from entrepot_conformance.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot_conformance.report import Report, TargetReport

WORDS: Final = {
    "held": "held",
    "failed": "failed",
    "known": "known failure",
    "unproven": "held on an emulator",
    "untested": "no test",
}
"""What the page calls the states of a rule."""


def render_page(reports: Sequence[Report]) -> str:
    """Return one page, HTML that needs no other file, of one run or several."""
    targets = [(report, target) for report in reports for target in report.targets]
    rules = rule_order(rule for _, target in targets for rule in target.rules)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("entrepot_conformance", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return environment.get_template("report.html").render(
        reports=reports,
        targets=targets,
        rules=[(rule, RULES[rule].title if rule in RULES else "") for rule in rules],
        cell=_cell,
        capabilities=[_plain(target) for _, target in targets],
        words=WORDS,
    )


def _cell(target: TargetReport, rule: str) -> tuple[str, str]:
    """Return the state of a rule and what the cell says."""
    state = target.state(rule)
    result = target.rules.get(rule)
    if result is None:
        return state, ""
    wrong = result.failed or result.known
    total = result.passed + result.failed + result.known
    return state, f"{wrong} of {total}" if wrong else str(total)


def _plain(target: TargetReport) -> dict[str, Any]:
    """Return a target's capabilities in words, those of its kind."""
    if target.capabilities is None:
        return {}
    found: dict[str, Any] = msgspec.to_builtins(target.capabilities)
    limits = found.pop("limits")
    names = ("ttl", "memory_search")
    chosen = {
        name.replace("_", " "): _word(value)
        for name, value in found.items()
        if (name in names) is (target.kind == "memory")
    }
    if target.kind == "store":
        chosen |= {f"limit: {name.replace('_', ' ')}": _word(value) for name, value in limits.items()}
    return chosen


def _word(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(sorted(map(str, value)))  # pyright: ignore[reportUnknownArgumentType]
    return f"{value:,}" if isinstance(value, int) else str(value)


if __name__ == "__main__":
    sys.stdout.write(render_page([decode_report(Path(name).read_bytes()) for name in sys.argv[1:]]))
