"""A run of the suite: its targets, their servers, and its report."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from entrepot_conformance.keeper import find_server, required
from entrepot_conformance.recording import (
    Recorder,
    mark_known_failures,
    note_target,
    summary_lines,
    write_report,
)
from entrepot_conformance.servers import ServerAbsentError
from entrepot_conformance.targets import ALL, TargetError, TargetSpec, chosen_targets

if TYPE_CHECKING:
    from collections.abc import Generator

    from entrepot_conformance.keeper import SharedServer

_targets: Final = pytest.StashKey[list[TargetSpec]]()
_absent: Final = pytest.StashKey[dict[str, str]]()


def chosen(config: pytest.Config) -> list[TargetSpec]:
    """Return the targets of this run; their servers run."""
    if _targets not in config.stash:
        names: list[str] = config.getoption("entrepot_targets") or []
        try:
            found = chosen_targets(names, erase=bool(config.getoption("entrepot_erase")))
        except TargetError as error:
            raise pytest.UsageError(str(error)) from None
        absent = _without_server(config, found)
        # With "all", a server that is not here is told and left out, unless it is required.
        if faults := [
            f"{name} is required: {reason}" if name in required(config) else reason
            for name, reason in absent.items()
            if ALL not in names or name in required(config)
        ]:
            raise pytest.UsageError("\n".join(faults))
        config.stash[_absent] = absent
        config.stash[_targets] = [
            spec for spec in found if spec.server is None or spec.server.name not in absent
        ]
    return config.stash[_targets]


def _without_server(config: pytest.Config, specs: list[TargetSpec]) -> dict[str, str]:
    """Have the servers of these targets, and return the names of those that cannot be had, with the reason."""
    absent: dict[str, str] = {}
    for server in dict.fromkeys(spec.server for spec in specs if spec.server is not None):
        try:
            find_server(config, server)
        except ServerAbsentError as error:
            absent[server.name] = str(error)
    return absent


def _server(config: pytest.Config, spec: TargetSpec) -> SharedServer | None:
    return None if spec.server is None else find_server(config, spec.server)


def address(config: pytest.Config, spec: TargetSpec) -> str:
    """Return the URL of a target's server; empty without one."""
    server = _server(config, spec)
    return "" if server is None else server.url


class Session:
    """The hooks of a run: what the suite's conftest cannot hold, since a run's first process may not load it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._recorder: Recorder | None = None
        if not hasattr(config, "workerinput"):
            self._recorder = Recorder(
                lambda: (chosen(config), config.stash.get(_absent, dict[str, str]())),
                lambda spec: _server(config, spec),
            )
            config.pluginmanager.register(self._recorder)

    def pytest_sessionstart(self) -> None:
        """Have the servers, so that a run without one ends before it has begun."""
        chosen(self._config)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Expect the failures that targets have registered."""
        mark_known_failures(items)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write into each report which target it is of."""
        report = yield
        note_target(item, report)
        return report

    def pytest_sessionfinish(self) -> None:
        """Make the report while servers still run, and write it where it is wanted."""
        if self._recorder is None or not self._recorder.has_outcomes:
            return
        with tempfile.TemporaryDirectory(prefix="entrepot-report-", ignore_cleanup_errors=True) as folder:
            report = self._recorder.finish(Path(folder))
        paths: list[str] = self._config.getoption("entrepot_report") or []
        for path in paths:
            write_report(report, Path(path))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what holds, by backend and rule."""
        if self._recorder is None or self._recorder.report is None:
            return
        terminalreporter.section("conformance")
        for line in summary_lines(self._recorder.report):
            terminalreporter.write_line(line)
