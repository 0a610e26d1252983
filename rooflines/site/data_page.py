"""The page of data: thresholds to filter, how far off timings are, and files to take along."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.files import read_csv
from rooflines.basics.text import counted, significant
from rooflines.charts.kit.chart_text import chip_label
from rooflines.hardware.timing_errors import BOUND, STEP, measured_quantiles
from rooflines.measured.join import WITHOUT_ESTIMATE, WITHOUT_ROW
from rooflines.measured.timing_summary import FIT, HELD_OUT, SITES, SPREAD
from rooflines.site.calibration_data import SOFTWARE
from rooflines.site.explorer import FIRST_CHIPS
from rooflines.theory.resources import RATES
from rooflines.theory.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON

MOST_ROWS = 20_000
"""Limit of thresholds on the page [1]; the download has all."""

DIGITS = 6
"""Significant digits of a real number in the page [1]; the download has all."""

MOST_SHOWN = 200
"""Thresholds shown at once [1]; menus and words find the others."""

FACETS = ("chip", "dtypes", "share", "sharding", "shards", "memory", "network", "limit")
"""Columns of thresholds with a menu."""

FACTOR, SIZE = "critical_exact", "critical"
"""The column with the answer: of a rate the factor on it, else the size or the number of chips."""

LEFT_OUT = ("sweep", "axis", "critical_memory", "critical_network", "limit_intensity")
"""Columns that the page leaves out: two name the table, the others are details in the download."""


def page_table(
    frame: pl.DataFrame,
    about: Mapping[str, tuple[str, str]],
    facets: Sequence[str],
    most: int,
    answer: str = "",
) -> JSON:
    """A table that a page filters and sorts.

    Args:
        frame: What it has.
        about: Head and meaning of its columns.
        facets: The columns with a menu, where they differ.
        most: Rows shown at once [1].
        answer: The column that stands out.
    """

    def kind(column: pl.Series) -> str:
        number = "number " if column.dtype.is_numeric() else ""
        return f"{number}{'answer' if column.name == answer else ''}".strip()

    return {
        "columns": [
            {"name": one.name, "head": head, "meaning": meaning, "kind": kind(one)}
            for one in frame
            for head, meaning in [about.get(one.name, (one.name, one.name))]
        ],
        "rows": [list(row) for row in frame.iter_rows()],
        "facets": {
            name: frame[name].unique(maintain_order=True).to_list()
            for name in facets
            if name in frame.columns and frame[name].n_unique() > 1
        },
        "length": most,
    }


def threshold_data(thresholds: pl.DataFrame, columns: Sequence[JSON]) -> JSON:
    """The thresholds of the page: of one sweep along one axis, of a few chips.

    Args:
        thresholds: All of them, as on disk.
        columns: What their columns are.

    Returns:
        `sweep`, `axis`, the `counts` of rows: in the page, of this axis, and in all; and a table as
        of `page_table`, in which the outcome stands for an answer that is no number.
    """
    first = _first_table(thresholds)
    if first is None:
        return {
            "sweep": "",
            "axis": "",
            "counts": [0, 0, 0],
            **page_table(pl.DataFrame(), {}, (), 0),
        }
    sweep, axis = first
    own = thresholds.filter(pl.col("sweep") == sweep, pl.col("axis") == axis)
    names = own["chip"].unique(maintain_order=True).cast(pl.String).to_list()
    chips = [chip for chip in FIRST_CHIPS if chip in names] or names[: len(FIRST_CHIPS)]
    place = (
        pl.col("chip")
        .cast(pl.String)
        .replace_strict(chips, range(len(chips)), default=None, return_dtype=pl.Int64)
    )
    found = own.filter(place.is_not_null()).sort(place, maintain_order=True).head(MOST_ROWS)
    answer = FACTOR if axis in RATES else SIZE
    shown = found.drop({*LEFT_OUT, FACTOR, SIZE} - {answer}, strict=False)
    shown = shown.with_columns(
        pl.col(pl.Categorical, pl.Enum).cast(pl.String), pl.selectors.float().round_sig_figs(DIGITS)
    )
    if SHARDS not in shown.columns or shown[SHARDS].n_unique() == 1:
        shown = shown.drop("network", strict=False)  # over which nothing is sent
    kept = [one.name for one in shown if one.name == answer or one.n_unique() > 1]
    about = {column["name"]: (column["name"], column["meaning"]) for column in columns}
    table = page_table(
        shown.select(name for name in kept if name != "outcome"), about, FACETS, MOST_SHOWN, answer
    )
    at = [column["name"] for column in table["columns"]].index(answer)
    for row, outcome in zip(table["rows"], shown["outcome"], strict=True):
        row[at] = outcome if row[at] is None else row[at]
    counts = [found.height, own.height, thresholds.height]
    return {"sweep": sweep, "axis": axis, "counts": counts, **table}


def _first_table(frame: pl.DataFrame) -> tuple[str, str] | None:
    """The sweep and axis of the page: a size's, if possible of named shapes, the longest."""
    counts = frame.group_by("sweep", "axis", maintain_order=True).agg(
        pl.col("shape").is_not_null().any().alias("named"),
        (~pl.col("axis").cast(pl.String).is_in([SHARDS, *RATES])).all().alias("size"),
        pl.len(),
    )
    first = counts.sort("size", "named", "len", descending=True, maintain_order=True).head(1)
    return next(((str(sweep), str(axis)) for sweep, axis, *_ in first.iter_rows()), None)


