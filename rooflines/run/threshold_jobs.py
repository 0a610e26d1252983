"""Threshold jobs: some chips in a sweep, and all thresholds in one file."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from rooflines.basics.files import read_parquet
from rooflines.dictionary.columns import Column
from rooflines.results.records import recorded
from rooflines.results.tables import write_parquet
from rooflines.run.jobs import about
from rooflines.solvers.threshold_frames import column_types, sweep_thresholds
from rooflines.sweep.recipes import shared_sweep_of
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.sweep.threshold_columns import threshold_columns


@recorded
def write_threshold_part(spec: str, path: str | Path) -> None:
    """Write thresholds for some chips in a sweep.

    Args:
        spec: What they depend on, from `Plan.spec_of`.
        path: The Parquet file to write.
    """
    recipe = json.loads(spec)
    sweep = shared_sweep_of(recipe)
    columns = threshold_columns([sweep], models=isinstance(sweep, ModelSweep))
    write_parquet(sweep_thresholds(sweep).lazy(), path, about([recipe], columns))


@recorded
def write_thresholds(spec: str, path: str | Path) -> None:
    """Write thresholds for all operation sweeps, or all model sweeps, as one file.

    Args:
        spec: What they depend on, from `Plan.spec`.
        path: The Parquet file to write, beside the folder of their parts.
    """
    plan = json.loads(spec)
    columns = [Column(**column) for column in plan["columns"]]
    types = column_types(columns, models=plan["of_models"])
    frames = [pl.DataFrame(schema=types)]
    for part in plan["parts"]:
        rows = read_parquet(Path(path).parent / part)
        frames.append(rows.cast({name: types[name] for name in rows.columns}))
    frame = pl.concat(frames, how="diagonal").select(*types)
    write_parquet(frame.lazy(), path, about(plan["sweeps"], columns))
