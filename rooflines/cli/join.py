"""`rooflines measured join`: timings beside the bound and the estimate of the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rooflines.basics.errors import RooflinesError, close_to, printable
from rooflines.basics.file_kinds import file_kind
from rooflines.basics.text import counted
from rooflines.cli import output
from rooflines.config.measurement_fields import MeasurementConfig
from rooflines.dictionary.columns import measured_columns
from rooflines.fits.calibration_files import (
    merge_calibrations,
    read_calibrations,
    shipped_calibrations,
)
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.measured.catalogues import Catalogues
from rooflines.measured.join import NO_CALIBRATION
from rooflines.measured.timing_sets import checked_set
from rooflines.measured.timing_summary import measured_frame
from rooflines.results.tables import write_csv, write_parquet
from rooflines.run.jobs import about

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.measured.join import JoinedTimings
    from rooflines.measured.timing_sets import MeasuredSet

MAX_ROWS = 20
"""Timings that are shown [1]; CSV, JSON and files have all."""

MAX_REASONS = 10
"""Groups of timings without a row or an estimate that are shown, the largest ones [1]."""

SHOWN = {
    "chip": "chip",
    "software": "software",
    "what": "what",
    "seconds": "measured",
    "t_lower_s": "bound",
    "ratio_lower": "measured/bound",
    "reason": "why below",
    "t_estimate_s": "estimate",
    "ratio_estimate": "measured/estimate",
}
"""Column titles on a screen, by column."""


def timings_options(function: click.decorators.FC) -> click.decorators.FC:
    """Add the options that choose timings, calibrations and chips."""
    value = "Only rows with this value; a column that the table lacks gets it."
    where = click.option("--where", multiple=True, metavar="COLUMN=VALUE", help=value)
    fits = "Fits that win over those of the package."
    calibrations = click.option("--calibrations", multiple=True, metavar="FILE", help=fits)
    return where(calibrations(output.config_option(function)))


@click.command("join", cls=output.WithExamples)
@click.argument("table")
@timings_options
@output.out_options("Write all columns as .parquet or .csv.")
@output.prints_frame
def command(  # noqa: PLR0913, the options
    *,
    table: str,
    where: Sequence[str],
    calibrations: Sequence[str],
    config: str | None,
    out: str | None,
    force: bool,
) -> output.Printed:
    """Join each timing of TABLE with the bound and the estimate of the model.

    TABLE is as of `rooflines measured calibrate`, or has a row for each run of a served model. A
    time below the bound has its reason: operands in a cache, a clock above that of the peak, or
    none. `rooflines list columns` explains the columns.

    Examples:
        rooflines measured join timings.csv
        rooflines measured join gemm_perf.parquet --where chip=h100-sxm -o joined.parquet
        rooflines measured join served.csv --calibrations mine.yaml --csv > joined.csv
    """
    form = None
    if out is not None:
        form = output.format_of(out, ["parquet", "csv"])
        output.check_new(out, force=force)
    timing_set, joined = joined_table(table, where, calibrations, config)
    frame = measured_frame(joined)
    if out is not None and form == "csv":
        write_csv(frame, out)
    elif out is not None:
        metadata = about([], measured_columns(frame.columns), skipped=timing_set.skipped(joined))
        write_parquet(frame.lazy(), out, metadata)
    return frame, _text(timing_set, joined)


def joined_table(
    table: str, where: Sequence[str], calibrations: Sequence[str], config: str | None
) -> tuple[MeasuredSet, JoinedTimings]:
    """Timings in a table as a set, and joined with the model.

    Args:
        table: The path of the table.
        where: Values of columns, each `column=value`.
        calibrations: Paths of further calibrations, which win.
        config: The path of a config with chips and calibrations.

    Raises:
        RooflinesError: A file or a value is wrong, or no timing has a row.
    """
    chosen = dict(word.split("=", 1) for word in where if "=" in word)
    for word in where:
        if "=" not in word:
            fix = "write --where chip=h100-sxm"
            raise RooflinesError("--where", f"is {word!r}, which names no value", fix)
    entries = output.catalogues_of(config)
    fits = merge_calibrations(
        [entries.calibrations or shipped_calibrations(), *map(read_calibrations, calibrations)]
    )
    catalogues = Catalogues(entries.chips, dtype_entries(), fits)
    path, fields = Path(table), MeasurementConfig.model_validate({"file": table, "where": chosen})
    timing_set = checked_set(path.stem, fields, path, catalogues)
    return timing_set, timing_set.join()


def counts(timing_set: MeasuredSet, joined: JoinedTimings) -> list[str]:
    """Counts of timings with a bound, with an estimate, and below the bound, with reasons."""
    frame = joined.frame
    below = frame.filter(frame["reason"].is_not_null())
    estimated = frame.height - frame["t_estimate_s"].null_count()
    kind = file_kind(timing_set.path)
    named = f"{timing_set.timings.file}, {kind.name}" if kind else timing_set.timings.file
    head = (
        f"{named}: {counted(frame.height, 'timing')} with a bound, {estimated:,} with "
        f"an estimate, {below.height:,} below the bound"
    )
    reasons = below["reason"].value_counts(sort=True).iter_rows()
    lines = [head, *(f"  {number:,} below: {reason}" for reason, number in reasons)]
    skipped = timing_set.skipped(joined)
    for row in sorted(skipped, key=lambda row: -row["timings"])[:MAX_REASONS]:
        keys = ("chip", "software", "dtypes", "collective")
        case = ", ".join(str(row[name]) for name in keys if row.get(name))
        why = f"{case}: {row['reason']}" if case else f"they {row['reason']}"
        close = close_to(str(row.get("software")), timing_set.catalogues.fits.softwares)
        if row["reason"] == NO_CALIBRATION and row["software"] not in close:
            why += "".join(f"; close to it: {name}" for name in close[:1])
        lines.append(f"  {row['timings']:,} without {row['lacks']}: {why}")
    if len(skipped) > MAX_REASONS:
        lines.append(f"  and {len(skipped) - MAX_REASONS} smaller groups without one")
    if timing_set.timings.unread:
        lines.append(f"  columns not read: {', '.join(map(printable, timing_set.timings.unread))}")
    lines += [f"  assumed: {assumption}" for assumption in timing_set.timings.assumed]
    return lines + [f"  {note}" for note in timing_set.timings.device_notes]


def _text(timing_set: MeasuredSet, joined: JoinedTimings) -> str:
    """Counts, then the first timings."""
    frame = joined.frame.head(MAX_ROWS)
    rows = [{**row, "what": _timing_label(row)} for row in frame.to_dicts()]
    more = joined.frame.height - frame.height
    lines = [*counts(timing_set, joined), "", output.table(SHOWN, rows)]
    return "\n".join([*lines, *([f"... {more:,} more: --csv or -o FILE"] if more else [])])


def _timing_label(row: dict[str, float | None]) -> str:
    """Model, collective or dtypes in a timing, and its sizes."""
    parts = [str(row[name]) for name in ("model", "collective", "dtypes") if row.get(name)]
    sizes = [f"{name}={row[name]:,}" for name in ("B", "S", "D", "F") if row.get(name)]
    sizes += [f"{name}={row[name]:,}" for name in ("shards", "bytes") if row.get(name)]
    return " ".join([*parts, *sizes])
