"""Kernel rows as stages with expressions: kinds, chains of kinds, and collectives."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.dictionary.columns import (
    LEVEL_METRICS,
    LOWER_BOUND,
    LOWER_MEAN,
    LOWER_NAMES,
    LOWER_RING,
)
from rooflines.evaluation.compiler import first_longest
from rooflines.evaluation.operation_rows import estimate_stages
from rooflines.evaluation.sided import SIDED_FUNCTIONS, Quantity, total_in_row
from rooflines.kinds.formulas import compile_with
from rooflines.kinds.kernel_forms import BYTE_BITS
from rooflines.kinds.kernel_results import KERNEL_BOUNDS
from rooflines.kinds.placed_kernels import EXPONENTIALS, VECTOR_BOUND
from rooflines.theory.operation import MATRIX
from rooflines.theory.resources import MATH, MEMORY, NETWORK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.evaluation.compiler import RowCompiler
    from rooflines.evaluation.operation_rows import Stages
    from rooflines.evaluation.sided import Number
    from rooflines.kinds.kinds import KernelKind, Tensor
    from rooflines.sweep.collective_sweep import CollectiveCase
    from rooflines.sweep.kind_sweep import KindCase

NO_NUMBER = pl.lit(None, dtype=pl.Float64)

NO_WORK = pl.lit(0.0)

KERNEL_BOUND_ENUM = pl.Enum([*KERNEL_BOUNDS, NETWORK.bound])

LOWER_ENUM = pl.Enum(LOWER_NAMES)

GROUPED = "#grouped_"
"""Prefix of estimates for query heads that share KV heads, where a sweep also has others."""


def kind_stages(compiler: RowCompiler, cases: Sequence[KindCase]) -> Stages:
    """Columns for kernel rows, without keys and sizes that are given.

    t_lower_s is the largest resource time, t_upper_s the sum. Without products, flops are the
    vector unit's.

    Args:
        compiler: Row compiler for the cases.
        cases: The cases.
    """
    rows, sweep = KindRows(compiler, cases), cases[0].sweep
    works, is_matrix = rows.works(), sweep.unit == MATRIX
    rates = [case.rates for case in cases]
    peaks = [rate.matrix if is_matrix else rate.vector for rate in rates]
    compiler.varying.update(("flops", "memory_bytes", "t_lower_s"))
    t_math = compiler.quotient(pl.col("flops"), _constant(compiler, peaks))
    at_peak = compiler.quotient(pl.col("flops"), _constant(compiler, [c.peak for c in cases]))
    if not rows.has_flops:
        t_math = at_peak = NO_WORK
    memory_rates = _constant(compiler, [rate.memory for rate in rates])
    has_vector = is_matrix and works["vector_flops"] is not NO_NUMBER
    counts_exp = sweep.config.counts_exp and works["exponentials"] is not NO_NUMBER
    times = {
        MATH.bound: pl.col("t_math_s"),
        **({VECTOR_BOUND: pl.col("t_vector_s")} if has_vector else {}),
        MEMORY.bound: pl.col("t_memory_s"),
        **({EXPONENTIALS: pl.col("t_exp_s")} if counts_exp else {}),
    }
    sequence, activation = rows.sequence_stages(memory_rates, [rate.vector for rate in rates])
    strict = rows.strict_memory()
    strict_s = pl.col("t_lower_s")
    if strict is not None:
        compiler.varying.add("#strict_bytes")
        fed = compiler.quotient(strict, memory_rates)
        rest = (time for bound, time in times.items() if bound != MEMORY.bound)
        strict_s = pl.max_horizontal(*rest, fed)
    lower_is = LOWER_BOUND if strict is None else LOWER_MEAN
    capacities = [case.place.machine.level.capacity_bytes for case in cases]
    return [
        rows.sizes(),
        works,
        *rows.estimates(),
        {
            "t_math_s": t_math,
            "t_memory_s": compiler.quotient(pl.col("memory_bytes"), memory_rates),
            "t_network_s": NO_WORK,
            "t_vector_s": _time(compiler, works["vector_flops"], [r.vector for r in rates]),
            "t_exp_s": _time(compiler, works["exponentials"], [r.exp for r in rates]),
        },
        *sequence,
        {
            "t_lower_s": pl.max_horizontal(*times.values()),
            "t_upper_s": reduce(add, [*times.values(), *activation]),
        },
        {
            "memory_intensity": compiler.quotient(pl.col("flops"), pl.col("memory_bytes")),
            "network_intensity": NO_NUMBER,
            "attained_flops_per_s": compiler.quotient(pl.col("flops"), pl.col("t_lower_s")),
            "utilization": compiler.quotient(at_peak, pl.col("t_lower_s")),
            "bound": first_longest(times, pl.col("t_lower_s"), KERNEL_BOUND_ENUM),
            "t_lower_is": pl.lit(lower_is, dtype=LOWER_ENUM),
            "t_strict_s": strict_s,
            "fits": pl.col("footprint_bytes") <= _constant(compiler, capacities),
        },
    ]


def _constant(compiler: RowCompiler, numbers: Sequence[Fraction | None]) -> pl.Expr:
    """Column with a number for each case."""
    return compiler.constant([None if number is None else float(number) for number in numbers])


def _time(compiler: RowCompiler, work: pl.Expr, rates: Sequence[Fraction | None]) -> pl.Expr:
    """Time for work [s]; null without work, or a rate."""
    if work is NO_NUMBER or not any(rates):
        return NO_NUMBER
    return compiler.quotient(work, _constant(compiler, rates))


class KindRows:
    """Kernel works and sizes in rows.

    Args:
        compiler: Row compiler for the cases.
        cases: The cases.
    """

    def __init__(self, compiler: RowCompiler, cases: Sequence[KindCase]) -> None:
        self._compiler, self._cases = compiler, cases
        self._form, self._kind = cases[0].form, cases[0].form.kind
        self._given: dict[str, Quantity | Number] = {}
        for axis in cases[0].sweep.size_axes:
            for name, values in axis.columns.items():
                fixed = values[0] if axis.count == 1 else None
                self._given[name] = fixed or Quantity.of_column(compiler, name)
        self._sizes = self._completed()

    def _completed(self) -> dict[str, Any]:
        """Sizes by letter, with defaults where they are left out."""
        sizes: dict[str, Any] = dict(self._given)
        for letter, formula in self._form.defaults.items():
            if letter not in sizes:
                (sizes[letter],) = self._compute([formula], {}, sizes)
        return sizes

    @staticmethod
    def _compute(
        formulas: Sequence[str], steps: Mapping[str, str], sizes: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Formula values."""
        return compile_with(SIDED_FUNCTIONS, formulas, steps, sizes)(*sizes.values())

    @property
    def has_flops(self) -> bool:
        """True if the kernel computes anything."""
        return self._flops_formula != "0"

    @property
    def _flops_formula(self) -> str:
        """Formula for the unit's FLOPs."""
        kind = self._kind
        return kind.flops if self._cases[0].sweep.unit == MATRIX else kind.vector_flops

    def sizes(self) -> dict[str, pl.Expr]:
        """Sizes that are left out: their defaults, or null where they are absent."""
        columns = {}
        for letter in self._kind.letters:
            if letter not in self._given:
                is_absent = letter in self._kind.optional or letter not in self._sizes
                number = NO_NUMBER if is_absent else total_in_row(self._sizes[letter])
                columns[letter] = number.cast(pl.Int64)
        return columns

    def works(self) -> dict[str, pl.Expr]:
        """Works by column, null where the kernel has none [FLOP, byte or 1]."""
        kind = self._kind
        formulas = {"flops": self._flops_formula, "exponentials": kind.exponentials, **kind.columns}
        if self._cases[0].sweep.unit == MATRIX:
            formulas["vector_flops"] = kind.vector_flops
        values = self._values([*formulas.values()])
        works = {
            name: total_in_row(value)
            for (name, formula), value in zip(formulas.items(), values, strict=True)
            if formula != "0" or name == "flops"
        }
        none = dict.fromkeys(("vector_flops", "exponentials", "pairs", "touched"), NO_NUMBER)
        tensors = (*kind.reads.values(), *kind.writes.values())
        return {
            **none,
            **works,
            "memory_bytes": self._bytes(tensors),
            "network_bytes": NO_WORK,
            "footprint_bytes": self._bytes(kind.resident_tensors),
        }

    def _values(
        self, formulas: Sequence[str], steps: Mapping[str, str] | None = None
    ) -> Sequence[Any]:
        """Formula values in rows; by default with the form's intermediate names."""
        blocks = Quantity.of_cases(self._compiler, [case.form.blocks for case in self._cases])
        steps = self._form.steps if steps is None else steps
        return self._compute(formulas, steps, {**self._sizes, "blocks": blocks})

    def _bytes(self, tensors: Iterable[Tensor], steps: Mapping[str, str] | None = None) -> pl.Expr:
        """Tensor bytes in rows [byte]."""
        listed = [*tensors]
        counts = self._values([tensor.elements for tensor in listed], steps)
        amounts = (
            count * self._bytes_of(tensor.role)
            for count, tensor in zip(counts, listed, strict=True)
        )
        return total_in_row(sum(amounts))

    def _bytes_of(self, role: str) -> Quantity | Number:
        """Bytes per element in a role [byte]."""
        numbers = [Fraction(case.form.bits[role]) / BYTE_BITS for case in self._cases]
        return Quantity.of_cases(self._compiler, numbers)

    def strict_memory(self) -> pl.Expr | None:
        """Bytes whatever the routing [byte]; None: the work is no mean over routings."""
        strict = self._form.strict
        if strict is None:
            return None
        kind = strict.kind
        return self._bytes((*kind.reads.values(), *kind.writes.values()), strict.steps)

    def estimates(self) -> Stages:
        """Stages with estimates: by N and K in a row where only some heads share KV heads."""
        compiler, cases = self._compiler, self._cases
        alone, shared = cases[0].sweep.shares_heads
        if alone and shared:
            grouped = estimate_stages(compiler, [case.estimated(shared=True) for case in cases])
            multi = estimate_stages(compiler, [case.estimated(shared=False) for case in cases])
            names = [name for stage in multi for name in stage if not name.startswith("#")]
            shares = pl.col("N") > pl.col("K")
            return [
                *grouped,
                {f"{GROUPED}{name}": pl.col(name) for name in names},
                *multi,
                {
                    name: pl.when(shares).then(pl.col(f"{GROUPED}{name}")).otherwise(pl.col(name))
                    for name in names
                },
            ]
        return estimate_stages(compiler, [case.estimated(shared=shared) for case in cases])

    def sequence_stages(
        self, memory_rates: pl.Expr, vector_rates: Sequence[Fraction | None]
    ) -> tuple[Stages, list[pl.Expr]]:
        """Sequence stages with their part in the upper bound; none for one kernel.

        Args:
            memory_rates: Bandwidth by case [byte/s].
            vector_rates: Vector peak by case [FLOP/s].
        """
        kinds = self._cases[0].sweep.sequence_kinds
        if not kinds:
            return [], []
        compiler = self._compiler
        handed = (next(iter(kind.writes.values())) for kind in kinds[:-1])
        inner = self._bytes(tensor._replace(role="x") for tensor in handed)
        compiler.varying.add("activation_bytes")
        seconds = [self._alone(kind, memory_rates, vector_rates) for kind in kinds]
        fed = pl.col("t_memory_s") + pl.col("t_activation_s")
        units = [pl.col("t_math_s"), *([] if self._is_vector else [pl.col("t_vector_s")])]
        return [
            {"activation_bytes": inner * 2.0},
            {"t_activation_s": compiler.quotient(pl.col("activation_bytes"), memory_rates)},
            {
                "t_overlapped_s": pl.max_horizontal(*units, fed),
                "t_serial_s": reduce(add, seconds),
            },
        ], [pl.col("t_activation_s")]

    @property
    def _is_vector(self) -> bool:
        """True if the vector unit is the kernel's unit."""
        return self._cases[0].sweep.unit != MATRIX

    def _alone(
        self, kind: KernelKind, memory_rates: pl.Expr, vector_rates: Sequence[Fraction | None]
    ) -> pl.Expr:
        """Kernel time in a sequence: the largest resource time [s]."""
        compiler = self._compiler
        role = {"out": "out" if kind is self._cases[0].sweep.sequence_kinds[-1] else "x"}
        tensors = (
            tensor._replace(role=role.get(tensor.role, tensor.role))
            for tensor in (*kind.reads.values(), *kind.writes.values())
        )
        times = [self._bytes(tensors, {}) / memory_rates]
        matrix_rates: Sequence[Fraction | None] = [case.rates.matrix for case in self._cases]
        works = {kind.flops: matrix_rates, kind.vector_flops: vector_rates}
        for formula, rates in works.items():
            if formula != "0" and any(rates):
                (work,) = self._values([formula], {})
                times.append(total_in_row(work) / _constant(compiler, rates))
        return pl.max_horizontal(*times)


