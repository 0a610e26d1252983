"""The jobs of the workflow: each takes a spec as JSON and writes a file."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.text import counted
from rooflines.basics.version import __version__
from rooflines.model.columns import TEXTS, Column
from rooflines.model.step_columns import LAYER_TEXTS, STEP_TEXTS
from rooflines.results.records import recorded
from rooflines.results.tables import write_csv, write_parquet
from rooflines.serving.recipes import model_sweep_of
from rooflines.serving.table import stored_layer_columns, stored_step_columns
from rooflines.sweep.recipes import sweep_of
from rooflines.sweep.rows import KernelTable, OperationTable, StepTable
from rooflines.sweep.table import skipped_frame, stored_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON

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


@recorded
def write_part(spec: str, path: str | Path) -> None:
    """Write one part of a table of operations.

    Args:
        spec: What it depends on, from `Output.spec`.
        path: The Parquet file to write.
    """
    recipe = json.loads(spec)
    sweep = sweep_of(recipe)
    columns = stored_columns(sweep)
    names = [column.name for column in columns]
    rows = OperationTable(sweep).frame(recipe["start"], recipe["stop"], names, enums=True)
    _write_part(recipe, columns, rows, path, TEXTS)


@recorded
def write_model_part(spec: str, path: str | Path) -> None:
    """Write one part of a table of whole models; arguments as of `write_part`."""
    recipe = json.loads(spec)
    sweep = model_sweep_of(recipe)
    columns = stored_step_columns(sweep)
    names = [column.name for column in columns]
    rows = StepTable(sweep).frame(recipe["start"], recipe["stop"], names, enums=True)
    _write_part(recipe, columns, rows, path, STEP_TEXTS)


@recorded
def write_layer_part(spec: str, path: str | Path) -> None:
    """Write one part of a table of kernels of whole models; arguments as of `write_part`."""
    recipe = json.loads(spec)
    sweep = model_sweep_of(recipe)
    columns = stored_layer_columns(sweep)
    rows = KernelTable(sweep).frame(recipe["start"], recipe["stop"], enums=True)
    rows = rows.select(column.name for column in columns)
    _write_part(recipe, columns, rows, path, LAYER_TEXTS)


def _write_part(
    recipe: JSON,
    columns: Sequence[Column],
    rows: pl.LazyFrame,
    path: str | Path,
    texts: Iterable[str],
) -> None:
    """Write the rows of a part, as its config stores them."""
    config, first = recipe["config"], recipe["row"]
    metadata = about([recipe], columns, rows=[first, first + recipe["rows"]])
    print(f"{recipe['rows']:,} rows, {counted(pl.thread_pool_size(), 'thread')}")
    with pl.Config(streaming_chunk_size=ROWS_AT_ONCE):
        wide = "models" in config  # of whole models, or their kernels
        write_parquet(rows, path, metadata, texts, config["compression"], wide=wide)


@recorded
def write_skipped(spec: str, path: str | Path) -> None:
    """Write what sweeps ask for and cannot have, as CSV; a header alone if that is nothing.

    Args:
        spec: What they depend on, from `Plan.spec`.
        path: The CSV file to write.
    """
    write_csv(skipped_frame(json.loads(spec)["rows"]), path)
