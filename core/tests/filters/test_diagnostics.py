"""Errors of texts: place, finding, what could stand there, advice (F8)."""

from __future__ import annotations

import pytest

from entrepot.errors import FilterSyntaxError
from entrepot.filters import parse_filter


def error(text: str) -> FilterSyntaxError:
    with pytest.raises(FilterSyntaxError) as caught:
        parse_filter(text)
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "column", "found", "expected"),
    [
        ("", 1, 1, "the end of the text", "a key"),
        ("  ", 1, 3, "the end of the text", "NOT"),
        ("a", 1, 2, "the end of the text", "=="),
        ("a b", 1, 3, "the word b", "IS NOT NULL"),
        ("a ==", 1, 5, "the end of the text", "a string"),
        ("a == b", 1, 6, "the word b", "a number"),
        ("a == 1 2", 1, 8, "the number 2", "AND"),
        ("a == 1 2", 1, 8, "the number 2", "the end of the text"),
        ("(a == 1 2", 1, 9, "the number 2", ")"),
        ("a == 1 AND", 1, 11, "the end of the text", "("),
        ("a == 1\nAND b ==\n  c", 3, 3, "the word c", "true"),
        ("a == 1\r\nAND b == c", 2, 10, "the word c", "false"),
        ("a == 1\rAND b == c", 2, 10, "the word c", "datetime '...'"),
        ("a == 1\n\n\n&", 4, 1, "'&'", "OR"),
        ("'😀' == '日本' OR x", 1, 17, "the end of the text", "NOT IN"),
        ("a == 1 AND é", 1, 12, "the character 'é' (U+00E9, LATIN SMALL LETTER E WITH ACUTE)", "a key"),
        ("a == \x07", 1, 6, "the character (U+0007)", "a string"),
        ("a > true", 1, 5, "the word TRUE", "a number"),
        ("a IN 5", 1, 6, "the number 5", "["),
        ("a IN [1 2]", 1, 9, "the number 2", ","),
        ("a IN [1 2]", 1, 9, "the number 2", "]"),
        ("a IN [", 1, 7, "the end of the text", "]"),
        ("a IN [1,]", 1, 9, "']'", "a string"),
        ("a IS 5", 1, 6, "the number 5", "NOT NULL"),
        ("a IS NOT 5", 1, 10, "the number 5", "NULL"),
        ("a NOT 5", 1, 7, "the number 5", "IN"),
        ("a == datetime 5", 1, 15, "the number 5", "a quoted instant such as '2026-01-31T12:00:00Z'"),
        ("a == 'x\\qy'", 1, 8, "the string 'x\\qy'", "a string"),
        ("a == 'x\ty'", 1, 8, "the string 'x", "a string"),
        ("a == 'xy", 1, 6, "the string 'xy", "a string"),
        ("((a == 1)", 1, 1, "the end of the text", ")"),
        ("a == 1)", 1, 7, "')'", "the end of the text"),
        ("a == `b`", 1, 6, "the quoted key `b`", "a string"),
    ],
)
def test_an_error_names_place_finding_and_what_could_stand_there(
    text: str, line: int, column: int, found: str, expected: str
) -> None:
    # F8: from 1, in code points
    raised = error(text)
    assert (raised.line, raised.column) == (line, column)
    assert raised.found == found
    assert expected in raised.expected
    message = str(raised)
    assert message.startswith(f"line {line}, column {column}: ")
    assert found in message
    assert expected in message


def test_a_bool_is_not_offered_where_it_has_no_order() -> None:
    assert "true" not in error("a > true").expected
    assert "true" in error("a == b").expected


@pytest.mark.parametrize(
    ("text", "excerpt"),
    [
        ("a == b", ["  a == b", "       ^"]),
        ("a == bcd OR x == 1", ["  a == bcd OR x == 1", "       ^^^"]),
        ("a ==", ["  a ==", "      ^"]),
        ("", ["  ", "  ^"]),
        ("a == 1\n  AND b == c\nOR x == 1", ["    AND b == c", "             ^"]),
        ("a\t==\tb", ["  a == b", "       ^"]),
        ("'日本' == b", ["  '日本' == b", "            ^"]),  # wide characters take two columns
        ("a == 日本", ["  a == 日本", "       ^^"]),
        ("'e\u0301' == b", ["  'e\u0301' == b", "         ^"]),  # and combining ones none
        ("a == \x07b", ["  a == \ufffdb", "       ^"]),
        ("a == 'x\\qy'", ["  a == 'x\\qy'", "         ^"]),
        ("(a == 1", ["  (a == 1", "  ^"]),
    ],
)
def test_a_caret_stands_under_the_place(text: str, excerpt: list[str]) -> None:
    # F8
    assert str(error(text)).splitlines()[1:3] == excerpt


