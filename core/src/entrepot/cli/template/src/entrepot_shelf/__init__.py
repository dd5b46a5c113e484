"""Vector store of entrepot in Shelf: ``open_vector_store("shelf://host/collection")``."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from entrepot_shelf.config import ShelfConfig as ShelfConfig
    from entrepot_shelf.filters import ShelfFilterConverter as ShelfFilterConverter
    from entrepot_shelf.store import ShelfVectorStore as ShelfVectorStore

# Lazy: Python runs this file before plugin.py, which must import no driver.
_PLACES = {
    "ShelfConfig": "entrepot_shelf.config",
    "ShelfFilterConverter": "entrepot_shelf.filters",
    "ShelfVectorStore": "entrepot_shelf.store",
    # memory: begin
    "ShelfChatMemoryRepository": "entrepot_shelf.memory",
    "ShelfMemoryConfig": "entrepot_shelf.config",
    # memory: end
}

__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
