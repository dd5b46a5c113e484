"""Writes the filter cases of the conformance suite, and derives which documents match.

The derivation shares nothing with the library, on purpose: it works on the JSON of the documents and on small
tuples instead of filter trees, turns every value into an exact quantity (fractions, UTF-32 bytes, microseconds
counted from the calendar), and computes with sets of ids instead of truth values. Where a case states its ids
by hand, the derivation has to agree. Run it to write the files anew:

    python -m core.tests.filters.derive_cases
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from fractions import Fraction
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

Json: TypeAlias = Any
Spec: TypeAlias = tuple[Any, ...]
Documents: TypeAlias = dict[str, dict[str, Json]]

CASES: Final = Path(str(files("entrepot_conformance"))) / "cases" / "filters"


def at(text: str) -> dict[str, str]:
    """Write an instant as the cases do."""
    return {"datetime": text}


# --- what a filter means, by sets of ids -------------------------------------------------------------------


def quantity(value: Json) -> tuple[str, Any]:
    """Return kind and exact quantity of one value (F4)."""
    if value is True or value is False:
        return "bool", int(value)
    if isinstance(value, dict):
        return "datetime", microseconds(str(cast("Json", value)["datetime"]))
    if isinstance(value, str):
        return "str", value.encode("utf-32-be")
    return "number", Fraction(value)


def microseconds(text: str) -> int:
    """Count microseconds from 0000-03-01 by the calendar alone."""
    match = re.fullmatch(r"(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)(?:\.(\d+))?(?:Z|([-+])(\d+):(\d+))", text)
    assert match is not None, text
    year, month, day, hour, minute, second = (int(match[place]) for place in range(1, 7))
    year, month = (year, month - 3) if month > 2 else (year - 1, month + 9)
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * month + 2) // 5 + day - 1
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    if match[8]:
        offset = (int(match[9]) * 60 + int(match[10])) * 60
        seconds += -offset if match[8] == "+" else offset
    return seconds * 1_000_000 + int((match[7] or "").ljust(6, "0"))


def elements(document: dict[str, Json], key: str) -> list[tuple[str, Any]]:
    """Return what stands under a key; nothing if it is absent (F1, F2)."""
    value = document.get(key)
    if value is None:
        return []
    return [quantity(element) for element in listed(value)]


def listed(value: Json) -> list[Json]:
    """Return a list as it is, and a scalar as a list of one (F2)."""
    return value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]


ALLOWED: Final = {"==": {0}, "<": {-1}, "<=": {-1, 0}, ">": {1}, ">=": {0, 1}}


def matching(spec: Spec, documents: Documents) -> set[str]:
    """Return the ids that match a filter."""
    word, *rest = spec
    if word == "not":
        return set(documents) - matching(rest[0], documents)
    if word == "and":
        return matching(rest[0], documents).intersection(*(matching(part, documents) for part in rest))
    if word == "or":
        return {id_ for part in rest for id_ in matching(part, documents)}
    key = rest[0]
    present = {id_ for id_, document in documents.items() if elements(document, key)}
    if word == "is null":
        return set(documents) - present
    if word == "is not null":
        return present
    if word in ("!=", "not in"):
        positive = "==" if word == "!=" else "in"
        return set(documents) - matching((positive, *rest), documents)
    if word == "in":
        return {id_ for value in rest[1] for id_ in matching(("==", key, value), documents)}
    kind, wanted = quantity(rest[1])
    return {
        id_
        for id_, document in documents.items()
        for other, found in elements(document, key)
        if other == kind and (found > wanted) - (found < wanted) in ALLOWED[word]
    }


# --- how it is written -------------------------------------------------------------------------------------


def literal(value: Json) -> str:
    """Write a value in the filter language."""
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, dict):
        return f"datetime '{value['datetime']}'"
    if isinstance(value, str):
        return quoted(value, "'")
    return json.dumps(value)


def quoted(text: str, quote: str) -> str:
    """Write a string or a key in quotes, with the escapes of JSON."""
    escaped = "".join(
        f"\\{char}" if char in (quote, "\\") else char if char >= " " else f"\\u{ord(char):04x}"
        for char in text
    )
    return f"{quote}{escaped}{quote}"


def key_text(key: str) -> str:
    """Write a key, quoted unless it is a plain word."""
    return key if re.fullmatch(r"[a-z_][a-z0-9_]*", key) and key not in RESERVED else quoted(key, '"')


RESERVED: Final = [
    "and",
    "or",
    "not",
    "in",
    "nin",
    "is",
    "null",
    "true",
    "false",
    "datetime",
    "like",
    "between",
    "contains",
]


def text_of(spec: Spec) -> str:
    """Write a filter, with parentheses around everything inside of AND, OR and NOT."""
    word, *rest = spec
    if word == "not":
        return f"NOT ({text_of(rest[0])})"
    if word in ("and", "or"):
        return f" {word.upper()} ".join(f"({text_of(part)})" for part in rest)
    if word in ("is null", "is not null"):
        return f"{key_text(rest[0])} {word.upper()}"
    return f"{key_text(rest[0])} {word.upper()} {literal(rest[1])}"


# --- groups ------------------------------------------------------------------------------------------------


@dataclass
class Group:
    """One file of cases over one set of documents."""

    name: str
    about: str
    documents: Documents
    cases: list[dict[str, Json]] = field(default_factory=list[dict[str, Any]])

    def add(self, rule: str, spec: Spec, text: str | None = None, ids: str | None = None) -> None:
        """Add a case; `ids`, if given, are the expected ids by hand, separated by blanks."""
        text = text_of(spec) if text is None else text
        matches = sorted(matching(spec, self.documents))
        if ids is not None:
            assert matches == sorted(ids.split()), f"{self.name}: {text}: {matches}"
        if all(case["filter"] != text for case in self.cases):
            self.cases.append({"rule": rule, "filter": text, "matches": matches})

    def error(self, rule: str, kind: str, text: str, line: int, column: int) -> None:
        """Add a text that is refused at this place."""
        self.cases.append({"rule": rule, "filter": text, "error": kind, "line": line, "column": column})

    def json(self) -> str:
        """Return the file: one document or case a line."""
        documents = ",\n".join(
            f"    {line(id_)}: {line(metadata)}" for id_, metadata in self.documents.items()
        )
        cases = ",\n".join(f"    {line(case)}" for case in self.cases)
        return f'{{\n  "about": {line(self.about)},\n  "documents": {{\n{documents}\n  }},\n  "cases": [\n{cases}\n  ]\n}}\n'


def line(value: Json) -> str:
    """Write JSON on one line, in ASCII so that no editor can normalise a string."""
    return json.dumps(value)


NOON: Final = at("2026-01-31T12:00:00Z")

# Under x: every kind as a scalar, as a list and in mixed lists of numbers; near misses; absent in three ways.
KINDS: Final[Documents] = {
    "missing": {},
    "other-key": {"y": "a"},
    "empty-list": {"x": []},
    "str-a": {"x": "a"},
    "str-upper-a": {"x": "A"},
    "str-a-blank": {"x": "a "},
    "str-ab": {"x": "ab"},
    "str-b": {"x": "b"},
    "str-empty": {"x": ""},
    "str-1": {"x": "1"},
    "str-1.0": {"x": "1.0"},
    "str-true": {"x": "true"},
    "str-null": {"x": "null"},
    "str-date": {"x": "2026-01-31T12:00:00Z"},
    "int-0": {"x": 0},
    "int-1": {"x": 1},
    "int-2": {"x": 2},
    "int-minus-1": {"x": -1},
    "float-0.0": {"x": 0.0},
    "float-1.0": {"x": 1.0},
    "float-1.5": {"x": 1.5},
    "true": {"x": True},
    "false": {"x": False},
    "noon": {"x": NOON},
    "noon-plus": {"x": at("2026-01-31T12:00:00.000001Z")},
    "list-a": {"x": ["a"]},
    "list-a-b": {"x": ["a", "b"]},
    "list-b-c": {"x": ["b", "c"]},
    "list-str-1": {"x": ["1", "true"]},
    "list-empty-str": {"x": [""]},
    "list-1": {"x": [1]},
    "list-1-10": {"x": [1, 10]},
    "list-2-3": {"x": [2, 3]},
    "list-floats": {"x": [0.5, 1.0]},
    "list-mixed": {"x": [1, 1.5]},
    "list-mixed-2": {"x": [2.0, 7]},
    "list-true": {"x": [True]},
    "list-both": {"x": [True, False]},
    "list-false": {"x": [False, False]},
    "list-noon": {"x": [NOON]},
    "list-times": {"x": [at("2020-01-01T00:00:00Z"), at("2026-02-01T00:00:00Z")]},
}
OPERANDS: Final[list[Json]] = [
    "a", "A", "a ", "ab", "b", "c", "", "1", "1.0", "true", "null", "2026-01-31T12:00:00Z",
    0, 1, 2, -1, 10, 0.0, -0.0, 1.0, 1.5, 0.5, 2.0, 7.0,
    True, False,
    NOON, at("2026-01-31T13:00:00+01:00"), at("2026-01-31T12:00:00.000001Z"), at("2020-01-01T00:00:00Z"),
]  # fmt: skip
RANGE_SIGNS: Final = ("<", "<=", ">", ">=")
ORDERED: Final = [value for value in OPERANDS if not isinstance(value, bool)]


def equality() -> Group:
    group = Group("equality", "== and != for every kind, against every kind and shape.", KINDS)
    for value in OPERANDS:
        group.add("F2 F4", ("==", "x", value))
        group.add("F3 F4", ("!=", "x", value))
    group.add("F4", ("==", "x", "a"), ids="str-a list-a list-a-b")
    for text in (
        "x = 'a'",
        'x == "a"',
        "x=='a'",
        "`x` == 'a'",
        '"x" == "a"',
        r"x == '\u0061'",
        "\tx\n==\r'a' ",
    ):
        group.add("F7", ("==", "x", "a"), text, ids="str-a list-a list-a-b")
    group.add("F7", ("!=", "x", 1), "x <> 1")
    group.add(
        "F7", ("==", "x", 1.0), "x == 1e0", ids="int-1 float-1.0 list-1 list-1-10 list-floats list-mixed"
    )
    group.add(
        "F7", ("==", "x", 1.0), "x == 10.0E-1", ids="int-1 float-1.0 list-1 list-1-10 list-floats list-mixed"
    )
    group.add("F4", ("==", "x", True), "x == TRUE", ids="true list-true list-both")
    group.add("F4", ("==", "x", False), "x == False", ids="false list-both list-false")
    group.add("F3", ("==", "nowhere", 1), ids="")
    group.add("F3", ("!=", "nowhere", 1), ids=" ".join(KINDS))
    return group


def ranges() -> Group:
    group = Group("ranges", "< <= > >= for every kind that has an order, plain and negated.", KINDS)
    for value in ORDERED:
        for sign in RANGE_SIGNS:
            group.add("F2 F4", (sign, "x", value))
    for value in ("a", "", 1, 1.5, -1, NOON):
        for sign in RANGE_SIGNS:
            group.add("F3", ("not", (sign, "x", value)))
    group.add("F2", ("and", (">", "x", 3), ("<", "x", 5)), ids="list-1-10 list-mixed-2")
    group.add("F2", ("and", (">=", "x", 2), ("<=", "x", 2)), ids="int-2 list-1-10 list-2-3 list-mixed-2")
    group.add("F3", ("not", ("<", "x", 2)), "NOT x < 2", ids=" ".join(
        id_ for id_ in KINDS
        if id_ not in ("int-0", "int-1", "int-minus-1", "float-0.0", "float-1.0", "float-1.5",
                       "list-1", "list-1-10", "list-floats", "list-mixed")
    ))  # fmt: skip
    group.add("F2", (">=", "x", 2), "x >= 2", ids="int-2 list-1-10 list-2-3 list-mixed-2")
    group.add(
        "F4", ("<", "x", "a"), ids="str-upper-a str-empty str-1 str-1.0 str-date list-str-1 list-empty-str"
    )
    group.add("F4", (">", "x", NOON), ids="noon-plus list-times")
    return group


def membership() -> Group:
    group = Group("membership", "IN and NOT IN: every kind, mixed lists, one value, none.", KINDS)
    lists: list[list[Json]] = [
        [], ["a"], ["a", "b"], ["z"], ["", "null"], ["1", "true"], [0], [1], [1.0], [2, 3], [1.5, 7], [-1, 10],
        [True], [False], [True, False], [NOON], [NOON, at("2020-01-01T00:00:00Z")],
        [1, "1"], [1, "a", True], [True, 1.0], ["2026-01-31T12:00:00Z", NOON], [0, False, "", 0.0],
        [1, 1, 1.0], ["a", "a"], list(range(3, 300)), [f"v{number}" for number in range(100)] + ["a"],
    ]  # fmt: skip
    for values in lists:
        group.add("F5" if not values else "F2 F4 F5", ("in", "x", values))
        group.add("F5" if not values else "F3 F4 F5", ("not in", "x", values))
    group.add("F5", ("in", "x", []), ids="")
    group.add("F5", ("not in", "x", []), ids=" ".join(KINDS))
    group.add("F5", ("in", "nowhere", []), ids="")
    group.add("F5", ("not in", "nowhere", []), ids=" ".join(KINDS))
    group.add("F3", ("not in", "nowhere", [1]), ids=" ".join(KINDS))
    group.add("F5", ("in", "x", [1, "a", True]), ids=(
        "int-1 float-1.0 str-a true list-a list-a-b list-1 list-1-10 list-floats list-mixed list-true list-both"
    ))  # fmt: skip
    group.add("F7", ("not in", "x", ["a", 1]), "x NIN ['a', 1]")
    group.add("F7", ("in", "x", ["a", 1]), "x in['a',1]")
    group.add("F3", ("not", ("in", "x", ["a", 1])))
    group.add("F3", ("not", ("not in", "x", ["a", 1])))
    group.add("F3", ("not", ("in", "x", [])), ids=" ".join(KINDS))
    return group


def null() -> Group:
    documents: Documents = {
        "missing": {},
        "empty-list": {"x": []},
        "other": {"y": 1},
        "both-empty": {"x": [], "y": []},
        "zero": {"x": 0},
        "false": {"x": False},
        "empty-string": {"x": ""},
        "blank": {"x": " "},
        "null-string": {"x": "null"},
        "list-of-empty": {"x": [""]},
        "list-of-false": {"x": [False]},
        "list-of-zero": {"x": [0]},
        "instant": {"x": NOON},
        "x-and-y": {"x": 1, "y": "a"},
        "upper": {"X": 1},
        "longer": {"xx": 1, "x.": 1, " x": 1},
    }
    absent = "missing empty-list other both-empty upper longer"
    group = Group("null", "A missing key and an empty list are absent; nothing else is.", documents)
    present = " ".join(id_ for id_ in documents if id_ not in absent.split())
    group.add("F1", ("is null", "x"), ids=absent)
    group.add("F1", ("is not null", "x"), ids=present)
    group.add("F3", ("not", ("is null", "x")), ids=present)
    group.add("F3", ("not", ("is not null", "x")), ids=absent)
    group.add("F7", ("is null", "x"), "x is null", ids=absent)
    group.add("F7", ("is not null", "x"), "x Is Not Null", ids=present)
    group.add("F7", ("is not null", "x"), "!x IS NULL", ids=present)
    group.add("F1", ("is null", "nowhere"), ids=" ".join(documents))
    group.add("F1", ("is not null", "nowhere"), ids="")
    group.add(
        "F1", ("and", ("is null", "x"), ("is null", "y")), ids="missing empty-list both-empty upper longer"
    )
    group.add("F1", ("or", ("is not null", "x"), ("is not null", "y")), ids=f"{present} other")
    group.add("F1", ("and", ("is null", "x"), ("is not null", "x")), ids="")
    group.add("F1", ("or", ("is null", "x"), ("is not null", "x")), ids=" ".join(documents))
    group.add("F1 F3", ("and", ("is not null", "x"), ("!=", "x", 0)))
    group.add("F1 F3", ("or", ("is null", "x"), ("==", "x", 0)), ids=f"{absent} zero list-of-zero")
    group.add("F3", ("!=", "x", "null"))
    group.add("F3", ("==", "x", "null"), ids="null-string")
    group.add("F3", ("==", "x", ""), ids="empty-string list-of-empty")
    group.add("F3", ("not", ("==", "x", "")))
    for sign in RANGE_SIGNS:
        group.add("F2", (sign, "x", 0))
        group.add("F3", ("not", (sign, "x", 0)))
    return group


def negation() -> Group:
    group = Group("negation", "NOT is the exact complement of everything below it.", KINDS)
    comparisons: list[Spec] = [
        ("==", "x", "a"), ("!=", "x", "a"), ("==", "x", 1), ("!=", "x", 1.5), ("==", "x", True), ("!=", "x", False),
        ("==", "x", NOON), ("<", "x", 2), ("<=", "x", 1.0), (">", "x", 1), (">=", "x", 1.5), ("<", "x", "b"),
        (">=", "x", "a"), ("<", "x", NOON), (">", "x", NOON), ("in", "x", ["a", 1]), ("not in", "x", [1, True]),
        ("in", "x", []), ("not in", "x", []), ("is null", "x"), ("is not null", "x"),
    ]  # fmt: skip
    for comparison in comparisons:
        group.add("F3", ("not", comparison))
        group.add("F3", ("not", ("not", comparison)))
        group.add("F3", ("and", comparison, ("not", comparison)), ids="")
        group.add("F3", ("or", comparison, ("not", comparison)), ids=" ".join(KINDS))
    one, two, three = ("==", "x", 1), ("<", "x", 2), ("is not null", "x")
    for inner in (
        ("and", one, two),
        ("or", one, two),
        ("and", one, ("or", two, three)),
        ("or", one, ("not", two)),
    ):
        group.add("F3", ("not", inner))
        group.add("F3", ("not", ("not", inner)))
    group.add("F7", ("not", ("==", "x", "a")), "!x == 'a'")
    group.add("F7", ("not", ("not", ("==", "x", "a"))), "!!x == 'a'", ids="str-a list-a list-a-b")
    group.add("F7", ("not", ("not", ("not", ("==", "x", "a")))), "not ! NOT x == 'a'")
    group.add("F7", ("and", ("not", ("==", "x", 1)), ("<", "x", 2)), "NOT x == 1 AND x < 2")
    group.add(
        "F7", ("or", ("not", ("==", "x", 1)), ("==", "x", 1)), "NOT x == 1 OR x == 1", ids=" ".join(KINDS)
    )
    return group


def logic() -> Group:
    documents: Documents = {
        f"{a}{b}{c}": {key: int(bit) for key, bit in zip("abc", (a, b, c), strict=True) if bit != "-"}
        for a in "01-"
        for b in "01-"
        for c in "01"
    }
    group = Group(
        "logic", "AND, OR, NOT: precedence, brackets, spellings. Ids are the values of a, b and c.", documents
    )
    a, b, c = (("==", key, 1) for key in "abc")

    def ids(pattern: str) -> str:
        return " ".join(id_ for id_ in documents if any(re.fullmatch(one, id_) for one in pattern.split()))

    for text in ("a == 1 AND b == 1", "a == 1 && b == 1", "a == 1 and b == 1", "(a == 1) And (b == 1)",
                 "a==1&&b==1", "((a == 1)) AND ((b == 1))", "b == 1 AND a == 1", "a == 1 AND b == 1 AND a == 1"):  # fmt: skip
        group.add("F7", ("and", a, b), text, ids=ids("11."))
    for text in (
        "a == 1 OR b == 1",
        "a == 1 || b == 1",
        "a == 1 or b == 1",
        "(a == 1)Or(b == 1)",
        "a==1||b==1",
    ):
        group.add("F7", ("or", a, b), text, ids=ids("1.. .1."))
    for text in ("NOT a == 1", "!a == 1", "! a == 1", "not (a == 1)", "NOT((a == 1))", "!(a==1)"):
        group.add("F3 F7", ("not", a), text, ids=ids("0.. -.."))
    group.add("F7", ("or", a, ("and", b, c)), "a == 1 OR b == 1 AND c == 1", ids=ids("1.. .11"))
    group.add("F7", ("and", ("or", a, b), c), "(a == 1 OR b == 1) AND c == 1", ids=ids("1.1 .11"))
    group.add("F7", ("or", ("and", a, b), c), "a == 1 AND b == 1 OR c == 1", ids=ids("11. ..1"))
    group.add("F7", ("and", a, ("or", b, c)), "a == 1 AND (b == 1 OR c == 1)", ids=ids("11. 1.1"))
    group.add("F7", ("and", ("not", a), b), "NOT a == 1 AND b == 1", ids=ids("01. -1."))
    group.add("F7", ("not", ("and", a, b)), "NOT (a == 1 AND b == 1)", ids=ids("0.. -.. 10. 1-."))
    group.add("F7", ("or", ("not", a), b), "NOT a == 1 OR b == 1", ids=ids("0.. -.. .1."))
    group.add("F7", ("not", ("or", a, b)), "NOT (a == 1 OR b == 1)", ids=ids("00. 0-. -0. --."))
    group.add("F7", ("and", a, ("not", b)), "a == 1 AND NOT b == 1", ids=ids("10. 1-."))
    group.add("F7", ("and", a, ("not", ("or", b, c))), "a == 1 && !(b == 1 || c == 1)", ids=ids("100 1-0"))
    group.add("F7", ("or", ("or", a, b), c), "a == 1 OR b == 1 OR c == 1", ids=ids("1.. .1. ..1"))
    group.add("F7", ("or", a, ("or", b, c)), "a == 1 OR (b == 1 OR c == 1)", ids=ids("1.. .1. ..1"))
    group.add("F7", ("and", a, ("and", b, c)), "a == 1 AND (b == 1 AND c == 1)", ids="111")
    group.add("F7", ("or", ("or", a, ("and", b, c)), ("not", a)), "a == 1 OR b == 1 AND c == 1 OR NOT a == 1",
              ids=" ".join(documents))  # fmt: skip
    group.add("F3", ("and", ("!=", "a", 1), ("!=", "b", 1)), ids=ids("00. 0-. -0. --."))
    group.add("F3", ("or", ("!=", "a", 1), ("is null", "b")), ids=ids("0.. -.. 1-."))
    group.add("F1", ("and", ("is null", "a"), ("is null", "b"), c), ids="--1")
    group.add("F1", ("or", ("is null", "a"), ("is null", "b")), ids=ids("-.. .-."))
    group.add("F5", ("and", a, ("in", "b", [])), ids="")
    group.add("F5", ("or", a, ("in", "b", [])), ids=ids("1.."))
    group.add("F5", ("and", a, ("not in", "b", [])), ids=ids("1.."))
    group.add("F5", ("or", a, ("not in", "b", [])), ids=" ".join(documents))
    group.add("F3", ("and", a, ("!=", "a", 1)), ids="")
    group.add("F3", ("or", a, ("!=", "a", 1)), ids=" ".join(documents))
    group.add("F2", ("and", ("==", "a", 1), ("==", "a", 0)), ids="")
    group.add("F7", ("or", ("and", a, b), ("and", ("not", a), c)),
              "(((a == 1)) && (b == 1) || (!((a == 1)) && (c == 1)))", ids=ids("11. 0.1 -.1"))  # fmt: skip
    group.add("F6", ("not", a), "(" * 150 + "!a == 1" + ")" * 150, ids=ids("0.. -.."))
    group.add("F6", ("not", a), "NOT " * 99 + "a == 1", ids=ids("0.. -.."))
    group.add("F6", ("and", a, b), " AND ".join(["a == 1", "b == 1"] * 150), ids=ids("11."))
    group.add("F6", ("or", ("and", a, b), ("and", ("not", a), c)), " OR ".join(
        ["a == 1 AND b == 1", "NOT a == 1 AND c == 1"] * 40), ids=ids("11. 0.1 -.1"))  # fmt: skip
    deep_text: str = "a == 1"
    deep: Spec = a
    for level in range(48):
        deep_text = f"b == 1 AND ({deep_text})" if level % 2 else f"c == 1 OR ({deep_text})"
        deep = ("and", b, deep) if level % 2 else ("or", c, deep)
    group.add("F6", deep, deep_text, ids=ids(".11 11."))
    return group


ODD_KEYS: Final = (
    "a", "A", "a.b", "a.b.c", "a..b", ".a", "a.", "a b", " a", "a ", "a-b", "a_b", "a:b", "a/b", "a[0]", "a,b", "a;b",
    "it's", 'say "x"', "`a`", "back\\slash", "$", "$gt", "$.a", "@a", "#a", "a%", "a*", "a?", "a|b", "(a)", "{a}",
    "and", "OR", "not", "in", "IS", "null", "true", "datetime", "like", "SELECT", "_id", "id", "_", "__class__",
    "key", "value", "metadata", "text", "vector", "score", "0", "9a", "größe", "gro\u0308ße", "ключ", "日本語", "😀",
    "\u00a0", "\u200b", "\n", "\t", "\x01", "a=b", "a == 1", "' OR 1=1 --", "x" * 512, "é" * 512,
)  # fmt: skip


def keys() -> Group:
    documents: Documents = {f"k{number:02}": {key: "hit"} for number, key in enumerate(ODD_KEYS)}
    documents["near"] = {key + "_": "hit" for key in ODD_KEYS if len(key) < 512}
    documents["none"] = {}
    group = Group("keys", "Any string is a key, and one flat key; each document has one of them.", documents)
    for number, key in enumerate(ODD_KEYS):
        group.add("D3 F7", ("==", key, "hit"), ids=f"k{number:02}")
        group.add("D3 F1", ("is not null", key), ids=f"k{number:02}")
    for key in ("a", "a.b", "it's", "$gt", "and", "日本語", "' OR 1=1 --", "\n"):
        group.add("D3 F3", ("!=", key, "hit"))
        group.add("D3 F1", ("is null", key))
        group.add("D3 F2", ("in", key, ["hit", 1]))
        group.add("D3 F2", (">=", key, "h"))
    group.add("F7", ("==", "a.b", "hit"), "a.b == 'hit'", ids=f"k{ODD_KEYS.index('a.b'):02}")
    group.add("F7", ("==", "a..b", "hit"), "a..b == 'hit'", ids=f"k{ODD_KEYS.index('a..b'):02}")
    group.add("F7", ("==", "a.", "hit"), "a. == 'hit'", ids=f"k{ODD_KEYS.index('a.'):02}")
    group.add("F7", ("==", "_id", "hit"), "_id == 'hit'", ids=f"k{ODD_KEYS.index('_id'):02}")
    group.add(
        "F7",
        ("==", "it's", "hit"),
        r"'it\'s' == 'hit'",
        ids=f"k{ODD_KEYS.index(chr(39).join(['it', 's'])):02}",
    )
    group.add("F7", ("==", "`a`", "hit"), r"`\`a\`` == 'hit'", ids=f"k{ODD_KEYS.index('`a`'):02}")
    group.add("F7", ("==", "😀", "hit"), r"'\ud83d\ude00' == 'hit'", ids=f"k{ODD_KEYS.index('😀'):02}")
    group.add(
        "F7", ("==", "größe", "hit"), r"`gr\u00f6\u00dfe` == 'hit'", ids=f"k{ODD_KEYS.index('größe'):02}"
    )
    return group


ODD_STRINGS: Final = (
    "", " ", "a", "A", "a ", " a", "a\t", "ab", "b", "it's", 'say "x"', "`", "\\", "\\\\", "\\n", "\n", "\r\n", "\t",
    "%", "_", "*", "?", "a%", "a*b", "a_b", "a b", "a|b", "a,b", "{a}", "[a]", "(a)", "@a", "$a", "#a", "a:b", "a/b",
    "a=b", "' OR 1=1 --", "'; DROP TABLE x; --", '" OR "1"="1', "*) | (*", '{"$ne": null}', "null", "None", "NULL",
    "true", "True", "false", "0", "1", "1.0", "-1", "1e3", "NaN", "2026-01-31", "2026-01-31T12:00:00Z", "[]", '["a"]',
    "\u00e9", "e\u0301", "\u00df", "ss", "\u0130", "i", "I", "\u0131", "\ufb01", "fi", "\u212b", "\u00c5", "z", "\u00e4",
    "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0001f600", "\u65e5\u672c", "\u200b", "\u00a0", "\ufeff", "\x01", "\x7f",
    "x" * 100, "x" * 99 + "y", "x" * 300, "x" * 299 + "y", "x" * 8192, "x" * 8191 + "y", "\u00e9" * 4096,
)  # fmt: skip


def values() -> Group:
    documents: Documents = {f"v{number:02}": {"x": value} for number, value in enumerate(ODD_STRINGS)}
    documents["missing"] = {}
    documents["list"] = {"x": ["a", "it's", "\U0001f600"]}
    group = Group(
        "values", "Strings are compared byte by byte: not trimmed, folded, split, cut or read.", documents
    )
    for number, value in enumerate(ODD_STRINGS):
        listed = " list" if value in ("a", "it's", "\U0001f600") else ""
        group.add("D4 F4 F10", ("==", "x", value), ids=f"v{number:02}{listed}")
    for value in (
        "",
        "a",
        "it's",
        "\\",
        "' OR 1=1 --",
        "\u00e9",
        "\U0001f600",
        "x" * 8192,
        "%",
        "*",
        "true",
        "1",
    ):
        group.add("D4 F3", ("!=", "x", value))
        group.add("D4 F5", ("in", "x", [value, "z"]))
        group.add("D4 F5", ("not in", "x", [value, "z"]))
    for value in (
        "",
        "A",
        "a",
        "a ",
        "Z",
        "z",
        "\u00e4",
        "\ud7ff",
        "\uffff",
        "\U00010000",
        "x" * 300,
        "x" * 8191,
    ):
        for sign in RANGE_SIGNS:
            group.add("F4", (sign, "x", value))
    group.add("F4", (">", "x", "\uffff"), ids=" ".join(
        f"v{ODD_STRINGS.index(value):02}" for value in ("\U00010000", "\U0001f600")) + " list")  # fmt: skip
    return group


def datetimes() -> Group:
    documents: Documents = {
        "first": {"t": at("0001-01-01T00:00:00Z")},
        "first-plus": {"t": at("0001-01-01T00:00:00.000001Z")},
        "before-epoch": {"t": at("1969-12-31T23:59:59.999999Z")},
        "epoch": {"t": at("1970-01-01T00:00:00Z")},
        "after-epoch": {"t": at("1970-01-01T00:00:00.000001Z")},
        "noon": {"t": NOON},
        "noon-in-sofia": {"t": at("2026-01-31T14:00:00+02:00")},
        "noon-in-new-york": {"t": at("2026-01-31T07:00:00-05:00")},
        "noon-local": {"t": at("2026-01-31T12:00:00+02:00")},
        "noon-minus-us": {"t": at("2026-01-31T11:59:59.999999Z")},
        "noon-plus-us": {"t": at("2026-01-31T12:00:00.000001Z")},
        "noon-plus-ms": {"t": at("2026-01-31T12:00:00.001Z")},
        "noon-plus-half-ms": {"t": at("2026-01-31T12:00:00.000500Z")},
        "last-minus": {"t": at("9999-12-31T23:59:59.999998Z")},
        "last": {"t": at("9999-12-31T23:59:59.999999Z")},
        "two": {"t": [at("2020-02-29T00:00:00Z"), at("2030-01-01T00:00:00Z")]},
        "list-noon": {"t": [NOON, at("2026-01-31T13:00:00+01:00")]},
        "string": {"t": "2026-01-31T12:00:00Z"},
        "date-string": {"t": "2026-01-31"},
        "seconds": {"t": 1769860800},
        "milliseconds": {"t": 1769860800000},
        "float-seconds": {"t": 1769860800.0},
        "true": {"t": True},
        "empty": {"t": []},
        "missing": {},
    }
    group = Group(
        "datetimes",
        "Instants to the microsecond, whatever their offset; never strings or numbers.",
        documents,
    )
    noons = "noon noon-in-sofia noon-in-new-york list-noon"
    group.add("F4", ("==", "t", NOON), ids=noons)
    for text in ("2026-01-31T12:00:00.0Z", "2026-01-31T12:00:00.000000+00:00", "2026-01-31T14:00:00+02:00",
                 "2026-02-01T11:59:00+23:59", "2026-01-31T12:00:00-00:00"):  # fmt: skip
        group.add("F4 F7", ("==", "t", at(text)), ids=noons)
    group.add("F7", ("==", "t", NOON), 't == DateTime "2026-01-31T12:00:00Z"', ids=noons)
    group.add("F7", ("==", "t", NOON), "t==datetime'2026-01-31T12:00:00Z'", ids=noons)
    instants = ("0001-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00Z", "2020-02-29T00:00:00Z",
                "2025-12-31T00:00:00Z", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000001Z",
                "2026-01-31T12:00:00.000499Z", "2026-01-31T12:00:00.0005Z", "2026-01-31T12:00:00.001+00:00",
                "2026-01-31T10:00:00+00:00", "9999-12-31T23:59:59.999999Z")  # fmt: skip
    for text in instants:
        for sign in ("==", "!=", *RANGE_SIGNS):
            group.add("F4", (sign, "t", at(text)))
    group.add("F4", ("in", "t", [at(text) for text in instants[:3]]), ids="first before-epoch epoch")
    group.add("F3 F4", ("not in", "t", [NOON, at("9999-12-31T23:59:59.999999Z")]))
    group.add("F4", ("==", "t", "2026-01-31T12:00:00Z"), ids="string")
    group.add("F4", (">=", "t", "2026"), ids="string date-string")
    group.add("F4", ("==", "t", 1769860800), ids="seconds float-seconds")
    group.add("F4", ("in", "t", [NOON, "2026-01-31", 1769860800000]), ids=f"{noons} date-string milliseconds")
    group.add(
        "F2",
        ("and", (">", "t", at("2025-01-01T00:00:00Z")), ("<", "t", at("2025-06-01T00:00:00Z"))),
        ids="two",
    )
    group.add("F3", ("not", (">", "t", NOON)))
    group.add("F3", ("not", ("<=", "t", NOON)))
    group.add("F1", ("is null", "t"), ids="empty missing")
    return group


def numbers() -> Group:
    stored: dict[str, Json] = {
        "zero": 0, "zero-float": 0.0, "minus-zero": -0.0, "one": 1, "one-float": 1.0, "minus-one": -1, "half": 0.5,
        "tenth": 0.1, "tenth-sum": 0.1 + 0.2, "three-tenths": 0.3, "two-53-minus": 2**53 - 1, "two-53": 2**53,
        "two-53-plus": 2**53 + 1, "two-53-float": float(2**53), "minus-two-53-plus": -(2**53) - 1,
        "two-62-plus": 2**62 + 1, "two-62-float": float(2**62), "max": 2**63 - 1, "max-minus": 2**63 - 2,
        "two-63-float": float(2**63), "min": -(2**63), "min-plus": -(2**63) + 1, "min-float": -float(2**63),
        "billion": 10**9, "billion-float": 1e9, "huge": 1.7976931348623157e308, "minus-huge": -1.7976931348623157e308,
        "tiny": 5e-324, "minus-tiny": -5e-324, "e22": 1e22, "next-one": 1.0000000000000002,
    }  # fmt: skip
    documents: Documents = {id_: {"n": value} for id_, value in stored.items()}
    documents |= {
        "list-ints": {"n": [1, 2**53 + 1]},
        "list-floats": {"n": [0.5, 1e9]},
        "list-mixed": {"n": [0.5, 2**63 - 1]},
        "true": {"n": True},
        "false": {"n": False},
        "str-one": {"n": "1"},
        "str-zero": {"n": "0.0"},
        "empty": {"n": []},
        "missing": {},
    }
    group = Group(
        "numbers", "int and float by exact value, to the edges of both; never bool or str.", documents
    )
    group.add("F4", ("==", "n", 2**53 + 1), ids="two-53-plus list-ints")
    group.add("F4", ("==", "n", float(2**53)), ids="two-53 two-53-float")
    group.add("F4", ("==", "n", 2**63 - 1), ids="max list-mixed")
    group.add("F4", ("==", "n", float(2**63)), ids="two-63-float")
    group.add("F4", (">", "n", 2**63 - 1), ids="two-63-float e22 huge")
    group.add("F4", (">=", "n", float(2**63)), ids="two-63-float e22 huge")
    group.add("F4", ("<", "n", -float(2**63)), ids="minus-huge")
    group.add("F4", ("<=", "n", -(2**63)), ids="min min-float minus-huge")
    group.add("F4", ("==", "n", 0), ids="zero zero-float minus-zero")
    group.add("F4", ("==", "n", -0.0), ids="zero zero-float minus-zero")
    group.add("F4", ("==", "n", 1), ids="one one-float list-ints")
    group.add("F4", ("==", "n", 0.3), ids="three-tenths")
    group.add("F4", (">", "n", 0.3))
    group.add("F4", ("==", "n", 10**22 + 0.0), "n == 10000000000000000000000.0", ids="e22")
    group.add("F4", ("==", "n", 10**9), "n == 1E+9", ids="billion billion-float list-floats")
    for value in dict.fromkeys(map(repr, stored.values())):
        operand = json.loads(value)
        for sign in ("==", *RANGE_SIGNS):
            group.add("F4", (sign, "n", operand))
    for operand in (0, 1, 2**53 + 1, float(2**53), 2**63 - 1, 0.5):
        group.add("F3 F4", ("!=", "n", operand))
        group.add("F3 F4", ("not", ("<", "n", operand)))
        group.add("F3 F4", ("not", (">=", "n", operand)))
    group.add("F4", ("in", "n", [1.0, 2**53, 0]), ids=(
        "zero zero-float minus-zero one one-float list-ints two-53 two-53-float"))  # fmt: skip
    group.add("F4", ("in", "n", [True, "1"]), ids="true str-one")
    group.add("F3 F4", ("not in", "n", [True, "1", 0.0, 2**63 - 1]))
    group.add("F4", ("==", "n", True), ids="true")
    group.add("F4", ("==", "n", "0.0"), ids="str-zero")
    return group


def lists() -> Group:
    documents: Documents = {
        "none": {},
        "empty": {"x": []},
        "1": {"x": 1},
        "4": {"x": 4},
        "one": {"x": [1]},
        "1-10": {"x": [1, 10]},
        "10-1": {"x": [10, 1]},
        "1-1": {"x": [1, 1]},
        "3-5": {"x": [3, 5]},
        "4-float": {"x": [4.0]},
        "1-to-9": {"x": [1, 2, 3, 4, 5, 6, 7, 8, 9]},
        "mixed": {"x": [1, 2.5, 10]},
        "a": {"x": "a"},
        "a-b": {"x": ["a", "b"]},
        "ab": {"x": ["ab"]},
        "a,b": {"x": "a,b"},
        "b-a": {"x": ["b", "a"]},
        "a-z": {"x": ["a", "z"]},
        "json": {"x": "[1, 10]"},
        "true-false": {"x": [True, False]},
        "trues": {"x": [True, True]},
        "times": {"x": [at("2020-01-01T00:00:00Z"), at("2030-01-01T00:00:00Z")]},
        "hundred": {"x": [f"v{number}" for number in range(100)]},
        "big": {"x": [2**53, 2**53 + 1]},
    }
    group = Group("lists", "Some element satisfies a comparison; every comparison stands alone.", documents)
    x = "x"
    group.add("F2", ("==", x, 1), ids="1 one 1-10 10-1 1-1 1-to-9 mixed")
    group.add("F2", ("==", x, 4), ids="4 4-float 1-to-9")
    group.add(
        "F2", ("and", (">", x, 3), ("<", x, 5)), "x > 3 AND x < 5", ids="4 1-10 10-1 3-5 4-float 1-to-9 mixed"
    )
    group.add("F2", ("and", ("==", x, 1), ("==", x, 10)), "x == 1 AND x == 10", ids="1-10 10-1 mixed")
    group.add("F2", ("and", ("==", x, "a"), ("==", x, "b")), "x == 'a' AND x == 'b'", ids="a-b b-a")
    group.add("F2", ("and", ("in", x, [1, 2]), ("in", x, [9, 10])), ids="1-10 10-1 1-to-9 mixed")
    group.add("F3", ("and", ("!=", x, 1), ("is not null", x)))
    group.add("F3", ("and", ("==", x, 1), ("!=", x, 10)), ids="1 one 1-1 1-to-9")
    group.add("F3", ("not", ("<", x, 5)))
    group.add("F3", ("and", ("not", ("<", x, 5)), (">=", x, 0)), ids="big")
    group.add("F2", (">=", x, 5), ids="1-10 10-1 3-5 1-to-9 mixed big")
    group.add("F3", ("and", ("<", x, 5), ("not", (">", x, 5))), ids="1 4 one 1-1 3-5 4-float")
    group.add("F3", ("or", (">", x, 5), ("<", x, 2)))
    group.add("F3", ("not", ("and", (">", x, 3), ("<", x, 5))))
    group.add("F2", ("==", x, "a"), ids="a a-b b-a a-z")
    group.add("F2", ("==", x, "ab"), ids="ab")
    group.add("F2", ("==", x, "a,b"), ids="a,b")
    group.add("F2", ("==", x, "[1, 10]"), ids="json")
    group.add("F2", ("<", x, "b"), ids="a a-b ab a,b b-a a-z json")
    group.add("F2", (">", x, "b"), ids="a-z hundred")
    group.add("F2", ("and", (">", x, "b"), ("<", x, "m")), ids="a-z")
    group.add("F2", ("in", x, ["z", "v99"]), ids="a-z hundred")
    group.add("F3", ("not in", x, ["a", 1, True]))
    group.add("F3", ("!=", x, "v50"))
    group.add("F2", ("==", x, "v50"), ids="hundred")
    group.add("F2", ("==", x, "v100"), ids="")
    group.add("F4", ("==", x, True), ids="true-false trues")
    group.add("F4", ("and", ("==", x, True), ("==", x, False)), ids="true-false")
    group.add("F3 F4", ("!=", x, False))
    group.add("F4", ("==", x, 2**53 + 1), ids="big")
    group.add("F4", ("==", x, 2.5), ids="mixed")
    group.add("F4", ("in", x, [2.5, 4]), ids="4 4-float 1-to-9 mixed")
    group.add(
        "F2", ("and", ("<", x, at("2025-01-01T00:00:00Z")), (">", x, at("2025-01-01T00:00:00Z"))), ids="times"
    )
    group.add("F3", ("not", ("<", x, at("2025-01-01T00:00:00Z"))))
    group.add("F1", ("is null", x), ids="none empty")
    group.add("F5", ("in", x, []), ids="")
    group.add("F5", ("not in", x, []), ids=" ".join(documents))
    for value in (0, 1, 2, 3, 4, 5, 9, 10, 11):
        for sign in RANGE_SIGNS:
            group.add("F2", (sign, x, value))
            group.add("F3", ("not", (sign, x, value)))
    return group


def text_errors() -> Group:
    group = Group(
        "text-errors",
        "Texts that are refused, with the place from 1 in code points: syntax, value (F5, D3) or limit (F6).",
        {"any": {"a": 1, "b": "x"}},
    )
    syntax = [
        ("", 1, 1), ("   ", 1, 4), ("\n\n", 3, 1), ("a", 1, 2), ("a ==", 1, 5), ("a == ", 1, 6), ("== 1", 1, 1),
        ("a 1", 1, 3), ("a b", 1, 3), ("a == b", 1, 6), ("5 < a", 1, 1), ("'a' == b", 1, 8), ("1 < a < 3", 1, 1),
        ("a < 1 < 3", 1, 7), ("a == 1 b == 2", 1, 8), ("a == 1 AND", 1, 11), ("AND a == 1", 1, 1),
        ("a == 1 AND AND b == 1", 1, 12), ("a == 1 OR OR b == 1", 1, 11), ("NOT", 1, 4), ("a NOT", 1, 6),
        ("a NOT 1", 1, 7), ("a !IN [1]", 1, 3), ("a NOT NIN [1]", 1, 7), ("a IS", 1, 5), ("a IS 1", 1, 6),
        ("a IS NOT 1", 1, 10), ("a IS ! NULL", 1, 6), ("a IS NULL NULL", 1, 11), ("(a == 1", 1, 1), ("a == 1)", 1, 7),
        ("((a == 1)", 1, 1), ("()", 1, 2), ("a == (1)", 1, 6), ("(a) == 1", 1, 3), ("a == 1 & b == 2", 1, 8),
        ("a == 1 | b == 2", 1, 8), ("a === 1", 1, 5), ("a !== 1", 1, 5), ("a => 1", 1, 4), ("a =< 1", 1, 4),
        ("a =~ 'x'", 1, 4), ("a ~ 'x'", 1, 3), ("~a == 1", 1, 1), ("a == 'x", 1, 6), ('a == "x', 1, 6),
        ("a == 'x\"", 1, 6), ("`a == 1", 1, 1), ("a == `x`", 1, 6), ("a == 'it's'", 1, 10), ("a == 'x\ny'", 1, 6),
        ("a == 'x\ty'", 1, 8), ("a == '\\q'", 1, 7), ("a == 'x\\", 1, 6), ("a == '\\u12'", 1, 7),
        ("a == '\\`'", 1, 7), ("a == +5", 1, 6), ("a == .5", 1, 6), ("a == 5.", 1, 6), ("a == 005", 1, 6),
        ("a == -05", 1, 6), ("a == - 5", 1, 6), ("a == 0x5", 1, 6), ("a == 5L", 1, 6), ("a == 1_000", 1, 6),
        ("a == 5e", 1, 6), ("a == 1.5.5", 1, 6), ("a == 5and b == 1", 1, 6), ("a == 1 + 1", 1, 8), ("a IN", 1, 5),
        ("a IN (1)", 1, 6), ("a IN b", 1, 6), ("a IN [1,]", 1, 9), ("a IN [,1]", 1, 7), ("a IN [1 2]", 1, 9),
        ("a IN [1", 1, 8), ("a IN [b]", 1, 7), ("a == datetime", 1, 14), ("a == datetime 5", 1, 15),
        ("a == datetime '2026-01-31 12:00:00Z'", 1, 15), ("a == datetime '2026-01-31T12:00Z'", 1, 15),
        ("a == datetime '2026-01-31T12:00:00z'", 1, 15), ("a == datetime '2026-01-31T12:00:00.1234567Z'", 1, 15),
        ("a == datetime '2026-01-31T12:00:00+0200'", 1, 15), ("a == date '2026-01-31'", 1, 6), ("a == 2026-01-31", 1, 10),
        ("a LIKE 'x'", 1, 3), ("a CONTAINS 'x'", 1, 3), ("a BETWEEN 1 AND 2", 1, 3), ("a NOT LIKE 'x'", 1, 7),
        ("a LIEK 'x'", 1, 3), ("and == 1", 1, 1), ("null == 1", 1, 1), ("true == 1", 1, 1), ("like == 1", 1, 1),
        ("datetime == 1", 1, 1), ("a-b == 1", 1, 2), ("$a == 1", 1, 1), ("gr\u00f6\u00dfe == 1", 1, 3), ("a[0] == 1", 1, 2),
        ("9a == 1", 1, 1), ("f(a)", 1, 2), ("a: 1", 1, 2), ("a == 1;", 1, 7), ("a == 1, b == 2", 1, 7),
        ("a == \u2018x\u2019", 1, 6), ("a\u00a0== 1", 1, 2), ("\ufeffa == 1", 1, 1), ("a\x0b== 1", 1, 2), ("a == \u0661", 1, 6),
        ("a == 1\nAND b == c", 2, 10), ("a == 1\r\nAND\r\n  b ==\r\n    c", 4, 5), ("a == 1\rOR c", 2, 5),
        ("'\U0001f600' == '\u65e5\u672c' OR x", 1, 17), ("a == 1 XOR b == 2", 1, 8), ("a == yes", 1, 6),
    ]  # fmt: skip
    for text, row, column in syntax:
        group.error("F7 F8", "syntax", text, row, column)
    value = [
        ("a == null", 1, 6), ("a != NULL", 1, 6), ("a < null", 1, 5), ("a IN [1, null]", 1, 10), ("a IN null", 1, 6),
        ("a == NaN", 1, 6), ("a == Infinity", 1, 6), ("a == [1]", 1, 6), ("a == []", 1, 6), ("a != ['x']", 1, 6),
        ("a > [1]", 1, 5), ("a IN 1", 1, 6), ("a NOT IN 'x'", 1, 10), ("a NIN true", 1, 7), ("a IN [[1]]", 1, 7),
        ("a < true", 1, 5), ("a <= false", 1, 6), ("a > TRUE", 1, 5), ("a >= False", 1, 6),
        ("a == 9223372036854775808", 1, 6), ("a == -9223372036854775809", 1, 6), ("a == 1e309", 1, 6),
        ("a == datetime '2026-01-31T12:00:00'", 1, 15), ("a == datetime '2026-01-31'", 1, 15),
        ("a == datetime '2026-02-29T12:00:00Z'", 1, 15), ("a == datetime '2026-01-31T24:00:00Z'", 1, 15),
        ("a == datetime '0000-01-01T00:00:00Z'", 1, 15), ("a == datetime '0001-01-01T00:00:00+00:01'", 1, 15),
        ("a == datetime '9999-12-31T23:59:59-00:01'", 1, 15), ("a == '\\u0000'", 1, 6), ("a == '\\ud800'", 1, 6),
        ("'' == 1", 1, 1), ("'\\u0000' == 1", 1, 1), (f"{'x' * 513} == 1", 1, 1),
        ("a == 1\nAND b > true", 2, 9), ("a IN 1]", 1, 6),
    ]  # fmt: skip
    for text, row, column in value:
        group.error("F5 F8", "value", text, row, column)
    for text in ("NOT " * 100 + "a == 1", "!" * 101 + "a == 1"):
        group.cases.append({"rule": "F6", "filter": text, "error": "limit"})
    return group


GROUPS: Final = (
    equality, ranges, membership, null, negation, logic, keys, values, datetimes, numbers, lists, text_errors,
)  # fmt: skip


def all_files() -> dict[str, str]:
    """Return the text of every file by name."""
    return {f"{group.name}.json": group.json() for group in (make() for make in GROUPS)}


if __name__ == "__main__":
    CASES.mkdir(parents=True, exist_ok=True)
    for name, content in all_files().items():
        (CASES / name).write_text(content, encoding="ascii")
