"""Embedding models: what one is, and how stores call it.

A model is anything with `name`, `dimensions` and `embed(texts)`; there is no class to inherit from.
Stores call a model through `embed_texts` and `aembed_texts` alone: these cut the texts into
batches, call the model, check what comes back and turn a foreign exception into an
`EmbeddingError`.

Optional attributes of a model, looked up by name:

| attribute | meaning | without it |
|---|---|---|
| `async aembed(texts)` | native async form of `embed` | `embed` runs on a worker thread |
| `token_counter` | counts as the model's own tokenizer does | `EstimatingTokenCounter` |
| `max_tokens` | the longest text it takes, in tokens | `None`: any length |

Models that come with entrepot live in `entrepot.embeddings` and are named in URLs and options:
`"wordllama"`, `"openai:text-embedding-3-small"`.
"""

from __future__ import annotations

import asyncio
import operator
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, SupportsIndex, TypeAlias, cast

import numpy as np

from entrepot.batching import (
    BatchingStrategy,
    EstimatingTokenCounter,
    TokenCountBatchingStrategy,
    TokenCounter,
)
from entrepot.errors import (
    ArgumentTypeError,
    ConfigurationError,
    EmbeddingError,
    EntrepotError,
    UnembeddableTextError,
)
from entrepot.metadata import name_fault

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence

    from numpy.typing import ArrayLike, NDArray

__all__ = [
    "PROBE_TEXT",
    "AsyncEmbeddingModel",
    "BatchingStrategy",
    "DimensionProbe",
    "EmbeddingModel",
    "EstimatingTokenCounter",
    "FunctionEmbeddingModel",
    "TokenCountBatchingStrategy",
    "TokenCounter",
    "Vectors",
    "aembed_texts",
    "batching_for",
    "check_dimensions",
    "check_embeddings",
    "embed_texts",
    "foreign_errors",
    "max_tokens_of",
    "model_dimensions",
    "model_name",
    "token_counter_of",
]

Vectors: TypeAlias = "NDArray[np.float32]"
"""A float32 matrix of shape ``(n, d)``: one row a text."""

_COUNTED_ON_THE_LOOP = 4096  # characters: counting them takes less time than handing them to a thread

PROBE_TEXT = "dimensions"
"""What `DimensionProbe` embeds to learn how long a model's vectors are."""


# --- models -----------------------------------------------------------------------------------------------


# Neither protocol is checkable at run time: isinstance() would read `dimensions`, which may call a server.
class EmbeddingModel(Protocol):
    """Turns texts into vectors. Must be safe to call from several threads at once."""

    @property
    def name(self) -> str:
        """What defines the vector space, such as ``"wordllama/l2_supercat-256"``.

        Collections record it; a model of another name is refused (D5).
        """
        ...

    @property
    def dimensions(self) -> int:
        """Length of every vector. May call the model once to learn it (`DimensionProbe`)."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed `texts` into a float32 array of shape ``(len(texts), dimensions)``, in their order."""
        ...


class AsyncEmbeddingModel(EmbeddingModel, Protocol):
    """An embedding model with a native async form."""

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """As `embed`, without blocking the event loop."""
        ...


def check_embeddings(vectors: ArrayLike, count: int, dimensions: int | None, *, model: str) -> Vectors:
    """Check what a model returned; give it back as a C-contiguous float32 array ``(count, dimensions)``.

    An array that is so already is returned as it is, without a copy. `dimensions` of ``None`` takes
    any length of at least 1. Zero vectors pass: whether they are allowed depends on the metric (D9).

    Raises:
        EmbeddingError: Not numbers, another shape, or values that are not finite in float32. The
            message names the model and what came.
    """
    try:
        array = np.asarray(vectors)
    except ValueError as error:
        raise EmbeddingError(f"embedding model {model!r} returned rows of different lengths") from error
    expected = f"({count}, {'d' if dimensions is None else dimensions})"
    if count == 0 and array.size == 0:
        return np.empty((0, dimensions or 0), dtype=np.float32)
    if array.dtype.kind not in "fiu":
        message = (
            f"embedding model {model!r} returned {_kind_of(vectors, array)}, expected float32 {expected}"
        )
        raise EmbeddingError(message)
    if array.ndim != 2 or array.shape[0] != count or array.shape[1] == 0:  # noqa: PLR2004 - a matrix
        message = f"embedding model {model!r} returned shape {array.shape}, expected {expected}"
        raise EmbeddingError(message, hint="embed() takes a list of texts and returns one row for each")
    if dimensions is not None and array.shape[1] != dimensions:
        message = (
            f"embedding model {model!r} returned vectors of length {array.shape[1]}, "
            f"its dimensions are {dimensions}"
        )
        raise EmbeddingError(message)
    with np.errstate(over="ignore"):
        result = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(result).all():
        row = int(np.flatnonzero(~np.isfinite(result).all(axis=1))[0])
        bad = array[row][~np.isfinite(result[row])][0]
        raise EmbeddingError(
            f"embedding model {model!r} returned {bad} in row {row} of {count}, expected finite float32"
        )
    return result


