"""Data page: thresholds to filter, errors at timings, and downloads."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.files import read_csv
from rooflines.basics.text import counted, significant
from rooflines.charts.kit.chart_text import chip_label
from rooflines.hardware.timing_errors import BOUND, STEP, measured_quantiles
from rooflines.measured.join import WITHOUT_ESTIMATE, WITHOUT_ROW
from rooflines.measured.timing_summary import FIT, HELD_OUT, SITES, SPREAD
from rooflines.site.calibration_data import SOFTWARE
from rooflines.site.explorer import DEFAULT_CHIPS
from rooflines.site.opening import run_chips
from rooflines.theory.resources import RATES
from rooflines.theory.sharding import SHARDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rooflines.basics.yaml_file import JSON

MAX_ROWS = 20_000
"""Maximum thresholds on the page [1]; the download has all."""

DIGITS = 6
"""Significant digits of real numbers on the page [1]; the download has all."""

MAX_SHOWN = 200
"""Maximum thresholds shown at once [1]; menus and search find the rest."""

FACETS = ("chip", "dtypes", "share", "sharding", "shards", "memory", "network", "limit")
"""Threshold columns with a menu."""

FACTOR, SIZE = "critical_exact", "critical"
"""Column with the answer: the factor on a rate, or the size or chip count."""

LEFT_OUT = ("sweep", "axis", "critical_memory", "critical_network", "limit_intensity")
"""Columns that the page leaves out: two name the table, the others are details in the download."""


HEADS = {
    "critical": "compute-bound from",
    "critical_exact": "factor",
    "share": "share of peak",
    "plateau_estimate": "90% of plateau from (estimate)",
    "shards": "chips",
}
"""Heads of threshold columns on the page; others have their name, with spaces."""


def page_table(
    frame: pl.DataFrame,
    about: Mapping[str, tuple[str, str]],
    facets: Sequence[str],
    length: int,
    answer: str = "",
) -> JSON:
    """Table that a page filters and sorts.

    Args:
        frame: Its rows.
        about: Head and meaning by column.
        facets: Columns with a menu if they have several values.
        length: Rows shown at once [1].
        answer: The column that stands out.
    """

    def kind(column: pl.Series) -> str:
        number = "number " if column.dtype.is_numeric() else ""
        return f"{number}{'answer' if column.name == answer else ''}".strip()

    return {
        "columns": [
            {"name": column.name, "head": head, "meaning": meaning, "kind": kind(column)}
            for column in frame
            for head, meaning in [about.get(column.name, (column.name, column.name))]
        ],
        "rows": [list(row) for row in frame.iter_rows()],
        "facets": {
            name: frame[name].unique(maintain_order=True).to_list()
            for name in facets
            if name in frame.columns and frame[name].n_unique() > 1
        },
        "length": length,
    }


def threshold_data(thresholds: pl.DataFrame, columns: Sequence[JSON]) -> JSON:
    """Thresholds on the page: one sweep, one axis, chips of the run's own first.

    All chips are there as far as `MAX_ROWS` reaches, each with all its rows.

    Args:
        thresholds: All thresholds, as on disk.
        columns: Records about their columns.

    Returns:
        `sweep`, `axis`, `counts`: rows on the page, along this axis, and in total; `left_out`:
        chips whose rows are in the download alone; and a table as from `page_table`, with the
        outcome in place of a missing number.
    """
    first = _first_table(thresholds)
    if first is None:
        return {
            "sweep": "",
            "axis": "",
            "counts": [0, 0, 0],
            "left_out": 0,
            **page_table(pl.DataFrame(), {}, (), 0),
        }
    sweep, axis = first
    axis_rows = thresholds.filter(pl.col("sweep") == sweep, pl.col("axis") == axis)
    rows_by_chip = dict(axis_rows.group_by(pl.col("chip").cast(pl.String)).len().iter_rows())
    names = axis_rows["chip"].unique(maintain_order=True).cast(pl.String).to_list()
    ordered = run_chips(names, DEFAULT_CHIPS)
    ends = accumulate(rows_by_chip[chip] for chip in ordered)
    chips = [chip for chip, end in zip(ordered, ends, strict=True) if end <= MAX_ROWS]
    chips = chips or ordered[:1]
    place = (
        pl.col("chip")
        .cast(pl.String)
        .replace_strict(chips, range(len(chips)), default=None, return_dtype=pl.Int64)
    )
    page_rows = (
        axis_rows.filter(place.is_not_null()).sort(place, maintain_order=True).head(MAX_ROWS)
    )
    answer = FACTOR if axis in RATES else SIZE
    shown = page_rows.drop({*LEFT_OUT, FACTOR, SIZE} - {answer}, strict=False)
    shown = shown.with_columns(
        pl.col(pl.Categorical, pl.Enum).cast(pl.String), pl.selectors.float().round_sig_figs(DIGITS)
    )
    if SHARDS not in shown.columns or shown[SHARDS].n_unique() == 1:
        shown = shown.drop("network", strict=False)  # over which nothing is sent
    names_shown = [
        series.name for series in shown if series.name == answer or series.n_unique() > 1
    ]
    about = {column["name"]: (head_of(column["name"]), column["meaning"]) for column in columns}
    table = page_table(
        shown.select(name for name in names_shown if name != "outcome"),
        about,
        FACETS,
        MAX_SHOWN,
        answer,
    )
    at = [column["name"] for column in table["columns"]].index(answer)
    for row, outcome in zip(table["rows"], shown["outcome"], strict=True):
        row[at] = outcome if row[at] is None else row[at]
    counts = [page_rows.height, axis_rows.height, thresholds.height]
    return {
        "sweep": sweep,
        "axis": axis,
        "counts": counts,
        "left_out": len(ordered) - len(chips),
        **table,
    }


def head_of(column: str) -> str:
    """Head of a threshold column in words; its name is in the download."""
    return HEADS.get(column, column.replace("_", " "))


def _first_table(frame: pl.DataFrame) -> tuple[str, str] | None:
    """Sweep and axis on the page: a size's axis, if possible with named shapes, the longest."""
    counts = frame.group_by("sweep", "axis", maintain_order=True).agg(
        pl.col("shape").is_not_null().any().alias("named"),
        (~pl.col("axis").cast(pl.String).is_in([SHARDS, *RATES])).all().alias("size"),
        pl.len(),
    )
    first = counts.sort("size", "named", "len", descending=True, maintain_order=True).head(1)
    return next(((str(sweep), str(axis)) for sweep, axis, *_ in first.iter_rows()), None)


