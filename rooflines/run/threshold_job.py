"""Threshold job: thresholds for unchanged chips are reused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl

from rooflines.results.records import recorded
from rooflines.results.tables import write_parquet
from rooflines.run.jobs import about
from rooflines.run.reused_rows import Kept, keep
from rooflines.solvers.threshold_frames import all_columns, all_thresholds, sweep_thresholds
from rooflines.sweep.recipes import sweep_of

if TYPE_CHECKING:
    from pathlib import Path


@recorded
def write_thresholds(spec: str, path: str | Path) -> str:
    """Write thresholds for all operation sweeps, or all model sweeps.

    Args:
        spec: What they depend on, from `Plan.spec`.
        path: The Parquet file to write.

    Returns:
        Lines for the log: what is made again.
    """
    plan = json.loads(spec)
    models, recipes = plan["of_models"], plan["sweeps"]
    before = Kept.read(path, plan["code"])
    sweeps = map(sweep_of, recipes)
    columns = before.columns_of(recipes) or all_columns(list(sweeps), models=models)
    frames = [all_thresholds([], models=models)]
    log: list[str] = []
    for recipe in recipes:
        rows = before.rows_of(recipe, lambda changed: sweep_thresholds(sweep_of(changed)), log)
        frames.append(sweep_thresholds(sweep_of(recipe)) if rows is None else rows)
    frame = pl.concat(frames, how="diagonal_relaxed")
    frame = frame.select(column.name for column in columns)
    write_parquet(frame.lazy(), path, about(recipes, columns))
    keep(path)
    return "\n".join(log)
