"""Messages and their codec: M2, M6."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from entrepot import (
    AssistantMessage,
    Media,
    Message,
    SystemMessage,
    ToolCall,
    ToolResponse,
    ToolResponseMessage,
    UserMessage,
    decode_message,
    encode_message,
)
from entrepot.errors import CorruptDataError, MessageError
from entrepot.messages import Role, check_batch

strings = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
ids = strings.filter(bool)
instants = st.datetimes(timezones=st.just(UTC), allow_imaginary=False).map(lambda at: at.replace(fold=0))
json_keys = st.one_of(strings, st.sampled_from(["$datetime", "$object", "$", "$x"]))
json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(allow_nan=False, allow_infinity=False),
        strings,
        instants,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(json_keys, inner, max_size=3)),
    max_leaves=12,
)
metadatas = st.dictionaries(json_keys, json_values, max_size=4)
media = st.builds(
    Media, mime_type=st.just("image/png"), data=st.binary(max_size=20), name=st.none() | strings
)
common: dict[str, Any] = {"text": strings, "id": ids, "metadata": metadatas, "created": instants}
messages = st.one_of(
    st.builds(SystemMessage, **common),
    st.builds(UserMessage, **common, media=st.lists(media, max_size=2).map(tuple)),
    st.builds(
        AssistantMessage,
        **common,
        tool_calls=st.lists(st.builds(ToolCall, strings, strings, strings), max_size=3).map(tuple),
        media=st.lists(media, max_size=1).map(tuple),
    ),
    st.builds(
        ToolResponseMessage,
        **common,
        responses=st.lists(st.builds(ToolResponse, strings, strings, strings), max_size=3).map(tuple),
    ),
)


@given(messages)
def test_a_message_reads_back_as_it_was_written(message: Message) -> None:
    # M2
    read = decode_message(encode_message(message))
    assert type(read) is type(message)
    assert repr(read) == repr(message)  # repr tells types and the sign of zero apart
    assert b"\n" not in encode_message(message)


def test_arguments_of_tool_calls_keep_every_byte() -> None:
    # M2
    raw = '{ "b":1.0 , "a" : [1,  2],"a":3, broken'
    read = decode_message(encode_message(AssistantMessage(tool_calls=(ToolCall("c1", "f", raw),))))
    assert isinstance(read, AssistantMessage)
    assert read.tool_calls[0].arguments == raw


def test_the_text_is_versioned_json_with_the_role() -> None:
    # M2
    text = json.loads(encode_message(UserMessage("hi", id="m1", created=datetime(2026, 1, 31, tzinfo=UTC))))
    assert text == {"v": 1, "role": "user", "text": "hi", "id": "m1", "created": "2026-01-31T00:00:00Z"}


def test_roles() -> None:
    assert [
        kind("t").role for kind in (SystemMessage, UserMessage, AssistantMessage, ToolResponseMessage)
    ] == [
        Role.SYSTEM,
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL,
    ]


def test_id_and_time_are_given_when_the_message_is_made() -> None:
    # M2
    before = datetime.now(UTC)
    first, second = UserMessage("a"), UserMessage("a")
    assert first.id != second.id
    assert before <= first.created <= datetime.now(UTC)
    with pytest.raises(AttributeError):
        first.text = "b"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def test_the_creation_time_is_an_instant() -> None:
    # M2
    local = datetime(2026, 1, 31, 14, tzinfo=timezone(timedelta(hours=2)))
    assert UserMessage("a", created=local).created == datetime(2026, 1, 31, 12, tzinfo=UTC)
    with pytest.raises(MessageError):
        UserMessage("a", created=datetime(2026, 1, 31))  # noqa: DTZ001 - naive on purpose


def test_a_users_object_is_never_taken_for_an_instant() -> None:
    # M2
    metadata: dict[str, Any] = {
        "a": {"$datetime": "2026-01-31T00:00:00Z"},
        "b": {"$object": {"$datetime": 1}},
        "c": {"$datetime": "x", "other": 1},
        "$datetime": "top",
    }
    assert decode_message(encode_message(UserMessage("a", metadata=metadata))).metadata == metadata


BAD: list[Any] = [
    UserMessage("NUL \0"),
    UserMessage("lone \ud800"),
    UserMessage("a", id=""),
    UserMessage("a", id="x" * 513),
    UserMessage(3),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    UserMessage("a", metadata={"n": math.nan}),
    UserMessage("a", metadata={"n": [math.inf]}),
    UserMessage("a", metadata={"n": 2**64}),
    UserMessage("a", metadata={"n": (1, 2)}),
    UserMessage("a", metadata={"n": b"x"}),
    UserMessage("a", metadata={"n": {1: 2}}),
    UserMessage("a", metadata={"n\0": 2}),
    UserMessage("a", metadata={"at": datetime(2026, 1, 1)}),  # noqa: DTZ001 - naive on purpose
    AssistantMessage(tool_calls=(ToolCall("c", "f", "\0"),)),
    ToolResponseMessage(responses=(ToolResponse("c", "f", "\ud800"),)),
    "a",
    {"role": "user", "text": "a"},
    None,
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: type(bad).__name__)
def test_a_batch_with_a_bad_message_is_refused_whole(bad: Any) -> None:
    # M2
    with pytest.raises(MessageError):
        check_batch([UserMessage("fine"), bad])


def test_deep_metadata_is_refused_without_recursion() -> None:
    # M2
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(MessageError, match="nests deeper"):
        check_batch([UserMessage("a", metadata={"deep": deep})])


def test_an_id_twice_in_a_batch_is_refused() -> None:
    # M3
    with pytest.raises(MessageError, match="twice"):
        check_batch([UserMessage("a", id="1"), UserMessage("b", id="1")])
    with pytest.raises(MessageError, match="list of messages"):
        check_batch(UserMessage("a"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_what_cannot_be_read_is_an_error_not_a_guess() -> None:
    # M2
    good = encode_message(UserMessage("a", id="1"))
    for text in (b"{}", b"not json", good.replace(b'"user"', b'"guest"'), good.replace(b'"v":1', b'"v":2')):
        with pytest.raises(CorruptDataError) as caught:
            decode_message(text)
        assert caught.value.__cause__ is None or isinstance(caught.value.__cause__, msgspec.DecodeError)


def made(kind: Any, **fields: Any) -> Any:
    return kind(**fields)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (UserMessage, {"created": "2020"}),
        (SystemMessage, {"created": None}),
        (UserMessage, {"media": "abc"}),
        (UserMessage, {"media": ({"mime_type": "image/png"},)}),
        (UserMessage, {"media": None}),
        (AssistantMessage, {"tool_calls": ({"id": "1", "name": "f"},)}),
        (AssistantMessage, {"tool_calls": ToolCall("1", "f")}),
        (AssistantMessage, {"media": (None,)}),
        (ToolResponseMessage, {"responses": (None,)}),
        (ToolResponseMessage, {"responses": 5}),
        (Media, {"mime_type": None, "data": b""}),
        (Media, {"mime_type": "image/png", "data": "text"}),
        (Media, {"mime_type": "image/png", "url": 5}),
        (Media, {"mime_type": "image/png", "url": "u", "name": 5}),
    ],
)
def test_what_is_of_another_type_is_refused_at_once(kind: Any, fields: dict[str, Any]) -> None:  # M2
    with pytest.raises(MessageError):
        made(kind, **fields)


def test_lists_become_tuples_so_that_what_is_read_equals_what_was_made() -> None:  # M2
    call, response = ToolCall("1", "f"), ToolResponse("1", "f", "x")
    picture = Media(mime_type="image/png", data=b"x")
    made_of_lists = [
        made(AssistantMessage, tool_calls=[call], media=[picture]),
        made(UserMessage, media=[picture]),
        made(ToolResponseMessage, responses=[response]),
        made(ToolResponseMessage, responses=[]),
    ]
    assert made_of_lists[0].tool_calls == (call,)
    assert made_of_lists[3].responses == ()
    for message in made_of_lists:
        assert decode_message(encode_message(message)) == message
