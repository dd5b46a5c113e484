"""The page of rules in the docs is the one that the suite writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from entrepot_conformance.rules_page import rules_page

PAGE: Final = Path(__file__).parents[2] / "docs" / "rules.md"


def test_the_page_is_current() -> None:
    assert PAGE.read_text("utf-8") == rules_page(), (
        "run: python -m entrepot_conformance.rules_page docs/rules.md"
    )


def test_the_command_writes_it(tmp_path: Path) -> None:
    written = tmp_path / "rules.md"
    subprocess.run([sys.executable, "-m", "entrepot_conformance.rules_page", str(written)], check=True)
    assert written.read_text("utf-8") == rules_page()
