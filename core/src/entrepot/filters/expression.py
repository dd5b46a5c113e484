"""The filter tree: what a filter means, before any text or engine (F1 to F8).

A tree is binary and immutable. A comparison has a `Key` left and a `Value` right, IS NULL and
IS NOT NULL have a key alone, NOT has one expression, AND and OR have two. Groups leave no trace.
Every constructor validates fully, so a tree that exists is a filter that every backend answers.

Equality and hash know the types of values: ``True``, ``1`` and ``1.0`` differ (F8). Hash, depth and
size are computed at construction from those of the children, so a chain of ten thousand terms costs
no recursion anywhere.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast, final, overload

from entrepot.errors import ArgumentTypeError, FilterLimitError, FilterValueError
from entrepot.filters.values import Scalar, check_key, check_operand, hash_value, same_value

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

MAX_DEPTH: Final = 100
"""The deepest filter that is taken (F6)."""

MAX_NODES: Final = 10_000
"""The largest filter that is taken: operators, comparisons and elements of IN lists (F6)."""


class FilterOp(Enum):
    """The thirteen operators."""

    AND = "AND"
    OR = "OR"
    EQ = "EQ"
    NE = "NE"
    GT = "GT"
    GTE = "GTE"
    LT = "LT"
    LTE = "LTE"
    IN = "IN"
    NIN = "NIN"
    NOT = "NOT"
    ISNULL = "ISNULL"
    ISNOTNULL = "ISNOTNULL"

    # Members are singletons: hashing by identity agrees with ==, and spares a Python call each time.
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"FilterOp.{self.name}"


_AND, _OR, _NOT = FilterOp.AND, FilterOp.OR, FilterOp.NOT
_CHAINS: Final = frozenset({FilterOp.AND, FilterOp.OR})
_NULL_TESTS: Final = frozenset({FilterOp.ISNULL, FilterOp.ISNOTNULL})
_LISTS: Final = frozenset({FilterOp.IN, FilterOp.NIN})
_RANGES: Final = frozenset({FilterOp.GT, FilterOp.GTE, FilterOp.LT, FilterOp.LTE})

SIGNS: Final = {
    FilterOp.EQ: "==",
    FilterOp.NE: "!=",
    FilterOp.GT: ">",
    FilterOp.GTE: ">=",
    FilterOp.LT: "<",
    FilterOp.LTE: "<=",
    FilterOp.IN: "IN",
    FilterOp.NIN: "NOT IN",
    FilterOp.ISNULL: "IS NULL",
    FilterOp.ISNOTNULL: "IS NOT NULL",
}
"""How the comparisons are written."""

# How the classes below become immutable at little cost: an object is filled as its mutable base class and
# then turned into the class itself, whose __setattr__ refuses. Setting six slots around a refusing
# __setattr__ takes three times as long, and parsing makes a dozen objects for each filter.


def refuse_change(self: object, name: str, value: object = None) -> NoReturn:
    """Stand as __setattr__ and __delattr__ of classes that do not change."""
    del value
    raise AttributeError(f"{type(self).__name__} is immutable: cannot change {name!r}")


def itself(self: T, memo: object = None) -> T:
    """Stand as __copy__ and __deepcopy__ of classes that do not change."""
    del memo
    return self


class _KeyFields:
    __slots__ = ("hashed", "name")
    hashed: int  # what hash() returns, computed once
    name: str


@final
class Key(_KeyFields):
    """A metadata key: any non-empty string of at most 512 code points without NUL or lone surrogate (D3).

    Dots, quotes, ``$``, keywords and non-ASCII are ordinary characters; a dotted key is one flat key.

    Raises:
        ArgumentTypeError: `name` is not exactly a str.
        FilterValueError: `name` is empty, too long, or not well-formed.
    """

    __slots__ = ()

    def __new__(cls, name: str) -> Key:
        """Check the name and make the key."""
        return new_key(check_key(name))

    __setattr__ = refuse_change
    __delattr__ = refuse_change
    __copy__ = itself
    __deepcopy__ = itself

    def __eq__(self, other: object) -> bool:
        return self.name == other.name if type(other) is Key else NotImplemented

    def __hash__(self) -> int:
        return self.hashed

    def __repr__(self) -> str:
        return f"Key({self.name!r})"

    def __reduce__(self) -> tuple[type[Key], tuple[str]]:
        return Key, (self.name,)


def new_key(name: str) -> Key:
    """Make a key of a name that is known to be valid; for the parser and the builder."""
    key = _KeyFields()
    key.name = name
    key.hashed = hash(name)
    key.__class__ = Key
    return cast("Key", key)


class _ValueFields:
    __slots__ = ("hashed", "value")
    hashed: int
    value: Scalar | tuple[Scalar, ...]


@final
class Value(_ValueFields):
    """An operand: a scalar, or for IN and NOT IN a flat list, kept as a tuple (F5).

    Types are taken exactly: str, bool, int of 64 bits, finite float, aware datetime. Subclasses (numpy
    scalars, enumerations, pandas timestamps) are refused with a hint how to convert them, because engines
    and drivers treat them each in their own way. Datetimes are converted to UTC. A list may mix kinds.

    Raises:
        FilterValueError: Anything else; the message says what to use instead.
    """

    __slots__ = ()

    def __new__(cls, value: Scalar | Sequence[Scalar]) -> Value:
        """Check the operand and make the value."""
        return new_value(check_operand(value))

    __setattr__ = refuse_change
    __delattr__ = refuse_change
    __copy__ = itself
    __deepcopy__ = itself

    def __eq__(self, other: object) -> bool:
        return same_value(self.value, other.value) if type(other) is Value else NotImplemented

    def __hash__(self) -> int:
        return self.hashed

    def __repr__(self) -> str:
        return f"Value({self.value!r})"

    def __reduce__(self) -> tuple[type[Value], tuple[Scalar | tuple[Scalar, ...]]]:
        return Value, (self.value,)


def new_value(operand: Scalar | tuple[Scalar, ...]) -> Value:
    """Make a value of an operand that `check_operand` has passed; for the parser and the builder."""
    value = _ValueFields()
    value.value = operand
    value.hashed = hash_value(operand)
    value.__class__ = Value
    return cast("Value", value)


class _ExpressionFields:
    __slots__ = ("depth", "hashed", "left", "nodes", "op", "right")
    hashed: int
    depth: int
    left: Key | Expression
    nodes: int
    op: FilterOp
    right: Value | Expression | None


@final
class Expression(_ExpressionFields):
    """One node of a filter tree, with everything below it.

    Args:
        op: The operator.
        left: A `Key` for comparisons and null tests, an `Expression` for NOT, AND and OR.
        right: A `Value` for comparisons, an `Expression` for AND and OR, None for the others.

    Attributes:
        depth: Levels of the tree, a lone comparison being 1 and each NOT counting; a chain of one AND or
            OR is one level, however it is bracketed (F6).
        nodes: Operators, comparisons and elements of IN lists; a chain of one AND or OR is one operator,
            and each NOT counts (F6).

    ``==`` compares structure and types of values, and is iterative. ``&``, ``|`` and ``~`` combine.
    An expression has no truth value: ``if``, ``and``, ``or``, ``not``, ``in`` and chained comparisons
    raise, because Python would silently lose half of the filter. Limits are not checked here but where
    a filter is used (`check_limits`), so that a filter may be built step by step.

    Raises:
        ArgumentTypeError: An operand of the wrong class for the operator.
        FilterValueError: A value that does not go with the operator, such as a list after ``==``.
    """

    __slots__ = ()

    @overload
    def __new__(cls, op: FilterOp, left: Key, right: Value | None = None) -> Expression: ...
    @overload
    def __new__(cls, op: FilterOp, left: Expression, right: Expression | None = None) -> Expression: ...
    def __new__(
        cls, op: FilterOp, left: Key | Expression, right: Value | Expression | None = None
    ) -> Expression:
        """Check the parts and make the node."""
        if type(op) is not FilterOp:
            raise ArgumentTypeError(
                f"op is a FilterOp, not {type(op).__name__}",
                hint="the operators are FilterOp.EQ, FilterOp.AND, ...",
            )
        if op in _CHAINS:
            if type(left) is Expression and type(right) is Expression:
                return new_chain(op, left, right)
            wanted = "two expressions"
        elif op is _NOT:
            if type(left) is Expression and right is None:
                return new_not(left)
            wanted = "one expression, left"
        elif op in _NULL_TESTS:
            if type(left) is Key and right is None:
                return new_null_test(op, left)
            wanted = "one Key, left"
        elif type(left) is Key and type(right) is Value:
            check_pair(op, right.value)
            return new_comparison(op, left, right)
        else:
            wanted = "a Key left and a Value right"
        given = f"{type(left).__name__} and {type(right).__name__}"
        raise ArgumentTypeError(
            f"{op.name} takes {wanted}, not {given}",
            hint="as in Expression(FilterOp.EQ, Key('country'), Value('BG'))",
        )

    __setattr__ = refuse_change
    __delattr__ = refuse_change
    __copy__ = itself
    __deepcopy__ = itself

    def __eq__(self, other: object) -> bool:
        return _equal(self, other) if type(other) is Expression else NotImplemented

    def __hash__(self) -> int:
        return self.hashed

    def __repr__(self) -> str:
        if self.nodes > MAX_NODES or self.depth > MAX_DEPTH:
            return f"<Expression: {self.op.name}, depth {self.depth}, {self.nodes} nodes>"
        pieces: list[str] = []
        stack: list[Expression | str] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                pieces.append(item)
                continue
            left, right = item.left, item.right
            pieces.append(f"Expression({item.op!r}, ")
            stack.append(")")
            if right is not None:
                stack += [right if type(right) is Expression else repr(right), ", "]
            stack.append(left if type(left) is Expression else repr(left))
        return "".join(pieces)

    def __and__(self, other: Expression) -> Expression:
        return new_chain(_AND, self, _expression(other, "&"))

    def __or__(self, other: Expression) -> Expression:
        return new_chain(_OR, self, _expression(other, "|"))

    def __rand__(self, other: object) -> NoReturn:
        _expression(other, "&")
        raise AssertionError  # pragma: no cover - two expressions meet in __and__

    def __ror__(self, other: object) -> NoReturn:
        _expression(other, "|")
        raise AssertionError  # pragma: no cover - two expressions meet in __or__

    def __invert__(self) -> Expression:
        return new_not(self)

    def __bool__(self) -> NoReturn:
        message = "a filter has no truth value: 'and', 'or', 'not', 'in', 'if' and chained comparisons do not build filters"
        raise ArgumentTypeError(
            message,
            hint="combine with & | ~ and put parentheses around each comparison: (F.x > 1) & (F.x < 5)",
        )

    def __reduce__(self) -> tuple[object, tuple[tuple[tuple[object, ...], ...]]]:
        return _from_rows, (_to_rows(self),)


def check_pair(op: FilterOp, operand: Scalar | tuple[Scalar, ...]) -> None:
    """Raise FilterValueError unless the operand goes with the comparison (F5)."""
    if op in _LISTS:
        if type(operand) is not tuple:
            raise FilterValueError(
                f"{SIGNS[op]} takes a list, not {operand!r}", hint=f"write [{operand!r}], or use =="
            )
    elif type(operand) is tuple:
        instead = "NOT IN: F.key.nin([...])" if op is FilterOp.NE else "IN: F.key.in_([...])"
        raise FilterValueError(
            f"{SIGNS[op]} takes one value, not a list", hint=f"for any of several values use {instead}"
        )
    elif op in _RANGES and type(operand) is bool:
        raise FilterValueError(f"{SIGNS[op]} does not order booleans", hint="use == or !=")


def new_comparison(op: FilterOp, key: Key, value: Value) -> Expression:
    """Make a comparison of parts that are known to go together."""
    made = _ExpressionFields()
    made.op = op
    made.left = key
    made.right = value
    made.depth = 1
    operand = value.value
    made.nodes = 1 + len(operand) if type(operand) is tuple else 1
    made.hashed = hash((op, key.hashed, value.hashed))
    made.__class__ = Expression
    return cast("Expression", made)


def new_null_test(op: FilterOp, key: Key) -> Expression:
    """Make IS NULL or IS NOT NULL."""
    made = _ExpressionFields()
    made.op = op
    made.left = key
    made.right = None
    made.depth = 1
    made.nodes = 1
    made.hashed = hash((op, key.hashed))
    made.__class__ = Expression
    return cast("Expression", made)


def new_not(operand: Expression) -> Expression:
    """Negate."""
    made = _ExpressionFields()
    made.op = _NOT
    made.left = operand
    made.right = None
    made.depth = operand.depth + 1
    made.nodes = operand.nodes + 1
    made.hashed = hash((_NOT, operand.hashed))
    made.__class__ = Expression
    return cast("Expression", made)


def new_chain(op: FilterOp, left: Expression, right: Expression) -> Expression:
    """Join with AND or OR. A child of the same operator is in one chain with this node (F6)."""
    made = _ExpressionFields()
    made.op = op
    made.left = left
    made.right = right
    depth = left.depth
    nodes = left.nodes + right.nodes + 1
    if left.op is op:
        depth -= 1
        nodes -= 1
    other = right.depth
    if right.op is op:
        other -= 1
        nodes -= 1
    made.depth = (depth if depth > other else other) + 1  # noqa: FURB136 - max() costs a call
    made.nodes = nodes
    made.hashed = hash((op, left.hashed, right.hashed))
    made.__class__ = Expression
    return cast("Expression", made)


def check_limits(expression: Expression) -> None:
    """Raise FilterLimitError if the filter is deeper than 100 or larger than 10,000 nodes (F6).

    Parsing, printing, normalising, evaluating and converting call it; it costs two comparisons.
    """
    if expression.depth > MAX_DEPTH:
        raise FilterLimitError(
            f"the filter is {expression.depth} levels deep, at most {MAX_DEPTH} are taken",
            hint="chains of one AND or one OR count as one level; each NOT counts",
        )
    if expression.nodes > MAX_NODES:
        raise FilterLimitError(f"the filter has {expression.nodes} nodes, at most {MAX_NODES} are taken")


def operands(expression: Expression) -> list[Expression]:
    """Return the terms of a chain of one AND or OR, left to right, however it is bracketed."""
    op = expression.op
    terms: list[Expression] = []
    stack: list[Expression] = [expression]
    while stack:
        item = stack.pop()
        if item.op is op:
            stack.append(cast("Expression", item.right))
            stack.append(cast("Expression", item.left))
        else:
            terms.append(item)
    return terms


def _expression(other: object, sign: str) -> Expression:
    if type(other) is Expression:
        return other
    message = f"{sign} joins two filters, not a filter and {type(other).__name__}"
    raise ArgumentTypeError(
        message,
        hint=f"put parentheses around each comparison: (F.a == 1) {sign} (F.b == 2)",
    )


def _equal(left: Expression, right: Expression) -> bool:
    # Pairs that were met are kept: trees may share branches, and would else be walked once for each path.
    stack = [(left, right)]
    met: set[tuple[int, int]] = set()
    while stack:
        a, b = stack.pop()
        if a is b:
            continue
        if a.hashed != b.hashed or a.op is not b.op:
            return False
        if type(a.left) is Expression:
            if (id(a), id(b)) in met:
                continue
            met.add((id(a), id(b)))
            stack.append((a.left, cast("Expression", b.left)))
            if type(a.right) is Expression:
                stack.append((a.right, cast("Expression", b.right)))
        elif a.left != b.left or a.right != b.right:
            return False
    return True


def _to_rows(expression: Expression) -> tuple[tuple[object, ...], ...]:
    """Write a tree as rows that name their children by number, so that pickling does not recurse."""
    rows: list[tuple[object, ...]] = []
    numbers: dict[int, int] = {}
    stack = [expression]
    while stack:
        item = stack[-1]
        if id(item) in numbers:
            stack.pop()
            continue
        left, right = item.left, item.right
        if type(left) is Expression:
            children = [left, right] if type(right) is Expression else [left]
            waiting = [child for child in children if id(child) not in numbers]
            if waiting:
                stack += waiting
                continue
            row: tuple[object, ...] = (item.op.name, *(numbers[id(child)] for child in children))
        elif right is None:
            row = (item.op.name, left.name)
        else:
            row = (item.op.name, left.name, cast("Value", right).value)
        numbers[id(item)] = len(rows)
        rows.append(row)
        stack.pop()
    return tuple(rows)


def _from_rows(rows: tuple[tuple[Any, ...], ...]) -> Expression:
    made: list[Expression] = []
    for name, first, *rest in rows:
        op = FilterOp(name)
        if isinstance(first, str):
            made.append(Expression(op, Key(first), *map(Value, rest)))
        else:
            made.append(
                Expression(op, made[cast("int", first)], *(made[cast("int", number)] for number in rest))
            )
    return made[-1]
