"""WordLlama: a small embedding model that runs anywhere, from the weights in its wheel.

Needs the extra `entrepot[wordllama]`. Nothing is downloaded. The package `wordllama` itself is not
imported: importing it configures the root logger (`logging.basicConfig`), and its `embed` pads all
texts of a batch to the longest one. This module reads the same two files through the same two
libraries, `tokenizers` and `safetensors`; the vectors are those of `WordLlama.load().embed()` to
float32 rounding.
"""

from __future__ import annotations

import importlib.util
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from entrepot.embedding import check_dimensions
from entrepot.errors import ConfigurationError, DriverNotFoundError, EmbeddingError, UnembeddableTextError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from tokenizers import Encoding, Tokenizer

    from entrepot.embedding import Vectors

DEFAULT_MODEL: Final = "l2_supercat-256"
"""The weights that the wheel of wordllama holds: 32,000 tokens of the Llama 2 vocabulary, 256 dimensions."""

_MODEL = re.compile(r"(?P<config>[A-Za-z0-9_]+)-(?P<width>[1-9][0-9]*)")
_TOKENIZED_AT_ONCE = 256
_POOLED_AT_ONCE = 8192  # tokens: 8 MiB of float32 at 256 dimensions


@dataclass(frozen=True)
class _Weights:
    """One table of token vectors and its tokenizer; never changed after loading, so shared freely."""

    table: NDArray[np.float32]
    tokenizer: Tokenizer

    def encode(self, texts: Sequence[str]) -> list[Encoding]:
        try:
            return self.tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        except TypeError as error:
            raise EmbeddingError("wordllama cannot read a text: it is no well-formed Unicode") from error


_loaded: dict[tuple[Path, Path], _Weights] = {}
_loading = threading.Lock()


class WordLlamaEmbeddingModel:
    """Average of token vectors, on the CPU, without a network: the embedded default.

    A vector is the plain mean of the vectors of a text's tokens, as WordLlama computes it; it is not
    normalised (stores under cosine and dot do that). The length of a text is not limited and nothing
    is ever cut. A text without tokens, which only the empty one is, has no vector and is refused.

    Equal texts get bit-identical vectors, whatever else is in the batch. Models of one kind share
    their weights (32 MiB) in a process, and all methods are thread-safe.

    Args:
        model: ``<weights>-<width>``. Weights other than the default must lie in `cache_dir`, where
            WordLlama's own loader puts them.
        dimensions: Keep only so many leading components (the model was trained for 64 and 128 too).
        cache_dir: Folder with ``weights/`` and ``tokenizers/``, looked at after the package itself;
            by default ``~/.cache/wordllama``.

    Raises:
        DriverNotFoundError: The extra is not installed.
        ConfigurationError: The model's files are not there, or `dimensions` does not fit.
    """

    max_tokens: int | None = None
    """No limit: an average takes any number of tokens."""

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        dimensions: int | None = None,
        cache_dir: str | Path | None = None,
    ) -> None:
        match = _MODEL.fullmatch(model)
        if match is None:
            raise ConfigurationError(
                f"{model!r} names no WordLlama model",
                hint=f"write <weights>-<width>, as in {DEFAULT_MODEL!r}",
            )
        width = int(match["width"])
        try:
            self.dimensions = width if dimensions is None else check_dimensions(dimensions)
        except ConfigurationError:
            self.dimensions = 0
        if not 1 <= self.dimensions <= width:
            raise ConfigurationError(f"dimensions of {model!r} must be 1 to {width}, not {dimensions!r}")
        self.name = f"wordllama/{model}" + (f":{self.dimensions}" if self.dimensions != width else "")
        self._weights = _load(match["config"], width, cache_dir)
        self._table = self._weights.table[:, : self.dimensions]
        self.token_counter = WordLlamaTokenCounter(self._weights)

    def __repr__(self) -> str:
        return f"WordLlamaEmbeddingModel(name={self.name!r}, dimensions={self.dimensions})"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the vectors as a float32 array of shape ``(len(texts), dimensions)``.

        Raises:
            UnembeddableTextError: A text is empty; `index` is its position.
            EmbeddingError: A text holds a lone surrogate.
        """
        vectors = np.empty((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), _TOKENIZED_AT_ONCE):
            encodings = self._weights.encode(texts[start : start + _TOKENIZED_AT_ONCE])
            for row, encoding in enumerate(encodings, start):
                if len(encoding) == 0:
                    raise UnembeddableTextError(
                        "an empty text has no tokens and hence no vector",
                        index=row,
                        hint="give the document a text, or a vector of its own",
                    )
                vectors[row] = self._mean(encoding.ids)
        return vectors

    def _mean(self, ids: list[int]) -> NDArray[np.float32]:
        """Average the vectors of `ids`, a bounded number at a time."""
        total = np.zeros(self.dimensions, dtype=np.float32)
        for start in range(0, len(ids), _POOLED_AT_ONCE):
            # "clip", as WordLlama does, for tokenizers that know more tokens than the table.
            rows = self._table.take(ids[start : start + _POOLED_AT_ONCE], axis=0, mode="clip")
            total += rows.sum(axis=0)
        return total / np.float32(len(ids))


class WordLlamaTokenCounter:
    """Counts tokens exactly as the model sees them: its own tokenizer, no special tokens added."""

    def __init__(self, weights: _Weights) -> None:
        self._weights = weights

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text; 0 for an empty one."""
        counts: list[int] = []
        for start in range(0, len(texts), _TOKENIZED_AT_ONCE):
            counts += map(len, self._weights.encode(texts[start : start + _TOKENIZED_AT_ONCE]))
        return counts


