"""Sets of timings as tables, with the columns of the dictionary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.measured.summary import summary
from rooflines.model.measured_columns import (
    MEASURED_SKIPPED,
    MEASURED_SUMMARY,
    measured_columns,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.fits.entries import Calibrations
    from rooflines.measured.join import JoinedTimings


def measured_frame(found: JoinedTimings) -> pl.DataFrame:
    """The timings of a set joined with the model, with columns in the order of the dictionary."""
    return found.frame.select(column.name for column in measured_columns(found.frame.columns))


def summaries(sets: Iterable[tuple[str, pl.DataFrame, bool, Calibrations]]) -> pl.DataFrame:
    """The errors of sets, with the columns of `MEASURED_SUMMARY`.

    Args:
        sets: Their names, their timings joined with the model, whether no fit uses them, and the
            calibrations by which they were joined.
    """
    frames = [
        summary(frame, fits, never_fitted=never_fitted).with_columns(set=pl.lit(name))
        for name, frame, never_fitted, fits in sets
    ]
    return pl.concat(frames).select(column.name for column in MEASURED_SUMMARY)


def timings_lacking(what: str, rows: Iterable[JSON]) -> int:
    """Timings without a row or without an estimate [1].

    Args:
        what: `row` or `estimate`.
        rows: From `MeasuredSet.skipped`.
    """
    return sum(row["timings"] for row in rows if row["lacks"] == what)


def skipped_frame(rows: Sequence[JSON]) -> pl.DataFrame:
    """Timings without a row or an estimate, counted, with the columns of `MEASURED_SKIPPED`."""
    schema = {column.name: pl.Int64 if column.unit else pl.String for column in MEASURED_SKIPPED}
    return pl.DataFrame(
        [{**dict.fromkeys(schema), **row} for row in rows], schema=schema, orient="row"
    )
