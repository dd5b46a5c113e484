"""Why a filter text does not parse: place, finding, what could stand there, and what to write instead (F8).

Only a failing parse comes here, so this module may be slow: it cuts the text anew to learn positions.
"""

from __future__ import annotations

import re
from enum import Enum, auto
from typing import TYPE_CHECKING, Final, NamedTuple

from entrepot.errors import FilterSyntaxError, FilterTextValueError
from entrepot.filters.lexer import INSTANT, NUMBER, ONE_ESCAPE, RESERVED, literal, unquote
from entrepot.filters.places import (
    LINE_BREAK,
    Token,
    describe,
    either,
    excerpt_of,
    is_value,
    is_word,
    shorten,
    tokens_of,
)
from entrepot.filters.values import MAX_KEY_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence


_VALUES: Final = ("a string", "a number", "true", "false", "datetime '...'")


class Expect(Enum):
    """What the parser was looking for when it failed."""

    OPERAND = auto()
    OPERATOR = auto()
    VALUE = auto()
    FIRST = auto()  # value of a list, or its end
    NEXT = auto()  # value of a list, after a comma
    COMMA = auto()
    LIST = auto()
    IN = auto()
    NULL = auto()
    NOT_NULL = auto()
    DATETIME = auto()
    JOIN = auto()


_EXPECTED: Final = {
    Expect.OPERAND: ("a key", "NOT", "("),
    Expect.OPERATOR: ("==", "!=", "<", "<=", ">", ">=", "IN", "NOT IN", "IS NULL", "IS NOT NULL"),
    Expect.VALUE: _VALUES,
    Expect.FIRST: (*_VALUES, "]"),
    Expect.NEXT: _VALUES,
    Expect.COMMA: (",", "]"),
    Expect.LIST: ("[",),
    Expect.IN: ("IN",),
    Expect.NULL: ("NULL", "NOT NULL"),
    Expect.NOT_NULL: ("NULL",),
    Expect.DATETIME: ("a quoted instant such as '2026-01-31T12:00:00Z'",),
    Expect.JOIN: ("AND", "OR", "the end of the text"),
}


class _Finding(NamedTuple):
    """What is wrong, what to write instead, and whether F5 or D3 forbids it or the grammar."""

    message: str | None = None  # None: what was expected and what was found
    hint: str | None = None
    value_error: bool = False
    start: int | None = None  # where exactly, if not at the start of the token


_COMPARISON_SIGNS: Final = frozenset({"==", "=", "!=", "<>", "<", "<=", ">", ">="})
_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "==", "==": "==", "!=": "!=", "<>": "!="}

_RESERVED_USE: Final = {
    "LIKE": "LIKE is reserved and has no meaning yet: compare whole values with == or IN, "
    "and search words with a full-text search",
    "BETWEEN": "BETWEEN is reserved and has no meaning yet: write key >= low AND key <= high",
    "CONTAINS": "CONTAINS is reserved and has no meaning yet: key == value holds if some element of a list "
    "is the value, and key IN [...] if some element is one of several",
}
_OPERATOR_WORDS: Final = {
    "EQ": "==", "EQUALS": "==", "EQUAL": "==", "NE": "!=", "NEQ": "!=", "GT": ">", "GTE": ">=", "GE": ">=",
    "LT": "<", "LTE": "<=", "LE": "<=", "ISNULL": "IS NULL", "ISNOTNULL": "IS NOT NULL", "NOTIN": "NOT IN",
    "NOTNULL": "IS NOT NULL", "EXISTS": "IS NOT NULL", "ANY": "IN [...]", "HAS": "== (some element)",
    "INCLUDES": "== (some element)", "ILIKE": "== (whole values)", "STARTSWITH": "a full-text search",
    "ENDSWITH": "a full-text search", "MATCHES": "a full-text search", "REGEXP": "a full-text search",
}  # fmt: skip
_MEANT: Final = {"===": "==", "!==": "!=", "=>": ">=", "=<": "<=", "><": "!=", "<<": "<", ">>": ">"}
_QUOTE_KEYS: Final = 'a key of other characters than A-Z a-z 0-9 _ . is quoted: "my-key"'
_NULL_WORDS: Final = frozenset({"NULL", "NONE", "NIL", "UNDEFINED"})
_INFINITE_WORDS: Final = frozenset({"NAN", "INF", "INFINITY"})
_COMPARING_WORDS: Final = ("IN", "NIN", "NOT", "IS", "LIKE", "BETWEEN", "CONTAINS")
_CURLY: Final = frozenset("\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u00b4")

