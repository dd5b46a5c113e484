"""Expressions of Milvus, and the functions that put texts into them (F10). Pure functions.

In this library's own collections a text in an expression is a code of its own making: letters, digits, ``_`` and ``-``.
The engine's syntax has no way to write them that would need an escape, and `quoted` refuses everything else. What is
asked of collections of other software (`mapping=`) has users' texts in it: `literal` escapes them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from entrepot_milvus.fields import ID, RANGES, TOKENS
from entrepot_milvus.names import key_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SAFE: Final = re.compile(r"[A-Za-z0-9_-]*")
_ESCAPES: Final = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


class Has(NamedTuple):
    """Whether a document carries one of some tokens, or none of them.

    Attributes:
        tokens: The tokens.
        negated: Whether it must carry none.
    """

    tokens: tuple[str, ...]
    negated: bool = False

    def __str__(self) -> str:
        return rendered(self)


class Text(NamedTuple):
    """An expression as it is sent.

    Attributes:
        text: The expression; in brackets unless it is one comparison or one call.
    """

    text: str

    def __str__(self) -> str:
        return self.text


Condition: TypeAlias = Has | Text


def quoted(code: str) -> str:
    """Return a code as a literal.

    Raises:
        ValueError: It has other characters than letters, digits, ``_`` and ``-``; never for a code of this library.
    """
    if not _SAFE.fullmatch(code):
        msg = "only codes of letters, digits, underscores and hyphens go into an expression"
        raise ValueError(msg)
    return f'"{code}"'


def literal(value: str | float) -> str:
    """Return a text, a boolean, an integer or a finite number as a literal.

    In a text between double quotes the engine takes everything for itself but the quote, the backslash and what
    ends a line; those are escaped as servers and Milvus Lite both read it.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    return repr(value)


EVERYTHING: Final = Text(f"{ID} != {quoted('')}")
"""Holds for every document: each has a primary key, and none is empty."""
NOTHING: Final = Text(f"{ID} == {quoted('')}")
"""Holds for no document."""


def end_of(letter: str, key: str) -> str:
    """Return the path of an end of a key's ranges.

    Args:
        letter: The kind's: small for the least element, capital for the greatest.
        key: The metadata key.
    """
    return f"{RANGES}[{quoted(letter + key_name(key))}]"


def one_of(field: str, codes: Iterable[str]) -> str:
    """Return the condition that a field has one of some values."""
    return f"{field} in [{', '.join(map(quoted, codes))}]"


def rendered(condition: Condition) -> str:
    """Return a condition as it is sent."""
    if isinstance(condition, Text):
        return condition.text
    if len(condition.tokens) == 1:
        text = f"array_contains({TOKENS}, {quoted(condition.tokens[0])})"
    else:
        text = f"array_contains_any({TOKENS}, [{', '.join(map(quoted, condition.tokens))}])"
    return f"(not {text})" if condition.negated else text


def joined(parts: Sequence[str], word: str) -> str:
    """Join expressions by ``and`` or ``or``, in brackets: balanced, as the engine's time grows with the depth."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return f"({joined(parts[:middle], word)} {word} {joined(parts[middle:], word)})"


def both(parts: Sequence[Condition]) -> Condition:
    """Join conditions with AND: to carry none of these tokens and none of those is to carry none of all."""
    return _merged(parts, "and", negated=True)


def either(parts: Sequence[Condition]) -> Condition:
    """Join conditions with OR: to carry one of these tokens or one of those is to carry one of all."""
    return _merged(parts, "or", negated=False)


def _merged(parts: Sequence[Condition], word: str, *, negated: bool) -> Condition:
    tokens: dict[str, None] = {}
    others: list[Condition] = []
    for part in parts:
        if isinstance(part, Has) and part.negated is negated:
            tokens.update(dict.fromkeys(part.tokens))
        else:
            others.append(part)
    if tokens:
        others.insert(0, Has(tuple(tokens), negated))
    return others[0] if len(others) == 1 else Text(joined([rendered(part) for part in others], word))
