"""Repeated timings: rows with equal keys, which should agree.

Where they differ more than twofold, the table times several things, and a column that tells them
apart is not among the keys.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.basics.files import read_csv, read_parquet
from rooflines.basics.text import MAX_ITEMS_SHOWN, whole_percent
from rooflines.fits.timings import ROW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.fits.timings import Timings

MAX_RATIO = 2.0
"""Largest ratio between repeated timings that noise explains [1]."""

MAX_SHARE = 0.4
"""Largest share of repeated keys that may differ by more than `MAX_RATIO` where no column tells
them apart: engines' timings of attention reach a quarter [1]."""

MAX_TOLD_SHARE = 0.05
"""The same where a column tells them apart; above it, what stays untold is said [1]."""

TAKEN_TOGETHER = ("distribution",)
"""Columns whose values a fit takes together: it is to hold for all of them."""


def check_repeats(timings: Timings, path: str | Path | None = None) -> str:
    """Refuse timings whose equal keys differ more than twofold.

    Args:
        timings: Timings that one fit takes.
        path: The table that they are from, whose other columns are looked at too; None: none.

    Returns:
        A note where more keys than `MAX_TOLD_SHARE` differ, and no column tells why; else "".

    Raises:
        RooflinesError: More repeated keys than `MAX_TOLD_SHARE` differ by more than `MAX_RATIO`,
            and a column tells their rows apart, which it names; or more than `MAX_SHARE`.
    """
    keys, frame = timings.kind.identity, timings.frame
    share, ratio = _conflicts(frame, keys)
    if share <= MAX_TOLD_SHARE:
        return ""
    if path is not None:
        read = read_parquet if Path(path).suffix == ".parquet" else read_csv
        rows = read(path).with_row_index(ROW, offset=1)
        absent = [name for name in rows.columns if name not in frame.columns]
        frame = frame.join(rows.select(ROW, *absent), on=ROW, how="left")
    excluded = (*keys, ROW, "seconds", "chip", *TAKEN_TOGETHER)
    shares = {
        name: _conflicts(frame, [*keys, name])[0] for name in frame.columns if name not in excluded
    }
    telling = [name for name, left in shares.items() if left <= MAX_TOLD_SHARE]
    problem = (
        f"has rows with equal {', '.join(keys)} whose seconds differ up to {ratio:.3g}-fold, in "
        f"{whole_percent(share)} of the keys that are repeated"
    )
    if not telling and share <= MAX_SHARE:
        together = [name for name in TAKEN_TOGETHER if name in frame.columns]
        aside = f"besides {', '.join(together)} " if together else ""
        return f"{timings.file} {problem}; no column {aside}tells them apart"
    fix = "add a column that tells them apart, such as launch, and choose one of its values"
    if telling:
        values = frame[telling[0]].drop_nulls().unique().sort().cast(pl.String).to_list()
        fix = f"choose one value of the column {telling[0]}, which tells them apart, of "
        fix += ", ".join(values[:MAX_ITEMS_SHOWN])
    raise RooflinesError("seconds", problem, fix, file=timings.file)


def _conflicts(frame: pl.DataFrame, keys: Sequence[str]) -> tuple[float, float]:
    """Share that differs by more than `MAX_RATIO` among repeated keys, and their largest ratio."""
    seconds = pl.col("seconds")
    ratios = (
        frame.group_by(keys)
        .agg(n=pl.len(), ratio=seconds.max() / seconds.min())
        .filter(pl.col("n") > 1)["ratio"]
    )
    if ratios.is_empty():
        return 0.0, 1.0
    conflicting = ratios.filter(ratios > MAX_RATIO)
    return conflicting.len() / ratios.len(), max(ratios.to_list())