_ESCAPES: Final = {
    "'": re.compile(ONE_ESCAPE),
    '"': re.compile(ONE_ESCAPE),
    "`": re.compile(rf"{ONE_ESCAPE}|\\\\`"),
}


def failure(text: str, position: int, expect: Expect) -> FilterSyntaxError:
    """Build the error for a text whose token at `position` is not what the parser expected.

    It is also a FilterValueError where the grammar would take the operand and F5 forbids it.
    """
    tokens = tokens_of(text)
    token = tokens[position]
    expected = list(_EXPECTED[expect])
    if expect is Expect.JOIN and _open_bracket(tokens, position) is not None:
        expected[-1] = ")"
    if expect is Expect.VALUE and tokens[position - 1].text in ("<", "<=", ">", ">="):
        expected = [choice for choice in expected if choice not in ("true", "false")]
    finding = _malformed(text, token, expect) or _FINDERS[expect](tokens, position)
    found = describe(token.text)
    start, end = token.start, max(token.end, token.start + 1)
    if finding.start is not None:
        start, end = finding.start, finding.start + 1
    breaks = list(LINE_BREAK.finditer(text[:start]))
    line_start = breaks[-1].end() if breaks else 0
    excerpt = excerpt_of(text, line_start, start, end)
    message = finding.message
    if message is None:
        message = f"expected {either(expected)}, found {found}"
    else:
        excerpt += f"\n  found {found}; expected {either(expected)}"
    kind = FilterTextValueError if finding.value_error else FilterSyntaxError
    return kind(
        message,
        line=len(breaks) + 1,
        column=start - line_start + 1,
        found=found,
        expected=expected,
        excerpt=excerpt,
        hint=finding.hint,
    )


# --- tokens that are wrong wherever they stand ------------------------------------------------------------


def _malformed(source: str, token: Token, expect: Expect) -> _Finding | None:
    text = token.text
    first = text[:1]
    if not first:
        return None
    if first in "'\"`":
        if unquote(text) is None:
            return _bad_string(source, token)
        return _bad_key(token) if expect is Expect.OPERAND else None
    if first in "+-.0123456789" and len(text) > 1 and expect not in (Expect.JOIN, Expect.OPERATOR):
        return _bad_number(text) if literal(text) is None else None
    if first in _CURLY:
        return _Finding(f"{describe(text)} is no quote of the language", "use straight quotes: ' or \"")
    if expect is Expect.OPERAND and text.upper() not in RESERVED:
        return _bad_key(token)
    return None


def _bad_string(source: str, token: Token) -> _Finding:
    text, quote = token.text, token.text[0]
    position = 1
    while position < len(text) and text[position] != quote:
        if text[position] != "\\":
            position += 1
            continue
        escape = _ESCAPES[quote].match(text, position)
        if escape is None and position + 1 < len(text):
            return _Finding(
                f"there is no escape {shorten(text[position : position + 2])}",
                r"escapes are \\ \' \" \/ \b \f \n \r \t and \uXXXX; a backslash itself is \\",
                start=token.start + position,
            )
        position = len(text) if escape is None else escape.end()
    if position < len(text):
        return _Finding("a string or key holds no NUL and no lone surrogate", value_error=True)
    stop = source[token.end : token.end + 1]
    if "" < stop < " " and stop not in "\r\n":
        return _Finding(
            f"a control character stands in quotes: U+{ord(stop):04X}",
            "write it as \\t" if stop == "\t" else f"write it as \\u{ord(stop):04x}",
            start=token.end,
        )
    what = "quoted key" if quote == "`" else "string"
    return _Finding(
        f"the {what} that starts here is not closed", f"it ends at the next {quote} in the same line"
    )


def _bad_key(token: Token) -> _Finding | None:
    name = (unquote(token.text) or "") if token.text[0] in "'\"`" else token.text
    if not name:
        return _Finding("a key is not empty", value_error=True)
    if len(name) > MAX_KEY_LENGTH:
        return _Finding(
            f"a key has at most {MAX_KEY_LENGTH} characters, this one has {len(name)}", value_error=True
        )
    return None


