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
from rooflines.run.reused_rows import Kept, keep
from rooflines.sweep.recipes import sweep_of

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
    """Write one table part; for whole models, rows from unchanged chips are reused.

    Args:
        spec: What it depends on, from `Output.spec`.
        path: The Parquet file to write.

    Returns:
        Lines for the log: what is made again, and how many rows.
    """
    recipe = json.loads(spec)
    rows_of = KernelTable if recipe["folder"] == LAYERS_FOLDER else table_of
    first = recipe["row"]
    before = Kept.read(path, recipe["code"])
    columns: Sequence[Column] = before.columns
    log: list[str] = []
    merged = before.rows_of(
        recipe, lambda changed: rows_of(sweep_of(changed)).stored_frame().collect(), log
    )
    if merged is None or merged.height != recipe["rows"]:  # or it ends between rows of one chip
        table = rows_of(sweep_of(recipe))
        columns = table.stored
        names = [column.name for column in columns]
        rows = table.frame(recipe["start"], recipe["stop"], names, enums=True)
    else:
        rows = merged.lazy()
    place = [first, first + recipe["rows"]]
    wide = recipe["folder"] != TABLES_FOLDER
    metadata = about([recipe], columns, rows=place)
    texts = text_columns(columns)
    write_parquet(rows, path, metadata, texts, recipe["config"]["compression"], wide=wide)
    # A part with several chips is small; of a part with one chip, there is nothing to keep.
    if len(recipe["config"]["chips"]) > 1:
        keep(path)
    log.append(f"{recipe['rows']:,} rows, {counted(pl.thread_pool_size(), 'thread')}")
    return "\n".join(log)


@recorded
def write_skipped(spec: str, path: str | Path) -> None:
    """Write what sweeps ask for and cannot have, as CSV; a header alone if that is nothing.

    Args:
        spec: What they depend on, from `Plan.spec`.
        path: The CSV file to write.
    """
    write_csv(skipped_frame(json.loads(spec)["rows"]), path)
