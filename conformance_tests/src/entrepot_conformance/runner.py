"""Runs the suite on a target, as `entrepot conformance` does."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from entrepot.errors import ConfigurationError
from entrepot_conformance.targets import TargetError, chosen_targets

if TYPE_CHECKING:
    from collections.abc import Sequence


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended.

    Attributes:
        code: pytest's exit code: 0 if everything held, 1 if a test failed, more if none could run.
        passed: How many tests passed.
        failed: The tests that failed.
        skipped: How many were skipped; a run that held has none.
    """

    code: int
    passed: int
    failed: tuple[str, ...]
    skipped: int


def run(  # noqa: PLR0913 - what can be asked of a run
    target: str,
    *,
    slow: bool = False,
    erase: bool = False,
    via: str = "",
    require: str = "",
    report: Sequence[str] = (),
    arguments: Sequence[str] = (),
) -> Outcome:
    """Run the suite on a target, in a process of its own, and return how it ended; pytest prints as it goes.

    Args:
        target: A target's name, ``module:attribute`` of one, or a URL.
        slow: Run the long tests too: the large fuzz, recall, and killed writers.
        erase: Allow a URL that names one fixed place, whose content the suite erases.
        via: How servers are had: ``url``, ``container``, ``process``, parted by commas; all if empty.
        require: Servers whose absence is a failure, parted by commas.
        report: Files for what was found: a page if the name ends in ``.html``, else JSON.
        arguments: More arguments for pytest.

    Raises:
        ConfigurationError: There is no such target, or a URL may not be erased.
    """
    try:
        chosen_targets([target], erase=erase)
    except TargetError as error:
        raise ConfigurationError(str(error)) from None
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / "outcomes.xml"
        command = [
            sys.executable,
            "-m",
            "pytest",
            "--pyargs",
            "entrepot_conformance.tests",
            "--target",
            target,
        ]
        command += [
            "-q",
            f"--via={via}",
            f"--require={require}",
            *(f"--conformance-report={file}" for file in report),
        ]
        command += ["-p", "no:cacheprovider", f"--junitxml={written}"]
        if not slow:
            command += ["-m", "not slow"]
        if erase:
            command.append("--erase")
        # Nothing but pytest's own words: the target is an argument, not part of a shell's line.
        code = subprocess.run([*command, *arguments], stdout=sys.stdout, check=False).returncode  # noqa: S603
        cases = list(ET.parse(written).iter("testcase")) if written.exists() else []  # noqa: S314 - made just now
    failed: list[str] = []
    passed = skipped = 0
    for case in cases:
        outcomes = {child.tag for child in case}
        if outcomes & {"failure", "error"}:
            module = (case.get("classname") or "").rpartition("entrepot_conformance.tests.")[2]
            failed.append(f"{module}::{case.get('name')}")
        elif "skipped" in outcomes:
            skipped += 1
        else:
            passed += 1
    return Outcome(code=code, passed=passed, failed=tuple(failed), skipped=skipped)
