"""`entrepot rag chat`."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

import pytest

from entrepot.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

    from rag.tests.chat_server import Server


@pytest.fixture(autouse=True)
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is asked but who a test names."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def talk(monkeypatch: pytest.MonkeyPatch, said: str, *arguments: str) -> int:
    """Say lines to the command."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(said))
    return run(["rag", "chat", *arguments])


def test_the_second_start_remembers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    memory = f"--memory=sql+sqlite:///{tmp_path}/chat.db"
    assert talk(monkeypatch, "Hello\nAgain {x}\n\nunheard\n", memory) == 0
    first = capsys.readouterr()
    assert first.out == "You said: Hello\nYou said: Again {x} (after 1 earlier)\n"
    assert "nothing said before" in first.err
    assert talk(monkeypatch, "Third", memory) == 0
    second = capsys.readouterr()
    assert second.out == "You said: Third (after 2 earlier)\n"
    assert "4 messages before" in second.err
    assert talk(monkeypatch, "Other", memory, "--conversation=other") == 0
    assert capsys.readouterr().out == "You said: Other\n"


def test_what_is_heard_does_not_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert talk(monkeypatch, "red \x1b[31m\n", "--memory=sql+sqlite://") == 0
    assert "\x1b" not in capsys.readouterr().out


def test_a_real_model_is_asked_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.script = [(400, b'{"error": "no"}')]
    assert talk(monkeypatch, "Hi\n", "--memory=sql+sqlite://", "--model=m") == 1
    assert "HTTP 400" in capsys.readouterr().err
    assert talk(monkeypatch, "Hi\n", "--memory=sql+sqlite://", "--model=m", "--system=Be brief.") == 0
    assert capsys.readouterr().out == "Hello.\n"
    assert [one["role"] for one in server.bodies[-1]["messages"]] == ["system", "user"]
    assert server.bodies[-1]["model"] == "m"
