"""Rules are cited by comments, and a machine reads them."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from entrepot_conformance.citations import UnknownRuleError, citations, read_tests
from entrepot_conformance.mutants import all_mutants
from entrepot_conformance.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT: Final = Path(__file__).parents[2]


def cited(source: str) -> Mapping[str, tuple[str, ...]]:
    return {test.name: test.rules for test in read_tests(textwrap.dedent(source))}


def test_a_comment_in_a_test_or_above_it_cites() -> None:
    found = cited('''
        import pytest

        # F3
        def test_above(): pass

        # D1: prose, and more of it
        # T2, F5
        @pytest.mark.slow
        @pytest.mark.parametrize("x", [1])
        def test_above_decorators(x):
            pass

        def test_within():  # E2
            # M3; where that is so
            text = "# S1"

            async def inner():
                # F1 to F3 and D10.
                pass

        if True:
            async def test_below_a_condition(): pass  # W1

        class TestClass:
            def test_method(self):
                # O1
                pass

        def helper():
            # S2
            pass

        def test_nothing():
            """# S3"""
            # see F4, which says more
            # F4x
    ''')
    assert found == {
        "test_above": ("F3",),
        "test_above_decorators": ("D1", "F5", "T2"),
        "test_within": ("D10", "F1", "F2", "F3", "M3", "E2"),
        "test_below_a_condition": ("W1",),
        "test_method": ("O1",),
        "test_nothing": (),
    }


def test_a_comment_behind_code_is_not_the_next_tests() -> None:
    assert cited("x = 1  # F3\ndef test_a(): pass\n\n# F4\n\ndef test_b(): pass\n") == {
        "test_a": (),
        "test_b": (),
    }


@pytest.mark.parametrize("comment", ["# F11", "# D0", "# F1 to F12", "# F3, X1, E9: words"])
def test_a_rule_that_there_is_not_cannot_be_cited(comment: str) -> None:
    if "X1" in comment:  # no name of a rule: then it is prose
        assert cited(f"def test_a():\n    {comment}\n    pass\n") == {"test_a": ()}
        return
    with pytest.raises(UnknownRuleError, match="<source>:2 cites"):
        cited(f"def test_a():\n    {comment}\n    pass\n")


def test_a_test_that_runs_for_one_rule_at_a_time_counts_for_that_one(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(
        "def test_single(rule, name):\n    # F1, F2\n    pass\n\ndef test_all(name):\n    # F1, F2\n    pass\n"
    )
    found = citations(tmp_path)
    assert found.of("test_x.py::test_single[simple-F2-name]") == ("F2",)
    assert found.of("test_x.py::test_single[simple-other]") == ("F1", "F2")
    assert found.of("test_x.py::test_all[simple-F2-name]") == ("F1", "F2")
    assert found.of("test_x.py::unknown") == ()
    assert found.tests["F1"] == ("test_x.py::test_single", "test_x.py::test_all")
    assert found.tests["F3"] == ()


def test_the_rules_are_those_of_the_contract() -> None:
    text = (ROOT / "docs" / "contract.md").read_text("utf-8")
    written = re.findall(r"^- \*\*([DFSMWTOE]\d+)(?: ([^*]*?)\.?)?\*\*", text, re.MULTILINE)
    assert [name for name, _ in written] == list(RULES)
    titles = {name: title for name, title in written if title}
    assert {name: RULES[name].title for name in titles} == titles
    assert all(rule.title and rule.name == name for name, rule in RULES.items())
    # What may be declined is what the contract's list says; everything else binds everyone.
    binding = re.search(r"Everything else binds everyone: ([^.]*) cannot be declined", text)
    assert binding is not None
    bound = {name for name, rule in RULES.items() if rule.capability is None}
    assert bound == {name for part in binding[1].split(", ") for name in RULES if stands_in(name, part)}


def stands_in(name: str, part: str) -> bool:
    """Whether a rule is one of ``S5``, ``D`` (all of the letter) or ``S1-S5``, written with a dash."""
    first, *last = re.split(r"\W", part)
    if last:
        return name[0] == first[0] and int(first[1:]) <= int(name[1:]) <= int(last[0][1:])
    return name in {first, first + name[1:]} and (len(first) == 1 or name == first)


def test_every_rule_is_cited_and_every_test_cites_one() -> None:
    found = citations()
    assert [rule for rule, tests in found.tests.items() if not tests] == []
    uncited = [test for test, rules in found.rules.items() if not rules]
    assert uncited == ["store/test_twins.py::test_the_table_holds_every_operation"][: len(uncited)]


def test_what_the_other_tests_cite_are_rules() -> None:
    folders = (ROOT / "core" / "tests", *(ROOT / "plugins").glob("*/tests"))
    citing = [test for folder in folders for test, rules in citations(folder).rules.items() if rules]
    assert len(citing) > 300


def test_every_rule_has_a_mutant_and_every_mutant_a_test() -> None:
    mutants = list(all_mutants().values())
    assert {mutant.rule for mutant in mutants} == set(RULES)
    assert len(mutants) > 200
    tests = citations().tests
    for mutant in mutants:
        assert [test for test in tests[mutant.rule] if test.startswith(f"{mutant.kind}/")], mutant.name