def _bad_number(text: str) -> _Finding:
    shown = shorten(text)
    number = NUMBER.fullmatch(text)
    if number:
        if number.lastindex is None:
            return _Finding(
                f"{shown} does not fit 64 bits (-2^63 to 2^63-1)",
                "write it as a float, as in 1e20, if its exact value does not matter",
                value_error=True,
            )
        return _Finding(f"{shown} is too large for a float", value_error=True)
    if text[0] == "+":
        hint = f"write {shorten(text[1:])}"
    elif text[0] == "." or text[:2] in ("-.", "+."):
        hint = "write a digit before the point: 0.5"
    elif text.endswith("."):
        hint = f"write {shorten(text[:-1])}, or {shorten(text)}0 for a float"
    elif re.fullmatch(r"-?0[0-9]+", text):
        hint = "write it without leading zeros, or quote it if it is a string"
    elif re.fullmatch(r"-?0[xXoObB].*", text):
        hint = "write it in decimal"
    elif re.fullmatch(r"-?[0-9]+[lL]", text):
        hint = f"integers have no suffix: write {shorten(text[:-1])}"
    elif "_" in text:
        hint = f"write {shorten(text.replace('_', ''))}"
    else:
        hint = f"numbers are written as in JSON; a string is quoted: '{shown}'"
    return _Finding(f"{shown} is no number", hint)


# --- what stands where something else was expected ---------------------------------------------------------


def _at_operand(tokens: Sequence[Token], position: int) -> _Finding:
    text = tokens[position].text
    word = text.upper()
    if not text and position == 0:
        return _Finding("the text is empty", "no filter is None, not an empty text")
    if text == ")" and position and tokens[position - 1].text == "(":
        return _Finding("the brackets are empty")
    following = tokens[position + 1].text if position + 1 < len(tokens) else ""
    compared = following in _COMPARISON_SIGNS or following.upper() in ("IN", "NIN", "IS", "NOT")
    if word in RESERVED and compared:
        return _Finding(hint=f'{text} is a reserved word; as a key it is quoted: "{text}"')
    if is_value(text) or text in _COMPARISON_SIGNS or text == "[":
        hint = "the key stands left of its operator"
        key = tokens[position + 2].text if position + 2 < len(tokens) else ""
        if following in _FLIPPED and is_word(key) and is_value(text):
            hint += f": write {shorten(key)} {_FLIPPED[following]} {shorten(text)}"
        return _Finding(hint=hint)
    if word in RESERVED:
        return _Finding(hint=_RESERVED_USE.get(word))
    if text in ("&", "|"):
        return _Finding(hint="AND is &&, OR is ||")
    if text == "~":
        return _Finding(hint="NOT is written ! or NOT")
    if text and text not in ("(", ")", "]", ",", "&&", "||"):
        return _Finding(hint=_QUOTE_KEYS)
    return _Finding()


def _at_operator(tokens: Sequence[Token], position: int) -> _Finding:
    token, key = tokens[position], tokens[position - 1]
    text, word = token.text, token.text.upper()
    if word in _RESERVED_USE:
        return _Finding(hint=_RESERVED_USE[word])
    if text in ("", ")", "&&", "||", "&", "|") or word in ("AND", "OR"):
        name = shorten(key.text)
        return _Finding(hint=f"a key alone is no filter: {name} == true, or {name} IS NOT NULL")
    if word in _OPERATOR_WORDS:
        return _Finding(hint=f"instead of {text} use {_OPERATOR_WORDS[word]}")
    if is_word(text) and _nearest(key.text.upper(), ["NOT"], 0.6):
        return _Finding(hint=f"did you mean NOT instead of {key.text}?")
    if text == "(":
        return _Finding(hint="the language has no functions: a comparison is key, operator, value")
    if text == "!":
        return _Finding(hint="use != or NOT IN")
    if text == ":":
        return _Finding(hint="use ==")
    if text == "[":
        return _Finding(
            hint=f'a dotted key is one flat key, and any key can be quoted: "{shorten(key.text)}[0]"'
        )
    if token.start == key.end and text != ",":
        return _Finding(hint=_QUOTE_KEYS)
    if is_word(text):
        near = _nearest(word, _COMPARING_WORDS, 0.6)
        if near:
            use = _RESERVED_USE.get(near)
            return _Finding(hint=f"did you mean {near}? {use}" if use else f"did you mean {near}?")
    return _Finding()


