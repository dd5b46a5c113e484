"""A thousand random conversations with failures, in databases: whole turns or nothing."""

from __future__ import annotations

import asyncio
import itertools
import random
import uuid
from typing import TYPE_CHECKING

import pytest

from entrepot import open_chat_memory
from entrepot.messages import AssistantMessage, Role, ToolResponseMessage
from entrepot_conformance.keeper import shared_server
from entrepot_rag import (
    ChatClient,
    ChatModelError,
    Executor,
    MessageChatMemoryAdvisor,
    ScriptedChatModel,
    ToolCallingAdvisor,
    ToolError,
    ToolLimitError,
    ToolLimits,
)
from entrepot_rag.models.scripted import asking

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from entrepot import ChatMemoryRepository
    from entrepot.messages import Message
    from entrepot_rag import ChatPrompt, Prompt

HISTORIES, AT_ONCE, TURNS = 1000, 10, 4
FAILURES = (ChatModelError, ToolError, ToolLimitError)


def double(n: int) -> int:
    """Double a number."""
    return 2 * n


async def later(n: int) -> int:
    """Double a number, after a while."""
    for _ in range(n):
        await asyncio.sleep(0)
    return 2 * n


def broken() -> str:
    """Fail."""
    msg = "broken"
    raise RuntimeError(msg)


class History:
    """One conversation with a random source of its own."""

    def __init__(self, memory: ChatMemoryRepository, seed: int) -> None:
        self.rng = random.Random(seed)
        self.name = f"c{seed}"
        self.returned: list[str] = []
        self.unknown: list[str] = []
        executor = Executor(failures=self.rng.choice(["raise", "answer"]))
        limits = ToolLimits(total=3, policy=self.rng.choice(["raise", "answer"]))
        self.client = ChatClient(
            ScriptedChatModel(self._answer),
            tools=[double, later, broken],
            advisors=[
                MessageChatMemoryAdvisor(memory),
                ToolCallingAdvisor(executor=executor, limits=limits),
            ],
        )

    def _answer(self, prompt: Prompt) -> AssistantMessage | str | Exception:
        draw = self.rng.random()
        if draw < 0.12:
            return ChatModelError("down")
        if draw < 0.45:
            calls: list[tuple[str, dict[str, object]]] = [
                ("double", {"n": 1}), ("later", {"n": 3}), ("broken", {}), ("double", {"n": "x"}), ("what", {}),
            ]  # fmt: skip
            name, arguments = self.rng.choice(calls)
            return asking(name, arguments, id=f"c{len(prompt.messages)}")
        return f"answer to {len(prompt.messages)}"

    async def turns(self) -> None:
        """Take turns, of which some fail, are cancelled, or left."""
        for number in range(TURNS):
            text = f"q{number}"
            prompt = self.client.prompt(text).conversation(self.name)
            way = self.rng.random()
            try:
                if way < 0.2:
                    async with prompt.astream() as stream:
                        await anext(stream)  # and no more
                elif way < 0.5:
                    await self._cancelled(prompt, text)
                elif way < 0.75:
                    async for _ in prompt.astream():
                        pass
                    self.returned.append(text)
                else:
                    await prompt.acall()
                    self.returned.append(text)
            except FAILURES:
                pass

    async def _cancelled(self, prompt: ChatPrompt, text: str) -> None:
        task = asyncio.create_task(prompt.acall())
        for _ in range(self.rng.randrange(40)):
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            self.unknown.append(text)
        else:
            self.returned.append(text)

    def check(self, kept: Sequence[Message]) -> None:
        """What returned is there, whole and in order; what was cancelled is there whole, or is not."""
        turns = [list(group) for group in _turns(kept)]
        asked = [turn[0].text for turn in turns]
        assert [one for one in asked if one not in self.unknown] == self.returned
        assert set(asked) <= {*self.returned, *self.unknown}
        assert sorted(asked) == asked
        for turn in turns:
            assert turn[0].role is Role.USER
            last = turn[-1]
            assert isinstance(last, AssistantMessage)
            assert not last.tool_calls
            for call, answer in zip(turn[1:-1:2], turn[2:-1:2], strict=True):
                assert isinstance(call, AssistantMessage)
                assert isinstance(answer, ToolResponseMessage)
                assert [one.id for one in call.tool_calls] == [one.id for one in answer.responses]


def _turns(messages: Sequence[Message]) -> list[list[Message]]:
    starts = [place for place, one in enumerate(messages) if one.role is Role.USER]
    return [list(messages[start:end]) for start, end in itertools.pairwise([*starts, len(messages)])]


@pytest.mark.slow
@pytest.mark.parametrize("where", ["sqlite", "postgres", "redis"])
def test_a_thousand_random_conversations_keep_whole_turns(
    where: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # M3, M4: a turn is one append
    if where == "sqlite":
        url = f"sql+sqlite:///{tmp_path}/chat.db"
    else:
        from entrepot_postgres.conformance import SERVER as POSTGRES
        from entrepot_redis.conformance import SERVER as REDIS

        server = shared_server(request.config, POSTGRES if where == "postgres" else REDIS)
        url = f"{server.url}/turns_{uuid.uuid4().hex[:12]}"

    async def all_of_them() -> int:
        async with open_chat_memory(url) as memory:
            histories = [History(memory, seed) for seed in range(HISTORIES)]
            for start in range(0, HISTORIES, AT_ONCE):
                await asyncio.gather(*(one.turns() for one in histories[start : start + AT_ONCE]))
            for one in histories:
                one.check(await memory.amessages(one.name))
                await memory.adelete(one.name)
            return sum(len(one.unknown) for one in histories)

    assert asyncio.run(all_of_them()) > 100  # so many were cancelled
