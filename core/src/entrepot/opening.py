"""Opening stores, memories and embedding models by name (E5, api: URLs)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import msgspec

from entrepot.completion import MAX_COMPLETION_ROWS
from entrepot.errors import ConfigurationError, EntrepotError, PluginBrokenError, UnknownOptionError
from entrepot.exchange import DEFAULT_TIMEOUT
from entrepot.plugins import (
    ChatMemorySpec,
    EmbeddingModelSpec,
    VectorStoreSpec,
    load_attribute,
    plugin_manager,
)
from entrepot.steps import arun, call, run, work
from entrepot.urls import StoreURL, check_names, parse_url

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from entrepot.embedding import EmbeddingModel
    from entrepot.memory import ChatMemoryRepository
    from entrepot.steps import Steps
    from entrepot.vectorstore import VectorStore

S = TypeVar("S", VectorStoreSpec, ChatMemorySpec)


class BackendConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What every typed config of a plugin has: where it is, and what it takes beside its fields.

    The fields are the options of the backend, and the keyword arguments of the spec's factory.
    """

    scheme: ClassVar[str] = ""
    """The name of the plugin's entry point."""
    objects: ClassVar[frozenset[str]] = frozenset()
    """Which of ``client``, ``mapping`` and ``fields`` the factory takes."""
    takes_driver: ClassVar[bool] = False
    """Whether URLs may name a driver behind the scheme, as in ``sql+sqlite://``."""
    secrets: ClassVar[frozenset[str]] = frozenset({"password", "token", "api_key"})
    """Fields that no text shows; a plugin whose secrets are called otherwise names all of them."""

    timeout: float = DEFAULT_TIMEOUT

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Return the options that host, port, user and path stand for; parameters are added by the core.

        Raises:
            ConfigurationError: The URL lacks a part, or has one that means nothing here.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return the options that are set, without secrets."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._shown())})"

    __str__ = __repr__

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """Return the same for rich."""
        return list(self._shown())

    def _shown(self) -> Iterator[tuple[str, object]]:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None:
                yield name, "***" if name in self.secrets else value


class VectorStoreConfig(BackendConfig, frozen=True, kw_only=True):
    """Options that every vector store has; a plugin's config adds its own."""

    collection: str = "default"
    metric: str | None = None
    dimension: int | None = None
    create: bool = True
    allow_other_model: bool = False
    max_completion_rows: int = MAX_COMPLETION_ROWS


class ChatMemoryConfig(BackendConfig, frozen=True, kw_only=True):
    """Options that every chat memory has: seconds after which a conversation expires (M8)."""

    ttl: float | None = None


def embedding_model(model: str | EmbeddingModel, **options: Any) -> EmbeddingModel:
    """Return a model by name, such as ``"wordllama"`` or ``"openai:text-embedding-3-small"``.

    A model object is returned as it is.

    Raises:
        PluginNotFoundError: Nothing installed provides it.
        DriverNotFoundError: The plugin is there and the package it needs is not.
        EmbeddingError: The model cannot be made, or cannot tell its name.
    """
    from entrepot.embedding import foreign_errors, model_name  # noqa: PLC0415 - it imports numpy

    if not isinstance(model, str):
        if not _has(model, "name", "embed"):
            msg = f"embedding must be a name or a model, not {type(model).__name__}"
            raise ConfigurationError(msg, hint="FunctionEmbeddingModel makes a model of a function")
        model_name(model)
        return model
    name, _, rest = model.partition(":")
    spec = plugin_manager().spec(name, EmbeddingModelSpec)
    factory = load_attribute(spec.factory, f"the embedding model {name!r}")
    with foreign_errors(name):
        return cast("EmbeddingModel", factory(rest, **options) if rest else factory(**options))


def _has(thing: object, *names: str) -> bool:
    """Whether an object has attributes; one that fails when it is read is there."""
    try:
        return all(hasattr(thing, name) for name in names)
    except Exception:  # noqa: BLE001 - what it is, its reader will tell
        return True


