"""Writers that are killed at any moment lose nothing that returned, and leave nothing half done (M3, M4)."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from entrepot import open_chat_memory

if TYPE_CHECKING:
    from pathlib import Path

# Appends batches of three for ever, now and then replaces all by one batch of seven or cuts the last
# batch but its first message, and says so after each call returned.
WRITER = textwrap.dedent("""
    import sys
    from entrepot import UserMessage, open_chat_memory
    memory = open_chat_memory(sys.argv[1])
    start = int(sys.argv[2])
    for n in range(start, start + 100_000):
        if n % 5 == 4:
            memory.replace("c", [UserMessage(f"text {n}", id=f"{n} replace {part}") for part in range(7)])
        elif n % 5 == 2:
            memory.truncate("c", after=f"{n - 1} append 0")
        else:
            memory.append("c", [UserMessage(f"text {n}", id=f"{n} append {part}") for part in range(3)])
        print(n, flush=True)
""")


def after(start: int, last: int, before: list[str]) -> list[str]:
    """Return the conversation when calls `start` to `last` have been done."""
    state = list(before)
    for n in range(start, last + 1):
        if n % 5 == 4:
            state = [f"{n} replace {part}" for part in range(7)]
        elif n % 5 == 2:
            state = state[: state.index(f"{n - 1} append 0") + 1]
        else:
            state += [f"{n} append {part}" for part in range(3)]
    return state


def killed_writer(url: str, start: int, rng: random.Random) -> int:
    """Run a writer, kill it at a random moment, and return the last call that it said had returned."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, url, str(start)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    last = start - 1
    stop = rng.randint(1, 60)
    for line in process.stdout:
        last = int(line)
        if last - start + 1 == stop:
            break
    # Between this line and the kill the writer goes on: the kill falls anywhere within its next calls.
    process.send_signal(signal.SIGKILL)
    for line in process.stdout:
        if line.endswith("\n"):
            last = int(line)
    process.stdout.close()
    assert process.wait() == -signal.SIGKILL
    return last


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_that_returned(tmp_path: Path) -> None:
    # M3, M4, E4: 50 times SIGKILL
    url = f"sql+sqlite:///{tmp_path}/chat.db"
    rng = random.Random(7)
    state: list[str] = []
    start = 0
    for _ in range(50):
        last = killed_writer(url, start, rng)
        with open_chat_memory(url) as memory:
            messages = memory.messages("c")
            found = [message.id for message in messages]
            assert all(message.text == f"text {message.id.split()[0]}" for message in messages)
            # All that returned, and of the call under way all or nothing.
            returned, one_more = after(start, last, state), after(start, last + 1, state)
            assert found in (returned, one_more)
            assert memory.messages("c", last=3) == messages[-3:]
            assert memory.conversation_ids().items == (["c"] if found else [])
            memory.append("c", [])
        state = found
        start = 5 * (last // 5 + 2)  # begins with appends, whatever came before
