"""Reading a collection from end to end, page by page (D7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from entrepot.documents import Document
    from entrepot.records import Page


class Scan:
    """An iterator of documents that can be gone on with later.

    Attributes:
        token: Where a later scan goes on: after the last whole page that was handed out, so that
            documents of a page that was left midway come again; None before the first page ends
            and after the last one. `pages` hands out whole pages.
    """

    def __init__(self, fetch: Callable[[str | None], Page[Document]], token: str | None) -> None:
        self._fetch = fetch
        self._documents = self._each()
        self.token = token

    def pages(self) -> Iterator[Page[Document]]:
        """Iterate over pages instead; each carries the token of the next one."""
        token = self.token
        while True:
            page = self._fetch(token)
            self.token = token = page.token
            if page.items:
                yield page
            if token is None:
                return

    def _each(self) -> Iterator[Document]:
        token = self.token
        while True:
            page = self._fetch(token)
            yield from page.items
            self.token = token = page.token
            if token is None:
                return

    def __iter__(self) -> Iterator[Document]:
        """Return the iterator itself."""
        return self._documents

    def __next__(self) -> Document:
        """Return the next document."""
        return next(self._documents)


class AsyncScan:
    """As `Scan`, for ``async for``."""

    def __init__(self, fetch: Callable[[str | None], Awaitable[Page[Document]]], token: str | None) -> None:
        self._fetch = fetch
        self._documents = self._each()
        self.token = token

    async def pages(self) -> AsyncIterator[Page[Document]]:
        """Iterate over pages instead; each carries the token of the next one."""
        token = self.token
        while True:
            page = await self._fetch(token)
            self.token = token = page.token
            if page.items:
                yield page
            if token is None:
                return

    async def _each(self) -> AsyncIterator[Document]:
        token = self.token
        while True:
            page = await self._fetch(token)
            for document in page.items:
                yield document
            self.token = token = page.token
            if token is None:
                return

    def __aiter__(self) -> AsyncIterator[Document]:
        """Return the iterator itself."""
        return self._documents

    async def __anext__(self) -> Document:
        """Return the next document."""
        return await anext(self._documents)
