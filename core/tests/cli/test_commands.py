"""Commands on a store, exit codes, and what a user sees of an error."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from entrepot import errors
from entrepot.cli.app import exit_code

if TYPE_CHECKING:
    from core.tests.cli.conftest import Command

BROKEN_IMPORTS = """
import importlib.util, sys
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in {missing!r} else find(name, *rest)
sys.argv = ["entrepot", "--help"]
from entrepot.cli import main
main()
"""


def test_search_prints_a_line_for_each_hit(command: Command, cities: str) -> None:
    rows = command("search", cities, "capital of Bulgaria", "--top-k", 2).rows
    assert rows[0] == ["score", "rank score", "id", "text", "metadata"]
    assert [row[2] for row in rows[1:]] == ["sofia", "plovdiv"]
    assert rows[1][3:] == ["Sofia is the capital of Bulgaria", 'country="BG" year=2020']
    assert 0.5 < float(rows[1][0]) <= 1


def test_search_json_with_filter_and_mode(command: Command, cities: str) -> None:
    found = command(
        "search", cities, "the capital", "--mode", "fulltext", "--filter", "country == 'PT'", "--json"
    ).json
    assert found["mode"] == "fulltext"
    (hit,) = found["hits"]
    assert (hit["id"], hit["score"], hit["metadata"]) == ("lisbon", None, {"country": "PT", "year": 2021})
    assert hit["rank_score"] > 0


def test_search_options_reach_the_request(command: Command, cities: str) -> None:
    best = command("search", cities, "Sofia is the capital of Bulgaria", "--json", "--exact").json["hits"]
    assert len(best) == 3
    assert best[0]["score"] == pytest.approx(1, abs=1e-6)  # S2
    cut = command("search", cities, "Sofia is the capital of Bulgaria", "--threshold", "0.999", "--json").json
    assert [hit["id"] for hit in cut["hits"]] == ["sofia"]  # S3
    both = command("search", cities, "oldest", "--mode", "hybrid", "--top-k", 1, "--json").json["hits"]
    assert [hit["id"] for hit in both] == ["plovdiv"]


def test_count(command: Command, cities: str) -> None:
    assert command("count", cities).out == "3\n"
    assert command("count", cities, "--filter", "country == 'BG'", "--json").json == {"count": 2}


def test_stats(command: Command, cities: str) -> None:
    facts = command("stats", cities, "--json").json
    assert facts["count"] == 3
    assert facts["dimension"] == 256
    assert facts["metric"] == "cosine"
    assert facts["model"].startswith("wordllama/")
    assert ["count", "3"] in command("stats", cities).rows


def test_delete_by_id(command: Command, cities: str) -> None:  # D7: an unknown id is no error
    assert command("delete", cities, "--id", "sofia", "--id", "unknown").out == "deleted 1\n"
    assert command("count", cities).out == "2\n"


def test_delete_of_many_needs_a_yes(command: Command, cities: str) -> None:
    refused = command("delete", cities, "--filter", "country == 'BG'", stdin=b"")
    assert refused.code == 2
    assert "deletes 2 documents" in refused.err
    assert command("count", cities).out == "3\n"
    assert command("delete", cities, "--filter", "country == 'BG'", "--yes", "--json").json == {"deleted": 2}
    assert command("delete", cities, "--all", "--yes").out == "deleted 1\n"
    assert command("count", cities).out == "0\n"


@pytest.mark.parametrize("arguments", [(), ("--all", "--id", "a"), ("--filter", "a == 1", "--all")])
def test_delete_takes_exactly_one_target(command: Command, cities: str, arguments: tuple[str, ...]) -> None:
    outcome = command("delete", cities, *arguments, "--yes")
    assert outcome.code == 2
    assert command("count", cities).out == "3\n"


def test_plugins_lists_the_embedded_store(command: Command) -> None:
    listed = command("plugins", "--json").json
    assert "simple" in {plugin["name"] for plugin in listed["plugins"]}
    assert any(row[0] == "simple" for row in command("plugins").rows)


# --- filters ----------------------------------------------------------------------------------------------


def test_filter_explain(command: Command) -> None:
    shown = command("filter", "explain", "not (country = 'BG' or year < 2020)").out
    assert shown.splitlines() == [
        "filter: NOT (country == 'BG' OR year < 2020)",
        "depth: 3 of 100, nodes: 4 of 10000",
        "",
        "tree:",
        "  NOT",
        "    OR",
        "      country == 'BG'",
        "      year < 2020",
        "",
        "normal form:",
        "  AND",
        "    country != 'BG'",
        "    NOT year < 2020",
    ]


def test_filter_explain_json_and_pushdown(command: Command, cities: str) -> None:
    facts = command("filter", "explain", "a == 1 and b in []", "--store", cities, "--json").json
    assert facts["tree"] == {"AND": ["a == 1", "b IN []"]}
    assert facts["normal_form"] == "FALSE"
    assert (facts["depth"], facts["nodes"], facts["max_depth"], facts["max_nodes"]) == (
        2,
        3,
        100,
        10000,
    )  # F6
    assert facts["pushdown"]["exact"] is True
    assert "pushdown:" in command("filter", "explain", "a == 1", "--store", cities).out


def test_a_wrong_filter_is_shown_with_its_place(command: Command, cities: str) -> None:  # F8
    for arguments in (("filter", "explain", "a =="), ("count", cities, "--filter", "a ==")):
        outcome = command(*arguments)
        assert outcome.code == 2
        assert "line 1, column 5" in outcome.err
        assert "^" in outcome.err
        assert "Traceback" not in outcome.err


# --- errors -----------------------------------------------------------------------------------------------


def test_an_error_is_a_message_and_a_hint(command: Command, url: str) -> None:  # E2
    missing = command("count", url)
    assert missing.code == 2
    assert missing.err.startswith("entrepot: ")
    assert "  hint: " in missing.err
    unknown = command("count", "nothing-of-this-name://articles")
    assert unknown.code == 2
    assert "nothing-of-this-name" in unknown.err


def test_an_error_in_json(command: Command, url: str) -> None:
    outcome = command("count", url, "--json")
    assert outcome.out == ""
    error = json.loads(outcome.err)
    assert error["error"] == "CollectionNotFoundError"
    assert error["message"]
    assert error["hint"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConfigurationError("x"), 2),
        (errors.ArgumentTypeError("x"), 2),
        (errors.CollectionNotFoundError("x"), 2),
        (errors.PluginNotFoundError("x"), 2),
        (errors.DriverNotFoundError("x"), 2),
        (errors.UnsupportedSearchModeError("x", capability="hybrid"), 2),
        (errors.UnreachableError("x"), 1),
        (errors.StoreInUseError("x"), 1),
        (errors.EmbeddingError("x"), 1),
        (errors.BatchError("x", written=[], failed={}), 1),
    ],
)
def test_exit_codes(error: errors.EntrepotError, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize("arguments", [("no-such-command",), ("search",), ("count", "--no-such-option", "x")])
def test_usage_mistakes_exit_with_2(command: Command, arguments: tuple[str, ...]) -> None:
    outcome = command(*arguments)
    assert outcome.code == 2
    assert outcome.out == ""


def test_version(command: Command) -> None:
    outcome = command("--version")
    assert outcome.code == 0
    assert outcome.out.startswith("entrepot 0.")


# --- the process ------------------------------------------------------------------------------------------


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("missing", [["typer"], ["rich"], ["typer", "rich"]])
def test_without_the_extra_the_command_says_what_to_install(missing: list[str]) -> None:
    done = python("-c", BROKEN_IMPORTS.format(missing=missing))
    assert done.returncode == 2
    assert done.stderr == (
        f"entrepot: the command line needs {' and '.join(missing)}, which is not installed\n"
        '  hint: pip install "entrepot[cli]"\n'
    )


def test_help_loads_nothing_heavy() -> None:
    heavy = ["numpy", "msgspec", "pluggy", "wordllama", "httpx", "opentelemetry"]
    done = python(
        "-c",
        "import sys; from entrepot.cli.app import run; code = run(['--help']); "
        f"print('LOADED', code, [name for name in {heavy} if name in sys.modules])",
    )
    assert done.stdout.splitlines()[-1] == "LOADED 0 []"


def test_tables_are_drawn_on_a_terminal_only(cities: str, tmp_path: Path) -> None:
    main, terminal = pty.openpty()
    with (tmp_path / "errors").open("wb") as errors_file:
        done = subprocess.run(
            [sys.executable, "-c", "from entrepot.cli import main; main()", "search", cities, "capital"],
            stdout=terminal,
            stderr=errors_file,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    os.close(terminal)
    shown = os.read(main, 65536).decode()
    os.close(main)
    assert done.returncode == 0
    assert "━" in shown
    assert "\t" not in shown


ENTREPOT = "from entrepot.cli import main; main()"


@pytest.mark.parametrize("arguments", [("plugins",), ("plugins", "--json"), ("--help",), ("--version",)])
def test_a_full_or_closed_standard_output_is_an_error_without_traceback(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", ENTREPOT, *arguments], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    closed = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" "$@" >&-', sys.executable, "-c", ENTREPOT, *arguments],
        stderr=subprocess.PIPE,
        check=False,
    )
    assert closed.returncode == 1
    assert b"standard output is closed" in closed.stderr
    assert len(closed.stderr.splitlines()) == 1


def test_documents_on_a_full_disk(cities: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-c", ENTREPOT, "dump", cities], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)


@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "simple://", "q", "--mode", "zzz", "--json"),
        ("search", "--json"),
        ("count", "simple://", "--no-such-option", "--json"),
        ("dump", "simple://", "--json"),
        ("no-such-command", "--json"),
        ("delete", "simple://", "--json"),
    ],
)
def test_usage_mistakes_are_json_where_json_was_asked_for(
    command: Command, arguments: tuple[str, ...]
) -> None:
    outcome = command(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    (line,) = outcome.err.splitlines()
    facts = json.loads(line)
    assert facts.keys() == {"error", "message", "hint"}
    assert facts["message"]


def test_deleting_without_a_yes_is_json_too(command: Command, cities: str) -> None:
    outcome = command("delete", cities, "--all", "--json", stdin=b"")
    assert outcome.code == 2
    assert "deletes 3 documents" in json.loads(outcome.err)["message"]
    assert command("count", cities).out == "3\n"


def test_what_a_document_holds_is_no_command_to_the_terminal(command: Command, url: str) -> None:
    evil = "a\x1b[2J\x9b\u202eb\x07\x7f"
    record = json.dumps({"id": f"id{evil}", "text": f"text{evil}", "metadata": {"k": evil}})
    assert command("load", url, "-", "--embedding", "hash:8", stdin=record.encode()).code == 0
    shown = command("search", url, "text", "--embedding", "hash:8")
    assert shown.code == 0
    assert r"a\x1b[2J\x9b\u202eb\x07\x7f" in shown.out
    found = command("search", url, "text", "--embedding", "hash:8", "--json")
    assert found.json["hits"][0]["text"] == f"text{evil}"
    refused = command(
        "load", url, "-", "--embedding", "hash:8", "--if-exists", "error", stdin=record.encode()
    )
    assert refused.code == 2
    for text in (shown.out, found.out, refused.err):
        assert not set(text) & set("\x1b\x9b\u202e\x07\x7f")
