"""Faults put into converter and encoder one by one: the filter cases notice each."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from plugins.milvus.tests.language import holds

import entrepot_milvus
from entrepot.errors import EntrepotError
from entrepot.filters import parse_filter
from entrepot.metadata import clean_metadata, encode_metadata
from entrepot_conformance import case_files, load_cases
from entrepot_conformance.tests.store.test_filters import decoded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from entrepot.filters import Expression

MODULES = ("names", "plugin", "words", "fields", "expressions", "filters")


class Mutant(NamedTuple):
    module: str
    old: str
    new: str


MUTANTS = {
    "below asks for the greatest": Mutant("filters", "letter if op in _BELOW else", "letter if op not in _BELOW else"),
    "least and greatest are swapped": Mutant("fields", "(least, greatest) in extremes", "(greatest, least) in extremes"),
    "strict is loose": Mutant("filters", 'FilterOp.LT: "<"', 'FilterOp.LT: "<="'),
    "loose is strict": Mutant("filters", 'FilterOp.GTE: ">="}', 'FilterOp.GTE: ">"}'),
    "the complement of below is above": Mutant("filters", 'OPPOSITE: Final = {FilterOp.LT: ">="', 'OPPOSITE: Final = {FilterOp.LT: ">"'),
    "the complement of above is below": Mutant("filters", 'FilterOp.GT: "<="', 'FilterOp.GT: "<"'),
    "a negated range has no guard": Mutant("filters", "(not (exists {end}) or {end}", "(exists {end} and {end}"),
    "a negated range is not negated": Mutant("filters", "{OPPOSITE[op]}", "{SIGNS[op]}"),
    "not equal is equal": Mutant("filters", "Has(tuple(tokens), leaf.negated)", "Has(tuple(tokens))"),
    "null is not null": Mutant("filters", "negated=not leaf.negated", "negated=leaf.negated"),
    "the kind has no letter": Mutant("fields", "ranges[letter + name] = low", 'ranges["n" + name] = low'),
    "the greatest has no letter of its own": Mutant("fields", "ranges[letter.upper() + name] = low if greatest is least", "ranges[letter + name] = low if greatest is least"),
    "all kinds are one": Mutant("filters", "letter = KIND_LETTERS[kind]", 'letter = "n"'),
    "a list has its first element": Mutant("fields", "dict.fromkeys(tokens_of(lists))", "dict.fromkeys(tokens_of(lists)[:2])"),
    "the greatest is the least": Mutant("fields", "low if greatest is least else ordered_text(greatest)", "low"),
    "a scalar's kind has no letter": Mutant("fields", "equality, letter + name", 'equality, "n" + name'),
    "a scalar's least and greatest are one": Mutant("fields", "letter.upper() + name, _ordered", "letter + name, _ordered"),
    "a scalar true is one": Mutant("fields", "maxsize=16_384, typed=True)(_terms_of_scalar)", "maxsize=16_384)(_terms_of_scalar)"),
    "an empty string has no range": Mutant("fields", "if least:", "if code:"),
    "true is one": Mutant("fields", "maxsize=16_384, typed=True)(equality_token)", "maxsize=16_384)(equality_token)"),
    "names of keys are cut": Mutant("names", "key if _KEY.fullmatch(key) else", "key if _KEY.match(key) and key.isalnum() else key[:1] if key.isascii() and key[:1].isalnum() else"),
    "case of keys is lost": Mutant("names", "return key if _KEY", "return key.lower() if _KEY"),
    "unions of one are lost": Mutant("expressions", "tokens.update(dict.fromkeys(part.tokens))", "tokens.update(dict.fromkeys(part.tokens[:1]))"),
    "nor is or": Mutant("expressions", "part.negated is negated", "part.negated is not None"),
    "and is or": Mutant("expressions", "{joined(parts[:middle], word)} {word}", "{joined(parts[:middle], word)} or"),
    "everything is nothing": Mutant("expressions", "{ID} != {quoted('')}", "{ID} == {quoted('')}"),
    "long strings are exact": Mutant("filters", "op, code = string_bound(op, text, certain=negated, size=STRING_BYTES)", "code = string_text(text, STRING_BYTES).code"),
    "below a negation the wide bound": Mutant("filters", "certain=negated", "certain=False"),
    "nothing is quoted": Mutant("expressions", "return f'\"{code}\"'", "return code"),
}  # fmt: skip


LONG = "x" * 40
OWN: tuple[dict[str, dict[str, Any]], dict[str, set[str]]] = (
    {"one": {"k": "b"}, "two": {"j": 1}, "low": {"k": LONG + "a"}, "high": {"k": LONG + "z"}, "none": {}},
    {
        "k in ['a', 'b'] or j == 1": {"one", "two"},
        f"not k <= '{LONG}m'": {"two", "none", "high"},
        f"not k > '{LONG}m'": {"one", "two", "none", "low"},
        f"k > '{LONG}m'": {"high"},
    },
)
"""What only this engine's translation makes a difference of: unions that are merged, and the cut of strings."""


