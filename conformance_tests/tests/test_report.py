"""What a run says: on the terminal, as JSON of a published schema, as a page; known failures among it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from entrepot.capabilities import Capabilities
from entrepot_conformance.page import render_page
from entrepot_conformance.report import (
    FORMAT,
    Failure,
    Report,
    RuleResult,
    TargetReport,
    decode_report,
    encode_report,
    rule_order,
    schema,
)

ROOT = Path(__file__).parents[2]
TARGETS = (
    textwrap.dedent("""
    from entrepot import InMemoryChatMemoryRepository
    from entrepot_conformance.targets import KnownFailure, TargetSpec

    class Backwards(InMemoryChatMemoryRepository):
        def _tail(self, conversation_id, last):
            return super()._tail(conversation_id, last)[::-1]

    def backwards(*, folder, name, **options):
        return Backwards(**options).connect()

    def versions(url):
        return {"Backwards": "1.2", "address": url or "none"}

    def lost(url):
        raise ConnectionError("the server is gone")

    GIVEN = dict(name="backwards", kind="memory", opens="report_targets:backwards", shared=False, durable=False,
                 versions="report_targets:versions")
    PLAIN = TargetSpec(**GIVEN, witness="embedded")
    TEST = "memory/test_tail.py::test_the_tail_is_the_end_in_order"
    KNOWN = TargetSpec(**(GIVEN | dict(versions="report_targets:lost")), witness="emulator", known_failures=(KnownFailure(TEST, "reads from the end"),))
    NONE = TargetSpec(**GIVEN, witness="embedded", known_failures=(KnownFailure("memory/*::test_nosuch", "?"),))
    GONE = TargetSpec(
        name="simple", kind="memory", opens="simple://", witness="embedded", shared=False, durable=False,
        known_failures=(KnownFailure(TEST, "was mended long ago"),),
    )
