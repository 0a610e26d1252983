"""The form of a calibrated collective: two protocols, of which the faster is taken, and hops."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from operator import add
from typing import TYPE_CHECKING

from rooflines.fits.form import Affine, Number, Value, value
from rooflines.model.network import PASSES, Route

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True)
class CollectiveNumbers:
    """The fitted numbers of a chip, a software and a collective.

    The names are the keys of a file; `entries.FittedCollective` says what they are.
    """

    overhead_s: Number
    low_latency: Number
    bulk_overhead_s: Number
    bulk: Number
    hop_s: Number

    @property
    def floats(self) -> CollectiveNumbers:
        """The same as Float64, for tables."""
        return CollectiveNumbers(**{name: float(number) for name, number in vars(self).items()})


def protocols(numbers: CollectiveNumbers) -> tuple[Affine, Affine]:
    """The protocols for small and for large payloads, without the time of the steps."""
    bulk_s = numbers.overhead_s + numbers.bulk_overhead_s
    return (
        Affine("network", {"network": 1 / numbers.low_latency}, numbers.overhead_s),
        Affine("network", {"network": 1 / numbers.bulk}, bulk_s),
    )


def collective_estimate(
    numbers: CollectiveNumbers,
    network: Value,
    hops: Value,
    least: Callable[[Value, Value], Value],
) -> Value:
    """The calibrated time of a collective [s].

    Args:
        numbers: The fitted numbers; exact only where the quantities are.
        network: Nominal time of the bytes on the wire [s].
        hops: Steps around the ring [1].
        least: The minimum of two values.
    """
    fast, bulk = (value(each, {"network": network}) for each in protocols(numbers))
    total: Value = add(
        least(fast, bulk), value(Affine("", {"hops": numbers.hop_s}), {"hops": hops})
    )
    return total


def ring_steps(route: Route, collective: str) -> Fraction:
    """Steps of a collective around a ring of all chips [1]: N-1 for each pass.

    Libraries send around rings also where a switch would allow fewer hops.
    """
    (level,) = route.levels
    return Fraction(PASSES[collective] * (level.chips - 1))
