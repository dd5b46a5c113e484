r"""Names in the engine: the one place where a name of the user's becomes part of a query's text (F10). Pure functions.

Labels and names of indexes cannot be bound as parameters. A collection whose name is a plain one has it as its label;
any other is known by a digest, and its record holds its name. So what is quoted is always made of letters, digits and
underscores, and `quoted` refuses the rest: Cypher reads escapes such as ``\u0060`` before it reads backticks, so that
doubling these is not enough. Metadata keys are never names: they are parts of values.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from uuid import uuid4

from entrepot.encoding import digest

COLLECTIONS: Final = "EntrepotCollection"
"""The label of the nodes that say what a collection is."""
CONVERSATIONS: Final = "EntrepotConversation"
"""The label of conversations, of all memories of a database: so all have the same queries, which are planned once."""
MESSAGES: Final = "EntrepotMessage"
"""The label of their messages."""
_PLAIN: Final = re.compile(r"(?!(?i:entrepot))[A-Za-z][A-Za-z0-9_]{0,99}")
_QUOTABLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,199}")


def quoted(name: str) -> str:
    """Return a name as it stands in a query.

    Raises:
        ValueError: It has other characters than ASCII letters, digits and underscores.
    """
    if _QUOTABLE.fullmatch(name) is None:
        msg = "a name in a query has ASCII letters, digits and underscores only"
        raise ValueError(msg)
    return f"`{name}`"


def label_of(name: str) -> str:
    """Return the label for a collection, different for every name."""
    return name if _PLAIN.fullmatch(name) else "Entrepot_" + digest("label", name)


def new_generation() -> str:
    """Return a label that no collection had before: what is sent to it meets this collection or none."""
    return f"Entrepot_{uuid4().hex}"


class Names(NamedTuple):
    """What a collection's queries call things, quoted.

    Attributes:
        label: The label that its documents have for whoever looks at the graph.
        generation: The label that this collection's documents alone have.
        key: The constraint on their ids.
        words: The full-text index.
        vectors: The vector index.
    """

    label: str
    generation: str
    key: str
    words: str
    vectors: str


def names_of(label: str, generation: str) -> Names:
    """Return the quoted names of a collection."""
    return Names(
        label=quoted(label),
        generation=quoted(generation),
        key=quoted(f"{generation}_key"),
        words=quoted(f"{generation}_words"),
        vectors=quoted(f"{generation}_vectors"),
    )
