"""Filters: the tree, its text, its normal form, its meaning, and the base class of translators.

```python
from entrepot.filters import F, evaluate, format_filter, parse_filter

expression = (F.country == "BG") & (F.year >= 2020)
assert parse_filter("country == 'BG' and year >= 2020") == expression
assert format_filter(expression) == "country == 'BG' AND year >= 2020"
assert evaluate(expression, {"country": "BG", "year": [1999, 2024]})
```
"""

from entrepot.filters.builder import F, Field, FilterExpressionBuilder
from entrepot.filters.convert import (
    AbstractFilterExpressionConverter,
    Converted,
    Pushdown,
    Report,
    ReportRow,
    Translation,
    exact,
    nothing,
    superset,
)
from entrepot.filters.evaluate import elements_of, evaluate
from entrepot.filters.expression import MAX_DEPTH, MAX_NODES, Expression, FilterOp, Key, Value, check_limits
from entrepot.filters.forms import Conjunctive, Disjunctive, conjunctive, disjunctive
from entrepot.filters.normalise import (
    FALSE,
    LEAF_OPS,
    TRUE,
    And,
    Constant,
    Leaf,
    Normal,
    Or,
    all_of,
    any_of,
    normalise,
)
from entrepot.filters.printer import format_filter, format_leaf
from entrepot.filters.text import parse_filter
from entrepot.filters.values import Kind, Scalar, by_kind, kind_of

__all__ = [
    "FALSE",
    "LEAF_OPS",
    "MAX_DEPTH",
    "MAX_NODES",
    "TRUE",
    "AbstractFilterExpressionConverter",
    "And",
    "Conjunctive",
    "Constant",
    "Converted",
    "Disjunctive",
    "Expression",
    "F",
    "Field",
    "FilterExpressionBuilder",
    "FilterOp",
    "Key",
    "Kind",
    "Leaf",
    "Normal",
    "Or",
    "Pushdown",
    "Report",
    "ReportRow",
    "Scalar",
    "Translation",
    "Value",
    "all_of",
    "any_of",
    "by_kind",
    "check_limits",
    "conjunctive",
    "disjunctive",
    "elements_of",
    "evaluate",
    "exact",
    "format_filter",
    "format_leaf",
    "kind_of",
    "normalise",
    "nothing",
    "parse_filter",
    "superset",
]
