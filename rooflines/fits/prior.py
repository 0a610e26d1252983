"""Priors: where a fit starts, and the fallback for parameters that are not identifiable."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.fits.time_form import Numbers
from rooflines.hardware.dtype_catalogue import dtype_entries

if TYPE_CHECKING:
    from rooflines.fits.calibration_files import Calibrations
    from rooflines.hardware.dtype_catalogue import Format


ORDER = (
    "math",
    "memory",
    "mixed_math",
    "mixed_memory",
    "mixed_depth_s",
    "activation_passes",
    "overhead_s",
    "mixed_activations",
    "sustained",
)
"""Numbers in the table below, by column."""


def _prior(numbers: str) -> Numbers:
    """Numbers in `ORDER`: a start for every number, also those only tried."""
    values = dict(zip(ORDER, map(Fraction, numbers.split()), strict=True))
    return Numbers(Fraction(1), Fraction(1), Fraction(0)).with_numbers(values)


WIDE = _prior("0.76 0.83 0.8 0.8  0.33e-9 0.01 3.2e-6 0.1  0.1")
BYTE = _prior("0.70 0.81 1.0 0.9  0.5e-9  7    5.5e-6 0.15 0.25")
BYTE_IN_BLOCKS = _prior("0.65 0.80 1.0 0.8  0.6e-9  3    5.1e-6 0.9  0.25")
NARROW = _prior("0.49 0.72 1.7 0.35 0.95e-9 4    6.1e-6 0.65 0.4")


WORD, HALF_WORD = 16, 8
"""Dtype widths from which on `WIDE` and `BYTE` hold [bit]."""


def prior_of(compute: str, start: Calibrations | None = None) -> Numbers:
    """Prior for a compute dtype.

    Args:
        compute: The dtype.
        start: Another fit to start from, with one calibration in the dtype; by default typical
            numbers on data-center GPUs, by the dtype's width. They also replace numbers that are
            zero in the other fit.

    Raises:
        RooflinesError: The other fit has no calibration in the dtype, or several.
    """
    typical = _typical(dtype_entries().formats[compute])
    if start is None:
        return typical
    numbers_by_key = {
        key: by_dtype[compute].numbers
        for key, by_dtype in start.calibrations.items()
        if compute in by_dtype
    }
    if len(numbers_by_key) != 1:
        problem = f"has {len(numbers_by_key)} calibrations in {compute}, not one"
        raise RooflinesError("calibrations", problem, "give a file with one")
    (numbers,) = numbers_by_key.values()
    zero = [name for name, number in vars(numbers).items() if not number]
    return numbers.with_numbers({name: getattr(typical, name) for name in zero})


def _typical(compute: Format) -> Numbers:
    if compute.bits >= WORD:
        return WIDE
    if compute.bits < HALF_WORD:
        return NARROW
    return BYTE if compute.block is None else BYTE_IN_BLOCKS
