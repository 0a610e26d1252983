"""Kernel rows as stages with expressions."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.evaluation.compiler import first_longest
from rooflines.evaluation.operation_rows import BOUND_ENUM, estimate_stages
from rooflines.evaluation.sided import SIDED_FUNCTIONS, Quantity, total_in_row
from rooflines.kinds.formulas import compile_with
from rooflines.kinds.kernel_forms import BYTE_BITS
from rooflines.theory.operation import MATRIX
from rooflines.theory.resources import MATH, MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.evaluation.compiler import RowCompiler
    from rooflines.evaluation.operation_rows import Stages
    from rooflines.evaluation.sided import Number
    from rooflines.sweep.kernel_sweep import KindCase

NO_NUMBER = pl.lit(None, dtype=pl.Float64)


def kind_stages(compiler: RowCompiler, cases: Sequence[KindCase]) -> Stages:
    """Columns for kernel rows, without keys and sizes that are given.

    t_lower_s = max(t_math_s, t_memory_s); t_upper_s is their sum. Without products, flops are those
    of the vector unit.

    Args:
        compiler: Row compiler for the cases.
        cases: The cases.
    """
    rows = KindRows(compiler, cases)
    works = rows.works()
    rates = [case.rates for case in cases]
    is_matrix = cases[0].sweep.unit == MATRIX
    peaks = [rate.matrix if is_matrix else rate.vector for rate in rates]
    compiler.varying.update(("flops", "memory_bytes", "t_lower_s"))
    t_math = compiler.quotient(pl.col("flops"), _constant(compiler, peaks))
    at_peak = compiler.quotient(pl.col("flops"), _constant(compiler, [c.peak for c in cases]))
    if not rows.has_flops:
        t_math = at_peak = pl.lit(0.0)
    memory_rates = _constant(compiler, [rate.memory for rate in rates])
    times = {resource.bound: pl.col(f"t_{resource.name}_s") for resource in (MATH, MEMORY)}
    lower = pl.max_horizontal(*times.values())
    return [
        rows.sizes(),
        works,
        *estimate_stages(compiler, [None] * len(cases)),
        {
            "t_math_s": t_math,
            "t_memory_s": compiler.quotient(pl.col("memory_bytes"), memory_rates),
            "t_network_s": pl.lit(0.0),
            "t_vector_s": _time(compiler, works["vector_flops"], [r.vector for r in rates]),
            "t_exp_s": _time(compiler, works["exponentials"], [r.exp for r in rates]),
        },
        {"t_lower_s": lower, "t_upper_s": pl.col("t_math_s") + pl.col("t_memory_s")},
        {
            "memory_intensity": compiler.quotient(pl.col("flops"), pl.col("memory_bytes")),
            "network_intensity": NO_NUMBER,
            "attained_flops_per_s": compiler.quotient(pl.col("flops"), pl.col("t_lower_s")),
            "utilization": compiler.quotient(at_peak, pl.col("t_lower_s")),
            "bound": first_longest(times, pl.col("t_lower_s"), BOUND_ENUM),
            "footprint_bytes": NO_NUMBER,
            "fits": pl.lit(None, dtype=pl.Boolean),
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
        tensors = [*kind.reads.values(), *kind.writes.values()]
        formulas = {"flops": self._flops_formula, "exponentials": kind.exponentials, **kind.columns}
        if self._cases[0].sweep.unit == MATRIX:
            formulas["vector_flops"] = kind.vector_flops
        blocks = Quantity.of_cases(self._compiler, [case.form.blocks for case in self._cases])
        values = self._compute(
            [*formulas.values(), *(tensor.elements for tensor in tensors)],
            self._form.steps,
            {**self._sizes, "blocks": blocks},
        )
        works = {
            name: total_in_row(value)
            for (name, formula), value in zip(formulas.items(), values, strict=False)
            if formula != "0" or name == "flops"
        }
        elements = values[len(formulas) :]
        amounts = (
            count * self._bytes_of(tensor.role)
            for count, tensor in zip(elements, tensors, strict=True)
        )
        none = dict.fromkeys(("vector_flops", "exponentials", "pairs", "touched"), NO_NUMBER)
        return {
            **none,
            **works,
            "memory_bytes": total_in_row(sum(amounts)),
            "network_bytes": pl.lit(0.0),
        }

    def _bytes_of(self, role: str) -> Quantity | Number:
        """Bytes per element in a role [byte]."""
        numbers = [Fraction(case.form.bits[role]) / BYTE_BITS for case in self._cases]
        return Quantity.of_cases(self._compiler, numbers)
