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
from rooflines.basics.text import MAX_ITEMS_SHOWN
from rooflines.fits.timings import ROW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.fits.timings import Timings

MAX_RATIO = 2.0
"""Largest ratio between repeated timings that noise explains [1]."""

MAX_SHARE = 0.4
"""Largest share of repeated keys that may differ by more than `MAX_RATIO` [1]."""


def check_repeats(timings: Timings, path: str | Path | None = None) -> None:
    """Refuse timings whose equal keys differ more than twofold.

    Args:
        timings: Timings that one fit takes.
        path: The table that they are from, whose other columns are looked at too; None: none.

    Raises:
        RooflinesError: More repeated keys than `MAX_SHARE` differ by more than `MAX_RATIO`.
            It names a column that tells their rows apart, if there is one.
    """
    keys, frame = timings.kind.identity, timings.frame
    share, ratio = _conflicts(frame, keys)
    if share <= MAX_SHARE:
        return
    if path is not None:
        read = read_parquet if Path(path).suffix == ".parquet" else read_csv
        rows = read(path).with_row_index(ROW, offset=1)
        absent = [name for name in rows.columns if name not in frame.columns]
        frame = frame.join(rows.select(ROW, *absent), on=ROW, how="left")
    candidates = [name for name in frame.columns if name not in (*keys, ROW, "seconds", "chip")]
    telling = [name for name in candidates if _conflicts(frame, [*keys, name])[0] <= MAX_SHARE]
    problem = (
        f"has rows with equal {', '.join(keys)} whose seconds differ up to {ratio:.3g}-fold, in "
        f"{share:.0%} of the keys that are repeated"
    )
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
