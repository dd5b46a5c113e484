"""The face of the package: its names, and that importing it stays cheap."""

from __future__ import annotations

import subprocess
import sys

from entrepot import filters


def test_every_public_name_is_there_and_described() -> None:
    for name in filters.__all__:
        assert hasattr(filters, name)
    assert sorted(filters.__all__) == sorted(set(filters.__all__))
    functions = [getattr(filters, name) for name in filters.__all__ if name[0].islower()]
    assert all(function.__doc__ for function in functions)


def test_filters_load_nothing_heavy() -> None:
    code = "import entrepot.filters, sys; print(*sorted(sys.modules))"
    modules = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.split()
    for heavy in ("numpy", "msgspec", "dataclasses", "inspect", "pluggy", "sqlite3", "asyncio"):
        assert heavy not in modules
