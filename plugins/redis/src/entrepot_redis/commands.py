"""What a script is made of: commands, and Lua that the server runs as one step."""

from __future__ import annotations

from hashlib import sha1
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

T = TypeVar("T")

Command: TypeAlias = "tuple[str | bytes | int | float, ...]"


class Ask(NamedTuple):
    """Commands that go to the server together.

    Attributes:
        commands: The commands; their replies come in this order.
        writes: Whether they change anything.
    """

    commands: Sequence[Command]
    writes: bool = False


if TYPE_CHECKING:
    Script: TypeAlias = Generator[Ask, list[Any], T]
    """The commands of an operation that returns T."""


class Lua:
    """A script that the server runs as one step."""

    known: Final[dict[str, str]] = {}
    """All scripts by their digests, as EVALSHA calls them."""

    def __init__(self, text: str) -> None:
        self.digest = sha1(text.encode(), usedforsecurity=False).hexdigest()
        self.known[self.digest] = text

    def __call__(self, keys: Sequence[str | bytes], *arguments: str | bytes | float) -> Command:
        """Return the command that runs it; the server has its text once it was run."""
        return ("EVALSHA", self.digest, len(keys), *keys, *arguments)
