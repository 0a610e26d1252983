"""`rooflines list columns`: what every column of every table is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflines import api
from rooflines.basics.errors import at_path, one_of
from rooflines.cli.output import WithExamples, prints_frame, table

if TYPE_CHECKING:
    from rooflines.cli.output import Printed


@click.command("columns", cls=WithExamples)
@click.argument("file", required=False, metavar="[TABLE]")
@prints_frame
def command(file: str | None) -> Printed:
    """Explain the columns of all tables, or of one: unit, meaning, and what a null means.

    TABLE is the kind of a file, such as table, thresholds, models, layers or measured. Every
    Parquet file has the same in its metadata.

    Examples:
        rooflines list columns
        rooflines list columns thresholds
        rooflines list columns models --json
    """
    frame = api.columns()
    if file is not None:
        with at_path("table"):
            one_of(file, frame["file"].unique(maintain_order=True).to_list(), "no kind of table")
        frame = frame.filter(file=file)
    shown = frame.drop("file") if file else frame
    return frame, table(shown.columns, shown.fill_null("").to_dicts())
