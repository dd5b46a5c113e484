"""Targets: the backends that the suite can run on, and how each is reached.

The suite brings those of the core itself. A plugin names its own by the hook
``entrepot_conformance_targets``, in the module of its entry point of the group ``entrepot``:

```
@hookimpl
def entrepot_conformance_targets():
    from entrepot_conformance.targets import TargetSpec

    return [
        TargetSpec(name="shelf", kind="memory", opens="{url}/{name}", witness="real server", server=SHELF)
    ]
```

where ``SHELF`` is a `entrepot_conformance.servers.ServerSpec`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from entrepot_conformance.servers import ServerSpec

HOOK: Final = "entrepot_conformance_targets"

ALL: Final = "all"
"""The name that stands for every target."""

Kind: TypeAlias = Literal["memory", "store"]
"""What a target is: a chat memory or a vector store."""
Witness: TypeAlias = Literal["embedded", "real server", "emulator"]
"""What answers: the engine within the process, a server, or something that stands in for one."""


@dataclass(frozen=True, kw_only=True)
class KnownFailure:
    """Tests that fail on a backend, which its authors know.

    A run that meets the failure holds, and its report shows it; a test that passes against
    expectation fails the run, so that the entry goes when its reason does.

    Attributes:
        test: The test below the suite's folder, such as ``store/test_views.py::test_stamps``, without
            parameters; ``*`` stands for any characters.
        reason: Why it fails; the report shows it.
    """

    test: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class TargetSpec:
    """A backend to test.

    Attributes:
        name: Its name, as in ``--target NAME``; unique among those of its kind.
        kind: What it is.
        opens: A URL in which ``{folder}`` stands for an empty folder and ``{name}`` for a name that was
            never used, both new for each test, and ``{url}`` for the server's URL; or
            ``module:function``, called with the folder, the name and keyword options, which returns an
            open repository or store.
        witness: What answers.
        server: The server that ``{url}`` in `opens` means, which the suite starts.
        resets: ``module:function`` that empties the endpoint, called before each test with what `opens`
            came out as; None where ``{folder}`` or ``{name}`` make it new anyway.
        shared: Whether several objects opened on one endpoint see the same data.
        durable: Whether the data outlives the objects that wrote it.
        slow: Whether the engine is so slow that a run asks it 2,000 random filters instead of 10,000, unless
            ENTREPOT_FUZZ_COUNT says how many, and that ``--fast`` leaves out tests with the marker `large`.
        versions: ``module:function``, called with the server's URL (empty without one), that returns the
            versions of driver and engine by name, such as ``{"Redis": "8.2.3", "redis-py": "8.1.0"}``.
        known_failures: Failures that the backend's authors know.
        distribution: The distribution that brings the target, and its version; filled in for those that
            come by the hook.
        summary: One line for lists.
    """

    name: str
    kind: Kind
    opens: str
    witness: Witness
    server: ServerSpec | None = None
    resets: str | None = None
    shared: bool = True
    durable: bool = True
    slow: bool = False
    versions: str | None = None
    known_failures: tuple[KnownFailure, ...] = ()
    distribution: str = ""
    summary: str = ""


_EMBEDDED: Final = "entrepot_conformance.targets:embedded_versions"

BUILT_IN: Final = (
    TargetSpec(
        name="simple",
        kind="memory",
        opens="simple://",
        witness="embedded",
        shared=False,
        durable=False,
        summary="the core's memory in the process",
    ),
    TargetSpec(
        name="simple",
        kind="store",
        opens="simple://suite?collection={name}",
        witness="embedded",
        durable=False,
        versions=_EMBEDDED,
        summary="the embedded store in memory",
    ),
    TargetSpec(
        name="simple-durable",
        kind="store",
        opens="simple:///{folder}/store.db?collection={name}",
        witness="embedded",
        versions=_EMBEDDED,
        summary="the embedded store in a file",
    ),
)
"""The targets of the core."""


def embedded_versions(_url: str) -> dict[str, str]:
    """Return the versions of what the embedded store works with."""
    import sqlite3  # noqa: PLC0415 - only where a report is made
    from importlib.metadata import version  # noqa: PLC0415

    return {"numpy": version("numpy"), "SQLite": sqlite3.sqlite_version}


class TargetError(Exception):
    """A target cannot be found, or a plugin describes its targets wrongly."""


def known_targets() -> tuple[list[TargetSpec], list[str]]:
    """Return all targets that installed plugins bring, and what is wrong with the plugins that failed."""
    from importlib.metadata import entry_points, version  # noqa: PLC0415 - pytest starts without what follows

    import pluggy  # noqa: PLC0415

    from entrepot.plugins import GROUP, hookspec  # noqa: PLC0415

    class Specs:
        @hookspec
        def entrepot_conformance_targets(self) -> Sequence[TargetSpec]:
            raise NotImplementedError

    manager = pluggy.PluginManager(GROUP)
    manager.add_hookspecs(Specs)
    found, faults = (
        [replace(spec, distribution=f"entrepot {version('entrepot')}") for spec in BUILT_IN],
        list[str](),
    )
    brought: dict[str, str] = {}
    for value in sorted({point.value for point in entry_points(group=GROUP)}):
        point = next(point for point in entry_points(group=GROUP) if point.value == value)
        try:
            module = point.load()
            if not manager.is_registered(module):
                manager.register(module)
                brought[module.__name__] = (
                    "" if point.dist is None else f"{point.dist.name} {point.dist.version}"
                )
        except Exception as error:  # noqa: BLE001 - another plugin's fault shall not stop this one's tests
            faults.append(f"{value}: {type(error).__name__}: {error}")
    for implementation in getattr(manager.hook, HOOK).get_hookimpls():
        try:
            specs = implementation.function()
            if not all(isinstance(spec, TargetSpec) for spec in specs):
                faults.append(f"{implementation.plugin_name}: {HOOK} must return a list of TargetSpec")
                continue
            distribution = brought.get(getattr(implementation.plugin, "__name__", ""), "")
            found += [replace(spec, distribution=spec.distribution or distribution) for spec in specs]
        except Exception as error:  # noqa: BLE001 - as above
            faults.append(f"{implementation.plugin_name}: {type(error).__name__}: {error}")
    return found, faults


def chosen_targets(names: Sequence[str], *, erase: bool = False) -> list[TargetSpec]:
    """Return the targets of these names, or every embedded one if there are none.

    A name is a target's, ``module:attribute`` of a `TargetSpec` that no plugin brings yet, or a URL, in
    which ``{name}`` and ``{folder}`` mean what they do in `TargetSpec.opens`. `ALL` stands for all targets
    that plugins bring.

    Raises:
        TargetError: A name is unknown or stands for several; or a URL names one fixed place, and
            `erase` does not allow to erase it.
    """
    known, faults = known_targets()
    _refuse_twice(known)
    if not names:
        return [spec for spec in known if spec.witness == "embedded"]
    chosen: list[TargetSpec] = []
    for name in names:
        if name == ALL:
            specs = known
        elif "://" in name:
            specs = _of_url(name, erase=erase)
        elif ":" in name:
            specs = [_imported(name)]
        else:
            specs = [spec for spec in known if spec.name == name]
        if not specs:
            lines = [f"no target is called {name!r}; known are {', '.join(spec.name for spec in known)}"]
            raise TargetError("\n".join(lines + [f"cannot be used: {fault}" for fault in faults]))
        chosen += [spec for spec in specs if spec not in chosen]
    _refuse_twice(chosen)
    return chosen


def _refuse_twice(specs: Sequence[TargetSpec]) -> None:
    names = [(spec.kind, spec.name) for spec in specs]
    for kind, name in names:
        if names.count((kind, name)) > 1:
            msg = f"the name {name!r} is claimed by several targets of kind {kind!r}"
            raise TargetError(msg)


def _of_url(url: str, *, erase: bool) -> list[TargetSpec]:
    """Return the targets that a URL stands for: a store, a memory, or both, as its plugin provides."""
    from entrepot.errors import PluginNotFoundError  # noqa: PLC0415 - as above
    from entrepot.plugins import ChatMemorySpec, VectorStoreSpec, plugin_manager  # noqa: PLC0415

    scheme = url.partition("://")[0].lower()
    if not erase and "{name}" not in url and "{folder}" not in url:
        msg = f"the suite erases what the {scheme}:// URL names; say --erase, or write {{name}} for the collection"
        raise TargetError(msg)
    manager = plugin_manager()
    name = scheme if scheme in manager.names() else scheme.partition("+")[0]
    kinds: list[Kind] = []
    with suppress(PluginNotFoundError):
        manager.spec(name, VectorStoreSpec)
        kinds.append("store")
    with suppress(PluginNotFoundError):
        manager.spec(name, ChatMemorySpec)
        kinds.append("memory")
    return [TargetSpec(name=scheme, kind=kind, opens=url, witness="real server") for kind in kinds]


def _imported(path: str) -> TargetSpec:
    import importlib  # noqa: PLC0415 - as above

    module, _, attribute = path.partition(":")
    spec = getattr(importlib.import_module(module), attribute, None)
    if not isinstance(spec, TargetSpec):
        msg = f"{path} is no TargetSpec"
        raise TargetError(msg)
    return spec
