"""Words that end a turn before it reaches the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from entrepot.errors import ConfigurationError
from entrepot.messages import Role
from entrepot_rag.advisors.base import SAFEGUARD, BaseAdvisor, answer
from entrepot_rag.chat import Chunk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from entrepot_rag.advice import Advice
    from entrepot_rag.chat import ChatResponse
    from entrepot_rag.requests import Chain, ChatRequest

REFUSAL: Final = "I cannot help with that. May I help with something else?"
REFUSED: Final = "content_filter"
"""Why a refused turn ended."""


class SafeGuardAdvisor(BaseAdvisor):
    """Answers by itself if what the user said holds one of some words, in any case.

    Looked at is what the user says in this turn and what the caller's system message says, not what was said before,
    as nothing that was refused is remembered. A word is found inside of others, too.

    Args:
        words: What is not let through.
        refusal: What is answered instead.
        order: As of `BaseAdvisor`.
        name: As of `BaseAdvisor`.
    """

    default_order = SAFEGUARD

    def __init__(
        self,
        words: Iterable[str],
        *,
        refusal: str = REFUSAL,
        order: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(order=order, name=name)
        if isinstance(words, str):
            msg = "words must be a list of words, not one text"
            raise ConfigurationError(msg, hint="give it as [...]")
        self.words = tuple(word.casefold() for word in words)
        if not all(word.strip() for word in self.words):
            msg = "an empty word would stop everything"
            raise ConfigurationError(msg)
        self.refusal = refusal

    def advise(self, request: ChatRequest, chain: Chain) -> Advice[ChatResponse]:
        """Ask, or refuse."""
        said = "\n".join(
            message.text for message in request.messages if message.role in {Role.USER, Role.SYSTEM}
        ).casefold()
        if any(word in said for word in self.words):
            yield from chain.emit(Chunk(text=self.refusal, finish_reason=REFUSED))
            return answer(self.refusal, reason=REFUSED)
        return (yield from chain.proceed(request))
