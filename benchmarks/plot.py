"""Draw results as a picture for the docs: `python benchmarks/plot.py RESULTS.json PICTURE.svg`.

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


if __name__ == "__main__":
    results, picture = map(Path, sys.argv[1:])
    picture.write_text(drawn(json.loads(results.read_text("utf-8"))["lines"]), "utf-8")