def _kind_of(vectors: object, array: NDArray[np.generic]) -> str:
    if array.dtype.kind == "O":
        return f"{type(vectors).__name__} that holds no numbers"
    return f"dtype {array.dtype}"


class DimensionProbe:
    """Learns the length of a model's vectors by embedding one short text, once, and keeps it.

    Thread-safe: however many threads and tasks ask at once, the model is called once. A failed call
    keeps nothing, so the next one tries again. Vectors that were embedded anyway can teach it too
    (`learn`), which saves the call.
    """

    def __init__(self, embed: Callable[[Sequence[str]], ArrayLike], *, model: str) -> None:
        self._embed = embed
        self._model = model
        self._lock = threading.Lock()
        self._dimensions: int | None = None

    @property
    def known(self) -> int | None:
        """The length, if it is known already; never calls the model."""
        return self._dimensions

    def learn(self, vectors: Vectors) -> None:
        """Take the length from vectors that the model has just returned."""
        if self._dimensions is None and vectors.shape[0] > 0:
            self._dimensions = int(vectors.shape[1])

    def get(self) -> int:
        """Return the length, calling the model if it is not known yet.

        Raises:
            EmbeddingError: The model failed or returned something else than one vector.
        """
        if self._dimensions is None:
            with self._lock:
                if self._dimensions is None:
                    with foreign_errors(self._model):
                        vectors = self._embed([PROBE_TEXT])
                    self.learn(check_embeddings(vectors, 1, None, model=self._model))
        return cast("int", self._dimensions)

    async def aget(self) -> int:
        """As `get`, on a worker thread if the model must be called."""
        return self._dimensions if self._dimensions is not None else await asyncio.to_thread(self.get)


