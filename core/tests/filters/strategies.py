"""Hypothesis strategies for documents and filters, made so that comparisons are true and false often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from entrepot.filters import Expression, FilterOp, Key, Value
from entrepot_conformance.pools import KEYS, POOLS, VALUES

if TYPE_CHECKING:
    from entrepot.filters import Scalar

NULL_TESTS: Final = (FilterOp.ISNULL, FilterOp.ISNOTNULL)
LISTS: Final = (FilterOp.IN, FilterOp.NIN)
EQUALITIES: Final = (FilterOp.EQ, FilterOp.NE)
RANGES: Final = (FilterOp.LT, FilterOp.LTE, FilterOp.GT, FilterOp.GTE)
COMPARISONS: Final = (*EQUALITIES, *RANGES, *LISTS, *NULL_TESTS)


def keys() -> st.SearchStrategy[str]:
    """Keys of the pool."""
    return st.sampled_from(KEYS)


def scalars() -> st.SearchStrategy[Scalar]:
    """Values of the pool, of every kind."""
    return st.sampled_from(VALUES)


def well_formed_text(*, min_size: int = 0, max_size: int = 30) -> st.SearchStrategy[str]:
    """Any string that D4 allows: no NUL, no surrogates."""
    return st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
        min_size=min_size,
        max_size=max_size,
    )


def any_scalars() -> st.SearchStrategy[Scalar]:
    """Values of every kind from their whole range, for text and equality rather than for matching."""
    return st.one_of(
        well_formed_text(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        st.datetimes(timezones=st.timezones(no_cache=True)).filter(_lies_in_utc_years),
    )


def _lies_in_utc_years(value: object) -> bool:
    try:
        Value(value)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    except ValueError:
        return False
    return True


def metadata() -> st.SearchStrategy[dict[str, object]]:
    """Metadata as evaluate may be given it: scalars, lists of one kind, empty lists, None, and gaps."""
    one_kind = st.sampled_from(sorted(POOLS)).flatmap(
        lambda kind: st.lists(st.sampled_from(POOLS[kind]), max_size=3)
    )
    return st.dictionaries(keys(), st.one_of(scalars(), scalars(), one_kind, st.none()), max_size=len(KEYS))


def leaves(
    names: st.SearchStrategy[str] | None = None, values: st.SearchStrategy[Scalar] | None = None
) -> st.SearchStrategy[Expression]:
    """Comparisons of every operator with operands that are allowed (F5)."""
    names = keys() if names is None else names
    values = scalars() if values is None else values
    key = names.map(Key)

    def binary(op: FilterOp) -> st.SearchStrategy[Expression]:
        if op in NULL_TESTS:
            return key.map(lambda left: Expression(op, left))
        if op in LISTS:
            operands = st.lists(values, max_size=4).map(Value)
        elif op in RANGES:
            operands = values.filter(lambda value: type(value) is not bool).map(Value)
        else:
            operands = values.map(Value)
        return st.tuples(key, operands).map(lambda sides: Expression(op, *sides))

    return st.sampled_from(COMPARISONS).flatmap(binary)


def expressions(
    leaf: st.SearchStrategy[Expression] | None = None, *, max_leaves: int = 12
) -> st.SearchStrategy[Expression]:
    """Trees of comparisons, chained to both sides and negated."""

    def combine(parts: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        return st.one_of(
            st.tuples(parts, parts).map(lambda sides: sides[0] & sides[1]),
            st.tuples(parts, parts).map(lambda sides: sides[0] | sides[1]),
            parts.map(lambda part: ~part),
        )

    return st.recursive(leaves() if leaf is None else leaf, combine, max_leaves=max_leaves)
