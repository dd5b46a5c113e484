"""What a run of the suite found, as data: one file a run, JSON of the published `schema`.

The file names for each backend its versions, how its server was had, and its witness. Only a real server and a
vendor's embedded engine prove a rule; what an emulator answered is told apart and counts as nothing.
"""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from entrepot.capabilities import Capabilities
from entrepot_conformance.rules import RULES
from entrepot_conformance.servers import Way
from entrepot_conformance.targets import Kind, Witness

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FORMAT: Final = "entrepot-conformance-report/1"
"""The name of the format; another number means that older readers may misread it."""


class RuleResult(msgspec.Struct, kw_only=True):
    """How the tests that cite a rule went on one backend.

    Attributes:
        passed: Tests that passed.
        failed: Tests that failed.
        known: Tests whose failure the plugin has registered.
    """

    passed: int = 0
    failed: int = 0
    known: int = 0


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A test that failed, or whose failure is known.

    Attributes:
        test: Its name, such as ``store/test_views.py::test_stamps``.
        rules: The rules that it cites.
        reason: The last line of the failure, or the plugin's words for one that is known.
    """

    test: str
    rules: tuple[str, ...]
    reason: str


class TargetReport(msgspec.Struct, kw_only=True):
    """What a run found on one backend.

    Attributes:
        name: The target.
        kind: What it is.
        distribution: The distribution that brings it, and its version.
        witness: What answered.
        via: How its server was had; None without one.
        versions: Versions of driver and engine, by name.
        capabilities: What it declares.
        passed: Tests that passed.
        rules: Results by rule.
        failures: Tests that failed.
        known: Tests whose failure is registered, and did come.
    """

    name: str
    kind: Kind
    distribution: str
    witness: Witness
    via: Way | None = None
    versions: dict[str, str] = {}
    capabilities: Capabilities | None = None
    passed: int = 0
    rules: dict[str, RuleResult] = {}
    failures: list[Failure] = []
    known: list[Failure] = []

    @property
    def proven(self) -> bool:
        """Whether what held here is proven: an emulator proves nothing."""
        return self.witness != "emulator"

    def count(
        self, outcome: Literal["passed", "failed", "known"], test: str, rules: Iterable[str], reason: str
    ) -> None:
        """Count the outcome of one test."""
        cited = tuple(rules)
        for rule in cited:
            result = self.rules.setdefault(rule, RuleResult())
            setattr(result, outcome, getattr(result, outcome) + 1)
        if outcome == "passed":
            self.passed += 1
        else:
            found = Failure(test=test, rules=cited, reason=reason)
            (self.failures if outcome == "failed" else self.known).append(found)

    def state(self, rule: str) -> State:
        """Return how a rule stands on this backend."""
        result = self.rules.get(rule, RuleResult())
        if result.failed:
            return "failed"
        if result.known:
            return "known"
        if not result.passed:
            return "untested"
        return "held" if self.proven else "unproven"


State = Literal["held", "failed", "known", "unproven", "untested"]
"""How a rule stands: it held; a test failed; a known failure came; it held on an emulator; no test cites it."""


class Report(msgspec.Struct, kw_only=True):
    """What a run found.

    Attributes:
        format: `FORMAT`.
        suite: Version of entrepot-conformance.
        core: Version of entrepot.
        python: Version of Python.
        platform: System and processor.
        created: When the run ended.
        seconds: How long it took.
        targets: What was found, one for each backend.
        absent: Backends without a server, by name, and why there was none.
    """

    format: str = FORMAT
    suite: str
    core: str
    python: str
    platform: str
    created: datetime
    seconds: float
    targets: list[TargetReport] = []
    absent: dict[str, str] = {}


def new_report(seconds: float, targets: Iterable[TargetReport], absent: Mapping[str, str]) -> Report:
    """Return the report of a run that ended just now."""
    return Report(
        suite=version("entrepot-conformance"),
        core=version("entrepot"),
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        created=datetime.now(UTC).replace(microsecond=0),
        seconds=round(seconds, 1),
        targets=list(targets),
        absent=dict(absent),
    )


def encode_report(report: Report) -> bytes:
    """Return a report as JSON, indented."""
    return msgspec.json.format(msgspec.json.encode(report, order="sorted"), indent=2) + b"\n"


def decode_report(data: bytes) -> Report:
    """Read a report.

    Raises:
        ValueError: It is none, or has another format.
    """
    try:
        report = msgspec.json.decode(data, type=Report)
    except msgspec.DecodeError as error:
        raise ValueError(f"this is no report of the suite: {error}") from error
    if report.format != FORMAT:
        raise ValueError(f"the report has the format {report.format!r}; this version reads {FORMAT!r}")
    return report


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a report."""
    found: dict[str, Any] = msgspec.json.schema(Report)
    for definition in found["$defs"].values():
        for field in definition.get("properties", {}).values():
            if isinstance(field.get("default"), list):
                field["default"].sort()  # that of a set, which has no order
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def rule_order(rules: Iterable[str]) -> list[str]:
    """Return rules in the contract's order."""
    return sorted(set(rules), key=tuple(RULES).index)
