"""`entrepot filter explain`: what a filter means, what it becomes, and what an engine takes of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from entrepot.cli.options import AsJson, opened
from entrepot.cli.output import print_json, print_line

if TYPE_CHECKING:
    from entrepot.filters import Expression, Normal
    from entrepot.vectorstore import Explanation

app = typer.Typer(help="Work with filters.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group() -> None:  # makes `explain` a command of a group
    """Work with filters."""


@app.command("explain")
def explain(
    text: Annotated[
        str,
        typer.Argument(
            metavar="TEXT", help='The filter, such as "year >= 2020 and draft != true"', show_default=False
        ),
    ],
    *,
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="URL", help="Show what this store pushes down", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a filter means and what an engine takes of it.

    Prints its tree, its normal form, its size against the limits, and with --store what that store pushes down.
    """
    from entrepot.filters import MAX_DEPTH, MAX_NODES, format_filter, normalise, parse_filter

    expression = parse_filter(text)
    tree, normal = _tree(expression), _normal_tree(normalise(expression))
    pushdown = None
    if store is not None:
        with opened(store) as opened_store:
            pushdown = opened_store.explain(expression)
    if as_json:
        facts: dict[str, Any] = {
            "filter": format_filter(expression),
            "depth": expression.depth,
            "max_depth": MAX_DEPTH,
            "nodes": expression.nodes,
            "max_nodes": MAX_NODES,
            "tree": tree.data(),
            "normal_form": normal.data(),
        }
        if pushdown is not None:
            facts["pushdown"] = {"exact": pushdown.exact, "pushed": list(pushdown.pushed)}
        print_json(facts)
        return
    print_line(f"filter: {format_filter(expression)}")
    print_line(f"depth: {expression.depth} of {MAX_DEPTH}, nodes: {expression.nodes} of {MAX_NODES}")
    for title, node in (("tree", tree), ("normal form", normal)):
        print_line()
        print_line(f"{title}:")
        node.print("  ")
    if pushdown is not None:
        print_line()
        _print_pushdown(pushdown)


@dataclass(frozen=True)
class _Node:
    """A branch (AND, OR, NOT) with its parts, or a comparison without."""

    label: str
    parts: tuple["_Node", ...] = ()

    def data(self) -> object:
        """Return a comparison as its text and a branch as ``{operator: parts}``."""
        return {self.label: [part.data() for part in self.parts]} if self.parts else self.label

    def print(self, indent: str) -> None:
        """Print the tree, two spaces a level."""
        print_line(indent + self.label)
        for part in self.parts:
            part.print(indent + "  ")


def _tree(expression: "Expression") -> _Node:
    from entrepot.filters import FilterOp, format_filter
    from entrepot.filters.expression import operands

    if expression.op is FilterOp.NOT:
        return _Node("NOT", (_tree(cast("Expression", expression.left)),))
    if expression.op in {FilterOp.AND, FilterOp.OR}:
        return _Node(expression.op.name, tuple(map(_tree, operands(expression))))
    return _Node(format_filter(expression))


def _normal_tree(normal: "Normal") -> _Node:
    from entrepot.filters import And, Leaf, Or, format_leaf

    if isinstance(normal, And | Or):
        return _Node("AND" if isinstance(normal, And) else "OR", tuple(map(_normal_tree, normal.parts)))
    return _Node(format_leaf(normal) if isinstance(normal, Leaf) else normal.name)


def _print_pushdown(explanation: "Explanation") -> None:
    if explanation.exact:
        print_line("pushdown: the engine takes the whole filter exactly")
    else:
        print_line(
            "pushdown: the engine takes a superset; the core evaluates the whole filter on what comes back"
        )
    for line in explanation.pushed:
        print_line(f"  {line}")
