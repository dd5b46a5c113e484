"""The typed config of the embedded store, and what its URLs mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from entrepot.errors import ConfigurationError
from entrepot.opening import VectorStoreConfig

if TYPE_CHECKING:
    from entrepot.urls import StoreURL


class SimpleConfig(VectorStoreConfig, frozen=True, kw_only=True):
    """Options of `SimpleVectorStore`.

    ``simple://`` is a database in memory of the store alone, ``simple://name`` one that stores of
    this process share, ``simple:///relative.db`` and ``simple:////absolute/path.db`` a file.
    """

    scheme: ClassVar[str] = "simple"

    path: str | None = None
    memory: str | None = None
    read_only: bool = False

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return ``path`` for a file, ``memory`` for a name, nothing for a private database."""
        if url.user is not None or url.password is not None or url.port is not None:
            msg = "simple:// has neither user nor port"
            raise ConfigurationError(msg, hint="a relative file is simple:///file.db")
        if url.host is not None and url.path:
            msg = f"simple:// has either a name or a file, not {url.host!r} and a path"
            raise ConfigurationError(msg, hint="a relative file has three slashes: simple:///folder/file.db")
        if url.host is not None:
            return {"memory": url.host}
        return {"path": url.path} if url.path else {}
