"""The examples of the README and of the documentation's page run, in Milvus Lite."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PLUGIN = Path(__file__).parents[1]
PAGES = (PLUGIN / "README.md", PLUGIN.parents[1] / "docs" / "milvus.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```py(?:thon)?\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert examples
    names: dict[str, Any] = {}
    for example in examples:
        exec(compile(example, str(page), "exec"), names)
    assert (tmp_path / "articles.db").exists()
    if page.name == "README.md":
        assert "Sofia is the capital of Bulgaria" in capsys.readouterr().out
