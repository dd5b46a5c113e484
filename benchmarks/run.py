"""Measurements of entrepot: `uv run nox -s bench`, `uv run nox -s bench -- --json FILE`.

Most figures are ratios to a plain piece of numpy or Python that does the same work on the same
machine in the same run, so that figures of different machines compare: 1.5 means half as long
again. BLAS runs on one thread. Both sides are called in turns, and medians are compared.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

GROUPS = ("filters", "overhead", "memory", "stores", "chat", "servers")
ONE_THREAD = dict.fromkeys(
    ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Run the groups that were asked for, all by default; print each line, and write them as JSON."""
    parser = argparse.ArgumentParser(description="Measure entrepot against plain numpy and Python.")
    parser.add_argument("groups", nargs="*", help=f"what to run, all by default: {', '.join(GROUPS)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the lines to FILE")
    arguments = parser.parse_args()
    unknown = set(arguments.groups) - set(GROUPS)
    if unknown:
        parser.error(f"there is no group {', '.join(sorted(unknown))}")
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        # BLAS reads these when numpy is imported.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ONE_THREAD})
    sys.path.insert(0, str(ROOT))
    # The suite, which starts servers, brings OpenTelemetry; what is measured is the library without it.
    sys.modules["opentelemetry"] = cast("Any", None)
    records: list[dict[str, Any]] = []
    for group in arguments.groups or GROUPS:
        print(f"# {group}", flush=True)
        for line in importlib.import_module(f"benchmarks.{group}").lines():
            records.append(line.record())
            figure = line.value if line.ratio is None else line.ratio
            sign = ">=" if line.more else "<="
            beside = f"   plain {line.plain}" if line.plain else ""
            mark = "ok" if line.ok else "SHORT"
            shown = f"{figure:>10,.2f} {line.unit or 'x':<12} {sign} {line.goal:<8,g} {mark:<6}"
            print(f"{line.name:<60} {shown}{beside}", flush=True)
    peers = [] if arguments.groups else peers_beside()
    if arguments.json:
        machine = {
            "python": platform.python_version(),
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
        }
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(
            json.dumps({"machine": machine, "lines": records, "peers": peers}, indent=2) + "\n", "utf-8"
        )
    return 0


def peers_beside() -> list[dict[str, Any]]:
    """Measure what people use today, with the Python that ENTREPOT_PEERS_PYTHON names; none without it."""
    python = os.environ.get("ENTREPOT_PEERS_PYTHON")
    print("# peers, against numpy" if python else "# peers are left out: ENTREPOT_PEERS_PYTHON is not set")
    if not python:
        return []
    ended = subprocess.run(
        [python, str(ROOT / "benchmarks" / "peers.py")], capture_output=True, text=True, check=True
    )
    records: list[dict[str, Any]] = [json.loads(line) for line in ended.stdout.splitlines()]
    for record in records:
        facts = ", ".join(f"{name} {value}" for name, value in record.items() if name != "name")
        print(f"{record['name']:<60} {facts}", flush=True)
    return records


if __name__ == "__main__":
    sys.exit(main())
