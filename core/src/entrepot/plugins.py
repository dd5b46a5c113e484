"""Plugins: what they may provide, and how they are found.

A plugin is a distribution with an entry point of the group ``entrepot``, named as its backend. The
module it names is small, imports no driver, and implements hooks that return frozen specs; what a
spec names by ``module:attribute`` is imported when it is used. Entry points are loaded one at a
time, by name, on first use, so a broken plugin hurts nobody who does not ask for it.

Environment:
    ENTREPOT_PLUGINS_BLOCK: Names of entry points that are not used, separated by commas.
    ENTREPOT_PLUGINS_TRACE: ``1`` logs every entry point that is loaded, with its distribution.
"""

from __future__ import annotations

import difflib
import importlib
import logging
import os
import threading
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

import msgspec
import pluggy

from entrepot.capabilities import Capabilities
from entrepot.errors import (
    DriverNotFoundError,
    EntrepotError,
    PluginBrokenError,
    PluginConflictError,
    PluginNotFoundError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType

GROUP: Final = "entrepot"
"""The entry point group of plugins."""

hookspec = pluggy.HookspecMarker(GROUP)
hookimpl = pluggy.HookimplMarker(GROUP)
"""Marks the functions of a plugin's module that implement hooks."""

_log = logging.getLogger(__name__)


# --- specs ------------------------------------------------------------------------------------------------


class VectorStoreSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A vector store that a plugin provides.

    Attributes:
        name: The scheme of its URLs; an entry point must have this name.
        factory: ``module:attribute`` of the class or function that makes the store from keyword
            options.
        config: ``module:attribute`` of a msgspec Struct with a class method ``from_url(StoreURL)``
            that returns options; its fields are all options the backend takes.
        capabilities: What the store offers, so that it can be listed without a connection.
        summary: One line for `entrepot plugins`.
    """

    name: str
    factory: str
    config: str
    capabilities: Capabilities
    summary: str = ""


class ChatMemorySpec(msgspec.Struct, frozen=True, kw_only=True):
    """A chat memory repository that a plugin provides; fields as in `VectorStoreSpec`."""

    name: str
    factory: str
    config: str
    capabilities: Capabilities
    summary: str = ""


class EmbeddingModelSpec(msgspec.Struct, frozen=True, kw_only=True):
    """An embedding model that a plugin provides.

    Attributes:
        name: The name before the colon, as in ``"openai:text-embedding-3-small"``.
        factory: ``module:attribute`` of what makes the model; called with the text after the colon,
            if there is one, and keyword options.
        summary: One line for `entrepot plugins`.
    """

    name: str
    factory: str
    summary: str = ""


class FilterConverterSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A filter converter that a plugin provides, for `entrepot filter explain --dialect`.

    Attributes:
        name: The dialect.
        factory: ``module:attribute`` of an `AbstractFilterExpressionConverter` class.
        summary: One line for `entrepot plugins`.
    """

    name: str
    factory: str
    summary: str = ""


Spec: TypeAlias = VectorStoreSpec | ChatMemorySpec | EmbeddingModelSpec | FilterConverterSpec


class HookSpecs:
    """The hooks that a plugin may implement. Each returns a list of frozen specs and imports nothing."""

    @hookspec
    def entrepot_vector_stores(self) -> Sequence[VectorStoreSpec]:
        """Return the vector stores of the plugin."""
        raise NotImplementedError

    @hookspec
    def entrepot_chat_memory_repositories(self) -> Sequence[ChatMemorySpec]:
        """Return the chat memory repositories of the plugin."""
        raise NotImplementedError

    @hookspec
    def entrepot_embedding_models(self) -> Sequence[EmbeddingModelSpec]:
        """Return the embedding models of the plugin."""
        raise NotImplementedError

    @hookspec
    def entrepot_filter_converters(self) -> Sequence[FilterConverterSpec]:
        """Return the filter converters of the plugin."""
        raise NotImplementedError


HOOKS: Final[dict[str, type[Spec]]] = {
    "entrepot_vector_stores": VectorStoreSpec,
    "entrepot_chat_memory_repositories": ChatMemorySpec,
    "entrepot_embedding_models": EmbeddingModelSpec,
    "entrepot_filter_converters": FilterConverterSpec,
}
"""The hooks, and what each of them returns."""
FIRST_PARTY: Final = frozenset(
    {
        "cassandra",
        "conformance",
        "elasticsearch",
        "milvus",
        "mongodb",
        "neo4j",
        "pinecone",
        "postgres",
        "qdrant",
        "rag",
        "redis",
        "sql",
    }
)
"""Backends whose distribution, ``entrepot-<name>``, is this project's own."""
FOREIGN_HOOKS: Final = frozenset({"entrepot_conformance_targets"})
"""Hooks that others call: the conformance suite asks for the backends to run on, if it is installed."""


class PluginInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One installed plugin, as `entrepot plugins` lists it.

    Attributes:
        name: Its entry point.
        distribution: The distribution that installed it, and its version.
        provides: What it provides, such as ``vector store``.
        summary: Its own words.
        error: Why it cannot be used, or None.
        blocked: Whether ENTREPOT_PLUGINS_BLOCK names it.
    """

    name: str
    distribution: str
    provides: tuple[str, ...] = ()
    summary: str = ""
    error: str | None = None
    blocked: bool = False


_PROVIDES: Final = {
    VectorStoreSpec: "vector store",
    ChatMemorySpec: "chat memory",
    EmbeddingModelSpec: "embedding model",
    FilterConverterSpec: "filter converter",
}

S = TypeVar("S", VectorStoreSpec, ChatMemorySpec, EmbeddingModelSpec, FilterConverterSpec)


class PluginManager:
    """Finds plugins by name and loads each on first use.

    Args:
        points: The entry points to know; by default those that are installed.
    """

    def __init__(self, points: Iterable[EntryPoint] | None = None) -> None:
        self._lock = threading.RLock()
        self._given = points
        self._specs: dict[str, list[Spec]] = {}
        self._manager = pluggy.PluginManager(GROUP)
        self._manager.add_hookspecs(HookSpecs)
        self._points_by_name: dict[str, list[EntryPoint]] | None = None

    def _points(self) -> dict[str, list[EntryPoint]]:
        if self._points_by_name is None:
            found: dict[str, list[EntryPoint]] = {}
            for point in self._given if self._given is not None else entry_points(group=GROUP):
                known = found.setdefault(point.name, [])
                # The same distribution may be seen twice, installed and in the working tree.
                if all(
                    _distribution(other) != _distribution(point) or other.value != point.value
                    for other in known
                ):
                    known.append(point)
            self._points_by_name = found
        return self._points_by_name

    def names(self) -> list[str]:
        """Return the names of all installed plugins, sorted; nothing is loaded."""
        return sorted(self._points())

    def spec(self, name: str, kind: type[S]) -> S:
        """Return the spec of a name, loading its plugin if need be.

        Raises:
            PluginNotFoundError: No plugin has the name, it is blocked, or it provides something else.
            PluginConflictError: Two distributions claim the name.
            PluginBrokenError: The plugin cannot be loaded or breaks the rules for plugins.
        """
        what = _PROVIDES[kind]
        if name in _blocked():
            msg = f"the plugin {name!r} is blocked by ENTREPOT_PLUGINS_BLOCK"
            raise PluginNotFoundError(msg, hint="take its name out of that environment variable")
        points = self._points().get(name)
        if not points:
            raise self._not_found(name, what)
        for spec in self._load(name, points):
            if isinstance(spec, kind) and spec.name == name:
                return spec
        msg = f"the plugin {name!r} of {_distribution(points[0])} provides no {what} of that name"
        raise PluginNotFoundError(msg, hint="`entrepot plugins` tells what each plugin provides")

    def _not_found(self, name: str, what: str) -> PluginNotFoundError:
        near = difflib.get_close_matches(name, self.names(), n=1)
        guess = f"did you mean {near[0]!r}? " if near else ""
        # Only names of this project: a typing error must not make anybody install what a stranger put there.
        install = f"install it: pip install entrepot-{name}; " if name in FIRST_PARTY else ""
        hint = f"{guess}{install}`entrepot plugins` lists what is there"
        return PluginNotFoundError(f"no installed plugin provides the {what} {name!r}", hint=hint)

    def _load(self, name: str, points: Sequence[EntryPoint]) -> list[Spec]:
        if len(points) > 1:
            who = ", ".join(sorted(_distribution(point) for point in points))
            msg = f"the name {name!r} is claimed by several distributions: {who}"
            raise PluginConflictError(msg, hint="uninstall all but one, or block the name")
        with self._lock:
            known = self._specs.get(name)
            if known is None:
                if os.environ.get("ENTREPOT_PLUGINS_TRACE") == "1":
                    _log.warning("loading plugin %s from %s", name, _distribution(points[0]))
                known = self._specs[name] = self._register(points[0])
            return known

    def _register(self, point: EntryPoint) -> list[Spec]:
        """Import a plugin's module, check it, and return its specs."""
        who = _distribution(point)
        try:
            module = cast("ModuleType", point.load())
        except (Exception, SystemExit) as error:
            msg = f"the plugin {point.name!r} of {who} cannot be imported: {type(error).__name__}: {error}"
            raise PluginBrokenError(
                msg, hint=f"reinstall {who.split()[0]}, or report this to its authors"
            ) from error
        _check_hook_names(module, who)
        if not self._manager.is_registered(module):
            try:
                self._manager.register(module)
            except pluggy.PluginValidationError as error:
                msg = f"a hook of {who} has a wrong signature: {error}"
                raise PluginBrokenError(
                    msg, hint="hooks take no arguments and return lists of specs"
                ) from error
        specs: list[Spec] = []
        for name in HOOKS:
            for implementation in getattr(self._manager.hook, name).get_hookimpls():
                if implementation.plugin is module:
                    specs += _answers(name, implementation.function, who)
        return specs

    def plugins(self) -> list[PluginInfo]:
        """Load every plugin and describe it; a broken one is listed with its reason."""
        return [self._described(name, points) for name, points in sorted(self._points().items())]

    def _described(self, name: str, points: Sequence[EntryPoint]) -> PluginInfo:
        who = ", ".join(sorted(_distribution(point) for point in points))
        if name in _blocked():
            return PluginInfo(name=name, distribution=who, blocked=True)
        try:
            specs = [spec for spec in self._load(name, points) if spec.name == name]
        except EntrepotError as error:
            return PluginInfo(name=name, distribution=who, error=error.message)
        return PluginInfo(
            name=name,
            distribution=who,
            provides=tuple(_PROVIDES[type(spec)] for spec in specs),
            summary="; ".join(spec.summary for spec in specs if spec.summary),
        )


def _blocked() -> set[str]:
    return {name.strip() for name in os.environ.get("ENTREPOT_PLUGINS_BLOCK", "").split(",")} - {""}


def _distribution(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def _check_hook_names(module: ModuleType, who: str) -> None:
    for name in dir(module):
        if name.startswith("entrepot_") and callable(getattr(module, name)) and name not in HOOKS:
            if name in FOREIGN_HOOKS or not getattr(getattr(module, name), f"{GROUP}_impl", None):
                continue
            near = difflib.get_close_matches(name, HOOKS, n=1)
            msg = f"unknown hook {name!r} in the plugin of {who}"
            raise PluginBrokenError(
                msg, hint=f"did you mean {near[0]!r}?" if near else f"hooks are {', '.join(HOOKS)}"
            )


def _answers(hook: str, function: Callable[[], object], who: str) -> list[Spec]:
    try:
        answer = function()
    except (Exception, SystemExit) as error:
        msg = f"the hook {hook!r} of {who} failed: {type(error).__name__}: {error}"
        raise PluginBrokenError(msg, hint="report this to its authors") from error
    wanted = HOOKS[hook]
    if not isinstance(answer, list | tuple) or not all(
        type(spec) is wanted for spec in cast("list[object]", answer)
    ):
        msg = f"the hook {hook!r} of {who} must return a list of {wanted.__name__}"
        raise PluginBrokenError(msg)
    return list(cast("list[Spec]", answer))


_default: PluginManager | None = None
_default_lock = threading.Lock()


def plugin_manager() -> PluginManager:
    """Return the manager of the installed plugins, made on first use."""
    global _default  # noqa: PLW0603 - one for the process
    with _default_lock:
        if _default is None:
            _default = PluginManager()
        return _default


def load_attribute(path: str, who: str) -> Any:
    """Import what a spec names by ``module:attribute``.

    Raises:
        DriverNotFoundError: The module needs a package that is not installed.
        PluginBrokenError: There is no such module or attribute, or the module fails.
    """
    module_name, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        if error.name is not None and not module_name.startswith(error.name):
            msg = f"{who} needs the package {error.name!r}, which is not installed"
            raise DriverNotFoundError(msg, hint=f"install {who} with its driver") from error
        msg = f"{who} names {path!r}, which is not there"
        raise PluginBrokenError(msg) from error
    except AttributeError as error:
        msg = f"{who} names {path!r}, which is not there"
        raise PluginBrokenError(msg) from error
    except EntrepotError:
        raise
    except (Exception, SystemExit) as error:
        msg = f"{who}: {module_name!r} cannot be imported: {type(error).__name__}: {error}"
        raise PluginBrokenError(msg, hint="report this to its authors") from error
