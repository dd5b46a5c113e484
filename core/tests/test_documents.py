"""Documents and how they are formatted: D1, D2."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import numpy as np
import pytest

from entrepot import ContentFormatter, Document, Media, MetadataMode
from entrepot.errors import ArgumentTypeError, ConfigurationError, MessageError


def test_an_id_is_generated_when_none_is_given() -> None:
    # D1
    first, second = Document("a"), Document("a", id=None)
    assert first.id != second.id
    assert uuid.UUID(first.id).version == 4
    assert uuid.UUID(second.id).version == 4


def test_none_stands_for_empty_metadata() -> None:
    assert Document("a", metadata=None).metadata == {}


def test_a_document_is_a_value() -> None:
    document = Document("a", id="1")
    with pytest.raises(AttributeError):
        document.text = "b"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]
    assert document.replace(text="b").text == "b"
    assert document.text == "a"


def test_equality_compares_vectors_and_types() -> None:
    # D4
    one = Document("a", id="1", metadata={"n": 1}, vector=np.array([1, 2], dtype=np.float32))
    assert one == one.replace(vector=np.array([1, 2], dtype=np.float32))
    assert one != one.replace(vector=None)
    assert one != one.replace(metadata={"n": 1.0})
    assert one != one.replace(score=0.5)
    assert one != "a"
    with pytest.raises(TypeError):
        hash(one)


def test_modes_show_what_they_say() -> None:
    formatter = ContentFormatter(
        embed_excluded=frozenset({"year"}), inference_excluded=frozenset({"country"})
    )
    document = Document("Sofia", metadata={"country": "BG", "year": 2020, "gone": None}, formatter=formatter)
    assert document.formatted() == "country: BG\nyear: 2020\n\nSofia"
    assert document.formatted(MetadataMode.EMBED) == "country: BG\n\nSofia"
    assert document.formatted(MetadataMode.INFERENCE) == "year: 2020\n\nSofia"
    assert document.formatted(MetadataMode.NONE) == "Sofia"


def test_without_metadata_the_content_stands_alone() -> None:
    assert Document("Sofia").formatted() == "Sofia"
    assert Document(None, metadata={"a": 1}).formatted() == "a: 1\n\n"


def test_placeholders_in_values_are_not_filled() -> None:
    document = Document("{metadata}", metadata={"k": "{content} {value}"})
    assert document.formatted() == "k: {content} {value}\n\n{metadata}"


def test_lists_and_instants_are_written_plainly() -> None:
    document = Document("t", metadata={"tags": ["a", "b"], "at": datetime(2026, 1, 31, tzinfo=UTC)})
    assert document.formatted() == "tags: a, b\nat: 2026-01-31T00:00:00+00:00\n\nt"


def test_templates_are_checked_at_construction() -> None:
    for template in (
        {"text_template": "{metadata}"},
        {"metadata_template": "{key}"},
        {"metadata_template": "{value}"},
    ):
        with pytest.raises(ConfigurationError, match="lacks the placeholder"):
            ContentFormatter(**template)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentTypeError):
        ContentFormatter(embed_excluded="year")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_media_is_by_reference_or_by_content() -> None:
    assert Media(mime_type="image/png", url="https://example.org/a.png").data is None
    for wrong in ({}, {"url": "u", "data": b""}):
        with pytest.raises(MessageError):
            Media(mime_type="image/png", **wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    with pytest.raises(MessageError):
        Media(mime_type="png", url="u")
