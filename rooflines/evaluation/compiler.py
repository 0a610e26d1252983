"""Row compiler: polynomials and times of cases as expressions of columns, for any kind of case.

Rows are a blocked product (`evaluation.blocked`): inner axes are computed once and repeated for
every point of the outer axes. A quantity is split likewise: factors that depend on sizes on the
cases' side are computed there, the rest per row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import reduce
from operator import add, mul
from typing import TYPE_CHECKING, NamedTuple, Protocol

import polars as pl

from rooflines.basics.expressions import quotient
from rooflines.evaluation.blocked import Factors, block_start, blocked_product
from rooflines.evaluation.space import axis_columns, has_one_value, length, odd_part
from rooflines.theory.times import NO_TIME, TIE_SHARE, align_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rooflines.sweep.cases import Block, Case
    from rooflines.theory.extents import Product
    from rooflines.theory.poly import Poly
    from rooflines.theory.times import Time

CASE_INDEX = "#case"
"""Column with the index of a row's case. Names with # never leave the package."""

ROWS_AT_ONCE = 2**20
"""Rows in a slice [1]."""

TextTypes = Mapping[str, "pl.DataType"]
"""Types of text columns, where they are not Categorical."""


class Value(NamedTuple):
    """Quantity: a part computed on the cases' side, plus a part per row; None is zero."""

    per_case: pl.Expr | None = None
    per_row: pl.Expr | None = None


