"""M1 to M7 and M9 together: any sequence of operations does what a dict of lists does."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from entrepot import AssistantMessage, SystemMessage, UnknownMessageError, UserMessage
from entrepot_conformance.tests.memory.messages import NOON, ODD_METADATA, ODD_TEXTS

if TYPE_CHECKING:
    from entrepot import ChatMemoryRepository, Message
    from entrepot_conformance.endpoints import Memories

names = st.sampled_from(["a", "A", "a ", "b"])
message_ids = st.integers(0, 12).map(str)


def made(
    kind: type[UserMessage | AssistantMessage | SystemMessage], text: str, name: str, metadata: dict[str, Any]
) -> Message:
    return kind(text, id=name, created=NOON, metadata=metadata)


messages: st.SearchStrategy[Message] = st.builds(
    made,
    st.sampled_from([UserMessage, AssistantMessage, SystemMessage]),
    st.sampled_from([text for text in ODD_TEXTS if len(text) < 100])
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    message_ids,
    st.sampled_from(ODD_METADATA[:-1]),  # without the long one
)
batches = st.lists(messages, max_size=6, unique_by=lambda message: message.id)


def machine(memory: ChatMemoryRepository) -> type[RuleBasedStateMachine]:
    """Return a machine that does everything to the memory and to a dict, and compares."""

    class Model(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.run = uuid.uuid4().hex
            self.model: dict[str, list[Message]] = {}

        def name(self, name: str) -> str:
            return f"{self.run}{name}"

        @rule(name=names, batch=batches)
        def append(self, name: str, batch: list[Message]) -> None:
            memory.append(self.name(name), batch)
            known = self.model.get(name, [])
            known = known + [new for new in batch if new.id not in {old.id for old in known}]
            if known:
                self.model[name] = known

        @rule(name=names, batch=batches)
        def replace(self, name: str, batch: list[Message]) -> None:
            memory.replace(self.name(name), batch)
            self.model.pop(name, None)
            if batch:
                self.model[name] = batch

        @rule(name=names, after=message_ids)
        def truncate(self, name: str, after: str) -> None:
            known = self.model.get(name, [])
            places = [place for place, message in enumerate(known) if message.id == after]
            try:
                memory.truncate(self.name(name), after=after)
            except UnknownMessageError:
                assert not places
            else:
                self.model[name] = known[: places[0] + 1]

        @rule(name=names)
        def delete(self, name: str) -> None:
            memory.delete(self.name(name))
            self.model.pop(name, None)

        @rule(name=names, last=st.integers(0, 8))
        def tail(self, name: str, last: int) -> None:
            known = self.model.get(name, [])
            assert memory.messages(self.name(name), last=last) == (known[-last:] if last else [])

        @rule(name=names, role=st.sampled_from(["user", "assistant", "system", "tool"]))
        def latest(self, name: str, role: str) -> None:
            of_role = [message for message in self.model.get(name, []) if message.role == role]
            assert memory.latest(self.name(name), role) == (of_role[-1] if of_role else None)

        @rule(limit=st.integers(1, 3))
        def listing(self, limit: int) -> None:
            found: list[str] = []
            cursor: str | None = None
            while True:
                page = memory.conversation_ids(limit=limit, cursor=cursor)
                found += page.items
                cursor = page.token
                if cursor is None:
                    break
            assert sorted(found) == sorted(map(self.name, self.model))

        @invariant()
        def all_is_as_it_should_be(self) -> None:
            for name in ("a", "A", "a ", "b"):
                read = memory.messages(self.name(name))
                known = self.model.get(name, [])
                assert read == known
                assert list(map(repr, read)) == list(map(repr, known))

        def teardown(self) -> None:
            for name in ("a", "A", "a ", "b"):
                memory.delete(self.name(name))

    return Model


def test_any_sequence_of_operations(memories: Memories) -> None:
    # M1 to M7, M9
    model: Any = machine(memories())
    run_state_machine_as_test(
        model, settings=settings(deadline=None, max_examples=25, stateful_step_count=25)
    )
