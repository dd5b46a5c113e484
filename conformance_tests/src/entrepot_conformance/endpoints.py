"""Where a test of the suite works: an endpoint of its own, empty at the start."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

from entrepot import aopen_chat_memory, open_chat_memory, open_vector_store
from entrepot_conformance.servers import imported

if TYPE_CHECKING:
    from pathlib import Path

    from entrepot import ChatMemoryRepository, VectorStore
    from entrepot_conformance.targets import TargetSpec


class Stores:
    """Opens vector stores on one endpoint, and closes them when the test is over.

    Args:
        spec: The target.
        folder: An empty folder.
        name: A name that was never used on the target; letters, digits and hyphens.
        address: The URL of the target's server, if it has one; what is opened after a change goes elsewhere.
    """

    def __init__(self, spec: TargetSpec, folder: Path, name: str, address: str = "") -> None:
        self.spec = spec
        self._folder = folder
        self._name = name
        self._opened: list[VectorStore] = []
        self.address = address
        self._function = _function(spec)
        if spec.resets is not None:
            imported(spec.resets)(self.url(name))
        elif "{name}" not in spec.opens and self._function is None:
            # A URL as it stands: whatever the collection holds goes before each test.
            with open_vector_store(self.url(name)) as store:
                store.drop_collection()

    def url(self, name: str = "") -> str:
        """Return the URL of the endpoint."""
        return url_of(self.spec, self._folder, name or self._name, self.address)

    def __call__(self, *, beside: str = "", **options: Any) -> VectorStore:
        """Open a store; `options` are those of `open_vector_store`, such as ``embedding``.

        With `beside`, it is another collection on the same endpoint; the same word names the same one.
        """
        name = f"{self._name}-{beside}" if beside else self._name
        if self._function is None:
            store = open_vector_store(self.url(name), **patient(self.spec, options))
        else:
            store = cast("VectorStore", self._function(folder=self._folder, name=name, **options))
        self._opened.append(store)
        return store

    def close(self) -> None:
        """Remove what was made, where it would stay, and close what was opened."""
        for name in dict.fromkeys(store.collection for store in self._opened):
            store = next(store for store in self._opened if store.collection == name)
            if self.spec.witness != "embedded" and not store.is_closed:
                store.drop_collection()
        for store in self._opened:
            store.close()


class Memories:
    """Opens chat memory repositories on one endpoint, and closes them when the test is over.

    Args:
        spec: The target.
        folder: An empty folder.
        name: A name that was never used on the target.
        address: The URL of the target's server, if it has one; what is opened after a change goes elsewhere.
    """

    def __init__(self, spec: TargetSpec, folder: Path, name: str, address: str = "") -> None:
        self.spec = spec
        self._folder = folder
        self._name = name
        self._opened: list[ChatMemoryRepository] = []
        self._function = _function(spec)
        self.address = address
        if spec.resets is not None:
            imported(spec.resets)(self.url())
        elif self._function is None and "{name}" not in spec.opens and "{folder}" not in spec.opens:
            _forget_all(self.url())

    def url(self) -> str:
        """Return the URL of the endpoint."""
        return url_of(self.spec, self._folder, self._name, self.address)

    def __call__(self, **options: Any) -> ChatMemoryRepository:
        """Open a repository; `options` are those of `open_chat_memory`, such as ``ttl``."""
        if self._function is None:
            memory = open_chat_memory(self.url(), **patient(self.spec, options))
        else:
            memory = cast(
                "ChatMemoryRepository", self._function(folder=self._folder, name=self._name, **options)
            )
        self._opened.append(memory)
        return memory

    async def aopen(self, **options: Any) -> ChatMemoryRepository:
        """As calling it, from within an event loop."""
        if self._function is not None:
            return await asyncio.to_thread(self, **options)
        memory = await aopen_chat_memory(self.url(), **patient(self.spec, options))
        self._opened.append(memory)
        return memory

    def close(self) -> None:
        """Close what was opened."""
        for memory in self._opened:
            memory.close()


PATIENCE: Final = 30.0
"""Seconds for an exchange with an engine that calls itself slow: making a collection on a busy machine can take ten."""


def patient(spec: TargetSpec, options: dict[str, Any]) -> dict[str, Any]:
    """Return options with a longer timeout for a slow engine, where a test gives none."""
    return {"timeout": PATIENCE, **options} if spec.slow else options


def url_of(spec: TargetSpec, folder: Path, name: str, address: str) -> str:
    """Return the URL of a test's endpoint: that of the target, its places filled."""
    filled = spec.opens.replace("{url}", address).replace("{folder}", quote(str(folder)))
    return filled.replace("{name}", quote(name, safe=""))


def _function(spec: TargetSpec) -> Any:
    """Return the function that opens the target, if it is not a URL."""
    return None if "://" in spec.opens or "{url}" in spec.opens else imported(spec.opens)


def _forget_all(url: str) -> None:
    """Delete every conversation that a URL's memory holds."""
    with open_chat_memory(url) as memory:
        while names := memory.conversation_ids().items:
            for name in names:
                memory.delete(name)
