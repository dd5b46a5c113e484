"""Targets are found by name, wherever they come from, and the command says what is wrong with a name."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from entrepot.plugins import ChatMemorySpec, PluginManager, hookimpl
from entrepot_conformance.targets import BUILT_IN, TargetError, TargetSpec, chosen_targets, known_targets

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

OUTSIDE = TargetSpec(name="outside", kind="memory", opens="simple://", witness="embedded", shared=False)


def test_the_embedded_targets_are_known() -> None:
    known, faults = known_targets()
    assert faults == []
    assert {(spec.kind, spec.name, spec.witness) for spec in known} >= {
        ("memory", "simple", "embedded"),
        ("memory", "sqlite", "embedded"),
    }
    assert chosen_targets([]) == [spec for spec in known if spec.witness == "embedded"]
    chosen = chosen_targets(["sqlite", "simple", "sqlite"])  # a name stands for all kinds that have it
    assert [spec.name for spec in chosen if spec.kind == "memory"] == ["sqlite", "simple"]


def test_a_target_may_be_named_by_module_and_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("outside_targets")
    module.SPEC, module.OTHER = OUTSIDE, 5
    monkeypatch.setitem(sys.modules, "outside_targets", module)
    assert chosen_targets(["outside_targets:SPEC"]) == [OUTSIDE]
    with pytest.raises(TargetError, match="no TargetSpec"):
        chosen_targets(["outside_targets:OTHER"])


def points(monkeypatch: pytest.MonkeyPatch, **hooks: Any) -> None:
    """Make the entry points of the environment those of modules with these hooks."""
    found: list[EntryPoint] = []
    for name, hook in hooks.items():
        module: Any = ModuleType(f"plugin_{name}")
        if hook is not None:
            module.entrepot_conformance_targets = hookimpl(hook)
            monkeypatch.setitem(sys.modules, f"plugin_{name}", module)
        found.append(EntryPoint(name, f"plugin_{name}", "entrepot"))

    def entry_points(*, group: str) -> Iterable[EntryPoint]:
        return found if group == "entrepot" else []

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)


def test_a_broken_plugin_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing() -> list[TargetSpec]:
        raise RuntimeError("broken")

    points(monkeypatch, good=lambda: [OUTSIDE], failing=failing, wrong=lambda: ["text"], absent=None)
    known, faults = known_targets()
    assert [replace(spec, distribution="") for spec in known] == [*BUILT_IN, OUTSIDE]
    assert len(faults) == 3
    assert chosen_targets(["outside"]) == [OUTSIDE]
    with pytest.raises(TargetError, match=r"no target is called 'sqlite'(.|\n)*RuntimeError: broken"):
        chosen_targets(["sqlite"])


def test_two_targets_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    points(monkeypatch, one=lambda: [OUTSIDE], two=lambda: [OUTSIDE])
    with pytest.raises(TargetError, match="claimed"):
        chosen_targets(["simple"])


def test_the_core_takes_a_plugin_that_names_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    # The hook is the suite's: the core leaves it alone, whether the suite is installed or not.
    def not_called() -> list[TargetSpec]:
        raise AssertionError

    points(monkeypatch, sql=not_called)
    manager = PluginManager([EntryPoint("sql", "plugin_sql", "entrepot")])
    (info,) = manager.plugins()
    assert (info.name, info.error, info.provides) == ("sql", None, ())
    with pytest.raises(Exception, match="provides no chat memory"):
        manager.spec("sql", ChatMemorySpec)


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_suite_runs_by_name_in_any_folder(tmp_path: Path) -> None:
    done = run("--pyargs", "entrepot_conformance", "--target", "simple", "-k", "test_tail", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[1-9]\d* passed", done.stdout, re.MULTILINE)
    assert "skipped" not in done.stdout
    listed = run("--pyargs", "entrepot_conformance", "--collect-only", "-k", "test_tail", folder=tmp_path)
    assert "test_the_tail_is_the_end_in_order[simple]" in listed.stdout
    assert "test_the_tail_is_the_end_in_order[sqlite]" in listed.stdout
    unknown = run("--pyargs", "entrepot_conformance", "--target", "nosuch", folder=tmp_path)
    assert unknown.returncode
    assert "known are simple" in unknown.stdout + unknown.stderr


def test_other_tests_are_left_alone(tmp_path: Path) -> None:
    # installed, the suite adds an option and loads nothing of entrepot
    (tmp_path / "test_mine.py").write_text(
        "import sys\n"
        "def test_mine():\n"
        "    assert not [name for name in sys.modules if name == 'entrepot' or name.startswith('entrepot.')]\n"
    )
    done = run("test_mine.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
