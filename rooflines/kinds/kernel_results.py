"""Kernel bounds as plain numbers, quick enough for every call of a benchmark harness."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import lcm
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.lazy import pl
from rooflines.basics.numbers import MAX_SIZE
from rooflines.kinds.formulas import compile_expressions, compile_quick
from rooflines.kinds.kernel_forms import BYTE_BITS, kernel_sizes
from rooflines.kinds.kinds import VECTOR
from rooflines.kinds.placed_kernels import EXPONENTIALS, VECTOR_BOUND, PlacedKernel, unit_times
from rooflines.theory.resources import MATH, MEMORY
from rooflines.theory.times import TIE_SHARE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.kinds.kernel_forms import KernelForm
    from rooflines.kinds.placed_kernels import Critical, KernelRates

Number = int | float

WHOLE = {int}
"""Types of sizes that need no check."""

KERNEL_BOUNDS = (MATH.bound, VECTOR_BOUND, MEMORY.bound, EXPONENTIALS)
"""Bounds in the order that decides ties."""

AMOUNTS = ("flops", "memory_bytes", "vector_flops", "exponentials", "pairs", "touched")
TIMES = ("t_math_s", "t_memory_s", "t_vector_s", "t_exp_s", "t_lower_s", "t_upper_s")
RESULT_COLUMNS = (*AMOUNTS, *TIMES, "bound", "memory_intensity")
"""Columns of results, in order."""


class KernelResult(NamedTuple):
    """Bounds for one shape.

    Attributes:
        flops: Matrix-unit work [FLOP].
        memory_bytes: Bytes read and written once [byte].
        vector_flops: Vector-unit work in fp32 [FLOP].
        exponentials: Exponentials and other special functions [1].
        pairs: Token pairs per sequence and head; None: no attention [1].
        touched: Experts or rows read, under uniform routing a mean; None: none [1].
        t_math_s: Time for `flops`, in kernels without products for `vector_flops`; None: no
            work, or no published rate [s].
        t_memory_s: Bytes over bandwidth [s].
        t_vector_s: Time for `vector_flops` beside products [s].
        t_exp_s: Time for exponentials; None: no sourced rate [s].
        t_lower_s: Longest time: no kernel is faster [s].
        t_upper_s: All times added [s].
        bound: `compute`, `vector`, `memory` or `exp`.
        kernel: Chip, options and dtypes.
        values: Given sizes, ordered like the kernel's letters [1].
    """

    flops: Number
    memory_bytes: Number
    vector_flops: Number
    exponentials: Number
    pairs: Number | None
    touched: Number | None
    t_math_s: float | None
    t_memory_s: float
    t_vector_s: float | None
    t_exp_s: float | None
    t_lower_s: float
    t_upper_s: float
    bound: str
    kernel: PreparedKernel
    values: tuple[int, ...]

    @property
    def given(self) -> dict[str, int]:
        """Sizes by letter, without defaults [1]."""
        return dict(zip(self.kernel.letters, self.values, strict=True))

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes by letter, defaults included [1]."""
        return self.kernel.form.complete(self.given)

    @property
    def memory_intensity(self) -> float:
        """FLOP behind `t_math_s` per byte [FLOP/byte]."""
        flops = self.vector_flops if self.kernel.is_vector else self.flops
        return flops / self.memory_bytes

    @property
    def strict(self) -> KernelResult:
        """Bounds under any routing: `same` in place of a mean, else these."""
        strict = self.kernel.strict
        return self if strict is self.kernel else strict.result(self.values)

    def share(self, measured_s: float) -> float:
        """Reached share: t_lower_s / measured_s [1].

        Args:
            measured_s: Measured time [s].

        Raises:
            RooflinesError: The time is not above zero.
        """
        if not measured_s > 0:
            problem = f"is {quote(measured_s)}, no time above zero"
            raise RooflinesError("measured_s", problem, "give seconds, such as 80e-6")
        return self.t_lower_s / measured_s

    def threshold(self, letter: str) -> Critical:
        """Critical size along a letter, other sizes fixed, in exact arithmetic.

        Args:
            letter: Such as `S`.

        Raises:
            RooflinesError: The kernel has no threshold along it.
        """
        placed = PlacedKernel(self.kernel.form, self.kernel.rates)
        axes = placed.axes(self.given)
        if letter not in axes:
            problem = f"has no threshold along {quote(letter)}"
            raise RooflinesError(self.kernel.form.kind.name, problem, f"use {', '.join(axes)}")
        return placed.critical(letter, self.given)

    def to_dict(self) -> dict[str, Any]:
        """All numbers by column, after those that name the kernel."""
        names = {**self.kernel.names, **self.sizes}
        return names | {column: getattr(self, column) for column in RESULT_COLUMNS}


