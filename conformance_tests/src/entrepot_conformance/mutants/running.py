"""Tries mutants: each is put to the tests that cite its rule, until one fails.

Only a failure of what a test asserts is a kill: an assertion, a promised error that did not come, an answer
that the test's own code could not take apart, or an error of the library where an answer was promised. A
mutant that falls over with an exception of another kind, or before a test has begun, is broken, not killed;
and it has to pass a plain test of another rule first.
"""

from __future__ import annotations

import faulthandler
import io
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest
from hypothesis import Phase, settings

from entrepot.errors import EntrepotError
from entrepot_conformance.citations import SUITE, citations
from entrepot_conformance.mutants import opening
from entrepot_conformance.mutants.core import forget_forms
from entrepot_conformance.mutants.model import Mutant, all_mutants
from entrepot_conformance.rules import RULES

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from entrepot_conformance.targets import Kind

PLAIN: Final[dict[Kind, tuple[str, ...]]] = {
    "store": (
        "store/test_writing.py::test_a_text_of_none_and_an_empty_text_differ",
        "store/test_writing.py::test_add_returns_the_ids_in_order",
    ),
    "memory": (
        "memory/test_tail.py::test_a_tail_of_none_is_empty",
        "memory/test_replace.py::test_replace_makes_a_conversation",
    ),
}
"""Tests of little that a mutant passes, but for those of its own rule: it works apart from its fault."""
_FOLDERS: Final[dict[Kind, str]] = {"store": "store", "memory": "memory"}
_SLIPS: Final = (AttributeError, ImportError, NameError, NotImplementedError, RecursionError)
"""What code raises that is not finished; no mutant is meant to."""
_LONGEST: Final = 180
"""Seconds after which a mutant that hangs ends the run, with a traceback."""
_INI: Final = """[pytest]
addopts = --import-mode=importlib -p no:cacheprovider -p no:xdist
markers =
    slow: takes more than some seconds
"""


class Verdict(NamedTuple):
    """What became of a mutant.

    Attributes:
        name: The mutant's.
        rule: The rule that it breaks.
        killer: The test that failed on it, with its parameters; None if it survived or is broken.
        problem: What is wrong; empty if it was killed.
        seconds: How long that took.
    """

    name: str
    rule: str
    killer: str | None
    problem: str
    seconds: float


class _Watcher:
    """Watches a run of pytest: what failed, and whether that was what a test asserts."""

    def __init__(self, rule: str | None, first: Sequence[str]) -> None:
        self._rule = rule
        self._first = first
        self.ran = 0
        self.killer: str | None = None
        self.broken = ""
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._rule is not None:
            cited = citations()
            items[:] = [
                item for item in items if self._is_plain(item) or self._rule in cited.of(_name_of(item))
            ]
        # What draws examples by the hundred comes last: most mutants fall before.
        items.sort(key=lambda item: (not self._is_plain(item), "test_model" in item.nodeid))

    def _is_plain(self, item: pytest.Item) -> bool:
        return any(name.endswith(f"::{_function_of(item)}") for name in self._first)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        plain = self._is_plain(item)
        if call.when == "call" and not plain:
            self.ran += 1
        if report.failed and call.excinfo is not None:
            self.failed.append(item.nodeid)
            if call.when == "teardown":
                return report
            if call.when == "call" and not plain and _is_asserted(call.excinfo):
                self.killer = item.name
                item.session.shouldfail = "killed"
            else:
                text = f"{item.name} ({call.when}): {call.excinfo.exconly()}"
                self.broken = self.broken or text
                if plain:
                    item.session.shouldfail = "broken"
        return report


def _name_of(item: pytest.Item) -> str:
    """Return a test's name as citations have it, with its parameters."""
    return f"{item.path.relative_to(SUITE).as_posix()}::{item.name}"


def _function_of(item: pytest.Item) -> str:
    return getattr(item, "originalname", item.name)


def _is_asserted(found: pytest.ExceptionInfo[BaseException]) -> bool:
    """Whether a test failed by what it asserts."""
    error: BaseException | None = found.value
    # pytest.fail() is what a promised exception that did not come ends in, too.
    if isinstance(error, AssertionError | pytest.fail.Exception):
        return True
    if isinstance(error, EntrepotError):
        causes: list[BaseException] = []
        while error is not None and error not in causes:
            causes.append(error)
            error = error.__cause__
        return not any(isinstance(cause, _SLIPS) for cause in causes)
    return SUITE in Path(str(found.traceback[-1].path)).parents


