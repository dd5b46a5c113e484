"""A translator into text for people: the normal form as an indented tree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from entrepot.filters.convert import AbstractFilterExpressionConverter, Translation, exact
from entrepot.filters.expression import FilterOp
from entrepot.filters.printer import format_leaf

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot.filters.normalise import Leaf


class PrintingFilterConverter(AbstractFilterExpressionConverter[str]):
    """Print what every backend is asked to answer: no NOT above a leaf, constants folded.

    ```text
    AND
      country == 'BG'
      OR
        year >= 2020
        tags IN ['a', 'b']
      active != false  (also where it is absent)
    ```

    Args:
        values: Whether to print operands; if not, each is a question mark.
    """

    def __init__(self, *, values: bool = True) -> None:
        self.values = values

    def leaf(self, leaf: Leaf) -> Translation[str]:
        """Print one leaf, and say where it holds for absent keys (F3)."""
        text = format_leaf(leaf, values=self.values)
        absent = leaf.negated and leaf.op is not FilterOp.ISNULL
        return exact(f"{text}  (also where it is absent)" if absent else text)

    def and_(self, parts: Sequence[str]) -> str:
        """Print the parts below AND."""
        return _below("AND", parts)

    def or_(self, parts: Sequence[str]) -> str:
        """Print the parts below OR."""
        return _below("OR", parts)

    def true(self) -> str:
        """Print the filter that holds for every document."""
        return "TRUE  (every document)"

    def false(self) -> str:
        """Print the filter that holds for no document."""
        return "FALSE  (no document)"


def _below(word: str, parts: Sequence[str]) -> str:
    return "\n  ".join([word, *(part.replace("\n", "\n  ") for part in parts)])
