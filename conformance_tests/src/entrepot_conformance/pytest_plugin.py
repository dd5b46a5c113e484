"""The part of the suite that every pytest run of an environment loads: options, nothing heavy."""

from __future__ import annotations

from typing import Any

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--target``, ``--via``, ``--require``, ``--fast`` and ``--erase``."""
    group = parser.getgroup("entrepot-conformance")
    group.addoption(
        "--target",
        action="append",
        default=[],
        dest="entrepot_targets",
        metavar="NAME",
        help="run the conformance suite on this target: a name, module:attribute, a URL, or 'all'; may be given"
        " several times; by default on every embedded target that installed plugins bring",
    )
    group.addoption(
        "--via",
        default="",
        dest="entrepot_via",
        metavar="WAY,...",
        help="how servers are had: url (of ENTREPOT_<NAME>_URL), container, process; all, in this order, if not"
        " given; also ENTREPOT_VIA",
    )
    group.addoption(
        "--require",
        default="",
        dest="entrepot_require",
        metavar="NAME,...",
        help="fail if one of these servers cannot be had; also ENTREPOT_REQUIRE",
    )
    group.addoption(
        "--conformance-report",
        action="append",
        default=[],
        dest="entrepot_report",
        metavar="FILE",
        help="write what the suite found: as a page if the file is called .html, else as JSON; may be given"
        " several times",
    )
    group.addoption(
        "--fast",
        action="store_true",
        dest="entrepot_fast",
        help="leave out, on targets that call themselves slow, tests that write thousands of documents or start"
        " many processes",
    )
    group.addoption(
        "--erase",
        action="store_true",
        dest="entrepot_erase",
        help="allow a --target URL that names one fixed place; the suite erases what is there",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the suite's markers known; take part in a run of the suite."""
    config.addinivalue_line("markers", "slow: takes more than some seconds")
    config.addinivalue_line("markers", "large: takes slow engines minutes, so --fast leaves it out on them")
    config.addinivalue_line("markers", "alone: measures time, so no other test of the suite runs beside it")
    if any("entrepot_conformance" in argument for argument in config.args):
        from entrepot_conformance.session import Session  # noqa: PLC0415 - only where the suite runs

        config.pluginmanager.register(Session(config))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where the run keeps its servers."""
    from entrepot_conformance.keeper import run_of  # noqa: PLC0415 - only where there are workers

    node.workerinput["entrepot_servers"] = str(run_of(node.config).folder)
