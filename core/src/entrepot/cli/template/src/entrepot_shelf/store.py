"""`ShelfVectorStore`: the hooks of `entrepot.VectorStore`, each a call of the driver.

The core has checked everything before it calls a hook, and makes scores, thresholds, order and completion
of what comes back. Each hook has an async twin, such as `_asearch`, that by default runs it in a worker
thread. REPLACE: where the driver has an async client, override the twins, and share all but the call.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from entrepot import VectorStore
from entrepot.capabilities import Capabilities, Metric
from entrepot.drafts import check_sizes
from entrepot.errors import ClosedError, CollectionMismatchError, DuplicateIdError
from entrepot.filters import Normal
from entrepot.guards import changed, changed_inside, refuse_outside
from entrepot.metadata import decode_metadata, encode_metadata
from entrepot.records import CollectionInfo, Hit, IfExists, Page, Query, Record, StoredRecord

from entrepot_shelf.config import password_of
from entrepot_shelf.engine import Drawer, Row, Server, fields_of
from entrepot_shelf.faults import translated
from entrepot_shelf.filters import ShelfFilterConverter
from entrepot_shelf.plugin import CAPABILITIES


class ShelfVectorStore(VectorStore):
    """A collection of Shelf.

    Args:
        host: The server.
        port: Its port.
        password: Of the server; SHELF_PASSWORD if not given.
        collection: The collection.
        options: What every store takes: embedding, metric, dimension, create, timeout and so on.

    Raises:
        UnreachableError: Nobody answers there.
        AuthenticationError: The server refused the login.
    """

    backend = "shelf"
    capabilities: Capabilities = CAPABILITIES

    def __init__(
        self,
        *,
        host: str = "localhost",
        port: int = 7000,
        password: str | None = None,
        collection: str = "default",
        **options: Any,
    ) -> None:
        super().__init__(collection=collection, **options)
        self._where = f"{host}:{port}"
        self._address = (host, port, password_of(password))
        self._server: Server | None = None
        self._connecting = threading.Lock()

    # --- the connection -------------------------------------------------------------------------------

    def _open(self) -> None:
        """Connect now, so that a wrong address or password shows at once."""
        with self._driver():
            pass

    def _close(self) -> None:
        self._server = None  # REPLACE: close the driver's client

    @contextmanager
    def _driver(self) -> Iterator[Server]:
        # REPLACE: hand `entrepot.exchange.remaining(default)` to the driver's timeouts.
        with translated(self._where, self.collection):
            with self._connecting:  # several threads may be the first
                if self.is_closed:
                    msg = f"the connection to {self._where} is closed"
                    raise ClosedError(msg)
                if self._server is None:
                    self._server = Server.at(*self._address)
                server = self._server
            yield server

    # --- collections (D5) -----------------------------------------------------------------------------

    def _describe(self) -> CollectionInfo | None:
        with self._driver() as server:
            drawer = server.drawers.get(self.collection)
            return None if drawer is None else _info(self.collection, drawer)

    def _create(self, info: CollectionInfo) -> None:
        settings = {
            "dimension": info.dimension,
            "metric": info.metric.value,
            "model": info.model,
            "layout": info.layout,
        }
        with self._driver() as server, server.lock:
            # Another process may have made it meanwhile: no error if it fits.
            there = server.drawers.setdefault(self.collection, Drawer(settings))
            _refuse_another(info, _info(self.collection, there))

    def _drop(self) -> None:
        with self._driver() as server, server.lock:
            server.drawers.pop(self.collection, None)

    def _list_collections(self) -> list[str]:
        with self._driver() as server:
            return sorted(server.drawers)

    # --- reading --------------------------------------------------------------------------------------

    def _converter(self) -> ShelfFilterConverter:
        return ShelfFilterConverter()

    def _fetch(self, ids: Sequence[str], include: Sequence[str]) -> list[StoredRecord]:
        with self._driver() as server:
            return [_record(row, include) for row in server.find(self.collection, None, ids)]

    def _count(self, query: Query) -> int:
        with self._driver() as server:
            return len(server.find(self.collection, query.pushed.query, query.ids))

    def _scan(self, query: Query, token: str | None, size: int) -> Page[StoredRecord]:
        """Read in the order of ids, so that what is there throughout comes exactly once (D7)."""
        with self._driver() as server:
            found = server.page(self.collection, query.pushed.query, query.ids, token or "")
        page = [_record(row, query.include) for row in found[:size]]
        return Page(page, page[-1].id if len(found) > size else None)

    def _search(self, query: Query) -> list[Hit]:
        """Return the nearest of what the pushed filter lets through, with raw scores (S1, S2, S4)."""
        # FULLTEXT does not come here: it is declined.
        with self._driver() as server:
            metric = Metric(server.drawer(self.collection).settings["metric"])
            rows = server.find(self.collection, query.pushed.query, query.ids)
        if not rows or query.vector is None:
            return []
        vectors = np.stack([row.vector for row in rows]).astype(np.float64)
        asked = query.vector.astype(np.float64)
        if metric is Metric.EUCLIDEAN:
            raw = ((vectors - asked) ** 2).sum(axis=1)
            order = np.lexsort((np.arange(len(rows)), raw))
        else:
            raw = vectors @ asked
            order = np.lexsort((np.arange(len(rows)), -raw))
        # Rows come by id, so equal scores stay in that order.
        best = [int(place) for place in order[: query.k]]
        return [Hit(float(raw[place]), _record(rows[place], query.include)) for place in best]

    def _details(self) -> dict[str, Any]:
        with self._driver() as server:
            return {"rows": len(server.drawer(self.collection).rows)}

    # --- writing --------------------------------------------------------------------------------------

    def _write(self, records: Sequence[Record], if_exists: IfExists) -> object:
        """Replace whole documents (D2); return what `_visible` needs to wait for them, here nothing."""
        with self._driver() as server, server.lock:
            drawer = server.drawer(self.collection)
            # Another process may have made the collection anew since these vectors were prepared.
            if self._info is not None:
                _refuse_another(self._info, _info(self.collection, drawer))
            known = [record.id for record in records if record.id in drawer.rows]
            if known and if_exists == "error":
                msg = f"{len(known)} ids exist already, the first is {known[0]!r}"
                raise DuplicateIdError(msg, ids=known, hint="nothing was written")
            for record in records:
                if if_exists == "replace" or record.id not in drawer.rows:
                    drawer.rows[record.id] = _row(record)
        return None

    def _update(self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str]) -> list[str]:
        """Change metadata of what is there (D10)."""
        with self._driver() as server, server.lock:
            rows = server.drawer(self.collection).rows
            new: dict[str, Row] = {}
            for name in ids:
                if name in rows:
                    old = rows[name]
                    metadata = changed(decode_metadata(old.metadata), changes, unset)
                    encoded = encode_metadata(metadata)
                    check_sizes(name, old.text, metadata, encoded, self.capabilities.limits)
                    new[name] = _row(Record(name, old.text, metadata, encoded, old.vector))
            rows.update(new)
            return [name for name in ids if name in new]

    def _delete(self, target: Sequence[str] | Query) -> None:
        with self._driver() as server, server.lock:
            rows = server.drawer(self.collection).rows
            if isinstance(target, Query):
                target = [row.id for row in server.find(self.collection, target.pushed.query, target.ids)]
            for name in target:
                rows.pop(name, None)

    # The next three check a view's filter and write in one step (T2); a backend that declares no atomic
    # `conditional_write` leaves them out.

    def _write_inside(self, records: Sequence[Record], if_exists: IfExists, inside: Normal) -> object:
        with self._driver() as server, server.lock:
            refuse_outside(self._fetch([record.id for record in records], ("metadata",)), inside)
            return self._write(records, if_exists)

    def _update_inside(
        self, ids: Sequence[str], changes: Mapping[str, Any], unset: Sequence[str], inside: Normal
    ) -> list[str]:
        with self._driver() as server, server.lock:
            there = changed_inside(self._fetch(ids, ("metadata",)), changes, unset, inside)
            return self._update([name for name in ids if name in there], changes, unset)

    def _delete_inside(self, ids: Sequence[str], inside: Normal) -> None:
        with self._driver() as server, server.lock:
            refuse_outside(self._fetch(ids, ("metadata",)), inside)
            self._delete(ids)


# --- encoding and decoding: pure --------------------------------------------------------------------


def _row(record: Record) -> Row:
    """Return a document as a row: whole for reading back (D4), and beside it what filters use."""
    present = frozenset(key for key, value in record.metadata.items() if value != [])
    return Row(
        record.id,
        record.text,
        record.metadata_json,
        fields_of(record.metadata),
        present,
        record.vector.copy(),
    )


def _record(row: Row, include: Sequence[str]) -> StoredRecord:
    """Return the parts of a row that are asked for."""
    return StoredRecord(
        row.id,
        row.text if "text" in include else None,
        decode_metadata(row.metadata) if "metadata" in include else None,
        row.vector.copy() if "vector" in include else None,
    )


def _info(name: str, drawer: Drawer) -> CollectionInfo:
    settings = drawer.settings
    return CollectionInfo(
        name=name,
        dimension=settings["dimension"],
        metric=Metric(settings["metric"]),
        model=settings["model"],
        layout=settings["layout"],
    )


def _refuse_another(wanted: CollectionInfo, there: CollectionInfo) -> None:
    if (wanted.dimension, wanted.metric) != (there.dimension, there.metric):
        msg = f"collection {there.name!r} has dimension {there.dimension} and metric {there.metric}"
        raise CollectionMismatchError(msg)