# ------------------------------------------------------------ how far off

ENDS = ("p10", "p50", "p90")
"""Columns for quantiles in published timings."""

SPLITS = {FIT: "in sample, which a fit uses", SITES: "of sites held out", HELD_OUT: "never fitted"}
"""Words for the splits of a set of timings."""

LACKING = {WITHOUT_ROW: "a row of the model", WITHOUT_ESTIMATE: "an estimate"}
"""Words for what timings lack."""


def measured_views() -> list[list[str]]:
    """Quantiles for published timings, measured / predicted time, as text rows."""
    rows = measured_quantiles().rename({"subject": "what"}).to_dicts()
    for row in rows:
        kind = "matmuls"
        if row["what"] == STEP:
            unseen = " of models left out of the fit"
            kind = f"served runs{'' if row['over'] == BOUND else unseen}"
        row["what"] = " ".join(part for part in (row["length"], kind) if part)
    return [_view(row) for row in rows]


def run_views(errors: Path) -> list[list[str]]:
    """Quantiles for a run's timings, as in `measured_views`.

    Args:
        errors: The quantiles, `measured.csv`.
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
    """Counts: timings without a row or an estimate, as sentences, from `measured-skipped.csv`."""
    lacking = read_csv(skipped, infer_schema=False).cast({"timings": pl.Int64})
    rows = lacking.group_by("lacks", maintain_order=True).agg(pl.col("timings").sum()).iter_rows()
    return " ".join(f"{counted(count, 'timing')} without {LACKING[lack]}." for lack, count in rows)


def _view(row: Mapping[str, Any]) -> list[str]:
    """Text row; a null chip, software or dtypes reads "all"."""
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