def open_vector_store(  # noqa: PLR0913 - what a store may be given
    url: str | VectorStoreConfig,
    *,
    embedding: str | EmbeddingModel | None = None,
    client: object = None,
    create: bool | None = None,
    mapping: Mapping[str, Any] | None = None,
    fields: Collection[str] | None = None,
    **options: Any,
) -> VectorStore:
    """Open a vector store by its URL, or by a plugin's typed config.

    Args:
        url: Such as ``simple:///articles.db?metric=dot``; the scheme names the plugin.
        embedding: The model that embeds texts, by name or as an object; None if all vectors come
            from outside.
        client: A client or pool of the driver to use; it is not closed with the store (E5).
        create: Whether the first `add` makes a missing collection (D5); True unless given.
        mapping: How to read a collection that other software made, where the plugin can (D5).
        fields: Metadata keys that shall also stand in natural form for other tools, where the
            plugin can.
        options: The plugin's own options, beside or instead of the URL's parameters.

    Raises:
        PluginNotFoundError: No installed plugin has the scheme.
        UnknownOptionError: An option that the plugin does not know; names the nearest.
        UnreachableError: There is no connection.
        AuthenticationError: The login was refused.
    """
    if create is not None:
        options["create"] = create
    return run(_store(url, embedding, {"client": client, "mapping": mapping, "fields": fields}, options))


async def aopen_vector_store(  # noqa: PLR0913 - what a store may be given
    url: str | VectorStoreConfig,
    *,
    embedding: str | EmbeddingModel | None = None,
    client: object = None,
    create: bool | None = None,
    mapping: Mapping[str, Any] | None = None,
    fields: Collection[str] | None = None,
    **options: Any,
) -> VectorStore:
    """As `open_vector_store`."""
    if create is not None:
        options["create"] = create
    return await arun(
        _store(url, embedding, {"client": client, "mapping": mapping, "fields": fields}, options)
    )


def open_chat_memory(
    url: str | ChatMemoryConfig, *, client: object = None, ttl: float | None = None, **options: Any
) -> ChatMemoryRepository:
    """Open a chat memory by its URL, such as ``sql+sqlite:///chat.db``, or by a plugin's typed config.

    Args:
        url: The scheme names the plugin.
        client: A client or pool of the driver to use; it is not closed with the memory (E5).
        ttl: Seconds after the last write at which a conversation expires (M8); None keeps it.
        options: The plugin's own options.

    Raises:
        PluginNotFoundError: No installed plugin has the scheme.
        UnknownOptionError: An option that the plugin does not know; names the nearest.
    """
    if ttl is not None:
        options["ttl"] = ttl
    return run(_memory(url, {"client": client}, options))


async def aopen_chat_memory(
    url: str | ChatMemoryConfig, *, client: object = None, ttl: float | None = None, **options: Any
) -> ChatMemoryRepository:
    """As `open_chat_memory`."""
    if ttl is not None:
        options["ttl"] = ttl
    return await arun(_memory(url, {"client": client}, options))


def _store(
    url: str | VectorStoreConfig,
    embedding: str | EmbeddingModel | None,
    objects: Mapping[str, object],
    options: dict[str, Any],
) -> Steps[VectorStore]:
    batching = options.pop("batching", None)
    factory, keywords = _resolved(url, VectorStoreSpec, objects, options)
    # Loading a model and opening a file take their time, so an async caller has them done beside the loop.
    model = None if embedding is None else (yield from work(embedding_model, embedding))
    store = cast("VectorStore", (yield from work(factory, **keywords, embedding=model, batching=batching)))
    return (yield from call(store.connect, store.aconnect))


def _memory(
    url: str | ChatMemoryConfig, objects: Mapping[str, object], options: dict[str, Any]
) -> Steps[ChatMemoryRepository]:
    factory, keywords = _resolved(url, ChatMemorySpec, objects, options)
    memory = cast("ChatMemoryRepository", (yield from work(factory, **keywords)))
    return (yield from call(memory.connect, memory.aconnect))


