"""The smallest compute-bound size along every dimension of an operation, in closed form.

Every work is affine in every single extent, a size or the number of its tiles; so is every time,
but for the latency of a collective, which is a second, constant line.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from rooflines.critical.along import Along
from rooflines.critical.saturation import saturated
from rooflines.critical.solving import ask_times, solved
from rooflines.model.resources import MATH, MEMORY, OTHERS, RESOURCES
from rooflines.sweep.sheet import quotient

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.model.poly import Poly
    from rooflines.sweep.operations import OperationCase, Sweep


def dimension_thresholds(sweep: Sweep, axis: str) -> Iterator[tuple[Fraction, pl.DataFrame]]:
    """Thresholds along one dimension, in slices.

    Along a tiled dimension a work that counts sizes is taken at the last size of each tile, its
    largest: from a threshold on, every size has to be compute-bound.

    Args:
        sweep: The sweep.
        axis: The dimension.

    Yields:
        Shares of the attainable peak, and the columns of thresholds along the dimension.
    """
    cases = sweep.cases
    sizes, one = sweep.sizes_without(axis), [1] * len(cases)
    spans = [elements_per_extent(case, axis) for case in cases]
    along = Along(cases, sizes, axis, spans)
    along.put("#span", pl.Series(spans, dtype=pl.Int64))
    along.put("#least", pl.Series(one, dtype=pl.Int64))
    along.ask({each.work: [case.work(each.work) for case in cases] for each in RESOURCES})
    names, saturates = ask_times(along, cases), saturated(cases, sizes, axis, one)
    of_limit = pl.coalesce(
        pl.when(pl.col("limit") == each.bound).then(pl.col(f"#slope:{each.work}"))
        for each in OTHERS
    )
    intensity = quotient(pl.col(f"#slope:{MATH.work}"), of_limit)
    rules = RulesOfThumb(along, cases, spans)
    for share in sweep.shares:
        along.put("critical_rule", rules.at(share))
        start = 0
        for frame in along.frames():
            found = solved(frame, names, share).with_columns(
                limit_intensity=pl.when(of_limit > 0).then(intensity)
            )
            yield share, found.collect().with_columns(saturates[start : start + frame.height])
            start += frame.height


def elements_per_extent(case: OperationCase, axis: str) -> int:
    """Elements of a dimension that one of its extents spans over all chips [1]."""
    workload = case.workload
    return workload.tile[axis] * workload.share(axis) if axis in workload.tile else 1


class RulesOfThumb:
    """The sizes along an axis against memory, with all other dimensions taken as infinite.

    Of every work only the products of all other dimensions count then. For a matmul this is bits /
    16 of the operand that lacks the dimension, times the critical memory intensity.

    Source: All About Rooflines, "Matrix multiplication": B > 240 for bf16 on a TPU v5e.
    """

    def __init__(self, along: Along, cases: Sequence[OperationCase], spans: Sequence[int]) -> None:
        self._along, self._cases, self._spans = along, cases, spans
        self._leading: dict[tuple[int, int], tuple[Fraction, Fraction]] = {}

    def at(self, share: Fraction) -> pl.Series:
        """The size of every case [1]; null if every operand has the dimension, or never."""
        cases = zip(self._cases, self._spans, strict=True)
        return pl.Series([self._rule(*each, share) for each in cases], dtype=pl.Float64)

    def _rule(self, case: OperationCase, span: int, share: Fraction) -> float | None:
        (math,), (memory,) = (
            [least[0] for least in case.times.by[each.bound].pieces] for each in (MATH, MEMORY)
        )
        if not self._along.line(memory, span).constant:
            return None
        of_math = math.scale / memory.scale / share
        (ahead, lead), (behind, need) = self._of(case, math, span), self._of(case, memory, span)
        gain, gap = ahead * of_math - behind, need - lead * of_math
        if gain < 0 or (gain == 0 and gap > 0):
            return None
        return float(max(gap / gain, Fraction(0)) * span) if gain else 0.0

    def _of(self, case: OperationCase, poly: Poly, span: int) -> tuple[Fraction, Fraction]:
        """Slope and constant of a time, unscaled, per product of all other dimensions."""
        key = id(poly.terms), span
        if key not in self._leading:
            others = len(case.sweep.op.dims) - 1

            def leading(part: Poly) -> Fraction:
                terms = part.terms.items()
                return sum((each for dims, each in terms if len(dims) == others), Fraction(0))

            line = self._along.line(poly, span)
            self._leading[key] = leading(line.slope), leading(line.constant)
        return self._leading[key]
