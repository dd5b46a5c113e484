"""Two ways to build filters in Python: with operators on `F`, and with the methods of a builder.

```python
F.country == "BG"
(F.year >= 2020) & ~F["any key"].in_(["a", "b"])
F.archived.is_null() | (F.archived == False)
```

Python binds ``&`` and ``|`` tighter than comparisons and gives ``and``, ``or``, ``not``, ``in`` and
chained comparisons a meaning of their own. Wherever that would lose a part of the filter, an
`ArgumentTypeError` (a TypeError) says what to write instead.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final, NoReturn, final

from entrepot.errors import ArgumentTypeError, FilterValueError
from entrepot.filters.expression import (
    Expression,
    FilterOp,
    Key,
    check_pair,
    new_chain,
    new_comparison,
    new_not,
    new_null_test,
    new_value,
)
from entrepot.filters.values import check_operand

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.filters.values import Scalar


@final
class Field:
    """A metadata key that builds comparisons; made by ``F.name`` or ``F["any name"]``.

    ``==  !=  <  <=  >  >=`` take one value, `in_` and `nin` several; `is_null` and `is_not_null` test for
    absence. A comparison of a list holds if some element satisfies it (F2). A field is neither true nor
    false, is not hashable and not iterable.
    """

    __slots__ = ("_key",)
    __hash__ = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType] - == builds, so equal fields cannot be found in a set
    __array_ufunc__ = None  # numpy leaves comparisons with its scalars to this class, which explains them

    def __init__(self, name: str) -> None:
        self._key = Key(name)

    def __repr__(self) -> str:
        return f"F[{self._key.name!r}]"

    def __eq__(self, value: object) -> Expression:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compare(FilterOp.EQ, value)

    def __ne__(self, value: object) -> Expression:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._compare(FilterOp.NE, value)

    def __lt__(self, value: Scalar) -> Expression:
        return self._compare(FilterOp.LT, value)

    def __le__(self, value: Scalar) -> Expression:
        return self._compare(FilterOp.LTE, value)

    def __gt__(self, value: Scalar) -> Expression:
        return self._compare(FilterOp.GT, value)

    def __ge__(self, value: Scalar) -> Expression:
        return self._compare(FilterOp.GTE, value)

    def in_(self, values: Sequence[Scalar]) -> Expression:
        """Hold if some element is one of `values`, a list or tuple that may mix kinds (F5).

        Raises:
            FilterValueError: `values` is no list or tuple, or holds something that a filter cannot compare.
        """
        return self._compare(FilterOp.IN, values)

    def nin(self, values: Sequence[Scalar]) -> Expression:
        """Hold if no element is one of `values`, so also for absent keys (F3).

        Raises:
            FilterValueError: `values` is no list or tuple, or holds something that a filter cannot compare.
        """
        return self._compare(FilterOp.NIN, values)

    def is_null(self) -> Expression:
        """Hold if the key is absent: missing, None or an empty list (F1)."""
        return new_null_test(FilterOp.ISNULL, self._key)

    def is_not_null(self) -> Expression:
        """Hold if the key is there with at least one element (F1)."""
        return new_null_test(FilterOp.ISNOTNULL, self._key)

    def _compare(self, op: FilterOp, value: object) -> Expression:
        if type(value) is Field:
            raise FilterValueError(
                "a filter compares a key with a value, not with another key",
                hint="read the documents and compare in Python, or store the comparison as metadata",
            )
        if type(value) is Expression:
            raise ArgumentTypeError(
                "a filter cannot be compared with",
                hint="put parentheses around each comparison: (F.a == 1) & (F.b == 2)",
            )
        operand = check_operand(value)
        check_pair(op, operand)
        return new_comparison(op, self._key, new_value(operand))

    def __and__(self, other: object) -> NoReturn:
        self._join("&")

    def __rand__(self, other: object) -> NoReturn:
        self._join("&")

    def __or__(self, other: object) -> NoReturn:
        self._join("|")

    def __ror__(self, other: object) -> NoReturn:
        self._join("|")

    def __invert__(self) -> NoReturn:
        raise ArgumentTypeError(
            f"~ negates a filter, and {self!r} is only a key", hint=f"~({self!r} == True)"
        )

    def _join(self, sign: str) -> NoReturn:
        raise ArgumentTypeError(
            f"{sign} joins filters, and {self!r} is only a key",
            hint=f"{sign} binds tighter than comparisons, so put parentheses around each: (F.a == 1) {sign} (F.b == 2)",
        )

    def __bool__(self) -> NoReturn:
        raise ArgumentTypeError(
            f"{self!r} has no truth value",
            hint=f"compare it, as in {self!r} == True or {self!r}.is_not_null()",
        )

    def __contains__(self, value: object) -> NoReturn:
        raise ArgumentTypeError(
            f"'in' does not build a filter on {self!r}",
            hint=f"{self!r} == value holds if some element is the value; {self!r}.in_([...]) for several values",
        )

    def __iter__(self) -> NoReturn:
        raise ArgumentTypeError(f"{self!r} is a key of documents and cannot be iterated")

    def __getitem__(self, item: object) -> NoReturn:
        raise ArgumentTypeError(
            f"{self!r} has no elements to pick", hint='a dotted key is one flat key: F["meta.author"]'
        )

    def __getattr__(self, name: str) -> NoReturn:
        # Only names that do not exist come here. Dunders must look absent to copy, inspect and others.
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"{self!r} has no method {name!r}; a dotted key is one flat key: F[{self._key.name + '.' + name!r}]"
        )

    def __copy__(self) -> Field:
        return self

    def __deepcopy__(self, memo: object) -> Field:
        return self

    def __reduce__(self) -> tuple[type[Field], tuple[str]]:
        return Field, (self._key.name,)


@final
class Fields:
    """The class of `F`: attributes and items are metadata keys."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Field:
        """Return the key of that name.

        Names that start with an underscore are refused, because Python's own tools ask for them; such keys
        are written ``F["_name"]``.
        """
        if name.startswith("_"):
            raise AttributeError(f'keys that start with an underscore are written F["{name}"]')
        return Field(name)

    def __getitem__(self, name: str) -> Field:
        """Return the key of that name, whatever characters it holds (D3)."""
        return Field(name)

    def __iter__(self) -> NoReturn:
        raise ArgumentTypeError("F stands for every key there could be and cannot be iterated")

    def __contains__(self, name: object) -> NoReturn:
        raise ArgumentTypeError(
            "F stands for every key there could be", hint="F.key.is_not_null() tests documents"
        )

    def __repr__(self) -> str:
        return "F"

    def __reduce__(self) -> str:
        return "F"


