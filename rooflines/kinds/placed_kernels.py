"""Kernel times on a chip, and critical sizes, exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import MAX_COUNT, first
from rooflines.dictionary.columns import ALWAYS, BEYOND_MAX_COUNT, FOUND, NEVER
from rooflines.hardware.support import missing_level_reason, missing_peak_reason
from rooflines.kinds.formulas import compile_formulas, names_in
from rooflines.kinds.kernel_forms import VECTOR_DTYPE
from rooflines.kinds.kinds import VECTOR
from rooflines.theory.operation import MATRIX
from rooflines.theory.resources import math_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rooflines.hardware.entries import Chip, Efficiency
    from rooflines.kinds.kernel_forms import KernelForm, Work
    from rooflines.theory.operation import Unit

MATH, MEMORY, VECTOR_BOUND, EXPONENTIALS, NETWORK = "compute", "memory", "vector", "exp", "network"
"""Bounds by resource."""

LIMIT_SIZE = 2**200
"""Size at which the intensity along an axis has reached its limit [1]."""

REAL_STEPS = 60
"""Limit on false positions between two whole sizes, more than are taken [1]."""

REAL_PARTS = 2**60
"""Parts in the gap between two sizes to which a false position is rounded [1]."""


class KernelTimes(NamedTuple):
    """Kernel times by resource [s]; None: no work, or no rate.

    Attributes:
        math, memory, vector, exp: Time by unit; `exp` counts only where it is asked for.
    """

    math: Any
    memory: Any
    vector: Any
    exp: Any


class RateNumbers(NamedTuple):
    """Rates as numbers, as `KernelRates` has them."""

    matrix: Any
    vector: Any
    memory: Any
    exp: Any


@dataclass(frozen=True)
class KernelRates:
    """Rates of a chip for one kernel.

    Attributes:
        matrix: Peak of the matrix unit in the compute dtype [FLOP/s]; None: not used.
        vector: Peak of the vector unit in fp32 [FLOP/s]; None: not published.
        memory: Bandwidth of the memory level [byte/s].
        exp: Exponentials per second [1/s]; None: no sourced rate.
    """

    matrix: Fraction | None
    vector: Fraction | None
    memory: Fraction
    exp: Fraction | None

    @cached_property
    def floats(self) -> RateNumbers:
        """Rates as floats."""
        rates = (self.matrix, self.vector, self.memory, self.exp)
        return RateNumbers(*(None if rate is None else float(rate) for rate in rates))


def kernel_rates(
    chip: Chip,
    name: str,
    form: KernelForm,
    memory: str = "hbm",
    efficiency: Efficiency | None = None,
) -> KernelRates:
    """Rates of a chip for a kernel, efficiencies included.

    Args:
        chip: The chip.
        name: Its id, for messages.
        form: The kernel.
        memory: The memory level that feeds the unit.
        efficiency: Shares reached, in place of the chip's.

    Raises:
        RooflinesError: The chip lacks the compute dtype, or the bandwidth.
    """
    if reason := missing_level_reason(chip, memory):
        levels = [level for level in chip.memory if not missing_level_reason(chip, level)]
        raise RooflinesError("", f"{name} has {reason}", f"use one of {', '.join(levels)}")
    matrix = None
    if form.kind.unit == MATRIX:
        if missing_peak_reason(chip, MATRIX, form.compute):
            narrow = f"; as a cache format: cache={form.compute}" if "cache" in form.dtypes else ""
            problem = f"{name} computes no {form.compute} in its matrix unit"
            raise RooflinesError("", problem, f"name another compute dtype{narrow}")
        matrix = _rate(chip, MATRIX, form.compute, memory, efficiency)
    vector = _rate(chip, VECTOR, VECTOR_DTYPE, memory, efficiency)
    rates = chip.chip_rates(MATRIX, memory, chip.efficiency, efficiency)
    exp = None if chip.special is None else chip.special.exact
    return KernelRates(matrix, vector, rates.level.bytes_per_s * rates.efficiency[MEMORY], exp)


def _rate(
    chip: Chip, unit: Unit, dtype: str, memory: str, efficiency: Efficiency | None
) -> Fraction | None:
    """Unit's peak, efficiency included; None: not published."""
    rates = chip.chip_rates(unit, memory, chip.efficiency, efficiency)
    return math_rate(rates, dtype) if dtype in rates.peaks else None


