"""Writers that are killed at any moment lose nothing that returned, and leave nothing half done (M3, M4)."""

from __future__ import annotations

import os
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

# Forks a writer for each line that it is given and says how to call and when to mourn it; a fork starts
# at once, a new Python would load everything anew.
#
# A writer appends batches of three for ever, now and then replaces all by one batch of seven or cuts
# the last batch but its first message, and says so after each call returned.
LAUNCHER = textwrap.dedent("""
    import os
    import sys
    from entrepot import UserMessage, open_chat_memory
    from entrepot_sql import sqlite

    def write(url, start):
        memory = open_chat_memory(url)
        for n in range(start, start + 100_000):
            if n % 5 == 4:
                memory.replace("c", [UserMessage(f"text {n}", id=f"{n} replace {part}") for part in range(7)])
            elif n % 5 == 2:
                memory.truncate("c", after=f"{n - 1} append 0")
            else:
                memory.append("c", [UserMessage(f"text {n}", id=f"{n} append {part}") for part in range(3)])
            os.write(1, f"{n}\\n".encode())

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


def killed_writer(launcher: subprocess.Popen[str], url: str, start: int, rng: random.Random) -> int:
    """Run a writer, kill it at a random moment, and return the last call that it said had returned."""
    assert launcher.stdin is not None
    assert launcher.stdout is not None
    launcher.stdin.write(f"{url} {start}\n")
    launcher.stdin.flush()
    pid, last, stop, killed = 0, start - 1, rng.randint(1, 60), False
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


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_that_returned(tmp_path: Path) -> None:
    # M3, M4, E4: 50 times SIGKILL
    url = f"sql+sqlite:///{tmp_path}/chat.db"
    rng = random.Random(7)
    state: list[str] = []
    start = 0
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    for _ in range(50):
        last = killed_writer(launcher, url, start, rng)
        with open_chat_memory(url) as memory:
            messages = memory.messages("c")
            found = [message.id for message in messages]
            assert all(message.text == f"text {message.id.split()[0]}" for message in messages)
            # All that returned, and of the call under way all or nothing.
            returned, one_more = after(start, last, state), after(start, last + 1, state)
            assert found in (returned, one_more)
            assert memory.messages("c", last=3) == messages[-3:]
            assert memory.conversation_ids().items == (["c"] if found else [])
        state = found
        start = 5 * (last // 5 + 2)  # begins with appends, whatever came before
    launcher.communicate()
    assert launcher.returncode == 0