class FunctionEmbeddingModel:
    """An embedding model made of a plain function.

    ```python
    model = FunctionEmbeddingModel(encoder.encode, name="my-encoder-v2", dimensions=384)
    ```

    Args:
        embed: Takes a list of texts, returns one vector for each (an array or lists of numbers).
        name: What defines the vector space; collections record it.
        dimensions: Length of the vectors. Without it the function is called once to learn it.
        aembed: The async form, if there is one.
        token_counter: Counts as the model's tokenizer does.
        max_tokens: The longest text that the function takes.

    Raises:
        ConfigurationError: No function, no name, or dimensions that are no int of at least 1.
    """

    def __init__(  # noqa: PLR0913 - one argument for each thing a model may know
        self,
        embed: Callable[[Sequence[str]], ArrayLike],
        name: str,
        dimensions: int | None = None,
        *,
        aembed: Callable[[Sequence[str]], Awaitable[ArrayLike]] | None = None,
        token_counter: TokenCounter | None = None,
        max_tokens: int | None = None,
    ) -> None:
        functions: dict[str, object] = (
            {"embed": embed} if aembed is None else {"embed": embed, "aembed": aembed}
        )
        for what, function in functions.items():
            if not callable(function):
                raise ConfigurationError(f"{what} must be a function, not {type(function).__name__}")
        fault = name_fault(name)
        if fault is not None:
            raise ConfigurationError(f"the model's name {fault}", hint="it names the vector space")
        self._embed = embed
        self._aembed = aembed
        self._given = None if dimensions is None else check_dimensions(dimensions)
        self._probe = DimensionProbe(embed, model=name)
        self.name = name
        self.token_counter = token_counter
        self.max_tokens = max_tokens

    def __repr__(self) -> str:
        return f"FunctionEmbeddingModel(name={self.name!r}, dimensions={self._given or self._probe.known})"

    @property
    def dimensions(self) -> int:
        """Length of the vectors; calls the function once if it was not given."""
        return self._given if self._given is not None else self._probe.get()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Call the function and check what it returns."""
        return self._checked(self._embed(texts), len(texts))

    async def aembed(self, texts: Sequence[str]) -> Vectors:
        """Call the async function, or the plain one on a worker thread."""
        if self._aembed is None:
            return self._checked(await asyncio.to_thread(self._embed, texts), len(texts))
        return self._checked(await self._aembed(texts), len(texts))

    def _checked(self, vectors: ArrayLike, count: int) -> Vectors:
        result = check_embeddings(vectors, count, self._given or self._probe.known, model=self.name)
        self._probe.learn(result)
        return result


# --- what a model says of itself --------------------------------------------------------------------------


def check_dimensions(value: object) -> int:
    """Return a length of vectors as a plain int; numpy's integers are taken too.

    Raises:
        ConfigurationError: No integer, or below 1.
    """
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        number = operator.index(cast("SupportsIndex", value))
        if number >= 1:
            return number
    raise ConfigurationError(f"dimensions must be an int of at least 1, not {value!r}")


def model_name(model: EmbeddingModel) -> str:
    """Return what the model calls its vector space.

    Raises:
        EmbeddingError: It has no name, cannot tell it, or it is no text that a collection can record.
    """
    kind = type(model).__name__
    with foreign_errors(kind):
        name = model.name
    fault = name_fault(name)
    if fault is not None:
        raise EmbeddingError(f"embedding model {kind}: its name {fault}")
    return name


def model_dimensions(model: EmbeddingModel) -> int:
    """Return the length of the model's vectors as a plain int. May call the model, so it may block.

    Raises:
        EmbeddingError: It cannot tell, or what it tells is no length.
    """
    name = model_name(model)
    with foreign_errors(name):
        told = model.dimensions
    try:
        return check_dimensions(told)
    except ConfigurationError as error:
        raise EmbeddingError(f"embedding model {name!r}: its {error.message}") from None


# --- what a model may add ---------------------------------------------------------------------------------


def token_counter_of(model: EmbeddingModel) -> TokenCounter:
    """Return the model's own counter, or the estimating one."""
    counter = cast("TokenCounter | None", getattr(model, "token_counter", None))
    return EstimatingTokenCounter() if counter is None else counter


def max_tokens_of(model: EmbeddingModel) -> int | None:
    """Return the longest text that the model takes, in tokens; ``None`` if it names no limit."""
    return cast("int | None", getattr(model, "max_tokens", None))


def batching_for(model: EmbeddingModel) -> TokenCountBatchingStrategy:
    """Return the strategy that fits a model if the user names none.

    A model with `max_tokens` gets batches of that size, counted by its own counter, and refuses what
    is longer. One without a limit takes any text; batches then only bound memory, so the cheap
    estimate is enough and a long text travels alone.
    """
    max_tokens = max_tokens_of(model)
    if max_tokens is None:
        return TokenCountBatchingStrategy(oversize="alone")
    return TokenCountBatchingStrategy(max_tokens=max_tokens, counter=token_counter_of(model))


# --- embedding --------------------------------------------------------------------------------------------


def embed_texts(
    model: EmbeddingModel,
    texts: Sequence[str],
    *,
    labels: Sequence[str] | None = None,
    batching: BatchingStrategy | None = None,
    dimensions: int | None = None,
) -> Vectors:
    """Embed `texts` in batches and check every vector.

    Args:
        model: The model.
        texts: Any number of texts, embedded in their order.
        labels: What to call each text in an error, such as ``"document 'a'"``.
        batching: Cuts the texts; by default `batching_for` the model.
        dimensions: The length that the vectors must have, if it is known from elsewhere (the
            collection); otherwise the first batch decides.

    Returns:
        A float32 array of shape ``(len(texts), d)``.

    Raises:
        ArgumentTypeError: `texts` is a bare string or holds something else than strings.
        SizeLimitError: A text is longer than the model takes; no text was sent.
        EmbeddingError: The model failed (its exception is the cause) or answered wrongly.
    """
    name = model_name(model)
    parts: list[Vectors] = []
    _check_texts(texts, labels)
    for batch in _batches(model, texts, labels, batching):
        with foreign_errors(name, labels, batch):
            vectors = model.embed([texts[i] for i in batch])
        parts.append(check_embeddings(vectors, len(batch), dimensions, model=name))
        dimensions = parts[-1].shape[1]
    return _joined(parts, dimensions)


