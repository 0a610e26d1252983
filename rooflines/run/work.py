"""The work of a run: about how long each of its jobs takes on one core.

The constants were measured on two cores of a shared machine. A progress display needs their ratios
only: it scales them by the jobs that are finished.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooflines.run.plan import Plan

__all__ = ["BYTES_PER_ROW", "job_work", "part_work", "work_of"]

START_S = 1.2
"""Start of a job: Python, Snakemake and polars [s]."""

ROWS_PER_S = 1.3e6
"""Rows of a table [1/s]."""

THRESHOLD_ROWS_PER_S = 6.5e5
"""Rows of tables whose thresholds are solved for and written as CSV [1/s]."""

SUMMARY_ROWS_PER_S = 1e7
"""Rows of tables that are counted [1/s]."""

CHART_S, CHART_IN_SITE_S = 2.0, 0.25
"""One chart in all its formats; one chart of the site [s]."""

BYTES_PER_ROW = 18
"""Bytes of a row of a large table, with all columns [byte]."""


def part_work(rows: int) -> float:
    """Time of a job that makes a part [s].

    Args:
        rows: The rows of the part [1].
    """
    return START_S + rows / ROWS_PER_S


def job_work(output: str, rows: int, charts: int) -> float:
    """Time of a job that makes no part [s].

    Args:
        output: What it makes, by its path below the results.
        rows: The rows of all tables [1].
        charts: The charts that it draws or packs [1].
    """
    if output == "thresholds.parquet":
        return START_S + rows / THRESHOLD_ROWS_PER_S
    if output == "summary.csv":
        return START_S + rows / SUMMARY_ROWS_PER_S
    if output == "bundle":
        return START_S + charts * CHART_IN_SITE_S
    return START_S + charts * CHART_S


def work_of(plan: Plan) -> dict[str, float]:
    """Time of each job of a run on one core, by its first output below the results [s].

    Args:
        plan: The plan of the run.
    """
    rows = sum(part.rows for part in plan.parts)
    charts = {
        f"charts/{family}": len(json.loads(spec)["charts"])
        for family, spec in plan.family_specs.items()
    }
    others = {
        "thresholds.parquet": 0,
        "summary.csv": 0,
        "skipped.csv": 0,
        **charts,
        "bundle": sum(charts.values()),
    }
    return {
        **{f"tables/{part.name}.parquet": part_work(part.rows) for part in plan.parts},
        **{output: job_work(output, rows, count) for output, count in others.items()},
    }
