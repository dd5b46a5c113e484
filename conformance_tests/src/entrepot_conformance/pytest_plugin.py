"""The part of the suite that every pytest run of an environment loads: two options, nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--target`` and ``--erase``."""
    parser.getgroup("entrepot-conformance").addoption(
        "--target",
        action="append",
        default=[],
        dest="entrepot_targets",
        metavar="NAME",
        help="run the conformance suite on this target, a name or module:attribute; may be given several"
        " times; by default on every embedded target that installed plugins bring",
    )
    parser.getgroup("entrepot-conformance").addoption(
        "--erase",
        action="store_true",
        dest="entrepot_erase",
        help="allow a --target URL that names one fixed place; the suite erases what is there",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the suite's marker known."""
    config.addinivalue_line("markers", "slow: takes more than some seconds")
