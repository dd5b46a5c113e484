"""Writers that are killed at any moment lose nothing that returned, and leave nothing half done: M3, M4, E4."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

    from entrepot import ChatMemoryRepository
    from entrepot_conformance.endpoints import Memories

KILLS: Final = 50
LATE: Final = 1.0
"""Seconds in which a server may still do what it was asked before its client was killed."""

# Forks a writer for each line that it is given and says how to call and when to mourn it; a fork starts
# at once, a new Python would load everything anew.
#
# A writer appends batches of three for ever, now and then replaces all by one batch of seven or cuts
# the last batch but its first message, and says so after each call returned.
LAUNCHER: Final = textwrap.dedent("""
    import os
    import sys
    from entrepot import UserMessage, open_chat_memory
    from entrepot.plugins import ChatMemorySpec, load_attribute, plugin_manager
    from entrepot.urls import parse_url

    def write(url, start):
        memory = open_chat_memory(url, timeout=60.0)
        for n in range(start, start + 100_000):
            if n % 5 == 4:
                memory.replace("c", [UserMessage(f"text {n}", id=f"{n} replace {part}") for part in range(7)])
            elif n % 5 == 2:
                memory.truncate("c", after=f"{n - 1} append 0")
            else:
                memory.append("c", [UserMessage(f"text {n}", id=f"{n} append {part}") for part in range(3)])
            os.write(1, f"{n}\\n".encode())

    scheme = parse_url(sys.argv[1]).scheme
    manager = plugin_manager()
    spec = manager.spec(scheme if scheme in manager.names() else scheme.partition("+")[0], ChatMemorySpec)
    load_attribute(spec.factory, "the memory"), load_attribute(spec.config, "the memory")
    for line in sys.stdin:
        url, start = line.split()
        child = os.fork()
        if not child:
            try:
                write(url, int(start))
            finally:
                os._exit(1)
        os.write(1, f"pid {child}\\n".encode())
        _, status = os.waitpid(child, 0)
        os.write(1, f"\\nended {os.waitstatus_to_exitcode(status)}\\n".encode())
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


def killed_writer(launcher: subprocess.Popen[str], url: str, start: int, generator: random.Random) -> int:
    """Run a writer, kill it at a random moment, and return the last call that it said had returned."""
    assert launcher.stdin is not None
    assert launcher.stdout is not None
    launcher.stdin.write(f"{url} {start}\n")
    launcher.stdin.flush()
    pid, last, stop, killed = 0, start - 1, generator.randint(1, 20), False
    for line in launcher.stdout:
        word, _, number = line.strip().partition(" ")
        if word == "pid":
            pid = int(number)
        elif word == "ended":
            assert number == str(-signal.SIGKILL)
            return last
        elif word:
            last = int(word)
        if pid and not killed and last - start + 1 >= stop:
            # From here to the kill the writer goes on: the kill falls anywhere within its next calls.
            os.kill(pid, signal.SIGKILL)
            killed = True
    raise AssertionError("the launcher ended")


@pytest.fixture
def launcher(memories: Memories) -> Generator[subprocess.Popen[str]]:
    """Start what forks writers."""
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, memories.url()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


def settled(memory: ChatMemoryRepository, done: list[str]) -> list[str]:
    """Return the conversation, once what was under way is done or will not be any more."""
    until = time.monotonic() + LATE
    while True:
        found = [message.id for message in memory.messages("c")]
        if found == done or time.monotonic() > until:
            return found
        time.sleep(0.05)


@pytest.mark.large
@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="writers are forked")
def test_killed_writers_lose_nothing_that_returned(
    memories: Memories, launcher: subprocess.Popen[str]
) -> None:
    # M3, M4, E4: 50 times SIGKILL
    generator = random.Random(7)
    state: list[str] = []
    start = 0
    memory = memories(timeout=60.0)
    for _ in range(KILLS):
        last = killed_writer(launcher, memories.url(), start, generator)
        # All that returned, and of the call under way all or nothing.
        returned, one_more = after(start, last, state), after(start, last + 1, state)
        found = settled(memory, one_more)
        assert found in (returned, one_more)
        messages = memory.messages("c")
        assert all(message.text == f"text {message.id.split()[0]}" for message in messages)
        assert memory.messages("c", last=3) == messages[-3:]
        assert memory.conversation_ids().items == (["c"] if found else [])
        state = found
        start = 5 * (last // 5 + 2)  # begins with appends, whatever came before
