"""The thresholds as the page's table reads them: cut into files that one loads when they are looked at.

A table is one axis of one sweep, for which a column has one meaning. A small table is one file; a large one is a file per chip, so
that the page never holds more than `MOST_ROWS` rows and yet every row can be reached. Sweeps repeat themselves so much that 380,000
rows take 2 MB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.site.packing import packed

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MOST_ROWS", "Table", "tables"]

MOST_ROWS = 5_000
"""Rows that one file has at most [1]. Those beyond are in the download alone, and the page says so."""

MOST_FILES = 400
"""Files that all tables have at most [1]; tables beyond are in the download alone, and the page says so."""

DIGITS = 6
"""Significant digits of a real number in the page; the download has all."""

LEFT_OUT = (
    "sweep",
    "axis",
    "critical_exact",
    "critical_memory",
    "critical_network",
    "limit_intensity",
)
"""Columns that the page's table does not have: two are in its name, the others are details that the downloads have."""


@dataclass(frozen=True)
class Table:
    """The thresholds of one sweep along one axis.

    Attributes:
        sweep: The sweep's name.
        axis: What is solved for.
        rows: How many there are [1].
        parts: The files: of which chip (None: all), the rows in it, the rows there are, and the columns in the packed form.
    """

    sweep: str
    axis: str
    rows: int
    parts: tuple[tuple[str | None, int, int, dict[str, Any]], ...]


def tables(thresholds: pl.DataFrame) -> Iterator[Table]:
    """The tables of all sweeps, in the order of the config.

    Args:
        thresholds: As on disk.
    """
    names = thresholds.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    files = 0
    for (sweep, axis), rows in names.group_by("sweep", "axis", maintain_order=True):
        pieces = (
            [(None, rows)]
            if rows.height <= MOST_ROWS
            else [(str(chip), of) for (chip,), of in rows.group_by("chip", maintain_order=True)]
        )
        files += len(pieces)
        if files > MOST_FILES:
            files -= len(pieces)
            pieces = []
        parts = tuple(
            (chip, min(of.height, MOST_ROWS), of.height, _columns(of.head(MOST_ROWS)))
            for chip, of in pieces
        )
        yield Table(str(sweep), str(axis), rows.height, parts)


def _columns(rows: pl.DataFrame) -> dict[str, Any]:
    """The columns of a file, packed; those that are null everywhere say nothing and are left out, the answer excepted."""
    shown = (
        column
        for column in rows.drop(LEFT_OUT, strict=False)
        if column.name == "critical" or column.null_count() < column.len()
    )
    return {
        c.name: packed((c.round_sig_figs(DIGITS) if c.dtype.is_float() else c).to_list())
        for c in shown
    }
