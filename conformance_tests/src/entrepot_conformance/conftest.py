"""Runs the suite's tests on the chosen targets: ``pytest --pyargs entrepot_conformance --target NAME``."""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from filelock import FileLock

from entrepot_conformance.endpoints import Memories, Stores
from entrepot_conformance.keeper import run_of
from entrepot_conformance.recording import spec_of
from entrepot_conformance.session import address, chosen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from entrepot_conformance.targets import Kind, TargetSpec

_TESTS: Final = Path(__file__).parent / "tests"
_FAULTS: Final = "faults"
_FAULTY: Final[dict[str, Kind]] = {"test_store_faults": "store", "test_memory_faults": "memory"}
_DURABLE: Final = "test_killed"
_FIXTURES: Final[dict[str, Kind]] = {"stores": "store", "memories": "memory"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the tests of which there is no target: they would only be skipped."""
    if collection_path.parent == _TESTS and collection_path.is_dir():
        specs = chosen(config)
        if collection_path.name == _FAULTS:
            return True if all(spec.server is None for spec in specs) else None
        return True if all(spec.kind != collection_path.name for spec in specs) else None
    if collection_path.parent == _TESTS / _FAULTS and collection_path.stem in _FAULTY:
        return None if _specs(config, _FAULTY[collection_path.stem], faults=True) else True
    if collection_path.stem == _DURABLE:
        return None if any(_lasting(spec) for spec in _specs(config, "memory", faults=False)) else True
    return None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let long tests begin first, and tests that run alone come last: all workers wait for those."""
    if config.getoption("entrepot_fast"):
        large = [item for item in items if item.get_closest_marker("large") is not None]
        left_out = [item for item in large if (spec := spec_of(item)) is not None and spec.slow]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    items.sort(
        key=lambda item: (
            item.get_closest_marker("alone") is not None,
            item.get_closest_marker("slow") is None,
        )
    )


def _specs(config: pytest.Config, kind: Kind, *, faults: bool) -> list[TargetSpec]:
    """Return the targets of a kind; for the tests of failures, those with a server."""
    return [spec for spec in chosen(config) if spec.kind == kind and (spec.server is not None or not faults)]


def _lasting(spec: TargetSpec) -> bool:
    """Return whether what one process has written is there for others, and outlives it."""
    return spec.durable and spec.shared


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on each target of its kind."""
    faults = metafunc.definition.path.parent == _TESTS / _FAULTS
    for fixture, kind in _FIXTURES.items():
        if fixture in metafunc.fixturenames:
            specs = _specs(metafunc.config, kind, faults=faults)
            if metafunc.definition.path.stem == _DURABLE:
                specs = [spec for spec in specs if _lasting(spec)]
            metafunc.parametrize(fixture, specs, indirect=True, ids=[spec.name for spec in specs])


@pytest.fixture(autouse=True)
def turn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let a test with the marker `alone` run while no other test runs, in any worker of pytest-xdist."""
    worker: dict[str, Any] = getattr(request.config, "workerinput", {})
    if not worker:
        yield
        return
    folder = run_of(request.config).folder
    names = [worker["workerid"]]
    if request.node.get_closest_marker("alone") is not None:
        names = [f"gw{number}" for number in range(worker["workercount"])]
    with ExitStack() as turns:
        with FileLock(folder / "gate.lock"):  # who waits to be alone keeps others from beginning
            for name in names:
                turns.enter_context(FileLock(folder / f"{name}.lock"))
        yield


@pytest.fixture
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stores]:
    """Return what opens stores on an endpoint of this test's own."""
    opened = Stores(
        request.param, tmp_path, f"test-{uuid.uuid4().hex}", address(request.config, request.param)
    )
    yield opened
    opened.close()


@pytest.fixture
def memories(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memories]:
    """Return what opens repositories on an endpoint of this test's own."""
    opened = Memories(
        request.param, tmp_path, f"test-{uuid.uuid4().hex}", address(request.config, request.param)
    )
    yield opened
    opened.close()
