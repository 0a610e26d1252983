"""The form of a calibrated time: an overhead, plus the largest of a few affine pieces.

Each piece is affine in nominal quantities. One definition, `pieces`, serves exact numbers, polars
expressions and the arrays of a fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from operator import add, mul
from typing import TYPE_CHECKING, Literal, TypeVar

from rooflines.basics.lazy import pl
from rooflines.model.poly import Poly, total
from rooflines.model.resources import ACTIVATIONS, MATH, MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from rooflines.model.kernel import Kernel
    from rooflines.model.resources import Machine

Form = Literal["max", "pieces"]
FORMS: tuple[Form, ...] = ("max", "pieces")

Number = Fraction | float

Value = TypeVar("Value", Fraction, "pl.Expr", "NDArray[np.float64]")
"""A nominal quantity: exact, an expression, or the values of many timings."""

COUNTED = ("depth", "columns")
"""Sizes among what kernels move [1]; the others are bytes."""

SUSTAINED_S = Fraction(1, 1000)
"""Time at the peak after which a lower, sustained clock shows [s]."""


@dataclass(frozen=True)
class Numbers:
    """The fitted numbers of a chip, a compute dtype and a software.

    The names are the keys of a calibration in a file; `entries.FittedMatmul` says what they are.
    All times are nominal: efficiencies of a sweep are not applied. `network` is the share of the
    network rate that is reached, where a collective has no fit of its own [1].
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
    def form(self) -> Form:
        """`max` if only shares and the overhead are set."""
        return "max" if self == self.plain else "pieces"

    @property
    def plain(self) -> Numbers:
        """The shares and the overhead alone."""
        return Numbers(self.math, self.memory, self.overhead_s, self.network)

    @property
    def floats(self) -> Numbers:
        """The same as Float64, for tables and fits."""
        return self.replaced(
            {name: float(number) for name, number in vars(self).items() if name != "tile"}
        )

    def replaced(self, numbers: Mapping[str, Number]) -> Numbers:
        """The same with other numbers, by name."""
        return Numbers(**{**vars(self), **numbers})


@dataclass(frozen=True)
class Affine:
    """A sum of nominal quantities, each times a factor, plus a constant.

    Attributes:
        bound: What limits the operation where this piece is the largest.
        per: The factor of every quantity, which is `math`, `memory`, `network`, `x`, `out` (nominal
            seconds) or `depth` (contracted elements).
        constant_s: The constant [s].
    """

    bound: str
    per: Mapping[str, Number]
    constant_s: Number = field(default=Fraction(0))


def common(numbers: Numbers) -> Affine:
    """What every operation takes on top of its largest piece."""
    return Affine("", {"x": numbers.activation_passes}, numbers.overhead_s)


def pieces(numbers: Numbers) -> tuple[Affine, ...]:
    """The pieces, of which the largest counts; the earlier one wins a tie.

    Returns:
        Compute, compute at the sustained clock, memory, network, and mixed: imperfect overlap near
        the ridge, and blocks too few to fill the chip. Pieces that cannot be the largest because
        their factors are zero are left out.
    """
    math = 1 / numbers.math
    found = [Affine("compute", {"math": math})]
    if numbers.sustained:
        lost = numbers.sustained * SUSTAINED_S
        found.append(Affine("compute", {"math": math + numbers.sustained}, -lost))
    found.append(Affine("memory", {"memory": 1 / numbers.memory}))
    found.append(Affine("network", {"network": 1 / numbers.network}))
    mixed = {
        "math": numbers.mixed_math,
        "memory": numbers.mixed_memory,
        "x": numbers.mixed_activations,
        "out": numbers.mixed_activations,
        "depth": numbers.mixed_depth_s,
    }
    if any(mixed.values()):
        found.append(Affine("mixed", {name: factor for name, factor in mixed.items() if factor}))
    return tuple(found)


def value(affine: Affine, quantities: Mapping[str, Value]) -> Value:
    """The value of an affine piece [s]; a quantity that is left out is zero."""
    terms = [mul(quantities[name], per) for name, per in affine.per.items() if name in quantities]
    if affine.constant_s or not terms:
        terms.append(affine.constant_s)
    summed: Value = reduce(add, terms)
    return summed


def used(numbers: Numbers, quantities: Mapping[str, Value]) -> list[tuple[str, Value]]:
    """The bound and the value [s] of every piece that has a quantity, in order."""
    return [
        (piece.bound, value(piece, quantities))
        for piece in pieces(numbers)
        if piece.per.keys() & quantities.keys()
    ]


def bound(numbers: Numbers, quantities: Mapping[str, pl.Expr]) -> pl.Expr:
    """The bound of the largest piece, the earlier one in a tie: compute, memory, network, mixed."""
    times = used(numbers, quantities)
    largest = pl.max_horizontal([time for _, time in times])
    found: pl.Expr = pl.lit(times[-1][0])
    for name, time in reversed(times[:-1]):
        found = pl.when(time >= largest).then(pl.lit(name)).otherwise(found)
    return found


def estimate(
    numbers: Numbers,
    quantities: Mapping[str, Value],
    largest: Callable[[Sequence[Value]], Value],
) -> Value:
    """The calibrated time [s].

    Args:
        numbers: The fitted numbers; as `Numbers.floats` unless the quantities are exact.
        quantities: The nominal quantities by name; one that is left out is zero.
        largest: The maximum of several values.
    """
    times = [time for _, time in used(numbers, quantities)]
    time: Value = add(value(common(numbers), quantities), largest(times))
    return time


def nominal_quantities(kernel: Kernel, machine: Machine, tile: int = 1) -> dict[str, Poly]:
    """The nominal quantities of a kernel by the names of `form.Affine`: seconds, and depth [1].

    Args:
        kernel: The kernel.
        machine: The chip; its efficiencies, a what-if, are not applied.
        tile: Rows whose math is computed together [1].
    """
    peak, rate = machine.peaks[kernel.compute], machine.level.bytes_per_s
    span = tile * kernel.sharers if tile > 1 else 1
    moved = total((kernel.work(MEMORY.work), kernel.work(ACTIVATIONS)))
    return {
        MATH.name: (kernel.work(MATH.work) / peak).in_spans(kernel.rows, span),
        MEMORY.name: moved / rate,
        **{name: held if name in COUNTED else held / rate for name, held in kernel.moved.items()},
    }
