"""The calibration of a variant of a sweep, without polars: plans of charts read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.fits.choice import CalibrationChoice

if TYPE_CHECKING:
    from rooflines.fits.choice import CalibrationFit
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep


def fit_of(sweep: Sweep, chip_variant: ChipVariant) -> CalibrationFit | None:
    """The calibration of a variant; None without."""
    chip_rows, variant = chip_variant
    choice = CalibrationChoice(
        sweep.calibrations,
        sweep.config.calibration or (),
        chip_rows.chip,
        sweep.chips[chip_rows.chip],
        sweep.unit,
        chip_rows.memory,
        chip_rows.networks,
    )
    kinds = [kind for _, kind in sweep.shardings[variant.sharding].transfers]
    compute = sweep.combinations[variant.dtypes].compute
    return choice.fit(compute, kinds[0] if len(kinds) == 1 else None)
