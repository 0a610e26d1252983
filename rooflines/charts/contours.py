"""Lines of equal critical batch over D and F and the batches of shapes, nominal and calibrated."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.basics.numbers import exact
from rooflines.charts.basis import CALIBRATED, NOMINAL
from rooflines.charts.contour_rows import Line
from rooflines.charts.frames import Shares, share_values, shares_below_peak
from rooflines.critical.plane import Arc, border, estimated_area, nominal_area, whole_size
from rooflines.fits.critical import critical_estimate
from rooflines.sweep.estimates import estimates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rooflines.charts.results import Selection
    from rooflines.critical.plane import Area, Window
    from rooflines.fits.estimate import Estimate
    from rooflines.sweep.space import ChipVariant

HUGE = 2**200
"""A size at which a larger one changes nothing."""

NICE = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
OVER_RULE = (1.03, 1.2, 1.6, 2.5, 5.0)
"""Levels of contours, as multiples of the rule of thumb, before they are rounded up to `NICE`."""


@dataclass(frozen=True)
class Contours:
    """The critical batches of a chip in one dtype combination, by one basis.

    Attributes:
        basis: `nominal` or `calibrated`.
        area: Where the case is compute-bound.
        batch: The batch from which on it is, by D and F [1]; None: never.
        whole: Whether a batch of a line is rounded up to a whole one.
        below: The areas for smaller shares of the peak, the largest share first.
    """

    basis: str
    area: Area
    batch: Callable[[int, int], float | None]
    whole: bool = False
    below: Mapping[float, Area] = field(default_factory=dict)

    def lines(self, window: Window) -> Iterator[Line]:
        """The arcs of the lines within a part of the map."""
        least = self.batch(HUGE, HUGE)
        levels = [] if least is None else nice_levels(max(least, 1.0))
        for level in levels:
            yield from rows_of(self._border(self.area, level, window), "level", level, 1.0)
        edge = Arc(window.left, window.top, window.right, window.top)
        never = self._border(self.area, math.inf, window) or [edge]
        yield from rows_of(never, "never", math.inf, 1.0)
        for share, area in [*self.below.items()][:1]:
            for level in (*levels, math.inf):
                yield from rows_of(self._border(area, level, window), "share", level, share)

    def shares(self, d: int, f: int) -> Shares:
        """The batches for smaller shares of the peak at a D and F [1], solved if nominal."""
        if self.basis != NOMINAL:
            return Shares()
        return share_values(
            {share: whole_size(area.threshold(d, f)) for share, area in self.below.items()}
        )

    def _border(self, area: Area, level: float, window: Window) -> list[Arc]:
        if math.isinf(level):
            return border(area.lines(Fraction(HUGE)), window)
        return border(area.lines(Fraction(math.ceil(level) if self.whole else level)), window)


def contours_of(of: Selection) -> Iterator[tuple[ChipVariant, Contours]]:
    """The critical batches of all chips and combinations of a sweep of a matmul without tiles.

    Yields:
        A chip and its variant, with nominal and, if it has a calibration, calibrated batches.
    """
    served, shares = of.served(), shares_below_peak(of)
    for one, estimate in zip(served, estimates(of.sweep, served), strict=True):
        area = nominal_area(of.sweep, one)
        below = {share: nominal_area(of.sweep, one, exact(share)) for share in shares}
        yield one, Contours(NOMINAL, area, _threshold(area), below=below)
        if estimate is not None:
            area = estimated_area(estimate, of.dims)
            yield one, Contours(CALIBRATED, area, _estimated(estimate), whole=True)


def _threshold(area: Area) -> Callable[[int, int], float | None]:
    """The exact batch from which on a case is compute-bound, rounded to Float64."""

    def batch(d: int, f: int) -> float | None:
        found = area.threshold(d, f)
        return None if found is None else float(found)

    return batch


def _estimated(estimate: Estimate) -> Callable[[int, int], int | None]:
    """The smallest whole batch at which an estimate is compute-bound."""
    return lambda d, f: critical_estimate(estimate, {"D": d, "F": f}, "B").size


def rows_of(arcs: list[Arc], kind: str, level: float, share: float) -> Iterator[Line]:
    """The arcs of a line, D across and F up."""
    return (Line(kind, level, share, *arc) for arc in arcs)


def nice_levels(rule: float) -> list[float]:
    """Levels above the rule of thumb, rounded up to `NICE` digits."""
    levels = []
    for factor in OVER_RULE:
        power = 10.0 ** math.floor(math.log10(rule * factor))
        levels.append(next(step * power for step in (*NICE, 10.0) if step * power >= rule * factor))
    return sorted(set(levels))
