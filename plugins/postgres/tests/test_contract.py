"""The conformance suite's tests of stores, on this store: D, F, S, T, E.

`pytest --pyargs entrepot_conformance --target postgres` runs the same on a server that is there; here they
run on the server of these tests.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import entrepot_conformance.tests.store as suite

# Fixtures that the suite's own files bring.
from entrepot_conformance.tests.store.conftest import model, rng, shared, store
from entrepot_conformance.tests.store.test_searching import library

__all__ = ["library", "model", "rng", "shared", "store"]

FOUND: dict[str, object] = {}
for _module in pkgutil.iter_modules(suite.__path__):
    if _module.name.startswith("test_"):
        _tests = vars(importlib.import_module(f"{suite.__name__}.{_module.name}"))
        for _name, _value in _tests.items():
            if _name.startswith("test_") and inspect.isfunction(_value):
                assert _name not in FOUND, f"the suite has two tests called {_name}"
                FOUND[_name] = _value
globals().update(FOUND)


def test_the_suite_is_here() -> None:
    assert len(FOUND) > 70