""")
    .replace("KnownFailure(TEST,", "KnownFailure(test=TEST, reason=")
    .replace('KnownFailure("memory/*::test_nosuch",', 'KnownFailure(test="memory/*::test_nosuch", reason=')
)


def run(folder: Path, attribute: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "report_targets.py").write_text(TARGETS)
    command = ["--pyargs", "entrepot_conformance.tests", f"--target=report_targets:{attribute}"]
    return subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *command),
            *("-k", "test_the_tail_is_the_end_in_order or test_latest or test_nothing_is", *arguments),
        ],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "two-workers"])
def test_a_failure_is_told_by_rule(tmp_path: Path, workers: tuple[str, ...]) -> None:
    done = run(tmp_path, "PLAIN", "--conformance-report=out/report.json", *workers)
    assert done.returncode == 1
    assert "backwards (memory; embedded; Backwards 1.2, address none)" in done.stdout
    assert "  M7 failed: " in done.stdout
    report = decode_report((tmp_path / "out" / "report.json").read_bytes())
    (target,) = report.targets
    assert (target.name, target.kind, target.witness, target.via) == ("backwards", "memory", "embedded", None)
    assert target.versions == {"Backwards": "1.2", "address": "none"}
    assert target.capabilities is not None
    assert target.capabilities.memory_search
    assert target.state("M7") == "failed"
    assert {failure.test.partition("[")[0] for failure in target.failures} >= {
        "memory/test_tail.py::test_the_tail_is_the_end_in_order"
    }
    assert all(failure.reason for failure in target.failures)


def test_a_known_failure_holds_and_shows(tmp_path: Path) -> None:
    done = run(tmp_path, "KNOWN", "--conformance-report=report.json", "--conformance-report=report.html")
    (target,) = decode_report((tmp_path / "report.json").read_bytes()).targets
    assert [known.reason for known in target.known] == ["reads from the end"]
    assert target.versions == {"not told": "ConnectionError"}  # and the report is there
    assert "known: memory/test_tail.py::test_the_tail_is_the_end_in_order" in done.stdout
    assert "on an emulator, which proves nothing" in done.stdout
    assert "reads from the end" in (tmp_path / "report.html").read_text("utf-8")


def test_a_known_failure_that_is_mended_fails(tmp_path: Path) -> None:
    done = run(tmp_path, "GONE")
    assert done.returncode == 1
    assert "[XPASS(strict)] was mended long ago" in done.stdout


def test_a_known_failure_must_name_a_test(tmp_path: Path) -> None:
    done = run(tmp_path, "NONE")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "'memory/*::test_nosuch' names no test" in done.stdout + done.stderr


def made() -> Report:
    held = TargetReport(
        name="shelf",
        kind="store",
        distribution="entrepot-shelf 1.0",
        witness="real server",
        via="container",
        versions={"Shelf <&>": "8.2"},
        capabilities=Capabilities(ttl=True),
    )
    held.count("passed", "store/test_a.py::test_a", ["F1", "F10"], "")
    held.count("failed", "store/test_a.py::test_b", ["F2"], "<script>alert(1)</script>")
    held.count("known", "store/test_a.py::test_c", ["F3"], "never")
    held.count("passed", "store/test_a.py::test_d", ["F3"], "")
    grey = TargetReport(name="cloud", kind="store", distribution="", witness="emulator")
    grey.count("passed", "store/test_a.py::test_a", ["F1"], "")
    return Report(
        suite="1",
        core="2",
        python="3.11",
        platform="Linux",
        created=datetime(2026, 11, 30, tzinfo=UTC),
        seconds=1.5,
        targets=[held, grey],
        absent={"sea": "no Docker engine answers"},
    )


def test_states_are_counted_by_rule() -> None:
    shelf, cloud = made().targets
    assert [shelf.state(rule) for rule in ("F1", "F2", "F3", "F4")] == ["held", "failed", "known", "untested"]
    assert cloud.state("F1") == "unproven"  # an emulator proves nothing
    assert shelf.rules["F3"] == RuleResult(passed=1, known=1)
    assert shelf.passed == 2
    assert shelf.failures == [
        Failure(test="store/test_a.py::test_b", rules=("F2",), reason="<script>alert(1)</script>")
    ]
    assert rule_order(["E1", "F10", "F2", "D1"]) == ["D1", "F2", "F10", "E1"]


def test_a_report_is_read_back_and_others_are_refused() -> None:
    report = made()
    assert decode_report(encode_report(report)) == report
    with pytest.raises(ValueError, match="no report"):
        decode_report(b"{}")
    other = encode_report(report).replace(FORMAT.encode(), b"entrepot-conformance-report/9")
    with pytest.raises(ValueError, match="report/9"):
        decode_report(other)


def test_the_schema_is_published() -> None:
    published = json.loads((ROOT / "docs" / "assets" / "conformance-report.schema.json").read_text("utf-8"))
    assert published == schema()


class _Page(HTMLParser):
    """The cells of a page, and its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[tuple[str, str]] = []
        self.tags: set[str] = set()
        self._open: str | None = None
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        kinds = (dict(attrs).get("class") or "").split()
        if tag == "td" and "cell" in kinds:
            self._open = kinds[-1]

    def handle_data(self, data: str) -> None:
        if self._open is not None:
            self.cells.append((self._open, data.strip()))
            self._open = None


def test_the_page_shows_every_rule_and_backend() -> None:
    text = render_page([made()])
    page: Any = _Page(text)
    assert ("held", "1") in page.cells
    assert ("failed", "failed 1 of 1") in page.cells
    assert ("known", "known 1 of 2") in page.cells
    assert ("unproven", "1") in page.cells
    assert "script" not in page.tags  # what a test says is text
    for words in (
        "entrepot-shelf 1.0",
        "Shelf &lt;&amp;&gt; 8.2",
        "no Docker engine answers",
        "by container",
    ):
        assert words in text