async def aembed_texts(
    model: EmbeddingModel,
    texts: Sequence[str],
    *,
    labels: Sequence[str] | None = None,
    batching: BatchingStrategy | None = None,
    dimensions: int | None = None,
) -> Vectors:
    """As `embed_texts`: by the model's `aembed`, or on a worker thread that keeps the caller's context."""
    name = model_name(model)
    native = _native_async(model)
    parts: list[Vectors] = []
    _check_texts(texts, labels)
    if sum(map(len, texts)) <= _COUNTED_ON_THE_LOOP:
        batches = _batches(model, texts, labels, batching)
    else:
        batches = await asyncio.to_thread(_batches, model, texts, labels, batching)
    for batch in batches:
        chunk = [texts[i] for i in batch]
        with foreign_errors(name, labels, batch):
            vectors = await (native(chunk) if native is not None else asyncio.to_thread(model.embed, chunk))
        parts.append(check_embeddings(vectors, len(batch), dimensions, model=name))
        dimensions = parts[-1].shape[1]
    return _joined(parts, dimensions)


def _native_async(model: EmbeddingModel) -> Callable[[Sequence[str]], Awaitable[Vectors]] | None:
    return cast("Callable[[Sequence[str]], Awaitable[Vectors]] | None", getattr(model, "aembed", None))


def _joined(parts: list[Vectors], dimensions: int | None) -> Vectors:
    if not parts:
        return np.empty((0, dimensions or 0), dtype=np.float32)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _check_texts(texts: Sequence[str], labels: Sequence[str] | None) -> None:
    if isinstance(texts, str):
        raise ArgumentTypeError("embedding takes a list of texts, not a bare string")
    for index, text in enumerate(cast("Sequence[object]", texts)):
        if not isinstance(text, str):
            message = (
                f"{labels[index] if labels else f'text {index}'}: a text is a str, not {type(text).__name__}"
            )
            raise ArgumentTypeError(message)


def _batches(
    model: EmbeddingModel,
    texts: Sequence[str],
    labels: Sequence[str] | None,
    batching: BatchingStrategy | None,
) -> list[range]:
    with foreign_errors(model_name(model), doing="could not count tokens"):
        strategy = batching if batching is not None else batching_for(model)
        batches = [batch for batch in strategy.batches(texts, labels) if len(batch) > 0]
    position = 0
    for batch in batches:
        if batch.start != position or batch.step != 1:
            position = -1
            break
        position = batch.stop
    if position != len(texts):
        message = (
            f"{type(strategy).__name__}.batches() must return ranges that follow one another "
            f"and cover all {len(texts)} texts, it returned {batches[:5]}"
        )
        raise ConfigurationError(message)
    return batches


@contextmanager
def foreign_errors(
    model: str,
    labels: Sequence[str] | None = None,
    batch: range | None = None,
    *,
    doing: str = "failed",
) -> Generator[None]:
    """Let entrepot's errors pass, naming the text they are about; make an `EmbeddingError` of all others.

    The foreign message stays in the cause: it may quote a key or a text.
    """
    try:
        yield
    except UnembeddableTextError as error:
        if labels is None and batch is None:
            raise
        index = error.index + (batch.start if batch is not None else 0)
        label = labels[index] if labels is not None else None
        raise UnembeddableTextError(
            error.reason, index=index, label=label, hint=error.hint
        ) from error.__cause__
    except EntrepotError:
        raise
    except Exception as error:
        message = f"embedding model {model!r} {doing}: {type(error).__name__}"
        raise EmbeddingError(
            message, hint="the cause below says more; try the model alone with one text"
        ) from error
