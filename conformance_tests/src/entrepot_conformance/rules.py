"""The rules of the contract by name, as data: what tests cite, mutants break and reports count."""

from __future__ import annotations

from typing import Final, NamedTuple


class Rule(NamedTuple):
    """One rule of the contract.

    Attributes:
        name: As tests cite it, such as ``F3``.
        title: What it is about, in a few words.
        capability: What a backend declares if the rule may be declined; None if it binds everyone.
    """

    name: str
    title: str
    capability: str | None = None


RULES: Final[dict[str, Rule]] = {
    rule.name: rule
    for rule in (
        Rule("D1", "id"),
        Rule("D2", "upsert"),
        Rule("D3", "metadata"),
        Rule("D4", "fidelity"),
        Rule("D5", "collections"),
        Rule("D6", "batches"),
        Rule("D7", "reading and deleting"),
        Rule("D8", "sizes"),
        Rule("D9", "vectors"),
        Rule("D10", "update"),
        Rule("F1", "absence"),
        Rule("F2", "some element"),
        Rule("F3", "exact complements"),
        Rule("F4", "types"),
        Rule("F5", "operands"),
        Rule("F6", "limits"),
        Rule("F7", "text"),
        Rule("F8", "trees and text"),
        Rule("F9", "pushdown"),
        Rule("F10", "no injection"),
        Rule("S1", "order"),
        Rule("S2", "score"),
        Rule("S3", "threshold"),
        Rule("S4", "enough"),
        Rule("S5", "bounds"),
        Rule("S6", "recall", "ann"),
        Rule("S7", "read your writes"),
        Rule("S8", "inputs"),
        Rule("S9", "modes", "fulltext"),
        Rule("M1", "order"),
        Rule("M2", "whole messages"),
        Rule("M3", "append"),
        Rule("M4", "replace"),
        Rule("M5", "delete"),
        Rule("M6", "ids"),
        Rule("M7", "tail"),
        Rule("M8", "expiry", "ttl"),
        Rule("M9", "listing"),
        Rule("M10", "questions", "memory_search"),
        Rule("W1", "computed on reading"),
        Rule("W2", "the newest system message"),
        Rule("W3", "whole turns"),
        Rule("W4", "windows of tokens"),
        Rule("T1", "reading through a view"),
        Rule("T2", "writing through a view"),
        Rule("O1", "spans and logs"),
        Rule("O2", "context"),
        Rule("E1", "one tree of errors"),
        Rule("E2", "errors say what to do"),
        Rule("E3", "async twins"),
        Rule("E4", "retries, timeouts, cancelling"),
        Rule("E5", "life cycle"),
    )
}
"""Every rule, in the contract's order."""
