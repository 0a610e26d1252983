"""The software whose calibration gives an estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.fits.entries import Calibrations


def software_of(calibrations: Calibrations, chip: str, named: Sequence[str], compute: str) -> str:
    """The software whose calibration of matmuls counts.

    Args:
        calibrations: By chip and software.
        chip: The chip's id.
        named: Software, the first with a fit counts.
        compute: The compute dtype.

    Raises:
        RooflinesError: None has a calibration of the chip and the compute dtype.
    """
    for software in named:
        if calibrations.matmul(chip, [software], compute):
            return software
    problem = f"is {', '.join(named)}, without a calibration of {chip} in {compute}"
    raise RooflinesError("calibration", problem, "choose another, or leave it out")
