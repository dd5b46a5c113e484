"""`entrepot count`, `delete` and `stats`: what a store holds, and taking out of it."""

import sys
from typing import Annotated

import typer

from entrepot.cli.options import AsJson, FilterText, StoreUrl, opened
from entrepot.cli.output import print_json, print_line, print_table


def count(store: StoreUrl, *, filter_text: FilterText = None, as_json: AsJson = False) -> None:
    """Count documents, exactly."""
    with opened(store) as opened_store:
        number = opened_store.count(filter_text)
    if as_json:
        print_json({"count": number})
    else:
        print_line(str(number))


def delete(
    store: StoreUrl,
    *,
    ids: Annotated[
        list[str] | None,
        typer.Option("--id", metavar="ID", help="A document; may be repeated", show_default=False),
    ] = None,
    filter_text: FilterText = None,
    everything: Annotated[bool, typer.Option("--all", help="Every document of the collection")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before --filter or --all")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete documents by id, by filter, or all of them.

    With --filter or --all it tells how many documents that is and asks; where nobody can be asked, --yes is needed.
    """
    if (bool(ids), filter_text is not None, everything).count(True) != 1:
        raise typer.BadParameter("give one of --id, --filter and --all")
    with opened(store) as opened_store:
        if ids:
            number = len(opened_store.get(ids, include=()))
            opened_store.delete(ids)
        else:
            number = opened_store.count(filter_text)
            if number and not yes:
                _confirm(number)
            if filter_text is not None:
                opened_store.delete(filter=filter_text)
            else:
                opened_store.delete_all()
    if as_json:
        print_json({"deleted": number})
    else:
        print_line(f"deleted {number}")


def _confirm(number: int) -> None:
    if not sys.stdin.isatty():
        raise typer.BadParameter(f"this deletes {number} documents; add --yes to confirm")
    typer.confirm(f"Delete {number} documents?", abort=True, err=True)


def stats(store: StoreUrl, *, as_json: AsJson = False) -> None:
    """Show the size, the settings and the model of a store."""
    from msgspec.structs import asdict

    with opened(store) as opened_store:
        figures = opened_store.stats()
    facts = asdict(figures)
    if as_json:
        print_json(facts)
        return
    details: dict[str, object] = facts.pop("details")
    rows = [(name, "-" if value is None else value) for name, value in {**facts, **details}.items()]
    print_table(("fact", "value"), rows)
