"""URLs of stores and memories: ``scheme://[user[:password]@]host[:port]/[database/]collection?option=value``.

The scheme is the name of an entry point. What the parts mean is the plugin's; this module takes
them apart, undoes percent-encoding, and never shows a password.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from entrepot.errors import ConfigurationError, UnknownOptionError

if TYPE_CHECKING:
    from collections.abc import Iterable

_CONTROL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class StoreURL(msgspec.Struct, frozen=True, kw_only=True):
    """A URL, taken apart.

    Attributes:
        scheme: The entry point's name, lower-cased.
        user: The user, if one is named.
        password: The password, if one is there; never shown by repr.
        host: The host, without brackets for IPv6; lower-cased.
        port: The port, if one is named.
        path: The path without its first slash, percent-decoded: the collection, or
            ``database/collection``; for files the file's path.
        has_path: Whether a slash follows the host, even if nothing stands behind it.
        options: The parameters behind ``?``.
    """

    scheme: str
    user: str | None = None
    password: str | None = None
    host: str | None = None
    port: int | None = None
    path: str = ""
    has_path: bool = False
    options: dict[str, str] = msgspec.field(default_factory=dict[str, str])

    def __repr__(self) -> str:
        """Return the URL without its password and without its options, which may hold keys."""
        user = "" if self.user is None else f"{self.user}@"
        port = "" if self.port is None else f":{self.port}"
        options = "?..." if self.options else ""
        return f"{self.scheme}://{user}{self.host or ''}{port}/{self.path}{options}"

    __str__ = __repr__


def parse_url(text: str) -> StoreURL:
    """Take a URL apart.

    Raises:
        ConfigurationError: It is none; the message does not repeat it, as it may hold a password.
    """
    if type(text) is not str:
        msg = f"a store is named by a URL, not by {type(text).__name__}"
        raise ConfigurationError(msg)
    scheme, separator, rest = text.partition("://")
    if not separator or not scheme.replace("-", "").replace("+", "").replace(".", "").isalnum():
        msg = "a store is named by a URL such as simple:///file.db"
        raise ConfigurationError(msg, hint="`entrepot plugins` lists the schemes")
    # urlsplit would drop line ends and tabs in silence, and so make another name of what was written.
    if _CONTROL.search(rest):
        msg = f"the {scheme}:// URL holds a control character or a lone surrogate"
        raise ConfigurationError(msg, hint="take it out, or percent-encode it")
    # urlsplit knows no authority behind some schemes; the scheme is ours to read, so any will do.
    try:
        parts = urlsplit(f"entrepot://{rest}")
        port = parts.port
    except ValueError:  # its message may quote the password
        msg = f"the {scheme}:// URL has a host or port that cannot be read"
        raise ConfigurationError(msg, hint="percent-encode special characters in user and password") from None
    if parts.fragment:
        msg = f"the {scheme}:// URL has a fragment; write # as %23"
        raise ConfigurationError(msg)
    return StoreURL(
        scheme=scheme.lower(),
        user=_decoded(scheme, parts.username),
        password=_decoded(scheme, parts.password),
        host=_decoded(scheme, parts.hostname) or None,
        port=port,
        path=_decoded(scheme, parts.path[1:]) or "",
        has_path=bool(parts.path),
        options=_options(scheme, parts.query),
    )


def _decoded(scheme: str, part: str | None) -> str | None:
    if part is None:
        return None
    try:
        text = unquote(part, errors="strict")
    except UnicodeDecodeError:
        raise _not_utf8(scheme) from None
    if "\0" in text:
        msg = f"the {scheme}:// URL holds a NUL character"
        raise ConfigurationError(msg, hint="no name of a user, a file or a collection has one")
    return text


def _not_utf8(scheme: str) -> ConfigurationError:
    msg = f"the {scheme}:// URL has percent-encoded bytes that are no UTF-8"
    return ConfigurationError(msg, hint="encode the UTF-8 form, such as caf%C3%A9")


def _options(scheme: str, query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    try:
        given = parse_qsl(query, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError:
        raise _not_utf8(scheme) from None
    for name, value in given:
        if "\0" in name + value:
            msg = f"the {scheme}:// URL holds a NUL character in its parameters"
            raise ConfigurationError(msg)
        if name in options:
            msg = f"the {scheme}:// URL has the parameter {name!r} twice"
            raise ConfigurationError(msg)
        options[name] = value
    return options


def check_names(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse a name that nobody knows.

    Raises:
        UnknownOptionError: The hint names the nearest known one.
    """
    names = sorted(known)
    for name in given:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(names)}"
            msg = f"{what} has no option {name!r}"
            raise UnknownOptionError(msg, hint=hint)
