"""Sums over the kernels of a block in two stages: per case and batch, then per row.

A product of extents that do not depend on the context is evaluated once per case and batch; the
contexts are joined afterwards. So is the time of a kernel, unless it is attention.
"""

from __future__ import annotations

import math
from functools import cached_property, reduce
from itertools import product, zip_longest
from operator import add, mul
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.fits.quantities import whole_rows
from rooflines.model.resources import RESOURCES
from rooflines.models.cache import cache_elements, entries_moved, pairs
from rooflines.models.groups import ALL, SAME
from rooflines.models.shape import PREFILL
from rooflines.serving.footprints import ELEMENTS, whole_numbers
from rooflines.serving.kernels import summed
from rooflines.sweep.blocked import FactoredSums, blocked_product
from rooflines.sweep.estimates import slots_of
from rooflines.sweep.ties import Ties, times_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction

    from rooflines.fits.estimate import Estimate
    from rooflines.fits.estimate import Sum as SumOfEstimate
    from rooflines.models.groups import Terms
    from rooflines.serving.kernels import Kernel
    from rooflines.serving.support import Block
    from rooflines.serving.sweep import ModelSweep
    from rooflines.serving.times import Exchange, KernelTimes

CASE = "#case"
"""The index of a row's case in its block. Names with # never leave the package."""

ESTIMATED = "#estimated"
"""0 where a row has an estimate, null where it has none."""

OF_RESOURCES = times_of(RESOURCES)
"""The columns of the resources' times, by bound."""

OF_WINDOWS = ("pairs", "entries")
"""Extents that depend on how far a token attends."""

IN_TILES = {"tokens": ("B", "T"), "sequences": ("B",)}
"""The sizes whose product is counted in whole spans, such as `tokens:128`."""


def named(kernel: Kernel, terms: Terms) -> Terms:
    """Terms whose extents name the window that they depend on, such as `pairs:128`."""
    window = kernel.group.window or ""
    return {
        tuple(f"{dim}:{window}" if dim in OF_WINDOWS else dim for dim in dims): coefficient
        for dims, coefficient in terms.items()
    }


def estimate_terms(
    kernels: Sequence[Kernel], sums: Sequence[SumOfEstimate | None], count: int
) -> list[Terms]:
    """A part of the estimates of kernels, times their layers; empty where one has none."""
    return [
        summed([(count, named(kernel, dict(total.plain)))]) if total else {}
        for kernel, total in zip(kernels, sums, strict=True)
    ]


def time_terms(
    kernels: Sequence[Kernel], times: Sequence[KernelTimes | None], count: int, *parts: str
) -> list[Terms]:
    """The sum of parts of the times of kernels, all layers [s]; empty where one has no times.

    Args:
        kernels: The kernel in each case.
        times: Its times there.
        count: Layers [1].
        parts: Fields of `KernelTimes`.
    """
    return [
        summed((count, named(kernel, getattr(each, part))) for part in parts) if each else {}
        for kernel, each in zip(kernels, times, strict=True)
    ]


class Sum(NamedTuple):
    """A quantity: what is the same for all contexts, and what is not.

    Attributes:
        early: Evaluated per case and batch; None without.
        late: Evaluated per row; None without.
    """

    early: pl.Expr | None
    late: pl.Expr | None

    @property
    def is_zero(self) -> bool:
        """Whether nothing contributes to it."""
        return self.early is None and self.late is None


class TimesOfKernel(NamedTuple):
    """Times of a kernel, of all its layers [s]."""

    math: Sum
    memory: Sum
    activation: Sum
    network: Sum
    ops: Sum


