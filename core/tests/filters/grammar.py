"""The filter language once more, as a Lark grammar: the parser is held to the same trees and refusals (F7)."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any, Final

from lark import Lark, Token, Transformer
from lark.exceptions import LarkError, VisitError

from entrepot.errors import FilterError
from entrepot.filters import Expression, FilterOp, Key, Value, check_limits

GRAMMAR: Final = r"""
?start: or_

?or_: and_ | or_ _OR and_ -> disjunction
?and_: not_ | and_ _AND not_ -> conjunction
?not_: _NOT not_ -> negation | "(" or_ ")" | comparison

comparison: key SIGN scalar -> compared
          | key _IN list -> contained
          | key (_NIN | _NOT_WORD _IN) list -> not_contained
          | key _IS _NULL -> is_null
          | key _IS _NOT_WORD _NULL -> is_not_null

key: BARE -> bare_key | SINGLE -> quoted | DOUBLE -> quoted | BACKTICK -> quoted
list: "[" [scalar ("," scalar)*] "]" -> items
scalar: SINGLE -> quoted | DOUBLE -> quoted | NUMBER -> number | TRUE -> true | FALSE -> false
      | _DATETIME (SINGLE | DOUBLE) -> instant

SIGN: "==" | "=" | "!=" | "<>" | "<=" | "<" | ">=" | ">"
_AND: "&&" | /(?ai:AND)(?![A-Za-z0-9_.])/
_OR: "||" | /(?ai:OR)(?![A-Za-z0-9_.])/
_NOT: "!" | /(?ai:NOT)(?![A-Za-z0-9_.])/
_NOT_WORD: /(?ai:NOT)(?![A-Za-z0-9_.])/
_IN: /(?ai:IN)(?![A-Za-z0-9_.])/
_NIN: /(?ai:NIN)(?![A-Za-z0-9_.])/
_IS: /(?ai:IS)(?![A-Za-z0-9_.])/
_NULL: /(?ai:NULL)(?![A-Za-z0-9_.])/
_DATETIME: /(?ai:DATETIME)(?![A-Za-z0-9_.])/
TRUE: /(?ai:TRUE)(?![A-Za-z0-9_.])/
FALSE: /(?ai:FALSE)(?![A-Za-z0-9_.])/

BARE: /(?!(?ai:AND|OR|NOT|IN|NIN|IS|NULL|TRUE|FALSE|DATETIME|LIKE|BETWEEN|CONTAINS)(?![A-Za-z0-9_.]))[A-Za-z_][A-Za-z0-9_.]*/
NUMBER: /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?(?![A-Za-z0-9_.])/
SINGLE: /'(?:[^'\\\x00-\x1f]|\\["'\\\/bfnrt]|\\u[0-9a-fA-F]{4})*'/
DOUBLE: /"(?:[^"\\\x00-\x1f]|\\["'\\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/
BACKTICK: /`(?:[^`\\\x00-\x1f]|\\[`"'\\\/bfnrt]|\\u[0-9a-fA-F]{4})*`/

%ignore /[ \t\r\n]+/
"""

_LARK: Final[Any] = Lark(GRAMMAR, parser="lalr", lexer="contextual", maybe_placeholders=False)

_SIGNS: Final = {
    "==": FilterOp.EQ,
    "=": FilterOp.EQ,
    "!=": FilterOp.NE,
    "<>": FilterOp.NE,
    "<": FilterOp.LT,
    "<=": FilterOp.LTE,
    ">": FilterOp.GT,
    ">=": FilterOp.GTE,
}


class RefusedError(ValueError):
    """The grammar, or a rule for operands, does not take the text."""


def parse_by_grammar(text: str) -> Expression:
    """Parse with Lark, and build the tree through the public constructors."""
    try:
        expression = _Trees().transform(_LARK.parse(text))
        assert isinstance(expression, Expression)
        check_limits(expression)
    except VisitError as error:
        raise RefusedError(str(error.orig_exc)) from error
    except (LarkError, FilterError) as error:
        raise RefusedError(str(error)) from error
    return expression


class _Trees(Transformer[Token, Expression]):
    def disjunction(self, parts: list[Any]) -> Expression:
        return Expression(FilterOp.OR, parts[0], parts[1])

    def conjunction(self, parts: list[Any]) -> Expression:
        return Expression(FilterOp.AND, parts[0], parts[1])

    def negation(self, parts: list[Any]) -> Expression:
        return Expression(FilterOp.NOT, parts[0])

    def compared(self, parts: list[Any]) -> Expression:
        return Expression(_SIGNS[parts[1]], Key(parts[0]), Value(parts[2]))

    def contained(self, parts: list[Any]) -> Expression:
        return Expression(FilterOp.IN, Key(parts[0]), Value(parts[1]))

    def not_contained(self, parts: list[Any]) -> Expression:
        return Expression(FilterOp.NIN, Key(parts[0]), Value(parts[1]))

    def is_null(self, parts: list[Any]) -> Expression:
        return Expression(FilterOp.ISNULL, Key(parts[0]))

    def is_not_null(self, parts: list[Any]) -> Expression:
        return Expression(FilterOp.ISNOTNULL, Key(parts[0]))

    def bare_key(self, parts: list[Any]) -> str:
        return str(parts[0])

    def quoted(self, parts: list[Any]) -> str:
        return _unquoted(str(parts[0]))

    def items(self, parts: list[Any]) -> list[Any]:
        return parts

    def number(self, parts: list[Any]) -> int | float:
        text = str(parts[0])
        return float(text) if re.search("[.eE]", text) else int(text)

    def true(self, parts: list[Any]) -> bool:
        del parts
        return True

    def false(self, parts: list[Any]) -> bool:
        del parts
        return False

    def instant(self, parts: list[Any]) -> datetime:
        text = _unquoted(str(parts[0]))
        shape = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[-+]([01]\d|2[0-3]):[0-5]\d)"
        if re.fullmatch(shape, text, re.ASCII) is None:
            raise RefusedError(text)
        return datetime.fromisoformat(text)


def _unquoted(literal: str) -> str:
    """Let the JSON decoder read the string, after writing the two escapes that JSON lacks in its way."""
    escapes = {r"\'": "'", r"\`": "`"}
    inner = re.sub(r"\\.", lambda match: escapes.get(match[0], match[0]), literal[1:-1], flags=re.DOTALL)
    quoted = re.sub(r'(\\.)|"', lambda match: match[1] or r"\"", inner, flags=re.DOTALL)
    decoded = json.loads(f'"{quoted}"')
    assert isinstance(decoded, str)
    return decoded
