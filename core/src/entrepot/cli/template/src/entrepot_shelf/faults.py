"""What the driver raises, in the errors of entrepot (E1, E2, E4).

A driver's message may quote values and secrets: it stays in the cause and never goes into ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from entrepot.errors import AuthenticationError, BackendError, CollectionNotFoundError, UnreachableError

from entrepot_shelf.engine import EngineError, NoSuchDrawerError, RefusedError, WrongPasswordError


@contextmanager
def translated(where: str, collection: str) -> Iterator[None]:
    """Turn what the driver raises within into the error that says what to do next."""
    try:
        yield
    # REPLACE: the exceptions of your driver. Timeouts are OperationTimeoutError; `retryable` and
    # `outcome` tell the core whether it may try again.
    except RefusedError as error:
        msg = f"no connection to {where}"
        raise UnreachableError(msg, hint="is the server up, and the port right?") from error
    except WrongPasswordError as error:
        msg = f"{where} refused the login"
        raise AuthenticationError(
            msg, hint="the password comes from the URL, the argument or SHELF_PASSWORD"
        ) from error
    except NoSuchDrawerError as error:
        msg = f"there is no collection {collection!r}"
        raise CollectionNotFoundError(msg) from error
    except EngineError as error:
        msg = f"{where} failed with {type(error).__name__}"
        raise BackendError(msg) from error
