"""Figures of benchmarks/results.json in docs/scaling.md, README and others."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from blocks import table, with_block, with_values
from documents import DOCS, ROOT

from rooflines.basics.text import significant
from rooflines.loading import load_config
from rooflines.run.plan import plan

SCALING = DOCS / "scaling.md"
TUTORIAL = DOCS / "tutorial.md"
KERNELS = DOCS / "kernels.md"
CONFIG = ROOT / "config" / "config.yaml"
RESULTS = ROOT / "benchmarks" / "results.json"

RIVALS = {
    "core": "`columns: core`",
    "lz4": "`compression: lz4`",
    "core-lz4": "`columns: core` and `compression: lz4`",
    "estimates": "a `calibration`",
    "numpy": "numpy and pyarrow, in blocks",
}
"""Alternatives to all columns in zstd(1): options of a config, then another program."""

ROWS, PARTS, LARGE = 10**12, 1000, 100
"""Rows and parts of the sweep that docs/scaling.md estimates, and cores of its cluster [1]."""


@cache
def results() -> dict[str, Any]:
    """The results of the benchmarks."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


@cache
def default_rows() -> int:
    """Rows of the default config, of operations and of whole models [1]."""
    return sum(part.rows for part in plan(load_config()).parts)


def about(seconds: float) -> str:
    """A time to ten seconds, from a minute on to half a minute, in words."""
    if seconds < 55:  # noqa: PLR2004, from there on it is a minute
        return f"{max(10, round(seconds, -1)):.0f} seconds"
    minutes = round(seconds / 30) / 2
    return "a minute" if minutes == 1 else f"{minutes:g} minutes"


def million(count: float) -> str:
    """A count in millions."""
    return f"{significant(count / 1e6)} million"


def with_rows(text: str) -> str:
    """A text with the current number of rows of the default config."""
    return re.sub(
        r"[\d.]+ million (?=rows, charts|rows together)", f"{million(default_rows())} ", text
    )


def with_run_time(readme: str) -> str:
    """README with the rows of the default config, the times of its runs, and of the set-up."""
    default, setup = results()["default"], results()["first steps"]["Set up"]
    whole, again = (default[name]["wall_s"] for name in ("whole", "nothing to do"))
    readme = re.sub(r"(?<=charts and a site, in about ).*", about(whole), with_rows(readme))
    readme = re.sub(r"(?<=does nothing, in )[\d.]+(?= s;)", f"{again:.1f}", readme)
    return re.sub(r"(?<=on first use: about ).*?(?= more)", about(setup), readme)


def with_calls(page: str) -> str:
    """docs/kernels.md with times of calls and of frames."""
    found = results()["kernels"]
    slowest = max(found["call_us"].values())
    rows_per_s = found["rows"] / found["frame_cpu_s"]
    values = {"call": f"{slowest:.0f}", "frame": f"{rows_per_s / 1e6:.0f}"}
    return with_values(page, values)


def with_performance(page: str) -> str:
    """docs/scaling.md with current figures of runs, rows and thresholds."""
    found = results()
    machine, by = found["machine"], found["rows"]["by"]
    values = {
        "cores": f"{machine['cores']} cores",
        "versions": ", ".join(machine["versions"]),
        "solved": million(found["thresholds"]["thresholds"]),
        "solving": f"{found['thresholds']['cpu_s']:.1f} s",
        "writing": f"{1 - by['unwritten']['rows_s'] / by['rooflines']['rows_s']:.0%}",
    }
    default, again = found["default"], found["again"]
    runs = [
        (f"the default config: {million(default_rows())} rows, charts and site", default["whole"]),
        ("the same without charts", default["without charts"]),
        ("the same, nothing to do", default["nothing to do"]),
        *(
            (f"{million(run['rows'])} rows, {run['columns']} columns, {_memory(run)}", run)
            for run in found["growth"]
        ),
        (f"an edit of one chip, of {million(again['rows'])} rows of 40 chips", again["edit"]),
    ]
    times = ((what, f"{run['wall_s']:.1f} s") for what, run in runs)
    page = with_block(page, "runs", table(("run, startup included", "time"), times))
    ours = by["rooflines"]
    rivals = (
        (
            label,
            *(f"{by[name][what] / ours[what]:.2f} ×" for what in ("rows_s", "row_bytes")),
        )
        for name, label in RIVALS.items()
    )
    head = ("against all columns, zstd(1)", "CPU time of a row", "bytes of a row")
    return with_values(with_block(page, "rivals", table(head, rivals)), values)


def _memory(run: dict[str, Any]) -> str:
    return f"{run['peak_mib']:,.0f} MiB in the largest process"


def with_estimate(page: str) -> str:
    """docs/scaling.md with the current estimate for 10^12 rows, by what is stored of each."""
    by, rows = results()["rows"]["by"], results()["rows"]["rows"]
    stored = [by[name] for name in ("rooflines", "core", "unwritten")]
    speeds = [rows / each["rows_s"] for each in stored]
    hours = [ROWS / speed / 3600 for speed in speeds]
    sizes = [f"{ROWS * each['row_bytes'] / 1e12:.1f} TB" for each in stored[:2]]
    lines = [
        ("rows per CPU second, r", *(f"{speed / 1e6:.1f} M" for speed in speeds)),
        ("core-hours, N / r / 3600", *(significant(each) for each in hours)),
        ("bytes", *sizes, "negligible"),
        ("time of a job, R / r", *(f"{ROWS / PARTS / speed:,.0f} s" for speed in speeds)),
        (f"on {LARGE} cores", *(f"{significant(each / LARGE, 2)} h" for each in hours)),
    ]
    head = ("", "all columns", "`columns: core`", "aggregated in the job")
    return with_block(page, "measured", table(head, lines))


def with_times(page: str) -> str:
    """docs/tutorial.md with the current times of its steps."""
    past, rows = 0.0, []
    for step, seconds in results()["first steps"].items():
        past += seconds
        rows.append((step, f"{seconds:.1f} s", f"{past:.1f} s"))
    return with_block(page, "times", table(("step", "time", "since the start"), rows))
