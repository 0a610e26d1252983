"""The smallest size at which an estimate attains 90 % of its own plateau, in closed form.

The plateau is the rate n / t_estimate(n) that it tends to as the size n grows: 1 / s, with s the
slope of the fastest growing piece. A piece keeps to 90 % where constant + slope * n <= s * n / 0.9:
from constant / (s / 0.9 - slope) on. As s is the largest slope, the divisor is at least s / 9. All
pieces have to; of a piece that is the least of several lines, one.

Where rows are computed in whole spans, the last row of a span attains most. So the first span is
found from its last row, in which every piece is affine, and then the row in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.critical.solving import ROUNDING
from rooflines.fits.quantities import whole_size
from rooflines.sweep.estimates import CALIBRATED, estimate_columns, estimates
from rooflines.sweep.space import VARIANT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rooflines.sweep.estimates import EstimateColumns, Parts
    from rooflines.sweep.sweep import Sweep

COLUMN = "saturates_estimate"

ATTAINED = 0.9
"""The share of the plateau that is attained [1]."""

ERROR = 64.0 * ROUNDING
"""The relative error of a size [1]: s / 0.9 - slope is a difference, of at least a twentieth."""

SPAN, PLATEAU, AT = "#span", "#plateau", "#at"
"""Columns: elements of a span along the axis [1], s [s], and the real size in whole spans [1]."""


@dataclass(frozen=True)
class Line:
    """A sum of an estimate along a size [s].

    Attributes:
        plain: Per element.
        counted: Per element of whole spans.
        constant: At every size.
    """

    plain: pl.Expr
    counted: pl.Expr
    constant: pl.Expr

    def __add__(self, other: Line) -> Line:
        """The sum."""
        return Line(
            self.plain + other.plain, self.counted + other.counted, self.constant + other.constant
        )

    @property
    def slope(self) -> pl.Expr:
        """Per element, where spans are full."""
        return self.plain + self.counted

    def full(self) -> pl.Expr:
        """The size from which on it keeps to the plateau where spans are full; null: never."""
        return _from(self.constant, self.slope)

    def within(self, size: pl.Expr) -> pl.Expr:
        """The same where a size is counted."""
        return _from(self.constant + self.counted * size, self.plain)


def _from(constant: pl.Expr, slope: pl.Expr) -> pl.Expr:
    gain = pl.col(PLATEAU) / ATTAINED - slope
    return pl.when(gain > 0).then(constant / gain)


class Saturation:
    """The column `saturates_estimate` of thresholds along a dimension."""

    def __init__(self, sweep: Sweep, axis: str) -> None:
        self._sweep, self._axis = sweep, axis
        variants = sweep.chip_variants
        self._columns = None if sweep.tile else estimate_columns(sweep, variants)
        found = estimates(sweep, variants) if self._columns else []
        spans = [each.span if each and each.row == axis else 1 for each in found]
        self._spans = pl.Series(spans, dtype=pl.Int64)

    def added_to(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Thresholds with the column; null without a calibration.

        Args:
            frame: `VARIANT`, and the sizes of the other dimensions.
        """
        if self._columns is None:
            return frame.with_columns(pl.lit(None, dtype=pl.Int64).alias(COLUMN))
        others = [dim for dim in self._sweep.op.dims if dim != self._axis]
        variant = frame[VARIANT]
        by_variant = {**self._columns.columns, SPAN: self._spans}
        found = frame.select(VARIANT, *others).with_columns(
            **{name: values.gather(variant) for name, values in by_variant.items()}
        )
        return frame.with_columns(self._solved(found, self._columns).alias(COLUMN))

    def _solved(self, frame: pl.DataFrame, columns: EstimateColumns) -> pl.Series:
        """The sizes of rows; null where one has no calibration."""
        common = self._line(columns.common)
        pieces = [[common + self._line(parts) for parts in least] for _, least in columns.pieces]
        slopes = [pl.min_horizontal([line.slope for line in least]) for least in pieces]

        def real(of_line: Callable[[Line], pl.Expr]) -> pl.Expr:
            return pl.max_horizontal([pl.min_horizontal(map(of_line, each)) for each in pieces])

        frame = frame.with_columns(pl.max_horizontal(slopes).alias(PLATEAU))
        frame = frame.with_columns(_rounded_up(real(Line.full)).alias(AT))
        if (self._spans > 1).any():
            span = pl.col(SPAN)
            size = (pl.col(AT) / span).ceil() * span
            row = _rounded_up(real(lambda line: line.within(size)))
            frame = frame.with_columns(pl.max_horizontal(row, size - span + 1.0).alias(AT))
        found = pl.when(pl.col(CALIBRATED) & (pl.col(AT) < LARGEST_COUNT)).then(AT)
        return frame.select(found.cast(pl.Int64)).to_series()

    def _line(self, parts: Parts) -> Line:
        """A sum along the axis."""
        sums: Mapping[str, list[pl.Expr]] = {"plain": [], "counted": [], "constant": []}
        row, axis = self._sweep.op.dims[0], self._axis
        for span, terms in parts.items():
            for dims, name in terms.items():
                sizes = [
                    whole_size(dim, max(span, 1) if dim == row else 1)
                    for dim in dims
                    if dim != axis
                ]
                product = reduce(mul, sizes, pl.col(name))
                kind = "constant" if axis not in dims else "counted" if span else "plain"
                sums[kind].append(product)
        return Line(**{name: reduce(add, each or [pl.lit(0.0)]) for name, each in sums.items()})


def _rounded_up(real: pl.Expr) -> pl.Expr:
    """The smallest whole size of a real one [1], Float64."""
    return (real * (1.0 - ERROR)).ceil().clip(1.0, float(LARGEST_COUNT))
