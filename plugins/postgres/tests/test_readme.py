"""The README's example runs, on the server of these tests."""

from __future__ import annotations

import re
import uuid
from pathlib import Path
from typing import Any

README = Path(__file__).parents[1] / "README.md"
WRITTEN = "postgres://app@localhost:5432/app/articles"


def test_the_example_runs(server: str) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert WRITTEN in example
    names: dict[str, Any] = {}
    own = f"{server}/readme-{uuid.uuid4().hex}"
    try:
        exec(compile(example.replace(WRITTEN, own), str(README), "exec"), names)
        assert names["hit"].text == "Sofia is the capital of Bulgaria"
    finally:
        names["store"].drop_collection()
        names["store"].close()
