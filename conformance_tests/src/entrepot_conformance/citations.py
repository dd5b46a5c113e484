"""Which test checks which rule: read from the comments of the tests, without running them.

A test cites a rule by a comment that begins with its name, above the test or within it::

    def test_an_expired_conversation_is_unknown(memories):
        # M8, M9: gone from the reading and from the listing

Names are parted by commas; ``F1 to F5`` stands for all between. What follows a colon, a semicolon or a
full stop is prose. A comment is read as a citation only as a whole: names in the midst of a sentence cite
nothing. A test with a parameter called ``rule`` runs once for each rule that it cites, and each run counts
for that one alone.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from entrepot_conformance.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SUITE: Final = Path(__file__).parent / "tests"
"""The folder of the suite's own tests."""

_NAME: Final = r"[DFSMWTOE]\d{1,2}"
_ITEM: Final = rf"{_NAME}(?: to {_NAME})?"
_COMMENT: Final = re.compile(rf"#\s*({_ITEM}(?:(?:, | and ){_ITEM})*)\s*(?:$|[:;.])")
_EACH: Final = re.compile(rf"({_NAME})(?: to ({_NAME}))?")
_ORDER: Final = tuple(RULES)


class UnknownRuleError(ValueError):
    """A test cites a rule that the contract does not have."""


class Citations(NamedTuple):
    """Who cites what.

    Attributes:
        tests: Tests by rule, every rule of the contract among them, in order.
        rules: Rules by test, every test that was read among them; a test that cites nothing has none.
        single: The tests that run for one of their rules at a time.
    """

    tests: dict[str, tuple[str, ...]]
    rules: dict[str, tuple[str, ...]]
    single: frozenset[str]

    def of(self, test: str) -> tuple[str, ...]:
        """Return the rules that a run of a test counts for; its parameters may follow in brackets."""
        name, _, parameters = test.partition("[")
        cited = self.rules.get(name, ())
        if name not in self.single:
            return cited
        return tuple(rule for rule in parameters.rstrip("]").split("-") if rule in cited) or cited


@cache
def citations(folder: Path = SUITE) -> Citations:
    """Read the tests below a folder.

    Args:
        folder: Where they lie; by default the suite's own.

    Returns:
        The citations. A test is named by its file, relative to the folder and with slashes, and its
        function: ``store/test_filters.py::test_the_largest_filters_are_answered``.

    Raises:
        UnknownRuleError: A comment cites a rule that there is not.
    """
    rules: dict[str, tuple[str, ...]] = {}
    single: set[str] = set()
    for path in sorted(folder.rglob("test_*.py")):
        name = path.relative_to(folder).as_posix()
        for test in read_tests(path.read_text("utf-8"), name):
            rules[f"{name}::{test.name}"] = test.rules
            if test.single:
                single.add(f"{name}::{test.name}")
    tests = {rule: tuple(test for test, cited in rules.items() if rule in cited) for rule in RULES}
    return Citations(tests, rules, frozenset(single))


class CitingTest(NamedTuple):
    """A test function: its name, the rules that it cites, and whether it runs for one of them at a time."""

    name: str
    rules: tuple[str, ...]
    single: bool


def read_tests(source: str, name: str = "<source>") -> list[CitingTest]:
    """Return the test functions of a module with the rules that each cites, in the contract's order.

    Args:
        source: The module's text.
        name: What to call it in errors.

    Raises:
        UnknownRuleError: A comment cites a rule that there is not.
    """
    comments = {
        token.start[0]: (token.string, not token.line[: token.start[1]].strip())
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    found: list[CitingTest] = []
    for function in _tests(ast.parse(source)):
        start = min((decorator.lineno for decorator in function.decorator_list), default=function.lineno)
        while (above := comments.get(start - 1)) is not None and above[1]:
            start -= 1
        lines = range(start, (function.end_lineno or function.lineno) + 1)
        cited = {
            rule
            for line in lines
            if line in comments
            for rule in _rules_of(comments[line][0], f"{name}:{line}")
        }
        single = any(argument.arg == "rule" for argument in function.args.args)
        found.append(CitingTest(function.name, tuple(sorted(cited, key=_ORDER.index)), single))
    return found


def _tests(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Give the test functions, also those below a condition or in a class, and none within another one."""
    todo: list[ast.AST] = [module]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("test_"):
                yield node
            continue
        todo += reversed(list(ast.iter_child_nodes(node)))


def _rules_of(comment: str, place: str) -> Iterable[str]:
    match = _COMMENT.match(comment)
    if match is None:
        return []
    found: list[str] = []
    for first, last in _EACH.findall(match[1]):
        for rule in filter(None, (first, last)):
            if rule not in RULES:
                msg = f"{place} cites {rule}, which the contract does not have"
                raise UnknownRuleError(msg)
        start, stop = _ORDER.index(first), _ORDER.index(last or first)
        found += _ORDER[start : stop + 1]
    return found
