"""An embedding model without a model, for tests and examples: it hashes words."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from entrepot.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from entrepot.embedding import Vectors

_WORD = re.compile(r"\w+")


class HashEmbeddingModel:
    """Deterministic unit vectors out of hashed words, the same on every machine. It has no semantics.

    Each word (lower-cased run of letters, digits and underscores) has a fixed direction drawn from
    its BLAKE2b hash; a text is the normalised sum of its words. So equal texts have equal vectors,
    the order of words plays no part, and texts that share words are near each other. "car" and
    "automobile" are strangers: for search that understands, take `WordLlamaEmbeddingModel`.

    A text without a word gets a fixed vector of its own, never zero.

    Args:
        dimensions: Length of the vectors, at least 2; as text in ``embedding="hash:128"``.

    Raises:
        ConfigurationError: No number, or one below 2.
    """

    def __init__(self, dimensions: int | str = 64) -> None:
        if not str(dimensions).isdecimal() or int(dimensions) < 2:  # noqa: PLR2004 - a line has two directions
            raise ConfigurationError(f"dimensions must be a number from 2 on, not {dimensions!r}")
        self.dimensions = dimensions = int(dimensions)
        self.name = f"hash/blake2b-{dimensions}"
        self._direction = lru_cache(maxsize=16_384)(self._draw)

    def __repr__(self) -> str:
        return f"HashEmbeddingModel(dimensions={self.dimensions})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a float32 array of shape ``(len(texts), dimensions)`` of unit vectors."""
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            words = _WORD.findall(text.lower()) or [""]
            total = np.sum([self._direction(word) for word in words], axis=0)  # of integers: exact
            vectors[row] = total / math.sqrt(math.fsum(total.astype(np.float64) ** 2))
        return vectors

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """As `embed`; it is quick enough to run on the event loop."""
        return self.embed(texts)

    def _draw(self, word: str) -> NDArray[np.int64]:
        """Return `dimensions` odd integers in [-65535, 65535], of 2 bytes of hash output each."""
        size = 2 * self.dimensions
        blocks = (
            blake2b(word.encode("utf-8", "surrogatepass"), salt=block.to_bytes(16, "little")).digest()
            for block in range(-(-size // 64))
        )
        return 2 * np.frombuffer(b"".join(blocks)[:size], dtype="<i2").astype(np.int64) + 1
