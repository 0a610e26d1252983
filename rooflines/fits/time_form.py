"""Form of a calibrated time: a common term plus the largest piece.

Time = common + max over pieces of min over affine sums in nominal quantities [s]. One definition
serves exact numbers, polars expressions and a fit's arrays.
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
from rooflines.theory.kernel import IO_OPERANDS
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
"""Nominal quantity: exact, an expression, or values at many timings."""

TIMES = ("math", "memory", "network", "x", "out", "inputs")
QUANTITIES = (*TIMES, "activated", "depth", "heads", "hops")
"""Nominal quantities, as `Affine.per` names them."""

EXPERT_COUNTS = ("activated", "width", "expert_width")
COUNTED = ("depth", "columns", "context", "heads", "head", "window", *EXPERT_COUNTS)
"""Sizes among a kernel's fit terms [1]; the others are bytes."""

SUSTAINED_S = Fraction(1, 1000)
"""Time at the peak after which a lower, sustained clock shows [s]."""


@dataclass(frozen=True)
class Affine:
    """Affine sum: factors * nominal quantities, plus a constant [s].

    Attributes:
        bound: The bottleneck where this piece is the largest.
        per: Factors by quantity, a name in `QUANTITIES`: nominal seconds; for `depth` the
            contracted elements, for `activated` the experts, for `heads` KV heads in all
            sequences, for `hops` the steps around the ring.
        constant_s: The constant [s].
    """

    bound: str
    per: Mapping[str, Number]
    constant_s: Number = field(default=Fraction(0))


MinOf = tuple[Affine, ...]
"""Piece: the minimum over these sums, which share one bound."""


class FormNumbers(ABC):
    """Fitted numbers in a time form: dataclasses whose fields are keys in a file."""

    tile: int = 1

    @property
    @abstractmethod
    def common(self) -> Affine:
        """Term that is added to the largest piece."""

    @property
    @abstractmethod
    def pieces(self) -> tuple[MinOf, ...]:
        """Pieces, whose maximum counts; the earlier one wins a tie."""

    def with_numbers(self, numbers: Mapping[str, Number]) -> Self:
        """Copy with other numbers, by name."""
        return type(self)(**{**vars(self), **numbers})

    @property
    def floats(self) -> Self:
        """Copy in Float64, for tables and fits."""
        fields = vars(self).items()
        return self.with_numbers({name: float(number) for name, number in fields if name != "tile"})


@dataclass(frozen=True)
class Numbers(FormNumbers):
    """Fitted numbers for a chip, a compute dtype and a software.

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
        """Shares and overhead alone."""
        return Numbers(self.math, self.memory, self.overhead_s, self.network)

    @property
    def common(self) -> Affine:
        """Term on top of the largest piece: overhead_s + activation_passes * x [s]."""
        return Affine("", {"x": self.activation_passes}, self.overhead_s)

    @property
    def pieces(self) -> tuple[MinOf, ...]:
        """Pieces, whose maximum counts; the earlier one wins a tie.

        Returns:
            Compute, compute at the sustained clock, memory, network, and mixed: imperfect overlap
            near the ridge, and blocks too few to fill the chip. Pieces that cannot be the largest
            because their factors are zero are left out.
        """
        math = 1 / self.math
        affines = [Affine("compute", {"math": math})]
        if self.sustained:
            sustained_s = self.sustained * SUSTAINED_S
            affines.append(Affine("compute", {"math": math + self.sustained}, -sustained_s))
        network = Affine("network", {"network": 1 / self.network})
        pieces = [*((affine,) for affine in affines), self.memory_times, (network,)]
        if factors := {name: factor for name, factor in self.mixed.items() if factor}:
            pieces.append((Affine("mixed", factors),))
        return tuple(pieces)

    @property
    def memory_times(self) -> MinOf:
        """Memory piece."""
        return (Affine("memory", {"memory": 1 / self.memory}),)

    @property
    def mixed(self) -> Mapping[str, Number]:
        """Factors in the mixed piece, by quantity."""
        return {
            "math": self.mixed_math,
            "memory": self.mixed_memory,
            "x": self.mixed_activations,
            "out": self.mixed_activations,
            "depth": self.mixed_depth_s,
        }


@dataclass(frozen=True)
class AttentionNumbers(Numbers):
    """Fitted numbers for grouped-query attention.

    The mixed piece has a time per sequence and KV head. Where `bulk` is not zero, memory traffic
    takes the smaller time, like a collective: at `memory`, or at `bulk` after a start.
    """

    mixed_head_s: Number = Fraction(0)
    bulk_overhead_s: Number = Fraction(0)
    bulk: Number = Fraction(0)

    @property
    def memory_times(self) -> MinOf:
        """Memory piece: t_memory / memory, or bulk_overhead_s + t_memory / bulk."""
        if not self.bulk:
            return super().memory_times
        bulk = Affine("memory", {"memory": 1 / self.bulk}, self.bulk_overhead_s)
        return (*super().memory_times, bulk)

    @property
    def mixed(self) -> Mapping[str, Number]:
        """Factors in the mixed piece, by quantity."""
        return {**super().mixed, "heads": self.mixed_head_s}


@dataclass(frozen=True)
class ExpertsNumbers(Numbers):
    """Fitted numbers for routed experts as one fused kernel.

    On top come passes over the tokens, which are sorted by expert, and a time per activated expert.
    Both are affine in the sizes, like all pieces.
    """

    token_passes: Number = Fraction(0)
    expert_s: Number = Fraction(0)

    @property
    def common(self) -> Affine:
        """Term on top: overhead_s + token_passes * inputs + expert_s * activated [s]."""
        per = {"inputs": self.token_passes, "activated": self.expert_s}
        return Affine("", {**super().common.per, **per}, self.overhead_s)


@dataclass(frozen=True)
class CollectiveNumbers(FormNumbers):
    """Fitted numbers for a chip, a software and a collective.

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
        """Time for the steps around the ring: hop_s * hops [s]."""
        return Affine("", {"hops": self.hop_s})

    @property
    def pieces(self) -> tuple[MinOf, ...]:
        """Single piece: minimum over the protocols for small and for large payloads."""
        bulk_s = self.overhead_s + self.bulk_overhead_s
        fast = Affine("network", {"network": 1 / self.low_latency}, self.overhead_s)
        return ((fast, Affine("network", {"network": 1 / self.bulk}, bulk_s)),)


