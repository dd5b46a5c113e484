"""Plugins: found by name, loaded when used, broken ones hurt nobody; opening by URL (E2, E5)."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from entrepot import (
    Document,
    FunctionEmbeddingModel,
    SimpleConfig,
    SimpleVectorStore,
    open_chat_memory,
    open_vector_store,
)
from entrepot.capabilities import Capabilities
from entrepot.errors import (
    ConfigurationError,
    DriverNotFoundError,
    PluginBrokenError,
    PluginConflictError,
    PluginNotFoundError,
    UnknownOptionError,
)
from entrepot.opening import VectorStoreConfig, aopen_vector_store, embedding_model
from entrepot.plugins import (
    EmbeddingModelSpec,
    PluginManager,
    VectorStoreSpec,
    hookimpl,
    load_attribute,
    plugin_manager,
)
from entrepot.urls import parse_url

if TYPE_CHECKING:
    from pathlib import Path

    from entrepot.urls import StoreURL


def plugin(monkeypatch: pytest.MonkeyPatch, name: str, **functions: Any) -> EntryPoint:
    """Make a module with some functions and the entry point that names it."""
    module = ModuleType(f"fake_plugin_{name}")
    for key, function in functions.items():
        setattr(module, key, function)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return EntryPoint(name, module.__name__, "entrepot")


def spec(name: str) -> EmbeddingModelSpec:
    return EmbeddingModelSpec(name=name, factory="nowhere:Nothing")


def test_a_plugin_is_loaded_by_name_on_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def hook(name: str) -> Any:
        @hookimpl
        def entrepot_embedding_models() -> list[EmbeddingModelSpec]:
            loaded.append(name)
            return [spec(name)]

        return entrepot_embedding_models

    manager = PluginManager(
        [plugin(monkeypatch, name, entrepot_embedding_models=hook(name)) for name in ("one", "two")]
    )
    assert manager.names() == ["one", "two"]
    assert loaded == []
    assert manager.spec("two", EmbeddingModelSpec).name == "two"
    assert manager.spec("two", EmbeddingModelSpec).name == "two"
    assert loaded == ["two"]


def test_a_broken_plugin_hurts_nobody_else_and_is_listed_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @hookimpl
    def entrepot_embedding_models() -> list[EmbeddingModelSpec]:
        return [spec("good")]

    good = plugin(monkeypatch, "good", entrepot_embedding_models=entrepot_embedding_models)
    broken = EntryPoint("broken", "no_such_module_anywhere", "entrepot")
    manager = PluginManager([good, broken])
    assert manager.spec("good", EmbeddingModelSpec).name == "good"
    with pytest.raises(PluginBrokenError, match="no_such_module_anywhere"):
        manager.spec("broken", EmbeddingModelSpec)
    infos = {info.name: info for info in manager.plugins()}
    assert infos["good"].error is None
    assert infos["good"].provides == ("embedding model",)
    assert "no_such_module_anywhere" in (infos["broken"].error or "")


def test_two_distributions_with_one_name_are_an_error() -> None:
    points = [EntryPoint("same", "module_a", "entrepot"), EntryPoint("same", "module_b", "entrepot")]
    with pytest.raises(PluginConflictError, match=r"module_a.*module_b"):
        PluginManager(points).spec("same", VectorStoreSpec)


def test_unknown_hooks_and_wrong_signatures_name_the_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    @hookimpl
    def entrepot_vector_store() -> list[Any]:
        return []

    @hookimpl
    def entrepot_vector_stores(unknown_argument: object) -> list[Any]:
        return [unknown_argument]

    @hookimpl
    def entrepot_embedding_models() -> Any:
        return spec("wrong")

    @hookimpl
    def entrepot_filter_converters() -> list[Any]:
        raise RuntimeError("no")

    unknown = plugin(monkeypatch, "unknown", entrepot_vector_store=entrepot_vector_store)
    signature = plugin(monkeypatch, "signature", entrepot_vector_stores=entrepot_vector_stores)
    answer = plugin(monkeypatch, "answer", entrepot_embedding_models=entrepot_embedding_models)
    failing = plugin(monkeypatch, "failing", entrepot_filter_converters=entrepot_filter_converters)
    manager = PluginManager([unknown, signature, answer, failing])
    with pytest.raises(
        PluginBrokenError, match=r"unknown hook.*fake_plugin_unknown(.|\n)*entrepot_vector_stores"
    ):
        manager.spec("unknown", VectorStoreSpec)
    with pytest.raises(PluginBrokenError, match=r"fake_plugin_signature.*signature"):
        manager.spec("signature", VectorStoreSpec)
    with pytest.raises(PluginBrokenError, match=r"fake_plugin_answer must return a list"):
        manager.spec("answer", EmbeddingModelSpec)
    with pytest.raises(PluginBrokenError, match=r"fake_plugin_failing failed: RuntimeError"):
        manager.spec("failing", VectorStoreSpec)


def test_an_unknown_name_suggests_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    # E2
    monkeypatch.setattr("entrepot.plugins.FIRST_PARTY", frozenset({"unheard-of"}))
    with pytest.raises(PluginNotFoundError, match=r"did you mean 'simple'"):
        open_vector_store("simpel://")
    with pytest.raises(PluginNotFoundError, match=r"pip install entrepot-unheard-of"):
        open_vector_store("unheard-of://host/c")
    for stranger in ("vespa", "milvis"):  # a typing error must not lead to what a stranger published
        with pytest.raises(PluginNotFoundError, match="entrepot plugins") as caught:
            open_vector_store(f"{stranger}://host/c")
        assert "pip install" not in str(caught.value)
    with pytest.raises(PluginNotFoundError, match="no chat memory"):
        open_chat_memory("wordllama://")


def test_the_environment_blocks_and_traces(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ENTREPOT_PLUGINS_BLOCK", "other, simple")
    with pytest.raises(PluginNotFoundError, match="ENTREPOT_PLUGINS_BLOCK"):
        open_vector_store("simple://")
    assert [info.blocked for info in PluginManager().plugins() if info.name == "simple"] == [True]
    monkeypatch.delenv("ENTREPOT_PLUGINS_BLOCK")
    monkeypatch.setenv("ENTREPOT_PLUGINS_TRACE", "1")
    PluginManager().spec("simple", VectorStoreSpec)
    assert "loading plugin simple from entrepot" in caplog.text


def test_what_comes_with_the_core_is_found() -> None:
    infos = {info.name: info for info in plugin_manager().plugins()}
    assert infos["simple"].provides[0] == "vector store"
    assert infos["wordllama"].provides == ("embedding model",)
    assert infos["openai"].provides == ("embedding model",)
    assert all(infos[name].error is None for name in ("simple", "wordllama", "openai", "hash"))


def test_a_missing_driver_is_told_from_a_broken_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # E2
    (tmp_path / "needs_driver.py").write_text("import a_driver_that_is_absent\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(DriverNotFoundError, match="a_driver_that_is_absent"):
        load_attribute("needs_driver:Store", "the plugin 'x'")
    for path in ("no_such_module_x:Store", "entrepot.stores.simple:NoStore"):
        with pytest.raises(PluginBrokenError):
            load_attribute(path, "the plugin 'x'")


def test_a_module_that_exits_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # E2
    (tmp_path / "exiting_plugin.py").write_text("import sys\nsys.exit(7)\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    @hookimpl
    def entrepot_embedding_models() -> list[EmbeddingModelSpec]:
        raise SystemExit(7)

    hooked = plugin(monkeypatch, "hooked", entrepot_embedding_models=entrepot_embedding_models)
    manager = PluginManager([EntryPoint("exiting", "exiting_plugin", "entrepot"), hooked])
    infos = {info.name: info for info in manager.plugins()}
    assert "SystemExit: 7" in (infos["exiting"].error or "")
    assert "SystemExit: 7" in (infos["hooked"].error or "")
    with pytest.raises(PluginBrokenError, match="SystemExit"):
        load_attribute("exiting_plugin:Store", "the plugin 'x'")


class NoStruct:
    """No config class at all."""


class WithoutUrl(VectorStoreConfig, frozen=True, kw_only=True):
    scheme: ClassVar[str] = "faulty"


class FailingUrl(VectorStoreConfig, frozen=True, kw_only=True):
    scheme: ClassVar[str] = "faulty"

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        raise KeyError(url.scheme)


class CheckedUrl(VectorStoreConfig, frozen=True, kw_only=True):
    scheme: ClassVar[str] = "faulty"

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        return {"collection": url.path}

    def __post_init__(self) -> None:
        raise ConfigurationError("the collection is not good", hint="take another")


@pytest.mark.parametrize(
    ("config", "error", "says"),
    [
        ("NoStruct", PluginBrokenError, "no config class"),
        ("faulty", PluginBrokenError, "no config class"),
        ("WithoutUrl", PluginBrokenError, r"WithoutUrl\.from_url is missing"),
        ("FailingUrl", PluginBrokenError, r"FailingUrl\.from_url failed: KeyError"),
        ("CheckedUrl", ConfigurationError, r"^the collection is not good\n  hint: take another$"),
    ],
)
def test_a_config_that_breaks_the_rules_is_named(
    monkeypatch: pytest.MonkeyPatch, config: str, error: type[Exception], says: str
) -> None:
    # E2
    @hookimpl
    def entrepot_vector_stores() -> list[VectorStoreSpec]:
        return [
            VectorStoreSpec(
                name="faulty", factory="nowhere:x", config=f"{__name__}:{config}", capabilities=Capabilities()
            )
        ]

    point = plugin(monkeypatch, "faulty", entrepot_vector_stores=entrepot_vector_stores)
    monkeypatch.setattr("entrepot.opening.plugin_manager", lambda: PluginManager([point]))
    with pytest.raises(error, match=says):
        open_vector_store("faulty://host/c")


def faulty() -> None:
    """Stand where a config class should."""


# --- opening ----------------------------------------------------------------------------------------------


def test_urls_of_the_embedded_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = FunctionEmbeddingModel(lambda texts: [[1.0, float(len(text))] for text in texts], "lengths", 2)
    with open_vector_store("simple:///relative.db?metric=dot&timeout=2.5&collection=c", dimension=2) as store:
        assert isinstance(store, SimpleVectorStore)
        assert (store.collection, store.timeout) == ("c", 2.5)
        store.create_collection()
        assert store.stats().metric == "dot"
    assert (tmp_path / "relative.db").exists()
    with open_vector_store(f"simple:///{tmp_path}/absolute%20name.db", embedding=model) as store:
        store.add([Document("a", id="1")])
        assert store.similarity_search("b")[0].id == "1"
    assert (tmp_path / "absolute name.db").exists()
    with (
        open_vector_store("simple://shared", embedding=model) as one,
        open_vector_store("simple://shared") as two,
    ):
        one.add([Document("a", id="1")])
        assert two.count() == 1
    with open_vector_store("simple://") as one, open_vector_store("simple://", dimension=1) as two:
        two.create_collection()
        assert not one.collection_exists()


def test_a_typed_config_does_as_a_url_does(tmp_path: Path) -> None:
    config = SimpleConfig(path=str(tmp_path / "s.db"), metric="euclidean", collection="c")
    with open_vector_store(config, dimension=3) as store:
        store.create_collection()
        assert (store.stats().metric, store.stats().dimension) == ("euclidean", 3)
    with pytest.raises(UnknownOptionError):
        open_vector_store(config, colour=3)


async def test_opening_has_its_twin() -> None:
    # E3
    async with await aopen_vector_store("simple://", embedding="hash") as store:
        await store.aadd([Document("a", id="1")])
        assert (await store.asimilarity_search("a"))[0].id == "1"


@pytest.mark.parametrize(
    ("url", "options", "error", "says"),
    [
        ("simple://?metrik=dot", {}, UnknownOptionError, "metric"),
        ("simple://", {"dimensions": 3}, UnknownOptionError, "dimension"),
        ("simple://?metric=manhattan", {}, ConfigurationError, "manhattan"),
        ("simple://?dimension=three", {}, ConfigurationError, "dimension"),
        ("simple://?dimension=3", {"dimension": 3}, ConfigurationError, "twice"),
        ("simple://?dimension=3&dimension=4", {}, ConfigurationError, "twice"),
        ("simple://user:secret@host", {}, ConfigurationError, "user"),
        ("simple://name/file.db", {}, ConfigurationError, "three slashes"),
        ("simple://?timeout=-1", {}, ValueError, "timeout"),
        ("file.db", {}, ConfigurationError, "URL"),
        ("simple:///a.db#x", {}, ConfigurationError, "fragment"),
        ("simple://", {"client": object()}, UnknownOptionError, "client"),
        ("simple://", {"mapping": {}}, UnknownOptionError, "mapping"),
        ("simple://", {"embedding": 5}, ConfigurationError, "int"),
        ("simple://", {"embedding": "nomodel"}, PluginNotFoundError, "nomodel"),
    ],
)
def test_what_is_wrong_is_said(url: str, options: dict[str, Any], error: type[Exception], says: str) -> None:
    # E2
    with pytest.raises(error, match=says) as caught:
        open_vector_store(url, **options)
    assert "secret" not in str(caught.value)


def test_a_password_never_shows() -> None:
    # E1
    url = parse_url("redis://user:p%40ss@Host:6379/0/articles?token=s3cret")
    assert (url.user, url.password, url.host, url.port, url.path) == (
        "user",
        "p@ss",
        "host",
        6379,
        "0/articles",
    )
    assert url.options == {"token": "s3cret"}
    for text in (repr(url), str(url), f"{url}"):
        assert text == "redis://user@host:6379/0/articles?..."
    for wrong in ("redis://user:p@ss:x@host:port/", "redis://user:secret@[::1/c"):
        with pytest.raises(ConfigurationError) as caught:
            parse_url(wrong)
        assert "secret" not in str(caught.value)
        assert "p@ss" not in str(caught.value)
    assert parse_url("neo4j+s://[2001:db8::1]/c").host == "2001:db8::1"
    assert parse_url("sql+sqlite:///chat.db").scheme == "sql+sqlite"


def test_models_by_name() -> None:
    model = embedding_model("hash:16")
    assert model.dimensions == 16
    assert embedding_model(model) is model


# --- from outside -----------------------------------------------------------------------------------------

PLUGIN = {
    "pyproject.toml": """
        [build-system]
        requires = ["hatchling"]
        build-backend = "hatchling.build"
        [project]
        name = "entrepot-outside"
        version = "3.2.1"
        [project.entry-points.entrepot]
        outside = "entrepot_outside"
        [tool.hatch.build.targets.wheel]
        packages = ["entrepot_outside"]
    """,
    "entrepot_outside/__init__.py": """
        from entrepot.capabilities import Capabilities
        from entrepot.plugins import VectorStoreSpec, hookimpl

        @hookimpl
        def entrepot_vector_stores():
            return [VectorStoreSpec(name="outside", factory="entrepot_outside.store:open",
                                    config="entrepot_outside.store:Config", capabilities=Capabilities(), summary="ours")]
    """,
    "entrepot_outside/store.py": """
        from typing import ClassVar
        from entrepot.opening import VectorStoreConfig
        from entrepot.stores.simple import SimpleVectorStore

        class Config(VectorStoreConfig, frozen=True, kw_only=True):
            scheme: ClassVar[str] = "outside"
            colour: str = "none"

            @classmethod
            def from_url(cls, url):
                return {"collection": url.path}

        def open(colour, **options):
            print("colour", colour)
            return SimpleVectorStore(**options)
    """,
}


def test_a_distribution_from_outside_is_discovered(tmp_path: Path) -> None:
    for name, text in PLUGIN.items():
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    target = tmp_path / "installed"
    wheels = tmp_path / "wheels"
    build = ["from hatchling.build import build_wheel; import sys; build_wheel(sys.argv[1])", str(wheels)]
    wheels.mkdir()
    subprocess.run([sys.executable, "-c", *build], cwd=tmp_path / "source", check=True, capture_output=True)
    (wheel,) = wheels.iterdir()
    import zipfile

    zipfile.ZipFile(wheel).extractall(target)
    code = """
        import sys
        sys.path.insert(0, sys.argv[1])
        from entrepot import Document, open_vector_store
        from entrepot.plugins import plugin_manager
        with open_vector_store("outside://host/articles?colour=red", embedding="hash") as store:
            store.add([Document("a", id="1")])
            print(store.collection, store.similarity_search("a")[0].id)
        print([info.distribution for info in plugin_manager().plugins() if info.name == "outside"])
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(target)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.stdout.splitlines() == ["colour red", "articles 1", "['entrepot-outside 3.2.1']"], (
        ended.stderr
    )


# --- classes of plugins -----------------------------------------------------------------------------------


def test_a_store_that_takes_a_private_name_of_the_core_is_refused() -> None:
    from entrepot.hooks import HOOK_NAMES

    with pytest.raises(PluginBrokenError, match=r"'_needs_help'.*core"):
        type("Clash", (SimpleVectorStore,), {"_needs_help": None})
    fine = type("Fine", (SimpleVectorStore,), {"_search": None, "_own_helper": None})
    assert issubclass(fine, SimpleVectorStore)
    assert all(hasattr(SimpleVectorStore, name) for name in HOOK_NAMES)
