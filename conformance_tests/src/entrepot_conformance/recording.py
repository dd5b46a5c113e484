"""Collects the outcomes of a run of the suite, and writes its report."""

from __future__ import annotations

import tempfile
import time
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import pytest

from entrepot_conformance.citations import citations
from entrepot_conformance.endpoints import Memories, Stores
from entrepot_conformance.page import render_page
from entrepot_conformance.report import TargetReport, encode_report, new_report, rule_order
from entrepot_conformance.servers import imported
from entrepot_conformance.targets import TargetSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from entrepot.capabilities import Capabilities
    from entrepot_conformance.keeper import SharedServer
    from entrepot_conformance.report import Report

_PROPERTY: Final = "entrepot_target"
_FIXTURES: Final = ("stores", "memories")


def spec_of(item: pytest.Item) -> TargetSpec | None:
    """Return the target that a test of the suite runs on; None where there is none that it could run on."""
    parameters: dict[str, object] = getattr(getattr(item, "callspec", None), "params", {})
    found = (parameters.get(fixture) for fixture in _FIXTURES)
    return next((spec for spec in found if isinstance(spec, TargetSpec)), None)


def short_name(nodeid: str) -> str:
    """Return a test's name below the suite's folder, without its target: ``store/test_views.py::test_x[a]``."""
    return nodeid.rpartition("entrepot_conformance/tests/")[2]


def mark_known_failures(items: Sequence[pytest.Item]) -> None:
    """Expect the failures that targets have registered, strictly: one that passes is a failure.

    Raises:
        pytest.UsageError: A registered failure names no test.
    """
    for spec in {spec for item in items if (spec := spec_of(item)) is not None}:
        for known in spec.known_failures:
            found = [
                item for item in items if spec_of(item) == spec and fnmatch(plain_name(item), known.test)
            ]
            if not found:
                raise pytest.UsageError(
                    f"{spec.name}: the known failure {known.test!r} names no test that runs"
                )
            for item in found:
                item.add_marker(pytest.mark.xfail(reason=known.reason, strict=True))


def plain_name(item: pytest.Item) -> str:
    """Return a test's name as known failures give it: ``store/test_views.py::test_x``, without parameters."""
    return short_name(item.nodeid).partition("[")[0]


class Recorder:
    """Collects outcomes in the first process of a run, where reports of workers arrive too.

    Args:
        targets: Gives the targets of the run, and what has no server.
        server: Gives a target's server.
    """

    def __init__(
        self,
        targets: Callable[[], tuple[Sequence[TargetSpec], Mapping[str, str]]],
        server: Callable[[TargetSpec], SharedServer | None],
    ) -> None:
        self._targets = targets
        self._server = server
        self._began = time.monotonic()
        self._outcomes: dict[
            tuple[str, str], dict[str, tuple[Literal["passed", "failed", "known"], str]]
        ] = {}
        self.report: Report | None = None

    @property
    def has_outcomes(self) -> bool:
        """Whether any test of the suite has run."""
        return bool(self._outcomes)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the outcome of a test's call, or of a fixture that failed."""
        target = dict(report.user_properties).get(_PROPERTY)
        if target is None:
            return
        kind, _, name = str(target).partition(":")
        outcomes = self._outcomes.setdefault((kind, name), {})
        if report.failed:
            outcomes[report.nodeid] = ("failed", _last_line(report))
        elif hasattr(report, "wasxfail") and report.when == "call":
            outcomes[report.nodeid] = ("known", report.wasxfail)
        elif report.passed and report.when == "call":
            outcomes.setdefault(report.nodeid, ("passed", ""))

    def finish(self, folder: Path) -> Report:
        """Make the report of the run; opens every target once more, embedded ones below an empty folder."""
        specs, absent = self._targets()
        cited = citations()
        reports: list[TargetReport] = []
        for spec in specs:
            outcomes = self._outcomes.get((spec.kind, spec.name))
            if outcomes is None:
                continue
            server = self._server(spec)
            report = TargetReport(
                name=spec.name,
                kind=spec.kind,
                distribution=spec.distribution,
                witness=spec.witness,
                via=None if server is None else server.via,
                versions=_versions(spec, server),
                capabilities=_capabilities(spec, server, folder),
            )
            for nodeid, (outcome, reason) in sorted(outcomes.items()):
                name = short_name(nodeid)
                report.count(outcome, name, cited.of(name), reason)
            reports.append(report)
        self.report = new_report(time.monotonic() - self._began, reports, absent)
        return self.report


def note_target(item: pytest.Item, report: pytest.TestReport) -> None:
    """Write into a test's report which target it ran on: it may come from a worker."""
    spec = spec_of(item)
    if spec is not None:
        report.user_properties.append((_PROPERTY, f"{spec.kind}:{spec.name}"))


def write_report(report: Report, path: Path) -> None:
    """Write a report: as a page if the file is called ``.html``, else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(render_page([report]).encode() if path.suffix == ".html" else encode_report(report))


def summary_lines(report: Report) -> list[str]:
    """Return the summary of a run by rule, for the terminal."""
    lines: list[str] = []
    for target in report.targets:
        where = target.witness if target.via is None else f"{target.witness}, by {target.via}"
        versions = ", ".join(f"{name} {number}" for name, number in target.versions.items())
        lines.append(f"{target.name} ({target.kind}; {where}{'; ' if versions else ''}{versions})")
        states = {rule: target.state(rule) for rule in rule_order(target.rules)}
        held = [rule for rule, state in states.items() if state in {"held", "unproven"}]
        word = "held" if target.proven else "held, on an emulator, which proves nothing"
        lines.append(f"  {word}: {' '.join(held) or 'no rule'}")
        for rule, state in states.items():
            result = target.rules[rule]
            if state in {"failed", "known"}:
                total = result.passed + result.failed + result.known
                lines.append(f"  {rule} {state}: {result.failed or result.known} of {total} tests")
        lines += [f"  known: {known.test}: {known.reason}" for known in target.known]
    lines += [f"{name}: not tested, no server: {reason}" for name, reason in report.absent.items()]
    return lines


def _versions(spec: TargetSpec, server: SharedServer | None) -> dict[str, str]:
    if spec.versions is None:
        return {}
    try:
        found: dict[str, str] = imported(spec.versions)("" if server is None else server.url)
    except Exception as error:  # noqa: BLE001 - a plugin's; what the tests showed is not lost for it
        return {"not told": type(error).__name__}
    return dict(found)


def _last_line(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = str(crash.message if crash is not None else report.longrepr or "").strip()
    return text.splitlines()[0][:300] if text else ""


def _capabilities(spec: TargetSpec, server: SharedServer | None, folder: Path) -> Capabilities | None:
    """Return what a target declares; None if it does not open, which its tests have told."""
    opener = Stores if spec.kind == "store" else Memories
    with suppress(Exception):
        endpoint = opener(
            spec, Path(tempfile.mkdtemp(dir=folder)), "report", "" if server is None else server.url
        )
        try:
            return endpoint().capabilities
        finally:
            endpoint.close()
    return None
