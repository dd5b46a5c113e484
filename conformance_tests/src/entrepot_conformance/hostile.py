"""Inputs that would do harm if any dialect took them for more than data: SQL, Lua, RediSearch, Cypher, CQL, JSON and others."""

from __future__ import annotations

from itertools import product
from typing import Final

BREAKERS: Final = (
    "'", '"', "`", "\\", "''", '""', "\\'", "$$", "$1", "%s", "%(a)s", "%", "{}", "{0}", ")", "]", "}", "*/", "/*", "--",
    "\n", "\r\n", "\t", "\x1f", "\x7f", "|", "@", ":", ",", "*", "-", "~", "<", "\u2028", "\u202e", "\ufeff", "\u0301", "😀",
)  # fmt: skip
"""What ends a string, a name, a group or a comment somewhere."""
ACTS: Final = (
    "; DROP TABLE canary; --",
    " OR 1=1 --",
    ") OR (TRUE",
    "} DETACH DELETE n //",
    "}) | @t:{*",
    "*=>[KNN 10 @v $v]",
    "'] return redis.call('FLUSHALL') --",
    '"}}, {"$where": "sleep(1000)"}',
    "' ALLOW FILTERING; TRUNCATE canary; --",
    "$ne",
    "%00' UNION SELECT 1",
    "\\x27 OR \\x27\\x27=\\x27",
    "NULL",
    "../../../canary",
)
"""What would then be done."""
HOSTILE: Final = tuple(f"{breaker}{act}" for breaker, act in product(BREAKERS, ACTS))
"""All of them: more than 500."""
