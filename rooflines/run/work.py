"""The work of a run: about how long each of its jobs takes on one core.

The constants were measured on two cores of a shared machine. A progress display needs their ratios
only: it scales them by the jobs that are finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.results.folders import CHARTS, LAYERS, MODELS, TABLES, WORKBOOK

if TYPE_CHECKING:
    from rooflines.run.plan import Plan

__all__ = ["BYTES_PER_ROW", "job_work", "part_work", "work_of"]

START_S = 0.1
"""Start of a forked job [s]."""

SCRIPT_START_S = 1.2
"""Start of a job of charts or of the site: Python, Snakemake and polars [s]."""

ROWS_PER_S = {TABLES: 1.3e6, MODELS: 1.2e6, LAYERS: 3.7e6}
"""Rows of a table, by its folder [1/s]."""

THRESHOLD_ROWS_PER_S = 6.5e5
"""Rows of tables whose thresholds are solved for and written as CSV [1/s]."""

MODEL_THRESHOLD_ROWS_PER_S = 2e4
"""Rows of tables of whole models whose thresholds are solved for [1/s]."""

SUMMARY_ROWS_PER_S = 1e7
"""Rows of tables that are counted [1/s]."""

CHART_S, CHART_IN_SITE_S = 1.2, 0.25
"""One chart in all its formats; one chart of the site [s]."""

BYTES_PER_ROW = {TABLES: 18, MODELS: 130, LAYERS: 3}
"""Bytes of a row of a large table with all columns, by its folder [byte]."""


def part_work(rows: int, folder: str = TABLES) -> float:
    """Time of a job that makes a part [s].

    Args:
        rows: The rows of the part [1].
        folder: The folder of its table.
    """
    return START_S + rows / ROWS_PER_S[folder]


def job_work(output: str, rows: int, charts: int) -> float:
    """Time of a job that makes no part [s].

    Args:
        output: What it makes, by its path below the results.
        rows: The rows of the tables that it depends on [1].
        charts: The charts that it draws or packs [1].
    """
    if output == "thresholds.parquet":
        return START_S + rows / THRESHOLD_ROWS_PER_S
    if output == "model-thresholds.parquet":
        return START_S + rows / MODEL_THRESHOLD_ROWS_PER_S
    if output == "summary.csv":
        return START_S + rows / SUMMARY_ROWS_PER_S
    if output == "bundle":
        return SCRIPT_START_S + charts * CHART_IN_SITE_S
    return SCRIPT_START_S + charts * CHART_S if charts else START_S


def work_of(plan: Plan) -> dict[str, float]:
    """Time of each job of a run on one core, by its first output below the results [s].

    Args:
        plan: The plan of the run.
    """
    rows = sum(part.rows for part in plan.tables.all)
    model_rows = sum(part.rows for part in plan.models.all)
    count = len(plan.charted())
    charts = dict.fromkeys([f"{CHARTS}/{family}" for family in plan.chart_families()[:1]], count)
    others = {
        "thresholds.parquet": 0,
        "summary.csv": 0,
        "skipped.csv": 0,
        "model-shapes.csv": 0,
        WORKBOOK: 0,
        **charts,
        **dict.fromkeys((*plan.measured_paths(), *plan.measured_summaries()[:1]), 0),
        "bundle": count,
    }
    return {
        **{part.path: part_work(part.rows, part.folder) for part in plan.parts},
        **{output: job_work(output, rows, count) for output, count in others.items()},
        **{output: job_work(output, model_rows, 0) for output in plan.model_thresholds()[:1]},
    }