def _at_value(tokens: Sequence[Token], position: int) -> _Finding:
    token, operator = tokens[position], tokens[position - 1]
    text, sign = token.text, operator.text
    word = text.upper()
    if token.start == operator.end and text[:1] in ("=", "<", ">", "~", "*"):
        hint = _RESERVED_USE["LIKE"] if text in ("~", "*") else "operators are == != < <= > >="
        meant = _MEANT.get(sign + text)
        return _Finding(f"there is no operator {sign}{text}", f"use {meant}" if meant else hint)
    if text == "[":
        instead = "NOT IN" if sign in ("!=", "<>") else "IN"
        return _Finding(
            f"{sign} takes one value, not a list",
            f"for any of several values use {instead}",
            value_error=True,
        )
    if word in ("TRUE", "FALSE"):
        return _Finding(f"{sign} does not order booleans", "use == or !=", value_error=True)
    if word in _NULL_WORDS:
        instead = "IS NOT NULL" if sign in ("!=", "<>") else "IS NULL"
        return _Finding(f"{sign} does not compare with null", f"use {instead}", value_error=True)
    return _not_a_value(text)


def _not_a_value(text: str) -> _Finding:
    word = text.upper()
    if word in _INFINITE_WORDS:
        return _Finding(f"{text} is no finite number", "NaN and infinity are never stored", value_error=True)
    if text[:1] == "`":
        return _Finding(hint="backticks quote keys; a string stands in ' or \"")
    if text == "(":
        return _Finding(hint="a list stands in [ ], a value alone")
    if word in ("DATE", "TIME", "TIMESTAMP"):
        return _Finding(hint="write datetime '2026-01-31T12:00:00Z'")
    if is_word(text) and word not in RESERVED:
        near = _nearest(word, ["TRUE", "FALSE"], 0.7)
        quoted = f"a string is quoted: '{shorten(text)}'"
        return _Finding(hint=f"did you mean {near.lower()}? Else {quoted}" if near else quoted)
    return _Finding()


def _at_element(tokens: Sequence[Token], position: int) -> _Finding:
    text = tokens[position].text
    if text == "]":
        return _Finding("a list has no trailing comma", "take the comma away")
    if text == "[":
        return _Finding("IN takes a flat list, not a list of lists", value_error=True)
    if not text:
        return _Finding("the list is not closed", "a list ends with ]")
    if text.upper() in _NULL_WORDS:
        return _Finding("null is no value", "use IS NULL or IS NOT NULL beside the list", value_error=True)
    return _not_a_value(text)


def _at_comma(tokens: Sequence[Token], position: int) -> _Finding:
    text = tokens[position].text
    if text == "":
        return _Finding("the list is not closed", "a list ends with ]")
    if is_value(text) or text.upper() == "DATETIME":
        return _Finding(hint="the values of a list are separated by commas")
    return _Finding(hint="a list ends with ]" if text == ")" else None)


def _at_list(tokens: Sequence[Token], position: int) -> _Finding:
    text = tokens[position].text
    word = text.upper()
    if word in _NULL_WORDS:
        return _Finding("IN takes a list, not null", "use IS NULL or IS NOT NULL", value_error=True)
    if is_value(text):
        hint = f"write [{shorten(text)}], or use =="
        return _Finding(f"IN takes a list, not {describe(text)}", hint, value_error=True)
    if word == "DATETIME":
        return _Finding(
            "IN takes a list, not a datetime", "write [datetime '...'], or use ==", value_error=True
        )
    if text == "(":
        return _Finding(hint="a list stands in [ ]")
    if is_word(text) and word not in RESERVED:
        return _Finding(hint=f"a list stands in [ ], and a string is quoted: ['{shorten(text)}']")
    return _Finding()


def _at_in(tokens: Sequence[Token], position: int) -> _Finding:
    text = tokens[position].text
    if text.upper() in _RESERVED_USE:
        return _Finding(hint=_RESERVED_USE[text.upper()])
    return _Finding(hint="for unequal use !=; to negate a comparison NOT stands before its key: NOT a == 1")


def _at_null(tokens: Sequence[Token], position: int) -> _Finding:
    text = tokens[position].text
    if is_value(text):
        sign = "!=" if tokens[position - 1].text.upper() == "NOT" else "=="
        return _Finding(hint=f"IS tests absence only; use {sign}")
    return _Finding(hint="write IS NULL or IS NOT NULL")


