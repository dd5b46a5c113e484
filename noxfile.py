"""Every chore of the workspace by name: `uv run nox --list`, `uv run nox -s quick`.

Plain `uv run nox` runs all that a change must pass. Every session syncs its own environment with uv from the
pins of the root pyproject.toml; the files are linked from uv's cache, so a second run costs seconds.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sys
import tomllib
from pathlib import Path

import nox

ROOT = Path(__file__).parent
REPORTS = ROOT / "reports"
SUITE = ("--pyargs", "entrepot_conformance.tests", "--target=all")
FAST = ("simple", "simple-durable", "sqlite", "sqlite-memory")
"""Targets that answer from this process at once: what `quick` and `build` run the suite on."""
PINS = ROOT / "constraints.txt"

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "tests", "conformance", "mutants", "docs", "build"]


def distributions() -> list[Path]:
    """The folders of the workspace's distributions, the core first."""
    workspace = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["uv"]["workspace"]
    left_out = {ROOT / folder for folder in workspace["exclude"]}
    return [
        folder
        for pattern in workspace["members"]
        for folder in sorted(ROOT.glob(pattern))
        if (folder / "pyproject.toml").is_file() and folder not in left_out
    ]


def source_folders(*kinds: str) -> list[str]:
    """The folders of those kinds (`src`, `tests`) that exist, relative to the root."""
    return [
        str((folder / kind).relative_to(ROOT))
        for folder in distributions()
        for kind in kinds
        if (folder / kind).is_dir()
    ]


def sync(session: nox.Session, *groups: str) -> None:
    """Make the session's environment hold exactly these dependency groups, the workspace editable."""
    session.run_install(
        "uv",
        "sync",
        "--quiet",
        "--no-default-groups",
        f"--python={session.virtualenv.location}",
        *(f"--group={group}" for group in groups),
        env={"UV_PROJECT_ENVIRONMENT": session.virtualenv.location},
        external=True,
    )


def pytest(session: nox.Session, *arguments: str, report: str, waiting: bool = False) -> None:
    """Run pytest and leave a JUnit report under reports/; with more workers than cores if tests wait for servers."""
    REPORTS.mkdir(exist_ok=True)
    count = str(2 * (os.cpu_count() or 1)) if waiting else "auto"
    # The suite orders its tests, long ones first and those that run alone last: they are handed out one by one.
    order = ("--dist=load", "--maxschedchunk=1") if waiting else ("--dist=worksteal",)
    workers = (f"--numprocesses={count}", *order)
    session.run("pytest", *workers, f"--junitxml={REPORTS / report}.xml", *arguments, *session.posargs)


def targets(*names: str) -> list[str]:
    """The suite's options for these targets."""
    return [f"--target={name}" for name in names]


@nox.session
def quick(session: nox.Session) -> None:
    """The tests without the marker `slow`: under a minute, for every save."""
    sync(session, "test")
    pytest(session, "-m", "not slow", *targets(*FAST), report="quick")


@nox.session
def tests(session: nox.Session) -> None:
    """All tests of the distributions themselves, the slow ones too; the suite is the session `conformance`."""
    sync(session, "test")
    pytest(session, *source_folders("tests"), "tests", report="tests")


@nox.session
def conformance(session: nox.Session) -> None:
    """The suite on every backend whose server can be had; leaves reports/conformance.json and .html.

    ENTREPOT_REQUIRE names servers that must be had, ENTREPOT_VIA the ways to them. With ``--all`` slow engines are
    tried as thoroughly as the others, and all with 10,000 random filters instead of 2,000.
    """
    sync(session, "test")
    pace, filters = ["--fast"], "2000"
    if "--all" in session.posargs:
        session.posargs.remove("--all")
        pace, filters = [], "10000"
    session.env["ENTREPOT_FUZZ_COUNT"] = os.environ.get("ENTREPOT_FUZZ_COUNT", filters)
    files = (f"--conformance-report={REPORTS / 'conformance'}{kind}" for kind in (".json", ".html"))
    # Ten thousand filters on a store that needs 20 ms for one take more than the 300 s of other tests.
    pytest(session, *SUITE, *files, *pace, "--timeout=1200", report="conformance", waiting=True)


