"""What ``simple://`` means to `open_chat_memory`: conversations in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from entrepot.errors import ConfigurationError
from entrepot.memory.in_memory import InMemoryChatMemoryRepository
from entrepot.opening import ChatMemoryConfig

if TYPE_CHECKING:
    from entrepot.urls import StoreURL


class InMemoryConfig(ChatMemoryConfig, frozen=True, kw_only=True):
    """Options of `InMemoryChatMemoryRepository`; ``simple://`` takes nothing but ``ttl``."""

    scheme: ClassVar[str] = "simple"

    @classmethod
    def from_url(cls, url: StoreURL) -> dict[str, Any]:
        """Refuse everything but the bare scheme."""
        if url.host is not None or url.has_path or url.user is not None or url.port is not None:
            msg = "simple:// keeps conversations in memory and takes no host, name or path"
            raise ConfigurationError(msg, hint="sql+sqlite:///chat.db keeps them in a file")
        return {}


def open_in_memory(*, ttl: float | None, timeout: float) -> InMemoryChatMemoryRepository:
    """Make a repository."""
    return InMemoryChatMemoryRepository(ttl=ttl, timeout=timeout)
