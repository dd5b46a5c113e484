"""Order, identity and bytes of the codes of instants."""

import operator
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrepot.encoding import (
    INSTANT_BITS,
    compact,
    instant_at,
    instant_code,
    instant_text,
    iso_instant,
    microseconds,
)

FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)

offsets = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
edges = st.sampled_from([FIRST, FIRST + timedelta(microseconds=1), LAST, LAST - timedelta(microseconds=1)])
# Naive bounds, as hypothesis asks; a day from the ends, so that no offset leaves the years 1 to 9999 in UTC.
A_DAY = timedelta(days=1)
anywhere = st.datetimes(datetime.min + A_DAY, datetime.max - A_DAY, timezones=offsets)  # noqa: DTZ901 - bounds
instants = anywhere | edges


@st.composite
def pairs(draw: st.DrawFn) -> tuple[datetime, datetime]:
    first = draw(instants)
    if draw(st.booleans()):
        return first, draw(instants)
    shift = timedelta(microseconds=draw(st.integers(-2, 2)))
    return first, first + min(max(shift, FIRST - first), LAST - first)


@given(pairs())
def test_codes_of_instants_compare_as_the_instants(pair: tuple[datetime, datetime]) -> None:
    # F4: by instant, whatever the offset
    a, b = pair
    for compare in (operator.lt, operator.le, operator.eq, operator.ge, operator.gt):
        assert compare(instant_code(a), instant_code(b)) == compare(a, b)
        assert compare(instant_text(a), instant_text(b)) == compare(a, b)
        assert compare(compact(instant_text(a)), compact(instant_text(b))) == compare(a, b)
        assert compare(iso_instant(a), iso_instant(b)) == compare(a, b)


@given(instants)
def test_microseconds_lose_nothing(instant: datetime) -> None:
    # D4: the same instant to the microsecond, in UTC
    back = instant_at(microseconds(instant))
    assert back == instant
    assert back.tzinfo is UTC
    assert datetime.fromisoformat(iso_instant(instant)) == instant


@given(instants)
def test_widths_are_fixed(instant: datetime) -> None:
    assert 0 <= instant_code(instant) < 2**INSTANT_BITS
    assert len(instant_text(instant)) == 12
    assert set(instant_text(instant)) <= set("0123456789abcdefghijklmnopqrstuv")
    assert len(iso_instant(instant)) == 27


def test_bytes_of_the_codes_are_fixed() -> None:
    assert INSTANT_BITS == 59
    assert instant_code(FIRST) == 0
    assert instant_text(FIRST) == 12 * "0"
    assert iso_instant(FIRST) == "0001-01-01T00:00:00.000000Z"
    assert microseconds(FIRST) == -62_135_596_800_000_000
    assert instant_code(LAST) == 315_537_897_599_999_999
    assert microseconds(LAST) == 253_402_300_799_999_999
    assert iso_instant(LAST) == "9999-12-31T23:59:59.999999Z"
    assert microseconds(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    # 1 µs after year 1 is the lowest of 59 bits, one bit is left below it: ..00010
    assert instant_text(FIRST + timedelta(microseconds=1)) == 11 * "0" + "2"


def test_the_hour_that_comes_twice_is_two_instants() -> None:
    # F4: by instant
    sofia = ZoneInfo("Europe/Sofia")
    first = datetime(2026, 10, 25, 3, 30, tzinfo=sofia)
    second = first.replace(fold=1)
    assert microseconds(second) - microseconds(first) == 3_600_000_000
    assert instant_text(first) < instant_text(second)


@pytest.mark.parametrize("encode", [microseconds, instant_code, instant_text])
def test_a_naive_datetime_is_no_instant(encode: Callable[[datetime], object]) -> None:
    # D3
    with pytest.raises(TypeError):
        encode(datetime(2026, 1, 1))  # noqa: DTZ001 - the point


def test_a_naive_datetime_has_no_iso_text() -> None:
    # D3
    with pytest.raises(ValueError, match="timezone"):
        iso_instant(datetime(2026, 1, 1))  # noqa: DTZ001 - the point