def unit_times(  # noqa: PLR0913, PLR0917, the works of a kernel
    flops: Any,  # noqa: ANN401, numbers or expressions
    vector_flops: Any,  # noqa: ANN401, the same
    memory_bytes: Any,  # noqa: ANN401, the same
    exponentials: Any,  # noqa: ANN401, the same
    rates: KernelRates | RateNumbers,
    time: Callable[..., Any],
    *,
    is_vector: bool,
) -> KernelTimes:
    """Resource times: each work over its unit's rate [s].

    Args:
        flops: Matrix-unit work [FLOP].
        vector_flops: Vector-unit work [FLOP].
        memory_bytes: Bytes read and written [byte].
        exponentials: Exponentials [1].
        rates: The rates.
        time: Function from work and rate to their quotient; None without a rate, or without work
            that is optional.
        is_vector: Whether `math` is the vector unit's, as in kernels without products.
    """
    vector = time(vector_flops, rates.vector)
    return KernelTimes(
        vector if is_vector else time(flops, rates.matrix, is_optional=False),
        time(memory_bytes, rates.memory, is_optional=False),
        None if is_vector else vector,
        time(exponentials, rates.exp),
    )


def exact_time(
    work: int | Fraction, rate: Fraction | None, *, is_optional: bool = True
) -> Fraction | None:
    """Work over rate, exact [s]; None without a rate, or optional work."""
    return Fraction(work) / rate if rate and (work or not is_optional) else None


def times_of_work(work: Work, rates: KernelRates, unit: str) -> KernelTimes:
    """Resource times for work, exact [s].

    Args:
        work: The work.
        rates: The rates.
        unit: The unit that `math` stands for.
    """
    return unit_times(
        work.flops,
        work.vector_flops,
        work.memory_bytes,
        work.exponentials,
        rates,
        exact_time,
        is_vector=unit == VECTOR,
    )


class Critical(NamedTuple):
    """Threshold of a kernel along one letter.

    Attributes:
        axis: The letter.
        outcome: `found`, `always`, `never` or beyond the largest size.
        critical: Smallest, or for some letters largest, compute-bound size [1].
        real: Real size at the crossover [1].
        largest: Whether it is the largest size.
        limit_intensity: Intensity that the letter tends to [FLOP/byte]; None: infinite.
        needed_intensity: Intensity from which the kernel is compute-bound [FLOP/byte]; None: no
            peak.
    """

    axis: str
    outcome: str
    critical: int | None
    real: float | None
    largest: bool
    limit_intensity: float | None
    needed_intensity: float | None


def find_follower(form: KernelForm, axis: str) -> str | None:
    """Letter that grows along an axis as much as its letter; None: where all queries see all."""
    return None if _is_full(form) else form.kind.follows.get(axis)


def limit_formulas(form: KernelForm, axis: str) -> tuple[str, str | None]:
    """Smallest and largest size along an axis, as formulas; None: no end.

    A smallest size that follows the axis by default, such as T along S, is no limit: 1.
    """
    low, high = form.kind.limits.get(axis, ("1", None))
    return ("1" if _is_full(form) and axis == "S" else low), high


def _is_full(form: KernelForm) -> bool:
    """Tell whether all queries see all entries."""
    return form.options.get("mask") == "full"


