"""`entrepot load` and `entrepot dump`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

import entrepot as ep

if TYPE_CHECKING:
    from pathlib import Path

    from core.tests.cli.conftest import Command

    from entrepot.search import Part

# Each kind of value, each with the type that it must keep (D4).
METADATA = {
    "text": 'tab\tline\nquote" \u2028 ж 😀',
    "whole": 1,
    "float": 1.0,
    "negative zero": -0.0,
    "large": 2**63 - 1,
    "small": 5e-324,
    "flag": True,
    "empty": [],
    "mixed numbers": [1, 2.0],
    "a.dotted.key": "flat",
}


def test_dump_loads_as_it_was(command: Command, url: str, tmp_path: Path) -> None:  # D4
    instant = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
    documents = [
        ep.Document(
            "all kinds", id="kinds", metadata={**METADATA, "seen": instant, "times": [instant, instant]}
        ),
        ep.Document("with\nlines", id='quoted "id"\t', metadata={}),
    ]
    with ep.open_vector_store(url, embedding="wordllama") as store:
        store.add(documents)
    assert command("dump", url, tmp_path / "dump.jsonl").out == "wrote 2\n"
    other = f"{url}-other.db"
    assert command("load", other, tmp_path / "dump.jsonl").out == "loaded 2\n"
    with ep.open_vector_store(other) as store:
        assert store.get([document.id for document in documents]) == documents


def test_vectors_go_both_ways_without_a_model(command: Command, url: str, tmp_path: Path) -> None:
    with ep.open_vector_store(url + "?metric=euclidean") as store:
        store.add([ep.Document(id="a", vector=[0.1, 2.5]), ep.Document("b", id="b", vector=[-1e-8, 3.0])])
    assert command("dump", url, tmp_path / "dump.jsonl", "--vectors").code == 0
    other = f"{url}-other.db?metric=euclidean"
    assert command("load", other, tmp_path / "dump.jsonl", "--embedding", "none").code == 0
    include: tuple[Part, ...] = ("text", "metadata", "vector")
    with ep.open_vector_store(url) as left, ep.open_vector_store(other) as right:
        assert left.get(["a", "b"], include=include) == right.get(["a", "b"], include=include)


def test_dump_writes_to_standard_output_what_matches(command: Command, cities: str) -> None:
    lines = command("dump", cities, "--filter", "year > 2020").out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "id": "lisbon",
            "text": "Lisbon is the capital of Portugal",
            "metadata": {"country": "PT", "year": 2021},
        }
    ]


def test_load_reads_standard_input(command: Command, url: str) -> None:
    outcome = command("load", url, "-", "--json", stdin=b'{"id": "a", "text": "one"}\n\n{"text": "two"}\n')
    assert outcome.json == {"loaded": 2, "left_out": 0}
    assert command("count", url).out == "2\n"


def test_other_keys_become_metadata_and_none_is_absent(command: Command, url: str) -> None:
    record = b'{"id": 7, "text": "one", "year": 1958, "author": null, "metadata": {"tags": ["a"]}}\n'
    assert command("load", url, "-", stdin=record).code == 0
    with ep.open_vector_store(url) as store:
        (document,) = store.get(["7"])
    assert document.metadata == {"year": 1958, "tags": ["a"]}


def test_flatten_makes_nested_objects_dotted_keys(command: Command, url: str) -> None:
    record = b'{"id": "a", "text": "one", "author": {"name": "Ada", "born": {"datetime": "1815-12-10T00:00:00Z"}}}\n'
    refused = command("load", url, "-", stdin=record)
    assert refused.code == 2
    assert "author" in refused.err
    assert command("load", url, "-", "--flatten", stdin=record).code == 0
    with ep.open_vector_store(url) as store:
        (document,) = store.get(["a"])
    assert document.metadata == {"author.name": "Ada", "author.born": datetime(1815, 12, 10, tzinfo=UTC)}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"nothing", "no JSON"),
        (b'"text"', "expected an object"),
        (b'{"id": "b"}', "neither text nor vector"),
        (b'{"id": "", "text": "b"}', "the id must not be empty"),
        (b'{"id": ["b"], "text": "b"}', "the id must be a str"),
        (b'{"id": "b", "text": ""}', "--skip-empty"),
        (b'{"id": "b", "text": 5}', "the text must be a string"),
        (b'{"id": "b", "text": "\\ud800"}', "lone surrogate"),
        (b'{"id": "b", "text": "b", "metadata": 5}', "metadata must be an object"),
        (
            b'{"id": "b", "text": "b", "metadata": {"k": 1}, "k": 2}',
            "'k' stands both in metadata and beside it",
        ),
        (b'{"id": "b", "text": "b", "k": NaN}', "not finite"),
        (b'{"id": "b", "text": "b", "k": 9223372036854775808}', "beyond 64 bits"),
        (b'{"id": "b", "text": "b", "k": {"datetime": "yesterday"}}', "'yesterday' is no datetime"),
        (b'{"id": "b", "text": "b", "k": {"datetime": "2026-01-31T12:00:00"}}', "without timezone"),
        (b'{"id": "b", "text": "\xff"}', "not UTF-8"),
        (b'{"id": "a", "text": "b"}', "the id 'a' stands in line 1 already"),
    ],
)
def test_a_mistake_is_named_with_its_line_and_nothing_is_loaded(
    command: Command, url: str, line: bytes, reason: str
) -> None:  # D6
    outcome = command("load", url, "-", stdin=b'{"id": "a", "text": "a"}\n' + line + b"\n")
    assert outcome.code == 2
    assert "-, line 2: " in outcome.err
    assert reason in outcome.err
    assert outcome.out == ""
    assert command("count", url).code == 2  # there is no collection


def test_empty_texts_can_be_left_out(command: Command, url: str) -> None:
    records = b'{"id": "a", "text": "a"}\n{"id": "b", "text": ""}\n{"id": "c", "text": ""}\n'
    assert (
        command("load", url, "-", "--skip-empty", stdin=records).out
        == "loaded 1, left out 2 with an empty text\n"
    )
    assert command("count", url).out == "1\n"


def test_if_exists(command: Command, cities: str) -> None:  # D2
    record = b'{"id": "sofia", "text": "changed"}\n'
    assert command("load", cities, "-", "--if-exists", "error", stdin=record).code == 2
    assert command("load", cities, "-", "--if-exists", "skip", stdin=record).code == 0
    with ep.open_vector_store(cities) as store:
        assert store.get(["sofia"])[0].text == "Sofia is the capital of Bulgaria"
    assert command("load", cities, "-", stdin=record).code == 0
    with ep.open_vector_store(cities) as store:
        assert store.get(["sofia"]) == [ep.Document("changed", id="sofia")]


def test_an_error_midway_tells_how_much_was_loaded(command: Command, cities: str) -> None:
    records = b'{"id": "new", "text": "new"}\n{"id": "sofia", "text": "changed"}\n'
    outcome = command("load", cities, "-", "--batch-size", 1, "--if-exists", "error", stdin=records)
    assert outcome.code == 2
    assert "1 of 2 documents were loaded before the error" in outcome.err
    assert command("count", cities).out == "4\n"


def test_missing_file_and_unwritable_place(command: Command, cities: str, tmp_path: Path) -> None:
    missing = command("load", cities, tmp_path / "missing.jsonl")
    assert (missing.code, "cannot read" in missing.err) == (2, True)
    unwritable = command("dump", cities, tmp_path / "no folder" / "dump.jsonl")
    assert (unwritable.code, "cannot write" in unwritable.err) == (2, True)


def test_a_failed_dump_leaves_the_old_file(command: Command, cities: str, tmp_path: Path) -> None:
    file = tmp_path / "dump.jsonl"
    file.write_text("old\n", "utf-8")
    assert command("dump", cities, file, "--filter", "year >").code == 2
    assert file.read_text("utf-8") == "old\n"
    assert [path.name for path in tmp_path.iterdir() if "partial" in path.name] == []
    assert command("dump", cities, file, "--json").json == {"written": 3}
    assert len(file.read_text("utf-8").splitlines()) == 3


def test_a_summary_does_not_mix_with_documents(command: Command, cities: str) -> None:
    outcome = command("dump", cities, "--json")
    assert outcome.code == 2
    assert outcome.out == ""


@pytest.mark.parametrize(
    ("records", "options", "reason"),
    [
        (['{"text": "t", "vector": [1, 0]}', '{"text": "t", "vector": [1, 2, 3]}'], "", "3 components"),
        (['{"text": "t", "vector": [1, 0]}', '{"text": "t", "vector": [1, "2"]}'], "", "numbers"),
        (['{"text": "t", "vector": [1, 0]}', '{"text": "t", "vector": [1e39, 1]}'], "", "not finite"),
        (['{"text": "t", "vector": [1, 0]}', '{"text": "t", "vector": [0, 0]}'], "", "zero"),
        (['{"text": "t", "vector": [1, 0]}', '{"text": "t", "vector": [3, 4]}'], "?metric=dot", "norm 5"),
        (['{"text": "t", "vector": [1, 0]}', '{"text": "t"}'], "", "no vector"),
    ],
)
def test_a_vector_that_the_store_would_refuse_is_named_with_its_line(
    command: Command, url: str, records: list[str], options: str, reason: str
) -> None:  # D6, D9
    first, wrong = records
    text = "\n".join([first] * 600 + [wrong])
    outcome = command("load", url + options, "-", "--embedding", "none", stdin=text.encode())
    assert outcome.code == 2
    assert "-, line 601: " in outcome.err
    assert reason in outcome.err
    assert command("count", url).code == 2  # there is no collection


@pytest.mark.parametrize("options", ["", "?dimension=3"])
def test_vectors_are_held_against_what_the_store_has(command: Command, url: str, options: str) -> None:  # D5
    record = b'{"id": "a", "text": "t", "vector": [1, 0]}\n'
    if not options:
        with ep.open_vector_store(url) as store:
            store.add([ep.Document("first", id="first", vector=[1.0, 0.0, 0.0])])
    outcome = command("load", url + options, "-", "--embedding", "none", stdin=record)
    assert (outcome.code, "-, line 1: the vector has 2 components" in outcome.err) == (2, True)
    modelled = command("load", f"{url}-other.db", "-", "--embedding", "hash:8", stdin=record)
    assert (modelled.code, "the collection has 8" in modelled.err) == (2, True)


@pytest.mark.parametrize("flags", [(), ("--flatten",)])
@pytest.mark.parametrize("value", ["[" * 100_000, '{"k":' * 400 + "1" + "}" * 400, '{"k":' * 100_000])
def test_deep_nesting_is_a_mistake_of_its_line(
    command: Command, url: str, value: str, flags: tuple[str, ...]
) -> None:
    outcome = command("load", url, "-", *flags, stdin=f'{{"text": "t", "k": {value}}}\n'.encode())
    assert outcome.code == 2
    assert "-, line 1: " in outcome.err
    assert "Traceback" not in outcome.err


def test_documents_without_text_are_dumped_so_that_they_load(
    command: Command, url: str, tmp_path: Path
) -> None:
    documents = [ep.Document(id=str(number), vector=[1.0, float(number)]) for number in range(501)]
    with ep.open_vector_store(url) as store:
        store.add(
            [
                *documents,
                ep.Document("", id="empty", vector=[0.0, 1.0]),
                ep.Document("t", id="t", vector=[1, 0]),
            ]
        )
    assert command("dump", url, tmp_path / "dump.jsonl").out == "wrote 503\n"
    lines = (tmp_path / "dump.jsonl").read_text("utf-8").splitlines()
    records = {record["id"]: record for record in map(json.loads, lines)}
    assert "vector" not in records.pop("t")
    assert all("vector" in record for record in records.values())
    left = tmp_path / "left.jsonl"
    left.write_text("".join(json.dumps(record) + "\n" for record in records.values()), "utf-8")
    other = f"{url}-other.db"
    assert command("load", other, left, "--embedding", "none").out == "loaded 502\n"
    include: tuple[Part, ...] = ("text", "metadata", "vector")
    with ep.open_vector_store(url) as one, ep.open_vector_store(other) as two:
        for name in ("7", "500", "empty"):
            assert one.get([name], include=include) == two.get([name], include=include)


def test_dump_writes_to_what_a_link_names(command: Command, cities: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "real.jsonl").write_text("old\n", "utf-8")
    for name in ("link.jsonl", "dangling.jsonl"):
        link = tmp_path / name
        link.symlink_to(folder / name.replace("link", "real"))
        assert command("dump", cities, link).out == "wrote 3\n"
        assert link.is_symlink()
        assert len(link.read_text("utf-8").splitlines()) == 3
    assert sorted(path.name for path in folder.iterdir()) == ["dangling.jsonl", "real.jsonl"]


def test_a_full_disk_is_an_error_with_the_name_of_the_file(command: Command, cities: str) -> None:
    outcome = command("dump", cities, "/dev/full")
    assert outcome.code == 1
    assert outcome.err.splitlines()[-1] == "entrepot: /dev/full: cannot be written: No space left on device"
