"""`Document`, the unit that stores keep, and how its content is formatted for readers (D1 to D4)."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, cast
from uuid import uuid4

import msgspec
import numpy as np
from msgspec.structs import force_setattr
from numpy.typing import NDArray

from entrepot.errors import ArgumentTypeError, ConfigurationError
from entrepot.media import Media
from entrepot.metadata import same_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class MetadataMode(StrEnum):
    """Which metadata a formatted document shows."""

    ALL = "all"
    """Every key."""
    EMBED = "embed"
    """What an embedding model shall see: all keys but the formatter's `embed_excluded`."""
    INFERENCE = "inference"
    """What a chat model shall see: all keys but the formatter's `inference_excluded`."""
    NONE = "none"
    """No metadata: the content alone."""


class ContentFormatter(msgspec.Struct, frozen=True, kw_only=True):
    """Templates that turn a document into one text.

    Placeholders are replaced in one pass, so a value that holds ``{content}`` stays as it is.
    Without metadata to show, the content stands alone, without the template's blank lines.

    Raises:
        ConfigurationError: A template lacks a placeholder; found at construction.
    """

    text_template: str = "{metadata}\n\n{content}"
    metadata_template: str = "{key}: {value}"
    separator: str = "\n"
    embed_excluded: frozenset[str] = frozenset()
    inference_excluded: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Refuse templates that would lose the content, a key or a value."""
        for name, template, needed in (
            ("text_template", self.text_template, ("content",)),
            ("metadata_template", self.metadata_template, ("key", "value")),
        ):
            for placeholder in needed:
                if f"{{{placeholder}}}" not in template:
                    msg = f"{name} lacks the placeholder {{{placeholder}}}"
                    raise ConfigurationError(msg)
        for name in ("embed_excluded", "inference_excluded"):
            keys: object = getattr(self, name)
            if isinstance(keys, str):
                msg = f"{name} takes a set of keys, not one str"
                raise ArgumentTypeError(msg)
            force_setattr(self, name, frozenset(getattr(self, name)))

    def format(self, document: Document, mode: MetadataMode = MetadataMode.ALL) -> str:
        """Return the document's text with the metadata that `mode` shows."""
        content = document.text or ""
        shown = self._shown(document.metadata, MetadataMode(mode))
        if not shown:
            return content
        lines = (_fill(self.metadata_template, {"key": key, "value": _plain(value)}) for key, value in shown)
        return _fill(self.text_template, {"metadata": self.separator.join(lines), "content": content})

    def _shown(self, metadata: Mapping[str, object], mode: MetadataMode) -> list[tuple[str, object]]:
        if mode is MetadataMode.NONE:
            return []
        excluded: frozenset[str] = frozenset()
        if mode is MetadataMode.EMBED:
            excluded = self.embed_excluded
        elif mode is MetadataMode.INFERENCE:
            excluded = self.inference_excluded
        return [(key, value) for key, value in metadata.items() if key not in excluded and value is not None]


_PLACEHOLDER: Final = re.compile(r"\{(metadata|content|key|value)\}")


def _fill(template: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), template)


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, cast("list[object]", value)))
    isoformat = getattr(value, "isoformat", None)
    return str(isoformat()) if isoformat is not None else str(value)


DEFAULT_FORMATTER: Final = ContentFormatter()


def _is_none(value: object) -> bool:
    """Whether a caller passed None, whatever the type of the field says."""
    return value is None


def new_id() -> str:
    """Return a fresh document id: a random UUID, version 4 (D1)."""
    return str(uuid4())


class _Text(msgspec.Struct, frozen=True, eq=False):
    text: str | None = None


class Document(_Text, frozen=True, eq=False, kw_only=True):
    """One text with an id and flat metadata; also what a search returns.

    A document is a value: its fields cannot be set, `replace` makes a changed copy. Everything is
    checked when it is added, so that one error can name the document among its batch.

    Attributes:
        text: The content, or None if only a vector is stored.
        id: A non-empty str of at most 512 characters; a random UUID4 if none is given (D1).
        metadata: Flat keys to scalars or lists of one kind (D3); ``None`` values mean absent.
        media: Media that belongs to the document. Stores keep text and refuse media loudly.
        vector: The embedding, float32 of shape (d,). Given to `add`, it is stored instead of
            embedding the text; a read returns it if asked (D9).
        score: The similarity in [0, 1] of a search hit, 1 is best (S2); None elsewhere.
        rank_score: The ranking value of a FULLTEXT or HYBRID hit (S9); None elsewhere.
        formatter: How `formatted` writes the document. A document that brings one is embedded as
            ``formatted(EMBED)``; one without is embedded as its plain text.
    """

    id: str = msgspec.field(default_factory=new_id)
    metadata: dict[str, Any] = {}
    media: Media | None = None
    vector: NDArray[np.float32] | None = None
    score: float | None = None
    rank_score: float | None = None
    formatter: ContentFormatter | None = None

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0913 - the fields of the record
            self,
            text: str | None = None,
            *,
            id: str | None = None,  # noqa: A002 - the name of the field
            metadata: Mapping[str, object] | None = None,
            media: Media | None = None,
            vector: Sequence[float] | NDArray[np.floating] | None = None,
            score: float | None = None,
            rank_score: float | None = None,
            formatter: ContentFormatter | None = None,
        ) -> None:
            """Make a document; see the class for the fields."""

    def __post_init__(self) -> None:
        """Give what was passed as None its default."""
        if not (self.id and self.metadata):
            if _is_none(self.id):
                force_setattr(self, "id", new_id())
            if _is_none(self.metadata):
                force_setattr(self, "metadata", {})

    def formatted(self, mode: MetadataMode = MetadataMode.ALL) -> str:
        """Return the text with the metadata that `mode` shows, by the document's formatter."""
        return (self.formatter or DEFAULT_FORMATTER).format(self, mode)

    def replace(self, **changes: Any) -> Document:
        """Return a copy with some fields changed."""
        return msgspec.structs.replace(self, **changes)

    def __eq__(self, other: object) -> bool:
        """Compare every field but the formatter; vectors element by element, metadata with types."""
        if not isinstance(other, Document):
            return NotImplemented
        return (
            (self.id, self.text, self.media, self.score, self.rank_score)
            == (other.id, other.text, other.media, other.score, other.rank_score)
            and same_metadata(self.metadata, other.metadata)
            and _same_vector(self.vector, other.vector)
        )

    __hash__ = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]  # metadata is a dict


def _same_vector(left: object, right: object) -> bool:
    if left is None or right is None:
        return left is right
    return np.array_equal(np.asarray(left), np.asarray(right))