def run_suite(
    kind: Kind, rule: str | None, tests: Sequence[str], plain: Sequence[str], *, slow: bool
) -> _Watcher:
    """Run tests of the suite on the class that was chosen, within this process.

    Args:
        kind: What is tested.
        rule: Of tests that run for one rule at a time, only the runs for this one; None for all.
        tests: Tests as `citations` names them.
        plain: Tests that come first and have to pass.
        slow: Whether to run those that are marked slow, and no others.
    """
    # No shrinking, as nobody reads the example; and the same examples each time.
    settings.register_profile(
        "mutants", phases=[Phase.explicit, Phase.generate], database=None, derandomize=True
    )
    settings.load_profile("mutants")
    watcher = _Watcher(rule, plain)
    target = f"{opening.__name__}:{kind.upper()}"
    with tempfile.TemporaryDirectory() as folder:
        ini = Path(folder) / "pytest.ini"
        ini.write_text(_INI)
        arguments = ["-q", "--tb=native", "-c", str(ini), "--rootdir", folder, "--basetemp", f"{folder}/temp"]
        arguments += ["--target", target, "-m", "slow" if slow else "not slow"]
        names: list[str] = list(dict.fromkeys([*([] if slow else plain), *tests]))
        with redirect_stdout(io.StringIO()) as said, redirect_stderr(said):
            code = pytest.main([*arguments, *(str(SUITE / name) for name in names)], plugins=[watcher])
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
        watcher.broken = watcher.broken or f"pytest ended with {code!r}: {said.getvalue()[-2000:]}"
    return watcher


def citing(mutant: Mutant) -> list[str]:
    """Return the tests of the mutant's kind that cite its rule."""
    folder = _FOLDERS[mutant.kind]
    return [name for name in citations().tests[mutant.rule] if name.startswith(f"{folder}/")]


def try_mutant(name: str) -> Verdict:
    """Put a mutant to the tests that cite its rule."""
    mutant = all_mutants()[name]
    began = time.perf_counter()
    tests = citing(mutant)
    plain = [test for test in PLAIN[mutant.kind] if test not in tests]
    if not tests:
        return Verdict(name, mutant.rule, None, f"no test of this kind cites {mutant.rule}", 0.0)
    opening.choose(mutant.made)
    faulthandler.dump_traceback_later(_LONGEST, exit=True)
    with ExitStack() as stack:
        stack.callback(faulthandler.cancel_dump_traceback_later)
        try:
            stack.enter_context(mutant.patch())
        except Exception as error:  # noqa: BLE001 - a mutant that cannot be made is told, not a crash
            return Verdict(name, mutant.rule, None, f"is broken: {error!r}", time.perf_counter() - began)
        forget_forms()  # those that another mutant or the plain library has left
        watched = run_suite(mutant.kind, mutant.rule, tests, plain, slow=mutant.slow)
    seconds = time.perf_counter() - began
    if watched.killer is not None:
        return Verdict(name, mutant.rule, watched.killer, "", seconds)
    problem = f"is broken: {watched.broken}" if watched.broken else f"survived {watched.ran} tests"
    return Verdict(name, mutant.rule, None, problem, seconds)


def try_base(name: str) -> Verdict:
    """Put what a mutant is without its fault to the same tests: it has to pass them all."""
    mutant = all_mutants()[name]
    base, kind = mutant.base, mutant.kind
    began = time.perf_counter()
    rules = {other.rule for other in all_mutants().values() if other.base is base and not other.slow}
    cited = citations()
    tests = [test for test, its in cited.rules.items() if rules & set(its) and test.startswith(f"{kind}/")]
    opening.choose(base)
    watched = run_suite(kind, None, tests, (), slow=False)
    problem = (
        f"fails {', '.join(watched.failed)}: {watched.broken}" if watched.failed or watched.broken else ""
    )
    return Verdict(
        base.__name__, " ".join(sorted(rules)), f"{watched.ran} tests", problem, time.perf_counter() - began
    )


def bases(mutants: Sequence[Mutant]) -> list[str]:
    """Return one mutant's name for each base that no other run of the suite tries."""
    tried_elsewhere = ("entrepot.",)
    found = {
        mutant.base: mutant.name
        for mutant in mutants
        if not mutant.base.__module__.startswith(tried_elsewhere)
    }
    return list(found.values())


def unbroken_rules() -> list[str]:
    """Return the rules that no mutant breaks."""
    broken = {mutant.rule for mutant in all_mutants().values()}
    return [rule for rule in RULES if rule not in broken]


def try_all(names: Sequence[str], workers: int) -> Iterator[Verdict]:
    """Try mutants, in as many processes, and the bases that they are made of; verdicts come as they fall."""
    mutants = all_mutants()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(try_base, name) for name in bases([mutants[name] for name in names])]
        futures += [pool.submit(try_mutant, name) for name in names]
        for future in as_completed(futures):
            yield future.result()


def table(verdicts: Sequence[Verdict]) -> str:
    """Return verdicts as lines: the mutant, the rule that it breaks, and the test that noticed."""
    order = {rule: place for place, rule in enumerate(RULES)}
    ordered = sorted(verdicts, key=lambda verdict: (order.get(verdict.rule, -1), verdict.name))
    width = max((len(verdict.name) for verdict in verdicts), default=0)

    def told(verdict: Verdict) -> Any:
        return verdict.problem.upper() if verdict.killer is None else verdict.problem or verdict.killer

    return "\n".join(f"{verdict.name:<{width}}  {verdict.rule:<4} {told(verdict)}" for verdict in ordered)
