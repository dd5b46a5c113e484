"""`entrepot conformance` runs the suite on a target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot_conformance.runner import Outcome
from entrepot_conformance.runner import run as run_suite

if TYPE_CHECKING:
    import pytest
    from core.tests.cli.conftest import Command

FEW = ["-k", "test_documents_are_stamped or test_a_bad_id_is_refused", "-n", "0"]


def test_the_suite_runs_on_a_url(capfd: pytest.CaptureFixture[str]) -> None:
    outcome = run_suite("simple://suite?collection={name}", arguments=FEW)
    assert outcome == Outcome(code=0, passed=6, failed=(), skipped=0)
    assert "6 passed" in capfd.readouterr().out


def test_an_unknown_target_is_a_mistake(command: Command) -> None:
    ended = command("conformance", "no-such-target")
    assert ended.code == 2
    assert "no-such-target" in ended.out + ended.err


def test_a_fixed_place_is_erased_only_when_that_is_said(command: Command) -> None:
    ended = command("conformance", "simple:///precious.db")
    assert ended.code == 2
    assert "--erase" in ended.out + ended.err


def test_json_tells_what_held(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def canned(target: str, **options: object) -> Outcome:
        assert target == "shelf"
        assert options == {
            "slow": True,
            "erase": False,
            "via": "container",
            "require": "shelf",
            "report": ["a.json", "b.html"],
        }
        return Outcome(code=1, passed=3, failed=("store.test_views::test_x",), skipped=0)

    monkeypatch.setattr("entrepot_conformance.runner.run", canned)
    files = ("--report", "a.json", "--report", "b.html")
    ended = command("conformance", "shelf", "--slow", "--via=container", "--require=shelf", *files, "--json")
    assert ended.code == 1
    assert ended.json == {
        "target": "shelf",
        "held": False,
        "passed": 3,
        "failed": ["store.test_views::test_x"],
        "skipped": 0,
    }
