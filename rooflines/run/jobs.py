"""The jobs of the workflow: each takes a spec as JSON and writes a file."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.text import counted
from rooflines.basics.version import __version__
from rooflines.critical.thresholds import all_columns, all_thresholds
from rooflines.model.columns import TEXTS, Column
from rooflines.results.records import recorded
from rooflines.results.tables import NO_TEXT, write_csv, write_parquet
from rooflines.sweep.recipes import sweep_of
from rooflines.sweep.rows import whole_rows
from rooflines.sweep.table import as_stored, skipped_frame, stored_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON

__all__ = ["rows_of", "write_part", "write_skipped", "write_thresholds"]

ROWS_AT_ONCE = 50_000
"""Rows that a thread computes at once: they fit its cache, at half the time and memory [1]."""


def about(recipes: Sequence[JSON], columns: Iterable[Column], **more: object) -> dict[str, object]:
    """The metadata of a file: what made it."""
    return {
        "version": __version__,
        "columns": [asdict(column) for column in columns],
        "made_from": list(recipes),
        **more,
    }


def rows_of(spec: str) -> int:
    """The rows of a part, from `Part.spec` [1]."""
    recipe = json.loads(spec)
    return int(recipe["stop"] - recipe["start"])


@recorded
def write_part(spec: str, path: str | Path) -> None:
    """Write one part of a table.

    Args:
        spec: What it depends on, from `Part.spec`.
        path: The Parquet file to write.
    """
    recipe = json.loads(spec)
    sweep = sweep_of(recipe)
    columns = stored_columns(sweep)
    start, stop = recipe["start"], recipe["stop"]
    rows = whole_rows(sweep, [column.name for column in columns], start, stop)
    metadata = about([recipe], columns, rows=[recipe["row"], recipe["row"] + stop - start])
    print(f"{stop - start:,} rows, {counted(pl.thread_pool_size(), 'thread')}")
    with pl.Config(streaming_chunk_size=ROWS_AT_ONCE):
        write_parquet(as_stored(sweep, rows), path, metadata, TEXTS, sweep.config.compression)


@recorded
def write_thresholds(spec: str, parquet: str | Path, csv: str | Path) -> None:
    """Write the thresholds of all sweeps, as Parquet and as CSV.

    Args:
        spec: What they depend on, from `Plan.thresholds_spec`.
        parquet: The Parquet file to write.
        csv: The CSV file to write.
    """
    recipes = json.loads(spec)["sweeps"]
    sweeps = [sweep_of(recipe) for recipe in recipes]
    frame = all_thresholds(sweeps)
    write_parquet(frame.lazy(), parquet, about(recipes, all_columns(sweeps)))
    write_csv(frame, csv, NO_TEXT)


@recorded
def write_skipped(spec: str, path: str | Path) -> None:
    """Write the combinations that no chip supports, as CSV; a header alone if there are none.

    Args:
        spec: What they depend on, from `Plan.skipped_spec`.
        path: The CSV file to write.
    """
    write_csv(skipped_frame(json.loads(spec)["rows"]), path)
