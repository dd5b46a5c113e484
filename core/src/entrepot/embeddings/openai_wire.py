"""OpenAI's embeddings interface without a connection: what goes out, what comes back, when to try again."""

from __future__ import annotations

import math
import time
from base64 import b64decode
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
import numpy as np

from entrepot.errors import AuthenticationError, EmbeddingError, EntrepotError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import tenacity
    from numpy.typing import NDArray

Row: TypeAlias = "NDArray[np.float32] | NDArray[np.float64]"
"""One vector as it came."""

_OK: Final = 200
_TOO_MANY: Final = 429
_REFUSED: Final = frozenset({401, 403})
_MISPLACED: Final = frozenset({301, 302, 303, 307, 308, 404, 405})
_TRANSIENT: Final = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_REASON: Final = 300

_FIRST_WAIT: Final = 0.5  # seconds: the bound of the first random wait, doubled at each further one
_LONGEST_WAIT: Final = 8.0
_JITTER: Final = 0.25  # of what the server asks to wait


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one request, as the server counts them."""

    prompt_tokens: int = 0
    total_tokens: int = 0


class _Item(msgspec.Struct):
    index: int
    embedding: list[float] | str


class _Answer(msgspec.Struct):
    data: list[_Item]
    usage: Usage | None = None


class _Refusal(msgspec.Struct):
    error: Any = None
    message: Any = None
    detail: Any = None


_decode_answer = msgspec.json.Decoder(_Answer).decode
_decode_refusal = msgspec.json.Decoder(_Refusal).decode


class TransientError(Exception):
    """A failure worth another try. Never leaves the model.

    Attributes:
        error: What the caller gets if there is no other try.
        retry_after: Seconds that the server asks to wait.
    """

    def __init__(self, error: EntrepotError, retry_after: float | None = None) -> None:
        super().__init__(error.message)
        self.error = error
        self.retry_after = retry_after


@dataclass(frozen=True)
class Endpoint:
    """What an answer is judged by: where it came from, and the secret that no message may repeat."""

    url: str
    model: str
    key: str | None = None

    @property
    def place(self) -> str:
        """How messages name it."""
        return f"the embedding server at {self.url}"

    def body(self, texts: Sequence[str], encoding_format: str, dimensions: int | None) -> bytes:
        """Return the JSON of one request.

        Raises:
            EmbeddingError: A text holds a lone surrogate.
        """
        body: dict[str, object] = {"model": self.model, "input": texts, "encoding_format": encoding_format}
        if dimensions is not None:
            body["dimensions"] = dimensions
        try:
            return msgspec.json.encode(body)
        except UnicodeEncodeError as error:
            raise EmbeddingError("a text holds a lone surrogate, which JSON in UTF-8 cannot carry") from error

    def rows(
        self, status: int, headers: Mapping[str, str], content: bytes, count: int
    ) -> tuple[list[Row], Usage]:
        """Return the `count` vectors of an answer in the order of the texts, and what they cost.

        Raises:
            TransientError: A status that may pass.
            AuthenticationError: 401 or 403.
            EmbeddingError: Any other status, or an answer that does not hold `count` vectors.
        """
        if status != _OK:
            raise self._refusal(status, headers, content)
        try:
            answer = _decode_answer(content)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise EmbeddingError(
                f"{self.place} answered something else than embeddings",
                hint="check that base_url ends where /embeddings begins, usually with /v1",
            ) from error
        items = sorted(answer.data, key=lambda item: item.index)
        if [item.index for item in items] != list(range(count)):
            raise EmbeddingError(
                f"{self.place} answered {len(items)} embeddings for {count} texts"
                + (", but not with the indexes of those" if len(items) == count else "")
            )
        try:
            return [_row(item.embedding) for item in items], answer.usage or Usage()
        except ValueError as error:
            raise EmbeddingError(
                f"{self.place} answered an embedding that is no base64 of float32"
            ) from error

    def _refusal(self, status: int, headers: Mapping[str, str], content: bytes) -> Exception:
        if status in _REFUSED:
            return AuthenticationError(  # without the server's words, which may quote the key
                f"{self.place} refused the key (HTTP {status})",
                hint="check OPENAI_API_KEY or api_key=, and that the key may use this model",
            )
        reason = self._reason(content)
        message = f"{self.place} answered HTTP {status} for model {self.model!r}{reason}"
        if status == _TOO_MANY and "insufficient_quota" in reason:
            return EmbeddingError(message, hint="no wait helps: check plan and billing of this key")
        if status in _TRANSIENT:
            wait = retry_after(headers)
            hint = f"it asks to wait {wait:g} s" if wait else "it may answer later"
            error = EmbeddingError(
                message, hint=f"{hint}; timeout= and max_retries= bound the tries", retryable=True
            )
            return TransientError(error, wait)
        return EmbeddingError(
            message, hint="check the model's name and base_url" if status in _MISPLACED else None
        )

    def _reason(self, content: bytes) -> str:
        """Return what the server says, shortened and without the key."""
        try:
            refusal = _decode_refusal(content)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ""
        said = refusal.error or refusal.message or refusal.detail
        if isinstance(said, dict):
            fields: dict[str, object] = msgspec.convert(said, dict[str, object])
            said = " ".join(str(fields[name]) for name in ("code", "message") if fields.get(name))
        text = str(said or "")
        if self.key:
            text = text.replace(self.key, "***")
        return f": {text[:_LONGEST_REASON]}" if text else ""


def _row(embedding: list[float] | str) -> Row:
    if isinstance(embedding, str):
        return np.frombuffer(b64decode(embedding, validate=True), dtype="<f4")
    return np.asarray(embedding, dtype=np.float64)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait: milliseconds, seconds or a date (RFC 9110, 10.2.3)."""
    try:
        if (milliseconds := headers.get("retry-after-ms")) is not None:
            seconds = float(milliseconds) / 1000
        elif (after := headers.get("retry-after")) is None:
            return None
        elif after.strip()[:1].isalpha():
            seconds = parsedate_to_datetime(after).timestamp() - time.time()
        else:
            seconds = float(after)
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def retrying(max_retries: int, timeout: float) -> tenacity.Retrying:
    """Return what repeats a sync call that raises `TransientError`."""
    import tenacity

    return tenacity.Retrying(**_policy(max_retries, timeout))


def aretrying(max_retries: int, timeout: float) -> tenacity.AsyncRetrying:
    """As `retrying`, for async calls."""
    import tenacity

    return tenacity.AsyncRetrying(**_policy(max_retries, timeout))


def _policy(max_retries: int, timeout: float) -> dict[str, Any]:
    import tenacity

    return {
        "retry": tenacity.retry_if_exception_type(TransientError),
        # A wait that would end after the timeout is not begun: the caller hears the reason at once.
        "stop": tenacity.stop_after_attempt(max_retries + 1) | tenacity.stop_before_delay(timeout),
        "wait": _wait,
        "reraise": True,
    }


def _wait(state: tenacity.RetryCallState) -> float:
    """Wait as long as the server asks, else a random time whose bound doubles; both with some jitter."""
    import tenacity

    error = state.outcome.exception() if state.outcome is not None else None
    if isinstance(error, TransientError) and error.retry_after is not None:
        return error.retry_after + tenacity.wait_random(0, _JITTER * error.retry_after)(state)
    return tenacity.wait_random_exponential(multiplier=_FIRST_WAIT, max=_LONGEST_WAIT)(state)
