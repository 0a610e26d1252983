"""The work of a run: about how long each of its jobs takes on one core.

The constants were measured on two cores of a shared machine. A progress display needs their ratios
only: it scales them by the jobs that are finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.results.folders import CHARTS, LAYERS, MODELS, TABLES, WORKBOOK

if TYPE_CHECKING:
    from rooflines.run.plan import Plan

__all__ = ["part_work", "work_of"]

START_S = 0.1
"""Start of a forked job [s]."""

DRAWING_START_S = 0.4
"""Start of a job of charts or of the site: what it draws with is imported in it [s]."""

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


def part_work(rows: int, folder: str = TABLES) -> float:
    """Time of a job that makes a part [s].

    Args:
        rows: The rows of the part [1].
        folder: The folder of its table.
    """
    return START_S + rows / ROWS_PER_S[folder]


def work_of(plan: Plan) -> dict[str, float]:
    """Time of each job of a run on one core, by its first output below the results [s].

    Args:
        plan: The plan of the run.
    """
    rows = sum(part.rows for part in plan.tables.all)
    model_rows = sum(part.rows for part in plan.models.all)
    charts = len(plan.charted())
    short = (
        "skipped.csv",
        "model-shapes.csv",
        WORKBOOK,
        *plan.measured_paths(),
        *plan.measured_summaries()[:1],
    )
    solving_models_s = START_S + model_rows / MODEL_THRESHOLD_ROWS_PER_S
    drawing_s = DRAWING_START_S + charts * CHART_S
    return {
        **{part.path: part_work(part.rows, part.folder) for part in plan.parts},
        **dict.fromkeys(short, START_S),
        "thresholds.parquet": START_S + rows / THRESHOLD_ROWS_PER_S,
        **dict.fromkeys(plan.model_thresholds()[:1], solving_models_s),
        "summary.csv": START_S + rows / SUMMARY_ROWS_PER_S,
        **{f"{CHARTS}/{family}": drawing_s for family in plan.chart_families()[:1]},
        "bundle": DRAWING_START_S + charts * CHART_IN_SITE_S,
    }