class Cases:
    """The shared cases of filters, and some of its own: documents, filters, and the ids that match."""

    def __init__(self) -> None:
        self.files: list[tuple[dict[str, Any], list[tuple[Expression, set[str]]]]] = [
            (OWN[0], [(parse_filter(text), found) for text, found in OWN[1].items()])
        ]
        for name in case_files():
            if not name.startswith("filters/"):
                continue
            content = load_cases(name)
            documents = {
                id_: clean_metadata({key: decoded(value) for key, value in metadata.items()})
                for id_, metadata in content["documents"].items()
            }
            cases = [
                (parse_filter(case["filter"]), set(case["matches"]))
                for case in content["cases"]
                if "error" not in case
            ]
            if documents and cases:
                self.files.append((documents, cases))

    def noticed(self, filters: ModuleType, fields: ModuleType, expressions: ModuleType) -> bool:
        """Whether a case is answered wrongly, or not at all."""
        converter = filters.MilvusFilterConverter()
        for documents, cases in self.files:
            rows = {
                name: fields.row_of(
                    fields.Content(name, None, metadata, encode_metadata(metadata), [1.0]), words=False
                )
                for name, metadata in documents.items()
            }
            for expression, matches in cases:
                converted = converter.convert(expression)
                try:
                    sent = expressions.rendered(converted.query)
                    for absent in (None, False):
                        found = {name for name, row in rows.items() if holds(sent, row, absent)}
                        if found != matches if converted.exact else not matches <= found:
                            return True
                except (AssertionError, KeyError, ValueError, EntrepotError):
                    return True
        return False


@pytest.fixture(scope="module")
def cases() -> Cases:
    return Cases()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty package that copies of the plugin's modules go into."""
    folder = tmp_path / "mutated_milvus"
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        del sys.modules[name]


def copied(package: Path, mutant: Mutant | None) -> list[ModuleType]:
    """Import copies of the plugin's modules, one with a fault."""
    home = Path(entrepot_milvus.__path__[0])
    for name in MODULES:
        source = (home / f"{name}.py").read_text("utf-8")
        if mutant is not None and name == mutant.module:
            assert source.count(mutant.old) == 1, "the mutant no longer fits the source"
            source = source.replace(mutant.old, mutant.new)
        (package / f"{name}.py").write_text(source.replace("entrepot_milvus", package.name), "utf-8")
    importlib.invalidate_caches()
    return [
        importlib.import_module(f"{package.name}.{name}") for name in ("filters", "fields", "expressions")
    ]


def test_the_cases_hold_without_a_fault(cases: Cases, package: Path) -> None:
    assert len(cases.files) > 8
    assert not cases.noticed(*copied(package, None))


@pytest.mark.parametrize("name", MUTANTS)
def test_every_fault_is_noticed(cases: Cases, package: Path, name: str) -> None:
    # F1 to F5, F9, F10
    assert cases.noticed(*copied(package, MUTANTS[name]))