def _at_datetime(tokens: Sequence[Token], position: int) -> _Finding:
    text = tokens[position].text
    content = unquote(text) if text[:1] in ("'", '"') else None
    if content is None:
        return _Finding(hint="write datetime '2026-01-31T12:00:00Z'")
    shown = shorten(text)
    if INSTANT.fullmatch(content):
        message = f"{shown} is no date and time that exists in the years 1 to 9999 of UTC"
        return _Finding(message, value_error=True)
    if INSTANT.fullmatch(f"{content}Z"):
        hint = f"an offset is required: '{content}Z' is UTC"
        return _Finding(f"{shown} has no time zone", hint, value_error=True)
    if re.fullmatch(r"\d{4}-\d\d-\d\d", content, re.ASCII):
        hint = f"an instant has a time and an offset: '{content}T00:00:00Z'"
        return _Finding(f"{shown} has no time of day and no time zone", hint, value_error=True)
    hint = "write it as in datetime '2026-01-31T12:00:00.123456Z'"
    if INSTANT.fullmatch(content.replace(" ", "T", 1).upper()):
        hint = "T stands between date and time, and the offset is Z or as in +01:00"
    elif INSTANT.fullmatch(re.sub(r"(\.\d{6})\d+", r"\1", content)):
        hint = "a second has at most six fractional digits"
    return _Finding(f"{shown} is no instant", hint)


def _at_join(tokens: Sequence[Token], position: int) -> _Finding:
    token, before = tokens[position], tokens[position - 1]
    text, word = token.text, token.text.upper()
    if not text:
        bracket = _open_bracket(tokens, position)
        return _Finding("this ( is not closed", start=bracket.start if bracket else None)
    if text == ")":
        return _Finding("there is no ( for this )")
    if text in ("&", "|"):
        return _Finding(hint=f"write {text * 2}, or {'AND' if text == '&' else 'OR'}")
    if text in _COMPARISON_SIGNS:
        return _Finding(hint="comparisons do not chain: write key > 1 AND key < 3")
    if before.end == token.start and before.text[:1] in ("'", '"'):
        return _Finding(hint="a quote inside of a string is escaped: 'it\\'s'")
    if before.end == token.start and re.fullmatch(r"[0-9]{4}-[0-9]+", before.text + text):
        return _Finding(hint="an instant is written datetime '2026-01-31T12:00:00Z'")
    if text in ("+", "-", "*", "/", "%") or (text[:1] in "+-" and before.end == token.start):
        return _Finding(hint="the language does not calculate")
    if text in (",", ";"):
        return _Finding(hint="comparisons are joined with AND or OR")
    if is_word(text) and before.text[:1] not in ("'", '"', ")", "]"):
        near = _nearest(word, ("AND", "OR"), 0.5)
        if near:
            return _Finding(hint=f"did you mean {near}?")
    following = tokens[position + 1].text if position + 1 < len(tokens) else ""
    if (
        following in _COMPARISON_SIGNS
        or following.upper() in _COMPARING_WORDS
        or word == "NOT"
        or text == "("
    ):
        return _Finding(hint=f"AND or OR is missing before {shorten(text)}")
    return _Finding()


_FINDERS: Final = {
    Expect.OPERAND: _at_operand,
    Expect.OPERATOR: _at_operator,
    Expect.VALUE: _at_value,
    Expect.FIRST: _at_element,
    Expect.NEXT: _at_element,
    Expect.COMMA: _at_comma,
    Expect.LIST: _at_list,
    Expect.IN: _at_in,
    Expect.NULL: _at_null,
    Expect.NOT_NULL: _at_null,
    Expect.DATETIME: _at_datetime,
    Expect.JOIN: _at_join,
}


def _nearest(word: str, choices: Sequence[str], cutoff: float) -> str | None:
    """Return the choice that was probably meant."""
    from difflib import get_close_matches  # noqa: PLC0415 - only errors need it

    return next(iter(get_close_matches(word, choices, 1, cutoff)), None)


def _open_bracket(tokens: Sequence[Token], position: int) -> Token | None:
    """Return the innermost "(" before `position` that is not closed."""
    opened: list[Token] = []
    for token in tokens[:position]:
        if token.text == "(":
            opened.append(token)
        elif token.text == ")" and opened:
            opened.pop()
    return opened[-1] if opened else None
