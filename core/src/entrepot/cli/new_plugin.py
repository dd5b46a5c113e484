"""`entrepot new-plugin`: a distribution for a new backend, which passes the suite as it is generated."""

import re
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Final

import typer

from entrepot.cli.output import print_line
from entrepot.errors import ConfigurationError

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MEMORY: Final = re.compile(
    r"^ *# memory: begin\n(.*?)(?:^ *# memory: else\n(.*?))?^ *# memory: end\n", re.MULTILINE | re.DOTALL
)
_MEMORY_FILES: Final = frozenset({"memory.py"})
_PLACES: Final = {"workflows": ".github/workflows"}


def new_plugin(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The backend, as in its URLs", show_default=False)
    ],
    *,
    folder: Annotated[
        Path | None, typer.Option("--folder", help="Where to write it; ./entrepot-NAME if not given")
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="With a chat memory beside the vector store")
    ] = False,
) -> None:
    """Write a distribution for a new backend.

    It builds, and passes the conformance suite at once on a small engine of its own; comments that begin with
    REPLACE lead through what to put in its place. The guide is "Writing a plugin" of the documentation.
    """
    if _NAME.fullmatch(name) is None:
        msg = f"{name!r} cannot be the scheme of URLs and the name of a package"
        raise ConfigurationError(msg, hint="lower-case letters, digits and single hyphens, a letter first")
    from entrepot.plugins import plugin_manager

    if name in plugin_manager().names():
        msg = f"a plugin called {name!r} is installed"
        raise ConfigurationError(msg, hint="choose another name")
    target = folder or Path(f"entrepot-{name}")
    if target.exists() and any(target.iterdir()):
        msg = f"{target} is there and not empty"
        raise ConfigurationError(msg, hint="name another folder by --folder")
    for path, text in generated(name, memory=memory).items():
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    print_line(f"wrote {target}; next:")
    print_line(f"  pip install -e {target} entrepot-conformance")
    print_line(f"  pytest --pyargs entrepot_conformance.tests --target {name}")


def generated(name: str, *, memory: bool) -> dict[str, str]:
    """Return the files of a new distribution by their paths."""
    template = files("entrepot.cli") / "template"
    return {
        _named(path, name): _named(
            _MEMORY.sub(lambda found: (found[1] if memory else found[2]) or "", text), name
        )
        for path, text in _read(template, "")
        if memory or path.rpartition("/")[2] not in _MEMORY_FILES
    }


def _read(folder: Traversable, prefix: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for entry in folder.iterdir():
        if entry.name == "__pycache__" or entry.name.startswith("."):
            continue
        if entry.is_dir():
            found += _read(entry, f"{prefix}{_PLACES.get(entry.name, entry.name)}/")
        else:
            found.append((f"{prefix}{entry.name}", entry.read_text("utf-8")))
    return found


def _named(text: str, name: str) -> str:
    """Put the new backend's name in place of the template's, in all the forms in which it stands."""
    module = name.replace("-", "_")
    camel = "".join(part.capitalize() for part in name.split("-"))
    for old, new in (
        ("entrepot_shelf", f"entrepot_{module}"),
        ("SHELF", module.upper()),
        ("Shelf", camel),
        ("shelf", name),
    ):
        text = text.replace(old, new)
    return text
