"""The columns of blocks of cases: polynomials and times as expressions, for any kind of case.

Rows are a blocked product (`evaluation.blocked`): the inner axes are computed once and repeated for
every point of the outer ones. A quantity is split likewise: what depends on sizes of the side that
has the cases is computed there, the rest per row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial, reduce
from operator import add, mul
from typing import TYPE_CHECKING, NamedTuple, Protocol

import polars as pl

from rooflines.evaluation.blocked import Factors, block_start, blocked_product
from rooflines.evaluation.space import axis_columns, has_one_value, odd_part
from rooflines.theory.poly import (
    ACTIVATED,
    WINDOWED_EXTENTS,
    ZERO,
    parse_activated_experts,
    sizes_of,
)
from rooflines.theory.times import NO_TIME, align_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rooflines.evaluation.space import AxisColumns
    from rooflines.sweep.cases import Block, Case
    from rooflines.theory.poly import Poly
    from rooflines.theory.times import Time

CLOSE = 1e-13
"""Times that differ by a smaller share are a tie: each has at most a few dozen roundings of 1.1e-16
[1]."""

CASE, CHIP = "#case", "#chip"
"""The columns with the index of a row's case, and of its block among those computed at once. Names
with # never leave the package."""

ROWS_AT_ONCE = 2**20
"""Rows of a slice [1]."""

TextTypes = Mapping[str, "pl.DataType"]
"""Types of text columns that are not Categorical."""


def extent(name: str) -> pl.Expr:
    """An extent as an expression of columns, Float64."""
    kind, _, of = name.partition(":")
    if kind == ACTIVATED:
        experts, per_token, share, sizes = parse_activated_experts(of)
        tokens = reduce(mul, map(extent, sizes.split("*"))) * float(share)
        power = tokens * math.log1p(-per_token / experts)
        return float(experts) * used_share(power)
    if kind in WINDOWED_EXTENTS:
        return pl.col(name).cast(pl.Float64)
    sizes, _, span = name.partition("/")
    product = reduce(mul, (pl.col(size).cast(pl.Float64) for size in sizes.split("*")))
    return quotient(product, pl.lit(float(span))).ceil() if span else product


def quotient(dividend: pl.Expr, divisor: pl.Expr) -> pl.Expr:
    """The Float64 nearest to a dividend over its divisor, the same in every slice of a table.

    polars divides by a column of one value by multiplying with its reciprocal, which rounds twice:
    3528 / 49 is then not 72. A slice of one row, or a thread's share of one row, is divided
    instead, so the last digit would depend on how a table is cut. A divisor that is computed row by
    row avoids both.

    """
    return dividend / (divisor + dividend * 0.0)


def used_share(power: pl.Expr) -> pl.Expr:
    """1 - exp(power), for a power below zero: without cancellation where it is small."""
    return (power * -0.5).tanh() * (1.0 + power.exp())


class Value(NamedTuple):
    """A quantity: a part computed on the side of the cases, and one per row; None is zero."""

    early: pl.Expr | None = None
    late: pl.Expr | None = None

    @property
    def is_zero(self) -> bool:
        """Whether nothing contributes to it."""
        return self.early is None and self.late is None


