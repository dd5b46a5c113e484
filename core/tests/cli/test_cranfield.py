"""Reading the collection of the demo."""

from __future__ import annotations

from pathlib import Path

import pytest

from entrepot.cli import cranfield
from entrepot.errors import ConfigurationError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "documents.jsonl").write_text('{"id": "7", "title": "a wing", "text": ""}\n', "utf-8")
    (tmp_path / "queries.jsonl").write_text(
        '{"id": "1", "text": "lift"}\n{"id": "2", "text": "drag"}\n', "utf-8"
    )
    (tmp_path / "qrels.tsv").write_text("query_id\tdocument_id\trelevance\n1\t7\t1\n1\t8\t5\n", "utf-8")
    return tmp_path


def test_gain_is_five_minus_the_relevance_code(folder: Path) -> None:
    collection = cranfield.read(folder)
    assert collection.gains == {"1": {"7": 4.0, "8": 0.0}, "2": {}}
    assert collection.queries == {"1": "lift", "2": "drag"}
    assert collection.documents == [{"id": "7", "title": "a wing", "text": ""}]


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        (
            "documents.jsonl",
            '{"id": "7", "title": "a wing", "text": ""}\nnothing\n',
            "documents.jsonl, line 2",
        ),
        ("documents.jsonl", "[]\n", "documents.jsonl, line 1"),
        ("queries.jsonl", '{"id": "1"}\n', "queries.jsonl, line 1"),
        ("qrels.tsv", "query_id\tdocument_id\trelevance\n1\t7\n", "qrels.tsv, line 2"),
        ("qrels.tsv", "9\t7\t1\n", "qrels.tsv, line 1"),
        ("qrels.tsv", "1\t7\tgood\n", "qrels.tsv, line 1"),
    ],
)
def test_a_damaged_file_is_named_with_its_line(folder: Path, name: str, text: str, place: str) -> None:
    (folder / name).write_text(text, "utf-8")
    with pytest.raises(ConfigurationError, match=place):
        cranfield.read(folder)


def test_a_folder_without_the_collection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"documents\.jsonl, queries\.jsonl, qrels\.tsv not found"):
        cranfield.find(tmp_path)


def test_the_collection_is_found_from_a_folder_below_the_repository(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder / "repository"
    below = place / "core" / "deep"
    below.mkdir(parents=True)
    (place / "examples").mkdir()
    (place / "examples" / "cranfield").symlink_to(folder, target_is_directory=True)
    monkeypatch.chdir(below)
    assert cranfield.find(None) == place / "examples" / "cranfield"


def test_without_the_repository_the_hint_names_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cranfield, "PLACE", Path("examples", "not in this repository"))
    with pytest.raises(ConfigurationError) as refused:
        cranfield.find(None)
    assert "--data DIR" in refused.value.hint
