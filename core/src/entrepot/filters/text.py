"""The text form of filters: `parse_filter` (F7).

An operator-precedence (Pratt) parser with a stack of its own, so neither brackets nor NOTs recurse. It
works on the bare tokens and knows no positions: only when it fails, diagnostics.py cuts the text anew
and says where and why. That keeps the way of a correct text short.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from entrepot.errors import ArgumentTypeError
from entrepot.filters.diagnostics import Expect, failure
from entrepot.filters.expression import (
    Expression,
    FilterOp,
    check_limits,
    new_chain,
    new_comparison,
    new_key,
    new_not,
    new_null_test,
    new_value,
)
from entrepot.filters.lexer import RESERVED, TOKEN, instant, literal, unquote
from entrepot.filters.values import MAX_KEY_LENGTH

if TYPE_CHECKING:
    from datetime import datetime

    from entrepot.filters.values import Scalar

CACHED_TEXTS: Final = 1024
"""How many texts the cache holds."""

MAX_CACHED_LENGTH: Final = 8192
"""Characters of the longest text that is cached."""

_AND, _OR, _NOT = FilterOp.AND, FilterOp.OR, FilterOp.NOT

_COMPARISONS: Final = {
    "==": FilterOp.EQ,
    "=": FilterOp.EQ,
    "!=": FilterOp.NE,
    "<>": FilterOp.NE,
    "<": FilterOp.LT,
    "<=": FilterOp.LTE,
    ">": FilterOp.GT,
    ">=": FilterOp.GTE,
}
_RANGES: Final = frozenset({"<", "<=", ">", ">="})
_JOINS: Final = {"&&": _AND, "||": _OR, "AND": _AND, "OR": _OR, "and": _AND, "or": _OR}
_WORD_STARTS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_QUOTES: Final = frozenset("'\"`")
_STRING_QUOTES: Final = frozenset("'\"")
_NOT_IN: Final = frozenset({"NOT", "NIN"})


def parse_filter(text: str) -> Expression:
    """Parse the text form of a filter.

    ```python
    parse_filter("country == 'BG' AND (year >= 2020 OR tags IN ['a', 'b']) AND NOT active == false")
    ```

    Results of texts up to 8,192 characters are kept in a bounded cache that threads share; trees are
    immutable.

    Raises:
        FilterSyntaxError: The text does not parse; the error names line and column.
        FilterValueError: An operand is not allowed with its operator (F5). In a text this error is also a
            FilterSyntaxError and names the place.
        FilterLimitError: The filter is deeper than 100 or larger than 10,000 nodes (F6).
        ArgumentTypeError: `text` is not a string.
    """
    if type(text) is not str:
        text = _plain(text)
    return _cached_parse(text) if len(text) <= MAX_CACHED_LENGTH else parse(text)


def parse(text: str) -> Expression:
    """Parse without the cache."""
    lexemes: list[str] = TOKEN.findall(text)
    position = 0
    waiting: list[FilterOp | None] = []  # AND, OR and NOT that wait for their right side; None is "("
    lefts: list[Expression] = []  # the left sides of the ANDs and ORs that wait
    while True:
        # One operand: NOT and "(" wait, a comparison is read whole.
        lexeme = lexemes[position]
        if lexeme == "(":
            waiting.append(None)
            position += 1
            continue
        if lexeme == "!" or lexeme.upper() == "NOT":
            waiting.append(_NOT)
            position += 1
            continue
        expression, position = _comparison(text, lexemes, position)

        # What follows it: AND and OR take the next operand, ")" closes.
        while True:
            while waiting and waiting[-1] is _NOT:
                waiting.pop()
                expression = new_not(expression)
            lexeme = lexemes[position]
            join = _JOINS.get(lexeme) or _JOINS.get(lexeme.upper())
            if waiting and waiting[-1] is _AND:
                waiting.pop()
                expression = new_chain(_AND, lefts.pop(), expression)
            if join is not _AND and waiting and waiting[-1] is _OR:
                waiting.pop()
                expression = new_chain(_OR, lefts.pop(), expression)
            if join is not None:
                waiting.append(join)
                lefts.append(expression)
                position += 1
                break
            if lexeme == ")" and waiting:
                waiting.pop()
                position += 1
            elif lexeme or waiting:
                raise failure(text, position, Expect.JOIN)
            else:
                check_limits(expression)
                return expression


_cached_parse = lru_cache(maxsize=CACHED_TEXTS)(parse)


def _comparison(text: str, lexemes: list[str], position: int) -> tuple[Expression, int]:
    """Read a key, its operator and the value; return the comparison and the position behind it."""
    lexeme = lexemes[position]
    first = lexeme[:1]
    if first in _WORD_STARTS and lexeme.upper() not in RESERVED:
        name = lexeme
    elif first in _QUOTES and (unquoted := unquote(lexeme)):
        name = unquoted
    else:
        raise failure(text, position, Expect.OPERAND)
    if len(name) > MAX_KEY_LENGTH:
        raise failure(text, position, Expect.OPERAND)
    key = new_key(name)
    position += 1
    lexeme = lexemes[position]
    op = _COMPARISONS.get(lexeme)
    if op is not None:
        position += 1
        value = literal(lexemes[position])
        if value is None:
            value, position = _datetime(text, lexemes, position, Expect.VALUE)
        elif (value is True or value is False) and lexeme in _RANGES:
            raise failure(text, position, Expect.VALUE)
        return new_comparison(op, key, new_value(value)), position + 1
    word = lexeme.upper()
    if word == "IN":
        values, position = _list(text, lexemes, position + 1)
        return new_comparison(FilterOp.IN, key, new_value(values)), position
    if word in _NOT_IN:
        if word == "NOT":
            position += 1
            if lexemes[position].upper() != "IN":
                raise failure(text, position, Expect.IN)
        values, position = _list(text, lexemes, position + 1)
        return new_comparison(FilterOp.NIN, key, new_value(values)), position
    if word != "IS":
        raise failure(text, position, Expect.OPERATOR)
    position += 1
    word = lexemes[position].upper()
    if word == "NULL":
        return new_null_test(FilterOp.ISNULL, key), position + 1
    if word != "NOT":
        raise failure(text, position, Expect.NULL)
    position += 1
    if lexemes[position].upper() != "NULL":
        raise failure(text, position, Expect.NOT_NULL)
    return new_null_test(FilterOp.ISNOTNULL, key), position + 1


def _list(text: str, lexemes: list[str], position: int) -> tuple[tuple[Scalar, ...], int]:
    """Read a list from its "[" on; return the values and the position behind it."""
    if lexemes[position] != "[":
        raise failure(text, position, Expect.LIST)
    position += 1
    if lexemes[position] == "]":
        return (), position + 1
    values: list[Scalar] = []
    expect = Expect.FIRST
    while True:
        value = literal(lexemes[position])
        if value is None:
            value, position = _datetime(text, lexemes, position, expect)
        values.append(value)
        lexeme = lexemes[position + 1]
        position += 2
        if lexeme == ",":
            expect = Expect.NEXT
        elif lexeme == "]":
            return tuple(values), position
        else:
            raise failure(text, position - 1, Expect.COMMA)


def _datetime(text: str, lexemes: list[str], position: int, expect: Expect) -> tuple[datetime, int]:
    """Read a datetime literal, the only one of two tokens; return it and the position of the second."""
    if lexemes[position].upper() != "DATETIME":
        raise failure(text, position, expect)
    position += 1
    lexeme = lexemes[position]
    if lexeme[:1] in _STRING_QUOTES:
        content = unquote(lexeme)
        value = None if content is None else instant(content)
        if value is not None:
            return value, position
    raise failure(text, position, Expect.DATETIME)


def _plain(text: object) -> str:
    if isinstance(text, str):
        return str.__str__(text)
    if isinstance(text, Expression):
        hint = "it is a filter already: use it as it is"
    elif isinstance(text, bytes):
        hint = "decode it first"
    elif text is None:
        hint = "no filter is None itself, and is not parsed"
    else:
        hint = "write a filter as in \"country == 'BG'\", or build it with F"
    raise ArgumentTypeError(f"the text of a filter is a str, not {type(text).__name__}", hint=hint)
