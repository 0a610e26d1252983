"""Rows for timed kernels: works, bound and estimate, as a sweep has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.evaluation.operation_rows import ESTIMATES
from rooflines.fits.calibration_choice import CalibrationChoice
from rooflines.fits.fit_errors import with_band
from rooflines.fits.fitting import with_estimate_errors
from rooflines.fits.nominal import TIMED_OPERATION, nominal_times
from rooflines.fits.timings import COLLECTIVE, DTYPES, EAGER, MATMUL_TIMINGS
from rooflines.hardware.dtype_catalogue import combination_name
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.hardware.support import (
    interconnects,
    missing_level_reason,
    missing_peak_reason,
    missing_route_reason,
)
from rooflines.theory.operation import MATRIX
from rooflines.theory.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooflines.fits.timings import TimedKind
    from rooflines.hardware.dtype_catalogue import DtypeFile
    from rooflines.hardware.entries import Chip
    from rooflines.measured.catalogues import Catalogues

METRICS = (
    "flops",
    "memory_bytes",
    "memory_intensity",
    "footprint_bytes",
    "network_bytes",
    "t_lower_s",
    "t_strict_s",
    *ESTIMATES,
    "bound",
    "calibration",
)
"""Columns that a timing is joined with, as many as its kind has."""

NOMINAL_SHARES = {resource.name: 1 for resource in RESOURCES}
"""Efficiencies in a sweep at nominal rates [1]."""


def with_dtypes(frame: pl.DataFrame, dtypes: DtypeFile) -> pl.DataFrame:
    """Add the dtype combination's name, `dtypes`, to timings with known dtypes."""
    catalogue = {
        tuple(entry.dtypes.values()): name for name, entry in reversed(dtypes.combinations.items())
    }
    stored = frame.select(DTYPES).unique(maintain_order=True)
    names = [catalogue.get(row) or combination_name(*row) for row in stored.iter_rows()]
    dtype_names = stored.with_columns(pl.Series("dtypes", names, pl.String))
    return frame.join(dtype_names, on=DTYPES, how="left", maintain_order="left")


def missing_bound_reason(chip: Chip, compute: str) -> str | None:
    """Reason why a chip has no bound for timings in a compute dtype; None where it has one."""
    return missing_peak_reason(chip, TIMED_OPERATION.unit, compute) or missing_level_reason(
        chip, MAIN_MEMORY
    )


def missing_network_reason(chip: Chip, shards: int) -> str | None:
    """Reason why a chip's first interconnect cannot join the chips; None where it can."""
    if shards == 1:
        return "no collective on one chip"
    name, links, reason = interconnects(chip, None)
    return reason or missing_route_reason([str(name)], links, (shards,))


def missing_row_reason(kind: TimedKind) -> tuple[str, Callable[[Chip, Any], str | None]]:
    """Column that decides if a chip has a row, and a function for the reason against it."""
    if kind is COLLECTIVE:
        return "shards", missing_network_reason
    return "compute", missing_bound_reason


def kernel_rows(
    frame: pl.DataFrame, kind: TimedKind, catalogues: Catalogues
) -> Iterator[pl.DataFrame]:
    """Timings with their row's metrics.

    Args:
        frame: Timings in one kind; their chips lack nothing.
        kind: The timings' kind.
        catalogues: Chips, dtypes and calibrations behind the rows.

    Yields:
        Timings on one chip and software with the columns in `METRICS`, nominal: without
        efficiencies. Estimates are by the software's calibration; without, by the chip's own.
    """
    telling = "contents" if kind is MATMUL_TIMINGS else "launch"
    keys = ["chip", "software", kind.fit_by, *([telling] if telling in frame.columns else [])]
    for part in frame.partition_by(keys, maintain_order=True):
        row = part.row(0, named=True)
        chip, software = row["chip"], row["software"]
        rows = nominal_times(part, kind, catalogues.chips[chip])
        softwares = [] if software is None else [software]
        if kind is MATMUL_TIMINGS and softwares:
            stated_contents = row.get("contents")
            softwares = [catalogues.fits.variant(chip, software, row["compute"], stated_contents)]
        fit = _choice(chip, softwares, catalogues).fit_by_name(kind.fits, row[kind.fit_by])
        if row.get("launch") == EAGER:  # fits of collectives are of graphs
            fit = None
        if fit is None and softwares and kind is MATMUL_TIMINGS:
            softwares, fit = [], _choice(chip, [], catalogues).fit(row["compute"])
        if fit is not None:
            rows = with_band(with_estimate_errors(rows, fit.numbers), fit.bands, fit.reach)
        none = {name: pl.lit(None, pl.Float64) for name in ESTIMATES if name not in rows.columns}
        label = "/".join([chip, *softwares]) if fit else None
        rows = rows.with_columns(**none, calibration=pl.lit(label, pl.String))
        if kind is not COLLECTIVE:
            rows = rows.with_columns(memory_intensity=pl.col("flops") / pl.col("memory_bytes"))
        yield rows.select(*part.columns, *(name for name in METRICS if name in rows.columns))


def _choice(chip: str, softwares: list[str], catalogues: Catalogues) -> CalibrationChoice:
    """Calibrations that apply to timings on a chip."""
    entry = catalogues.chips[chip]
    networks = tuple(entry.networks)[:1]
    return CalibrationChoice(catalogues.fits, softwares, chip, entry, MATRIX, MAIN_MEMORY, networks)
