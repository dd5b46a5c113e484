"""`entrepot load` and `dump`: documents between a store and a file of JSON lines.

A record has the keys id, text and metadata, and where wanted vector. `load` takes every other top-level
key as metadata. A datetime in metadata is ``{"datetime": "2026-01-31T12:00:00Z"}``, so that what was
dumped loads as it was, with its types.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from entrepot.cli.options import (
    DEFAULT_EMBEDDING,
    AsJson,
    Embedding,
    FilterText,
    StoreUrl,
    model_named,
    opened,
)
from entrepot.cli.output import print_json, print_line, progress, remark, tagged
from entrepot.errors import ConfigurationError, EntrepotError

if TYPE_CHECKING:
    from entrepot.capabilities import Metric
    from entrepot.documents import Document
    from entrepot.search import Part
    from entrepot.vectorstore import VectorStore

_READ_AT_ONCE = 500  # documents without text, whose vectors are read
_IN_MEMORY = 16 * 1024 * 1024  # bytes of standard input kept before it goes to a temporary file


def load(
    store: StoreUrl,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="JSON lines; - reads standard input", show_default=False)
    ],
    *,
    embedding: Embedding = DEFAULT_EMBEDDING,
    if_exists: Annotated[
        Literal["replace", "skip", "error"], typer.Option(help="What to do with an id that is there")
    ] = "replace",
    batch_size: Annotated[int, typer.Option(min=1, help="Documents sent at once")] = 500,
    flatten: Annotated[
        bool, typer.Option("--flatten", help="Make nested objects dotted metadata keys")
    ] = False,
    skip_empty: Annotated[
        bool,
        typer.Option(
            "--skip-empty", help="Leave out records whose text is empty, instead of refusing the file"
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Load documents from JSON lines.

    A record has id, text and metadata; other keys become metadata. The file is read and checked whole before anything is sent. Records without id get a random one.
    """
    with _readable(file) as source:
        model = model_named(embedding)
        reader = _Reader(
            source, str(file), flatten=flatten, skip_empty=skip_empty, needs_vectors=model is None
        )
        total, left_out, length = reader.check()
        done = 0
        with (
            opened(store, embedding=model, create=True) as opened_store,
            progress("loading", total) as advance,
        ):
            if length is not None:
                reader.check_vectors(*_vectors_taken(opened_store, store, length))
            try:
                for batch in _batches(reader.documents(), batch_size):
                    opened_store.add(batch, if_exists=if_exists)
                    done += len(batch)
                    advance(len(batch))
            except EntrepotError:
                remark(f"entrepot: {done} of {total} documents were loaded before the error")
                raise
    if as_json:
        print_json({"loaded": done, "left_out": left_out})
    else:
        print_line(f"loaded {done}" + (f", left out {left_out} with an empty text" if left_out else ""))


def dump(
    store: StoreUrl,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Where to write; standard output by default")
    ] = None,
    *,
    filter_text: FilterText = None,
    vectors: Annotated[bool, typer.Option("--vectors", help="Write the vectors too")] = False,
    as_json: AsJson = False,
) -> None:
    """Write documents as JSON lines.

    Without --vectors only documents without a text bring their vector, as nothing else could stand for them. They come in no promised order; `load` reads them back as they were. A file is written whole or not at all. With --json the documents need a FILE, and a summary is printed.
    """
    if as_json and file is None:
        raise typer.BadParameter("--json prints a summary, so the documents need a FILE")
    include: tuple[Part, ...] = ("text", "metadata", "vector") if vectors else ("text", "metadata")
    done = 0
    with opened(store) as opened_store:
        total = opened_store.count(filter_text) if file is not None else None
        with _writable(file) as sink, progress("writing", total) as advance:
            documents = opened_store.scan(filter_text, include=include)
            for document in documents if vectors else _loadable(opened_store, documents):
                sink.write(_line(document))
                done += 1
                advance(1)
    if as_json:
        print_json({"written": done})
    elif file is not None:
        print_line(f"wrote {done}")


