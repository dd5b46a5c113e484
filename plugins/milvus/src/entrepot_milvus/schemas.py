"""What a new collection is made of: its fields and indexes. No I/O."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pymilvus import DataType, Function, FunctionType, MilvusClient  # type: ignore[import-untyped]

from entrepot.capabilities import Metric
from entrepot_milvus import fields
from entrepot_milvus.plugin import LONGEST

if TYPE_CHECKING:
    from collections.abc import Generator

    from entrepot_milvus.catalog import Place, Plan

# Vectors are normalised where they are compared by angle, so their product is the cosine.
_METRICS: Final = {Metric.COSINE: "IP", Metric.DOT: "IP", Metric.EUCLIDEAN: "L2"}
_NAME_BYTES: Final = 2048
_ID_BYTES: Final = 32
_TOKEN_BYTES: Final = 24
_CLIENT: Final[Any] = MilvusClient  # its static functions are typed in part


def schema(dimension: int, *, words: bool) -> Any:
    """Return the schema of a collection that is made.

    Args:
        dimension: Components of its vectors.
        words: Whether the engine shall rank by words.
    """
    made = _CLIENT.create_schema(auto_id=False, enable_dynamic_field=False)
    for name, size in (
        (fields.ID, _ID_BYTES),
        (fields.NAME, _NAME_BYTES),
        (fields.TEXT, LONGEST),
        (fields.METADATA, LONGEST),
        (fields.MORE_METADATA, LONGEST),
    ):
        made.add_field(name, DataType.VARCHAR, is_primary=name == fields.ID, max_length=size)
    made.add_field(fields.WITH_TEXT, DataType.BOOL)
    made.add_field(fields.VECTOR, DataType.FLOAT_VECTOR, dim=dimension)
    made.add_field(
        fields.TOKENS,
        DataType.ARRAY,
        element_type=DataType.VARCHAR,
        max_length=_TOKEN_BYTES,
        max_capacity=fields.MOST_TOKENS,
    )
    made.add_field(fields.RANGES, DataType.JSON)
    if words:
        analyzer = {"tokenizer": "standard"}
        made.add_field(
            fields.WORDS, DataType.VARCHAR, max_length=LONGEST, enable_analyzer=True, analyzer_params=analyzer
        )
        made.add_field(fields.SPARSE, DataType.SPARSE_FLOAT_VECTOR)
        made.add_function(
            Function(
                name="ranking",
                function_type=FunctionType.BM25,
                input_field_names=[fields.WORDS],
                output_field_names=[fields.SPARSE],
            )
        )
    return made


def indexes(place: Place, plan: Plan) -> Generator[tuple[str, Any]]:
    """Yield the fields of a collection that have indexes, and what the client is told about each."""
    dense = _CLIENT.prepare_index_params()
    metric = _METRICS[place.info.metric]
    if place.kind == "hnsw":
        graph = {"M": plan.m, "efConstruction": plan.ef_construction}
        dense.add_index(
            fields.VECTOR, index_name=fields.VECTOR, index_type="HNSW", metric_type=metric, params=graph
        )
    else:
        dense.add_index(fields.VECTOR, index_name=fields.VECTOR, index_type="FLAT", metric_type=metric)
    yield fields.VECTOR, dense
    if place.words:
        sparse = _CLIENT.prepare_index_params()
        sparse.add_index(
            fields.SPARSE, index_name=fields.SPARSE, index_type="SPARSE_INVERTED_INDEX", metric_type="BM25"
        )
        yield fields.SPARSE, sparse
