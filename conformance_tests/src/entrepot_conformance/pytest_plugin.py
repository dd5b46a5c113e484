"""The part of the suite that every pytest run of an environment loads: one option, nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--target``."""
    parser.getgroup("entrepot-conformance").addoption(
        "--target",
        action="append",
        default=[],
        dest="entrepot_targets",
        metavar="NAME",
        help="run the conformance suite on this target, a name or module:attribute; may be given several"
        " times; by default on every embedded target that installed plugins bring",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the suite's marker known."""
    config.addinivalue_line("markers", "slow: takes more than some seconds")
