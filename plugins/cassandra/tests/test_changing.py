# pyright: reportPrivateUsage=false
"""Writes whose answers are lost are sent again, and never counted twice: E4, D2, D6. No server is needed."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from entrepot.errors import (
    BackendError,
    CollectionNotFoundError,
    EntrepotError,
    OperationTimeoutError,
    UnreachableError,
)
from entrepot.records import CollectionInfo
from entrepot.scripted import carry_out
from entrepot_cassandra import changing
from entrepot_cassandra.catalog import Place
from entrepot_cassandra.changing import Change
from entrepot_cassandra.commands import Ask, Pause, Rows, Together
from entrepot_cassandra.faults import MissingError

PLACE = Place("k", "t", CollectionInfo(name="c", dimension=2), 0, {})
LOST = UnreachableError("lost", outcome="unknown")
UNSENT = UnreachableError("unsent", outcome="not_done")
APPLIED = Rows([(True,)])


def changes(*names: str) -> list[Change]:
    return [Change(name, Ask("UPDATE", (name,), writes=True), uuid4()) for name in names]


def answered(script: Any, answers: dict[str, list[object]]) -> tuple[set[str], list[str]]:
    """Carry out a script; each statement on a name gets the next of its answers."""

    def ask(command: object) -> object:
        if isinstance(command, Pause):
            return None
        assert isinstance(command, Together)
        return [answers[one.values[0]].pop(0) for one in command.asks]

    found: tuple[set[str], list[str]] = carry_out(script, ask)
    assert not any(answers.values())
    return found


def refused(ver: UUID | None) -> Rows:
    return Rows([(False, ver)])


def test_what_was_lost_is_sent_again_and_the_rest_is_not() -> None:
    one, two = given = changes("one", "two")
    assert one.ver != two.ver
    answers: dict[str, list[object]] = {"one": [APPLIED], "two": [LOST, UNSENT, APPLIED]}
    assert answered(changing._send(PLACE, given), answers) == ({"one", "two"}, [])


def test_a_second_try_that_meets_its_own_version_was_made() -> None:
    (one,) = given = changes("one")
    assert answered(changing._send(PLACE, given), {"one": [LOST, refused(one.ver)]}) == ({"one"}, [])
    assert answered(changing._send(PLACE, given), {"one": [LOST, refused(uuid4())]}) == (set(), ["one"])
    gone = [Change("one", Ask("DELETE", ("one",), writes=True))]
    assert answered(changing._send(PLACE, gone), {"one": [LOST, Rows([(False,)])]}) == ({"one"}, [])
    assert answered(changing._send(PLACE, gone), {"one": [refused(uuid4())]}) == (set(), ["one"])


@pytest.mark.parametrize(
    ("first", "second", "began", "outcome"),
    [
        (APPLIED, BackendError("no"), False, "unknown"),
        (UNSENT, BackendError("no"), False, "not_done"),
        (LOST, BackendError("no"), False, "unknown"),
        (UNSENT, BackendError("no"), True, "unknown"),
        (APPLIED, OperationTimeoutError("late", outcome="unknown"), False, "unknown"),
    ],
)
def test_an_error_tells_whether_anything_may_be_done(
    first: object, second: object, began: bool, outcome: str
) -> None:
    # E4
    with pytest.raises(EntrepotError) as caught:
        answered(changing._send(PLACE, changes("one", "two"), began=began), {"one": [first], "two": [second]})
    assert caught.value.outcome == outcome


def test_a_missing_table_is_no_collection() -> None:
    # D5
    with pytest.raises(CollectionNotFoundError):
        answered(changing._send(PLACE, changes("one")), {"one": [MissingError("gone")]})


def test_when_the_time_is_up_the_last_failure_is_told() -> None:
    # E1, E4
    cause = OSError("broken")
    failure = UnreachableError("lost", outcome="unknown")
    failure.__cause__ = cause
    asked: list[object] = []

    def ask(command: object) -> object:
        asked.append(command)
        if isinstance(command, Pause):
            raise OperationTimeoutError("no time left")
        return [failure]

    with pytest.raises(UnreachableError) as caught:
        carry_out(changing._send(PLACE, changes("one")), ask)
    assert caught.value.__cause__ is cause
    assert caught.value.outcome == "unknown"
    assert [type(one) for one in asked] == [Together, Pause]
