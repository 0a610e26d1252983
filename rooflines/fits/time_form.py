"""The form of a calibrated time: what is common, plus the largest of a few pieces.

A piece is the least of some sums that are affine in nominal quantities. One definition serves exact
numbers, polars expressions and the arrays of a fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence  # noqa: TC003, a named tuple reads it
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from operator import add, mul
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Self, TypeVar

from rooflines.basics.lazy import pl
from rooflines.theory.network import RING_PASSES, Route
from rooflines.theory.poly import Poly, total
from rooflines.theory.resources import ACTIVATION_BYTES, MATH, MEMORY

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from rooflines.theory.kernel import Kernel
    from rooflines.theory.resources import ChipRates

Form = Literal["max", "pieces"]
FORMS: tuple[Form, ...] = ("max", "pieces")

Number = Fraction | float

Value = TypeVar("Value", Fraction, "pl.Expr", "NDArray[np.float64]")
"""A nominal quantity: exact, an expression, or the values of many timings."""

QUANTITIES = ("math", "memory", "network", "x", "out", "depth", "hops")
"""The nominal quantities by the names of `Affine`."""

COUNTED = ("depth", "columns", "context")
"""Sizes among what kernels move [1]; the others are bytes."""

SUSTAINED_S = Fraction(1, 1000)
"""Time at the peak after which a lower, sustained clock shows [s]."""


@dataclass(frozen=True)
class Affine:
    """A sum of nominal quantities, each times a factor, plus a constant.

    Attributes:
        bound: What limits the operation where this piece is the largest.
        per: The factor of every quantity, one of `QUANTITIES`: nominal seconds, of `depth` the
            contracted elements, of `hops` the steps around the ring.
        constant_s: The constant [s].
    """

    bound: str
    per: Mapping[str, Number]
    constant_s: Number = field(default=Fraction(0))


MinOf = tuple[Affine, ...]
"""A piece: the least of these counts, which have the same bound."""


class FormNumbers(ABC):
    """The fitted numbers of a form of times: dataclasses whose fields are the keys of a file."""

    tile: int = 1

    @property
    @abstractmethod
    def common(self) -> Affine:
        """What is added to the largest piece."""

    @property
    @abstractmethod
    def pieces(self) -> tuple[MinOf, ...]:
        """The pieces, of which the largest counts; the earlier one wins a tie."""

    def replaced(self, numbers: Mapping[str, Number]) -> Self:
        """The same with other numbers, by name."""
        return type(self)(**{**vars(self), **numbers})

    @property
    def floats(self) -> Self:
        """The same as Float64, for tables and fits."""
        named = vars(self).items()
        return self.replaced({name: float(number) for name, number in named if name != "tile"})


@dataclass(frozen=True)
class Numbers(FormNumbers):
    """The fitted numbers of a chip, a compute dtype and a software.

    Names are the keys in a calibration file; `calibration_files.FittedMatmul` describes them. All
    times are nominal: a sweep's efficiencies are not applied. `network` is the share of the network
    rate that is reached, where a collective has no fit [1].
    """

    math: Number
    memory: Number
    overhead_s: Number
    network: Number = Fraction(1)
    activation_passes: Number = Fraction(0)
    mixed_math: Number = Fraction(0)
    mixed_memory: Number = Fraction(0)
    mixed_activations: Number = Fraction(0)
    mixed_depth_s: Number = Fraction(0)
    sustained: Number = Fraction(0)
    tile: int = 1

    @property
    def plain(self) -> Numbers:
        """The shares and the overhead alone."""
        return Numbers(self.math, self.memory, self.overhead_s, self.network)

    @property
    def common(self) -> Affine:
        """What every operation takes on top of its largest piece."""
        return Affine("", {"x": self.activation_passes}, self.overhead_s)

    @property
    def pieces(self) -> tuple[MinOf, ...]:
        """The pieces, of which the largest counts; the earlier one wins a tie.

        Returns:
            Compute, compute at the sustained clock, memory, network, and mixed: imperfect overlap
            near the ridge, and blocks too few to fill the chip. Pieces that cannot be the largest
            because their factors are zero are left out.
        """
        math = 1 / self.math
        affines = [Affine("compute", {"math": math})]
        if self.sustained:
            lost = self.sustained * SUSTAINED_S
            affines.append(Affine("compute", {"math": math + self.sustained}, -lost))
        affines.append(Affine("memory", {"memory": 1 / self.memory}))
        affines.append(Affine("network", {"network": 1 / self.network}))
        mixed = {
            "math": self.mixed_math,
            "memory": self.mixed_memory,
            "x": self.mixed_activations,
            "out": self.mixed_activations,
            "depth": self.mixed_depth_s,
        }
        if any(mixed.values()):
            factors = {name: factor for name, factor in mixed.items() if factor}
            affines.append(Affine("mixed", factors))
        return tuple((affine,) for affine in affines)


@dataclass(frozen=True)
class CollectiveNumbers(FormNumbers):
    """The fitted numbers of a chip, a software and a collective.

    Names are the keys in a calibration file; `calibration_files.FittedCollective` describes them.
    There are two protocols, for small and for large payloads: the faster one counts.
    """

    overhead_s: Number
    low_latency: Number
    bulk_overhead_s: Number
    bulk: Number
    hop_s: Number

    @property
    def common(self) -> Affine:
        """The time of the steps around the ring."""
        return Affine("", {"hops": self.hop_s})

    @property
    def pieces(self) -> tuple[MinOf, ...]:
        """One piece: the protocols for small and for large payloads."""
        bulk_s = self.overhead_s + self.bulk_overhead_s
        fast = Affine("network", {"network": 1 / self.low_latency}, self.overhead_s)
        return ((fast, Affine("network", {"network": 1 / self.bulk}, bulk_s)),)


class Extremes(NamedTuple, Generic[Value]):
    """The maximum and the minimum of several values."""

    largest: Callable[[Sequence[Value]], Value]
    least: Callable[[Sequence[Value]], Value]


def value(affine: Affine, quantities: Mapping[str, Value]) -> Value:
    """The value of an affine sum [s]; a quantity that is left out is zero."""
    terms = [mul(quantities[name], per) for name, per in affine.per.items() if name in quantities]
    if affine.constant_s or not terms:
        terms.append(affine.constant_s)
    summed: Value = reduce(add, terms)
    return summed


def piece_values(
    numbers: FormNumbers, quantities: Mapping[str, Value], extremes: Extremes[Value]
) -> list[tuple[str, Value]]:
    """The bound and the value [s] of every piece that has a quantity, in order."""
    pieces = []
    for options in numbers.pieces:
        if options[0].per.keys() & quantities.keys():
            values = [value(affine, quantities) for affine in options]
            pieces.append(
                (options[0].bound, extremes.least(values) if len(values) > 1 else values[0])
            )
    return pieces


def bound(times: Sequence[tuple[str, pl.Expr]]) -> pl.Expr:
    """The bound of the largest of `piece_values`, the earlier one in a tie."""
    largest = pl.max_horizontal([time for _, time in times])
    label: pl.Expr = pl.lit(times[-1][0])
    for name, time in reversed(times[:-1]):
        label = pl.when(time >= largest).then(pl.lit(name)).otherwise(label)
    return label


def estimate(
    numbers: FormNumbers, quantities: Mapping[str, Value], extremes: Extremes[Value]
) -> Value:
    """The calibrated time [s].

    Args:
        numbers: The fitted numbers; as `FormNumbers.floats` unless the quantities are exact.
        quantities: The nominal quantities by name; one that is left out is zero.
        extremes: The maximum and the minimum of several values.
    """
    times = [time for _, time in piece_values(numbers, quantities, extremes)]
    time: Value = add(value(numbers.common, quantities), extremes.largest(times))
    return time


def ring_steps(route: Route, collective: str) -> Fraction:
    """Steps of a collective around a ring of all chips [1]: N-1 for each pass.

    Libraries send around rings also where a switch would allow fewer hops.
    """
    (level,) = route.levels
    return Fraction(RING_PASSES[collective] * (level.chips - 1))


def nominal_quantities(kernel: Kernel, machine: ChipRates, tile: int = 1) -> dict[str, Poly]:
    """Nominal quantities of a kernel, named as in `time_form.Affine`: seconds, and depth [1].

    Args:
        kernel: The kernel.
        machine: The chip; its efficiencies, a what-if, are not applied.
        tile: Rows whose math is computed together [1].
    """
    peak, rate = machine.peaks[kernel.compute], machine.level.bytes_per_s
    span = tile * kernel.row_shards if tile > 1 else 1
    moved = total((kernel.work(MEMORY.work), kernel.work(ACTIVATION_BYTES)))
    return {
        MATH.name: (kernel.work(MATH.work) / peak).in_tiles(kernel.rows, span),
        MEMORY.name: moved / rate,
        **{
            name: amount if name in COUNTED else amount / rate
            for name, amount in kernel.fit_terms.items()
        },
    }
