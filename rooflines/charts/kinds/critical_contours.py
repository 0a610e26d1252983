"""Lines of equal critical batch over D and F, nominal and calibrated, exact at every point."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from rooflines.basics.numbers import exact
from rooflines.calibration.critical import critical_estimate
from rooflines.charts.basis import CALIBRATED, NOMINAL
from rooflines.charts.frames import share_values, shares_below_peak

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.calibration.estimate import Estimate
    from rooflines.charts.results import Selection
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep

__all__ = ["lines_of", "nearly", "shares_of_shape", "solvers"]

CONTOUR_POINTS = 32
"""Points of a contour along each of its two axes; it bends once."""

HUGE = 2**200
"""A size at which a larger one changes nothing."""

NICE = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
OVER_RULE = (1.03, 1.2, 1.6, 2.5, 5.0)
"""Levels of contours, as multiples of the rule of thumb, before they are rounded up to `NICE`."""

Solve = Callable[..., float | None]
"""The size along an axis from which on a case is compute-bound [1], at sizes by name."""


def solvers(sweep: Sweep, chip_variant: ChipVariant) -> dict[str, Solve]:
    """What solves for sizes of a case: nominal, and calibrated if it has a calibration."""
    from rooflines.sweep.estimates import estimates  # noqa: PLC0415, it imports polars

    (estimate,) = estimates(sweep, [chip_variant])
    found: dict[str, Solve] = {NOMINAL: partial(solved, sweep, chip_variant)}
    return (
        found if estimate is None else {**found, CALIBRATED: partial(solved_calibrated, estimate)}
    )


def nearly(of: Selection, chip_variant: ChipVariant) -> dict[float, Solve]:
    """What solves for sizes of a case for the largest share of the peak below 1, if any."""
    return {
        share: partial(solved, of.sweep, chip_variant, share=exact(share))
        for share in shares_below_peak(of)[:1]
    }


def lines_of(
    solve: Solve, near: Mapping[float, Solve], span: tuple[int, int, int, int]
) -> Iterator[dict[str, Any]]:
    """The points of the lines of a case, with `kind`, `level`, `share`, `D` and `F`.

    Args:
        solve: Gives its sizes.
        near: Gives those for smaller shares of the peak; their lines are of the kind `share`.
        span: The map's edges: D from and to, F from and to.
    """
    edge = [(float(span[0]), float(span[3])), (float(span[1]), float(span[3]))]
    least = solve("B", D=HUGE, F=HUGE)
    levels = nice_levels(max(least, 1.0)) if least is not None else []
    lines = [("level", level, 1.0, contour(solve, Fraction(level), span)) for level in levels]
    lines.append(("never", math.inf, 1.0, contour(solve, HUGE, span) or edge))
    for share, nearer in near.items():
        lines += [
            (
                "share",
                level,
                share,
                contour(nearer, HUGE if math.isinf(level) else Fraction(level), span),
            )
            for level in (*levels, math.inf)
        ]
    for kind, level, share, line in lines:
        for d, f in line:
            yield {"kind": kind, "level": level, "share": share, "D": d, "F": f}


def contour(
    solve: Solve, level: int | Fraction, span: tuple[int, int, int, int]
) -> list[tuple[float, float]]:
    """The line from which on a batch is compute-bound, as D and F, clamped to the map.

    F is solved for at several D, and D at several F, so that points are dense on flat and on steep
    parts of the line.
    """
    low_d, high_d, low_f, high_f = span
    points: list[tuple[float | None, float | None]]
    points = [(d, solve("F", B=level, D=d)) for d in spaced(low_d, high_d)]
    points += [(solve("D", B=level, F=f), f) for f in spaced(low_f, high_f)]
    kept = {
        (float(d), float(max(f, low_f)))
        for d, f in points
        if d is not None and f is not None and low_d <= d <= high_d and f <= high_f
    }
    return sorted(kept, key=lambda point: (point[0], -point[1]))


def spaced(low: int, high: int) -> list[int]:
    """Sizes from `low` to `high`, about evenly on a logarithmic axis."""
    steps = CONTOUR_POINTS - 1
    return sorted({round(low * (high / low) ** (i / steps)) for i in range(CONTOUR_POINTS)})


def shares_of_shape(
    of: Selection, chip_variant: ChipVariant, shape: Mapping[str, Any]
) -> dict[str, str | int | float | None]:
    """The columns of `share_values` of a shape."""
    from rooflines.critical.sizes import solve_exactly  # noqa: PLC0415, it imports polars

    sizes = {dim: shape[dim] for dim in "DF"}
    below = {
        share: solve_exactly(of.sweep, chip_variant, "B", sizes, exact(share)).critical
        for share in shares_below_peak(of)
    }
    return share_values(below)


def solved(
    sweep: Sweep,
    chip_variant: ChipVariant,
    axis: str,
    share: Fraction = Fraction(1),
    **sizes: int | Fraction,
) -> float | None:
    """The exact size along an axis from which on a case is compute-bound [1]; None for never."""
    from rooflines.critical.sizes import solve_exactly  # noqa: PLC0415, it imports polars

    return solve_exactly(sweep, chip_variant, axis, sizes, share).critical_exact


def solved_calibrated(estimate: Estimate, axis: str, **sizes: int | Fraction) -> float | None:
    """The smallest whole size along an axis from which on an estimate is compute-bound [1]."""
    whole = {dim: math.ceil(size) for dim, size in sizes.items()}
    return critical_estimate(estimate, whole, axis).size


def nice_levels(rule: float) -> list[float]:
    """Levels above the rule of thumb, rounded up to `NICE` digits."""
    levels = []
    for factor in OVER_RULE:
        power = 10.0 ** math.floor(math.log10(rule * factor))
        levels.append(next(step * power for step in (*NICE, 10.0) if step * power >= rule * factor))
    return sorted(set(levels))
