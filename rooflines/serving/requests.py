"""Requests: a prompt, then tokens one by one. Sums over the decode steps are closed forms.

A decode step with context S moves min(S, w) entries of a cache with window w. Works and times are
linear in them, so that their means over the steps are their values at the mean number of entries. A
mean of the largest of several times is a sum of arithmetic series: one is the largest up to a
context, then another.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.model.resources import RESOURCES
from rooflines.models.cache import cache_elements, pairs
from rooflines.models.shape import PREFILL
from rooflines.serving.footprints import ELEMENTS, whole_numbers
from rooflines.serving.formulas import REQUEST_TIMES
from rooflines.serving.kernels import summed
from rooflines.serving.lines import CaseLines
from rooflines.serving.stages import (
    CASE,
    Stages,
    Sum,
    TimesOfKernel,
    estimate_terms,
    named,
    time_terms,
)
from rooflines.serving.times import step_seconds
from rooflines.sweep.estimates import slots_of
from rooflines.sweep.metrics import quotient
from rooflines.sweep.ties import Ties

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.fits.estimate import Estimate
    from rooflines.models.groups import Terms
    from rooflines.serving.case import Case
    from rooflines.serving.kernels import Kernel
    from rooflines.serving.times import KernelTimes, Seconds
    from rooflines.settings.model_sweeps import Request

REQUEST = "#request"
"""The index of a row's request in its sweep."""


class Line(NamedTuple):
    """A time against the context.

    Attributes:
        once: Independent of the context [s].
        full: Per entry of the layers without a window [s].
        windowed: Per entry of the layers with one [s].
    """

    once: pl.Expr
    full: pl.Expr
    windowed: pl.Expr


