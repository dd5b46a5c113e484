"""Pages of several conjunctions, merged in the order of tokens: D7. The engine is a list of rows here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from entrepot.records import CollectionInfo
from entrepot.scripted import carry_out
from entrepot_cassandra.catalog import Place
from entrepot_cassandra.commands import Ask, Rows, Together
from entrepot_cassandra.filters import Way
from entrepot_cassandra.reading import Position, merged, position, stored

if TYPE_CHECKING:
    from collections.abc import Sequence

PLACE = Place("k", "t", CollectionInfo(name="c", dimension=2), 0, {})


class Engine:
    """Answers statements on rows: a token, an id, and the tokens that the row's set contains."""

    def __init__(self, rows: Sequence[tuple[int, str, frozenset[str]]], page: int) -> None:
        self.rows = sorted(rows, key=lambda row: (row[0], row[1].encode()))
        self.page = page

    def answer(self, ask: Ask) -> Rows:
        assert ask.page is not None
        values = list(ask.values)
        begin = values.pop() if "token(id) >= ?" in ask.cql else -(2**63)
        found = [row[:2] for row in self.rows if row[0] >= begin and row[2].issuperset(values)]
        start = int(ask.state or b"0")
        end = start + min(self.page, ask.page)
        # An engine may say that there is more when there is not.
        return Rows(list(found[start:end]), str(end).encode() if end <= len(found) else None)

    def __call__(self, asked: object) -> Any:
        return [self.answer(ask) for ask in cast("Together", asked).asks]


names = st.text("abc\u00e9", min_size=1, max_size=3)
rows = st.lists(
    st.tuples(st.integers(-3, 3), names, st.frozensets(st.sampled_from("xyz"))),
    max_size=30,
    unique_by=lambda row: row[1],
)
some_ways = st.lists(st.frozensets(st.sampled_from("xyz"), max_size=2), min_size=1, max_size=3)


@settings(max_examples=100, deadline=None)
@given(rows=rows, ways=some_ways, size=st.integers(1, 7), page=st.integers(1, 5))
def test_every_row_comes_once_whatever_the_pages(
    rows: list[tuple[int, str, frozenset[str]]], ways: list[frozenset[str]], size: int, page: int
) -> None:
    # D7: ids whose tokens meet are told apart by their bytes
    engine = Engine(rows, page)
    asked = tuple(Way(tuple(sorted(way))) for way in ways)
    found: list[str] = []
    after: Position | None = None
    more = True
    while more:
        part, more = carry_out(merged(PLACE, asked, (), after, size), engine)
        assert len(part) <= size
        assert len(part) == size or not more
        found += [row[1] for row in part]
        after = position(part[-1]) if part else after
        more = more and bool(part)
    wanted = [row[1] for row in engine.rows if any(way <= row[2] for way in ways)]
    assert found == wanted


def test_a_page_of_long_vectors_has_few_rows() -> None:
    # E3: the driver reads a page in one step, 0.2 us for each number, in which no event loop runs
    place = PLACE._replace(info=CollectionInfo(name="c", dimension=8192))
    sizes: list[int] = []

    def empty(asked: object) -> Any:
        asks = cast("Together", asked).asks
        sizes.extend(len(ask.values[-1]) if ask.page is None else ask.page for ask in asks)
        return [Rows([]) for _ in asks]

    carry_out(merged(place, (Way(),), ("text", "v"), None, 1000), empty)
    carry_out(stored(place, [str(n) for n in range(100)], ("v",)), empty)
    assert max(sizes) * 8192 * 0.2e-6 < 0.01
    sizes.clear()
    carry_out(merged(place, (Way(),), ("text",), None, 1000), empty)
    carry_out(stored(place, [str(n) for n in range(100)], ("m",)), empty)
    assert sizes == [1001, 50, 50]


@settings(max_examples=50, deadline=None)
@given(rows=rows, size=st.integers(1, 7))
def test_pages_of_vectors_leave_nothing_out(rows: list[tuple[int, str, frozenset[str]]], size: int) -> None:
    # D7
    place = PLACE._replace(info=CollectionInfo(name="c", dimension=8192))
    engine = Engine(rows, 1000)
    found: list[str] = []
    after: Position | None = None
    more = True
    while more:
        part, more = carry_out(merged(place, (Way(), Way(("x",))), ("v",), after, size), engine)
        assert len(part) == size or not more
        found += [row[1] for row in part]
        after = position(part[-1]) if part else after
        more = more and bool(part)
    assert found == [row[1] for row in engine.rows]
