"""`entrepot new-plugin` writes a distribution; that it passes the suite is tried in a clean environment."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from entrepot.cli.new_plugin import generated

if TYPE_CHECKING:
    from core.tests.cli.conftest import Command


@pytest.mark.parametrize("memory", [False, True], ids=["store", "store-and-memory"])
@pytest.mark.parametrize("name", ["x", "duck-db", "elasticsearch2"])
def test_every_file_has_the_name_and_no_trace_of_the_template(name: str, *, memory: bool) -> None:
    files = generated(name, memory=memory)
    module = "entrepot_" + name.replace("-", "_")
    assert {
        "pyproject.toml",
        "README.md",
        "CHANGELOG.md",
        "docs/index.md",
        ".github/workflows/ci.yml",
        "tests/test_filters.py",
        f"src/{module}/py.typed",
        f"src/{module}/plugin.py",
        f"src/{module}/store.py",
    } <= files.keys()
    assert (f"src/{module}/memory.py" in files) is memory
    for path, text in files.items():
        assert "shelf" not in (path + text).lower()
        assert "memory: begin" not in text
        if path.endswith(".py"):
            ast.parse(text)
            assert max(map(len, text.splitlines()), default=0) <= 110, path
    project = tomllib.loads(files["pyproject.toml"])
    assert project["project"]["name"] == f"entrepot-{name}"
    assert project["project"]["entry-points"]["entrepot"] == {name: f"{module}.plugin"}
    assert ("ChatMemory" in files[f"src/{module}/plugin.py"]) is memory


def test_the_command_writes_a_folder(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = command("new-plugin", "duck-db")
    assert ended.code == 0
    assert "--target duck-db" in ended.out
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert written == {f"entrepot-duck-db/{path}" for path in generated("duck-db", memory=False)}


def test_the_plugin_imports_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, text in generated("cupboard", memory=True).items():
        if path.startswith("src/"):
            file = tmp_path / Path(path).relative_to("src")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    from importlib import import_module

    plugin = import_module("entrepot_cupboard.plugin")
    assert [spec.name for spec in plugin.entrepot_vector_stores()] == ["cupboard"]
    assert "entrepot_cupboard.engine" not in sys.modules
    for name in [name for name in sys.modules if name.startswith("entrepot_cupboard")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Duck", "lower-case"),
        ("a_b", "lower-case"),
        ("-a", "No such option"),
        ("9a", "lower-case"),
        ("simple", "installed"),
    ],
)
def test_a_name_that_cannot_be_is_refused(command: Command, tmp_path: Path, name: str, says: str) -> None:
    ended = command("new-plugin", name, "--folder", str(tmp_path / "new"))
    assert ended.code == 2
    assert says in ended.out + ended.err
    assert not (tmp_path / "new").exists()


def test_a_folder_with_something_in_it_is_left_alone(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    ended = command("new-plugin", "duck-db", "--folder", str(tmp_path))
    assert ended.code == 2
    assert "not empty" in ended.out + ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