class RequestStages(Stages):
    """Columns and expressions of a block whose rows are requests: means over the decode steps."""

    @property
    def requests(self) -> Sequence[Request]:
        """The requests of the sweep."""
        return self.sweep.config.requests or ()

    @cached_property
    def points(self) -> dict[str, pl.Series]:
        """The requests, with the mean entries of their steps and the elements of the last one."""
        shape = self.block.cases[0].model.shape
        sizes = [(each.input, each.output) for each in self.requests]
        columns = {
            REQUEST: pl.Series(range(len(sizes)), dtype=pl.Int64),
            "input": pl.Series([prompt for prompt, _ in sizes], dtype=pl.Int64),
            "output": pl.Series([answer for _, answer in sizes], dtype=pl.Int64),
            "T": pl.Series([1] * len(sizes), dtype=pl.Int64),
            ELEMENTS: whole_numbers([cache_elements(shape, sum(size)) for size in sizes]),
        }
        for window in self.windows:
            means = [float(mean_entries(each, window)) for each in self.requests]
            for name in ("pairs", "entries"):
                columns[f"#{name}:{window or ''}"] = pl.Series(means, dtype=pl.Float64)
        return columns

    def kernel_times(
        self,
        name: str,
        kernels: Sequence[Kernel],
        times: Sequence[KernelTimes | None],
        count: int = 1,
    ) -> TimesOfKernel:
        """The mean times of a kernel; see `Stages.kernel_times`."""
        found = super().kernel_times(name, kernels, times, count)
        if not kernels[0].group.cache:
            return found

        def line(*parts: str) -> Line:
            terms = time_terms(kernels, times, count, *parts)
            return self.line(f"{name}_{'_'.join(parts)}", terms)

        network = self.total(f"{name}_all_network", [found.network])
        ops = self.mean_of_largest(line("math"), line("memory", "activation"), network)
        return found._replace(ops=Sum(None, ops))

    def estimate(
        self,
        name: str,
        kernels: Sequence[Kernel],
        estimates: Sequence[Estimate | None],
        count: int = 1,
    ) -> Sum:
        """The mean calibrated time of a kernel; see `Stages.estimate`."""
        if not kernels[0].group.cache:
            return super().estimate(name, kernels, estimates, count)
        common, pieces = self.estimate_pieces(name, kernels, estimates, count)
        lines = {
            bound: self.line(f"{name}_{bound}", estimate_terms(kernels, least[0], count))
            for bound, least in slots_of(estimates)
            if bound != "network"
        }
        sent = self.largest(f"{name}_sent", [part for bound, part in pieces if bound == "network"])
        network = self.total(f"{name}_network", [sent])
        mean = self.mean_of_largest(lines["compute"], lines["memory"], network)
        return self.sum_of(name, [common, Sum(None, mean)])

    def lower(self) -> pl.Expr:
        """The mean t_lower of the steps [s], from the column `t_network_s`."""
        math, memory = (
            self.line(
                f"all_{part}",
                [
                    summed(
                        (kernel.group.count, named(kernel, getattr(times, part)))
                        for kernel, times in zip(case.kernels, case.times, strict=True)
                    )
                    for case in self.block.cases
                ],
            )
            for part in ("math", "memory")
        )
        return self.mean_of_largest(math, memory, pl.col("t_network_s"))

    @property
    def longest(self) -> pl.Expr:
        """The longest of the resources' mean times [s]."""
        return super().lower()

    def line(self, name: str, terms: Sequence[Terms]) -> Line:
        """The line of a time, from its terms in every case."""
        parts: dict[str, list[Terms]] = {kind: [] for kind in Line._fields}
        for each in terms:
            split: dict[str, Terms] = {kind: {} for kind in parts}
            for dims, coefficient in each.items():
                windows = [dim.partition(":")[2] for dim in dims if ":" in dim]
                kind = "once" if not windows else "windowed" if windows[0] else "full"
                split[kind][tuple(dim for dim in dims if ":" not in dim)] = coefficient
            for kind, of_kind in split.items():
                parts[kind].append(of_kind)
        for kind, of_kinds in parts.items():
            value = self.products(f"{name}_{kind}", of_kinds).early
            self.early[f"#{name}_{kind}"] = pl.lit(0.0) if value is None else value
        return Line(*(pl.col(f"#{name}_{kind}") for kind in Line._fields))

    def mean_of_largest(self, one: Line, other: Line, least: pl.Expr) -> pl.Expr:
        """The mean over the steps of the largest of two lines and a constant [s]."""
        steps = pl.col("output").cast(pl.Float64)
        first = pl.col("input").cast(pl.Float64) + 1.0
        last = pl.col("input").cast(pl.Float64) + steps
        window = next((float(window) for window in self.windows if window is not None), None)
        if window is None:
            lines = [(each.once, each.full) for each in (one, other)]
            return quotient(sum_of_largest(lines, least, first, last), steps)
        filling = [(each.once, each.full + each.windowed) for each in (one, other)]
        filled = [(each.once + each.windowed * window, each.full) for each in (one, other)]
        short = sum_of_largest(filling, least, first, pl.min_horizontal(last, window))
        long = sum_of_largest(filled, least, pl.max_horizontal(first, window + 1.0), last)
        return quotient(short + long, steps)

    def with_request_times(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Adds the times to the first token and per output token; S is null."""
        per_output_token = {name: formula.expr for name, formula in REQUEST_TIMES.items()}
        return frame.with_columns(S=pl.lit(None, dtype=pl.Int64), **per_output_token).join(
            self.first_tokens().lazy(), on=[CASE, REQUEST], how="left", maintain_order="left"
        )

    def first_tokens(self) -> pl.DataFrame:
        """The times to the first token of every case and request: of a prompt on every replica."""
        rows = []
        for index, case in enumerate(self.block.cases):
            lines, replicas = CaseLines(replace(case, phase=PREFILL)), case.split.dp
            for number, request in enumerate(self.requests):
                step = lines.at(request.input)
                seconds = (
                    float(units / Fraction(lines.per_s))
                    for units in (step.lower(replicas), step.ops(replicas))
                )
                rows.append((index, number, *seconds))
        keys = {CASE: pl.UInt32, REQUEST: pl.Int64}
        times = dict.fromkeys(("ttft_s", "ttft_ops_s"), pl.Float64)
        return pl.DataFrame(rows, schema={**keys, **times}, orient="row")

    @property
    def ties(self) -> Ties:
        """What resolves the bounds of the mean times."""

        def times(index: int, batch: int, number: int) -> list[Fraction]:
            seconds = mean_seconds(self.block.cases[index], batch, self.requests[number])
            return [getattr(seconds, resource.name) for resource in RESOURCES]

        return Ties((CASE, "B", REQUEST), times)


def mean_entries(request: Request, window: int | None) -> Fraction:
    """The entries of a cache that a decode step moves, in the mean over the steps [1], exact."""
    last = request.input + request.output
    return Fraction(pairs(last, request.output, window), request.output)


def mean_seconds(case: Case, batch: int, request: Request) -> Seconds:
    """The exact mean times of the decode steps, over kernels and layers [s]."""
    step = case.step(batch, request.input + request.output)

    def extents_of(kernel: Kernel) -> Mapping[str, int | Fraction]:
        mean = mean_entries(request, kernel.group.window)
        return {**kernel.extents(step), "pairs": mean, "entries": mean}

    return step_seconds(case.kernels, case.times, extents_of)


def sum_of_largest(
    lines: Sequence[tuple[pl.Expr, pl.Expr]], least: pl.Expr, first: pl.Expr, last: pl.Expr
) -> pl.Expr:
    """The sum of the largest of two rising lines and a constant, over whole numbers.

    Args:
        lines: Constant and slope of both.
        least: The constant.
        first: The first number.
        last: The last number; the sum is 0 if it is less than the first.
    """
    (one, slope), (other, more) = lines
    swap = slope > more
    flat, rising = pl.when(swap).then(more).otherwise(slope), pl.max_horizontal(slope, more)
    low, high = pl.when(swap).then(other).otherwise(one), pl.when(swap).then(one).otherwise(other)
    stop = pl.max_horizontal(last + 1.0, first)

    def overtakes(constant: pl.Expr, slope: pl.Expr) -> pl.Expr:
        """The first number from which on a difference that rises is not negative."""
        real = (-constant / slope).fill_nan(float("-inf"))
        return pl.max_horizontal(first, pl.min_horizontal(stop, real.ceil()))

    of_low, of_high = overtakes(low - least, flat), overtakes(high - least, rising)
    second = pl.min_horizontal(of_low, of_high)
    third = pl.max_horizontal(second, of_high, overtakes(high - low, rising - flat))

    def series(constant: pl.Expr, slope: pl.Expr, start: pl.Expr, end: pl.Expr) -> pl.Expr:
        return (end - start) * (constant + slope * (start + end - 1.0) / 2.0)

    return (
        least * (second - first)
        + series(low, flat, second, third)
        + series(high, rising, third, stop)
    )