@nox.session
def mutants(session: nox.Session) -> None:
    """Break every rule on purpose; the tests that cite it must notice."""
    sync(session, "test")
    session.run("python", "-m", "entrepot_conformance.mutants", *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Random filters on every store: `nox -s fuzz -- 50000` for so many, with another seed each time."""
    sync(session, "test")
    count, *more = session.posargs or ["20000"]
    seed = session.env.get("ENTREPOT_FUZZ_SEED") or str(secrets.randbelow(2**31))
    session.log(f"ENTREPOT_FUZZ_SEED={seed} ENTREPOT_FUZZ_COUNT={count}")
    session.env.update(ENTREPOT_FUZZ_SEED=seed, ENTREPOT_FUZZ_COUNT=count)
    session.posargs[:] = more
    pytest(session, *SUITE, "-k", "thousand_random_filters", "--timeout=0", report="fuzz")


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of sources and tests: mypy --strict and pyright strict."""
    sync(session, "types")
    session.run("mypy", *source_folders("src", "tests"), "tests", "benchmarks", "conftest.py", "noxfile.py")
    session.run("pyright", f"--pythonpath={session.bin}/python")


@nox.session
def lint(session: nox.Session) -> None:
    """Ruff, the arrows between the packages, the changelog fragments."""
    sync(session, "lint")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports", "--no-cache")
    for folder in distributions():
        session.run(
            "towncrier", "build", "--draft", "--version=next", "--dir", str(folder), silent=True
        )  # refuses a fragment whose name has no kind


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site, strictly; `nox -s docs -- serve` shows it while you write."""
    sync(session, "docs")
    session.env["NO_MKDOCS_2_WARNING"] = "1"  # an advertisement of the theme's
    if "serve" in session.posargs:
        session.run("mkdocs", "serve")
    else:
        session.run("mkdocs", "build", "--strict", "--quiet", "--site-dir", "site")


@nox.session
def build(session: nox.Session) -> None:
    """Build every distribution, install the wheels into a clean environment, run the quick tests on them."""
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    for folder in distributions():
        session.run_install(
            "uv",
            "build",
            "--quiet",
            f"--build-constraint={PINS}",
            f"--out-dir={dist}",
            str(folder),
            external=True,
        )
    wheels = sorted(dist.glob("*.whl"))
    requirements = Path(session.create_tmp()) / "requirements.txt"
    session.run_install(
        "uv",
        "export",
        "--quiet",
        "--no-hashes",
        "--no-default-groups",
        "--group=test",
        "--no-emit-workspace",
        f"--output-file={requirements}",
        external=True,
    )
    session.install("--quiet", "--requirements", str(requirements), f"--constraint={PINS}")
    session.install("--quiet", "--no-deps", "--reinstall", *map(str, wheels))
    session.run("uv", "pip", "check", external=True)
    # Only the tests stand beside the installed wheels: the sources are out of reach.
    session.run("python", "-c", INSTALLED, *(wheel.name.split("-")[0] for wheel in wheels), silent=True)
    # What needs a server runs in the session `tests`; the wheels hold the same modules.
    pytest(session, "-m", "not slow", "--without-servers", *source_folders("tests"), "tests", report="build")
    pytest(session, "-m", "not slow", *SUITE[:2], *targets(*FAST), report="suite")
    outside(session, wheels)
    # The core alone, without extras: it works, and the command says what it lacks.
    bare = Path(session.create_tmp()) / "bare"
    python = bare / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    session.run(
        "uv", "venv", "--quiet", "--clear", f"--python={session.bin}/python", str(bare), external=True
    )
    core = [str(wheel) for wheel in wheels if wheel.name.startswith("entrepot-")]
    session.run(
        "uv", "pip", "install", "--quiet", f"--python={python}", f"--constraint={PINS}", *core, external=True
    )
    session.run(str(python), "-c", BARE, external=True)


INSTALLED = """
import importlib.util, pathlib, sys
for name in sys.argv[1:]:
    spec = importlib.util.find_spec(name)
    place = pathlib.Path(spec.origin if spec and spec.origin else "nowhere")
    if "site-packages" not in place.parts:
        sys.exit(f"{name} comes from {place}, not from its wheel")
    if not place.with_name("py.typed").is_file():
        sys.exit(f"the wheel of {name} lacks py.typed")
"""


BARE = """
import subprocess, sys, pathlib
import entrepot as ep
with ep.open_vector_store("simple://") as store:
    store.add([ep.Document("x", id="x", vector=[1.0, 0.0]), ep.Document("y", id="y", vector=[0.0, 1.0])])
    assert [hit.id for hit in store.similarity_search(ep.SearchRequest(vector=[0.9, 0.1]))] == ["x", "y"]
command = pathlib.Path(sys.executable).with_name("entrepot")
done = subprocess.run([command, "--help"], capture_output=True, text=True)
assert done.returncode == 2 and "entrepot[cli]" in done.stderr, done
"""


def outside(session: nox.Session, wheels: list[Path]) -> None:
    """As others do: backends from outside of the workspace, installed from wheels, pass the suite.

    One is generated by `entrepot new-plugin`, the others stand under examples/.
    """
    place = Path(session.create_tmp()).resolve() / "outside"
    shutil.rmtree(place, ignore_errors=True)
    python = place / "venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    session.run(
        "uv", "venv", "--quiet", f"--python={session.bin}/python", str(python.parents[1]), external=True
    )
    session.run(
        "entrepot", "new-plugin", "cupboard", "--memory", f"--folder={place / 'cupboard'}", silent=True
    )
    folders = [place / "cupboard", *(path.parent for path in (ROOT / "examples").glob("*/pyproject.toml"))]
    for folder in folders:
        session.run(
            *("uv", "build", "--quiet", "--wheel", f"--build-constraint={PINS}"),
            *(f"--out-dir={place / 'wheels'}", str(folder)),
            external=True,
        )
    ours = [str(wheel) for wheel in wheels if wheel.name.startswith(("entrepot-", "entrepot_conformance-"))]
    theirs = sorted((place / "wheels").glob("*.whl"))
    session.run(
        *("uv", "pip", "install", "--quiet", f"--python={python}", f"--constraint={PINS}", "pytest-xdist"),
        *(*ours, *map(str, theirs)),
        external=True,
    )
    names = [wheel.name.split("-")[0].removeprefix("entrepot_") for wheel in theirs]
    (place / "pytest.ini").write_text("[pytest]\n")  # else this workspace's settings are found
    with session.chdir(place):
        session.run(
            *(
                str(python),
                "-m",
                "pytest",
                "-q",
                "-c",
                "pytest.ini",
                "--numprocesses=auto",
                "-p",
                "no:cacheprovider",
            ),
            *("--pyargs", "entrepot_conformance.tests", "-m", "not slow", *targets(*names)),
            f"--junitxml={REPORTS / 'outside'}.xml",
            external=True,
        )


@nox.session
def bench(session: nox.Session) -> None:
    """Measure; `nox -s bench -- --json FILE` also writes the numbers."""
    sync(session, "bench")
    peers = Path(session.create_tmp()) / "peers"
    python = peers / "bin" / "python"
    if not python.exists():
        session.run_install(
            "uv", "venv", "--quiet", f"--python={session.bin}/python", str(peers), external=True
        )
    session.run_install(
        "uv", "pip", "install", "--quiet", f"--python={python}", "-r", "benchmarks/peers.txt", external=True
    )
    session.run("python", "benchmarks/run.py", *session.posargs, env={"ENTREPOT_PEERS_PYTHON": str(python)})


@nox.session
def pins(session: nox.Session) -> None:
    """Take the newest versions that fit together, and write them to constraints.txt and pyproject.toml."""
    root = ROOT / "pyproject.toml"
    before = root.read_text("utf-8")
    root.write_text(with_pins(before, []), "utf-8")
    try:
        session.run_install("uv", "lock", "--upgrade", external=True)
        exported = session.run_install(
            "uv",
            "export",
            "--quiet",
            "--all-packages",
            "--all-extras",
            "--all-groups",
            "--no-hashes",
            "--no-emit-workspace",
            "--no-header",
            "--no-annotate",
            external=True,
            silent=True,
        )
    except BaseException:
        root.write_text(before, "utf-8")
        raise
    pinned = [line.strip() for line in str(exported).splitlines() if "==" in line]
    PINS.write_text("".join(f"{line}\n" for line in pinned), "utf-8")
    text = with_pins(before, pinned)
    for line in pinned:
        if line.startswith("hatchling=="):  # the build backend
            text = re.sub(r'"hatchling==[^"]*"', f'"{line}"', text)
    root.write_text(text, "utf-8")


def with_pins(pyproject: str, pinned: list[str]) -> str:
    """The text of pyproject.toml with `constraint-dependencies` replaced."""
    rows = "".join(f'  "{line}",\n' for line in pinned)
    text, count = re.subn(
        r"^constraint-dependencies = \[\n.*?^\]\n",
        lambda _: f"constraint-dependencies = [\n{rows}]\n",
        pyproject,
        flags=re.MULTILINE | re.DOTALL,
    )
    if count != 1:
        raise ValueError(f"pyproject.toml has {count} lists of constraint-dependencies, expected one")
    return text
