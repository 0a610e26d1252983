"""From which size on a calibrated operation is compute-bound: closed form, exact to the integer."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from rooflines.calibration.form import pieces
from rooflines.calibration.quantities import whole_tiles
from rooflines.model.costs import evaluate
from rooflines.model.resources import MATH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.calibration.form import Numbers
    from rooflines.calibration.quantities import Polynomial

__all__ = ["CriticalEstimate", "critical_estimate"]

COMPUTE = "compute"

Line = tuple[Fraction, Fraction]
"""A constant, and the slope along a size."""


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


def critical_estimate(
    numbers: Numbers, of: Mapping[str, Polynomial], sizes: Mapping[str, int], dim: str, row: str
) -> CriticalEstimate:
    """The smallest size along a dimension at which the estimate is compute-bound, exact.

    Every piece is affine in the size. Where rows are computed in whole tiles, the first row of a
    tile is compute-bound if any row of it is, and there every piece is affine in the tile's number.

    Args:
        numbers: The fitted numbers, exact.
        of: The quantities of a workload without a split, as `quantities.polynomials` gives them.
        sizes: The other sizes [1].
        dim: The dimension to solve for.
        row: The dimension that is computed in whole tiles.
    """
    step = numbers.tile if dim == row else 1
    quantities = {
        name: _line(terms, _rounded(sizes, row, numbers.tile) if name == MATH.name else sizes, dim)
        for name, terms in of.items()
    }
    # At the number k of a tile, math counts k * step rows, the others (k - 1) * step + 1.
    by_step = {
        name: (constant + (0 if name == MATH.name else slope * (1 - step)), slope * step)
        for name, (constant, slope) in quantities.items()
    }
    lines = [(piece.bound, _sum(piece.per, piece.constant_s, by_step)) for piece in pieces(numbers)]
    first, bound = _first(lines)
    return CriticalEstimate(None if first is None else (first - 1) * step + 1, bound)


def _rounded(sizes: Mapping[str, int], row: str, tile: int) -> dict[str, int]:
    """The sizes with whole tiles of rows; the dimension that is solved for is not among them."""
    return {dim: whole_tiles(size, tile) if dim == row else size for dim, size in sizes.items()}


def _line(terms: Polynomial, sizes: Mapping[str, int], dim: str) -> Line:
    """A polynomial along one dimension, in which it is affine."""
    at_zero, at_one = (evaluate(terms, {**sizes, dim: size}) for size in (0, 1))
    return at_zero, at_one - at_zero


def _sum(
    per: Mapping[str, Fraction | float], constant: Fraction | float, lines: Mapping[str, Line]
) -> Line:
    """A sum of lines, each times a factor, plus a constant."""
    used = [(Fraction(factor), lines[name]) for name, factor in per.items() if name in lines]
    start = sum((factor * line[0] for factor, line in used), Fraction(constant))
    return start, sum((factor * line[1] for factor, line in used), Fraction(0))


def _first(lines: Sequence[tuple[str, Line]]) -> tuple[int | None, str | None]:
    """The first whole number from 1 on at which a compute line is the largest.

    Returns:
        The number, and the bound of the line that is larger just below it; None without one, and
        the bound that stays larger.
    """
    computes = [line for bound, line in lines if bound == COMPUTE]
    others = [(bound, _larger(line, computes)) for bound, line in lines if bound != COMPUTE]
    at, below = Fraction(1), None
    while covering := [(bound, end) for bound, (begin, end) in others if _inside(at, begin, end)]:
        bound, end = covering[0]
        if end is None:
            return None, bound
        at, below = Fraction(ceil(end)), bound
    return int(at), below


def _inside(at: Fraction, begin: Fraction | None, end: Fraction | None) -> bool:
    """Whether a number lies strictly within an interval; None: without end."""
    return (begin is None or begin < at) and (end is None or at < end)


def _larger(line: Line, computes: Sequence[Line]) -> tuple[Fraction | None, Fraction | None]:
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
