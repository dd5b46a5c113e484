"""The printer: a filter as text that parses to an equal tree (F8)."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Final, cast

from entrepot.filters.expression import SIGNS, Expression, FilterOp, check_limits
from entrepot.filters.lexer import BARE_KEY, RESERVED
from entrepot.filters.normalise import FALSE, TRUE, And, Leaf, Or, normalise

if TYPE_CHECKING:
    from entrepot.filters.expression import Key, Value
    from entrepot.filters.normalise import Normal
    from entrepot.filters.values import Scalar

_NEGATED: Final = {
    FilterOp.EQ: FilterOp.NE,
    FilterOp.IN: FilterOp.NIN,
    FilterOp.ISNULL: FilterOp.ISNOTNULL,
}

# How tightly an operator binds; every comparison binds tighter than these.
_BINDING: Final = {FilterOp.OR: 1, FilterOp.AND: 2, FilterOp.NOT: 3}
_COMPARISON: Final = 4

_ESCAPES: Final = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL: Final = {quote: re.compile(rf"[{quote}\\\x00-\x1f]") for quote in "'\"`"}


def format_filter(filter: Expression | Normal) -> str:  # noqa: A002 - the word of the whole project
    """Print a filter as text, with the parentheses that are needed and no others.

    For every expression ``parse_filter(format_filter(expression)) == expression``. Trees are binary and
    text groups to the left, so a chain that groups to the right keeps its parentheses: ``a AND (b AND c)``.

    A filter in normal form is printed too, for people: its text means the same, except that TRUE and FALSE,
    which the language lacks, print as such.

    Raises:
        FilterLimitError: The expression is deeper or larger than allowed (F6).
        ArgumentTypeError: It is no filter.
    """
    if type(filter) is Expression:
        check_limits(filter)
        return _format_expression(filter)
    return _format_normal(normalise(filter), values=True)


def format_leaf(leaf: Leaf, *, values: bool = True) -> str:
    """Print one leaf of a normal form; with ``values=False`` each operand is a question mark.

    Errors and logs name clauses without their values.
    """
    return _format_normal(leaf, values=values)


def _format_expression(expression: Expression) -> str:
    pieces: list[str] = []
    stack: list[Expression | str] = [expression]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        op, left, right = item.op, item.left, item.right
        if op is FilterOp.NOT:
            pieces.append("NOT ")
            stack += _within(cast("Expression", left), _BINDING[op])
        elif op in _BINDING:
            binding = _BINDING[op]
            stack += _within(cast("Expression", right), binding + 1)
            stack.append(f" {op.name} ")
            stack += _within(cast("Expression", left), binding)
        else:
            operand = None if right is None else cast("Value", right).value
            pieces.append(_format_comparison(op, cast("Key", left).name, operand, values=True))
    return "".join(pieces)


def _within(expression: Expression, binding: int) -> tuple[Expression | str, ...]:
    """What to push for an operand, with parentheses if it binds less tightly than its place asks."""
    if _BINDING.get(expression.op, _COMPARISON) < binding:
        return (")", expression, "(")
    return (expression,)


def _format_normal(normal: Normal, *, values: bool) -> str:
    pieces: list[str] = []
    stack: list[Normal | str] = [normal]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
        elif isinstance(item, Leaf):
            op, negated = item.op, item.negated
            if negated and op in _NEGATED:
                op, negated = _NEGATED[op], False
            text = _format_comparison(op, item.key, item.value, values=values)
            pieces.append(f"NOT {text}" if negated else text)
        elif item is TRUE or item is FALSE:
            pieces.append(item.name)
        else:
            word = " AND " if isinstance(item, And) else " OR "
            for position, part in enumerate(reversed(item.parts)):
                if position:
                    stack.append(word)
                stack += (")", part, "(") if isinstance(part, Or) else (part,)
    return "".join(pieces)


def _format_comparison(
    op: FilterOp, key: str, operand: Scalar | tuple[Scalar, ...] | None, *, values: bool
) -> str:
    text = f"{format_key(key)} {SIGNS[op]}"
    if operand is None:
        return text
    if isinstance(operand, tuple):
        return f"{text} [{', '.join(map(format_scalar, operand))}]" if values else f"{text} [?]"
    if not values:
        return f"{text} ?"
    return f"{text} {format_scalar(operand)}"


def format_key(key: str) -> str:
    """Print a key, in backticks unless it can stand bare."""
    if BARE_KEY.fullmatch(key) and key.upper() not in RESERVED:
        return key
    return _quote(key, "`")


def format_scalar(value: Scalar) -> str:
    """Print one operand as a literal of the language."""
    if type(value) is str:
        return _quote(value, '"' if "'" in value and '"' not in value else "'")
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is datetime:
        return f"datetime '{value.isoformat().removesuffix('+00:00')}Z'"
    return repr(value)


def _quote(text: str, quote: str) -> str:
    return f"{quote}{_SPECIAL[quote].sub(_escape, text)}{quote}"


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char < " ":
        return _ESCAPES.get(char, f"\\u{ord(char):04x}")
    return f"\\{char}"
