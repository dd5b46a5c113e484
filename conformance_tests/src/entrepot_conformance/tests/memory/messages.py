"""Messages to test with, and what runs things at once."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final

from entrepot import (
    AssistantMessage,
    Media,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

NOON: Final = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)

ODD_TEXTS: Final = [
    "",
    " ",
    "trailing ",
    "\tTab\r\nand lines\n",
    "'single' \"double\" `back` \\ %s % _ * ? ; -- /* */ {} ${x} $1 :name ?",
    "'; DROP TABLE messages; --",
    "\u0001\u001f\u007f\u0085\u2028\u2029\ufeff",
    "e\u0301 \u00e9 \uff21 \ufb01",  # not normalised
    "Straße STRASSE İstanbul \u0131I",
    "Привет, 世界 مرحبا \u202egnp.exe",
    "😀👨‍👩‍👧‍👦 \U0010ffff \uffff \ue000",
    "x" * 20_000,
    "null",
    '{"v": 1, "role": "user"}',
]
"""Texts that something on the way could trim, fold, cut, escape twice or take for its own syntax."""

ODD_METADATA: Final[list[dict[str, Any]]] = [
    {},
    {"null": None, "true": True, "false": False, "one": 1, "float one": 1.0, "zero": -0.0, "text": "1"},
    {"big": 2**63 - 1, "small": -(2**63), "beyond doubles": 2**53 + 1, "tiny": 5e-324, "huge": 1.7e308},
    {"empty": {"list": [], "object": {}, "text": ""}, "mixed": [1, 1.0, True, None, "1", [[]], {"a": [{}]}]},
    {
        "when": NOON,
        "nested": [{"when": NOON.replace(microsecond=0)}],
        "year one": datetime(1, 1, 1, tzinfo=UTC),
    },
    {"$datetime": "not one", "$object": {"$datetime": "2026-01-31"}, "a": {"$x": 1, "b": {"$object": 1}}},
    {"": "empty key", " ": 1, "a.b": 2, "a'\"`\\": 3, "ключ": 4, "😀": 5, "k" * 600: 6},
    {f"key {number}": {"number": number, "text": ODD_TEXTS[number % len(ODD_TEXTS)]} for number in range(30)},
]

ODD_IDS: Final = [
    "a",
    "A",
    "a ",
    " a",
    "a\t",
    "a\n",
    "á",
    "a\u0301",
    "ß",
    "ss",
    "SS",
    "ﬁ",
    "fi",
    "a:b",
    "a:b:c",
    "a*",
    "*",
    "a%",
    "a_b",
    "a?b",
    "a'b",
    'a"b',
    "a`b",
    "a\\b",
    "a/b",
    "../a",
    "a;DROP TABLE x",
    "{a}",
    "$a",
    "None",
    "null",
    "0",
    "00",
    "1",
    "1.0",
    "true",
    "İ",
    "i",
    "I",
    "\u0131",  # the i without a dot
    "日本語",
    "😀",
    "\U0010ffff",
    "\uffff",
    "\u200b",
    "x" * 512,
    "x" * 511 + "y",
    "x" * 511,
    "😀" * 512,
    "😀" * 511 + "x",
]
"""Different ids that something on the way could take for the same, or for its own syntax (M6)."""


def exchange(name: str) -> list[Message]:
    """Return a whole turn: question, call of a tool, its answer, answer."""
    return [
        UserMessage(f"question {name}", id=f"{name} question"),
        AssistantMessage(
            id=f"{name} call", tool_calls=(ToolCall(f"{name} 1", "weather", '{"city" :"Sofia"}'),)
        ),
        ToolResponseMessage(
            id=f"{name} response", responses=(ToolResponse(f"{name} 1", "weather", "sunny"),)
        ),
        AssistantMessage(f"answer {name}", id=f"{name} answer"),
    ]


def every_kind() -> list[Message]:
    """Return messages of every kind with everything that a message can hold (M2)."""
    media = (
        Media(mime_type="image/png", data=bytes(range(256)), name="a b.png"),
        Media(mime_type="audio/wav", url="https://example.com/a%20b.wav?x=1&y=ä"),
    )
    calls = (
        ToolCall("call 1", "weather", '{ "city":"Sofia",\n "days" : 1.50 , "x": [] }'),
        ToolCall("call 2", "weather", "not JSON {"),
        ToolCall("", "", ""),
    )
    responses = (
        ToolResponse("call 1", "weather", "☀️ 25°"),
        ToolResponse("call 2", "weather", ""),
        ToolResponse("", "", '{"error": null}'),
    )
    messages: list[Message] = [
        SystemMessage("You answer briefly."),
        UserMessage("What is this?", media=media),
        AssistantMessage("I look it up.", tool_calls=calls, media=media),
        AssistantMessage(tool_calls=calls),
        ToolResponseMessage(responses=responses),
        ToolResponseMessage("with a text", responses=responses),
        AssistantMessage(),
        UserMessage(created=NOON),
        UserMessage("in another zone", created=NOON.astimezone(timezone(timedelta(hours=5, minutes=30)))),
        UserMessage("long ago", created=datetime(1, 1, 1, tzinfo=UTC)),
        UserMessage("far ahead", created=datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)),
    ]
    messages += [UserMessage(text, id=f"text {number}") for number, text in enumerate(ODD_TEXTS)]
    messages += [AssistantMessage(text, metadata={text: text}) for text in ODD_TEXTS if text]
    messages += [UserMessage(f"metadata {number}", metadata=data) for number, data in enumerate(ODD_METADATA)]
    messages += [UserMessage("odd id", id=name) for name in ODD_IDS]
    return messages


def batch(writer: object, number: object, size: int = 3) -> list[Message]:
    """Return the messages of one batch; their ids say where they belong."""
    return [UserMessage(f"{writer}/{number}/{part}", id=f"{writer}/{number}/{part}") for part in range(size)]


def ids(messages: Sequence[Message]) -> list[str]:
    """Return the messages' ids, in order."""
    return [message.id for message in messages]


def at_once(*functions: Callable[[], object], seconds: float = 60) -> None:
    """Run functions in threads that start together; the first exception is raised here."""
    barrier = threading.Barrier(len(functions))
    errors: list[BaseException] = []

    def run(function: Callable[[], object]) -> None:
        try:
            barrier.wait()
            function()
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,), daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    until = time.monotonic() + seconds
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    if errors:
        raise errors[0]
    assert not any(thread.is_alive() for thread in threads), f"not done after {seconds} seconds"
