"""Words as tools are found by: without endings, and with those that mean the same in the names of interfaces."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from entrepot.stores.simple.fulltext import words_of

if TYPE_CHECKING:
    from collections.abc import Iterable

STOP: Final = frozenset(
    [
        "a",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "doing",
        "for",
        "from",
        "get",
        "give",
        "had",
        "has",
        "have",
        "her",
        "him",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "let",
        "like",
        "make",
        "me",
        "my",
        "need",
        "no",
        "not",
        "of",
        "on",
        "one",
        "or",
        "our",
        "out",
        "please",
        "should",
        "show",
        "so",
        "some",
        "tell",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "up",
        "us",
        "use",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "will",
        "with",
        "would",
        "you",
        "your",
    ]
)
"""Words that say nothing of a tool."""

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ENDINGS: Final = (
    ("ies", "y"), ("sses", "ss"), ("ations", "ate"), ("ation", "ate"), ("ings", ""), ("ing", ""), ("ers", ""),
    ("ed", ""), ("er", ""), ("es", ""), ("s", ""), ("e", ""),
)  # fmt: skip
_SHORTEST: Final = 3
_SAME: Final = (
    "create add new open register make insert",
    "update change edit modify adjust alter amend correct",
    "delete remove erase drop discard purge",
    "cancel abort withdraw revoke",
    "list all overview enumerate",
    "search find look query locate seek discover",
    "read view fetch retrieve display inspect",
    "send deliver dispatch submit",
    "post publish announce",
    "schedule book reserve plan arrange",
    "reschedule postpone move shift delay defer",
    "start launch run begin boot execute",
    "stop end halt terminate shut close pause",
    "restore recover revert rollback undo",
    "assign allocate delegate",
    "approve confirm accept authorize",
    "reject decline deny refuse",
    "copy duplicate clone",
    "convert transform turn",
    "merge join combine unite",
    "split divide cut separate",
    "calculate compute estimate",
    "notify alert warn inform alarm",
    "remind reminder",
    "track trace follow monitor watch",
    "export download",
    "import upload",
    "translate translation",
    "summarize summarise summary digest",
    "recognize recognise identify detect",
    "subscribe join enroll enrol register signup",
    "unsubscribe leave",
    "lock block disable deactivate suspend",
    "unlock unblock enable activate resume",
    "permission access right role privilege",
    "mail email letter inbox",
    "message chat note",
    "event appointment meeting",
    "task todo",
    "file document",
    "folder directory",
    "image picture photo",
    "video film movie clip",
    "audio sound recording",
    "song track music",
    "person contact people",
    "customer client buyer",
    "lead prospect",
    "employee staff worker colleague",
    "salary pay wage payroll payslip slip",
    "vacation holiday leave absence",
    "server machine vm instance host",
    "database table",
    "package parcel shipment delivery",
    "order purchase",
    "return refund",
    "ticket issue bug",
    "discount promo coupon voucher promotion",
    "invoice bill",
    "price cost fee rate",
    "stock inventory",
    "share equity",
    "currency money exchange",
    "route direction way",
    "near nearby close around",
    "city place location",
    "temperature weather forecast",
    "flight plane",
    "hotel room accommodation",
    "car vehicle",
    "light lamp",
    "heating thermostat",
    "recipe dish meal cook",
    "workout exercise training",
    "course lesson class training",
    "survey poll questionnaire",
    "sign signature",
    "password credential",
    "login signin",
    "user account",
    "backup snapshot",
    "version revision release",
    "overdue unpaid late",
    "low short scarce",
    "author writer blame",
)
"""Words that stand for one another in names and descriptions of interfaces; a line each."""


def spoken(text: str) -> str:
    """Return a name with its words apart: ``getWeather_now`` is ``get Weather now``."""
    return _CAMEL.sub(" ", text).replace("_", " ").replace("-", " ")


def stems_of(text: str) -> list[str]:
    """Return the stems of the words of a text that say something."""
    return [stem(word) for word in words_of(text) if word not in STOP]


def stem(word: str) -> str:
    """Return a word without its commonest English endings, at least three letters of it."""
    if word.endswith("ss"):
        return word
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            left = word[: -len(ending)] + instead
            return left.removesuffix("e") if len(left) > _SHORTEST else left
    return word


def _like() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _SAME:
        group = {stem(word) for word in line.split()}
        for word in group:
            found.setdefault(word, set()).update(group)
    return {word: frozenset(group) for word, group in found.items()}


_LIKE: Final = _like()


def likes_of(stems: Iterable[str]) -> list[str]:
    """Return the stems that mean about the same as some of these, without these."""
    given = list(stems)
    known = set(given)
    return sorted({other for one in given for other in _LIKE.get(one, ())} - known)