class Extremes(NamedTuple, Generic[Value]):
    """Maximum and minimum over several values."""

    maximum: Callable[[Sequence[Value]], Value]
    minimum: Callable[[Sequence[Value]], Value]


def value(affine: Affine, quantities: Mapping[str, Value]) -> Value:
    """Value of an affine sum [s]; a missing quantity is zero."""
    terms = [mul(quantities[name], per) for name, per in affine.per.items() if name in quantities]
    if affine.constant_s or not terms:
        terms.append(affine.constant_s)
    summed: Value = reduce(add, terms)
    return summed


def piece_values(
    numbers: FormNumbers, quantities: Mapping[str, Value], extremes: Extremes[Value]
) -> list[tuple[str, Value]]:
    """Bound and value [s] for every piece that has a quantity, in order."""
    pieces = []
    for options in numbers.pieces:
        if options[0].per.keys() & quantities.keys():
            values = [value(affine, quantities) for affine in options]
            pieces.append(
                (options[0].bound, extremes.minimum(values) if len(values) > 1 else values[0])
            )
    return pieces


def bound(times: Sequence[tuple[str, pl.Expr]]) -> pl.Expr:
    """Bound of the largest piece in `piece_values`, the earlier one in a tie."""
    maximum = pl.max_horizontal([time for _, time in times])
    label: pl.Expr = pl.lit(times[-1][0])
    for name, time in reversed(times[:-1]):
        label = pl.when(time >= maximum).then(pl.lit(name)).otherwise(label)
    return label


def estimate(
    numbers: FormNumbers, quantities: Mapping[str, Value], extremes: Extremes[Value]
) -> Value:
    """Calibrated time: common term + largest piece [s].

    Args:
        numbers: The fitted numbers; as `FormNumbers.floats` unless the quantities are exact.
        quantities: The nominal quantities by name; one that is left out is zero.
        extremes: The maximum and the minimum over several values.
    """
    times = [time for _, time in piece_values(numbers, quantities, extremes)]
    time: Value = add(value(numbers.common, quantities), extremes.maximum(times))
    return time


def ring_steps(route: Route, collective: str) -> Fraction:
    """Steps around a ring with all chips: passes * (N - 1) [1].

    Libraries send around rings also where a switch would allow fewer hops.
    """
    (level,) = route.levels
    return Fraction(RING_PASSES[collective] * (level.chips - 1))


def nominal_quantities(kernel: Kernel, machine: ChipRates, tile: int = 1) -> dict[str, Poly]:
    """Nominal quantities of a kernel, named as in `Affine.per`: seconds, and depth [1].

    Args:
        kernel: The kernel.
        machine: The chip; its efficiencies, a what-if, are not applied.
        tile: Rows whose math is computed together [1].
    """
    peak, rate = machine.peaks[kernel.compute], machine.level.bytes_per_s
    span = tile * kernel.row_shards if tile > 1 else 1
    activations = [kernel.work(ACTIVATION_BYTES)]
    if activations[0] and kernel.is_matmul:  # x in the format that the kernel reads
        activations = [kernel.fit_terms[name] for name in IO_OPERANDS]
    memory_bytes = total((kernel.work(MEMORY.work), *activations))
    depth = {"depth": kernel.fit_terms["context"]} if kernel.attention_phase else {}
    return {
        **depth,
        MATH.name: (kernel.work(MATH.work) / peak).in_tiles(kernel.rows, span),
        MEMORY.name: memory_bytes / rate,
        **{
            name: amount if name in COUNTED else amount / rate
            for name, amount in kernel.fit_terms.items()
        },
    }
