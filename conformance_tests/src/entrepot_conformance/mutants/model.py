"""What a mutant is, and how the modules beside this one register theirs."""

from __future__ import annotations

import importlib
import inspect
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from entrepot_conformance.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from entrepot_conformance.targets import Kind

T = TypeVar("T", bound=type[Any])
F = TypeVar("F", bound="Callable[[], AbstractContextManager[object]]")

MODULES: Final = ("stores", "core", "memories", "filters", "encodings", "sqlite")
"""Where mutants are defined."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """Something that breaks a rule.

    Attributes:
        name: Its name; unique.
        rule: The rule that it breaks.
        kind: What it is: a store or a chat memory.
        base: The class that it is without its fault; the suite passes on it.
        made: The class of which the tests open objects.
        patch: What breaks the core meanwhile; nothing where the class itself is the mutant.
        slow: Whether only tests marked slow can notice.
        summary: What is wrong with it, in one line.
    """

    name: str
    rule: str
    kind: Kind
    base: type[Any]
    made: type[Any]
    patch: Callable[[], AbstractContextManager[object]] = nullcontext
    slow: bool = False
    summary: str


_registered: Final[dict[str, Mutant]] = {}


def all_mutants() -> dict[str, Mutant]:
    """Return every mutant by name."""
    for module in MODULES:
        importlib.import_module(f"entrepot_conformance.mutants.{module}")
    return dict(_registered)


def breaks(rule: str, kind: Kind, *, slow: bool = False) -> Callable[[T], T]:
    """Register a class as a mutant; its base is the class it derives from, its docstring says what is wrong."""

    def register(made: T) -> T:
        _add(
            Mutant(
                name=made.__name__,
                rule=rule,
                kind=kind,
                base=made.__mro__[1],
                made=made,
                slow=slow,
                summary=_summary(made),
            )
        )
        return made

    return register


def breaks_core(rule: str, base: type[Any], kind: Kind = "store") -> Callable[[F], F]:
    """Register a function that returns a patch of the core, under which objects of `base` break the rule."""

    def register(patch: F) -> F:
        name = "".join(part.capitalize() for part in patch.__name__.split("_"))
        _add(
            Mutant(
                name=name, rule=rule, kind=kind, base=base, made=base, patch=patch, summary=_summary(patch)
            )
        )
        return patch

    return register


def _add(mutant: Mutant) -> None:
    if mutant.rule not in RULES:
        msg = f"{mutant.name} breaks {mutant.rule}, which the contract does not have"
        raise ValueError(msg)
    if mutant.name in _registered:
        msg = f"there are two mutants called {mutant.name}"
        raise ValueError(msg)
    _registered[mutant.name] = mutant


def _summary(thing: object) -> str:
    line = inspect.cleandoc(thing.__doc__ or "").partition("\n")[0]
    if not line:
        msg = f"{thing!r} does not say what is wrong with it"
        raise ValueError(msg)
    return line
