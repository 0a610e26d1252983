"""The thresholds as data of their page: files that the page loads on demand.

A table is one axis of one sweep, so that every column has one meaning. A small table is one file. A
large one is one file per chip, so that the page holds at most `MOST_ROWS` rows at a time. Packed,
650,000 rows of the default config take 4 MB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.model.resources import RATES
from rooflines.site.packing import packed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.site.packing import Packed

MOST_ROWS = 5_500
"""Limit of rows per file [1]. Rows beyond it are only in the download, and the page says so."""

MOST_FILES = 400
"""Limit of files [1]. Tables beyond it are only in the download, and the page says so."""

DIGITS = 6
"""Significant digits of a real number in the page [1]; the download has all."""

LEFT_OUT = (
    "sweep",
    "axis",
    "critical_exact",
    "critical_memory",
    "critical_network",
    "limit_intensity",
)
"""Columns that the page leaves out: two name the table, the others are details in the downloads."""

FACTOR, SIZE = "critical_exact", "critical"
"""The column with the answer: of a rate the factor on it, else the size or the number of chips."""


class TablePart(NamedTuple):
    """A file of a table.

    Attributes:
        chip: Whose rows it has; None for all chips.
        rows: Rows in it [1].
        all_rows: Rows there are [1].
        columns: The columns, packed.
    """

    chip: str | None
    rows: int
    all_rows: int
    columns: dict[str, Packed]


@dataclass(frozen=True)
class Table:
    """The thresholds of one sweep along one axis.

    Attributes:
        sweep: The sweep's name.
        axis: What is solved for.
        rows: Number of thresholds [1].
        parts: Its files.
    """

    sweep: str
    axis: str
    rows: int
    parts: tuple[TablePart, ...]


def tables(thresholds: pl.DataFrame) -> Iterator[Table]:
    """The tables of all sweeps, in the order of the config.

    Args:
        thresholds: As on disk.
    """
    files = 0
    for (sweep, axis), rows in thresholds.group_by("sweep", "axis", maintain_order=True):
        pieces = (
            [(None, rows)]
            if rows.height <= MOST_ROWS
            else [(str(chip), own) for (chip,), own in rows.group_by("chip", maintain_order=True)]
        )
        if files + len(pieces) > MOST_FILES:
            pieces = []
        files += len(pieces)
        parts = tuple(
            TablePart(
                chip,
                min(own.height, MOST_ROWS),
                own.height,
                _columns(own.head(MOST_ROWS), FACTOR if axis in RATES else SIZE),
            )
            for chip, own in pieces
        )
        yield Table(str(sweep), str(axis), rows.height, parts)


def _columns(rows: pl.DataFrame, answer: str) -> dict[str, Packed]:
    """The columns of a file, packed; without those that are null throughout, except the answer."""
    left_out = {*LEFT_OUT, FACTOR, SIZE} - {answer}
    shown = rows.drop(left_out, strict=False)
    # Text is made last: names are compared and copied faster as they are on disk.
    shown = shown.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    return {
        column.name: packed(
            (column.round_sig_figs(DIGITS) if column.dtype.is_float() else column).to_list()
        )
        for column in shown
        if column.name == answer or column.null_count() < column.len()
    }
