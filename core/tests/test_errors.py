"""The error tree: E1, E4."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import pytest

from entrepot import errors, parse_filter
from entrepot.errors import EntrepotError

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, EntrepotError)]


def made(kind: type[EntrepotError]) -> EntrepotError:
    """Make an error with something plausible for each argument it must have."""
    samples: dict[str, Any] = {
        "ids": ["a"], "written": ["a"], "failed": {"b": "full"}, "unknown": ["c"], "line": 1, "column": 2,
        "found": "x", "expected": ["y"], "excerpt": "x\n^", "clause": "a == ?", "rows": 7, "capability": "hybrid", "index": 0,
    }  # fmt: skip
    parameters = inspect.signature(kind).parameters
    wanted = {
        name: samples[name]
        for name, parameter in parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and parameter.default is inspect.Parameter.empty
    }
    return kind("what happened", **wanted)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_error_says_what_happened_what_to_do_and_survives_pickling(kind: type[EntrepotError]) -> None:
    # E1, E4
    error = made(kind)
    assert "what happened" in str(error)
    assert error.outcome in ("not_done", "unknown")
    assert isinstance(error.retryable, bool)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)
    assert vars(again) == vars(error)
    if error.hint:
        assert str(error).endswith(f"hint: {error.hint}")


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_the_tree_is_drawn_in_the_docstring(kind: type[EntrepotError]) -> None:
    # E1: each class stands there, deeper than its parent
    lines = (errors.__doc__ or "").splitlines()

    def depth(name: str) -> int:
        (line,) = [
            line for line in lines if name in line.replace("(", " ").split()[:6] and line.strip()[0] in "E│├└"
        ]
        return line.index(name)

    own = depth(kind.__name__)
    for parent in kind.__bases__:
        if parent in CLASSES and kind.__name__ != "FilterTextValueError":
            assert depth(parent.__name__) < own
    assert kind.__doc__


def test_errors_of_the_caller_are_what_python_calls_them() -> None:
    # E1
    for name in ("DocumentError", "MessageError", "FilterError", "RequestError", "ConfigurationError"):
        assert issubclass(getattr(errors, name), ValueError)
    assert issubclass(errors.ArgumentTypeError, TypeError)
    assert issubclass(errors.OperationTimeoutError, TimeoutError)


def test_an_error_of_a_text_crosses_processes() -> None:
    with pytest.raises(errors.FilterSyntaxError) as caught:
        parse_filter("a == ")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.line, again.column, str(again)) == (
        caught.value.line,
        caught.value.column,
        str(caught.value),
    )
