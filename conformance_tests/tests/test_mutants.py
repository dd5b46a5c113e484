"""Mutants are killed by tests that cite their rules, and by nothing else."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

MODULE = textwrap.dedent("""
    import sys

    from entrepot import InMemoryChatMemoryRepository, SimpleVectorStore
    from entrepot.capabilities import Capabilities
    from entrepot_conformance.mutants import model, opening, running

    @model.breaks("M7", "memory")
    class Whole(InMemoryChatMemoryRepository):
        "Is no mutant at all."

    @model.breaks("M7", "memory")
    class Unmade(InMemoryChatMemoryRepository):
        "Cannot be made."

        def __init__(self, **options):
            raise RuntimeError("not made")

    @model.breaks("M7", "memory")
    class Falling(InMemoryChatMemoryRepository):
        "Falls over in what the rule is about."

        def _tail(self, conversation_id, last):
            return super()._tail(conversation_id, last) if last is None else undefined

    @model.breaks("M7", "memory")
    class Useless(InMemoryChatMemoryRepository):
        "Keeps nothing."

        def _replace(self, conversation_id, entries):
            pass

    @model.breaks("D7", "store")
    class Elsewhere(SimpleVectorStore):
        "Breaks another rule than it says: S1."

        def similarity_search(self, *arguments, **options):
            return super().similarity_search(*arguments, **options)[::-1]

    @model.breaks_core("M7", InMemoryChatMemoryRepository, "memory")
    def unpatchable():
        "Changes what is not there."
        raise AttributeError("not there")

    class Declining(InMemoryChatMemoryRepository):
        "Declines what may be declined."
        capabilities = Capabilities(ttl=False, memory_search=False)

    if __name__ == "__main__":
        for name in ("Whole", "Unmade", "Falling", "Useless", "Elsewhere", "Unpatchable"):
            verdict = running.try_mutant(name)
            print(name, verdict.killer, verdict.problem.partition(chr(10))[0], sep="|")
        opening.choose(Declining)
        tests = [f"memory/test_{name}.py" for name in ("expiry", "questions", "tail")]
        watched = running.run_suite("memory", None, tests, (), slow=False)
        print("Declining", watched.ran > 20, watched.failed, watched.broken, sep="|")
""")


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )


def test_what_survives_or_is_broken_is_not_killed(tmp_path: Path) -> None:
    (tmp_path / "made.py").write_text(MODULE)
    done = run("made.py", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    said = {line.partition("|")[0]: line.partition("|")[2] for line in done.stdout.splitlines()}
    assert said["Whole"].startswith("None|survived ")
    assert said["Unmade"].startswith("None|is broken: test_")
    assert "(setup)" in said["Unmade"] or "RuntimeError: not made" in said["Unmade"]
    assert said["Falling"].startswith("None|is broken: ")
    assert "NameError" in said["Falling"] or "BackendError" in said["Falling"]
    assert said["Useless"].startswith("None|is broken: test_replace_makes_a_conversation")
    assert said["Elsewhere"].startswith("None|survived ")
    assert said["Unpatchable"] == "None|is broken: AttributeError('not there')"
    assert said["Declining"] == "True|[]|"


def test_the_command_tells_which_test_killed(tmp_path: Path) -> None:
    done = run("-m", "entrepot_conformance.mutants", "Sorted", "EmptyTexts", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["EmptyTexts", "D4", "test_a_text_of_none_and_an_empty_text_differ[mutant]"]
    assert lines[1].split() == ["Sorted", "M1", "test_timestamps_order_nothing[mutant]"]
    assert lines[2].startswith("2 of 2 mutants killed")


def test_the_command_lists_them(tmp_path: Path) -> None:
    done = run("-m", "entrepot_conformance.mutants", "--list", "D1", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "ShortIds" in done.stdout
    assert "Keeps 255 characters of an id." in done.stdout
    unknown = run("-m", "entrepot_conformance.mutants", "Nosuch", folder=tmp_path)
    assert unknown.returncode == 2
    assert "no mutant or rule called Nosuch" in unknown.stderr


@pytest.mark.parametrize(
    ("rule", "doc", "message"),
    [("F99", "Wrong.", "which the contract does not have"), ("F1", None, "does not say what is wrong")],
)
def test_a_mutant_names_a_rule_and_says_what_is_wrong(rule: str, doc: str | None, message: str) -> None:
    from entrepot import SimpleVectorStore
    from entrepot_conformance.mutants.model import breaks

    class Made(SimpleVectorStore):
        pass

    Made.__doc__ = doc
    with pytest.raises(ValueError, match=message):
        breaks(rule, "store")(Made)
