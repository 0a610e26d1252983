"""What the workflow's jobs do: a recipe in, a file out."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.text import counted
from rooflines.basics.version import __version__
from rooflines.critical.thresholds import all_dims, all_thresholds
from rooflines.model.columns import TEXTS, Column, threshold_columns
from rooflines.results.records import recorded
from rooflines.results.tables import write_csv, write_parquet
from rooflines.sweep.recipes import sweep_of
from rooflines.sweep.rows import whole_rows
from rooflines.sweep.table import as_stored, skipped_frame, stored_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON

__all__ = ["rows_of", "write_part", "write_skipped", "write_thresholds"]

ROWS_AT_ONCE = 50_000
"""Rows that a thread computes together [1]: few enough to stay in its cache, which halves the cost of the formulas and the memory."""


def about(recipes: Sequence[JSON], columns: Iterable[Column], **more: object) -> dict[str, Any]:
    """What a file says made it."""
    return {
        "version": __version__,
        "columns": [asdict(column) for column in columns],
        "made_from": list(recipes),
        **more,
    }


def rows_of(spec: str) -> int:
    """The rows of a part [1].

    Args:
        spec: What it depends on, from `Part.spec`.
    """
    recipe = json.loads(spec)
    return int(recipe["stop"] - recipe["start"])


@recorded
def write_part(spec: str, path: str | Path) -> None:
    """Write one part of a table.

    Args:
        spec: What it depends on, from `Part.spec`.
        path: Where it goes.
    """
    recipe = json.loads(spec)
    sweep = sweep_of(recipe)
    columns = stored_columns(sweep)
    frame = as_stored(
        sweep,
        whole_rows(sweep, [column.name for column in columns], recipe["start"], recipe["stop"]),
    )
    rows = [recipe["row"], recipe["row"] + recipe["stop"] - recipe["start"]]
    print(f"{rows[1] - rows[0]:,} rows, {counted(pl.thread_pool_size(), 'thread')}")
    with pl.Config(streaming_chunk_size=ROWS_AT_ONCE):
        write_parquet(
            frame, path, about([recipe], columns, rows=rows), TEXTS, sweep.config.compression
        )


@recorded
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
    write_csv(frame, csv)


@recorded
def write_skipped(spec: str, path: str | Path) -> None:
    """Write what was asked for and no chip can do, as CSV; a header alone where there is nothing.

    Args:
        spec: What it depends on, from `Plan.skipped_spec`.
        path: Where it goes.
    """
    write_csv(skipped_frame(json.loads(spec)["rows"]), path)
