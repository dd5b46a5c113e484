"""The examples of the README and of the documentation's page run, on the server of these tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from plugins.postgres.tests import layouts
from psycopg import sql

if TYPE_CHECKING:
    import psycopg

PLUGIN = Path(__file__).parents[1]
PAGES = (PLUGIN / "README.md", PLUGIN.parents[1] / "docs" / "postgres.md")
WRITTEN = "postgres://app@localhost:5432/app"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_run(
    page: Path,
    server: str,
    schema: str,
    admin: psycopg.Connection[Any],
    capsys: pytest.CaptureFixture[str],
) -> None:
    # The tables of other software that the examples read.
    kept = layouts.langchain(admin, schema, layouts.rows_of(3)).mapping["only"]["collection_id"]
    layouts.langchain_columns(admin, schema, layouts.rows_of(3))
    layouts.spring(admin, schema, layouts.rows_of(3))
    admin.execute(sql.SQL('ALTER TABLE {}."my docs" RENAME TO my_docs').format(sql.Identifier(schema)))
    examples = re.findall(r"^```py(?:thon)?\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert len(examples) >= 3
    names: dict[str, Any] = {}
    counted = 0
    for example in examples:
        own = re.sub(rf"{re.escape(WRITTEN)}/(\w+)", rf"{server}/\1?schema={schema}", example)
        own = own.replace("0b86a4b1-6a3c-4f5e-9d3b-0a5f5d1c2e3f", kept)
        assert own != example or WRITTEN not in example
        exec(compile(own, str(page), "exec"), names)
        for name in ("store", "docs", "memory"):
            opened = names.pop(name, None)
            if opened is not None and not opened.is_closed:
                if name != "memory" and not opened.writable:
                    assert opened.count() == 3
                    counted += 1
                opened.close()
    assert counted >= 1
    if page.name == "README.md":
        assert "Sofia is the capital of Bulgaria" in capsys.readouterr().out
