"""The part of Milvus' expressions that this plugin writes, evaluated on a row: written beside the code under test.

A comparison with an absent member is False on a server of version 2.3 and unknown in Milvus Lite; both are modelled, as
the meaning must be the same.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Absent = Literal[False] | None

_TOKEN = re.compile(r'\s*("[A-Za-z0-9_-]*"|[A-Za-z_]+|[!=<>]=|[<>()\[\],])')


class Reader:
    """Reads one expression, and says whether a row satisfies it: True, False, or None for unknown.

    Args:
        text: The expression.
        row: The row.
        absent: What a comparison with an absent member is.
    """

    def __init__(self, text: str, row: Mapping[str, Any], absent: Absent) -> None:
        self.tokens: list[str] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            assert found is not None, f"no token of the language at {text[at : at + 40]!r}"
            self.tokens.append(found[1])
            at = found.end()
        self.row = row
        self.absent = absent
        self.at = 0

    def next(self, expected: str | None = None) -> str:
        token = self.tokens[self.at]
        assert expected in {None, token}, f"{token!r} where {expected!r} belongs"
        self.at += 1
        return token

    @property
    def ahead(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def whole(self) -> bool | None:
        value = self.either()
        assert not self.ahead
        return value

    def either(self) -> bool | None:
        value = self.both()
        while self.ahead == "or":
            self.next()
            other = self.both()
            value = True if True in {value, other} else None if None in {value, other} else False
        return value

    def both(self) -> bool | None:
        value = self.single()
        while self.ahead == "and":
            self.next()
            other = self.single()
            value = False if False in {value, other} else None if None in {value, other} else True
        return value

    def single(self) -> bool | None:
        token = self.next()
        if token == "(":
            value = self.either()
            self.next(")")
            return value
        if token == "not":
            value = self.single()
            return None if value is None else not value
        if token == "exists":
            assert self.tokens[self.at + 4] == ")", (
                "exists swallows what follows it, so it stands in brackets"
            )
            return self.path(self.next()) is not None
        if token.startswith("array_contains"):
            self.next("(")
            assert self.next() == "tokens"
            self.next(",")
            given = self.list() if token == "array_contains_any" else {self.literal()}
            assert given, "a server refuses an empty list"
            self.next(")")
            return bool(given & set(self.row["tokens"]))
        return self.comparison(self.path(token))

    def comparison(self, value: str | None) -> bool | None:
        sign = self.next()
        if sign == "in":
            return value in self.list()
        literal = self.literal()
        if value is None:
            return self.absent
        return {
            "==": value == literal,
            "!=": value != literal,
            "<": value < literal,
            "<=": value <= literal,
            ">": value > literal,
            ">=": value >= literal,
        }[sign]

    def path(self, field: str) -> str | None:
        if field != "ranges":
            assert field == "id"
            return str(self.row[field])
        self.next("[")
        member = self.literal()
        self.next("]")
        ranges: dict[str, str] = self.row["ranges"]
        return ranges.get(member)

    def list(self) -> set[str]:
        self.next("[")
        found = {self.literal()}
        while self.ahead == ",":
            self.next()
            found.add(self.literal())
        self.next("]")
        return found

    def literal(self) -> str:
        token = self.next()
        assert token.startswith('"')
        return token[1:-1]


def holds(text: str, row: Mapping[str, Any], absent: Absent) -> bool:
    """Whether a row is among those that an expression finds."""
    return Reader(text, row, absent).whole() is True
