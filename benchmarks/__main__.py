"""All measurements, one table each: `python -m benchmarks [--rows 1e7] [--only again ...]`.

Contenders take turns for several rounds, so that other load on the machine affects all of them. The
cheapest round of each counts. Rows are compared before the timing; a difference ends the run.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import RUNTIME
from benchmarks.report import Goal, Lines, Section, goals
from benchmarks.sections.large import again, growth, share
from benchmarks.sections.solving import thresholds, whole_models
from benchmarks.sections.tools import costs, files, formulas
from benchmarks.sections.whole_runs import default_config, small_config

if TYPE_CHECKING:
    from collections.abc import Callable

RESULTS = Path(__file__).parent / "RESULTS.md"


def machine(load: float) -> Lines:
    """The machine and the versions.

    Args:
        load: The load average when the run began [1].

    Raises:
        SystemExit: `RUNTIME` is missing.
    """
    if not RUNTIME.exists():
        raise SystemExit(f"{RUNTIME} is missing: `make bench` creates it")
    packages = ("polars", "snakemake", "duckdb", "pandas", "numpy", "pyarrow")
    on = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
    on += ", ".join(f"{name} {version(name)}" for name in packages)
    shared = (
        " Others worked on the machine: read ratios of CPU time, not seconds." if load > 1 else ""
    )
    return [
        "# Measured speed",
        "",
        f"Written by `make bench`. {on}. Load when it began: {load:.1f}.{shared}",
        "The sweep: B x 4 dtypes x 2 shardings x 4 numbers of chips x 24 D x 24 F.",
        "Snakemake runs in an environment without numpy and pandas.",
        "",
    ]


def sections(rows: float, sizes: list[float]) -> dict[str, Callable[[Path], Section]]:
    """The sections in the order of the report, by the names that `--only` takes.

    Args:
        rows: Rows of a sweep [1].
        sizes: Rows of the sweeps of `growth` [1].
    """
    return {
        "formulas": lambda folder: formulas(3 * rows, folder),
        "files": lambda folder: files(rows, folder),
        "costs": lambda folder: costs(rows, folder),
        "share": lambda folder: share(rows, folder),
        "growth": lambda folder: growth(sizes, folder),
        "thresholds": thresholds,
        "again": lambda folder: again(10 * rows, folder),
        "default": default_config,
        "models": lambda folder: whole_models(rows, folder),
        "small": small_config,
    }


def main() -> None:
    """Measure, print, and write RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument(
        "--rows",
        type=float,
        default=1e7,
        help="rows of a sweep; formulas has three times as many, again ten times (1e7)",
    )
    parser.add_argument(
        "--growth",
        type=float,
        nargs="+",
        default=[1e6, 1e7, 1e8],
        help="rows of the sweeps of growth (1e6 1e7 1e8)",
    )
    names = list(sections(0, []))
    parser.add_argument(
        "--only", nargs="+", choices=names, metavar="SECTION", help=f"some of {', '.join(names)}"
    )
    given = parser.parse_args()
    measured = sections(given.rows, given.growth)
    head, lines, found = machine(os.getloadavg()[0]), Lines(), list[Goal]()
    for name in given.only or names:
        started_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="rooflines-bench-") as folder:
            section = measured[name](Path(folder))
        lines += section.lines
        found += section.goals
        print(f"{name}: {time.monotonic() - started_s:.0f} s\n", flush=True)
    lines = [*head, *goals(found), *lines]
    if not given.only:
        RESULTS.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
