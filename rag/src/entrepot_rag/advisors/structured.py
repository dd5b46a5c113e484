"""Answers of a type: checked, and asked for again if they do not fit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from entrepot.errors import ConfigurationError
from entrepot.messages import UserMessage
from entrepot_rag.advisors.base import STRUCTURED, BaseAdvisor
from entrepot_rag.chat import Usage
from entrepot_rag.errors import StructuredOutputError
from entrepot_rag.typed import decoded, schema_of

if TYPE_CHECKING:
    from entrepot.messages import Message
    from entrepot_rag.advice import Advice
    from entrepot_rag.chat import ChatResponse
    from entrepot_rag.requests import Chain, ChatRequest

VALUE: Final = "structured_output"
"""The key of the response's context with the value."""
_ASKED: Final = "Answer with one JSON value and nothing else. It must fit this JSON schema:\n"
_FENCE: Final = re.compile(r"\A\s*```[A-Za-z0-9_-]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_MOST_REPAIRS: Final = 20


class StructuredOutputAdvisor(BaseAdvisor):
    """Asks for JSON of a type, and checks it. An answer that does not fit is sent back with what is wrong with it.

    The value stands in the response's context under `VALUE`. Rounds of repair are no part of the conversation: only the
    last answer is.

    Args:
        kind: A type that msgspec or pydantic can check.
        repairs: How often to ask again.
        order: As of `BaseAdvisor`.
        name: As of `BaseAdvisor`.

    Raises:
        ConfigurationError: JSON has no such type.
    """

    default_order = STRUCTURED

    def __init__(
        self, kind: Any, *, repairs: int = 2, order: int | None = None, name: str | None = None
    ) -> None:
        super().__init__(order=order, name=name)
        if type(repairs) is not int or not 0 <= repairs <= _MOST_REPAIRS:
            msg = f"repairs must be an int from 0 to {_MOST_REPAIRS}, not {repairs!r}"
            raise ConfigurationError(msg)
        try:
            self.schema = schema_of(kind)
        except TypeError as error:
            msg = f"no JSON can be of the type {kind!r}"
            raise ConfigurationError(msg) from error
        self.kind = kind
        self.repairs = repairs

    def advise(self, request: ChatRequest, chain: Chain) -> Advice[ChatResponse]:
        """Ask until the answer fits.

        Raises:
            StructuredOutputError: It does not, and there were as many repairs as are allowed.
        """
        asked = request.with_system(_ASKED + msgspec.json.encode(self.schema).decode())
        repair: list[Message] = []
        usage = Usage()
        attempts = 0
        while True:
            response = yield from chain.proceed(asked.with_messages([*asked.messages, *repair]))
            usage += response.usage
            attempts += 1
            try:
                value = decoded(unfenced(response.text), self.kind)
            except ValueError as error:
                fault = str(error)
                if attempts > self.repairs:
                    msg = (
                        f"the model's answer is not of the type asked for, after {attempts} answers: {fault}"
                    )
                    raise StructuredOutputError(msg, text=response.text, attempts=attempts) from error
            else:
                return msgspec.structs.replace(
                    response, usage=usage, context={**response.context, VALUE: value}
                )
            repair = [
                response.message,
                UserMessage(f"That does not fit: {fault}\nAnswer again, with the JSON alone."),
            ]


def unfenced(text: str) -> str:
    """Return what stands in a fenced block, if the text is one."""
    found = _FENCE.match(text)
    return found[1] if found is not None else text
