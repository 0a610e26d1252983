"""`rooflines list columns`: what every column of every table is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflines import api
from rooflines.basics.errors import at_path
from rooflines.cli.output import WithExamples, filter_dictionary, prints_frame

if TYPE_CHECKING:
    from rooflines.cli.output import Printed


@click.command("columns", cls=WithExamples)
@click.argument("name", required=False, metavar="[TABLE]")
@prints_frame
def command(name: str | None) -> Printed:
    """Explain the columns of all tables, or of one: unit, meaning, and what a null means.

    TABLE is the kind of a file, such as table, thresholds, models, layers or measured; or a column,
    wherever it is. Every Parquet file has the same in its metadata.

    Examples:
        rooflines list columns
        rooflines list columns thresholds
        rooflines list columns t_lower_s
        rooflines list columns models --json
    """
    frame = api.columns()
    fix = f"use one of {', '.join(frame['file'].unique(maintain_order=True))}, or a column"
    with at_path("table"):
        return filter_dictionary(frame, name, "no kind of table, and no column", fix)
