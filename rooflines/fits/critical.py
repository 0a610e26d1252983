"""From which size on a calibrated operation is compute-bound: closed form, exact to the integer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from rooflines.fits.quantities import whole_tiles
from rooflines.model.costs import evaluate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.fits.estimate import Estimate, Sum
    from rooflines.fits.quantities import Polynomial

COMPUTE = "compute"

Line = tuple[Fraction, Fraction]
"""A constant, and the slope along a size."""

Interval = tuple[Fraction | None, Fraction | None]
"""An open interval; None: without end."""


@dataclass(frozen=True)
class CriticalEstimate:
    """The smallest size at which a compute piece is the largest.

    Attributes:
        size: The size [1]; None: there is none.
        bound: The bound just below it, or for all larger sizes where there is none; None: size 1
            is compute-bound.
    """

    size: int | None
    bound: str | None


def critical_estimate(estimate: Estimate, sizes: Mapping[str, int], dim: str) -> CriticalEstimate:
    """The smallest size along a dimension at which the estimate is compute-bound, exact.

    Every piece is affine in the size, or the least of a few that are. Where rows are computed in
    whole spans, the first row of a span is compute-bound if any row of it is, and there every piece
    is affine in the span's number.

    Args:
        estimate: Of a workload without tiles.
        sizes: The other sizes [1].
        dim: The dimension to solve for.
    """
    step = estimate.span if dim == estimate.row else 1
    counted = {
        other: whole_tiles(size, estimate.span) if other == estimate.row else size
        for other, size in sizes.items()
    }

    def line(total: Sum) -> Line:
        # At the number k of a span, (k - 1) * step + 1 is the size, and k * step is counted.
        constant, slope = _line(total.plain, sizes, dim)
        constant_counted, slope_counted = _line(total.counted, counted, dim)
        return constant + slope * (1 - step) + constant_counted, (slope + slope_counted) * step

    lines = [(piece.bound, [line(each) for each in piece.least]) for piece in estimate.pieces]
    first, bound = _first(lines)
    return CriticalEstimate(None if first is None else (first - 1) * step + 1, bound)


def _line(terms: Polynomial, sizes: Mapping[str, int], dim: str) -> Line:
    """A polynomial along one dimension, in which it is affine."""
    at_zero, at_one = (evaluate(terms, {**sizes, dim: size}) for size in (0, 1))
    return at_zero, at_one - at_zero


def _first(pieces: Sequence[tuple[str, Sequence[Line]]]) -> tuple[int | None, str | None]:
    """The first whole number from 1 on at which a compute piece is the largest.

    Args:
        pieces: The bound of each, and the lines of which the least counts; of compute, one line.

    Returns:
        The number, and the bound of the piece that is larger just below it; None without one, and
        the bound that stays larger.
    """
    computes = [line for bound, lines in pieces if bound == COMPUTE for line in lines]
    others = [
        (bound, _common([_larger(line, computes) for line in lines]))
        for bound, lines in pieces
        if bound != COMPUTE
    ]
    at, below = Fraction(1), None
    while covering := [(bound, end) for bound, (begin, end) in others if _inside(at, begin, end)]:
        bound, end = covering[0]
        if end is None:
            return None, bound
        at, below = Fraction(ceil(end)), bound
    return int(at), below


def _common(intervals: Sequence[Interval]) -> Interval:
    """What open intervals have in common."""
    begins = [begin for begin, _ in intervals if begin is not None]
    ends = [end for _, end in intervals if end is not None]
    return max(begins, default=None), min(ends, default=None)


def _inside(at: Fraction, begin: Fraction | None, end: Fraction | None) -> bool:
    """Whether a number lies strictly within an interval; None: without end."""
    return (begin is None or begin < at) and (end is None or at < end)


def _larger(line: Line, computes: Sequence[Line]) -> Interval:
    """The open interval in which a line is larger than all compute lines; None: without end."""
    begins: list[Fraction] = []
    ends: list[Fraction] = []
    for constant, slope in computes:
        lead, growth = line[0] - constant, line[1] - slope
        if growth:
            (begins if growth > 0 else ends).append(-lead / growth)
        elif lead <= 0:
            return Fraction(0), Fraction(0)
    return max(begins, default=None), min(ends, default=None)
