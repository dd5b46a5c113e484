"""Put results into the docs: `python benchmarks/plot.py RESULTS.json docs/assets/benchmarks.svg docs/benchmarks.md`.

One bar a line: how much of its goal a figure takes, so that everything left of the mark is reached.
"""

from __future__ import annotations

import json
import sys
from html import escape
from pathlib import Path
from typing import Any

WIDTH, LEFT, ROW, SCALE = 860, 430, 22, 240


def used(line: dict[str, Any]) -> float:
    """Return the share of the goal that a figure takes; below 1 the goal is reached."""
    figure = float(line["ratio"] if "ratio" in line else line["value"])
    goal = float(line["goal"])
    return goal / figure if line.get("at_least") else figure / goal


def drawn(lines: list[dict[str, Any]]) -> str:
    """Return the picture as SVG."""
    height = ROW * len(lines) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<line x1="{LEFT + SCALE}" y1="20" x2="{LEFT + SCALE}" y2="{height - 16}" stroke="#888" stroke-dasharray="3"/>',
        f'<text x="{LEFT + SCALE}" y="14" text-anchor="middle" fill="#555">goal</text>',
    ]
    for place, line in enumerate(lines):
        top = 24 + place * ROW
        share = used(line)
        figure = f"{line['ratio']} x" if "ratio" in line else f"{line['value']:,} {line.get('unit', '')}"
        colour = "#3a7d44" if line["ok"] else "#c0392b"
        length = min(share, 1.6) * SCALE
        parts.append(f'<text x="{LEFT - 8}" y="{top + 12}" text-anchor="end">{escape(line["name"])}</text>')
        parts.append(
            f'<rect x="{LEFT}" y="{top + 2}" width="{length:.1f}" height="{ROW - 8}" fill="{colour}"/>'
        )
        parts.append(f'<text x="{LEFT + length + 6:.1f}" y="{top + 12}" fill="#333">{escape(figure)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def table(lines: list[dict[str, Any]]) -> str:
    """Return the lines as a Markdown table."""
    rows = ["| what | figure | goal | reached |", "| --- | --- | --- | --- |"]
    for line in lines:
        figure = (
            f"{line['ratio']:.2f} x"
            if "ratio" in line
            else f"{line['value']:,} {line.get('unit', '')}".strip()
        )
        sign = "at least" if line.get("at_least") else "at most"
        rows.append(
            f"| {line['name']} | {figure} | {sign} {line['goal']:,} | {'yes' if line['ok'] else 'no'} |"
        )
    return "\n".join(rows)


def peer_table(peers: list[dict[str, Any]]) -> str:
    """Return the peers as a Markdown table; those that were left out are named below it."""
    measured = [peer for peer in peers if "left_out" not in peer]
    rows = ["| library | search | filter of 10 % | documents/s added |", "| --- | --- | --- | --- |"]
    rows += [
        f"| {peer['name']} | {peer['search']} x | {peer['filter of 10 %']} x | {peer['documents_per_second']:,} |"
        for peer in measured
    ]
    left_out = [peer["name"] for peer in peers if "left_out" in peer]
    if left_out:
        rows += ["", f"Left out, because it could not be run there: {', '.join(left_out)}."]
    return "\n".join(rows)


def between(page: str, mark: str, content: str) -> str:
    """Return a page with what stands between its mark and the end of that part replaced."""
    before, start, rest = page.partition(f"<!-- {mark} -->\n")
    _, end, after = rest.partition("<!-- end -->")
    return f"{before}{start}\n{content}\n\n{end}{after}"


def main() -> None:
    """Write the picture and the tables of the docs from results."""
    results, picture, page = map(Path, sys.argv[1:])
    found = json.loads(results.read_text("utf-8"))
    picture.write_text(drawn(found["lines"]), "utf-8")
    text = between(page.read_text("utf-8"), "lines", table(found["lines"]))
    page.write_text(between(text, "peers", peer_table(found["peers"])), "utf-8")


if __name__ == "__main__":
    main()