def _resolved(
    target: str | BackendConfig, kind: type[S], objects: Mapping[str, object], options: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return the factory that a URL or config names, and its keyword arguments."""
    manager = plugin_manager()
    given = {name: value for name, value in objects.items() if value is not None}
    if isinstance(target, BackendConfig):
        spec = manager.spec(type(target).scheme, kind)
        config = msgspec.structs.replace(target, **_checked(options, type(target)))
    else:
        url = parse_url(target)
        base = url.scheme.partition("+")[0]
        spec = manager.spec(url.scheme if url.scheme in manager.names() else base, kind)
        config_type = _config_type(spec)
        if spec.name != url.scheme and not config_type.takes_driver:
            msg = f"{spec.name}:// takes no driver, and the URL says {url.scheme}://"
            raise ConfigurationError(msg, hint=f"write {spec.name}://")
        config = _configured(config_type, url, options)
    _check_numbers(config, spec.name)
    unwanted = sorted(set(given) - type(config).objects)
    if unwanted:
        msg = f"{spec.name}:// takes no {unwanted[0]}"
        raise UnknownOptionError(msg, hint=f"leave {unwanted[0]} out")
    factory = load_attribute(spec.factory, f"the plugin {spec.name!r}")
    return factory, {name: getattr(config, name) for name in config.__struct_fields__} | given


def _config_type(spec: VectorStoreSpec | ChatMemorySpec) -> type[BackendConfig]:
    config = load_attribute(spec.config, f"the plugin {spec.name!r}")
    if not (isinstance(config, type) and issubclass(config, BackendConfig)):
        msg = f"the plugin {spec.name!r} names {spec.config!r} as its config, which is no config class"
        raise PluginBrokenError(msg, hint="derive it from VectorStoreConfig or ChatMemoryConfig")
    return config


def _placed(config: type[BackendConfig], url: StoreURL) -> dict[str, Any]:
    """Return what the parts of the URL stand for; a plugin that cannot tell is broken."""
    try:
        return config.from_url(url)
    except EntrepotError:
        raise
    except (Exception, SystemExit) as error:
        missing = isinstance(error, NotImplementedError)
        fault = "is missing" if missing else f"failed: {type(error).__name__}"
        msg = f"the plugin {config.scheme!r}: {config.__name__}.from_url {fault}"
        raise PluginBrokenError(msg, hint="report this to its authors") from error


def _check_numbers(config: BackendConfig, name: str) -> None:
    """Refuse what no backend can mean, before any I/O."""
    if isinstance(config, VectorStoreConfig):
        least = {"dimension": 1, "max_completion_rows": 0}
        for field, bound in least.items():
            value = getattr(config, field)
            if value is not None and (type(value) is not int or value < bound):
                msg = f"{name}://: {field} must be an int of at least {bound}, not {value!r}"
                raise ConfigurationError(msg)


def _checked(options: Mapping[str, Any], config: type[BackendConfig]) -> Mapping[str, Any]:
    check_names(options, config.__struct_fields__, f"{config.scheme}://")
    return options


def _configured(config: type[BackendConfig], url: StoreURL, options: Mapping[str, Any]) -> BackendConfig:
    what = f"{url.scheme}://"
    placed = _placed(config, url)
    named = _grouped(url.options, config)
    twice = sorted((set(named) & set(options)) | (set(placed) & (set(options) | set(named))))
    if twice:
        msg = f"{what} is given {twice[0]!r} twice"
        raise ConfigurationError(msg, hint="name it in the URL or as an argument, not in both")
    check_names([*named, *options], config.__struct_fields__, what)
    try:
        # Texts of the URL become numbers and booleans as the field's type asks; arguments have their types.
        typed = msgspec.convert({**placed, **named}, config, strict=False)
        return msgspec.convert({**msgspec.structs.asdict(typed), **options}, config)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, EntrepotError):  # of the config's own checks
            raise error.__cause__ from None
        msg = f"{what} {error}"
        raise ConfigurationError(msg) from None


def _grouped(options: Mapping[str, str], config: type[BackendConfig]) -> dict[str, object]:
    """Put parameters such as ``field.key`` into the dict that the field takes."""
    grouped: dict[str, object] = {}
    for name, value in options.items():
        field, dot, key = name.partition(".")
        if dot and key and field in config.__struct_fields__:
            inner = grouped.setdefault(field, {})
            if not isinstance(inner, dict):
                msg = f"{config.scheme}:// is given {field!r} twice"
                raise ConfigurationError(msg, hint=f"write either {field}= or {field}.{key}=")
            inner[key] = value
        elif isinstance(grouped.get(name), dict):
            msg = f"{config.scheme}:// is given {name!r} twice"
            raise ConfigurationError(msg, hint=f"write either {name}= or {name}.KEY=")
        else:
            grouped[name] = value
    return grouped
