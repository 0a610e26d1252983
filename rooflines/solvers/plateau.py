"""Plateau: the smallest size at which an estimate attains 90 % of its asymptotic rate.

The plateau is the limit of the rate n / t_estimate(n) as the size n grows: 1 / s, with s the time
that an element adds to a large size. An estimate is a sum over kernels, max over pieces in each.
Where all spans are full, it is a sum of maxima over lines, and of experts, which are concave: so
n / t_estimate(n) never falls, and exactly one number is the first that attains the share.

Where rows are computed in whole spans, the last row in a span attains most. So the size is solved
for full spans first: no smaller size attains as much. Next is the first span whose last row attains
the share, then the row in this span.

Along the context S of decode the time is the one that a sequence adds to a large batch. Chunked
attention counts as windows of the same size: from the solution on all contexts attain the share;
shorter contexts may as well, if their last chunk is short.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.numbers import MAX_COUNT
from rooflines.solvers.crossover import ROUNDING
from rooflines.solvers.first_integer import TRIAL, first_integers
from rooflines.solvers.size_axis import AxisLines
from rooflines.theory.poly import ZERO, Poly, total
from rooflines.theory.times import Time, Times

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflines.solvers.size_axis import Summand
    from rooflines.sweep.axes import Axis
    from rooflines.sweep.cases import Case

PLATEAU_COLUMN = "plateau_estimate"

PLATEAU_SHARE = 0.9
"""Share of the plateau to attain [1]."""

ESTIMATE_ERROR = 64.0 * ROUNDING
"""Relative error of an estimate and its plateau, sums over products with one sign [1]."""

PLATEAU, FULL, LAST = "#plateau", "#full", "#last"
"""Columns: s [s]; the size from which on full spans attain the share [1]; and the last size with as
many spans [1]."""

MAX_PLATEAU_SIZE = float(MAX_COUNT)

NO_TIME = Times({"compute": Time.max_of(ZERO)})
"""Estimate in place of a missing one."""


def plateau_sizes(
    cases: Sequence[Case],
    axes: Sequence[Axis],
    size: str,
    min_sizes: Sequence[int],
    transform: Callable[[Poly], Poly] | None = None,
) -> pl.Series:
    """Plateau sizes of cases at all other sizes; null without a calibration, or from 2^62 on.

    Args:
        cases: The cases.
        axes: The other sizes, slowest first; cases are slower than all.
        size: The size.
        min_sizes: Smallest size, by case; along S never below T [1].
        transform: Applied to every polynomial.
    """
    is_calibrated = [None not in case.kernel_estimates for case in cases]
    points = math.prod(axis.count for axis in axes)
    rows = pl.int_range(len(cases) * points, eager=True) // points
    sizes = pl.Series(PLATEAU_COLUMN, [None], dtype=pl.Int64).new_from_index(0, len(rows))
    if not any(is_calibrated):
        return sizes
    axis_lines = AxisLines(list(compress(cases, is_calibrated)), axes, size)
    axis_lines.compiler.put(
        "#min_size", pl.Series(list(compress(min_sizes, is_calibrated)), dtype=pl.Float64)
    )
    summands = add_estimate(axis_lines, list(compress(cases, is_calibrated)), transform)
    solved_sizes = pl.concat([_solve(frame, axis_lines, summands) for frame in axis_lines.frames()])
    whole = pl.when(pl.col(FULL) < MAX_PLATEAU_SIZE).then(FULL).cast(pl.Int64)
    solved_sizes = solved_sizes.alias(FULL).to_frame().select(whole).to_series()
    return sizes.scatter(pl.Series(is_calibrated).gather(rows).arg_true(), solved_sizes)


def add_estimate(
    axis_lines: AxisLines,
    cases: Sequence[Case],
    transform: Callable[[Poly], Poly] | None = None,
    name: str = "",
) -> list[Summand]:
    """Add the lines of estimates, for cases with the same kernels.

    Args:
        axis_lines: The lines along the size.
        cases: The cases; kernels without a calibration count as no time.
        transform: Applied to every polynomial.
        name: Start of the lines' names.

    Returns:
        The terms of a sum: the time outside the pieces, then the pieces, kernel by kernel.
    """
    kernels = cases[0].kernels
    estimates = [[times or NO_TIME for times in case.kernel_estimates] for case in cases]
    common = [
        total(
            times.common * kernel.count for times, kernel in zip(case_times, kernels, strict=True)
        )
        for case_times in estimates
    ]
    outside = [Time((((poly,),),)) for poly in common]
    summands = [(1, axis_lines.add_time(f"{name}common", outside, transform))]
    for index, kernel in enumerate(kernels):
        largest = [case_times[index].largest for case_times in estimates]
        summands.append((kernel.count, axis_lines.add_time(f"{name}{index}", largest, transform)))
    return summands


def _solve(frame: pl.DataFrame, axis_lines: AxisLines, summands: Sequence[Summand]) -> pl.Series:
    """Plateau sizes of rows with an estimate; `MAX_COUNT` or more: no size below it."""
    at, full = pl.col(TRIAL), pl.col(FULL)
    attains = pl.col(PLATEAU) * at * ((1.0 + ESTIMATE_ERROR) / PLATEAU_SHARE) - axis_lines.at(
        at, summands
    )

    in_full_spans, in_whole_spans = (
        partial(axis_lines.with_extents, size=at, whole=whole) for whole in (False, True)
    )
    min_size = pl.max_horizontal("#min_size", "T") if axis_lines.windows else pl.col("#min_size")
    frame = frame.with_columns(axis_lines.growth(summands).alias(PLATEAU))
    first = first_integers(frame, attains, min_size, pl.lit(MAX_PLATEAU_SIZE), in_full_spans)
    frame = frame.with_columns(first.alias(FULL))
    if not axis_lines.spans:
        return frame[FULL]
    last = pl.min_horizontal(spans.last(full) for spans in axis_lines.spans.values())
    while True:  # ends with the first size of full spans
        at_last = axis_lines.with_extents(frame.lazy().with_columns(last.alias(TRIAL)), at)
        is_below_share = (attains <= 0) & (full < MAX_PLATEAU_SIZE)
        ends = at_last.select(pl.col(TRIAL).alias(LAST), missed=is_below_share).collect()
        frame = frame.with_columns(ends[LAST])
        if not ends["missed"].any():
            return first_integers(frame, attains, full, pl.col(LAST), in_whole_spans)
        later = pl.when(ends["missed"]).then(pl.col(LAST) + 1.0).otherwise(full)
        frame = frame.with_columns(later.alias(FULL))


def growth_per_sequence(poly: Poly) -> Poly:
    """Growth of a polynomial per sequence of a large batch, where all spans are full."""
    line = poly.affine_in("B")
    parts = [line.slope]
    for tiles, coefficient in line.per_tile.items():
        other_sizes = [size for size in tiles.factors if size != "B"]
        terms = {(*product, *other_sizes): value for product, value in coefficient.terms.items()}
        parts.append(Poly(terms) / tiles.span)
    return total(parts)
