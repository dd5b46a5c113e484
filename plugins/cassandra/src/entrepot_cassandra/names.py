"""Names in the engine: the one place where a name becomes a part of a statement (F10). Pure functions.

A keyspace has the name that the user gives it, if that is letters, digits and ``_``. The name of a collection or of a
memory is a value everywhere; tables are known by a digest or a number of their own. Metadata keys are never names: they
are parts of tokens, and values of the catalogue.
"""

from __future__ import annotations

import re
from typing import Final
from uuid import uuid4

from entrepot.encoding import digest
from entrepot.errors import ConfigurationError

_PLAIN: Final = re.compile(r"[A-Za-z0-9_]{1,48}")
_OTHER: Final = re.compile(r"[^a-z0-9]+")
_SHOWN: Final = 20

CATALOGUE: Final = "entrepot_collections"
"""The table of all collections of a keyspace."""


def quoted(name: str) -> str:
    """Return a name as CQL takes it, its letters as they are.

    Raises:
        ConfigurationError: It has other characters than letters, digits and ``_``, or more than 48.
    """
    if not _PLAIN.fullmatch(name):
        msg = f"a keyspace's name has up to 48 letters, digits and _, which {name!r} has not"
        raise ConfigurationError(msg, hint="the path of the URL is keyspace/collection")
    return f'"{name}"'


def _shown(name: str) -> str:
    """Return what can be shown of a name to those who look at tables."""
    return _OTHER.sub("_", name.lower()).strip("_")[:_SHOWN].rstrip("_") or "x"


def new_table(collection: str) -> str:
    """Return the name of a table that no collection had before."""
    return f"e_{_shown(collection)}_{uuid4().hex[:16]}"


def memory_table(memory: str) -> str:
    """Return the name of a memory's table, different for every memory."""
    return f"c_{_shown(memory)}_{digest('memory', memory)}"
