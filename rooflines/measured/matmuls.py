"""Rows of timed matmuls: those of a sweep, with the sizes of the timings in place of a grid."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from rooflines.catalogue.dtypes import name_of
from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.catalogue.unsupported import missing_level_reason, missing_peak_reason
from rooflines.fits.timings import DTYPES, SIZES
from rooflines.model.operation import NAMED, OPERANDS
from rooflines.model.resources import RESOURCES
from rooflines.settings.schema import SweepConfig
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.operation_rows import operation_stages
from rooflines.sweep.operations import Sweep
from rooflines.sweep.sheet import Sheet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.catalogue.dtypes import DtypeFile
    from rooflines.catalogue.entries import Chip
    from rooflines.measured.catalogues import Catalogues

MATMUL = NAMED["matmul"]

MATMUL_METRICS = (
    "flops",
    "memory_bytes",
    "memory_intensity",
    "footprint_bytes",
    "t_lower_s",
    "t_estimate_s",
    "t_estimate_p10_s",
    "t_estimate_p90_s",
    "bound",
)
"""The columns of a sweep's table that a timing is joined with."""


NOMINAL = {resource.name: 1 for resource in RESOURCES}
"""Efficiencies of a sweep at the nominal rates [1]."""


KEYS = (*OPERANDS, "compute")
"""The keys of a dtype combination, in the order of `DTYPES`."""


def with_dtypes(frame: pl.DataFrame, dtypes: DtypeFile) -> pl.DataFrame:
    """Adds the name of the dtype combination, `dtypes`, to timings of known dtypes."""
    catalogue = {
        tuple(entry.dtypes.values()): name for name, entry in reversed(dtypes.combinations.items())
    }
    stored = frame.select(DTYPES).unique(maintain_order=True)
    names = [catalogue.get(row) or name_of(*row) for row in stored.iter_rows()]
    named = stored.with_columns(pl.Series("dtypes", names, pl.String))
    return frame.join(named, on=DTYPES, how="left", maintain_order="left")


def missing_bound_reason(chip: Chip, compute: str) -> str | None:
    """The reason why a chip has no bound for timings in a compute dtype; None where it has one."""
    return missing_peak_reason(chip, MATMUL.unit, compute) or missing_level_reason(
        chip, MAIN_MEMORY
    )


def matmul_rows(frame: pl.DataFrame, catalogues: Catalogues) -> Iterator[pl.DataFrame]:
    """Timings with the metrics of their row.

    Args:
        frame: Timings with `dtypes`; their chips lack nothing.
        catalogues: What gives the rows.

    Yields:
        The timings of one chip, software and compute dtype with the columns of `MATMUL_METRICS` and
        `calibration`, nominal: without efficiencies. Estimates are by the calibration of the
        software; without, by the chip's own.
    """
    contents = pl.col("contents") if "contents" in frame.columns else pl.lit(None, pl.String)
    keys = ("chip", "software", "compute", contents.alias("#contents"))
    for (chip, software, compute, stated), part in frame.group_by(keys, maintain_order=True):
        stored = part.select("dtypes", *DTYPES).unique(maintain_order=True)
        forms = [
            name if name in catalogues.dtypes.combinations else dict(zip(KEYS, names, strict=True))
            for name, *names in stored.iter_rows()
        ]
        included = None if stated is None else str(stated)
        fits, of = catalogues.fits, (str(chip), str(software), str(compute))
        named = [] if software is None else [fits.variant(*of, included)]
        fitted = catalogues.fits.matmul(str(chip), named, str(compute))
        sweep = _sweep(str(chip), forms, named if fitted else None, catalogues)
        label = pl.lit(f"{chip}/{named[0]}" if fitted else chip)
        has_one = pl.col("t_estimate_s").is_not_null()
        yield _rows(part, sweep).with_columns(calibration=pl.when(has_one).then(label)).collect()


def _sweep(
    chip: str,
    forms: list[str | dict[str, str]],
    softwares: list[str] | None,
    catalogues: Catalogues,
) -> Sweep:
    """The sweep of a chip's timings; of its grid only the dimensions count."""
    config = SweepConfig.model_validate(
        {
            "operation": MATMUL.name,
            "grid": dict.fromkeys(SIZES, 1),
            "dtypes": forms,
            "chips": [chip],
            "memory": [MAIN_MEMORY],
            "efficiency": NOMINAL,
            "calibration": softwares,
            "thresholds": [],
        }
    )
    return checked_sweep(
        Sweep("measured", config, catalogues.chips, catalogues.dtypes, catalogues.fits)
    )


def _rows(part: pl.DataFrame, sweep: Sweep) -> pl.LazyFrame:
    """The timings of one chip with the metrics of their row."""
    (block,) = sweep.blocks
    sheet = Sheet([replace(block, before=(), after=())])
    rows = sheet.rows_of(part.lazy(), operation_stages(sheet, block.cases), "dtypes")
    return rows.select(*part.columns, *MATMUL_METRICS)