def _load(config: str, width: int, cache_dir: str | Path | None) -> _Weights:
    """Return the weights, read from disk once a process."""
    package = _package_folder()
    cache = Path(cache_dir).expanduser() if cache_dir is not None else Path.home() / ".cache" / "wordllama"
    table = _find(f"weights/{config}_{width}.safetensors", package, cache)
    tokenizer = _find(f"tokenizers/{config}_tokenizer_config.json", package, cache)
    with _loading:
        key = (table, tokenizer)
        if key not in _loaded:
            _loaded[key] = _Weights(_read_table(table, width), _read_tokenizer(tokenizer))
        return _loaded[key]


def _package_folder() -> Path:
    missing = [
        name for name in ("wordllama", "tokenizers", "safetensors") if importlib.util.find_spec(name) is None
    ]
    spec = importlib.util.find_spec("wordllama")
    if missing or spec is None or not spec.submodule_search_locations:
        raise DriverNotFoundError(
            f"the embedding model 'wordllama' needs {', '.join(missing) or 'wordllama'}, which is not installed",
            hint='pip install "entrepot[wordllama]"',
        )
    return Path(next(iter(spec.submodule_search_locations)))


def _find(name: str, package: Path, cache: Path) -> Path:
    for folder in (package, cache):
        if (folder / name).is_file():
            return folder / name
    raise ConfigurationError(
        f"WordLlama file {name} is neither in the wordllama package nor in {cache}",
        hint=f"nothing is downloaded here: use {DEFAULT_MODEL!r}, or load the model once with WordLlama.load()",
    )


def _read_table(path: Path, width: int) -> NDArray[np.float32]:
    from safetensors.numpy import load_file  # noqa: PLC0415 - loaded on use # pyright: ignore[reportUnknownVariableType]

    try:
        table = load_file(path)["embedding.weight"].astype(np.float32)
    except Exception as error:
        raise EmbeddingError(f"WordLlama's weights cannot be read from {path}") from error
    if table.ndim != 2 or table.shape[1] != width:  # noqa: PLR2004 - a matrix
        raise EmbeddingError(
            f"WordLlama's weights in {path} have shape {table.shape}, expected (tokens, {width})"
        )
    table.flags.writeable = False
    return table


def _read_tokenizer(path: Path) -> Tokenizer:
    from tokenizers import Tokenizer  # noqa: PLC0415 - loaded on use

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:
        raise EmbeddingError(f"WordLlama's tokenizer cannot be read from {path}") from error
    # Whatever the file says: nothing is cut, and no state changes once threads share the tokenizer.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