# ------------------------------------------------------------ collectives


def collective_stages(compiler: RowCompiler, cases: Sequence[CollectiveCase]) -> Stages:
    """Columns for collective rows, without keys and the payload.

    t_network_s = max(hops, bytes / bandwidth), the largest over networks; see `kinds.collectives`.

    Args:
        compiler: Row compiler for the cases.
        cases: The cases.
    """
    payload = pl.col("bytes").cast(pl.Float64)
    placed = [case.placed for case in cases]
    unit_levels = [collective.levels(1) for collective in placed]
    count = max(map(len, unit_levels))
    levels = [
        [case_levels[index] if index < len(case_levels) else None for case_levels in unit_levels]
        for index in range(count)
    ]
    sent, seconds, hops_s = [], [], []
    for level in levels:
        share = _constant(compiler, [part.sent_bytes if part else Fraction(0) for part in level])
        rate = _constant(compiler, [part.bytes_per_s if part else Fraction(1) for part in level])
        hops = _constant(compiler, [part.latency_s if part else Fraction(0) for part in level])
        sent.append(payload * share)
        seconds.append(pl.max_horizontal(payload * share / rate, hops))
        hops_s.append(hops)
    by_level = dict(zip(LEVEL_METRICS, (*sent, NO_WORK), strict=False))
    memory = _constant(compiler, [collective.memory_share for collective in placed])
    memory_rate = _constant(compiler, [collective.memory_per_s for collective in placed])
    switched = [collective.switched_share for collective in placed]
    least = [collective.switch_share for collective in placed]
    first_rate = _constant(compiler, [case_levels[0].bytes_per_s for case_levels in unit_levels])
    bus = _constant(compiler, [collective.bus_factor for collective in placed])

    def in_switch(shares: Sequence[Fraction | None]) -> pl.Expr:
        sent_share = _constant(compiler, shares)
        time = pl.max_horizontal(payload * sent_share / first_rate, pl.col("t_hops_s"))
        return pl.when(sent_share.is_not_null()).then(time)

    is_ring = compiler.constant([float(collective.is_ring_alone) for collective in placed]) > 0
    times = {NETWORK.bound: pl.col("t_network_s"), MEMORY.bound: pl.col("t_memory_s")}
    algbw, fed, least_s = payload / pl.col("t_lower_s"), pl.col("t_memory_s"), in_switch(least)
    return [
        {
            "flops": NO_WORK,
            "memory_bytes": payload * memory,
            "network_bytes": reduce(add, sent),
            **by_level,
            "hops": _constant(compiler, [Fraction(collective.hops) for collective in placed]).cast(
                pl.Int64
            ),
            "footprint_bytes": NO_NUMBER,
        },
        *estimate_stages(compiler, [case.estimate for case in cases]),
        {
            "t_math_s": NO_WORK,
            "t_memory_s": pl.col("memory_bytes") / memory_rate,
            "t_network_s": pl.max_horizontal(*seconds),
            "t_hops_s": pl.max_horizontal(*hops_s),
        },
        {"t_in_switch_s": in_switch(switched)},
        {
            "t_lower_s": pl.max_horizontal(*times.values()),
            "t_upper_s": reduce(add, times.values()),
        },
        {
            "memory_intensity": NO_NUMBER,
            "network_intensity": NO_NUMBER,
            "attained_flops_per_s": NO_NUMBER,
            "utilization": NO_NUMBER,
            "algbw_bytes_per_s": algbw,
            "busbw_bytes_per_s": algbw * bus,
            "bound": first_longest(times, pl.col("t_lower_s"), KERNEL_BOUND_ENUM),
            "t_lower_is": pl.when(is_ring)
            .then(pl.lit(LOWER_RING, dtype=LOWER_ENUM))
            .otherwise(pl.lit(LOWER_BOUND, dtype=LOWER_ENUM)),
            "t_strict_s": pl.when(is_ring)
            .then(pl.when(least_s.is_not_null()).then(pl.max_horizontal(least_s, fed)))
            .otherwise(pl.col("t_lower_s")),
            "fits": pl.lit(None, dtype=pl.Boolean),
        },
    ]
