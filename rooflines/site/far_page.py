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
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON
    from rooflines.model.columns import Column

__all__ = ["FarTable", "FarView", "far_data", "far_view", "measured_table"]

FILES = dict(
    zip(MEASURED_SUMMARIES, ("Errors as CSV", "Timings without a row as CSV"), strict=True)
)
"""The downloads of the page, and their texts."""

MEASURED_SHOWN = {
    "n": ("timings", "count"),
    "below_percent": ("below bound", "percent"),
    "bare_median": ("error of bound, median", "share"),
    "estimate_median": ("error of estimate, median", "share"),
    "estimate_p90": ("error of estimate, p90", "share"),
    "band_coverage": ("in band", "share"),
    "ratio_lower_median": ("time / bound, median", "times"),
    "ratio_estimate_median": ("time / estimate, median", "times"),
}
"""Numbers of the table on the page: their names there, and what they are."""


class FarTable(NamedTuple):
    """A table of the page.

    Attributes:
        name: Its name in the address.
        text: What its rows are of.
        frame: Its rows.
        columns: What its columns are.
        keys: The columns that tell its rows apart; the last one is the region of a row.
        shown: Its numbers on the page, by column: their names there, and what they are: `count`,
            `percent`, `share` or `times`.
        ratios: Ratios with a spread in the picture: the starts of the columns' names, and what the
            measured time is divided by.
    """

    name: str
    text: str
    frame: pl.DataFrame
    columns: Sequence[Column]
    keys: Sequence[str]
    shown: Mapping[str, tuple[str, str]]
    ratios: Mapping[str, str]


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


def measured_table(summary: Path) -> FarTable:
    """The errors at timings of operations, from `measured.csv`."""
    frame = _read(summary, MEASURED_SUMMARY)
    ratios = {"ratio_lower": "bound", "ratio_estimate": "estimate"}
    keys = ("set", *(key for key in KEYS if key != "calibration"), "region")
    return FarTable(
        "operations", "operations", frame, MEASURED_SUMMARY, keys, MEASURED_SHOWN, ratios
    )


def _read(path: Path, columns: Sequence[Column]) -> pl.DataFrame:
    """A CSV file of results with columns of the dictionary."""
    types: dict[str, type[pl.DataType]] = {
        column.name: pl.Float64 if column.unit else pl.String for column in columns
    }
    for count in types.keys() & {"n", "timings"}:
        types[count] = pl.Int64
    return pl.read_csv(path, schema_overrides=types)


def far_view(table: FarTable, skipped: Path) -> FarView:
    """What the page says of the errors at timings.

    Args:
        table: The errors.
        skipped: The timings without a row, `measured-skipped.csv`.
    """
    timings = int(table.frame.filter(region="all")["n"].sum())
    left_out = int(_read(skipped, MEASURED_SKIPPED)["timings"].sum())
    without = f" Without a row of the model: {left_out:,} more." if left_out else ""
    setting = (
        f"Measured times of {counted(timings, 'timing')} beside the model. The bound is the least "
        "time at the rates of the data sheet; the estimate is by a calibration of chip and "
        f"software, where there is one.{without}"
    )
    files = ((f"data/{name}", text) for name, text in FILES.items())
    return FarView(setting, list(files), table.columns)


def far_data(tables: Iterable[FarTable]) -> JSON:
    """The data of the page."""
    return {"tables": [_plain(table) for table in tables]}


def _plain(table: FarTable) -> JSON:
    """A table as data of the page."""
    about = {column.name: column.meaning for column in table.columns}
    spreads = {
        over: [f"{ratio}_{quantile}" for quantile in SPREAD] for ratio, over in table.ratios.items()
    }
    names = dict.fromkeys([*table.keys, *table.shown, *chain.from_iterable(spreads.values())])
    return {
        "name": table.name,
        "text": table.text,
        "keys": list(table.keys),
        "meanings": {name: about[name] for name in table.keys},
        "shown": [
            {"name": name, "text": text, "form": form, "meaning": about[name]}
            for name, (text, form) in table.shown.items()
        ],
        "spreads": spreads,
        "rows": {name: packed(table.frame[name].to_list()) for name in names},
    }
