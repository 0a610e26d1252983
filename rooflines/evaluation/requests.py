"""Requests: a prompt, then tokens one by one. Sums over the decode steps are closed forms.

A decode step with context S moves min(S, w) entries of a cache with window w, or as many as its
chunk has so far. Works and times are linear in them, so that their means over the steps are their
values at the mean number of entries. A mean of the largest of several times is a sum of arithmetic
series: one is the largest up to a context, then another; `evaluation.sawtooth` has those of chunks.
"""

from __future__ import annotations

from functools import reduce
from itertools import combinations, pairwise, product
from operator import add
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.evaluation.compiler import CASE, Value, quotient
from rooflines.evaluation.sawtooth import ContextTime, sum_of_largest
from rooflines.evaluation.step_rows import StepSheet, band_columns
from rooflines.models.attention_window import FULL_ATTENTION, AttentionWindow
from rooflines.models.groups import StepExtents
from rooflines.sweep.step_sweep import REQUEST
from rooflines.theory.poly import total

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.config.model_fields import Request
    from rooflines.evaluation.operation_rows import Stages
    from rooflines.sweep.cases import Block
    from rooflines.sweep.step_sweep import StepCase
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.poly import Poly
    from rooflines.theory.times import Time, Times


PROMPTS = "prefill_estimate_s"
"""The column of what prompts add to the estimate of a token [s]."""


class ContextLine(NamedTuple):
    """A time against the context.

    Attributes:
        once: Independent of the context [s].
        full: Per entry of the layers whose tokens attend to all [s].
        windowed: Per entry of the layers with a window or chunks [s].
    """

    once: pl.Expr
    full: pl.Expr
    windowed: pl.Expr


