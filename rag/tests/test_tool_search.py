"""One tool that finds others: indexes, sessions, what the model is shown."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

import entrepot as ep
from entrepot.errors import BackendError, ConfigurationError
from entrepot.messages import ToolResponseMessage
from entrepot_rag import (
    ChatClient,
    CompositeEviction,
    EachCallEviction,
    FullTextToolIndex,
    LruEviction,
    MessageChatMemoryAdvisor,
    NoEviction,
    RegexToolIndex,
    ScriptedChatModel,
    ToolDefinition,
    ToolSearchAdvisor,
    TtlEviction,
    VectorToolIndex,
    tool,
)
from entrepot_rag import advice as advices
from entrepot_rag.models.scripted import asking
from entrepot_rag.tool_search.index import fingerprint
from entrepot_rag.tool_search.sessions import Sessions

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from entrepot_rag import ChatPrompt, ChatResponse, Eviction, Found, ToolIndex
    from entrepot_rag.advice import Advice

    Ask = Callable[[ChatPrompt], ChatResponse]


def weather(city: str) -> str:
    """Tell the weather of a place."""
    return f"sun in {city}"


def book_table(restaurant: str) -> str:
    """Reserve a table in a restaurant."""
    return f"booked {restaurant}"


def send_mail(to: str) -> str:
    """Send an electronic letter."""
    return f"sent to {to}"


TOOLS = [tool(one) for one in (weather, book_table, send_mail)]
DEFINITIONS = [one.definition for one in TOOLS]
SEARCH = "tool_search"


@pytest.fixture(params=["regex", "fulltext", "vector", "hybrid"])
def index(request: pytest.FixtureRequest) -> Generator[ToolIndex]:
    """Return each kind of index."""
    if request.param == "regex":
        yield RegexToolIndex()
    elif request.param == "fulltext":
        yield FullTextToolIndex()
    else:
        with ep.open_vector_store("simple://", embedding="hash") as store:
            yield VectorToolIndex(store, mode="hybrid" if request.param == "hybrid" else "semantic")


def search(index: ToolIndex, session: str, query: str, limit: int = 5) -> list[str]:
    """Search in both colours, which must agree."""
    found = advices.run(index.search(session, query, limit))
    assert asyncio.run(advices.arun(index.search(session, query, limit))) == found
    return [one.name for one in found]


def test_what_fits_best_comes_first(index: ToolIndex) -> None:
    advices.run(index.build("s", DEFINITIONS))
    assert search(index, "s", "reserve a table")[0] == "book_table"
    assert search(index, "s", "send a mail", 1) == ["send_mail"]
    assert search(index, "s", "the weather", 1) == ["weather"]


def test_sessions_see_their_own_tools_alone(index: ToolIndex) -> None:
    advices.run(index.build("a", DEFINITIONS[:1]))
    advices.run(index.build("b", DEFINITIONS[1:]))
    assert search(index, "a", "weather table mail") == ["weather"]
    assert set(search(index, "b", "weather table mail")) == {"book_table", "send_mail"}
    assert search(index, "never", "weather") == []
    advices.run(index.remove("b"))
    assert search(index, "b", "weather table mail") == []
    assert search(index, "a", "weather table mail") == ["weather"]


def test_building_anew_forgets_what_was_there(index: ToolIndex) -> None:
    advices.run(index.build("s", DEFINITIONS))
    advices.run(index.build("s", DEFINITIONS[:1]))
    assert search(index, "s", "weather table mail") == ["weather"]
    advices.run(index.build("s", []))
    assert search(index, "s", "weather") == []
    advices.run(index.remove("s"))
    advices.run(index.remove("s"))


def test_a_pattern_is_no_expression() -> None:
    index = RegexToolIndex()
    advices.run(index.build("s", DEFINITIONS))
    assert search(index, "s", "(.*)+[") == ["weather", "book_table", "send_mail"]  # no word, so all
    assert search(index, "s", ".*|zz") == []


def test_names_are_read_as_words() -> None:
    index = FullTextToolIndex()
    advices.run(
        index.build("s", [ToolDefinition(name="getHTTPStatus"), ToolDefinition(name="list-open_invoices")])
    )
    assert search(index, "s", "http status") == ["getHTTPStatus"]
    assert search(index, "s", "open invoice") == ["list-open_invoices"]


def test_a_fingerprint_is_of_names_descriptions_and_schemas() -> None:
    base = ToolDefinition(name="a", description="d", parameters={"type": "object", "properties": {}})
    other = ToolDefinition(name="b")
    marks = {
        fingerprint(tools)
        for tools in (
            [base],
            [other],
            [base, other],
            [ToolDefinition(name="a", description="e", parameters=base.parameters)],
            [ToolDefinition(name="a", description="d", parameters={"type": "object"})],
        )
    }
    assert len(marks) == 5
    assert fingerprint([base, other]) == fingerprint([other, base])


# --- the advisor ----------------------------------------------------------------------------------------


def client(index: ToolIndex | None, model: ScriptedChatModel, **options: Any) -> ChatClient:
    """Return a client with three tools and a search."""
    return ChatClient(model, tools=TOOLS, advisors=[ToolSearchAdvisor(index, **options)])


def shown(model: ScriptedChatModel) -> list[list[str]]:
    """Return the tools of each prompt."""
    return [[one.name for one in prompt.tools] for prompt in model.prompts]


def test_the_model_is_shown_what_it_has_found(ask: Ask, index: ToolIndex) -> None:
    model = ScriptedChatModel(
        [
            asking(SEARCH, {"query": "reserve a table", "max_results": 1}),
            asking("book_table", {"restaurant": "Lea"}),
            "done",
        ]
    )
    response = ask(client(index, model).prompt("q").conversation("c"))
    assert response.text == "done"
    assert shown(model) == [[SEARCH], [SEARCH, "book_table"], [SEARCH, "book_table"]]
    answers = [one.responses[0].text for one in response.exchange if isinstance(one, ToolResponseMessage)]
    assert answers == ['["book_table"]', "booked Lea"]
    assert SEARCH in model.prompts[0].messages[0].text


def test_what_was_found_stays_or_goes(ask: Ask) -> None:
    for accumulate, third in [(True, [SEARCH, "weather", "send_mail"]), (False, [SEARCH, "send_mail"])]:
        model = ScriptedChatModel(
            [
                asking(SEARCH, {"query": "weather", "max_results": 1}),
                asking(SEARCH, {"query": "send mail", "max_results": 1}),
                "done",
            ]
        )
        ask(client(None, model, accumulate=accumulate).prompt("q").conversation("c"))
        assert shown(model)[2] == third


def test_tools_can_always_be_shown(ask: Ask) -> None:
    model = ScriptedChatModel(["done"])
    ask(client(None, model, always=["weather"]).prompt("q").conversation("c"))
    assert shown(model) == [[SEARCH, "weather"]]


def test_what_earlier_turns_found_is_shown(ask: Ask) -> None:
    memory = ep.InMemoryChatMemoryRepository()
    model = ScriptedChatModel([asking(SEARCH, {"query": "weather"}), "done", "again"])
    advisors = [ToolSearchAdvisor(), MessageChatMemoryAdvisor(memory)]
    asked = ChatClient(model, tools=TOOLS, advisors=advisors)
    ask(asked.prompt("q").conversation("c"))
    ask(asked.prompt("r").conversation("c"))
    assert shown(model)[2] == [SEARCH, "weather"]


def test_a_search_that_fails_is_told_to_the_model(ask: Ask) -> None:
    class Broken(RegexToolIndex):
        def search(self, session: str, query: str, limit: int) -> Advice[list[Found]]:
            yield from ()
            msg = f"gone: {session} {query} {limit}"
            raise BackendError(msg)

    model = ScriptedChatModel([asking(SEARCH, {"query": "weather"}), "done"])
    response = ask(client(Broken(), model).prompt("q").conversation("c"))
    assert isinstance(response.exchange[1], ToolResponseMessage)
    assert response.exchange[1].responses[0].text == "Error: gone: c weather 5"
    assert shown(model)[1] == [SEARCH]


def test_a_conversation_is_needed_and_the_name_is_taken(ask: Ask) -> None:
    with pytest.raises(ConfigurationError, match="which conversation"):
        ask(client(None, ScriptedChatModel(["x"])).prompt("q"))
    taken = tool(name=SEARCH)(weather)
    with pytest.raises(ConfigurationError, match="'tool_search'"):
        ask(client(None, ScriptedChatModel(["x"])).prompt("q").tools(taken).conversation("c"))


# --- sessions -------------------------------------------------------------------------------------------


class Counting(RegexToolIndex):
    """Counts what it is asked for, and builds slowly."""

    def __init__(self, fails: int = 0) -> None:
        super().__init__()
        self.built: Counter[str] = Counter()
        self.removed: list[str] = []
        self.fails = fails
        self.gate = threading.Event()
        self.gate.set()

    def build(self, session: str, tools: Sequence[ToolDefinition]) -> Advice[None]:
        """Count, wait for the gate, build."""
        self.built[session] += 1
        yield from advices.invoke(self.gate.wait, 30)
        if self.built[session] <= self.fails:
            msg = "cannot"
            raise BackendError(msg)
        yield from super().build(session, tools)

    def remove(self, session: str) -> Advice[None]:
        """Count."""
        self.removed.append(session)
        yield from super().remove(session)


def test_many_at_once_build_once() -> None:
    index = Counting()
    sessions = Sessions(index, NoEviction())
    index.gate.clear()

    async def many() -> None:
        turns = [asyncio.create_task(advices.arun(sessions.ready("s", DEFINITIONS))) for _ in range(8)]
        index.gate.set()
        await asyncio.gather(*turns)

    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(advices.run, sessions.ready("s", DEFINITIONS)) for _ in range(8)]
        asyncio.run(many())
        for job in jobs:
            job.result()
    assert index.built == {"s": 1}


def test_a_session_is_built_again_only_if_its_tools_change() -> None:
    index = Counting()
    sessions = Sessions(index, NoEviction())
    for tools in (DEFINITIONS, DEFINITIONS[::-1], DEFINITIONS[:1], DEFINITIONS[:1]):
        advices.run(sessions.ready("s", tools))
    assert index.built == {"s": 2}


def test_a_session_that_could_not_be_built_is_tried_again() -> None:
    index = Counting(fails=1)
    sessions = Sessions(index, NoEviction())
    with pytest.raises(BackendError):
        advices.run(sessions.ready("s", DEFINITIONS))
    assert sessions.names == []
    advices.run(sessions.ready("s", DEFINITIONS))
    assert sessions.names == ["s"]


def visits(eviction: Eviction, names: str) -> tuple[list[str], list[str], Counter[str]]:
    """Visit sessions in turn; return which are held, which were removed, and how often each was built."""
    index = Counting()
    sessions = Sessions(index, eviction)
    for name in names:
        advices.run(sessions.ready(name, DEFINITIONS))
        advices.run(sessions.ended(name))
    return sessions.names, index.removed, index.built


def test_the_last_used_stay() -> None:
    held, removed, built = visits(LruEviction(2), "abacab")
    assert (held, removed) == (["a", "b"], ["b", "c"])
    assert built == {"a": 1, "b": 2, "c": 1}


def test_sessions_go_after_a_time() -> None:
    now = iter([0.0, 1.0, 2.5, 2.6, 9.0])
    held, removed, built = visits(TtlEviction(2, clock=lambda: next(now)), "abbab")
    assert (held, removed) == (["b"], ["a", "a"])
    assert built == {"a": 2, "b": 1}


def test_no_session_outlives_its_call() -> None:
    assert visits(EachCallEviction(), "aab") == ([], ["a", "a", "b"], Counter(a=2, b=1))


def test_several_policies_at_once() -> None:
    held, removed, _ = visits(CompositeEviction(LruEviction(1), NoEviction()), "ab")
    assert (held, removed) == (["b"], ["a"])
    assert visits(CompositeEviction(NoEviction(), EachCallEviction()), "a")[0] == []


def test_a_session_that_was_evicted_is_searched_all_the_same(ask: Ask) -> None:
    index = Counting()
    model = ScriptedChatModel([asking(SEARCH, {"query": "weather"}), "done"] * 2)
    asked = client(index, model, eviction=LruEviction(1))
    ask(asked.prompt("q").conversation("a"))
    ask(asked.prompt("q").conversation("b"))
    assert index.removed == ["a"]
    assert shown(model)[3] == [SEARCH, "weather"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: LruEviction(0),
        lambda: TtlEviction(0),
        lambda: ToolSearchAdvisor(limit=0),
        lambda: ToolSearchAdvisor(always="a"),
    ],
)
def test_wrong_settings_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        make()
