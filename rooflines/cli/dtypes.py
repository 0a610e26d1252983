"""`rooflines list dtypes`: the dtype combinations, and the formats that they are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import polars as pl

from rooflines import api
from rooflines.basics.text import significant
from rooflines.cli.output import WithExamples, prints_frame, table
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.theory.operation import OPERANDS

if TYPE_CHECKING:
    from rooflines.cli.output import Printed

TITLES = {
    "dtypes": "dtypes",
    "x": "x (bits)",
    "w": "w",
    "out": "out",
    "compute": "compute",
    "note": "who uses it",
}
"""Column titles on a screen, by column."""


@click.command("dtypes", cls=WithExamples)
@prints_frame
def command() -> Printed:
    """List the dtype combinations: formats of x, w and out, and what computes.

    CSV and JSON have the source of each format too.

    Examples:
        rooflines list dtypes
        rooflines list dtypes --json
    """
    frame, formats = api.dtypes(), dtype_entries().formats
    sources = {name: str(entry.source) for name, entry in formats.items()}
    rows = [
        row
        | {name: f"{row[name]} ({significant(row[f'{name}_bits'], 4)})" for name in OPERANDS}
        | {"note": row["note"] or ""}
        for row in frame.to_dicts()
    ]
    full = frame.with_columns(
        pl.col(name).replace_strict(sources, return_dtype=pl.String).alias(f"{name}_source")
        for name in (*OPERANDS, "compute")
    )
    return full, table(TITLES, rows)
