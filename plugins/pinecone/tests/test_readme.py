"""The examples of the README and of the documentation's page run, on the server of these tests."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

import pytest

PLUGIN = Path(__file__).parents[1]
PAGES = (PLUGIN / "README.md", PLUGIN.parents[1] / "docs" / "pinecone.md")
WRITTEN = '"pinecone://articles"'

pytestmark = pytest.mark.slow  # there is no server but in a container


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_run(page: Path, server: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```py(?:thon)?\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert examples
    names: dict[str, Any] = {}
    index = f"readme-{uuid.uuid4().hex[:12]}"
    for example in examples:
        own = example.replace(WRITTEN, f'"{server}/{index}"')
        assert "pinecone://" not in own
        exec(compile(own, str(page), "exec"), names)
    if page.name == "README.md":
        assert "Sofia is the capital of Bulgaria" in capsys.readouterr().out
