"""Importing is cheap and complete."""

from __future__ import annotations

import subprocess
import sys

import entrepot


def test_importing_loads_nothing_heavy() -> None:
    heavy = "numpy msgspec pluggy typer rich httpx wordllama opentelemetry"
    code = f"import sys, entrepot; print([name for name in {heavy.split()!r} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_every_public_name_can_be_had() -> None:
    for name in entrepot.__all__:
        assert getattr(entrepot, name) is not None
    assert set(entrepot.__all__) <= set(dir(entrepot))
    assert sorted(entrepot.__all__) == list(entrepot.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(entrepot, "NoSuchThing")