@dataclass(frozen=True)
class PlacedKernel:
    """A kernel on a chip.

    Attributes:
        form: The kernel.
        rates: The chip's rates.
        counts_exp: Whether exponentials are a resource of the bound.
    """

    form: KernelForm
    rates: KernelRates
    counts_exp: bool = False

    def times(self, complete: Mapping[str, Any]) -> KernelTimes:
        """Exact times at complete sizes [s]."""
        return times_of_work(self.form.work(complete), self.rates, self.form.kind.unit)

    @cached_property
    def memory_alone(self) -> PlacedKernel:
        """Kernel whose only resources are math and memory; itself where it has no other."""
        beside = self.rates.vector is not None and self.form.kind.unit == MATRIX
        has_vector = beside and self.form.kind.vector_flops != "0"
        if not (has_vector or self.counts_exp):
            return self
        rates = replace(self.rates, vector=None) if has_vector else self.rates
        return PlacedKernel(self.form, rates)

    def is_compute_bound(self, complete: Mapping[str, Any]) -> bool:
        """Tell whether math takes as long as memory, at least."""
        times = self.times(complete)
        return times.math is not None and times.math >= self._rival(times)

    def by_bound(self, times: KernelTimes) -> dict[str, Fraction]:
        """Times that count in the bound, by its name [s]."""
        by_bound = {MATH: times.math, VECTOR_BOUND: times.vector, MEMORY: times.memory}
        by_bound |= {EXPONENTIALS: times.exp} if self.counts_exp else {}
        return {bound: time for bound, time in by_bound.items() if time is not None}

    def _rival(self, times: KernelTimes) -> Fraction:
        """Largest time beside math [s]."""
        return max(time for bound, time in self.by_bound(times).items() if bound != MATH)

    def _margin(self, complete: Mapping[str, Any]) -> Fraction:
        """Math less memory time [s]."""
        times = self.times(complete)
        math: Fraction = times.math or Fraction(0)
        return math - self._rival(times)

    def along(self, axis: str, sizes: Mapping[str, int], size: Any) -> dict[str, Any]:  # noqa: ANN401, a number
        """Complete sizes where a letter has another size, and letters that follow it.

        Args:
            axis: The letter.
            sizes: Sizes that are given [1].
            size: The other size [1].
        """
        follower = find_follower(self.form, axis)
        moved = {**sizes, axis: size}
        if follower:
            complete = self.form.complete(sizes)
            moved[follower] = complete[follower] - complete[axis] + size
        return self.form.complete(moved)

    def axes(self, sizes: Mapping[str, int]) -> list[str]:
        """Letters along which thresholds are solved, for given sizes."""
        form = self.form
        return [
            axis
            for axis in form.kind.axes
            if (axis in sizes or axis in form.kind.optional or axis in form.kind.defaults)
            and not (axis in form.kind.optional and axis not in sizes)
        ]

    def limits(self, axis: str, sizes: Mapping[str, int]) -> tuple[int, int | None]:
        """Smallest and largest size along a letter [1]; None: no end."""
        low, high = limit_formulas(self.form, axis)
        complete = self.form.complete(sizes)
        if low not in sizes and self.form.depends_on(low, axis):
            low = "1"

        def at(formula: str) -> int:
            names = names_in(formula)
            compute = compile_formulas([formula], {}, names)
            return int(compute(*(complete[name] for name in names))[0])

        return at(low), None if high is None else at(high)

    def critical(self, axis: str, sizes: Mapping[str, int]) -> Critical:
        """Critical size along a letter, other sizes fixed; exact.

        The smallest size from which on math takes at least as long as memory; along a letter whose
        growth makes a kernel memory-bound, the largest.

        Args:
            axis: The letter.
            sizes: Sizes that are given [1].
        """
        low, high = self.limits(axis, sizes)
        is_largest = axis in self.form.kind.largest
        end = high if high is not None else MAX_COUNT

        def holds(size: int) -> bool:
            return self.is_compute_bound(self.along(axis, sizes, size)) != is_largest

        def answer(
            outcome: str, critical: int | None = None, real: float | None = None
        ) -> Critical:
            limit = self._limit_intensity(axis, sizes, high)
            return Critical(axis, outcome, critical, real, is_largest, limit, self.needed_intensity)

        if holds(low):
            return answer(NEVER if is_largest else ALWAYS)
        top = low
        while top < end and not holds(top):
            top = min(2 * top + 1, end)
        if not holds(top):
            if is_largest:
                return answer(ALWAYS, end if high is not None else None)
            grows = high is None and holds(LIMIT_SIZE)
            return answer(BEYOND_MAX_COUNT if grows else NEVER)
        crossing = first(holds, low, top)
        real = self._real(axis, sizes, crossing)
        return answer(FOUND, crossing - 1 if is_largest else crossing, real)

    def _real(self, axis: str, sizes: Mapping[str, int], crossing: int) -> float:
        """Real size where math takes as long as memory, before a whole one."""
        low, high = Fraction(crossing - 1), Fraction(crossing)
        below, above = (self._margin(self.along(axis, sizes, size)) for size in (low, high))
        if below == 0 or above == 0:
            return float(low if below == 0 else high)
        size = low
        for _ in range(REAL_STEPS):  # false positions; an end that stays counts half (Illinois)
            last, share = size, below / (below - above)
            size = low + (high - low) * Fraction(round(share * REAL_PARTS), REAL_PARTS)
            margin = self._margin(self.along(axis, sizes, size))
            if margin == 0 or abs(size - last) * REAL_PARTS <= size:
                break
            if (margin > 0) == (above > 0):
                below = below / 2 if high == last else below
                high, above = size, margin
            else:
                above = above / 2 if low == last else above
                low, below = size, margin
        return float(size)

    @property
    def needed_intensity(self) -> float | None:
        """Peak / bandwidth [FLOP/byte]; None: no peak."""
        peak = self.rates.vector if self.form.kind.unit == VECTOR else self.rates.matrix
        return None if peak is None else float(peak / self.rates.memory)

    def _limit_intensity(
        self, axis: str, sizes: Mapping[str, int], high: int | None
    ) -> float | None:
        """Intensity that a letter tends to, or has at its largest size; None: infinite."""
        if high is not None:
            return self._intensity(axis, sizes, high)
        near, far = (self._intensity(axis, sizes, LIMIT_SIZE**power) for power in (1, 2))
        return None if near is None or far is None or far > 2 * near else far

    def _intensity(self, axis: str, sizes: Mapping[str, int], size: int) -> float | None:
        """FLOP per byte at a size along a letter [FLOP/byte]."""
        work = self.form.work(self.along(axis, sizes, size))
        flops = work.vector_flops if self.form.kind.unit == VECTOR else work.flops
        return float(Fraction(flops) / work.memory_bytes) if work.memory_bytes else None