class RequestSheet(StepSheet):
    """The columns of rows of requests: means over the decode steps.

    Args:
        block: The cases and their sizes.

    Attributes:
        requests: The requests.
    """

    def __init__(self, block: Block[StepCase]) -> None:
        super().__init__(block)
        self.requests: Sequence[Request] = self.config.requests or ()
        self.prior = [{}, {}, {}]
        reaches = self.cases[0].model.shape.attention_windows
        self._reach = next(
            (reach for reach in reaches if reach.tokens is not None), AttentionWindow()
        )

    def stages(self) -> Stages:
        """The columns but keys and sizes; S is null."""
        prompts = self._prompts()
        return [
            *super().stages(),
            {
                **prompts,
                "S": pl.lit(None, dtype=pl.Int64),
                "tpot_s": pl.col("t_lower_s"),
                "tpot_serial_s": pl.col("t_serial_s"),
            },
            {"t_estimate_s": pl.col("t_estimate_s") + prompts[PROMPTS].fill_null(0.0)},
            band_columns(),
        ]

    def of_requests(
        self, values: Sequence[float | None], dtype: type[pl.DataType] = pl.Float64
    ) -> pl.Expr:
        """A value of every request of every case, requests faster."""
        index = pl.col(CASE).cast(pl.Int64) * len(self.requests) + pl.col(REQUEST)
        return pl.lit(pl.Series(values, dtype=dtype)).gather(index)

    def lower(self) -> pl.Expr:
        """The mean `t_lower_s` of the steps, from the times of its resources."""
        return self._mean(zip(*(case.times.by_bound.values() for case in self.cases), strict=True))

    def kernel_seconds(self, index: int) -> tuple[Value, Value]:
        """The mean times of a kernel; see `StepSheet.kernel_seconds`."""
        longest, sent = super().kernel_seconds(index)
        times = [case.kernel_times[index] for case in self.cases]
        if not any(_follows_context(each) for each in times):
            return longest, sent
        count = self.cases[0].kernels[index].count
        by = {
            bound: [each.with_activation_traffic[bound] for each in times]
            for bound in times[0].by_bound
        }
        return Value(late=self._mean(by.values(), count)), sent

    def kernel_estimate(self, found: Sequence[Times | None], kernel: Kernel) -> Value:
        """The mean of the largest piece of a kernel; see `StepSheet.kernel_estimate`."""
        if not any(each and _follows_context(each) for each in found):
            return super().kernel_estimate(found, kernel)
        bounds = dict.fromkeys(bound for each in found if each for bound in each.by_bound)
        by = {
            bound: [None if each is None else each.by_bound.get(bound) for each in found]
            for bound in bounds
        }
        return Value(late=self._mean(by.values(), kernel.count))

    def _mean(self, by: Iterable[Sequence[Time | None]], count: int = 1) -> pl.Expr:
        """The mean over the steps of the largest of several times of every case [s]."""
        lines = []
        for found in by:
            polys = _one_poly(found)
            if polys is None:
                value = self.sheet.total(self.sheet.time(found, count))
                lines.append(ContextLine(value, pl.lit(0.0), pl.lit(0.0)))
            else:
                lines.append(self._line([each and each * count for each in polys]))
        steps = pl.col("output").cast(pl.Float64)
        first = pl.col("input").cast(pl.Float64) + 1.0
        last = pl.col("input").cast(pl.Float64) + steps
        if self._reach.chunked:
            return quotient(self._sum_over_chunks(lines), steps)
        sums = []
        for entries in self._reach.lines():
            along = [
                (
                    each.once + each.windowed * float(entries.constant),
                    each.full + each.windowed * float(entries.slope),
                )
                for each in lines
            ]
            since = pl.max_horizontal(first, float(entries.first))
            until = last if entries.last is None else pl.min_horizontal(last, float(entries.last))
            sums.append(self._sum_of_largest(along, since, until))
        return quotient(reduce(add, sums), steps)

    def _sum_over_chunks(self, lines: Sequence[ContextLine]) -> pl.Expr:
        """The sum of the largest of several times over the steps, where layers attend in chunks."""
        sizes, chunk = ("input", "output"), self._reach.tokens or 1
        times = [
            each.cast(pl.Float64).alias(f"{index}:{part}")
            for index, line in enumerate(lines)
            for part, each in zip(ContextTime._fields, line, strict=True)
        ]

        def summed(rows: pl.Series) -> pl.Series:
            """The sums of rows with the sizes, then the three parts of every time."""
            found: list[float | None] = []
            for prompt, answer, *parts in rows.struct.unnest().iter_rows():
                if None in parts:
                    found.append(None)
                    continue
                each = [ContextTime(*parts[at : at + 3]) for at in range(0, len(parts), 3)]
                found.append(sum_of_largest(each, prompt + 1, prompt + answer, chunk))
            return pl.Series(found, dtype=pl.Float64)

        of_rows = pl.struct(*sizes, *times)
        return of_rows.map_batches(summed, return_dtype=pl.Float64, is_elementwise=True)

    def _sum_of_largest(
        self, lines: Sequence[tuple[pl.Expr, pl.Expr]], first: pl.Expr, last: pl.Expr
    ) -> pl.Expr:
        """The sum of the largest of several lines, over whole numbers.

        Between two neighbours of the numbers from which on one line overtakes another one, one line
        is the largest throughout: that with the largest sum.

        Args:
            lines: Constant and slope of each.
            first: The first number.
            last: The last number; the sum is 0 if it is less than the first.
        """
        lined, listed, numbered = self.prior
        name = f"#turns{len(listed)}"
        for index, line in enumerate(lines):
            lined |= {f"{name}:{part}{index}": each for part, each in zip("cs", line, strict=True)}
        columns = [
            (pl.col(f"{name}:c{index}"), pl.col(f"{name}:s{index}")) for index in range(len(lines))
        ]
        stop = pl.max_horizontal(last + 1.0, first)
        turns = []
        for (one, slope), (other, more) in combinations(columns, 2):
            real = ((one - other) / (more - slope)).fill_nan(float("-inf"))
            turns.append(pl.min_horizontal(stop, pl.max_horizontal(first, real.ceil())))
        listed[name] = pl.concat_list(first, *turns, stop).list.sort()
        numbers = [f"{name}:{index}" for index in range(len(turns) + 2)]
        numbered |= {each: pl.col(name).list.get(index) for index, each in enumerate(numbers)}
        return pl.sum_horizontal(
            pl.max_horizontal(
                (end - start) * (constant + slope * (start + end - 1.0) / 2.0)
                for constant, slope in columns
            )
            for start, end in pairwise(map(pl.col, numbers))
        )

    def _line(self, polys: Sequence[Poly | None]) -> ContextLine:
        """The line of a time, from its polynomial in every case."""
        parts = zip(*map(_parts, polys), strict=True)
        return ContextLine(*(self.sheet.total(self.sheet.poly(each)) for each in parts))

    def _prompts(self) -> dict[str, pl.Expr]:
        """The times to the first token of every case and request: of a prompt on every replica.

        With `PROMPTS`, what prompts that are read between tokens add to each by estimate; null
        where prompts have servers of their own.
        """
        pairs = list(product(self.cases, self.requests))
        found = [first_token(case, request) for case, request in pairs]
        read: list[float | None] = []
        for (case, request), first in zip(pairs, found, strict=True):
            engine, each = case.engine, None
            if engine and first.estimate is not None and self.config.pools is None:
                each = engine.prompts * first.estimate / (case.split.dp * request.output)
            read.append(each)
        lower, ops, estimates = zip(*found, strict=True)
        return {
            "ttft_s": self.of_requests(lower),
            "ttft_serial_s": self.of_requests(ops),
            "ttft_estimate_s": self.of_requests(estimates),
            PROMPTS: self.of_requests(read) * pl.col("B").cast(pl.Float64),
        }


