"""The jobs of the workflow: each takes a spec as JSON and writes a file."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.text import counted
from rooflines.basics.version import __version__
from rooflines.model.columns import TEXTS, Column
from rooflines.model.step_columns import LAYER_TEXTS, STEP_TEXTS
from rooflines.results.folders import LAYERS, MODELS, TABLES
from rooflines.results.records import recorded
from rooflines.results.tables import write_csv, write_parquet
from rooflines.sweep.recipes import sweep_of
from rooflines.sweep.rows import KernelTable, OperationTable, StepTable, SweepTable, skipped_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
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


KINDS: Mapping[str, tuple[Callable[[Any], SweepTable[Any]], Iterable[str]]] = {
    TABLES: (OperationTable, TEXTS),
    MODELS: (StepTable, STEP_TEXTS),
    LAYERS: (KernelTable, LAYER_TEXTS),
}
"""The rows of a sweep by the folder of their table, and their columns of text."""


@recorded
def write_part(spec: str, path: str | Path) -> None:
    """Write one part of a table.

    Args:
        spec: What it depends on, from `Output.spec`.
        path: The Parquet file to write.
    """
    recipe = json.loads(spec)
    (table_of, texts), first = KINDS[recipe["folder"]], recipe["row"]
    table = table_of(sweep_of(recipe))
    names = [column.name for column in table.stored]
    rows = table.frame(recipe["start"], recipe["stop"], names, enums=True)
    metadata = about([recipe], table.stored, rows=[first, first + recipe["rows"]])
    print(f"{recipe['rows']:,} rows, {counted(pl.thread_pool_size(), 'thread')}")
    with pl.Config(streaming_chunk_size=ROWS_AT_ONCE):
        wide = recipe["folder"] != TABLES
        write_parquet(rows, path, metadata, texts, recipe["config"]["compression"], wide=wide)


@recorded
def write_skipped(spec: str, path: str | Path) -> None:
    """Write what sweeps ask for and cannot have, as CSV; a header alone if that is nothing.

    Args:
        spec: What they depend on, from `Plan.spec`.
        path: The CSV file to write.
    """
    write_csv(skipped_frame(json.loads(spec)["rows"]), path)