class Sheet:
    """Columns and expressions of blocks with the same sizes and works.

    Args:
        blocks: One block, or several whose cases have the same kernels but for their rates.
        inner: Axes after the cases whose points are the block of inner rows; None: as many as fit.

    Attributes:
        cases: All cases.
        factors: Columns to compute per point of the outer axes, and per row of the block.
        varying: The columns that have a value for each row, in place of one for all.
        shares: Extents computed as a size divided by a number of the case, whole numbers.
    """

    def __init__(
        self,
        blocks: Sequence[Block[Case]],
        inner: int | None = None,
    ) -> None:
        first = blocks[0]
        self.cases = [case for block in blocks for case in block.cases]
        self._own = len(first.cases)
        self._several = len(blocks) > 1
        self._chips = {CHIP: pl.Series(range(len(blocks)), dtype=pl.UInt32)}
        self._of_cases = {CASE: pl.Series(range(self._own), dtype=pl.UInt32)}
        self._before, self._after = (
            list(map(axis_columns, axes)) for axes in (first.before, first.after)
        )
        self._names: dict[tuple[float | None, ...], str] = {}
        self._gathered: dict[str, pl.Series] = {}
        self._works: dict[str, list[Poly]] = {}
        self._known: dict[tuple[int, int], str] = {}
        self.factors = Factors()
        single = [*self._before, self._of_cases, *self._after]
        self._split = block_start(single) if inner is None else len(single) - inner
        cases_outer = len(self._before) < self._split
        sides = single[: self._split], single[self._split :]
        near = sides[0] if cases_outer else sides[1]
        one = {name for axis in single for name in axis if has_one_value(axis[name])}
        self._near = {name for axis in near for name in axis} | one
        here = self.factors.outer_factors, self.factors.inner_factors
        self._here, self._there = here if cases_outer else here[::-1]
        self.varying = {name for axis in single for name in axis} - one
        for name, values in key_columns(self.cases).items():
            self.put(name, values)
            self._near.add(name)
        self.shares: dict[str, pl.Expr] = {}
        for name, (size, _) in self.cases[0].shares.items():
            each = self.constant([case.shares[name][1] for case in self.cases])
            self.shares[name] = (pl.col(size) / each).round()
            self._near.add(name)
            self.varying.add(name)

    @property
    def axes(self) -> list[Mapping[str, pl.Series]]:
        """The axes, slowest first."""
        chips = [self._chips] if self._several else []
        return [*chips, *self._before, self._of_cases, *self._after]

    @property
    def texts(self) -> dict[str, pl.Series]:
        """The columns of text, Categorical."""
        columns = [each for axis in (*self.axes, self._gathered) for each in axis.items()]
        return {name: values for name, values in columns if values.dtype == pl.Categorical}

    def frame(
        self,
        stages: Iterable[Mapping[str, pl.Expr]],
        start: int,
        stop: int,
        texts: TextTypes | None = None,
    ) -> pl.LazyFrame:
        """Some rows with the columns of stages.

        Args:
            stages: The columns.
            start: The first row [1].
            stop: The row after the last [1].
            texts: The types of text columns that are not Categorical.
        """

        def typed(columns: AxisColumns) -> AxisColumns:
            kinds = {name: (texts or {}).get(name, each.dtype) for name, each in columns.items()}
            return {name: each.cast(kinds[name]) for name, each in columns.items()}

        split = self._split + self._several  # rows are rounded as those of a block by itself
        rows = blocked_product(list(map(typed, self.axes)), split, start, stop, self.factors)
        index = pl.col(CHIP) * self._own + pl.col(CASE)
        gathered = {
            name: pl.lit(values[0], dtype=values.dtype)
            if has_one_value(values)
            else pl.lit(values).gather(index)
            for name, values in typed(self._gathered).items()
        }
        for columns in (gathered, *stages):
            rows = rows.with_columns(**columns) if columns else rows
        return rows

    def slices(self, stages: Sequence[Mapping[str, pl.Expr]], rows: int) -> Iterator[pl.DataFrame]:
        """All rows with the columns of stages, so many at once that memory does not grow."""
        for start in range(0, rows, ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, rows)
            yield self.frame(stages, start, stop).collect()

    # ------------------------------------------------------------ columns of cases

    def put(self, name: str, values: pl.Series) -> None:
        """Add a column with a value for each case."""
        if not has_one_value(values):
            self.varying.add(name)
        (self._gathered if self._several else self._of_cases)[name] = values

    def constant(self, values: Sequence[float | None], *, shared: bool = False) -> pl.Expr:
        """A column with a number for each case; arguments as of `named_constant`."""
        return pl.col(self.named_constant(values, shared=shared))

    def named_constant(self, values: Sequence[float | None], *, shared: bool = False) -> str:
        """The name of such a column; equal ones are one.

        Args:
            values: By case.
            shared: Whether they are those of the cases of a block, the same in all blocks.
        """
        key = (shared and self._several, *values)
        if key not in self._names:
            self._names[key] = f"#{len(self._names)}"
            column = pl.Series(values, dtype=pl.Float64)
            if shared and self._several:
                self._of_cases[self._names[key]] = column
            else:
                self.put(self._names[key], column)
        return self._names[key]

    def quotient(self, dividend: pl.Expr, divisor: str) -> pl.Expr:
        """The quotient by a column, see `quotient`; cheaper where that is computed row by row."""
        column = pl.col(divisor)
        return dividend / column if divisor in self.varying else quotient(dividend, column)

    # ------------------------------------------------------------ quantities

    def poly(self, polys: Sequence[Poly | None]) -> Value:
        """A polynomial of every case; null where it is None.

        One that is a multiple of a work of its case, as its time at a rate is, is that column over
        a divisor. Other cases have no say in it, so a row has the same last digit beside any.
        """
        of_case = [
            self._known.get((index, terms_id(each))) if each else None
            for index, each in enumerate(polys)
        ]
        columns = dict.fromkeys(column for column in of_case if column is not None)
        if not columns:
            return self._sum(polys)
        quotients = [self._multiple(polys, column, of_case) for column in columns]
        rest = [
            each if column is None else ZERO for each, column in zip(polys, of_case, strict=True)
        ]
        early, late = self._sum(rest) if any(rest) else Value()
        return Value(early, reduce(add, quotients if late is None else [*quotients, late]))

    def _multiple(
        self, polys: Sequence[Poly | None], column: str, of_case: Sequence[str | None]
    ) -> pl.Expr:
        """The multiples of a work, of the cases that have one of this column; 0 in the others."""
        divisors: list[float | None] = []
        for each, work, own in zip(polys, self._works[column], of_case, strict=True):
            if each and own == column:
                divisors.append(float(work.scale / each.scale))
            else:
                divisors.append(None if each is None else math.inf if work else 1.0)
        if all(divisor == 1.0 for divisor in divisors):
            return pl.col(column)
        return self.quotient(pl.col(column), self.named_constant(divisors))

    def know(self, column: str, polys: Sequence[Poly]) -> None:
        """Have later polynomials that are multiples of these use a column."""
        self._works[column] = list(polys)
        for index, each in enumerate(polys):
            if each:
                self._known.setdefault((index, terms_id(each)), column)

    def _sum(self, polys: Sequence[Poly | None], parts: Sequence[int] | None = None) -> Value:
        """A sum of products of extents; coefficients are multiplied by `parts`."""
        if parts is not None:
            scaled = zip(polys, parts, strict=True)
            polys = [each and each.scaled(each.scale * part) for each, part in scaled]
        own = [None if each is None else each.floats for each in polys]
        constant = partial(self.constant, shared=parts is not None)
        early: list[pl.Expr] = []
        late: dict[tuple[str, ...], list[pl.Expr]] = {}
        for product in sorted({name for each in own if each for name in each}):
            values = [None if each is None else each.get(product, 0.0) for each in own]
            if not product and self._several and parts is None:
                return Value(late=constant(values))
            near = [self._extent(name) for name in product if sizes_of(name) <= self._near]
            far = tuple(name for name in product if not sizes_of(name) <= self._near)
            (late.setdefault(far, []) if far else early).append(
                reduce(mul, [*near, constant(values)])
            )
        if not early and not late and None in polys:
            early.append(constant([None if each is None else 0.0 for each in polys]))
        rows = [self._extents(far) * self._early(reduce(add, each)) for far, each in late.items()]
        return Value(reduce(add, early) if early else None, reduce(add, rows) if rows else None)

    def _extent(self, name: str) -> pl.Expr:
        """An extent as an expression, Float64."""
        return self.shares[name] if name in self.shares else extent(name)

    def _early(self, expression: pl.Expr) -> pl.Expr:
        """A column of the cases' side."""
        name = f"#early{len(self._here)}"
        self._here[name] = expression
        return pl.col(name)

    def _extents(self, far: tuple[str, ...]) -> pl.Expr:
        """A product of extents of the other side, computed there if it needs nothing else."""
        product = reduce(mul, map(self._extent, far))
        if any(sizes_of(name) & self._near for name in far):
            return product
        name = f"#extents:{'*'.join(far)}"
        self._there[name] = product
        return pl.col(name)

    def total(self, value: Value) -> pl.Expr:
        """A quantity as an expression of a row; what the cases decide is a column."""
        early = [] if value.early is None else [self._early(value.early)]
        late = [] if value.late is None else [value.late]
        return reduce(add, [*late, *early]) if early or late else pl.lit(0.0)

    @staticmethod
    def sum(values: Iterable[Value]) -> Value:
        """The sum of quantities."""
        listed = list(values)
        early = [each.early for each in listed if each.early is not None]
        late = [each.late for each in listed if each.late is not None]
        return Value(reduce(add, early) if early else None, reduce(add, late) if late else None)

    def chosen(self, choose: Callable[..., pl.Expr], values: Iterable[Value]) -> Value:
        """The largest or least of quantities; zeros among them are left out."""
        present = [value for value in values if not value.is_zero]
        if len(present) < 2:  # noqa: PLR2004, one or none
            return present[0] if present else Value()
        if all(value.late is None for value in present):
            return Value(choose([value.early for value in present]))
        return Value(late=choose([self.total(value) for value in present]))

    def largest(self, values: Iterable[Value]) -> Value:
        """The largest of quantities that are not negative."""
        return self.chosen(pl.max_horizontal, values)

    def _least(self, leasts: Sequence[Sequence[Poly | None]], count: int) -> Value:
        """The least of a few polynomials in every case; null where there are none."""
        values = [self.poly([each and each * count for each in polys]) for polys in leasts]
        if any(value.is_zero for value in values):
            return Value()  # none is negative
        return self.chosen(pl.min_horizontal, values)

    def time(self, found: Sequence[Time | None], count: int = 1) -> Value:
        """A time of every case, a number of times; null where it is None [s]."""
        summands = [None if each is None else each.terms for each in found]
        return self.sum(
            self.largest(
                self._least(leasts, count)
                for leasts in align_pieces(
                    [
                        None if each is None else each[i] if i < len(each) else NO_TIME
                        for each in summands
                    ]
                )
            )
            for i in range(max((len(each) for each in summands if each), default=0))
        )

    # ------------------------------------------------------------ works

    def works(self, columns: Iterable[str], *, exact: bool = True) -> dict[str, pl.Expr]:
        """Works by column; later quantities that are multiples of one use its column.

        Args:
            columns: Their names.
            exact: Whether whole numbers below 2^53 are exact: 1/3 is not in Float64, so
                coefficients are scaled by the lcm of their odd denominators, and the sum is divided
                once.
        """
        summed = self._exact if exact else lambda polys: self.total(self._sum(polys))
        found: dict[str, pl.Expr] = {}
        for name in columns:
            polys = [case.work(name) for case in self.cases]
            earlier = next((each for each in found if same(self._works[each], polys)), None)
            found[name] = summed(polys) if earlier is None else found[earlier]
            self.know(name, polys)
            if self._moves(polys):
                self.varying.add(name)
        return found

    def _exact(self, polys: Sequence[Poly]) -> pl.Expr:
        """A work of all cases, which is the same in every block."""
        own = polys[: self._own]
        parts = [
            math.lcm(*(odd_part(each.denominator) for each in poly.coefficients.values()))
            for poly in own
        ]
        total = self.total(self._sum(own, parts))
        if all(part == 1 for part in parts):
            return total
        name = self.named_constant([float(part) for part in parts], shared=True)
        if len(set(parts)) > 1:
            self.varying.add(name)
        return self.quotient(total, name)

    def _moves(self, polys: Sequence[Poly]) -> bool:
        """Whether a work has a value for each row, in place of one for all."""
        extents = {name for poly in polys for product in poly.terms for name in product}
        if any(not self.varying.isdisjoint(sizes_of(name)) for name in extents):
            return True
        first = polys[0]
        alike = (same([first], [poly]) or first.coefficients == poly.coefficients for poly in polys)
        return not all(alike)


