"""Every error that entrepot raises, in one tree.

```text
EntrepotError
├── DocumentError (ValueError)             a document breaks a rule; nothing was sent
│   ├── MetadataError                      a metadata key or value is not allowed; names the key
│   ├── VectorError                        wrong length, not finite, zero, or not of norm 1
│   ├── DuplicateIdError                   two documents with one id in a call, or an id that exists
│   └── SizeLimitError                     larger than the backend takes
├── MessageError (ValueError)              a message or a conversation id breaks a rule
│   └── UnknownMessageError                `truncate` names a message that is not there
├── FilterError (ValueError)               a filter cannot be used
│   ├── FilterSyntaxError                  its text does not parse; names line and column
│   ├── FilterValueError                   an operand is not allowed with its operator
│   │   └── FilterTextValueError           the same in a text; also a FilterSyntaxError, with its place
│   └── FilterLimitError                   deeper or larger than allowed
├── RequestError (ValueError)              a search request contradicts itself or is out of bounds
├── ArgumentTypeError (TypeError)          an argument of the wrong type
├── ConfigurationError (ValueError)        a URL, an option or a config object is wrong
│   └── UnknownOptionError                 an option nobody knows; names the nearest known one
├── UnsupportedError                       the store declares that it does not offer this
│   └── UnsupportedSearchModeError         FULLTEXT or HYBRID on a store that lacks it
├── CompletionLimitError                   completing a filter would read too many rows
├── EmbeddingError                         the embedding model failed or answered wrongly
│   └── UnembeddableTextError (ValueError)     a text that has no vector, such as an empty one
├── CollectionError
│   ├── CollectionNotFoundError            reading a collection that does not exist
│   └── CollectionMismatchError            another dimension, metric, model, layout, or another owner
├── WriteError
│   ├── BatchError                         a batch failed midway; tells written, failed and unknown ids
│   ├── NotYetVisibleError                 written, but not searchable within the timeout
│   └── OutsideViewError (ValueError)      a write through a view would leave the view
├── BackendError                           the engine or its driver failed
│   ├── UnreachableError                   no connection
│   ├── AuthenticationError                the login was refused
│   ├── OperationTimeoutError (TimeoutError)   no answer in time
│   ├── StoreInUseError                    another process holds the writer's lock
│   └── CorruptDataError                   what was read is not what was written
├── LifecycleError
│   ├── ClosedError                        used after close
│   └── ForkError                          used after fork, or pickled
└── PluginError
    ├── PluginNotFoundError                no plugin of that name; says what to install
    ├── PluginBrokenError                  the plugin was found and could not be loaded
    ├── PluginConflictError                two plugins claim one name
    └── DriverNotFoundError                the plugin is there, its driver is not
```

Errors that are the caller's mistake also subclass `ValueError` or `TypeError`. A driver's
exception is always the `__cause__` and never escapes bare (E1). Messages never hold secrets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Outcome: TypeAlias = Literal["not_done", "unknown"]
"""What is known about a failed write: certainly not done, or sent and never answered (E4)."""


class EntrepotError(Exception):
    """The root: catch this to catch everything that entrepot raises.

    Attributes:
        hint: What to do next, in one sentence; the last line of the message.
        retryable: Whether the same call may succeed if it is made again.
        outcome: ``"not_done"`` if nothing changed, ``"unknown"`` if the engine may have done it.
    """

    hint: str = ""
    retryable: bool = False
    outcome: Outcome = "not_done"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        retryable: bool | None = None,
        outcome: Outcome | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint
        if retryable is not None:
            self.retryable = retryable
        if outcome is not None:
            self.outcome = outcome

    def __reduce__(self) -> tuple[Any, ...]:
        """Let errors cross processes: arguments that are keywords would be lost otherwise."""
        return _remade, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        return f"{self.message}\n  hint: {self.hint}" if self.hint else self.message


def _remade(kind: type[EntrepotError], args: tuple[Any, ...], state: dict[str, Any]) -> EntrepotError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


# --- documents ------------------------------------------------------------------------------------------


class DocumentError(EntrepotError, ValueError):
    """A document breaks a rule of the contract (D1 to D9); nothing was sent."""


class MetadataError(DocumentError):
    """A metadata key or value is not allowed (D3). `key` is the key, if it is one."""

    hint = "allowed are str, bool, int of 64 bits, finite float, aware datetime, and flat lists of one kind; flatten_metadata() helps with nesting"

    def __init__(self, message: str, *, key: object = None, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.key = key


class VectorError(DocumentError):
    """A vector has the wrong length, is not finite, is zero, or (dot) is not of norm 1 (D9)."""


class DuplicateIdError(DocumentError):
    """One id twice in a call, or an id that exists under ``if_exists="error"`` (D2)."""

    def __init__(self, message: str, *, ids: Sequence[str], hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.ids = tuple(ids)


class SizeLimitError(DocumentError):
    """A text, a value or a whole document is larger than the backend takes (D8)."""

    hint = "split the document, or keep the large part elsewhere and store a reference"


# --- messages -------------------------------------------------------------------------------------------


class MessageError(EntrepotError, ValueError):
    """A message or a conversation id breaks a rule of the contract (M2, M6); nothing was sent."""


class UnknownMessageError(MessageError):
    """`truncate` names a message that the conversation does not hold (M4)."""

    hint = "list the conversation with messages() and use the id of one of them"


# --- filters --------------------------------------------------------------------------------------------


class FilterError(EntrepotError, ValueError):
    """A filter cannot be used as it stands; nothing was sent."""


class FilterSyntaxError(FilterError):
    """The text of a filter does not parse (F7, F8).

    Attributes:
        line: Line of the place, from 1.
        column: Column of the place in code points, from 1.
        found: What stands there, as the message names it.
        expected: What could stand there.
    """

    def __init__(  # noqa: PLR0913 - one argument for each fact about the place
        self,
        message: str,
        *,
        line: int,
        column: int,
        found: str,
        expected: Sequence[str],
        excerpt: str,
        hint: str | None = None,
    ) -> None:
        super().__init__(f"line {line}, column {column}: {message}\n{excerpt}", hint=hint)
        self.line = line
        self.column = column
        self.found = found
        self.expected = tuple(expected)


class FilterValueError(FilterError):
    """An operand is not allowed, or not with this operator (F5)."""


class FilterTextValueError(FilterSyntaxError, FilterValueError):
    """A filter text holds an operand that is not allowed with its operator (F5); names the place."""


class FilterLimitError(FilterError):
    """The filter is deeper than 100 or has more than 10,000 nodes (F6)."""

    hint = "put many alternatives of one key into one IN list, or split the request"


# --- requests and configuration -------------------------------------------------------------------------


class RequestError(EntrepotError, ValueError):
    """A search request contradicts itself or is out of bounds (S5, S8); nothing was sent."""


class ArgumentTypeError(EntrepotError, TypeError):
    """An argument has the wrong type, such as a bare string where a list of ids is asked (D7)."""


class ConfigurationError(EntrepotError, ValueError):
    """A URL, an option or a config object is wrong. Secrets in it are never repeated."""


class UnknownOptionError(ConfigurationError):
    """An option that nobody knows. The hint names the nearest known one."""


class UnsupportedError(EntrepotError):
    """The store declares that it does not offer this; refused before any I/O."""

    def __init__(self, message: str, *, capability: str, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.capability = capability


class UnsupportedSearchModeError(UnsupportedError):
    """The search mode is not among the store's capabilities (S9)."""

    hint = "name a fallback in the request, as in SearchRequest(..., mode=HYBRID, fallback=SEMANTIC)"


