"""Chat memory: conversations, and windows on them."""

from entrepot.memory.in_memory import InMemoryChatMemoryRepository
from entrepot.memory.questions import Question
from entrepot.memory.repository import ChatMemoryRepository, Entry, FoundMessage
from entrepot.memory.windows import ChatMemory, MessageWindowChatMemory, TokenWindowChatMemory

__all__ = [
    "ChatMemory",
    "ChatMemoryRepository",
    "Entry",
    "FoundMessage",
    "InMemoryChatMemoryRepository",
    "MessageWindowChatMemory",
    "Question",
    "TokenWindowChatMemory",
]
