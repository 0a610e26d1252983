"""The jobs of the workflow: each takes a spec as JSON and writes a file."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.text import counted
from rooflines.basics.version import __version__
from rooflines.config.model_fields import ModelSweepConfig
from rooflines.config.schema import SweepConfig
from rooflines.dictionary.columns import Column, text_columns
from rooflines.evaluation.row_frames import KernelTable, skipped_frame, table_of
from rooflines.fits.calibration_files import Calibrations
from rooflines.hardware.dtype_catalogue import DtypeFile, dtype_entries
from rooflines.hardware.entries import Chip
from rooflines.models.architecture import Shape
from rooflines.results.folders import LAYERS_FOLDER, TABLES_FOLDER
from rooflines.results.records import recorded
from rooflines.results.tables import write_csv, write_parquet
from rooflines.sweep.recipes import shared_sweep_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON

dtype_entries()  # once, before several threads need them
for form in (SweepConfig, ModelSweepConfig, Chip, DtypeFile, Calibrations, Shape):
    form.model_rebuild()

ROWS_AT_ONCE = 50_000
"""Rows that a thread computes at once: they fit its cache, at half the time and memory [1]."""

pl.Config.set_streaming_chunk_size(ROWS_AT_ONCE)  # once: it is one for all threads


def about(recipes: Sequence[JSON], columns: Iterable[Column], **more: object) -> dict[str, object]:
    """The metadata of a file: what made it."""
    return {
        "version": __version__,
        "columns": [asdict(column) for column in columns],
        "made_from": list(recipes),
        **more,
    }


@recorded
def write_part(spec: str, path: str | Path) -> str:
    """Write one table part.

    Args:
        spec: What it depends on, from `Output.spec`.
        path: The Parquet file to write.

    Returns:
        A line for the log: how many rows.
    """
    recipe = json.loads(spec)
    kind = KernelTable if recipe["folder"] == LAYERS_FOLDER else table_of
    table, first = kind(shared_sweep_of(recipe)), recipe["row"]
    columns = table.stored
    names = [column.name for column in columns]
    rows = table.frame(recipe["start"], recipe["stop"], names, enums=True)
    metadata = about([recipe], columns, rows=[first, first + recipe["rows"]])
    wide = recipe["folder"] != TABLES_FOLDER
    compression = recipe["config"]["compression"]
    write_parquet(rows, path, metadata, text_columns(columns), compression, wide=wide)
    return f"{recipe['rows']:,} rows, {counted(pl.thread_pool_size(), 'thread')}"


@recorded
def write_skipped(spec: str, path: str | Path) -> None:
    """Write what sweeps ask for and cannot have, as CSV; a header alone if that is nothing.

    Args:
        spec: What they depend on, from `Plan.spec`.
        path: The CSV file to write.
    """
    write_csv(skipped_frame(json.loads(spec)["rows"]), path)
