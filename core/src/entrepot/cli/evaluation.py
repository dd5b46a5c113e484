"""How well a ranking answers a query: nDCG and recall at a cut.

Formulas with linear gain, as Järvelin and Kekäläinen define them in "Cumulated gain-based evaluation of
IR techniques", ACM Transactions on Information Systems 20(4), 2002, with the discount 1 / log2(rank + 1)
that trec_eval uses, so that rank 1 counts whole.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


def dcg(gains: Iterable[float]) -> float:
    """Return the discounted cumulated gain ``Σ gain_i / log2(i + 1)``, ranks i from 1."""
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def ndcg(ranking: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Return the nDCG of the first `k` ids of a ranking, from 0 to 1.

    Args:
        ranking: Ids, best first.
        gains: Gain of each judged document; one without judgement gains 0. The ideal ranking is made of
            all judged documents, found or not.
        k: The cut, at least 1.

    Returns:
        DCG of the ranking over DCG of the ideal one; 0 if nothing gains anything.
    """
    ideal = dcg(sorted(gains.values(), reverse=True)[:k])
    return dcg(gains.get(name, 0.0) for name in ranking[:k]) / ideal if ideal > 0 else 0.0


def recall(ranking: Sequence[str], gains: Mapping[str, float], k: int) -> float:
    """Return the share of the relevant documents (gain above 0) among the first `k` ids of a ranking.

    0 if no document is relevant.
    """
    relevant = {name for name, gain in gains.items() if gain > 0}
    return len(relevant.intersection(ranking[:k])) / len(relevant) if relevant else 0.0


def mean(values: Sequence[float]) -> float:
    """Return the arithmetic mean; 0 of nothing."""
    return math.fsum(values) / len(values) if values else 0.0