class CompletionLimitError(EntrepotError):
    """Completing a filter outside the engine would read more than `max_completion_rows` (F9).

    Attributes:
        clause: The clause that the engine could not take, printed without its values.
        rows: How many rows had been read.
    """

    def __init__(self, message: str, *, clause: str, rows: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.clause = clause
        self.rows = rows


class EmbeddingError(EntrepotError):
    """The embedding model failed, or its answer has the wrong shape or is not finite."""


class UnembeddableTextError(EmbeddingError, ValueError):
    """A model cannot embed one of the texts, an empty one for instance.

    Attributes:
        index: Position of the text in the call that refused it.
        reason: Why, without naming the text.
    """

    def __init__(self, reason: str, *, index: int, label: str | None = None, hint: str | None = None) -> None:
        super().__init__(f"{label or f'text {index}'}: {reason}", hint=hint)
        self.index = index
        self.reason = reason


# --- collections and writes -----------------------------------------------------------------------------


class CollectionError(EntrepotError):
    """Something about a collection as a whole (D5)."""


class CollectionNotFoundError(CollectionError):
    """The collection does not exist: reading it, or writing with ``create=False``."""

    hint = "the first add() creates it; create_collection() makes it empty"


class CollectionMismatchError(CollectionError):
    """The collection has another dimension, metric, model or layout, or other software made it."""


class WriteError(EntrepotError):
    """A write that did not end as asked."""


class BatchError(WriteError):
    """A batch failed midway (D6).

    Attributes:
        written: Ids that the engine confirmed, in order.
        failed: Ids that are certainly not written, with the reason of each where it is known.
        unknown: Ids that were sent without an answer.
    """

    def __init__(
        self,
        message: str,
        *,
        written: Sequence[str],
        failed: Mapping[str, str],
        unknown: Sequence[str] = (),
        retryable: bool = False,
    ) -> None:
        super().__init__(
            message,
            hint="add() replaces by id, so sending the failed and unknown documents again is safe",
            retryable=retryable,
            outcome="unknown" if unknown else "not_done",
        )
        self.written = tuple(written)
        self.failed = dict(failed)
        self.unknown = tuple(unknown)


class NotYetVisibleError(WriteError):
    """Written, but the engine did not show it to searches within the timeout (S7)."""

    hint = "the data is safe; search later, raise timeout, or pass wait=False"
    retryable = False


class OutsideViewError(WriteError, ValueError):
    """A write through a view would touch or make something outside of it (T2)."""


# --- backends -------------------------------------------------------------------------------------------


class BackendError(EntrepotError):
    """The engine or its driver failed; the driver's exception is the `__cause__`."""


class UnreachableError(BackendError):
    """No connection to the server."""

    hint = "check host and port, and that the server runs"
    retryable = True


class AuthenticationError(BackendError):
    """The server refused the login."""

    hint = "check user, password or key; the plugin's page names the environment variables it reads"


class OperationTimeoutError(BackendError, TimeoutError):
    """No answer within the timeout."""

    hint = "raise timeout, or ask for less"
    retryable = True
    outcome: Outcome = "unknown"


class StoreInUseError(BackendError):
    """Another process holds the writer's lock of an embedded store."""

    hint = "close the other writer, or open this one with read_only=true"
    retryable = True


class CorruptDataError(BackendError):
    """What was read back is not what was written, or the file is damaged."""


# --- life cycle -----------------------------------------------------------------------------------------


class LifecycleError(EntrepotError):
    """An object is used where it no longer can be (E5)."""


class ClosedError(LifecycleError):
    """The store or the memory was closed."""

    hint = "open it anew; a `with` block closes at its end"


class ForkError(LifecycleError):
    """The object crossed a fork or was pickled; connections cannot follow."""

    hint = "open the store in the process that uses it, from the same URL"


# --- plugins --------------------------------------------------------------------------------------------


class PluginError(EntrepotError):
    """Something about a plugin; `entrepot plugins` lists them all."""


class PluginNotFoundError(PluginError):
    """No installed plugin has that name."""


class PluginBrokenError(PluginError):
    """A plugin was found and could not be loaded, or breaks the rules for plugins."""


class PluginConflictError(PluginError):
    """Two distributions claim one name."""


class DriverNotFoundError(PluginError):
    """The plugin is installed and the package it drives is not."""
