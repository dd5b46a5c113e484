"""Runs the suite's tests on the chosen targets: ``pytest --pyargs entrepot_conformance --target NAME``."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from entrepot_conformance.endpoints import Memories, Stores
from entrepot_conformance.targets import TargetError, TargetSpec, chosen_targets

if TYPE_CHECKING:
    from collections.abc import Iterator

_TESTS: Final = Path(__file__).parent / "tests"
_targets = pytest.StashKey[list[TargetSpec]]()


def _chosen(config: pytest.Config) -> list[TargetSpec]:
    if _targets not in config.stash:
        try:
            config.stash[_targets] = chosen_targets(
                config.getoption("entrepot_targets") or [], erase=bool(config.getoption("entrepot_erase"))
            )
        except TargetError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[_targets]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests of a kind of which there is no target: they would only be skipped."""
    if collection_path.parent != _TESTS or not collection_path.is_dir():
        return None
    return True if all(spec.kind != collection_path.name for spec in _chosen(config)) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on each target of its kind."""
    if "memories" in metafunc.fixturenames:
        specs = [spec for spec in _chosen(metafunc.config) if spec.kind == "memory"]
        metafunc.parametrize("memories", specs, indirect=True, ids=[spec.name for spec in specs])
    if "stores" in metafunc.fixturenames:
        specs = [spec for spec in _chosen(metafunc.config) if spec.kind == "store"]
        metafunc.parametrize("stores", specs, indirect=True, ids=[spec.name for spec in specs])


@pytest.fixture
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """Return what opens stores on an endpoint of this test's own."""
    opened = Stores(request.param, tmp_path, f"test-{uuid.uuid4().hex}")
    yield opened
    opened.close()


@pytest.fixture
def memories(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memories]:
    """Return what opens repositories on an endpoint of this test's own."""
    opened = Memories(request.param, tmp_path, f"test-{uuid.uuid4().hex}")
    yield opened
    opened.close()
