"""What the driver raises, in the errors of entrepot (E1, E2, E4).

A driver's message may quote values: it stays in the cause and never goes into ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb
from entrepot.errors import (
    BackendError,
    ClosedError,
    OperationTimeoutError,
    StoreInUseError,
    UnreachableError,
)


@contextmanager
def opening(database: str) -> Iterator[None]:
    """Turn what the driver raises when it opens a database into the error that says what to do next."""
    try:
        yield
    except duckdb.Error as error:
        if isinstance(error, duckdb.IOException) and "lock" in str(error):
            msg = f"another process has {database} open"
            raise StoreInUseError(msg, hint="one process at a time writes to a DuckDB file") from error
        msg = f"{database} cannot be opened"
        hint = "is it a DuckDB file in a folder that exists, and open here with no other settings?"
        raise UnreachableError(msg, hint=hint) from error


@contextmanager
def working(database: str) -> Iterator[None]:
    """Turn what the driver raises within a transaction into the error that says what to do next."""
    try:
        yield
    except duckdb.InterruptException as error:
        raise too_late(database) from error
    except duckdb.ConnectionException as error:
        msg = f"the connection to {database} was closed meanwhile"
        raise ClosedError(msg, outcome="not_done") from error
    except duckdb.TransactionException as error:
        msg = f"{database} refused the transaction"
        raise BackendError(msg, retryable=True, outcome="not_done") from error
    except duckdb.Error as error:
        msg = f"{database} failed with {type(error).__name__}"
        raise BackendError(msg) from error


def too_late(database: str) -> OperationTimeoutError:
    """Return the error for a transaction that was broken off: nothing of it was done."""
    msg = f"no answer from {database} within the timeout"
    return OperationTimeoutError(msg, outcome="not_done")
