"""`rooflines measured below`: timings below the bound by collection, with their reasons."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rooflines.cli.join import counts, joined_table, timings_options
from rooflines.cli.output import WithExamples, prints_frame, table
from rooflines.measured.below import below_by_collection

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from rooflines.cli.output import Printed

SHOWN = {
    "collection": "collection",
    "chip": "chip",
    "part": "what",
    "timings": "timings",
    "below": "below",
    "below_strict": "strict",
    "least_ratio": "least",
    "reason": "why below",
    "elsewhere": "elsewhere",
    "above_elsewhere": "above",
    "ratio_elsewhere": "longer",
}
"""Column titles on a screen, by column."""

MAX_ROWS = 30
"""Collections that are shown, the largest ones [1]; CSV and JSON have all."""


@click.command("below", cls=WithExamples)
@click.argument("table", metavar="TABLE")
@timings_options
@prints_frame
def command(
    *, table: str, where: Sequence[str], calibrations: Sequence[str], config: str | None
) -> Printed:
    """List the timings of TABLE below their bound: by collection, with the reason.

    TABLE is as of `rooflines measured join`. `strict` counts times below a bound that holds
    whatever experts the tokens choose, or where a switch adds up an all-reduce; `least` is the
    smallest measured time over the bound. `elsewhere` counts shapes that another collection has on
    the same chip, `above` those that it times above the bound, `longer` is its time over this one,
    in the median.

    Examples:
        rooflines measured below timings.csv
        rooflines measured below experts.parquet --where chip=h100-sxm --csv > below.csv
    """
    timing_set, joined = joined_table(table, where, calibrations, config)
    frame = below_by_collection(joined)
    strict, lines = frame["below_strict"].drop_nulls(), counts(timing_set, joined)
    lines += [] if strict.is_empty() else [f"  {strict.sum():,} below the strict bound"]
    return frame, "\n".join([*lines, *_table(frame)])


def _table(frame: pl.DataFrame) -> list[str]:
    """Collections as a table; empty without any."""
    if frame.is_empty():
        return []
    more = frame.height - MAX_ROWS
    lines = ["", table(SHOWN, frame.head(MAX_ROWS).to_dicts())]
    return [*lines, f"... {more:,} more: --csv"] if more > 0 else lines
