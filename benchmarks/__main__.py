"""All measurements: `python -m benchmarks [--rows 1e7] [--only again ...]`, or `make bench`.

They are written to benchmarks/results.json, from which `python docs/build` takes the figures of
pages. Contenders take turns for several rounds, so that other load on the machine affects all of
them; the cheapest round of each counts. Rows are compared before they are timed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.first_steps import first_steps
from benchmarks.measure import CORES, ROOT, RUNTIME
from benchmarks.sections import again, answering, default_config, growth, rows_into_parquet, solving
from benchmarks.single_kernels import single_kernels

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS = ROOT / "benchmarks" / "results.json"

PACKAGES = ("polars", "snakemake", "numpy", "pyarrow")


def machine() -> dict[str, object]:
    """The machine, the versions, and the load average now [1]."""
    python = f"Python {platform.python_version()}"
    versions = [python, *(f"{name} {version(name)}" for name in PACKAGES)]
    load = round(os.getloadavg()[0], 1)
    return {"cores": CORES, "kind": platform.machine(), "versions": versions, "load": load}


def sections(rows: float, sizes: list[float]) -> dict[str, Callable[[Path], Any]]:
    """Functions that measure each section, by its name in the results.

    Args:
        rows: Rows of a sweep [1].
        sizes: Rows of the sweeps of `growth` [1].
    """
    return {
        "rows": lambda folder: rows_into_parquet(rows, folder),
        "growth": lambda folder: growth(sizes, folder / "growth"),
        "thresholds": lambda _: solving(),
        "kernels": lambda _: single_kernels(rows),
        "again": lambda folder: again(10 * rows, folder),
        "default": default_config,
        "answer": answering,
        "first steps": first_steps,
    }


def main() -> None:
    """Measure, and write the results of each section as it ends."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    rows = "rows of a sweep; again has ten times as many (1e7)"
    parser.add_argument("--rows", type=float, default=1e7, help=rows)
    sizes = "rows of the sweeps of growth (1e7 1e8 1e9)"
    parser.add_argument("--growth", type=float, nargs="+", default=[1e7, 1e8, 1e9], help=sizes)
    names = [*sections(0, [])]
    some = f"some of {', '.join(names)}"
    parser.add_argument("--only", nargs="+", choices=names, metavar="SECTION", help=some)
    given = parser.parse_args()
    if not RUNTIME.exists():
        parser.error(f"{RUNTIME} is missing: `make bench` creates it")
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    results["machine"] = machine()
    for name, measure in sections(given.rows, given.growth).items():
        if given.only and name not in given.only:
            continue
        started_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="rooflines-bench-") as folder:
            results[name] = measure(Path(folder))
        print(f"{name}, {time.monotonic() - started_s:.0f} s:", json.dumps(results[name], indent=1))
        RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
