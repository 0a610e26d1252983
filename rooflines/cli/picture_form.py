"""Format of a picture or table that a command writes beside its screen."""

from __future__ import annotations

from rooflines.basics.errors import RooflinesError, at_path, check_choice
from rooflines.charts.kit.themes import SIZES
from rooflines.cli import output
from rooflines.config.chart_fields import FORMATS

TABLE = "parquet"
"""Format of a table."""


def picture_form(out: str | None, size: str | None, example: str, *, dark: bool) -> str:
    """File format by suffix; of no file, that of a table.

    Args:
        out: File to write; None: none.
        size: Size of a picture; None: the default.
        example: A picture's name for the message.
        dark: Whether a picture is dark.

    Raises:
        RooflinesError: It has another suffix, or a size or theme is given without a picture.
    """
    form = TABLE if out is None else output.format_of(out, (*FORMATS, TABLE))
    for option, value in (("--size", size), ("--dark", dark)):
        if value and form == TABLE:
            fix = f"leave it out, or write --out {example}"
            raise RooflinesError(option, "is given without a picture", fix)
    if size is not None:
        with at_path("--size"):
            check_choice(size, SIZES, "no size")
    return form
