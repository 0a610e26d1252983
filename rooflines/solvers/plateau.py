"""The smallest size at which an estimate attains 90 % of its own plateau.

The plateau is the rate n / t_estimate(n) that it tends to as the size n grows: 1 / s, with s what
an element adds to a large size. An estimate is a sum over kernels of the largest piece of each.
Where all spans are full it is a sum of maxima of lines, and of experts, which are concave: so the
size over the time never falls, and one number is the first to attain the share.

Where rows are computed in whole spans, the last row of a span attains most. So a size is found for
full spans first: no smaller one attains as much. Then comes the first span of which the last row
attains the share, and then the row in it.

Along the context S of decode the time is what a sequence adds to a large batch. With attention in
chunks it is that of windows of their size: from the size found on all contexts attain the share, as
may shorter ones whose last chunk is short.
"""

from __future__ import annotations

import math
from itertools import compress
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.solvers.crossover import ROUNDING
from rooflines.solvers.first_integer import AT, first_in_rows
from rooflines.solvers.size_axis import Along, itself
from rooflines.theory.poly import Poly, total
from rooflines.theory.times import Time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rooflines.solvers.size_axis import Summand
    from rooflines.sweep.axes import Axis
    from rooflines.sweep.cases import Case

COLUMN = "plateau_estimate"

ATTAINED = 0.9
"""The share of the plateau that is attained [1]."""

ERROR = 64.0 * ROUNDING
"""The relative error of an estimate and its plateau, sums of products of one sign [1]."""

PLATEAU, FULL, LAST = "#plateau", "#full", "#last"
"""Columns: s [s]; the size from which on full spans attain the share, and the last size that needs
no more spans [1]."""

MOST = float(LARGEST_COUNT)


def saturated(
    cases: Sequence[Case],
    axes: Sequence[Axis],
    size: str,
    least: Sequence[int],
    of: Callable[[Poly], Poly] = itself,
) -> pl.Series:
    """The sizes of cases at all other sizes; null without a calibration, or from 2^62 on.

    Args:
        cases: The cases.
        axes: The other sizes, slowest first; cases are slower than all.
        size: The size.
        least: The smallest size of every case; along S never below T [1].
        of: What counts of every polynomial.
    """
    known = [None not in case.kernel_estimates for case in cases]
    points = math.prod(axis.count for axis in axes)
    rows = pl.int_range(len(cases) * points, eager=True) // points
    sizes = pl.Series(COLUMN, [None], dtype=pl.Int64).new_from_index(0, len(rows))
    if not any(known):
        return sizes
    along = Along(list(compress(cases, known)), axes, size)
    along.put("#least", pl.Series(list(compress(least, known)), dtype=pl.Float64))
    summands = estimate_lines(along, list(compress(cases, known)), of)
    found = pl.concat([_solved(frame, along, summands) for frame in along.frames()])
    whole = pl.when(pl.col(FULL) < MOST).then(FULL).cast(pl.Int64)
    found = found.alias(FULL).to_frame().select(whole).to_series()
    return sizes.scatter(pl.Series(known).gather(rows).arg_true(), found)


def estimate_lines(
    along: Along, cases: Sequence[Case], of: Callable[[Poly], Poly] = itself
) -> list[Summand]:
    """Ask for the lines of the estimates of calibrated cases with the same kernels.

    Args:
        along: What to ask.
        cases: The cases.
        of: What to ask for of every polynomial.

    Returns:
        A sum: what is common to the pieces of every kernel, then those of each kernel.
    """
    kernels = cases[0].kernels
    estimates = [[each for each in case.kernel_estimates if each is not None] for case in cases]
    common = [
        total(each.common * kernel.count for each, kernel in zip(of_case, kernels, strict=True))
        for of_case in estimates
    ]
    summands = [(1, along.ask_time("common", [Time((((each,),),)) for each in common], of))]
    for index, kernel in enumerate(kernels):
        largest = [of_case[index].largest for of_case in estimates]
        summands.append((kernel.count, along.ask_time(f"{index}", largest, of)))
    return summands


def _solved(frame: pl.DataFrame, along: Along, summands: Sequence[Summand]) -> pl.Series:
    """The sizes of rows with an estimate; `LARGEST_COUNT` or more where it is none below."""
    at, full = pl.col(AT), pl.col(FULL)
    attains = pl.col(PLATEAU) * at * ((1.0 + ERROR) / ATTAINED) - along.at(at, summands)

    def first(low: pl.Expr, high: pl.Expr, *, whole: bool) -> pl.Series:
        """The first size that attains the share."""

        def extents(rows: pl.LazyFrame) -> pl.LazyFrame:
            return along.with_extents(rows, at, whole=whole)

        return first_in_rows(frame, attains, low, high, extents)

    least = pl.max_horizontal("#least", "T") if along.windows else pl.col("#least")
    frame = frame.with_columns(along.growth(summands).alias(PLATEAU))
    frame = frame.with_columns(first(least, pl.lit(MOST), whole=False).alias(FULL))
    if not along.spans:
        return frame[FULL]
    last = pl.min_horizontal(each.last(full) for each in along.spans.values())
    while True:  # ends with the first size of full spans
        tried = along.with_extents(frame.lazy().with_columns(last.alias(AT)), at)
        missed = (attains <= 0) & (full < MOST)
        ends = tried.select(pl.col(AT).alias(LAST), missed=missed).collect()
        frame = frame.with_columns(ends[LAST])
        if not ends["missed"].any():
            return first(full, pl.col(LAST), whole=True)
        later = pl.when(ends["missed"]).then(pl.col(LAST) + 1.0).otherwise(full)
        frame = frame.with_columns(later.alias(FULL))


def per_sequence(poly: Poly) -> Poly:
    """What a sequence adds to a large batch, where all spans are full."""
    line = poly.along("B")
    full = [line.slope]
    for extent, each in line.counted.items():
        sizes, _, span = extent.partition("/")
        others = [size for size in sizes.split("*") if size != "B"]
        terms = {(*product, *others): value for product, value in each.terms.items()}
        full.append(Poly(terms, each.scale / int(span)))
    return total(full)
