"""Questions across conversations: what is asked, and what answers it (M10)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from entrepot.messages import is_dict, is_list

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from entrepot.messages import Message, Role


class Question(NamedTuple):
    """What `search` asks, checked: all that is given must hold (M10).

    Attributes:
        text: Stands in the message's text, letter by letter and in this case.
        role: Who speaks.
        since: Created at this instant or later.
        until: Created before this instant.
        metadata: Top-level keys of the message's metadata, and the values that they have; equal as JSON.
        limit: Most messages.
    """

    text: str | None
    role: Role | None
    since: datetime | None
    until: datetime | None
    metadata: Mapping[str, Any]
    limit: int


def answers(question: Question, message: Message) -> bool:
    """Whether a message is what a question asks for: the meaning of M10 in code."""
    if question.role is not None and message.role is not question.role:
        return False
    if question.since is not None and message.created < question.since:
        return False
    if question.until is not None and message.created >= question.until:
        return False
    if question.text is not None and question.text not in message.text:
        return False
    return all(
        key in message.metadata and same_json(message.metadata[key], value)
        for key, value in question.metadata.items()
    )


def same_json(left: object, right: object) -> bool:
    """Whether two JSON values are equal: True is not 1, and 1 is 1.0, as numbers are in JSON."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if is_dict(left) and is_dict(right):
        return left.keys() == right.keys() and all(
            same_json(value, right[key]) for key, value in left.items()
        )
    if is_list(left) and is_list(right):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)