F: Final = Fields()
"""The keys of documents: ``F.country == "BG"``, ``F["any key"].in_([1, 2])``."""


@final
class FilterExpressionBuilder:
    """Build filters with methods instead of operators.

    ```python
    b = FilterExpressionBuilder()
    b.and_(b.eq("country", "BG"), b.gte("year", 2020), b.not_(b.in_("tags", ["a", "b"])))
    ```

    Every method returns an `Expression` and raises `FilterValueError` for an operand that does not go with
    the operator (F5), and for a key that no document can have (D3).
    """

    __slots__ = ()

    def eq(self, key: str, value: Scalar) -> Expression:
        """Some element equals the value (F2, F4)."""
        return _comparison(FilterOp.EQ, key, value)

    def ne(self, key: str, value: Scalar) -> Expression:
        """No element equals the value; holds for absent keys (F3)."""
        return _comparison(FilterOp.NE, key, value)

    def gt(self, key: str, value: Scalar) -> Expression:
        """Some element is greater."""
        return _comparison(FilterOp.GT, key, value)

    def gte(self, key: str, value: Scalar) -> Expression:
        """Some element is greater or equal."""
        return _comparison(FilterOp.GTE, key, value)

    def lt(self, key: str, value: Scalar) -> Expression:
        """Some element is less."""
        return _comparison(FilterOp.LT, key, value)

    def lte(self, key: str, value: Scalar) -> Expression:
        """Some element is less or equal."""
        return _comparison(FilterOp.LTE, key, value)

    def in_(self, key: str, values: Sequence[Scalar]) -> Expression:
        """Some element is one of a list or tuple of values, which may mix kinds (F5)."""
        return _comparison(FilterOp.IN, key, values)

    def nin(self, key: str, values: Sequence[Scalar]) -> Expression:
        """No element is one of the values; holds for absent keys (F3)."""
        return _comparison(FilterOp.NIN, key, values)

    def is_null(self, key: str) -> Expression:
        """The key is absent: missing, None or an empty list (F1)."""
        return new_null_test(FilterOp.ISNULL, Key(key))

    def is_not_null(self, key: str) -> Expression:
        """The key is there with at least one element (F1)."""
        return new_null_test(FilterOp.ISNOTNULL, Key(key))

    def and_(self, first: Expression, second: Expression, *more: Expression) -> Expression:
        """All of two or more filters."""
        return _chain(FilterOp.AND, first, second, *more)

    def or_(self, first: Expression, second: Expression, *more: Expression) -> Expression:
        """Any of two or more filters."""
        return _chain(FilterOp.OR, first, second, *more)

    def not_(self, expression: Expression) -> Expression:
        """The complement of a filter (F3)."""
        return new_not(_checked(expression))

    def group(self, expression: Expression) -> Expression:
        """Return the filter itself: groups leave no trace in a tree (F8)."""
        return _checked(expression)


def _comparison(op: FilterOp, key: str, value: object) -> Expression:
    operand = check_operand(value)
    check_pair(op, operand)
    return new_comparison(op, Key(key), new_value(operand))


def _chain(op: FilterOp, *expressions: Expression) -> Expression:
    return reduce(lambda left, right: new_chain(op, left, right), map(_checked, expressions))


def _checked(expression: object) -> Expression:
    if type(expression) is Expression:
        return expression
    hint = "parse_filter(text) makes a filter of a text" if isinstance(expression, str) else None
    raise ArgumentTypeError(f"expected a filter, not {type(expression).__name__}", hint=hint)
