# pyright: reportPrivateUsage=false
"""How a collection is begun: D5. No server."""

from __future__ import annotations

import pytest

from entrepot.capabilities import Metric
from entrepot.records import CollectionInfo
from entrepot.scripted import carry_out
from entrepot_cassandra import catalog
from entrepot_cassandra.commands import Ask, Rows, Schema
from entrepot_cassandra.names import CATALOGUE

INFO = CollectionInfo(name="c", dimension=2, metric=Metric.EUCLIDEAN, model=None)


@pytest.mark.parametrize("there", [True, False])
def test_the_catalogue_is_made_where_it_is_missing(*, there: bool) -> None:
    # D5: a change of the schema waits for those of all others, so none is made in vain
    changes: list[str] = []

    def engine(asked: object) -> Rows:
        if isinstance(asked, Schema):
            changes.append(asked.cql)
            return Rows([])
        assert isinstance(asked, Ask)
        if asked.writes:
            assert there or changes
            return Rows([(True,)])
        return Rows([(CATALOGUE,)] if there else [])

    record = carry_out(catalog._begun("k", INFO, 4), engine)
    assert not record.ready
    assert (record.place.info, record.place.slots, record.place.keys) == (INFO, 4, {})
    assert len(changes) == (0 if there else 1)
    assert all(CATALOGUE in one for one in changes)