# ------------------------------------------------------------ how far off

ENDS = ("p10", "p50", "p90")
"""Quantiles as published timings have them."""

SPLITS = {FIT: "in sample, which a fit uses", SITES: "of sites held out", HELD_OUT: "never fitted"}
"""Words for the splits of a set."""

LACKING = {WITHOUT_ROW: "a row of the model", WITHOUT_ESTIMATE: "an estimate"}
"""Words for what timings lack."""


def measured_views() -> list[list[str]]:
    """How far off published timings are, as texts of rows: what, of how many, and the quantiles."""
    rows = measured_quantiles().rename({"of": "what"}).to_dicts()
    for row in rows:
        kind = "matmuls"
        if row["what"] == STEP:
            unseen = " of models left out of the fit"
            kind = f"served runs{'' if row['over'] == BOUND else unseen}"
        row["what"] = " ".join(each for each in (row["length"], kind) if each)
    return [_view(row) for row in rows]


def run_views(errors: Path) -> list[list[str]]:
    """How far off timings of a run are, as `measured_views`.

    Args:
        errors: Their quantiles, `measured.csv`.
    """
    frame = read_csv(errors).filter(pl.col("shards").is_null(), region="all")
    views = []
    for row in frame.iter_rows(named=True):
        kind = row["model"] or row["collective"] or "matmuls"
        row["what"] = f"{row['set']}: {kind}, {SPLITS[row['split']]}"
        for over in (BOUND, "estimate"):
            ratio = "ratio_lower" if over == BOUND else "ratio_estimate"
            ends = {name: row[f"{ratio}_{end}"] for name, end in zip(ENDS, SPREAD, strict=True)}
            if None not in ends.values():
                n = row["n"] if over == BOUND else row["n_estimate"]
                views.append(_view({**row, **ends, "over": over, "n": n}))
    return views


def lacking_text(skipped: Path) -> str:
    """How many timings of a run lack a row or an estimate, by `measured-skipped.csv`."""
    lacking = read_csv(skipped, infer_schema=False).cast({"timings": pl.Int64})
    rows = lacking.group_by("lacks", maintain_order=True).agg(pl.col("timings").sum()).iter_rows()
    return " ".join(f"{counted(count, 'timing')} without {LACKING[what]}." for what, count in rows)


def _view(row: Mapping[str, Any]) -> list[str]:
    """The texts of a row; what it has no chip, software or dtypes for is of all."""
    software = SOFTWARE.get(row["software"], row["software"])
    return [
        row["what"],
        "all" if row["chip"] is None else chip_label(row["chip"]),
        software or "all",
        row["dtypes"] or "all",
        row["over"],
        counted(row["n"], "timing"),
        *(f"{significant(row[name])} ×" for name in ENDS),
    ]
