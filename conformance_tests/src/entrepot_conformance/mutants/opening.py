"""The target that the suite runs on while a mutant is tried: objects of one class at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from entrepot_conformance.targets import TargetSpec

if TYPE_CHECKING:
    from pathlib import Path

    from entrepot import ChatMemoryRepository, VectorStore

_opened: list[type[Any]] = []

STORE: Final = TargetSpec(
    name="mutant", kind="store", opens=f"{__name__}:open_store", witness="embedded", durable=False
)
"""Stores of the class that was chosen."""
MEMORY: Final = TargetSpec(
    name="mutant",
    kind="memory",
    opens=f"{__name__}:open_memory",
    witness="embedded",
    shared=False,
    durable=False,
)
"""Memories of the class that was chosen."""


def choose(made: type[Any]) -> None:
    """Have the two targets open objects of this class from now on."""
    _opened[:] = [made]


def open_store(*, folder: Path, name: str, **options: Any) -> VectorStore:  # noqa: ARG001 - as targets are opened
    """Open a store of the chosen class, in memory; those of one name share their documents."""
    store: VectorStore = _opened[0](collection=name, memory="mutants", **options).connect()
    return store


def open_memory(*, folder: Path, name: str, **options: Any) -> ChatMemoryRepository:  # noqa: ARG001 - as above
    """Open a memory of the chosen class; each has its own conversations."""
    memory: ChatMemoryRepository = _opened[0](**options).connect()
    return memory
