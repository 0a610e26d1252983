"""What the workflow's jobs do: a recipe in, a file out."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.critical import all_dims, all_thresholds
from rooflines.dictionary import METRICS, SKIPPED, Column, table_columns, threshold_columns
from rooflines.parts import sweep_of
from rooflines.table_rows import sweep_rows
from rooflines.tables import appearing, write_parquet
from rooflines.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rooflines.resources import Plain
    from rooflines.sweep import Sweep

__all__ = ["skipped_rows", "stored_columns", "write_part", "write_skipped", "write_thresholds"]


def about(recipes: Sequence[Plain], columns: Iterable[Column], **more: object) -> dict[str, Any]:
    """What a file says made it."""
    return {"version": __version__, "columns": [asdict(column) for column in columns], "made_from": list(recipes), **more}


def write_part(spec: str, path: str | Path) -> None:
    """Write one part of a table.

    Args:
        spec: What it depends on, from `Part.spec`.
        path: Where it goes.
    """
    recipe = json.loads(spec)
    sweep = sweep_of(recipe)
    columns = stored_columns(sweep)
    frame = sweep_rows(sweep, recipe["start"], recipe["stop"]).select(column.name for column in columns)
    rows = [recipe["row"], recipe["row"] + recipe["stop"] - recipe["start"]]
    write_parquet(frame, path, about([recipe], columns, rows=rows))


def write_thresholds(spec: str, parquet: str | Path, csv: str | Path) -> None:
    """Write the thresholds of all sweeps, as Parquet and as CSV.

    Args:
        spec: What they depend on, from `Plan.thresholds_spec`.
        parquet: Where they go as Parquet.
        csv: Where they go as CSV.
    """
    recipes = json.loads(spec)["sweeps"]
    sweeps = [sweep_of(recipe) for recipe in recipes]
    frame = all_thresholds(sweeps)
    write_parquet(frame.lazy(), parquet, about(recipes, threshold_columns(all_dims(sweeps))))
    with appearing(csv) as aside:
        frame.write_csv(aside)


def write_skipped(spec: str, path: str | Path) -> None:
    """Write what was asked for and no chip can do, as CSV; a header alone where there is nothing.

    Args:
        spec: What it depends on, from `Plan.skipped_spec`.
        path: Where it goes.
    """
    with appearing(path) as aside:
        skipped_rows([sweep_of(recipe) for recipe in json.loads(spec)["sweeps"]]).write_csv(aside)


def skipped_rows(sweeps: Iterable[Sweep]) -> pl.DataFrame:
    """What sweeps ask for and no chip can do, a row for each chip and reason."""
    whole = {"shards": pl.Int64, "rows": pl.Int64}
    rows = [{"sweep": sweep.name, "unit": sweep.unit, **asdict(skipped)} for sweep in sweeps for skipped in sweep.skipped]
    return pl.DataFrame(rows, schema={column.name: whole.get(column.name, pl.String) for column in SKIPPED}, orient="row")


def stored_columns(sweep: Sweep) -> list[Column]:
    """The columns that a sweep's table stores: keys always, metrics as its config chooses."""
    chosen = sweep.config["columns"]
    return [c for c in table_columns(sweep.op.dims) if c not in METRICS or chosen == "all" or c.name in chosen]
