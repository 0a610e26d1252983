"""The page "How far off?": errors of the bound and of estimates, and the spread of the ratios."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.text import counted
from rooflines.measured.summary import KEYS, SPREAD
from rooflines.model.measured_columns import MEASURED_SKIPPED, MEASURED_SUMMARY
from rooflines.results.folders import MEASURED_SUMMARIES
from rooflines.site.packing import packed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON
    from rooflines.model.columns import Column

__all__ = ["SHOWN", "FarView", "far_data", "far_view"]

FILES = dict(
    zip(MEASURED_SUMMARIES, ("Errors as CSV", "Timings without a row as CSV"), strict=True)
)
"""The downloads of the page, and their texts."""

FACETS = ("set", *(key for key in KEYS if key != "calibration"), "region")
"""Columns that tell rows apart, each with a menu; the last one is the region of a row."""

RATIOS = {"ratio_lower": "bound", "ratio_estimate": "estimate"}
"""Ratios with a spread in the picture: what the measured time is divided by."""

SHOWN = {
    "n": ("timings", "count"),
    "below_percent": ("below bound", "percent"),
    "bare_median": ("error of bound, median", "share"),
    "estimate_median": ("error of estimate, median", "share"),
    "estimate_p90": ("error of estimate, p90", "share"),
    "band_coverage": ("in band", "share"),
    "ratio_lower_median": ("time / bound, median", "times"),
    "ratio_estimate_median": ("time / estimate, median", "times"),
}
"""Numbers of the table on the page: their names there, and what they are: a `count`, a percentage
(`percent`), a `share` or a ratio (`times`)."""


class FarView(NamedTuple):
    """What the page says besides its tables.

    Attributes:
        setting: What its numbers are, and of how many timings.
        files: Its downloads: path and text.
        columns: What the columns of its files are.
    """

    setting: str
    files: Sequence[tuple[str, str]]
    columns: Sequence[Column]


def _read(path: Path, columns: Sequence[Column]) -> pl.DataFrame:
    """A CSV file of results with columns of the dictionary."""
    types: dict[str, type[pl.DataType]] = {
        column.name: pl.Float64 if column.unit else pl.String for column in columns
    }
    for count in types.keys() & {"n", "timings"}:
        types[count] = pl.Int64
    return pl.read_csv(path, schema_overrides=types)


def far_view(summary: Path, skipped: Path) -> FarView:
    """What the page says besides its table.

    Args:
        summary: The errors at timings, `measured.csv`.
        skipped: The timings without a row, `measured-skipped.csv`.
    """
    timings = int(_read(summary, MEASURED_SUMMARY).filter(region="all")["n"].sum())
    left_out = int(_read(skipped, MEASURED_SKIPPED)["timings"].sum())
    without = f" Without a row of the model: {left_out:,} more." if left_out else ""
    setting = (
        f"Measured times of {counted(timings, 'timing')} beside the model. The bound is the least "
        "time at the rates of the data sheet; the estimate is by a calibration of chip and "
        f"software, where there is one.{without}"
    )
    files = [(f"data/{name}", text) for name, text in FILES.items()]
    return FarView(setting, files, MEASURED_SUMMARY)


def far_data(summary: Path) -> JSON:
    """The table of the page: its rows, what tells them apart, numbers, and spreads of ratios."""
    frame = _read(summary, MEASURED_SUMMARY)
    meanings = {column.name: column.meaning for column in MEASURED_SUMMARY}
    spreads = {over: [f"{ratio}_{end}" for end in SPREAD] for ratio, over in RATIOS.items()}
    names = dict.fromkeys([*FACETS, *SHOWN, *chain.from_iterable(spreads.values())])
    return {
        "keys": list(FACETS),
        "meanings": {name: meanings[name] for name in FACETS},
        "shown": [
            {"name": name, "text": text, "form": form, "meaning": meanings[name]}
            for name, (text, form) in SHOWN.items()
        ],
        "spreads": spreads,
        "rows": {name: packed(frame[name].to_list()) for name in names},
    }
