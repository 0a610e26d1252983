"""How far off the bound and estimates are: timings of a run, and those that are published."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.files import read_csv, read_parquet
from rooflines.basics.text import counted, significant
from rooflines.measured.join import ESTIMATE, ROW, UNEXPLAINED
from rooflines.measured.summary import spread
from rooflines.model.measured_columns import MEASURED_SKIPPED, MEASURED_SUMMARY
from rooflines.results.folders import MEASURED_SUMMARIES

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rooflines.model.columns import Column

FILES = dict(
    zip(MEASURED_SUMMARIES, ("Errors as CSV", "Timings left out, and why, as CSV"), strict=True)
)
"""The downloads of the page, and their texts."""

RATIOS = {"ratio_lower": "bound", "ratio_estimate": "estimate"}
"""Ratios of the page: what the measured time is divided by."""

KINDS = {"D": "matmul", "collective": "collective", "model": "served run"}
"""What the timings of a table are, by a column that only such tables have."""


class SetView(NamedTuple):
    """A set of timings, in words.

    Attributes:
        name: Its name.
        timings: Their number and kind.
        below: How many of them are below the bound, and how many of those without a reason; empty
            if none is.
        bound, estimate: Median, and p10 to p90, of measured time over these; None without any, and
            no range of times that are the same.
    """

    name: str
    timings: str
    below: str
    bound: tuple[str, str] | None
    estimate: tuple[str, str] | None


class FarView(NamedTuple):
    """What the page says besides its tables.

    Attributes:
        setting: What its numbers are, and of how many timings.
        sets: The sets of timings.
        files: Its downloads: path and text.
        columns: What the columns of its files are.
    """

    setting: str
    sets: Sequence[SetView]
    files: Sequence[tuple[str, str]]
    columns: Sequence[Column]


def _read(path: Path, columns: Sequence[Column]) -> pl.DataFrame:
    """A CSV file of results with columns of the dictionary."""
    types: dict[str, type[pl.DataType]] = {
        column.name: pl.Float64 if column.unit else pl.String for column in columns
    }
    for count in types.keys() & {"n", "n_estimate", "timings"}:
        types[count] = pl.Int64
    if "shards" in types:
        types["shards"] = pl.String
    return read_csv(path, schema_overrides=types)


def far_view(skipped: Path, timings: Sequence[Path]) -> FarView:
    """What the page says besides its table.

    Args:
        skipped: The timings without a row or an estimate, `measured-skipped.csv`.
        timings: The sets of timings joined with the model, as Parquet.
    """
    frames = {path.stem: read_parquet(path) for path in timings}
    lacking = _read(skipped, MEASURED_SKIPPED)
    bare, unread = (int(lacking.filter(lacks=what)["timings"].sum()) for what in (ESTIMATE, ROW))
    foreign = sum(_foreign(frame) for frame in frames.values())
    others = {
        "{:,} more have no row of the model.": unread,
        "Without an estimate: {:,}.": bare,
        "With an estimate by the calibration of other software: {:,}.": foreign,
    }
    setting = (
        f"{counted(sum(map(len, frames.values())), 'timing')} beside the model. The bound is the "
        "least time at the rates of the data sheet; the estimate is by a calibration. At 2 × a "
        "timing takes twice the predicted time; an error is |predicted / measured - 1|. "
    ) + " ".join(text.format(count) for text, count in others.items() if count)
    files = [(f"data/{name}", text) for name, text in FILES.items()]
    sets = [_set_view(name, frame) for name, frame in frames.items()]
    return FarView(setting.rstrip(), sets, files, MEASURED_SUMMARY)


def _foreign(frame: pl.DataFrame) -> int:
    """Timings whose estimate is by the calibration of other software than theirs [1]."""
    fitted = frame.filter(pl.col("calibration").str.contains("/"))
    softwares = pl.col("calibration").str.split("/").list.last().str.split("+")
    return fitted.filter(~softwares.list.contains(pl.col("software"))).height


def _set_view(name: str, frame: pl.DataFrame) -> SetView:
    """A set of timings joined with the model, in words."""
    kind = next(kind for column, kind in KINDS.items() if column in frame.columns)
    spreads = [frame.select(**spread(ratio)).row(0) for ratio in RATIOS]
    texts = [None if None in ends else _times(*ends) for ends in spreads]
    below, unexplained = frame["reason"].count(), frame.filter(reason=UNEXPLAINED).height
    text = f"{below:,} below the bound, {unexplained:,} unexplained" if below else ""
    return SetView(name, counted(frame.height, kind), text, *texts)


def _times(low: float, middle: float, high: float) -> tuple[str, str]:
    """A median, and the range of eight values in ten; none of values that are the same."""
    ends = f"{significant(low)} to {significant(high)} ×" if low < high else ""
    return f"{significant(middle)} ×", ends
