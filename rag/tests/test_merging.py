"""Streams of tool calls, in any cut."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rag.tests.chat_server import END, STOP, USAGE, call, delta, sse

from entrepot.messages import ToolCall
from entrepot_rag import ChatModelError, Chunk, Merger, ToolCallFragment, Usage
from entrepot_rag.merging import merged
from entrepot_rag.models.events import Events
from entrepot_rag.models.openai_wire import Endpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

ENDPOINT = Endpoint("http://chat", "m")


WEATHER = ToolCall("c1", "weather", '{"city": "Sofia"}')
TIME = ToolCall("c2", "time", '{"zone": "EET"}')

RECORDED = {
    "each with its index, the id once": sse(
        delta(role="assistant", content=None),
        delta(tool_calls=[call(0, "c1", name="weather", arguments="")]),
        delta(tool_calls=[call(0, arguments='{"city"')]),
        delta(tool_calls=[call(0, arguments=': "Sofia"}')]),
        delta(tool_calls=[call(1, "c2", name="time", arguments="")]),
        delta(tool_calls=[call(1, arguments='{"zone": "EET"}')]),
        END,
        USAGE,
    ),
    "both pieces in one event": sse(
        delta(
            tool_calls=[
                call(0, "c1", name="weather", arguments='{"ci'),
                call(1, "c2", name="time", arguments='{"zo'),
            ]
        ),
        delta(tool_calls=[call(1, arguments='ne": "EET"}'), call(0, arguments='ty": "Sofia"}')]),
        END,
        USAGE,
    ),
    "whole calls, all under the index 0": sse(
        delta(tool_calls=[call(0, "c1", name="weather", arguments='{"city": "Sofia"}')]),
        delta(tool_calls=[call(0, "c2", name="time", arguments='{"zone": "EET"}')]),
        END,
        USAGE,
        end="\r\n\r\n",
    ),
    "without an index": sse(
        delta(tool_calls=[call(None, "c1", name="weather", arguments='{"city": ')]),
        delta(tool_calls=[call(None, arguments='"Sofia"}')]),
        delta(tool_calls=[call(None, "c2", name="time", arguments='{"zone": "EET"}')]),
        END,
        USAGE,
        end="\r\r",
    ),
    "the id and the name in every piece": sse(
        delta(tool_calls=[call(0, "c1", name="weather", arguments='{"city"')]),
        delta(tool_calls=[call(0, "c1", name="weather", arguments=': "Sofia"}')]),
        delta(tool_calls=[call(1, "c2", name="time", arguments='{"zone": "EET"}')]),
        END,
        USAGE,
    ),
    "nothing after the last line": sse(
        delta(tool_calls=[call(0, "c1", name="weather", arguments='{"city": "Sofia"}')]),
        delta(tool_calls=[call(1, "c2", name="time", arguments='{"zone": "EET"}')]),
        END,
        USAGE,
        done=False,
    ).rstrip(b"\n"),
}


def read(pieces: Sequence[bytes]) -> list[Chunk]:
    """Return the chunks of a stream that came in these pieces."""
    events = Events()
    data = [event for piece in pieces for event in events.feed(piece)] + list(events.finish())
    return [chunk for event in data for chunk in ENDPOINT.chunks(event) or []]


@pytest.mark.parametrize("name", RECORDED)
def test_streams_cut_at_every_byte_make_the_same_calls(name: str) -> None:
    recorded = RECORDED[name]
    for place in range(len(recorded) + 1):
        response = merged(read([recorded[:place], recorded[place:]]))
        assert response.tool_calls == (WEATHER, TIME)
        assert response.usage == Usage(7, 5)
        assert response.finish_reason == "tool_calls"


@pytest.mark.parametrize("name", RECORDED)
def test_streams_of_single_bytes_make_the_same_calls(name: str) -> None:
    recorded = RECORDED[name]
    response = merged(read([recorded[place : place + 1] for place in range(len(recorded))]))
    assert response.tool_calls == (WEATHER, TIME)


@given(st.data())
def test_texts_of_any_characters_in_any_cut(data: st.DataObject) -> None:
    text = data.draw(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1))
    recorded = sse(delta(content=text), STOP)
    cuts = sorted(data.draw(st.sets(st.integers(0, len(recorded)))) | {0, len(recorded)})
    response = merged(read([recorded[start:end] for start, end in pairwise(cuts)]))
    assert response.text == text


def test_lines_end_where_the_standard_says_and_nowhere_else() -> None:
    text = "a\u2028b\u0085c\x0bd"
    recorded = (
        "data: " + f'{{"choices":[{{"delta":{{"content":"{text}"}},"finish_reason":"stop"}}]}}'
    ).replace("\x0b", "\\u000b")
    assert merged(read([recorded.encode() + b"\n\n"])).text == text


def test_comments_and_other_fields_are_no_data() -> None:
    recorded = b": keep-alive\n\nevent: message\nid: 1\n" + sse(delta(content="x"), END)
    assert merged(read([recorded])).text == "x"


def test_data_of_several_lines_is_one() -> None:
    events = Events()
    assert list(events.feed(b"data: a\ndata: b\n\n")) == [b"a\nb"]


def test_several_answers_stay_apart() -> None:
    merger = Merger()
    for number, text in [(0, "a"), (1, "x"), (0, "b"), (1, "y")]:
        merger.add(Chunk(text=text, generation=number))
    finished = [merger.is_finished]
    for number, reason in enumerate(["stop", "length"]):
        merger.add(Chunk(finish_reason=reason, generation=number))
        finished.append(merger.is_finished)
    assert finished == [False, False, True]
    assert [(one.message.text, one.finish_reason) for one in merger.response().generations] == [
        ("ab", "stop"),
        ("xy", "length"),
    ]


def test_calls_without_an_id_get_one() -> None:
    fragments = [ToolCallFragment(index=number, name="t", arguments="{}") for number in range(2)]
    response = merged([Chunk(fragments=(one,)) for one in fragments])
    assert [call.id for call in response.tool_calls] == ["call_0", "call_1"]


def test_a_call_without_arguments_has_an_empty_object() -> None:
    response = merged([Chunk(fragments=(ToolCallFragment(index=0, id="c", name="t"),))])
    assert response.tool_calls == (ToolCall("c", "t", "{}"),)


def test_a_stream_without_an_answer_is_an_error() -> None:
    with pytest.raises(ChatModelError, match="without an answer"):
        merged([Chunk(usage=Usage(1, 0))])


def test_a_call_without_a_name_is_an_error() -> None:
    with pytest.raises(ChatModelError, match="without a name"):
        merged([Chunk(fragments=(ToolCallFragment(index=0, id="c", arguments="{}"),))])
