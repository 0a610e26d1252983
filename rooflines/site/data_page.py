"""The page of data: thresholds to filter, how far off timings are, and files to take along."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.text import counted, significant
from rooflines.catalogue.measured import BOUND, STEP, measured_quantiles
from rooflines.charts.kit.text import chip_label
from rooflines.model.resources import RATES
from rooflines.model.sharding import SHARDS
from rooflines.site.explorer import FIRST_CHIPS
from rooflines.site.fits import SOFTWARE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.basics.yaml_file import JSON

MOST_ROWS = 20_000
"""Limit of thresholds on the page [1]; the download has all."""

FEW_CHIPS = len(FIRST_CHIPS)
"""Chips whose thresholds the page has [1]."""

DIGITS = 6
"""Significant digits of a real number in the page [1]; the download has all."""

FORM = {
    "facets": ["chip", "dtypes", "share", "sharding", "shards", "memory", "network", "limit"],
    "answers": ["critical", "critical_exact"],
    "length": 200,
}
"""Columns with a menu, those where the outcome stands for what is no number, and rows shown."""

FACTOR, SIZE = "critical_exact", "critical"
"""The column with the answer: of a rate the factor on it, else the size or the number of chips."""

LEFT_OUT = ("sweep", "axis", "critical_memory", "critical_network", "limit_intensity")
"""Columns that the page leaves out: two name the table, the others are details in the download."""


def threshold_data(thresholds: pl.DataFrame, columns: Sequence[JSON]) -> JSON:
    """The thresholds of the page: of one sweep along one axis, of a few chips.

    Args:
        thresholds: All of them, as on disk.
        columns: What their columns are.

    Returns:
        `sweep`, `axis`, the columns as `lists`, their `columns` with unit and meaning, which of
        them are `facets` and `answers`, the `length` shown at once, and the `counts` of rows: in
        the page, of this axis, and in all.
    """
    first = _first_table(thresholds)
    if first is None:
        return {"sweep": "", "axis": "", "lists": {}, "columns": [], "counts": [0, 0, 0], **FORM}
    sweep, axis = first
    own = thresholds.filter(pl.col("sweep") == sweep, pl.col("axis") == axis)
    names = own["chip"].unique(maintain_order=True).cast(pl.String).to_list()
    chips = [chip for chip in FIRST_CHIPS if chip in names] or names[:FEW_CHIPS]
    place = (
        pl.col("chip")
        .cast(pl.String)
        .replace_strict(chips, range(len(chips)), default=None, return_dtype=pl.Int64)
    )
    found = own.filter(place.is_not_null()).sort(place, maintain_order=True).head(MOST_ROWS)
    answer = FACTOR if axis in RATES else SIZE
    shown = found.drop({*LEFT_OUT, FACTOR, SIZE} - {answer}, strict=False)
    shown = shown.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    if SHARDS not in shown.columns or shown[SHARDS].n_unique() == 1:
        shown = shown.drop("network", strict=False)  # over which nothing is sent
    kept = [one for one in shown if one.name == answer or one.null_count() < one.len()]
    about = {column["name"]: column for column in columns}
    return {
        "sweep": sweep,
        "axis": axis,
        "lists": {
            one.name: (one.round_sig_figs(DIGITS) if one.dtype.is_float() else one).to_list()
            for one in kept
        },
        "columns": [about[one.name] for one in kept if one.name in about],
        "counts": [found.height, own.height, thresholds.height],
        **FORM,
    }


def _first_table(frame: pl.DataFrame) -> tuple[str, str] | None:
    """The sweep and axis of the page: a size's, if possible of named shapes, the longest."""
    counts = frame.group_by("sweep", "axis", maintain_order=True).agg(
        pl.col("shape").is_not_null().any().alias("named"),
        (~pl.col("axis").cast(pl.String).is_in([SHARDS, *RATES])).all().alias("size"),
        pl.len(),
    )
    first = counts.sort("size", "named", "len", descending=True, maintain_order=True).head(1)
    return next(((str(sweep), str(axis)) for sweep, axis, *_ in first.iter_rows()), None)


def measured_views() -> list[list[str]]:
    """How far off published timings are, as texts of rows: what, of how many, and the quantiles."""
    views = []
    for row in measured_quantiles().iter_rows(named=True):
        software = SOFTWARE.get(row["software"], row["software"])
        what = "served runs" if row["of"] == STEP else "matmuls"
        views.append(
            [
                what if row["length"] is None else f"{row['length']} {what}",
                "all" if row["chip"] is None else chip_label(row["chip"]),
                software or "all",
                row["dtypes"] or "all",
                "bound" if row["over"] == BOUND else "estimate",
                counted(row["n"], "timing"),
                *(f"{significant(row[name])} ×" for name in ("p10", "p50", "p90")),
            ]
        )
    return views
