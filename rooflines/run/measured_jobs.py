"""The jobs of measurements: timings joined with the model, and their summary."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rooflines.basics.files import read_parquet
from rooflines.dictionary.columns import MEASURED_SKIPPED, measured_columns
from rooflines.evaluation.row_frames import skipped_frame
from rooflines.measured.join import WITHOUT_ROW
from rooflines.measured.timing_sets import measured_set_of
from rooflines.measured.timing_summary import measured_frame, summaries, timings_lacking
from rooflines.results.records import recorded
from rooflines.results.tables import metadata_of, write_csv, write_parquet
from rooflines.run.jobs import about
from rooflines.sweep.recipes import fits_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@recorded
def write_measured(spec: str, path: str | Path) -> str:
    """Write the timings of a set joined with the model, as Parquet.

    Args:
        spec: What they depend on, from `Plan.spec`.
        path: The Parquet file to write; its metadata have the timings without a row or an estimate.

    Returns:
        A line for the log: how many timings.

    Raises:
        RooflinesError: The timings cannot be joined.
    """
    recipes = json.loads(spec)["measurements"]
    measured_set = measured_set_of(recipes[0])
    rows = measured_set.join()
    frame = measured_frame(rows)
    skipped = measured_set.skipped(rows)
    metadata = about(recipes, measured_columns(frame.columns), skipped=skipped)
    write_parquet(frame.lazy(), path, metadata)
    return f"{frame.height:,} timings; left out: {timings_lacking(WITHOUT_ROW, skipped):,}"


@recorded
def write_measured_summary(
    spec: str, tables: Sequence[str], path: str | Path, skipped: str | Path
) -> None:
    """Write errors by set, and timings without a row or an estimate, as CSV.

    Args:
        spec: What they depend on, from `Plan.spec`.
        tables: Tables by set, in the order in `spec`.
        path: CSV file with the errors.
        skipped: CSV file with timings without a row or an estimate.
    """
    recipes = json.loads(spec)["measurements"]
    frames = [
        (
            recipe["measurement"],
            read_parquet(table),
            recipe["config"]["held_out"],
            fits_of(recipe),
        )
        for recipe, table in zip(recipes, tables, strict=True)
    ]
    rows = [row for table in tables for row in metadata_of(table)["skipped"]]
    write_csv(summaries(frames), path)
    write_csv(skipped_frame(rows, MEASURED_SKIPPED), skipped)