class RowCompiler:
    """Compiler for columns and expressions of a block.

    Independent of other cases, so that results are bit-identical for any selection of chips.

    Args:
        block: The block.
        inner: Number of axes after the cases that make the block of inner rows; None: as many as
            fit.

    Attributes:
        cases: The cases.
        axes: Columns, axis by axis, slowest first.
        factors: Columns to compute per point of the outer axes, and per row of the block.
        varying: Columns with a value for each row, in place of one value for all.
        columns: Axes and keys as Float64, by name; and extents computed as a size divided by a
            number of the case, whole numbers.
    """

    def __init__(
        self,
        block: Block[Case],
        inner: int | None = None,
    ) -> None:
        self.cases = block.cases
        self._case_axis = {CASE_INDEX: pl.Series(range(len(self.cases)), dtype=pl.UInt32)}
        before, after = (list(map(axis_columns, axes)) for axes in (block.before, block.after))
        self.axes: list[Mapping[str, pl.Series]] = [*before, self._case_axis, *after]
        self._constant_names: dict[tuple[float | None, ...], str] = {}
        self.factors = Factors()
        self._split = block_start(self.axes) if inner is None else len(self.axes) - inner
        cases_outer = len(before) < self._split
        sides = self.axes[: self._split], self.axes[self._split :]
        case_side = sides[0] if cases_outer else sides[1]
        single_valued = {name for axis in self.axes for name in axis if has_one_value(axis[name])}
        self._case_side = {name for axis in case_side for name in axis} | single_valued
        factors = self.factors.outer_factors, self.factors.inner_factors
        self._case_factors, self._other_factors = factors if cases_outer else factors[::-1]
        self.varying = {name for axis in self.axes for name in axis} - single_valued
        for name, values in key_columns(self.cases).items():
            self.put(name, values)
            self._case_side.add(name)
        self.columns = {name: pl.col(name).cast(pl.Float64) for axis in self.axes for name in axis}
        for name, (size, _) in self.cases[0].shares.items():
            divisor = self.constant([case.shares[name][1] for case in self.cases])
            self.columns[name] = (pl.col(size) / divisor).round()
            self._case_side.add(name)
            self.varying.add(name)

    @property
    def texts(self) -> dict[str, pl.Series]:
        """Text columns, Categorical."""
        columns = [column for axis in self.axes for column in axis.items()]
        return {name: values for name, values in columns if values.dtype == pl.Categorical}

    def frame(
        self,
        stages: Iterable[Mapping[str, pl.Expr]],
        start: int,
        stop: int,
        texts: TextTypes | None = None,
    ) -> pl.LazyFrame:
        """Compute rows `start` to `stop` with the columns of stages.

        Args:
            stages: The columns.
            start: The first row [1].
            stop: The row after the last [1].
            texts: Types of text columns, where they are not Categorical.
        """
        kinds = texts or {}
        axes = [
            {name: values.cast(kinds.get(name, values.dtype)) for name, values in axis.items()}
            for axis in self.axes
        ]
        rows = blocked_product(axes, self._split, start, stop, self.factors)
        for columns in stages:
            rows = rows.with_columns(**columns)
        return rows

    def slices(self, stages: Sequence[Mapping[str, pl.Expr]]) -> Iterator[pl.DataFrame]:
        """Yield all rows with the columns of stages, in slices that bound memory.

        Constants and factors, which serve stages alone, are left out: polars then makes no column
        of them.
        """
        rows = math.prod(map(length, self.axes))
        factors = self.factors.outer_factors.keys() | self.factors.inner_factors
        inputs = [*self._constant_names.values(), *factors]
        for start in range(0, rows, ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, rows)
            yield self.frame(stages, start, stop).drop(inputs).collect()

    # ------------------------------------------------------------ columns of cases

    def put(self, name: str, values: pl.Series) -> None:
        """Add a column with a value for each case."""
        if not has_one_value(values):
            self.varying.add(name)
        self._case_axis[name] = values

    def constant(self, values: Sequence[float | None]) -> pl.Expr:
        """Column with a number for each case; equal columns are merged."""
        key = tuple(values)
        if key not in self._constant_names:
            self._constant_names[key] = f"#{len(self._constant_names)}"
            self.put(self._constant_names[key], pl.Series(values, dtype=pl.Float64))
        return pl.col(self._constant_names[key])

    def quotient(self, dividend: pl.Expr, divisor: pl.Expr) -> pl.Expr:
        """Divide by a column, see `quotient`; cheaper where the column varies by row."""
        if divisor.meta.output_name() in self.varying:
            return dividend / divisor
        return quotient(dividend, divisor)

    # ------------------------------------------------------------ quantities

    def poly(self, polys: Sequence[Poly | None]) -> Value:
        """Compile a polynomial per case, a sum over products of extents; null where it is None."""
        per_case: list[pl.Expr] = []
        per_row: dict[Product, list[pl.Expr]] = {}
        for product in sorted({product for poly in polys if poly for product in poly.terms}):
            coefficients = [
                None if poly is None else float(poly.terms.get(product, 0)) for poly in polys
            ]
            near_extents = [
                extent.expression(self.columns)
                for extent in product
                if extent.sizes <= self._case_side
            ]
            other_extents = tuple(
                extent for extent in product if not extent.sizes <= self._case_side
            )
            (per_row.setdefault(other_extents, []) if other_extents else per_case).append(
                reduce(mul, [*near_extents, self.constant(coefficients)])
            )
        if not per_case and not per_row and None in polys:
            per_case.append(self.constant([None if poly is None else 0.0 for poly in polys]))
        rows = [
            self._extents(other_extents) * self._case_column(reduce(add, summands))
            for other_extents, summands in per_row.items()
        ]
        return Value(
            reduce(add, per_case) if per_case else None, reduce(add, rows) if rows else None
        )

    def _case_column(self, expression: pl.Expr) -> pl.Expr:
        """Add a column on the cases' side."""
        name = f"#early{len(self._case_factors)}"
        self._case_factors[name] = expression
        return pl.col(name)

    def is_on_case_side(self, name: str) -> bool:
        """True if a column is on the cases' side, or has one value."""
        return name in self._case_side

    def early(self, expression: pl.Expr, *, on_case_side: bool) -> pl.Expr:
        """Column computed on one side, before both are joined; equal columns are merged.

        Args:
            expression: An expression of columns on that side.
            on_case_side: Whether that is the cases' side.
        """
        factors = self._case_factors if on_case_side else self._other_factors
        equal = (name for name, factor in factors.items() if factor.meta.eq(expression))
        name = next(equal, f"#{'near' if on_case_side else 'far'}{len(factors)}")
        factors[name] = expression
        return pl.col(name)

    def _extents(self, other_extents: Product) -> pl.Expr:
        """Product over extents on the other side, computed there if it needs no case column."""
        product = reduce(mul, [extent.expression(self.columns) for extent in other_extents])
        if any(extent.sizes & self._case_side for extent in other_extents):
            return product
        name = f"#extents:{'*'.join(other_extents)}"
        self._other_factors[name] = product
        return pl.col(name)

    def total(self, value: Value) -> pl.Expr:
        """Expression of a quantity in a row; its part on the cases' side is a column."""
        per_case = [] if value.per_case is None else [self._case_column(value.per_case)]
        per_row = [] if value.per_row is None else [value.per_row]
        return reduce(add, [*per_row, *per_case]) if per_case or per_row else pl.lit(0.0)

    @staticmethod
    def sum(values: Iterable[Value]) -> Value:
        """Sum over quantities."""
        quantities = list(values)
        per_case = [value.per_case for value in quantities if value.per_case is not None]
        per_row = [value.per_row for value in quantities if value.per_row is not None]
        return Value(
            reduce(add, per_case) if per_case else None, reduce(add, per_row) if per_row else None
        )

    def extreme(self, choose: Callable[..., pl.Expr], values: Iterable[Value]) -> Value:
        """Maximum or minimum over quantities that are not negative; zeros are left out."""
        present = [value for value in values if any(part is not None for part in value)]
        if len(present) < 2:  # noqa: PLR2004, one or none
            return present[0] if present else Value()
        if all(value.per_row is None for value in present):
            return Value(choose([value.per_case for value in present]))
        return Value(per_row=choose([self.total(value) for value in present]))

    def _minimum(self, leasts: Sequence[Sequence[Poly | None]], count: int) -> Value:
        """Minimum over polynomials, case by case; null where there are none."""
        values = [self.poly([poly and poly * count for poly in polys]) for polys in leasts]
        if any(per_case is None and per_row is None for per_case, per_row in values):
            return Value()  # none is negative
        return self.extreme(pl.min_horizontal, values)

    def time(self, times: Sequence[Time | None], count: int = 1) -> Value:
        """Compile `count` times a time per case; null where it is None [s]."""
        summands = [None if time is None else time.terms for time in times]
        return self.sum(
            self.extreme(
                pl.max_horizontal,
                (
                    self._minimum(leasts, count)
                    for leasts in align_pieces(
                        [
                            None if terms is None else terms[i] if i < len(terms) else NO_TIME
                            for terms in summands
                        ]
                    )
                ),
            )
            for i in range(max((len(terms) for terms in summands if terms), default=0))
        )

    # ------------------------------------------------------------ works

    def works(self, columns: Iterable[str], *, exact: bool = True) -> dict[str, pl.Expr]:
        """Compile works by column.

        Args:
            columns: The works' names.
            exact: Make whole numbers below 2^53 exact: 1/3 is not in Float64, so coefficients are
                scaled by the lcm of their odd denominators, and the sum is divided once.
        """
        works: dict[str, pl.Expr] = {}
        compiled: list[tuple[list[Poly], pl.Expr]] = []
        for name in columns:
            polys = [case.work(name) for case in self.cases]
            work = next((work for earlier, work in compiled if earlier == polys), None)
            if work is None:
                work = self._exact(polys) if exact else self.total(self.poly(polys))
                compiled.append((polys, work))
            works[name] = work
            if self._varies(polys):
                self.varying.add(name)
        return works

    def _exact(self, polys: Sequence[Poly]) -> pl.Expr:
        """Exact work of all cases."""
        parts = [
            math.lcm(*(odd_part(coefficient.denominator) for coefficient in poly.terms.values()))
            for poly in polys
        ]
        total = self.total(
            self.poly([poly * part for poly, part in zip(polys, parts, strict=True)])
        )
        if all(part == 1 for part in parts):
            return total
        return self.quotient(total, self.constant(list(map(float, parts))))

    def _varies(self, polys: Sequence[Poly]) -> bool:
        """True if a work varies by row, in place of one value for all."""
        extents = {extent for poly in polys for product in poly.terms for extent in product}
        if any(not self.varying.isdisjoint(extent.sizes) for extent in extents):
            return True
        return any(poly != polys[0] for poly in polys)


class Keyed(Protocol):
    """Object with values in key columns."""

    @property
    def keys(self) -> Mapping[str, str | int | None]:
        """Values in tables' key columns."""


def key_columns(cases: Sequence[Keyed]) -> dict[str, pl.Series]:
    """Key columns, by case: texts Categorical, numbers Int64."""
    keys = [case.keys for case in cases]
    if not keys:
        return {}
    return {
        name: pl.Series(
            [case_keys[name] for case_keys in keys],
            dtype=pl.Int64 if isinstance(first, int) else pl.Categorical,
        )
        for name, first in keys[0].items()
    }


def first_longest(seconds: Mapping[str, pl.Expr], longest: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """First bound with the longest time, ties within `TIE_SHARE` included.

    Args:
        seconds: The times by bound, in the order that decides ties [s].
        longest: The longest time [s].
        kind: The column's type.
    """
    *earlier, last = seconds
    label: pl.Expr = pl.lit(last, dtype=kind)
    for bound in reversed(earlier):
        is_tied = seconds[bound] >= longest * (1.0 - TIE_SHARE)
        label = pl.when(is_tied).then(pl.lit(bound, dtype=kind)).otherwise(label)
    return label
