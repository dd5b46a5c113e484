"""Normal form: what backends see instead of a filter tree. No NOT, flat chains, no constants inside.

Engines differ most in what NOT means for absent keys, so negation is pushed down to the leaves once,
here. `==` and `!=`, IN and NOT IN, IS NULL and IS NOT NULL are complements (F3) and swap. A negated
range stays a negated range: with lists, absent keys and other kinds ``NOT (x < 5)`` is not ``x >= 5``.

A leaf has one canonical spelling: its operator is EQ, IN, LT, LTE, GT, GTE or ISNULL, with a flag for
negation. So NE is a negated EQ, NIN a negated IN, ISNOTNULL a negated ISNULL.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, NoReturn, TypeAlias, cast, final

from entrepot.errors import ArgumentTypeError, FilterLimitError, FilterValueError
from entrepot.filters.expression import (
    MAX_DEPTH,
    Expression,
    FilterOp,
    Key,
    Value,
    check_limits,
    check_pair,
    itself,
    operands,
    refuse_change,
)
from entrepot.filters.values import Scalar, check_key, check_operand, hash_value, same_value

if TYPE_CHECKING:
    from collections.abc import Iterable

LEAF_OPS: Final = frozenset(
    {FilterOp.EQ, FilterOp.IN, FilterOp.LT, FilterOp.LTE, FilterOp.GT, FilterOp.GTE, FilterOp.ISNULL}
)
"""The operators of leaves; the others are the negation of one of these."""

MAX_NORMAL_DEPTH: Final = 2 * MAX_DEPTH
"""The deepest normal form: that of any filter, and as much again for views that combine them."""

_COMPLEMENT: Final = {
    FilterOp.NE: FilterOp.EQ,
    FilterOp.NIN: FilterOp.IN,
    FilterOp.ISNOTNULL: FilterOp.ISNULL,
}


def _no_truth_value(self: object) -> NoReturn:
    raise ArgumentTypeError(
        f"{type(self).__name__} has no truth value", hint="compare with `is None`, `is TRUE` or `is FALSE`"
    )


class Constant(Enum):
    """A filter that holds for every document, or for none."""

    TRUE = "TRUE"
    FALSE = "FALSE"

    __hash__ = object.__hash__
    __bool__ = _no_truth_value

    def __repr__(self) -> str:
        return self.name


TRUE: Final = Constant.TRUE
"""Holds for every document."""

FALSE: Final = Constant.FALSE
"""Holds for no document."""


class _LeafFields:
    __slots__ = ("hashed", "key", "negated", "op", "value")
    hashed: int
    key: str
    negated: bool
    op: FilterOp
    value: Scalar | tuple[Scalar, ...] | None


@final
class Leaf(_LeafFields):
    """One comparison, plain or negated.

    Attributes:
        op: EQ, IN, LT, LTE, GT, GTE or ISNULL.
        key: The metadata key, a plain string.
        value: One operand; for IN a tuple of two or more that differ; None for ISNULL.
        negated: Whether the leaf holds exactly where the comparison does not. A negated EQ, IN or range
            therefore holds for absent keys, and a negated ISNULL for present ones.

    Raises:
        FilterValueError: An operator of another kind, or a value that does not go with it.
    """

    __slots__ = ()

    def __new__(
        cls,
        op: FilterOp,
        key: str,
        value: Scalar | tuple[Scalar, ...] | None = None,
        negated: bool = False,  # noqa: FBT001, FBT002 - a field, as in a dataclass
    ) -> Leaf:
        """Check the parts and make the leaf."""
        if op not in LEAF_OPS:
            raise FilterValueError(
                f"a leaf has a canonical operator, not {op!r}",
                hint="NE, NIN and ISNOTNULL are negated EQ, IN and ISNULL",
            )
        check_key(key)
        if op is FilterOp.ISNULL:
            if value is not None:
                raise FilterValueError("ISNULL takes no value")
            return new_leaf(op, key, None, negated=bool(negated))
        operand = check_operand(value)
        check_pair(op, operand)
        if type(operand) is tuple and len(_distinct(operand)) < max(2, len(operand)):
            raise FilterValueError(
                "a leaf with IN has two or more values, all different",
                hint="IN [] is FALSE, IN of one value is EQ",
            )
        return new_leaf(op, key, operand, negated=bool(negated))

    __setattr__ = refuse_change
    __delattr__ = refuse_change
    __copy__ = itself
    __deepcopy__ = itself
    __bool__ = _no_truth_value

    def __eq__(self, other: object) -> bool:
        if type(other) is not Leaf:
            return NotImplemented
        return (
            self.hashed == other.hashed
            and self.op is other.op
            and self.negated is other.negated
            and self.key == other.key
            and same_value(self.value, other.value)
        )

    def __hash__(self) -> int:
        return self.hashed

    def __repr__(self) -> str:
        return f"Leaf({self.op!r}, {self.key!r}, {self.value!r}, negated={self.negated})"

    def __reduce__(self) -> tuple[type[Leaf], tuple[object, ...]]:
        return Leaf, (self.op, self.key, self.value, self.negated)

    def complement(self) -> Leaf:
        """Return the leaf that holds exactly where this one does not (F3)."""
        return new_leaf(self.op, self.key, self.value, negated=not self.negated)


def new_leaf(op: FilterOp, key: str, value: Scalar | tuple[Scalar, ...] | None, *, negated: bool) -> Leaf:
    """Make a leaf of parts that are known to be valid."""
    leaf = _LeafFields()
    leaf.op = op
    leaf.key = key
    leaf.value = value
    leaf.negated = negated
    leaf.hashed = hash((op, key, negated, hash_value(value)))
    leaf.__class__ = Leaf
    return cast("Leaf", leaf)


class _PartsFields:
    __slots__ = ("depth", "hashed", "parts")
    depth: int
    hashed: int
    parts: tuple[Normal, ...]


class _Parts(_PartsFields):
    __slots__ = ()

    __setattr__ = refuse_change
    __delattr__ = refuse_change
    __copy__ = itself
    __deepcopy__ = itself
    __bool__ = _no_truth_value

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        stack: list[tuple[object, object]] = [(self, other)]
        while stack:
            a, b = stack.pop()
            if a is b:
                continue
            if isinstance(a, _Parts) and isinstance(b, _Parts):
                if type(a) is not type(b) or a.hashed != b.hashed or len(a.parts) != len(b.parts):
                    return False
                stack += zip(a.parts, b.parts, strict=True)
            elif a != b:
                return False
        return True

    def __hash__(self) -> int:
        return self.hashed

    def __repr__(self) -> str:
        pieces: list[str] = []
        stack: list[object] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, _Parts):
                pieces.append(f"{type(item).__name__}(")
                stack.append(")")
                for position, part in enumerate(reversed(item.parts)):
                    stack += [", ", part] if position else [part]
            else:
                pieces.append(item if isinstance(item, str) else repr(item))
        return "".join(pieces)


@final
class And(_Parts):
    """All of two or more different parts, each a `Leaf` or an `Or`. `all_of` makes them."""

    __slots__ = ()

    def __new__(cls, *parts: Normal) -> And:
        """Check that the parts are in normal form and make the conjunction."""
        _check_parts(parts, (Leaf, Or))
        return new_and(parts)

    def __reduce__(self) -> tuple[type[And], tuple[Normal, ...]]:
        return And, self.parts


@final
class Or(_Parts):
    """Any of two or more different parts, each a `Leaf` or an `And`. `any_of` makes them."""

    __slots__ = ()

    def __new__(cls, *parts: Normal) -> Or:
        """Check that the parts are in normal form and make the disjunction."""
        _check_parts(parts, (Leaf, And))
        return new_or(parts)

    def __reduce__(self) -> tuple[type[Or], tuple[Normal, ...]]:
        return Or, self.parts


Normal: TypeAlias = And | Or | Leaf | Constant
"""A filter in normal form."""


def _check_parts(parts: tuple[object, ...], allowed: tuple[type, ...]) -> None:
    if len(parts) < 2 or not all(isinstance(part, allowed) for part in parts):  # noqa: PLR2004 - a chain
        names = " or ".join(kind.__name__ for kind in allowed)
        raise ArgumentTypeError(
            f"a chain in normal form has two or more parts, each {names}",
            hint="all_of() and any_of() flatten and fold",
        )


def _depth(parts: tuple[Normal, ...]) -> int:
    depth = 1 + max(part.depth if isinstance(part, _Parts) else 1 for part in parts)
    if depth > MAX_NORMAL_DEPTH:
        raise FilterLimitError(
            f"the normal form is {depth} levels deep, at most {MAX_NORMAL_DEPTH} are taken"
        )
    return depth


def new_and(parts: tuple[Normal, ...]) -> And:
    """Make an And of parts that are known to be flat."""
    made = _PartsFields()
    made.parts = parts
    made.depth = _depth(parts)
    made.hashed = hash((And, parts))
    made.__class__ = And
    return cast("And", made)


def new_or(parts: tuple[Normal, ...]) -> Or:
    """Make an Or of parts that are known to be flat."""
    made = _PartsFields()
    made.parts = parts
    made.depth = _depth(parts)
    made.hashed = hash((Or, parts))
    made.__class__ = Or
    return cast("Or", made)


def all_of(*normals: Normal) -> Normal:
    """Combine normal forms with AND: flat, without duplicates and constants. Of nothing: TRUE.

    This is how a view adds its filter to that of a request (T1). A leaf beside its own complement makes
    FALSE, which two-valued logic allows (F3).
    """
    parts: dict[Normal, None] = {}
    for normal in normals:
        if normal is FALSE:
            return FALSE
        if type(normal) is And:
            parts.update(dict.fromkeys(normal.parts))
        elif normal is not TRUE:
            parts[_normal(normal)] = None
    if _contradicts(parts):
        return FALSE
    if len(parts) > 1:
        return new_and(tuple(parts))
    return next(iter(parts), TRUE)


def any_of(*normals: Normal) -> Normal:
    """Combine normal forms with OR: flat, without duplicates and constants. Of nothing: FALSE.

    A leaf beside its own complement makes TRUE (F3).
    """
    parts: dict[Normal, None] = {}
    for normal in normals:
        if normal is TRUE:
            return TRUE
        if type(normal) is Or:
            parts.update(dict.fromkeys(normal.parts))
        elif normal is not FALSE:
            parts[_normal(normal)] = None
    if _contradicts(parts):
        return TRUE
    if len(parts) > 1:
        return new_or(tuple(parts))
    return next(iter(parts), FALSE)


def normalise(filter: Expression | Normal) -> Normal:  # noqa: A002 - the word of the whole project
    """Bring a filter into normal form; the meaning stays the same for every document.

    NOT is pushed to the leaves, chains are flat, ``IN []`` and what follows from it is folded away, IN of
    one value becomes EQ, repeated operands and repeated values of a list (by type and value) are dropped,
    order is kept. A filter in normal form comes back unchanged.

    Raises:
        FilterLimitError: The filter is deeper or larger than allowed (F6).
        ArgumentTypeError: It is neither an Expression nor a normal form.
    """
    if type(filter) is not Expression:
        return _normal(filter)
    check_limits(filter)
    return _normalise(filter, negated=False)


def _normalise(expression: Expression, *, negated: bool) -> Normal:
    # Recursion goes one call a level of the flattened tree, so at most MAX_DEPTH deep.
    while expression.op is FilterOp.NOT:
        expression = cast("Expression", expression.left)
        negated = not negated
    op: FilterOp = expression.op
    if op is FilterOp.AND or op is FilterOp.OR:
        parts = [_normalise(term, negated=negated) for term in operands(expression)]
        return all_of(*parts) if (op is FilterOp.AND) is not negated else any_of(*parts)
    if op in _COMPLEMENT:
        op = _COMPLEMENT[op]
        negated = not negated
    key = cast("Key", expression.left).name
    if op is FilterOp.ISNULL:
        return new_leaf(op, key, None, negated=negated)
    operand = cast("Value", expression.right).value
    if type(operand) is tuple:
        operand = _distinct(operand)
        if not operand:
            return TRUE if negated else FALSE
        if len(operand) == 1:
            return new_leaf(FilterOp.EQ, key, operand[0], negated=negated)
    return new_leaf(op, key, operand, negated=negated)


def _distinct(values: Iterable[Scalar]) -> tuple[Scalar, ...]:
    """Drop values that are equal by type and value, keeping the first of each."""
    return tuple({(type(value), value): value for value in values}.values())


def _contradicts(parts: dict[Normal, None]) -> bool:
    return any(type(part) is Leaf and part.negated and part.complement() in parts for part in parts)


def _normal(candidate: object) -> Normal:
    if isinstance(candidate, And | Or | Leaf | Constant):
        return candidate
    raise ArgumentTypeError(
        f"expected a filter in normal form, not {type(candidate).__name__}",
        hint="normalise(expression) makes one",
    )