def _loadable(store: "VectorStore", documents: "Iterable[Document]") -> "Iterator[Document]":
    """Give documents without a text their vector: `load` takes no record that has neither."""
    bare: list[str] = []
    for document in documents:
        if document.text:
            yield document
            continue
        bare.append(document.id)
        if len(bare) == _READ_AT_ONCE:
            yield from store.get(bare, include=("text", "metadata", "vector"))
            bare = []
    if bare:
        yield from store.get(bare, include=("text", "metadata", "vector"))


def _vectors_taken(store: "VectorStore", url: str, length: int) -> "tuple[Metric, int]":
    """Return the metric and the length of vectors that the store takes.

    A collection that is still to be made will have what the URL says, then the model's length, then
    that of the file's first vector (D5).
    """
    from entrepot.capabilities import Metric
    from entrepot.embedding import model_dimensions
    from entrepot.urls import parse_url

    if store.collection_exists():
        figures = store.stats()
        return Metric(figures.metric), figures.dimension
    options = parse_url(url).options
    metric = Metric(options.get("metric", Metric.COSINE))
    if "dimension" in options:
        return metric, int(options["dimension"])
    return metric, length if store.embedding is None else model_dimensions(store.embedding)


def _line(document: "Document") -> bytes:
    record: dict[str, object] = {"id": document.id, "text": document.text, "metadata": document.metadata}
    if document.vector is not None:
        record["vector"] = document.vector.tolist()
    return json.dumps(record, ensure_ascii=False, allow_nan=False, default=tagged).encode() + b"\n"


@dataclass(frozen=True)
class _Reader:
    """Turns JSON lines into documents, twice: once to check all of them, once to load them."""

    source: IO[bytes]
    name: str
    flatten: bool
    skip_empty: bool
    needs_vectors: bool

    def check(self) -> tuple[int, int, int | None]:
        """Read everything once; return how many documents to load, to leave out, and the vectors' length.

        Raises:
            ConfigurationError: A line is no JSON object, lacks text and vector, repeats an id, or holds an
                id, a text, metadata or a vector that no store takes.
        """
        lines: dict[str, int] = {}
        count = left_out = 0
        length: int | None = None
        for number, document in self._read():
            if document is None:
                left_out += 1
                continue
            count += 1
            first = lines.setdefault(document.id, number)
            if first != number:
                raise ConfigurationError(
                    f"{self.name}, line {number}: the id {document.id!r} stands in line {first} already",
                    hint="a file holds each document once",
                )
            length = self._vector_checked(number, document, length)
        return count, left_out, length

    def _vector_checked(self, number: int, document: "Document", length: int | None) -> int | None:
        """Check a record's vector as far as the file alone tells; return the length of the file's vectors."""
        if document.vector is None:
            if self.needs_vectors:
                raise ConfigurationError(
                    f"{self.name}, line {number}: the record has no vector, and no model makes one",
                    hint="name a model with --embedding",
                )
            return length
        from entrepot.vectors import as_vector

        with self._in_line(number):
            size = int(as_vector(document.vector, None, "the vector").size)
        if length is not None and size != length:
            raise ConfigurationError(
                f"{self.name}, line {number}: the vector has {size} components, the first one has {length}",
                hint="all vectors of a collection have one length",
            )
        return size

    def check_vectors(self, metric: "Metric", dimension: int) -> None:
        """Read everything again and check the vectors as the store will (D9).

        Raises:
            ConfigurationError: One has another length, is zero, or under dot not of norm 1.
        """
        from entrepot.vectors import as_vector, check_vectors

        for number, document in self._read():
            if document is not None and document.vector is not None:
                with self._in_line(number):
                    vector = as_vector(document.vector, dimension, "the vector")
                    check_vectors(metric, [vector], dimension, lambda _: "the vector")

    def documents(self) -> "Iterator[Document]":
        """Read everything again."""
        return (document for _, document in self._read() if document is not None)

    def _read(self) -> "Iterator[tuple[int, Document | None]]":
        self.source.seek(0)
        for number, line in enumerate(self.source, 1):
            if not line.strip():
                continue
            with self._in_line(number):
                record = _object(line)
                if record.get("text") == "" and record.get("vector") is None:
                    if not self.skip_empty:
                        raise ConfigurationError(
                            "the text is empty, so there is nothing to embed",
                            hint="--skip-empty leaves such records out",
                        )
                    document = None
                else:
                    document = _document(record, flatten=self.flatten)
            yield number, document

    @contextmanager
    def _in_line(self, number: int) -> Generator[None]:
        """Name the line in the error of a record."""
        where = f"{self.name}, line {number}"
        try:
            yield
        except EntrepotError as error:
            raise ConfigurationError(f"{where}: {error.message}", hint=error.hint) from error
        except RecursionError as error:
            raise ConfigurationError(f"{where}: the record nests too deeply") from error
        except ValueError as error:
            raise ConfigurationError(f"{where}: {error}") from error


