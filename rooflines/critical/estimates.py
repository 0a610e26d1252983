"""The smallest size at which an estimate is compute-bound, in closed form, exact to the integer.

Every piece is affine in a size, or in the number of a span of rows that are computed together, so
another piece is larger than all compute pieces within one open interval. The sizes are stepped
through from 1: within an interval, to its end. This is done in Float64 with bounds on every end;
rows in which these could change an integer are solved in exact rational arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add, mul, or_
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.critical.solving import ROUNDING, UNSURE
from rooflines.fits.critical import COMPUTE, critical_estimate
from rooflines.fits.quantities import whole_size
from rooflines.model.columns import ALWAYS, BEYOND, FOUND, NEVER, OUTCOMES
from rooflines.sweep.estimates import CALIBRATED, estimate_columns, estimates
from rooflines.sweep.space import VARIANT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from polars._typing import PolarsDataType

    from rooflines.fits.estimate import Estimate
    from rooflines.sweep.estimates import EstimateColumns, Parts
    from rooflines.sweep.sweep import Sweep

COLUMN, OUTCOME = "critical_estimate", "outcome_estimate"

STEP = "#step"
"""The column of the elements of one step along the axis [1]."""

AT = "#at"
"""The column of the step that is reached [1]."""

KINDS: Mapping[str, PolarsDataType] = {COLUMN: pl.Int64(), OUTCOME: pl.Enum(OUTCOMES)}

WHOLE = 2.0**52
"""Steps below this are whole numbers that Float64 has with their neighbours [1]."""


@dataclass(frozen=True)
class Line:
    """A piece along a size, as expressions [s].

    Attributes:
        slope, constant: Of the line.
        slope_size, constant_size: The sums of the absolute values that they are computed from.
    """

    slope: pl.Expr
    constant: pl.Expr
    slope_size: pl.Expr
    constant_size: pl.Expr


@dataclass(frozen=True)
class Bounds:
    """Expressions of two numbers between which an end of an interval lies [1]."""

    low: pl.Expr
    high: pl.Expr


class CriticalEstimates:
    """The columns `critical_estimate` and `outcome_estimate` of thresholds along a dimension."""

    def __init__(self, sweep: Sweep, axis: str) -> None:
        self._sweep, self._axis = sweep, axis
        solved = not sweep.tile
        variants = sweep.chip_variants
        self._columns = estimate_columns(sweep, variants) if solved else None
        self._estimates = estimates(sweep, variants) if self._columns else []

    def added_to(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Thresholds with the columns; null without a calibration.

        Args:
            frame: `VARIANT`, and the sizes of the other dimensions.
        """
        none = [pl.Series(name, [None], dtype=kind) for name, kind in KINDS.items()]
        nulls = [each.new_from_index(0, frame.height) for each in none]
        if self._columns is None:
            return frame.with_columns(nulls)
        calibrated = self._columns.columns[CALIBRATED].gather(frame[VARIANT])
        others = [dim for dim in self._sweep.op.dims if dim != self._axis]
        rows = calibrated.arg_true()
        found = self._solved(frame.select(VARIANT, *others)[rows], self._columns)
        return frame.with_columns([each.scatter(rows, found[each.name]) for each in nulls])

    def _solved(self, frame: pl.DataFrame, columns: EstimateColumns) -> pl.DataFrame:
        """The columns for rows of calibrated variants."""
        steps = [each.span if each and each.row == self._axis else 1 for each in self._estimates]
        by_variant = {**columns.columns, STEP: pl.Series(steps, dtype=pl.Int64)}
        variant = frame[VARIANT]
        frame = frame.with_columns(
            **{name: values.gather(variant) for name, values in by_variant.items()}
        )
        frame = frame.with_columns(
            **{AT: pl.lit(1.0), UNSURE: pl.lit(value=False)}, **dict(self._intervals(columns))
        )
        others = sum(bound != COMPUTE for bound, _ in columns.pieces)
        for _ in range(others):
            for index in range(others):
                frame = frame.with_columns(**_stepped(index))
        sure = pl.col(AT).is_infinite() | (pl.col(AT) < WHOLE)
        step = pl.col(STEP)
        before = pl.col(AT).clip(1.0, WHOLE).cast(pl.Int64) - 1
        fits = pl.col(AT).is_finite() & (before <= pl.lit(LARGEST_COUNT - 2) // step)
        frame = frame.select(
            VARIANT,
            *(dim for dim in self._sweep.op.dims if dim != self._axis),
            pl.when(fits).then(before * step + 1).alias(COLUMN),
            pl.when(pl.col(AT).is_infinite())
            .then(pl.lit(NEVER))
            .when(~fits)
            .then(pl.lit(BEYOND))
            .when(before == 0)
            .then(pl.lit(ALWAYS))
            .otherwise(pl.lit(FOUND))
            .cast(KINDS[OUTCOME])
            .alias(OUTCOME),
            (pl.col(UNSURE) | ~sure).fill_null(value=True).alias(UNSURE),
        )
        unsure = frame[UNSURE].arg_true()
        rows = frame[unsure].drop(*KINDS, UNSURE).to_dicts()
        exact = pl.DataFrame([self._exactly(**row) for row in rows], schema=KINDS, orient="row")
        return frame.select([frame[name].scatter(unsure, exact[name]) for name in KINDS])

    def _exactly(self, **row: int) -> tuple[int | None, str]:
        """The columns of one row, in exact arithmetic."""
        estimate: Estimate | None = self._estimates[row.pop(VARIANT)]
        size = critical_estimate(estimate, row, self._axis).size if estimate else None
        if size is None or size >= LARGEST_COUNT:
            return None, NEVER if size is None else BEYOND
        return size, ALWAYS if size == 1 else FOUND

    def _intervals(self, columns: EstimateColumns) -> Iterator[tuple[str, pl.Expr]]:
        """Bounds on the ends of the interval of every piece but those of compute."""
        lines = [(bound, [self._line(p) for p in least]) for bound, least in columns.pieces]
        computes = [line for bound, least in lines if bound == COMPUTE for line in least]
        others = [least for bound, least in lines if bound != COMPUTE]
        for index, least in enumerate(others):
            pairs = [(line, compute) for line in least for compute in computes]
            ends = [_crossing(*pair) for pair in pairs]
            for side, grows in (("begin", True), ("end", False)):
                found = [
                    pl.when((line.slope > compute.slope) == grows).then(getattr(end, edge))
                    for edge in ("low", "high")
                    for (line, compute), end in zip(pairs, ends, strict=True)
                ]
                lows, highs = found[: len(pairs)], found[len(pairs) :]
                outermost = pl.max_horizontal if grows else pl.min_horizontal
                endless = float("-inf") if grows else float("inf")
                yield f"#{side}_low_{index}", outermost(lows).fill_null(endless)
                yield f"#{side}_high_{index}", outermost(highs).fill_null(endless)
            yield f"#unclear_{index}", reduce(or_, [_parallel(*pair) for pair in pairs])

    def _line(self, parts: Parts) -> Line:
        """A piece along the axis: by the number of the step."""
        slopes: list[pl.Expr] = []
        constants: list[pl.Expr] = []
        row, axis = self._sweep.op.dims[0], self._axis
        step = pl.col(STEP).cast(pl.Float64)
        for span, terms in parts.items():
            for dims, name in terms.items():
                sizes = [
                    whole_size(dim, max(span, 1) if dim == row else 1)
                    for dim in dims
                    if dim != axis
                ]
                product = reduce(mul, sizes, pl.col(name))
                if axis not in dims:
                    constants.append(product)
                    continue
                slopes.append(product * step)
                if not span:  # the size at step k is (k - 1) * step + 1
                    constants.append(product * (1.0 - step))
        none = [pl.lit(0.0)]
        return Line(
            reduce(add, slopes or none),
            reduce(add, constants or none),
            reduce(add, [each.abs() for each in slopes or none]),
            reduce(add, [each.abs() for each in constants or none]),
        )


def _crossing(line: Line, compute: Line) -> Bounds:
    """Where a line meets a compute line, in steps."""
    growth = line.slope - compute.slope
    at = (compute.constant - line.constant) / growth
    noise = ROUNDING * (
        line.constant_size
        + compute.constant_size
        + at.abs() * (line.slope_size + compute.slope_size)
    )
    error = noise / growth.abs()
    return Bounds(at - error, at + error)


def _parallel(line: Line, compute: Line) -> pl.Expr:
    """Whether rounding leaves open which of two lines grows faster."""
    sizes = line.slope_size + compute.slope_size
    return (line.slope - compute.slope).abs() <= 4.0 * ROUNDING * sizes


def _stepped(index: int) -> dict[str, pl.Expr]:
    """The step behind an interval, if it is within; and whether the bounds leave that open."""
    at = pl.col(AT)
    begins = [pl.col(f"#begin_{edge}_{index}") for edge in ("low", "high")]
    ends = [pl.col(f"#end_{edge}_{index}") for edge in ("low", "high")]
    within = (begins[1] < at) & (at < ends[0])
    outside = (at <= begins[0]) | (ends[1] <= at) | (ends[1] <= begins[0])
    open_end = within & (ends[0].ceil() != ends[1].ceil())
    return {
        AT: pl.when(within).then(ends[0].ceil()).otherwise(at),
        UNSURE: pl.col(UNSURE) | ~(within | outside) | open_end | pl.col(f"#unclear_{index}"),
    }
