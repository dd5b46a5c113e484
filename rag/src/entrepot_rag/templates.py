"""Texts with placeholders.

A placeholder is a name in braces that the template's owner knows; all other braces are text. What is put in is never
read as a template again, so whatever users and documents say, it stays what it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from entrepot_rag.errors import TemplateError

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLACEHOLDER: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Template:
    """A text with placeholders, checked when it is made.

    Args:
        text: Such as ``Answer {query} from {context}.``
        needs: Names that the text must hold.
        knows: Further names that it may hold.

    Raises:
        TemplateError: The text lacks a name that is needed, or holds one that nothing fills.
    """

    def __init__(self, text: str, *, needs: Iterable[str] = (), knows: Iterable[str] = ()) -> None:
        needed = set(needs)
        held = set(_PLACEHOLDER.findall(text))
        lacking, unknown = sorted(needed - held), sorted(held - needed - set(knows))
        if lacking or unknown:
            told = [f"lacks {{{name}}}" for name in lacking] + [f"holds {{{name}}}" for name in unknown]
            known = ", ".join(f"{{{name}}}" for name in sorted(needed | set(knows)))
            msg = f"the template {' and '.join(told)}"
            raise TemplateError(msg, hint=f"its placeholders are {known}")
        self.text = text

    def filled(self, **values: str) -> str:
        """Return the text with values in the place of names; a name without a value stays."""
        return fill(self.text, values)


def fill(text: str, values: dict[str, str]) -> str:
    """Return `text` with those names in braces replaced that `values` holds, each once, from left to right."""
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)
