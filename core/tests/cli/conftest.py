"""How the tests run commands: in this process, with output captured."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from entrepot.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The tab-separated cells of each line."""
        return [line.split("\t") for line in self.out.splitlines()]


class Command(Protocol):
    def __call__(self, *arguments: object, stdin: bytes | None = None) -> Outcome: ...


@pytest.fixture
def command(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Command:
    def call(*arguments: object, stdin: bytes | None = None) -> Outcome:
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = run([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return Outcome(code, out.decode(), err.decode())

    return call


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A durable store that does not exist yet."""
    return f"simple:///{tmp_path.as_posix()}/store.db"


@pytest.fixture
def cities(command: Command, url: str, tmp_path: Path) -> str:
    """A store with three documents."""
    file = tmp_path / "cities.jsonl"
    file.write_text(
        '{"id": "sofia", "text": "Sofia is the capital of Bulgaria", "metadata": {"country": "BG", "year": 2020}}\n'
        '{"id": "plovdiv", "text": "Plovdiv is the oldest city of Bulgaria", "country": "BG", "year": 2014}\n'
        '{"id": "lisbon", "text": "Lisbon is the capital of Portugal", "metadata": {"country": "PT"}, "year": 2021}\n',
        "utf-8",
    )
    assert command("load", url, file).code == 0
    return url
