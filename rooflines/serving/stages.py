"""Sums over the kernels of a block in two stages: per case and batch, then per row.

A product of extents that do not depend on the context is evaluated once per case and batch; the
contexts are joined afterwards. So is the time of a kernel, unless it is attention.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from operator import add, mul
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.models.cache import cache_elements, entries_moved, pairs
from rooflines.models.groups import ALL, SAME
from rooflines.models.shape import PREFILL
from rooflines.serving.footprints import ELEMENTS
from rooflines.sweep.blocked import FactoredSums, blocked_product

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.models.groups import Terms
    from rooflines.serving.kernels import Kernel
    from rooflines.serving.support import Block
    from rooflines.serving.sweep import ModelSweep
    from rooflines.serving.times import KernelTimes

__all__ = ["CASE", "Stages", "Sum", "TimesOfKernel", "summed"]

CASE = "#case"
"""The index of a row's case in its block. Names with # never leave the package."""

OF_WINDOWS = ("pairs", "entries")
"""Extents that depend on how far a token attends."""


def summed(parts: Iterable[tuple[int, Terms]]) -> Terms:
    """The sum of terms, each a number of times."""
    total: Terms = {}
    for count, terms in parts:
        for dims, coefficient in terms.items():
            total[dims] = total.get(dims, Fraction(0)) + count * coefficient
    return total


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
    """Times of one kernel, all its layers together [s]."""

    network: Sum
    ops: Sum


class Stages:
    """Columns and expressions of a block.

    Args:
        sweep: The sweep.
        block: The cases.
    """

    def __init__(self, sweep: ModelSweep, block: Block) -> None:
        self.sweep = sweep
        self.block = block
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
        columns = {"T": [t for t, _ in new], "S": [s for _, s in new]}
        for window in self.windows:
            of = window or ""
            columns[f"#pairs:{of}"] = [pairs(s, t, window) for t, s in new]
            columns[f"#entries:{of}"] = [entries_moved(s, t, window) for t, s in new]
        shape = self.block.cases[0].model.shape
        columns[ELEMENTS] = [cache_elements(shape, s) for _, s in new]
        return {name: pl.Series(values, dtype=pl.Int64) for name, values in columns.items()}

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
        shares = [
            float(next(kernel.token_share for kernel in case.kernels if kernel.group.moe))
            for case in self.block.cases
        ]
        self.constant("#token_share", shares)
        missed = tokens * pl.col("#token_share") * math.log1p(-moe.k / moe.E)
        return float(moe.E) - float(moe.E) * missed.exp()

    # ------------------------------------------------------------ sums

    def constant(self, name: str, values: Sequence[float | None]) -> None:
        """Adds a column with a value for each case."""
        self.columns[name] = pl.Series(values, dtype=pl.Float64)

    def named(self, kernel: Kernel, terms: Terms) -> Terms:
        """Terms whose extents name the window that they depend on, such as `pairs:128`."""
        window = kernel.group.window or ""
        return {
            tuple(f"{dim}:{window}" if dim in OF_WINDOWS else dim for dim in dims): coefficient
            for dims, coefficient in terms.items()
        }

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
            at_once = [self.variables[dim] for dim in dims if dim in self.known_early]
            later = tuple(dim for dim in dims if dim not in self.known_early)
            (late.setdefault(later, []) if later else early).append(
                reduce(mul, [*at_once, pl.col(column)])
            )
        parts = []
        for later, factors in late.items():
            column = f"#{name}_per:{','.join(later)}"
            self.early[column] = reduce(add, factors)
            parts.append(reduce(mul, [*(self.variables[dim] for dim in later), pl.col(column)]))
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
        if len(present) == 1:
            return present[0]
        if all(part.late is None for part in present):
            exprs = [part.early for part in present if part.early is not None]
            return Sum(pl.max_horizontal(exprs) if exprs else None, None)
        rows = [self.total(f"{name}_{index}", [part]) for index, part in enumerate(present)]
        return Sum(None, pl.max_horizontal(rows))

    def kernel_times(
        self,
        index: int,
        count: int,
        times: Sequence[KernelTimes | None],
        prefix: str = "",
    ) -> TimesOfKernel:
        """The times of one kernel in all its layers.

        Args:
            index: Its position among the kernels.
            count: Layers with it [1].
            times: Its times in each case; None without, where values are meaningless.
            prefix: Of the names of columns.
        """
        kernel = self.block.cases[0].kernels[index]
        name = f"{prefix}{index}"

        def terms_of(*parts: str) -> list[Terms]:
            return [
                summed((count, self.named(kernel, getattr(each, part))) for part in parts)
                if each
                else {}
                for each in times
            ]

        exchanges = []
        for number in range(max(len(each.network) if each else 0 for each in times)):
            sending = [
                summed([(count, each.network[number].sending)]) if each else {} for each in times
            ]
            waits = [
                float(count * each.network[number].latency_s) if each else 0.0 for each in times
            ]
            parts = [self.products(f"{name}_network_{number}", sending)]
            if any(waits):
                self.constant(f"#{name}_latency_{number}", waits)
                parts.append(Sum(pl.col(f"#{name}_latency_{number}"), None))
            exchanges.append(self.largest(f"{name}_network_{number}", parts))
        network = self.sum_of(f"{name}_network", exchanges)
        math_time = self.products(f"{name}_math", terms_of("math"))
        memory = self.products(f"{name}_memory", terms_of("memory", "activation"))
        return TimesOfKernel(network, self.largest(name, [math_time, memory, network]))

    def sum_of(self, name: str, parts: Sequence[Sum]) -> Sum:
        """The sum of quantities, as a quantity."""
        if all(part.late is None for part in parts):
            exprs = [part.early for part in parts if part.early is not None]
            return Sum(reduce(add, exprs) if exprs else None, None)
        return Sum(None, self.total(name, parts))

    # ------------------------------------------------------------ rows

    def frame(self, columns: Mapping[str, pl.Series], low: int, high: int) -> pl.LazyFrame:
        """Rows of the block: keys, sizes and what was computed per case and batch.

        Args:
            columns: Further columns with a value for each case.
            low: The first row [1].
            high: The row after the last [1].
        """
        cases = {
            CASE: pl.Series(range(len(self.block.cases)), dtype=pl.UInt32),
            **columns,
            **self.columns,
        }
        batches = {"B": pl.Series(self.block.batches, dtype=pl.Int64)}
        outer = {*cases, "B"}
        sums = FactoredSums(outer, CASE, outer_factors=self.early)
        return blocked_product([cases, batches, self.points], 2, low, high, sums)
