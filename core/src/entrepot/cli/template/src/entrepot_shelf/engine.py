"""REPLACE: a small database within the process, so that this distribution works as it was generated.

It stands where the driver of your engine will be: delete it, and let store.py call the driver. It keeps
rows by id in named drawers, compares numbers as doubles, and knows no instants.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


class EngineError(Exception):
    """Anything that goes wrong."""


class RefusedError(EngineError):
    """Nobody listens there."""


class WrongPasswordError(EngineError):
    """The password is not the server's."""


class NoSuchDrawerError(EngineError):
    """There is no drawer of that name."""


@dataclass(frozen=True)
class Row:
    """A document as it is stored."""

    id: str
    text: str | None
    metadata: bytes
    fields: dict[str, list[Any]]
    keys: frozenset[str]
    vector: NDArray[np.float32]


@dataclass
class Drawer:
    """Rows by id, and what the drawer records about itself."""

    settings: dict[str, Any]
    rows: dict[str, Row] = field(default_factory=dict)


@dataclass
class Log:
    """A conversation: its messages in order, and when it expires."""

    entries: dict[str, bytes] = field(default_factory=dict)
    expires: float = float("inf")


class Server:
    """What several clients of one address share."""

    _running: ClassVar[dict[tuple[str, int], Server]] = {}
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.drawers: dict[str, Drawer] = {}
        self.logs: dict[str, dict[str, Log]] = {}

    @classmethod
    def at(cls, host: str, port: int, password: str | None) -> Server:
        """Return the server of an address: it listens on port 7000 and takes any password but ``wrong``."""
        if port != 7000:
            raise RefusedError
        if password == "wrong":  # noqa: S105
            raise WrongPasswordError
        with cls._lock:
            return cls._running.setdefault((host, port), cls())

    def drawer(self, name: str) -> Drawer:
        """Return a drawer."""
        try:
            return self.drawers[name]
        except KeyError:
            raise NoSuchDrawerError(name) from None

    def find(self, name: str, where: dict[str, Any] | None, ids: Iterable[str] | None) -> list[Row]:
        """Return the rows that a condition holds for, in the order of their ids."""
        holds = _condition(where or {"all": []})
        with self.lock:
            rows = self.drawer(name).rows
            chosen = sorted(rows) if ids is None else sorted(set(ids) & rows.keys())
            return [rows[found] for found in chosen if holds(rows[found])]

    def page(
        self, name: str, where: dict[str, Any] | None, ids: Iterable[str] | None, after: str
    ) -> list[Row]:
        """Return the rows whose ids come after another one."""
        found = self.find(name, where, ids)
        return found[bisect_right([row.id for row in found], after) :]


def _condition(where: dict[str, Any]) -> Callable[[Row], bool]:
    """Return a condition as a function of a row."""
    ((op, operand),) = where.items()
    if op in ("all", "any"):
        parts = [_condition(part) for part in operand]
        join = all if op == "all" else any
        return lambda row: join(part(row) for part in parts)
    if op == "not":
        inner = _condition(operand)
        return lambda row: not inner(row)
    if op == "has":
        return lambda row: operand in row.keys
    key, value = operand
    value = _stored(value)
    return lambda row: any(
        _kind(element) is _kind(value) and _COMPARE[op](element, value) for element in row.fields.get(key, [])
    )


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda element, value: bool(element == value),
    "lt": lambda element, value: bool(element < value),
    "lte": lambda element, value: bool(element <= value),
    "gt": lambda element, value: bool(element > value),
    "gte": lambda element, value: bool(element >= value),
}


def _stored(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _kind(value: Any) -> type:
    return type(value)


def fields_of(metadata: dict[str, Any]) -> dict[str, list[Any]]:
    """Return what the engine indexes of a document: strings, booleans, numbers as doubles."""
    found: dict[str, list[Any]] = {}
    for key, value in metadata.items():
        elements = value if isinstance(value, list) else [value]
        found[key] = [
            _stored(element) for element in elements if isinstance(element, str | bool | int | float)
        ]
    return found
