"""The embedded default: documents in memory, searched with numpy, durable in one SQLite file."""

from entrepot.stores.simple.config import SimpleConfig
from entrepot.stores.simple.store import SimpleVectorStore

__all__ = ["SimpleConfig", "SimpleVectorStore"]