class Stages:
    """Columns and expressions of a block.

    Args:
        sweep: The sweep.
        block: The cases.
        token_shares: The share of a step's tokens that choose among the experts that are read, of
            every case [1].
    """

    def __init__(self, sweep: ModelSweep, block: Block, token_shares: Sequence[Fraction]) -> None:
        self.sweep = sweep
        self.block = block
        self.token_shares = token_shares
        self.prefill = block.cases[0].phase == PREFILL
        self.columns: dict[str, pl.Series] = {}
        self.early: dict[str, pl.Expr] = {}

    # ------------------------------------------------------------ axes and extents

    @cached_property
    def windows(self) -> tuple[int | None, ...]:
        """The windows of the model's layers [1]; None: without one."""
        return tuple(window for _, window in self.block.cases[0].model.shape.windows)

    @cached_property
    def points(self) -> dict[str, pl.Series]:
        """The contexts and new tokens of a step, with what follows from them alone."""
        contexts = self.sweep.contexts
        new = [(s, s) for s in contexts]
        if not self.prefill:
            new = [(t, s) for t, s in product(self.sweep.new_tokens or (1,), contexts)]
        columns = {
            "T": pl.Series([t for t, _ in new], dtype=pl.Int64),
            "S": pl.Series([s for _, s in new], dtype=pl.Int64),
        }
        for window in self.windows:
            of = window or ""
            for name, moved in (("pairs", pairs), ("entries", entries_moved)):
                values = [float(moved(s, t, window)) for t, s in new]
                columns[f"#{name}:{of}"] = pl.Series(values, dtype=pl.Float64)
        shape = self.block.cases[0].model.shape
        columns[ELEMENTS] = whole_numbers([cache_elements(shape, s) for _, s in new])
        return columns

    @cached_property
    def variables(self) -> dict[str, pl.Expr]:
        """The extents, as expressions."""
        names = ["B", "T", *(name for name in self.points if ":" in name)]
        values = {name.removeprefix("#"): pl.col(name).cast(pl.Float64) for name in names}
        touched = self._touched(values["B"] * values["T"])
        return values if touched is None else {**values, "touched": touched}

    @cached_property
    def known_early(self) -> frozenset[str]:
        """The extents that do not depend on the context."""
        same_tokens = self.points["T"].n_unique() == 1
        return frozenset({"B", "T", "touched"} if same_tokens else {"B"})

    def extent(self, name: str) -> pl.Expr:
        """An extent, as an expression."""
        kind, _, span = name.partition(":")
        if kind not in IN_TILES:
            return self.variables[name]
        rows = reduce(mul, map(pl.col, IN_TILES[kind]))
        return whole_rows(rows, int(span)).cast(pl.Float64)

    def is_early(self, name: str) -> bool:
        """Whether an extent does not depend on the context."""
        sizes = IN_TILES.get(name.partition(":")[0], (name,))
        return self.known_early.issuperset(sizes)

    def _touched(self, tokens: pl.Expr) -> pl.Expr | None:
        """Experts that the tokens of a step use, of uniform routing E - E (1 - k/E)^tokens [1]."""
        moe = self.block.cases[0].model.shape.moe
        if moe is None:
            return None
        routing = self.sweep.config.routing
        if routing == SAME:
            return pl.lit(float(moe.k))
        if routing == ALL or moe.k == moe.E:
            return pl.lit(float(moe.E))
        self.constant("#token_share", [float(share) for share in self.token_shares])
        power = tokens * pl.col("#token_share") * math.log1p(-moe.k / moe.E)
        return (
            float(moe.E) * (power * -0.5).tanh() * (1.0 + power.exp())
        )  # 1 - exp, no cancellation

    # ------------------------------------------------------------ sums

    def constant(self, name: str, values: Sequence[float | None]) -> None:
        """Adds a column with a value for each case."""
        self.columns[name] = pl.Series(values, dtype=pl.Float64)

    def products(self, name: str, terms: Sequence[Terms]) -> Sum:
        """A sum of products of extents, with the coefficients of each case."""
        early: list[pl.Expr] = []
        late: dict[tuple[str, ...], list[pl.Expr]] = {}
        for dims in dict.fromkeys(dims for each in terms for dims in each):
            values = [float(each.get(dims, 0)) for each in terms]
            if not any(values):
                continue
            column = f"#{name}:{','.join(dims)}"
            self.constant(column, values)
            at_once = [self.extent(dim) for dim in dims if self.is_early(dim)]
            later = tuple(dim for dim in dims if not self.is_early(dim))
            (late.setdefault(later, []) if later else early).append(
                reduce(mul, [*at_once, pl.col(column)])
            )
        parts = []
        for later, factors in late.items():
            column = f"#{name}_per:{','.join(later)}"
            self.early[column] = reduce(add, factors)
            parts.append(reduce(mul, [*map(self.extent, later), pl.col(column)]))
        return Sum(reduce(add, early) if early else None, reduce(add, parts) if parts else None)

    def add(self, name: str, terms: Sequence[Terms]) -> pl.Expr:
        """A sum of products of extents, as an expression of a row."""
        return self.total(name, [self.products(name, terms)])

    def total(self, name: str, parts: Sequence[Sum]) -> pl.Expr:
        """The sum of quantities, as an expression of a row."""
        early = [part.early for part in parts if part.early is not None]
        late = [part.late for part in parts if part.late is not None]
        if early:
            self.early[f"#{name}"] = reduce(add, early)
            late.append(pl.col(f"#{name}"))
        return reduce(add, late) if late else pl.lit(0.0)

    def largest(self, name: str, parts: Sequence[Sum]) -> Sum:
        """The largest of quantities; late if any of them is."""
        present = [part for part in parts if not part.is_zero]
        return self._chosen(name, present, pl.max_horizontal) if present else Sum(None, None)

    def _chosen(
        self, name: str, parts: Sequence[Sum], choose: Callable[[list[pl.Expr]], pl.Expr]
    ) -> Sum:
        """The largest or the smallest of quantities that are not zero."""
        if len(parts) == 1:
            return parts[0]
        early = [part.early for part in parts if part.early is not None and part.late is None]
        if len(early) == len(parts):
            return Sum(choose(early), None)
        rows = [self.total(f"{name}_{index}", [part]) for index, part in enumerate(parts)]
        return Sum(None, choose(rows))

    def kernel_times(
        self,
        name: str,
        kernels: Sequence[Kernel],
        times: Sequence[KernelTimes | None],
        count: int = 1,
    ) -> TimesOfKernel:
        """The times of a kernel.

        Args:
            name: For the names of its columns.
            kernels: The kernel in each case.
            times: Its times there; None without, where the values mean nothing.
            count: Layers [1].
        """

        def products(part: str) -> Sum:
            return self.products(f"{name}_{part}", time_terms(kernels, times, count, part))

        collectives = zip_longest(*(each.network if each else () for each in times))
        sent = [self.exchange(f"{name}_{i}", each, count) for i, each in enumerate(collectives)]
        network = self.sum_of(f"{name}_network", sent)
        math_time, memory, activation = map(products, ("math", "memory", "activation"))
        moved = self.sum_of(f"{name}_moved", [memory, activation])
        ops = self.largest(f"{name}_ops", [math_time, moved, network])
        return TimesOfKernel(math_time, memory, activation, network, ops)

    def estimate(
        self,
        name: str,
        kernels: Sequence[Kernel],
        estimates: Sequence[Estimate | None],
        count: int = 1,
    ) -> Sum:
        """The calibrated time of a kernel [s]; see `kernel_times`."""
        common, pieces = self.estimate_pieces(name, kernels, estimates, count)
        largest = self.largest(f"{name}_largest", [piece for _, piece in pieces])
        return self.sum_of(name, [common, largest])

    def estimate_pieces(
        self,
        name: str,
        kernels: Sequence[Kernel],
        estimates: Sequence[Estimate | None],
        count: int = 1,
    ) -> tuple[Sum, list[tuple[str, Sum]]]:
        """What is common to the pieces of a kernel's calibrated time [s], and these by bound."""

        def added(part: str, sums: Sequence[SumOfEstimate | None]) -> Sum:
            terms = estimate_terms(kernels, sums, count)
            return self.products(f"{name}_{part}", terms)

        pieces = []
        for slot, (bound, least) in enumerate(slots_of(estimates)):
            parts = [added(f"{slot}_{index}", sums) for index, sums in enumerate(least)]
            pieces.append((bound, self._chosen(f"{name}_{slot}", parts, pl.min_horizontal)))
        return added("common", [each.common if each else None for each in estimates]), pieces

    def exchange(self, name: str, sent: Sequence[Exchange | None], count: int = 1) -> Sum:
        """A time of collectives: of what is sent, or of the hops if they take longer.

        Args:
            name: For the names of its columns.
            sent: That of each case; None without.
            count: Layers [1].
        """
        sending = [summed([(count, each.sending)]) if each else {} for each in sent]
        waits = [float(count * each.latency_s) if each else 0.0 for each in sent]
        parts = [self.products(f"{name}_sending", sending)]
        if any(waits):
            self.constant(f"#{name}_latency", waits)
            parts.append(Sum(pl.col(f"#{name}_latency"), None))
        return self.largest(f"{name}_exchange", parts)

    def sum_of(self, name: str, parts: Sequence[Sum]) -> Sum:
        """The sum of quantities, as a quantity."""
        parts = [part for part in parts if not part.is_zero]
        if len(parts) == 1:
            return parts[0]
        if all(part.late is None for part in parts):
            exprs = [part.early for part in parts if part.early is not None]
            return Sum(reduce(add, exprs) if exprs else None, None)
        return Sum(None, self.total(name, parts))

    # ------------------------------------------------------------ rows

    def lower(self) -> pl.Expr:
        """t_lower_s of a row, from the times of its resources."""
        return pl.max_horizontal(list(OF_RESOURCES.values()))

    @property
    def longest(self) -> pl.Expr:
        """The longest of the resources' times [s]."""
        return pl.col("t_lower_s")

    def with_request_times(self, frame: pl.LazyFrame) -> pl.LazyFrame:
        """Rows with the times of requests, if they are requests."""
        return frame

    @property
    def ties(self) -> Ties:
        """What resolves the bounds of the rows."""

        def times(index: int, batch: int, new: int, context: int) -> list[Fraction]:
            case = self.block.cases[index]
            seconds = case.seconds(case.step(batch, context, new))
            return [getattr(seconds, resource.name) for resource in RESOURCES]

        return Ties((CASE, "B", "T", "S"), times)

    def frame(self, columns: Mapping[str, pl.Series], low: int, high: int) -> pl.LazyFrame:
        """Rows of cases, batches and contexts, with what was computed per case and batch.

        Args:
            columns: Further columns with a value for each case.
            low: The first row [1].
            high: The row after the last [1].
        """
        cases = {**columns, **self.columns}
        cases[CASE] = pl.Series(range(len(self.token_shares)), dtype=pl.UInt32)
        batches = {"B": pl.Series(self.block.batches, dtype=pl.Int64)}
        sums = FactoredSums({*cases, "B"}, CASE, outer_factors=self.early)
        return blocked_product([cases, batches, self.points], 2, low, high, sums)
