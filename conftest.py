"""For all tests: hypothesis without a deadline, as a loaded machine would miss it; ``--without-servers``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import settings

if TYPE_CHECKING:
    import pytest

settings.register_profile("entrepot", deadline=None, max_examples=50)
settings.load_profile("entrepot")

PLUGINS = Path(__file__).parent / "plugins"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--without-servers``."""
    parser.addoption(
        "--without-servers",
        action="store_true",
        help="Leave out those tests of plugins that need their server",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs the fixture `server` of a plugin."""
    if not config.getoption("without_servers", default=False):
        return
    left_out = [
        item
        for item in items
        if PLUGINS in item.path.parents and "server" in getattr(item, "fixturenames", ())
    ]
    ids = set(map(id, left_out))
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if id(item) not in ids]
