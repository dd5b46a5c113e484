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
        if url.host is not None and url.has_path:
            msg = f"simple:// has either a name or a file, not {url.host!r} and a path"
            raise ConfigurationError(msg, hint="a relative file has three slashes: simple:///folder/file.db")
        if url.host is not None:
            _check_name(url.host)
            return {"memory": url.host}
        if not url.has_path:
            return {}
        _check_path(url.path)
        return {"path": url.path}


def _check_name(name: str) -> None:
    """Refuse a name in memory that its author may have meant as a file, which would never be written."""
    if not name.isprintable() or any(sign.isspace() or sign in "./\\" for sign in name):
        msg = f"simple://{name} would be a database in memory, and {name!r} looks like a file"
        shown = name.strip() if name.strip().isprintable() else "file.db"
        raise ConfigurationError(
            msg, hint=f"a file has three slashes: simple:///{shown or 'file.db'}; a name has no dot or space"
        )


def _check_path(path: str) -> None:
    if not path:
        msg = "simple:/// names no file; is a variable behind it empty?"
        raise ConfigurationError(msg, hint="a file is simple:///file.db; simple:// alone is in memory")
    if path.endswith("/"):
        msg = f"simple:///{path} names a folder, not a file"
        raise ConfigurationError(msg, hint="put the file's name behind it, as in simple:///folder/file.db")
