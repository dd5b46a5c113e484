"""The suite fails on memories that break a rule, and passes on one that declines what it may."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conformance_tests.tests.mutants import NOTICED_BY

if TYPE_CHECKING:
    from entrepot import InMemoryChatMemoryRepository

ROOT = Path(__file__).parents[2]
OPENER = textwrap.dedent("""
    import sys
    sys.path.insert(0, {root!r})
    from conformance_tests.tests import mutants
    from entrepot_conformance.targets import TargetSpec

    def opened(*, folder, name, **options):
        memory = mutants.{mutant}(**options)
        return memory.connect()

    SPEC = TargetSpec(name="mutant", kind="memory", opens="mutant_target:opened", witness="embedded",
                      shared=False, durable=False)
""")


def suite(folder: Path, mutant: str, module: str) -> subprocess.CompletedProcess[str]:
    (folder / "mutant_target.py").write_text(OPENER.format(root=str(ROOT), mutant=mutant))
    arguments = ["--pyargs", "entrepot_conformance", "--target", "mutant_target:SPEC", "-k", module]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("mutant", NOTICED_BY, ids=lambda mutant: mutant.__name__)
def test_the_suite_notices(mutant: type[InMemoryChatMemoryRepository], tmp_path: Path) -> None:
    done = suite(tmp_path, mutant.__name__, NOTICED_BY[mutant])
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed" in done.stdout


@pytest.mark.slow
def test_the_suite_passes_what_declines_and_skips_nothing(tmp_path: Path) -> None:
    done = suite(tmp_path, "Declining", "expiry or questions or tail")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout
