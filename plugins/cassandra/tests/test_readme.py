"""The examples of the README and of the documentation's page run, on the server of these tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from plugins.cassandra.tests.servers import KEYSPACE

PLUGIN = Path(__file__).parents[1]
PAGES = (PLUGIN / "README.md", PLUGIN.parents[1] / "docs" / "cassandra.md")
WRITTEN = "cassandra://localhost:9042"

pytestmark = pytest.mark.slow  # there is no server but in a container


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_run(page: Path, server: str, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```py(?:thon)?\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    examples = [example for example in examples if f"{WRITTEN}/shop/" in example]
    assert examples
    names: dict[str, Any] = {}
    for example in examples:
        own = example.replace(f"{WRITTEN}/shop/articles", f"{server}/{KEYSPACE}/{name}")
        own = own.replace(f"{WRITTEN}/shop/chat", f"{server}/{KEYSPACE}/{name}")
        assert WRITTEN not in own
        exec(compile(own, str(page), "exec"), names)
    if page.name == "README.md":
        assert "Sofia is the capital of Bulgaria" in capsys.readouterr().out
