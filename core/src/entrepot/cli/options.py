"""Options that several commands share, and how a command opens its store."""

from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

if TYPE_CHECKING:
    from collections.abc import Generator

    from entrepot import VectorStore

StoreUrl: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="STORE", help="URL of the store, such as simple:///articles.db", show_default=False
    ),
]
FilterText: TypeAlias = Annotated[
    str | None,
    typer.Option("--filter", "-f", metavar="TEXT", help='Only documents that match, such as "year >= 2020"'),
]
Embedding: TypeAlias = Annotated[
    str,
    typer.Option(
        "--embedding",
        "-e",
        metavar="MODEL",
        help="Embedding model: name or name:model; none if vectors are given",
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON")]

DEFAULT_EMBEDDING = "wordllama"


def model_named(name: str) -> str | None:
    """Return the name of an embedding model; `none` means that all vectors are given."""
    return None if name == "none" else name


@contextmanager
def opened(url: str, *, embedding: str | None = None, create: bool = False) -> "Generator[VectorStore]":
    """Open the store for one command and close it afterwards."""
    import entrepot

    with entrepot.open_vector_store(url, embedding=embedding, create=create) as store:
        yield store
