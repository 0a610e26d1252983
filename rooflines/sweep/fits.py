"""The calibration of a variant of a sweep, without polars: plans of charts read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.calibration.estimate import Fit
from rooflines.calibration.form import Numbers
from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.model.operation import MATRIX

if TYPE_CHECKING:
    from rooflines.calibration.entries import Fitted, FittedCollective
    from rooflines.catalogue.entries import Calibration
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep

__all__ = ["fit_of"]


def fit_of(sweep: Sweep, chip_variant: ChipVariant) -> Fit | None:
    """The calibration of a variant: of the software that the sweep names, or the chip's own.

    Fits are of the matrix unit and the main memory. Those of collectives are of one over a chip's
    first interconnect.
    """
    chip_rows, variant = chip_variant
    chip, compute = sweep.chips[chip_rows.chip], sweep.combinations[variant.dtypes].compute
    if not sweep.config.calibration:
        own = (chip.calibration or {}).get(compute)
        return Fit(_numbers(own)) if own else None
    matmul = sweep.calibrations.matmul(chip_rows.chip, sweep.config.calibration, compute)
    if matmul is None or (sweep.unit, chip_rows.memory) != (MATRIX, MAIN_MEMORY):
        return None
    collective: FittedCollective | None = None
    transfers = sweep.shardings[variant.sharding].transfers
    if len(transfers) == 1 and chip_rows.networks == tuple(chip.networks)[:1]:
        collective = sweep.calibrations.collective(
            chip_rows.chip, sweep.config.calibration, transfers[0][1]
        )
    return Fit(
        matmul.numbers,
        collective.numbers if collective else None,
        {**_bands(matmul), **(_bands(collective) if collective else {})},
    )


def _bands(entry: Fitted) -> dict[str, tuple[float, float]]:
    return {bound: (float(low), float(high)) for bound, (low, high) in entry.bands.items()}


def _numbers(own: Calibration) -> Numbers:
    """The calibration of a chip's entry, of form `max`."""
    fitted = own.exact
    shares = {name: fitted.shares.get(name, 1) for name in ("math", "memory", "network")}
    return Numbers(
        math=shares["math"],
        memory=shares["memory"],
        overhead_s=fitted.overhead_s,
        network=shares["network"],
    )