class PreparedKernel:
    """A kernel on a chip, whose formulas are compiled for the letters that are given.

    Args:
        chip: Chip id.
        form: The kernel, optional letters included.
        rates: The chip's rates.
        memory: The memory level.
        letters: Letters that are given.
        exp: Whether exponentials enter the bound.

    Raises:
        RooflinesError: Exponentials enter the bound, but have no sourced rate.
    """

    def __init__(  # noqa: PLR0913, the parts of a kernel
        self,
        chip: str,
        form: KernelForm,
        rates: KernelRates,
        memory: str,
        letters: Sequence[str],
        *,
        exp: bool,
    ) -> None:
        kind = form.kind
        if exp and rates.exp is None:
            problem = f"{chip} has no sourced rate of exponentials"
            raise RooflinesError("", problem, "leave exp out")
        self.form, self.rates, self.letters, self.exp = form, rates, tuple(letters), exp
        self.names = {
            "operation": kind.name,
            "options": form.choice_text,
            "chip": chip,
            "memory": memory,
            "dtypes": form.dtypes_text,
        }
        self.is_vector = kind.unit == VECTOR
        tensors = [*kind.reads.values(), *kind.writes.values()]
        scale = lcm(*(Fraction(bits).denominator for bits in form.bits.values()))
        self.units_per_byte = BYTE_BITS * scale
        units = {role: int(bits * scale) for role, bits in form.bits.items()}
        moved = [f"({tensor.elements})*{units[tensor.role]}" for tensor in tensors]
        self._formulas = (
            kind.flops,
            kind.vector_flops,
            kind.exponentials,
            kind.columns.get("pairs", "None"),
            kind.columns.get("touched", "None"),
            " + ".join(moved),
            " & ".join(f"({check.formula})" for check in form.checks) or "True",
        )
        defaults = {
            letter: formula
            for letter, formula in form.defaults.items()
            if letter not in self.letters
        }
        self._steps = {**defaults, "blocks": str(form.blocks), **form.steps}
        self._compute = compile_quick(self._formulas, self._steps, self.letters)
        self._rates = rates.floats
        self._strict: PreparedKernel | None = None

    @property
    def strict(self) -> PreparedKernel:
        """This kernel under the routing that reads least; itself, if it has no mean."""
        if self._strict is None:
            options = self.form.options
            if options.get("routing", "uniform") != "uniform" or (
                "routing" not in self.form.kind.choices
            ):
                self._strict = self
            else:
                self._strict = PreparedKernel(
                    self.names["chip"],
                    replace(self.form, options={**options, "routing": "same"}),
                    self.rates,
                    self.names["memory"],
                    self.letters,
                    exp=self.exp,
                )
        return self._strict

    def __repr__(self) -> str:
        """Names, as a call would have them."""
        return " ".join(filter(None, self.names.values()))

    def result(self, values: tuple[Any, ...]) -> KernelResult:
        """Bounds at sizes.

        Args:
            values: Sizes, ordered like `letters` [1].

        Raises:
            RooflinesError: Sizes are no whole numbers, or break a condition.
        """
        if {*map(type, values)} != WHOLE or min(values) < 1 or max(values) > MAX_SIZE:
            given = dict(zip(self.letters, values, strict=True))
            values = (*kernel_sizes(self.form, plain_sizes(given)).values(),)
        flops, vector_flops, exponentials, pairs, touched, units, holds = self._compute(*values)
        if not holds:
            given = dict(zip(self.letters, values, strict=True))
            self.form.check(self.form.complete(given))
        memory_bytes = _quotient(units, self.units_per_byte)
        t_math, t_memory, t_vector, t_exp = unit_times(
            flops,
            vector_flops,
            memory_bytes,
            exponentials,
            self._rates,
            _time,
            is_vector=self.is_vector,
        )
        t_lower, t_upper, bound = self._bound(t_math, t_vector, t_memory, t_exp)
        return KernelResult(
            flops, memory_bytes, vector_flops, exponentials, pairs, touched,
            t_math, t_memory, t_vector, t_exp, t_lower, t_upper, bound, self, values,
        )  # fmt: skip

    def _bound(
        self, t_math: float | None, t_vector: float | None, t_memory: float, t_exp: float | None
    ) -> tuple[float, float, str]:
        """Longest time, all times added, and the first bound with the longest, ties included."""
        if t_vector is None and not self.exp:  # nearly always, and quicker
            if t_math is None:
                return t_memory, t_memory, MEMORY.bound
            is_math = t_math >= t_memory * (1 - TIE_SHARE)
            bound = MATH.bound if is_math else MEMORY.bound
            return max(t_math, t_memory), t_math + t_memory, bound
        times = (t_math, t_vector, t_memory, t_exp if self.exp else None)
        present = [time for time in times if time is not None]
        tied = max(present) * (1 - TIE_SHARE)
        bounds = zip(KERNEL_BOUNDS, times, strict=True)
        bound = next(name for name, time in bounds if time is not None and time >= tied)
        return max(present), sum(present), bound

    def expressions(self, letters: Mapping[str, pl.Expr]) -> dict[str, pl.Expr]:
        """Amounts and times by column, as `result` has them, and `holds`: are sizes allowed.

        Args:
            letters: Float64 sizes, ordered like `letters`.
        """
        compute = compile_expressions(self._formulas, self._steps, self.letters)
        values = map(_expression, compute(*letters.values()))
        names = ("flops", "vector_flops", "exponentials", "pairs", "touched", "units", "holds")
        columns = dict(zip(names, values, strict=True))
        columns["memory_bytes"] = columns.pop("units") / self.units_per_byte
        times = unit_times(
            columns["flops"],
            columns["vector_flops"],
            columns["memory_bytes"],
            columns["exponentials"],
            self._rates,
            _time_expression,
            is_vector=self.is_vector,
        )
        return columns | {
            f"t_{resource}_s": _expression(time) for resource, time in times._asdict().items()
        }


