"""`rooflines list columns`: what every column of every table is."""

from __future__ import annotations

import click

from rooflines import api
from rooflines.basics.errors import one_of, placed
from rooflines.cli.output import as_table, frame_options, print_frame, width

EXAMPLES = """
\b
Examples:
  rooflines list columns
  rooflines list columns thresholds
  rooflines list columns models --json
"""


@click.command("columns", epilog=EXAMPLES)
@click.argument("file", required=False, metavar="[TABLE]")
@frame_options
def command(file: str | None, *, csv: bool, json_: bool) -> None:
    """Explain the columns of all tables, or of one: unit, meaning, and what a null means.

    TABLE is the kind of a file, such as table, thresholds, models, layers or measured. Every
    Parquet file has the same in its metadata.
    """
    frame = api.columns()
    if file is not None:
        with placed("table"):
            one_of(file, frame["file"].unique(maintain_order=True).to_list(), "no kind of table")
        frame = frame.filter(file=file)
    shown = frame.drop("file") if file else frame
    rows = [[cell or "" for cell in row] for row in shown.iter_rows()]
    print_frame(frame, as_table(shown.columns, rows, width()), csv=csv, json_=json_)
