"""Filters on `qdrant-edge-py`, the vendor's engine within the process: a second witness, of payload filters alone. F1 to F9.

The engine is that of the server; its reader of JSON, its indexes and its meaning of conditions are tried here.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import qdrant_edge as edge
from qdrant_client import models

from entrepot.filters import evaluate
from entrepot.metadata import encode_metadata
from entrepot_conformance.fuzz import make_documents, run
from entrepot_qdrant import QdrantFilterConverter
from entrepot_qdrant.fields import payload_of, wishes
from entrepot_qdrant.names import point_id

if TYPE_CHECKING:
    from pathlib import Path

    from entrepot.filters import Expression

pytestmark = pytest.mark.slow

_SCHEMAS = {
    "keyword": edge.PayloadSchemaType.Keyword,
    "integer": edge.PayloadSchemaType.Integer,
    "datetime": edge.PayloadSchemaType.Datetime,
}


def of_edge(condition: Any) -> Any:
    """Write a condition of the client as one of the edge's, whose names differ."""
    if isinstance(condition, models.Filter):
        return edge.Filter(
            must=[of_edge(part) for part in condition.must] if condition.must else None,
            should=[of_edge(part) for part in condition.should] if condition.should else None,
            must_not=[of_edge(part) for part in condition.must_not] if condition.must_not else None,
        )
    if isinstance(condition, models.NestedCondition):
        return edge.NestedCondition(condition.nested.key, of_edge(condition.nested.filter))
    if isinstance(condition, models.IsEmptyCondition):
        return edge.IsEmptyCondition(condition.is_empty.key)
    if isinstance(condition, models.IsNullCondition):
        return edge.IsNullCondition(condition.is_null.key)
    if isinstance(condition.match, models.MatchValue):
        return edge.FieldCondition(condition.key, match=edge.MatchValue(condition.match.value))
    if isinstance(condition.match, models.MatchAny):
        return edge.FieldCondition(condition.key, match=edge.MatchAny(condition.match.any))
    limits = condition.range.model_dump(exclude_none=True, mode="json")
    kind = edge.RangeFloat if isinstance(condition.range, models.Range) else edge.RangeDateTime
    return edge.FieldCondition(condition.key, range=kind(**limits))


@pytest.mark.parametrize("indexed", [False, True], ids=["no indexes", "all indexes"])
def test_random_filters_agree_with_the_evaluator(tmp_path: Path, indexed: bool) -> None:
    seed = int(os.environ.get("ENTREPOT_FUZZ_SEED", "20261130"))
    documents: dict[str, Any] = dict(make_documents(seed))
    shard = edge.EdgeShard.create(
        str(tmp_path / "shard"), edge.EdgeConfig(vectors=edge.EdgeVectorParams(1, edge.Distance.Dot))
    )
    payloads = {
        name: payload_of(name, None, encode_metadata(metadata), metadata, "v")
        for name, metadata in documents.items()
    }
    points = [edge.Point(point_id(name), [1.0], payload) for name, payload in payloads.items()]
    shard.update(edge.UpdateOperation.upsert_points(points))
    if indexed:
        shard.update(edge.UpdateOperation.create_field_index("t", _SCHEMAS["keyword"]))
        for wish in dict.fromkeys(wish for payload in payloads.values() for wish in wishes(payload)):
            shard.update(edge.UpdateOperation.create_field_index(wish.path, _SCHEMAS[wish.kind]))

    def matches(expression: Expression) -> set[str]:
        converted = QdrantFilterConverter().convert(expression)
        asked = edge.ScrollRequest(
            limit=len(documents) + 1, with_payload=True, with_vector=False,
            filter=of_edge(models.Filter(must=[converted.query])),
        )  # fmt: skip
        found, _ = shard.scroll(asked)
        names = {str((point.payload or {})["id"]) for point in found}
        if converted.exact:
            return names
        return {name for name in names if evaluate(expression, documents[name])}

    run(matches, documents, count=int(os.environ.get("ENTREPOT_FUZZ_COUNT", "1000")), seed=seed)
    shard.close()