def plain_sizes(sizes: Mapping[str, Any]) -> dict[str, Any]:
    """Sizes as Python's numbers, numpy's converted."""
    return {
        letter: index(size) if hasattr(size, "__index__") and size.__class__ is not bool else size
        for letter, size in sizes.items()
    }


def _time(work: float, rate: float | None, *, is_optional: bool = True) -> float | None:
    """Work over rate [s]; None without a rate, or optional work."""
    return work / rate if rate and (work or not is_optional) else None


def _time_expression(
    work: pl.Expr, rate: float | None, *, is_optional: bool = True
) -> pl.Expr | None:
    """Work over rate in rows [s]; null without a rate, or optional work."""
    if rate is None:
        return None
    return pl.when(work > 0).then(work / rate) if is_optional else work / rate


def _expression(value: Any) -> pl.Expr:  # noqa: ANN401, a number, an expression or None
    """Value as an expression."""
    if isinstance(value, pl.Expr):
        return value
    dtype = pl.Boolean if isinstance(value, bool) else pl.Float64
    return pl.lit(value, dtype=dtype)


def _quotient(units: float, units_per_byte: int) -> Number:
    """Bytes: whole, or a double."""
    if units.__class__ is int and not units % units_per_byte:
        return units // units_per_byte
    amount = units / units_per_byte
    return int(amount) if amount.is_integer() else amount
