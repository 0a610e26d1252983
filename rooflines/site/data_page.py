"""The page of data: thresholds to filter, how far off timings are, and files to take along."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.files import read_csv, read_parquet, scan_parquet
from rooflines.basics.text import counted, significant
from rooflines.catalogue.measured import BOUND, STEP, measured_quantiles
from rooflines.charts.kit.text import chip_label
from rooflines.measured.join import UNEXPLAINED, WITHOUT_ESTIMATE, WITHOUT_ROW
from rooflines.measured.summary import spread
from rooflines.model.resources import RATES
from rooflines.model.sharding import SHARDS
from rooflines.results.folders import MEASURED_SUMMARIES
from rooflines.results.tables import NO_TEXT, csv_text, scan
from rooflines.site.explorer import FIRST_CHIPS
from rooflines.site.fits import SOFTWARE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
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


# ------------------------------------------------------------ timings of a run

FILES = dict(
    zip(MEASURED_SUMMARIES, ("Errors as CSV", "Timings left out, and why, as CSV"), strict=True)
)
"""Downloads of errors, and their texts."""

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


def far_view(skipped: Path, timings: Sequence[Path]) -> JSON:
    """How far off timings of a run are.

    Args:
        skipped: The timings without a row or an estimate, `measured-skipped.csv`.
        timings: The sets of timings joined with the model, as Parquet.

    Returns:
        `setting`, what the numbers are, and of how many timings; the `sets` of timings; and the
        `files`, paths and texts.
    """
    frames = {path.stem: read_parquet(path) for path in timings}
    lacking = read_csv(skipped, infer_schema=False).cast({"timings": pl.Int64})
    bare, unread = (
        int(lacking.filter(lacks=what)["timings"].sum()) for what in (WITHOUT_ESTIMATE, WITHOUT_ROW)
    )
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
    return {"setting": setting.rstrip(), "sets": sets, "files": files}


def _foreign(frame: pl.DataFrame) -> int:
    """Timings whose estimate is by the calibration of other software than theirs [1]."""
    fitted = frame.filter(pl.col("calibration").str.contains("/"))
    softwares = pl.col("calibration").str.split("/").list.last().str.split("+")
    return fitted.filter(~softwares.list.contains(pl.col("software"))).height


def _set_view(name: str, frame: pl.DataFrame) -> SetView:
    """A set of timings joined with the model, in words."""
    kind = next(kind for column, kind in KINDS.items() if column in frame.columns)
    spreads = [frame.select(**spread(each)).row(0) for each in ("ratio_lower", "ratio_estimate")]
    texts = [None if None in ends else _times(*ends) for ends in spreads]
    below, unexplained = frame["reason"].count(), frame.filter(reason=UNEXPLAINED).height
    text = f"{below:,} below the bound, {unexplained:,} unexplained" if below else ""
    return SetView(name, counted(frame.height, kind), text, *texts)


def _times(low: float, middle: float, high: float) -> tuple[str, str]:
    """A median, and the range of eight values in ten; none of values that are the same."""
    ends = f"{significant(low)} to {significant(high)} ×" if low < high else ""
    return f"{significant(middle)} ×", ends


# ------------------------------------------------------------ files

MOST_CSV_ROWS = 10_000
"""Rows up to which a table is offered as CSV, too [1]; as gzip about 1.5 MB."""


class Download(NamedTuple):
    """A table as a file of the site.

    Attributes:
        text: What it is.
        stem: Its path without the suffix.
        path: The table on disk, as Parquet.
        csv: Whether it is offered as CSV, too.
    """

    text: str
    stem: str
    path: Path
    csv: bool


def downloads_of(thresholds: Path, models: Sequence[Path]) -> list[Download]:
    """The downloads of thresholds, and of those of whole models if there are any."""
    named = [("All thresholds", "data/thresholds", thresholds)]
    named += [("Thresholds of whole models", "data/model-thresholds", path) for path in models]
    rows = [scan_parquet(path).select(pl.len()).collect().item() for *_, path in named]
    return [Download(*one, count <= MOST_CSV_ROWS) for one, count in zip(named, rows, strict=True)]


def download_files(download: Download) -> Iterator[tuple[str, bytes]]:
    """The files of a download: name and content."""
    yield f"{download.stem}.parquet", download.path.read_bytes()
    if download.csv:
        text = csv_text(scan(download.path).collect(), NO_TEXT)
        yield f"{download.stem}.csv.gz", gzip.compress(text.encode(), mtime=0)