def same(polys: Sequence[Poly], others: Sequence[Poly]) -> bool:
    """Whether polynomials are equal because they share their terms."""
    pairs = zip(polys, others, strict=True)
    return all(terms_id(a) == terms_id(b) and a.scale == b.scale for a, b in pairs)


def terms_id(poly: Poly) -> int:
    """What is the same for polynomials that share their terms; 0 for those without any."""
    return id(poly.terms) if poly.terms else 0


class Keyed(Protocol):
    """What has values in key columns."""

    @property
    def keys(self) -> Mapping[str, str | int | None]:
        """Its values in the key columns of tables."""


def key_columns(cases: Sequence[Keyed]) -> dict[str, pl.Series]:
    """The keys of cases: Categorical, numbers Int64."""
    keys = [case.keys for case in cases]
    if not keys:
        return {}
    return {
        name: pl.Series(
            [each[name] for each in keys],
            dtype=pl.Int64 if isinstance(first, int) else pl.Categorical,
        )
        for name, first in keys[0].items()
    }


def first_longest(seconds: Mapping[str, pl.Expr], longest: pl.Expr, kind: pl.DataType) -> pl.Expr:
    """The first bound whose time is the longest, ties within `CLOSE` included.

    Args:
        seconds: The times by bound, in the order that decides ties [s].
        longest: The longest of them [s].
        kind: The type of the column.
    """
    *others, last = seconds
    label: pl.Expr = pl.lit(last, dtype=kind)
    for bound in reversed(others):
        near = seconds[bound] >= longest * (1.0 - CLOSE)
        label = pl.when(near).then(pl.lit(bound, dtype=kind)).otherwise(label)
    return label