def test_a_long_line_is_trimmed_around_the_place() -> None:
    before, after = "x == 1 AND " * 30, " AND x == 1" * 30
    raised = error(f"{before}y == z{after}")
    assert raised.column == len(before) + 6
    _, shown, carets, *_ = str(raised).splitlines()
    assert len(shown) < 120
    assert shown.startswith("  ... ")
    assert shown.endswith(" ...")
    assert shown[carets.index("^") :].startswith("z AND x")
    at_the_end = str(error(f"{before}y == z")).splitlines()
    assert at_the_end[1].endswith("y == z")
    assert at_the_end[1][at_the_end[2].index("^")] == "z"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("", "no filter is None"),
        ("a LIEK 'x'", "did you mean LIKE?"),
        ("a LIKE 'x'", "reserved"),
        ("a NOT LIKE 'x'", "reserved"),
        ("a BETWEEN 1 AND 2", "key >= low AND key <= high"),
        ("a CONTAINS 'x'", "some element"),
        ("contains(a, 'x')", "some element"),
        ("a NINN [1]", "did you mean NIN?"),
        ("nto a == 1", "did you mean NOT"),
        ("a == 1 adn b == 2", "did you mean AND?"),
        ("a == 1 ro b == 2", "did you mean OR?"),
        ("a == ture", "did you mean true?"),
        ("a == UK", "'UK'"),
        ("a IN [UK]", "'UK'"),
        ("a IN UK", "['UK']"),
        ("a == 1 & b == 2", "&&"),
        ("a == 1 | b == 2", "||"),
        ("& a == 1", "&&"),
        ("a === 1", "use =="),
        ("a !== 1", "use !="),
        ("a => 1", "use >="),
        ("a =< 1", "use <="),
        ("a == == 1", "a number"),
        ("5 < x", "write x > 5"),
        ("'a' == x", "'x'"),
        ("5 >= x AND y == 1", "write x <= 5"),
        ("1 < x < 3", "write x > 1"),
        ("true == x", "quoted"),
        ("x > 1 < 3", "do not chain"),
        ("a is not 5", "use !="),
        ("a is 5", "use =="),
        ("a not 5", "use !="),
        ("a ! in [1]", "NOT IN"),
        ("~a == 1", "NOT"),
        ("null == 1", '"null"'),
        ("like == 1", '"like"'),
        ("my-key == 1", "quoted"),
        ("größe == 1", "quoted"),
        ("$a == 1", "quoted"),
        ("a[0] == 1", '"a[0]"'),
        ("a", "a == true, or a IS NOT NULL"),
        ("a AND b == 1", "a == true, or a IS NOT NULL"),
        ("a & b", "a == true, or a IS NOT NULL"),
        ("a eq 1", "use =="),
        ("a exists", "IS NOT NULL"),
        ("f(a)", "no functions"),
        ("a: 1", "use =="),
        ("a == 'it's'", r"it\'s"),
        ("a == 'x", "next '"),
        ("`a == 1", "next `"),
        ("a == 'x\ty'", r"\t"),
        ("a == 'x\x01y'", r"\u0001"),
        ("a == \u201cx\u201d", "straight quotes"),
        ("a == `x`", "backticks quote keys"),
        ("a == 2026-01-31", "datetime '2026-01-31T12:00:00Z'"),
        ("a == date '2026-01-31'", "datetime '2026-01-31T12:00:00Z'"),
        ("a == datetime '2026-01-31 12:00:00Z'", "T stands between"),
        ("a == datetime '2026-01-31T12:00:00.1234567Z'", "six"),
        ("a == datetime 'x'", "2026-01-31T12:00:00.123456Z"),
        ("a == 1 + 2", "does not calculate"),
        ("a == 1+2", "does not calculate"),
        ("a == 1, b == 2", "AND or OR"),
        ("a == 1 b == 2", "missing before b"),
        ("a == 1 not b == 2", "missing before not"),
        ("a == (1)", "alone"),
        ("a IN (1)", "[ ]"),
        ("a IN [1,]", "comma"),
        ("a IN [1 2]", "commas"),
        ("a IN [1)", "]"),
        ("a == 005", "leading zeros"),
        ("a == +5", "write 5"),
        ("a == .5", "0.5"),
        ("a == -.5", "0.5"),
        ("a == 5.", "write 5, or 5.0"),
        ("a == 0x5", "decimal"),
        ("a == 5L", "write 5"),
        ("a == 1_000", "write 1000"),
        ("a == 5e", "JSON"),
        ("a =~ 'x'", "reserved"),
        ("a == '\\q'", "a backslash itself"),
        ("()", "empty"),
    ],
)
def test_the_hint_says_what_to_write(text: str, advice: str) -> None:
    # F8
    assert advice in str(error(text))


def test_a_caret_never_breaks_on_lone_surrogates() -> None:
    raised = error("a == '\ud800' x")
    assert str(raised).encode("utf-8", "backslashreplace")
    assert r"\ud800" in raised.found


def test_long_findings_are_shortened() -> None:
    assert len(error("a == " + "x" * 10_000).found) < 60
    assert len(str(error("a == '" + "x" * 10_000))) < 600
