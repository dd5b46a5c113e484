"""The converter, and its clauses on the server: F1 to F6, F9, F10."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from core.tests.filters.strategies import any_scalars, expressions, leaves, well_formed_text
from hypothesis import given

from entrepot import Document, F, parse_filter
from entrepot.filters import Expression, evaluate
from entrepot_conformance.fuzz import make_documents
from entrepot_postgres import PostgresFilterConverter

if TYPE_CHECKING:
    from plugins.postgres.tests.servers import Make

    from entrepot_postgres import PostgresVectorStore

WORDS = re.compile(
    r"(?:[()]| |%s|doc\.terms|NOT|AND|OR|ANY|\?|@>|true|false|jsonb_path_exists|,|::(?:text|jsonb|jsonpath)(?:\[\])?)*"
)


def test_leaves_in_sql() -> None:
    def sql(text: str) -> tuple[str, tuple[Any, ...]]:
        converted = PostgresFilterConverter().convert(parse_filter(text))
        assert converted.exact
        return converted.query

    assert sql("k == 1") == ("(doc.terms @> ANY(%s::text[]::jsonb[]))", (['{"k":1}', '{"k":[1]}'],))
    assert sql("k != 'a'") == ("NOT (doc.terms @> ANY(%s::text[]::jsonb[]))", (['{"k":"a"}', '{"k":["a"]}'],))
    assert sql("k is null") == ("NOT (doc.terms ? %s::text)", ("k",))
    assert sql("k is not null") == ("(doc.terms ? %s::text)", ("k",))
    path = "jsonb_path_exists(doc.terms, %s::jsonpath, %s::jsonb)"
    assert sql("k < 5") == (path, ('$."k" ? (@ < $v)', '{"v":5}'))
    assert sql("not k >= 'b'") == (f"NOT {path}", ('$."k" ? (@ >= $v)', '{"v":"b"}'))
    assert sql("k > datetime '2026-01-31T12:00:00Z'") == (
        path,
        ('$."k"."datetime" ? (@ > $v)', '{"v":"2026-01-31T12:00:00.000000Z"}'),
    )
    assert sql("k in []") == ("false", ())
    assert sql("k not in []") == ("true", ())


@given(expressions(leaves(well_formed_text(min_size=1).map(lambda name: name + "'\"%s;--"), any_scalars())))
def test_nothing_of_a_filter_gets_into_the_sql(expression: Expression) -> None:
    # F10, F9
    converted = PostgresFilterConverter().convert(expression)
    assert converted.exact
    assert WORDS.fullmatch(converted.query.sql)
    assert converted.query.sql.count("%s") == len(converted.query.bound)


def filled(store: PostgresVectorStore, metadata: dict[str, dict[str, Any]]) -> PostgresVectorStore:
    store.add(
        [Document(None, id=name, metadata=value, vector=[1.0, 1.0]) for name, value in metadata.items()]
    )
    return store


def test_the_index_answers_as_the_rows_do(make: Make, schema: str) -> None:
    # F2, F4, F9: the GIN index forced, and forbidden
    store = filled(make(index="none"), make_documents(7))
    pool: Any = store.native_client
    documents = {document.id: document.metadata for document in store.scan()}
    from entrepot_conformance.pools import KEYS, VALUES

    converter = PostgresFilterConverter()
    plans: set[str] = set()
    with pool.connection() as connection:
        for forbidden in ("seqscan", "bitmapscan"):
            connection.execute("RESET ALL")
            connection.execute(f"SET enable_{forbidden} = off")
            for key in KEYS[:4]:
                for value in VALUES:
                    clause = converter.convert(F[key] == value).query
                    query = f'SELECT id FROM "{schema}"."default" AS doc WHERE {clause.sql}'
                    expected = {
                        name for name, metadata in documents.items() if evaluate(F[key] == value, metadata)
                    }
                    assert {row[0] for row in connection.execute(query, clause.bound)} == expected
            clause = converter.convert(F.a == "a").query
            plan = connection.execute(
                f'EXPLAIN SELECT id FROM "{schema}"."default" AS doc WHERE {clause.sql}', clause.bound
            ).fetchall()
            plans.add("gin" if "Bitmap Index Scan" in str(plan) else "rows")
        connection.execute("RESET ALL")
    assert plans == {"gin", "rows"}


HARD_KEYS = [
    'a"b', "a\\b", "ключ", "\u2028", "\t", "\x01", "\x7f", "é", "e\u0301", "\U0001f600", "$", "$v", "@", "%s", "%", "%%",
    "{}", "a.b", "*", "**", '"] ? (true)', "' OR true --", "); DROP TABLE x; --", "x" * 512, " ", "\n", "datetime", "::text",
]  # fmt: skip


def test_hard_keys(make: Make) -> None:
    # F10, D3, F1
    instant = datetime(2026, 1, 31, 12, 0, 0, 1, tzinfo=UTC)
    store = filled(
        make(index="none"),
        {
            f"{n:02}": {key: [n, n + 0.5], "shadow": key, f"{key[:500]} at": instant}
            for n, key in enumerate(HARD_KEYS)
        },
    )
    for n, key in enumerate(HARD_KEYS):
        one = [f"{n:02}"]
        for expression in (
            F[key] == n,
            F[key].in_([n + 0.5, "x"]),
            F[key] <= n,
            F[key] > n,
            F[key].is_not_null(),
            F.shadow == key,
            (F[key[:500] + " at"] >= instant) & ~(F[key[:500] + " at"] > instant),
        ):
            found = [document.id for document in store.scan(expression, include=[])]
            assert found == one, (key, expression)
        assert store.count(F[key] != n) == len(HARD_KEYS) - 1


def test_the_largest_filters_are_answered(make: Make) -> None:
    # F6: 65,535 parameters are the most that the protocol takes
    store = filled(make(index="none"), {str(n): {"n": n} for n in range(20)})
    wide = F.n < -1
    for number in range(1, 5_000):
        wide = wide | (F.n < -number)
    many = F.n.in_(list(range(5, 9_900)))
    deep = F.n == 1
    for level in range(2, 101):
        deep = ~deep if level % 2 else (deep | (F.n == level))
    assert store.count(wide) == 0
    assert store.count(many) == 15
    assert store.count(~many) == 5
    assert store.where(wide | (F.n == 3)).where(many | (F.n == 3)).count(wide | (F.n == 3)) == 1
    expected = {str(n) for n in range(20) if evaluate(deep, {"n": n})}
    assert {document.id for document in store.scan(deep)} == expected


def test_explain_says_that_all_is_pushed(make: Make) -> None:
    # F9
    explanation = make().explain("not (n > 1 or k is null)")
    assert explanation.exact
    assert explanation.filter == "NOT n > 1 AND k IS NOT NULL"
    assert all(line.startswith("exact") for line in explanation.pushed)
