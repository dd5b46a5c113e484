"""Inputs that would do something if they were taken for syntax, for a pattern or for a part of a key."""

from __future__ import annotations

import random

_PIECES = [
    ":", "::", "/", "*", "?", "[a-z]", "{x}", "}", "%", "%3A", "%x", "\\", "\n", "\r\n", "\t", " ", "'", '"', "`", "$v",
    "@t:{a}", "@f1:[-inf inf]", "|", "-", "(", ")", "=>", "=>[KNN 5 @v $v]", "]", "~", "*=>", "\r\n$3\r\nDEL\r\n",
    "*1\r\n$8\r\nFLUSHALL\r\n", "FLUSHALL", "redis.call('FLUSHALL')", "\x01", "\x7f", "é", "e\u0301", "\u2028", "😀",
    "full", "generation", "columns", "collections", "log/", "ids/", "said/1/0", "1:", "0", "-1", "nl0k", "t", "m", "v", "q",
    "inf", "nan", "null", "true", "[]", "{}", ",", ";", "--", "#", "&", "<", ">", "^", "!", "=", "+", ".", "..", "_", "й",
]  # fmt: skip


def hostile_names(count: int) -> list[str]:
    """Return different names of at most 512 characters, each piece by itself first."""
    rng = random.Random(20261130)
    names = dict.fromkeys(_PIECES)
    names.update(dict.fromkeys(["x" * 512, "😀" * 512, ":" * 512, "*" * 100, "x" * 511 + ":", " " * 512]))
    while len(names) < count:
        names["".join(rng.choice(_PIECES) for _ in range(rng.randint(2, 5)))] = None
    return list(names)[:count]
