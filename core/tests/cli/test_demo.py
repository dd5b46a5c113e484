"""`entrepot demo`, on the real collection."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import entrepot as ep
from entrepot.cli import cranfield

if TYPE_CHECKING:
    from core.tests.cli.conftest import Command

DATA = Path(__file__).parents[3] / "examples" / "cranfield"
MODES = {"semantic", "fulltext", "hybrid"}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """Every tenth document and the first three queries: enough to see what the demo does."""
    collection = cranfield.read(DATA)
    folder = tmp_path / "small"
    folder.mkdir()
    documents = (DATA / "documents.jsonl").read_text("utf-8").splitlines(keepends=True)
    kept = [line for number, line in enumerate(documents, 1) if number % 10 == 0 or number in {471, 995}]
    (folder / "documents.jsonl").write_text("".join(kept), "utf-8")
    queries = (DATA / "queries.jsonl").read_text("utf-8").splitlines(keepends=True)
    (folder / "queries.jsonl").write_text("".join(queries[:3]), "utf-8")
    rows = [
        f"{query}\t{document}\t{5 - gain:.0f}\n"
        for query in list(collection.queries)[:3]
        for document, gain in collection.gains[query].items()
    ]
    (folder / "qrels.tsv").write_text("".join(rows), "utf-8")
    return folder


def test_demo_indexes_searches_and_leaves_a_store(command: Command, small: Path, url: str) -> None:
    result = command("demo", "--data", small, "--store", url, "--json").json
    assert result["documents"] == 140
    assert result["left_out"] == ["471", "995"]  # neither text nor title
    assert result["queries"] == 3
    assert result["modes"].keys() == MODES
    for figures in result["modes"].values():
        assert figures.keys() == {"ndcg@10", "recall@10", "queries_per_second"}
        assert 0 <= figures["ndcg@10"] <= 1
        assert 0 <= figures["recall@10"] <= 1
        assert figures["queries_per_second"] > 0
    filtered = [sample for sample in result["samples"] if sample["filter"]]
    assert len(result["samples"]) == 3
    assert len(filtered) == 1
    assert filtered[0]["hits"]
    assert all(1955 <= hit["metadata"]["year"] < 1960 for hit in filtered[0]["hits"])
    with ep.open_vector_store(url) as store:
        assert store.count() == 140


def test_demo_prints_a_table_and_samples(command: Command, small: Path, url: str) -> None:
    outcome = command("demo", "--data", small, "--store", url)
    assert outcome.out.startswith("Cranfield: 140 abstracts indexed in ")
    assert ["mode", "nDCG@10", "recall@10", "queries/s"] in outcome.rows
    assert [row[0] for row in outcome.rows if row[0] in MODES] == ["semantic", "fulltext", "hybrid"]
    assert outcome.out.count("score\trank score\tyear") == 3
    assert url in outcome.err


def test_demo_without_the_collection_says_what_to_do(command: Command, tmp_path: Path) -> None:
    outcome = command("demo", "--data", tmp_path)
    assert outcome.code == 2
    assert "documents.jsonl" in outcome.err


def test_demo_reaches_the_quality_that_it_promises(command: Command, url: str) -> None:
    # A plain computation with numpy over the same texts and vectors gives 0.286 for semantic search.
    result = command("demo", "--data", DATA, "--store", url, "--json").json
    assert result["documents"] == 1398
    assert result["queries"] == 225
    modes = result["modes"]
    assert modes["semantic"]["ndcg@10"] == pytest.approx(0.286, abs=0.002)
    assert modes["fulltext"]["ndcg@10"] >= 0.30
    assert modes["hybrid"]["ndcg@10"] >= 0.31
    assert modes["semantic"]["recall@10"] == pytest.approx(0.334, abs=0.002)