def _object(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except UnicodeDecodeError as error:
        raise ValueError("the line is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON: {error.msg}, column {error.colno}") from error
    if not isinstance(record, dict):
        raise ValueError('expected an object such as {"id": "a", "text": "..."}')  # noqa: TRY004 - of the file
    return cast("dict[str, Any]", record)


def _document(record: dict[str, Any], *, flatten: bool) -> "Document":
    from entrepot.documents import Document
    from entrepot.metadata import clean_metadata, flatten_metadata, ill_formed, name_fault

    name = record.pop("id", None)
    if type(name) is int:
        name = str(name)
    if name is not None and (fault := name_fault(name)):
        raise ValueError(f"the id {fault}")
    text = record.pop("text", None)
    if text is not None and (fault := "must be a string" if not isinstance(text, str) else ill_formed(text)):
        raise ValueError(f"the text {fault}")
    vector = record.pop("vector", None)
    if text is None and vector is None:
        raise ValueError("the record has neither text nor vector")
    given: object = record.pop("metadata", None)
    if not isinstance(given, dict | None):
        raise ValueError("metadata must be an object")  # noqa: TRY004 - of the file
    stated = cast("dict[str, Any]", given or {})
    twice = record.keys() & stated.keys()
    if twice:
        raise ValueError(f"{min(twice)!r} stands both in metadata and beside it")
    metadata = {key: _value(value) for key, value in {**record, **stated}.items()}
    if flatten:
        metadata = flatten_metadata(metadata)
    return Document(text, id=name, metadata=clean_metadata(metadata), vector=vector)


def _value(value: object) -> object:
    """Turn tagged instants into datetimes, at any depth."""
    if isinstance(value, list):
        return [_value(element) for element in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    mapping = cast("dict[str, Any]", value)
    if mapping.keys() == {"datetime"} and isinstance(mapping["datetime"], str):
        try:
            return datetime.fromisoformat(mapping["datetime"])
        except ValueError:
            raise ValueError(f"{mapping['datetime']!r} is no datetime of ISO 8601") from None
    return {key: _value(element) for key, element in mapping.items()}


def _batches(documents: "Iterable[Document]", size: int) -> "Iterator[list[Document]]":
    batch: list[Document] = []
    for document in documents:
        batch.append(document)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


@contextmanager
def _readable(file: Path) -> Generator[IO[bytes]]:
    """Open a file that can be read twice; standard input is copied first."""
    if str(file) == "-":
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
            yield copy
        return
    try:
        source = file.open("rb")
    except OSError as error:
        raise ConfigurationError(f"cannot read {file}: {error.strerror}") from error
    with source:
        if source.seekable():
            yield source
            return
        with tempfile.SpooledTemporaryFile(_IN_MEMORY) as copy:
            shutil.copyfileobj(source, copy)
            yield copy


@contextmanager
def _writable(file: Path | None) -> Generator[IO[bytes]]:
    """Open standard output, or a file that takes its name when it is complete."""
    if file is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    whole = not file.exists() or file.is_file()
    real = Path(os.path.realpath(file))  # what a link names is replaced, not the link
    target = real.with_name(f".{real.name}.{os.getpid()}.partial") if whole else file
    try:
        sink = target.open("wb")
    except OSError as error:
        raise ConfigurationError(f"cannot write {file}: {error.strerror}") from error
    try:
        with sink:
            yield sink
        if whole:
            target.replace(real)
    except OSError as error:
        raise OSError(error.errno, f"cannot be written: {error.strerror}", str(file)) from error
    finally:
        if whole:
            target.unlink(missing_ok=True)
