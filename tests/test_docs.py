"""The documentation keeps its promises: examples run, nothing public is left out, links lead somewhere."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
READMES = [ROOT / "README.md", *sorted(ROOT.glob("*/README.md")), *sorted(ROOT.glob("plugins/*/README.md"))]
PAGES = [*READMES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *DOCS]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


# What needs a server runs among its plugin's own tests, which start one.
RUN_HERE = [page for page in PAGES if not (page.parent / "tests" / "test_readme.py").exists()]


@pytest.mark.parametrize("page", RUN_HERE, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # what an example writes lands there
    document = Sybil([PythonCodeBlockParser()]).parse(page)
    blocks = 0
    for example in document.examples():
        example.evaluate()
        blocks += 1
    assert blocks == len(re.findall(r"^```python$", page.read_text("utf-8"), re.MULTILINE))


@each_page
def test_relative_links_lead_to_files(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = [target for target in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in target]
    broken = [
        target
        for target in targets
        if not target.startswith("#") and not (page.parent / target.split("#")[0]).exists()
    ]
    assert broken == []


def words_of_the_docs() -> set[str]:
    return {word for page in DOCS for word in re.findall(r"\w+", page.read_text("utf-8"))}


@pytest.mark.parametrize("module", ["entrepot", "entrepot.filters", "entrepot_rag"])
def test_every_public_name_is_documented(module: str) -> None:
    public: list[str] = importlib.import_module(module).__all__
    assert public
    assert sorted(set(public) - words_of_the_docs()) == []


@pytest.mark.parametrize("module", ["entrepot", "entrepot.filters", "entrepot_rag"])
def test_every_public_name_stands_in_the_reference(module: str) -> None:
    reference = set(re.findall(r"\w+", (ROOT / "docs" / "reference.md").read_text("utf-8")))
    assert sorted(set(importlib.import_module(module).__all__) - reference) == []


def test_every_hook_is_documented() -> None:
    from entrepot import plugins

    # pluggy marks a hookspec by an attribute named after the project.
    hooks = [name for name, value in vars(plugins.HookSpecs).items() if hasattr(value, "entrepot_spec")]
    assert len(hooks) >= 4
    text = (ROOT / "docs" / "plugins.md").read_text("utf-8")
    assert [name for name in hooks if name not in text] == []
    from entrepot import ChatMemoryRepository
    from entrepot.hooks import HOOK_NAMES

    asks = [name for name in HOOK_NAMES if not name.startswith("_a") or f"_{name[2:]}" not in HOOK_NAMES]
    asks += [name for name in vars(ChatMemoryRepository) if f"_a{name[1:]}" in vars(ChatMemoryRepository)]
    assert len(asks) >= 25
    assert [name for name in asks if name.startswith("_") and f"`{name}(" not in text] == []


def commands(command: Any, prefix: str) -> Iterator[str]:
    for name, child in getattr(command, "commands", {}).items():
        if getattr(child, "commands", None):
            yield from commands(child, f"{prefix} {name}")
        else:
            yield f"{prefix} {name}"


def test_every_command_is_documented() -> None:
    from typer.main import get_command

    from entrepot.cli.app import app

    names = list(commands(get_command(app), "entrepot"))
    assert "entrepot filter explain" in names
    text = (ROOT / "docs" / "command-line.md").read_text("utf-8")
    assert [name for name in names if f"`{name}`" not in text] == []


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert [page.name for page in DOCS if f": {page.relative_to(ROOT / 'docs')}" not in navigation] == []
