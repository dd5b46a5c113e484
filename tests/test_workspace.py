"""What the files of the workspace promise one another."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
WORKSPACE: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
DISTRIBUTIONS = [
    folder
    for pattern in WORKSPACE["tool"]["uv"]["workspace"]["members"]
    for folder in sorted(ROOT.glob(pattern))
    if (folder / "pyproject.toml").is_file()
    and str(folder.relative_to(ROOT)) not in WORKSPACE["tool"]["uv"]["workspace"]["exclude"]
]
each_distribution = pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda folder: folder.name)

CHECK = "pip install uv && uv run nox"
DEMO = "pip install uv && uv run entrepot demo"


def project(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))


def repository_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return [ROOT / name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def test_pins_in_both_places_are_equal() -> None:
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert pins == WORKSPACE["tool"]["uv"]["constraint-dependencies"]
    assert set(WORKSPACE["tool"]["uv"]["build-constraint-dependencies"]) <= set(pins)


def test_pins_are_names_and_exact_versions() -> None:
    pins = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    assert pins
    assert not [pin for pin in pins if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*==[0-9][\w.]*( ; [^@/]+)?", pin)]


def test_readme_and_the_check_give_the_same_commands() -> None:
    readme = (ROOT / "README.md").read_text("utf-8").splitlines()
    assert CHECK in readme
    assert DEMO in readme
    script = ROOT / ".ci" / "run"
    assert CHECK in script.read_text("utf-8").splitlines()
    assert os.access(script, os.X_OK)


@each_distribution
def test_distribution_is_complete(folder: Path) -> None:
    tables = project(folder)
    meta = tables["project"]
    package = meta["name"].replace("-", "_")
    assert tables["build-system"]["build-backend"] == "hatchling.build"
    assert meta["requires-python"] == WORKSPACE["project"]["requires-python"]
    assert meta["license"] == "Apache-2.0"
    assert (folder / "src" / package / "py.typed").is_file()
    assert (folder / "tests").is_dir()
    assert (folder / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    assert (folder / "README.md").read_text("utf-8").startswith(f"# {meta['name']}\n")
    assert tables["tool"]["towncrier"]["start_string"] in (folder / "CHANGELOG.md").read_text("utf-8")


@each_distribution
def test_distribution_shares_the_changelog_settings(folder: Path) -> None:
    def settings(of: Path) -> dict[str, Any]:
        return {key: value for key, value in project(of)["tool"]["towncrier"].items() if key != "name"}

    assert settings(folder) == settings(DISTRIBUTIONS[0])
    assert project(folder)["tool"]["towncrier"]["name"] == project(folder)["project"]["name"]


def test_every_distribution_is_tested_and_typed() -> None:
    def folders(patterns: list[str]) -> set[Path]:
        return {path for pattern in patterns for path in ROOT.glob(pattern)}

    tests = {folder / "tests" for folder in DISTRIBUTIONS}
    sources = {folder / "src" for folder in DISTRIBUTIONS}
    tools = WORKSPACE["tool"]
    assert tests <= folders(tools["pytest"]["ini_options"]["testpaths"])
    assert sources <= folders(tools["mypy"]["mypy_path"])
    assert sources <= folders(tools["pyright"]["extraPaths"])
    assert tests | sources <= folders(tools["pyright"]["include"])


def test_no_file_names_a_registry_or_a_download_address() -> None:
    # Spelled in parts, or this file would be the first to be found.
    forbidden = [
        "files.python" + "hosted.org",
        "py" + "pi.org",
        "registry.npm" + "js.org",
        "index-" + "url",
        "find-" + "links",
    ]
    found = [
        f"{path.relative_to(ROOT)}: {word}"
        for path in repository_files()
        if path.suffix != ".jsonl"
        for word in forbidden
        if word in path.read_text("utf-8", errors="replace").lower()
    ]
    assert found == []


def test_the_lock_file_stays_out_of_the_repository() -> None:
    assert ROOT / "uv.lock" not in repository_files()