class FirstToken(NamedTuple):
    """The time to the first token of a request, of a prompt on every replica.

    Attributes:
        lower: The bound [s].
        ops: Kernels one after another [s].
        estimate: The calibrated time [s]; None without a calibration.
    """

    lower: float
    ops: float
    estimate: float | None


def first_token(case: StepCase, request: Request) -> FirstToken:
    """The time to the first token of a request."""
    prefill = case.prefill
    extents = StepExtents(prefill.step(case.split.dp, request.input))
    ops = sum(
        kernel.count * times.at(extents).serial
        for kernel, times in zip(prefill.kernels, prefill.kernel_times, strict=True)
    )
    known = [times for times in prefill.kernel_estimates if times is not None]
    estimate = None
    if len(known) == len(prefill.kernels):
        estimate = float(
            sum(
                kernel.count * (times.common.at(extents) + times.at(extents).lower)
                for kernel, times in zip(prefill.kernels, known, strict=True)
            )
        )
    return FirstToken(float(prefill.times.at(extents).lower), float(ops), estimate)


def _parts(poly: Poly | None) -> tuple[Poly | None, ...]:
    """The parts of a time, as those of `ContextLine`."""
    if poly is None:
        return None, None, None
    line = poly.affine_in("S")
    full = {
        name: each for name, each in line.per_tile.items() if name in FULL_ATTENTION.extent_names
    }
    windowed = (each for name, each in line.per_tile.items() if name not in full)
    return line.constant, total(full.values()), total(windowed)


def _follows_context(times: Times) -> bool:
    """Whether a time depends on the context."""
    polys = (poly for time in times.by_bound.values() for least in time.pieces for poly in least)
    return any(poly.affine_in("S").per_tile for poly in polys)


def _one_poly(found: Sequence[Time | None]) -> list[Poly | None] | None:
    """The polynomials of times that are one each; None if one has several pieces."""
    pieces = [None if each is None else each.pieces for each in found]
    if any(each is not None and (len(each) > 1 or len(each[0]) > 1) for each in pieces):
        return None
    return [None if each is None else each[0][0] for each in pieces]
