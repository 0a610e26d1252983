"""The numbers of a chip that the model reads, exact: peak, memory level, route to other chips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from rooflines.model.network import Route
    from rooflines.model.sharding import Sharding


@dataclass(frozen=True)
class MemoryLevel:
    """A memory level.

    Attributes:
        bytes_per_s: Bandwidth to the compute units [byte/s].
        capacity_bytes: Capacity [byte]; None where it is not published.
    """

    bytes_per_s: Fraction
    capacity_bytes: Fraction | None = None


@dataclass(frozen=True)
class Machine:
    """The numbers of a chip that times read.

    Attributes:
        peaks: Nominal dense peaks of the compute unit by compute dtype [FLOP/s].
        level: The memory level that feeds the unit.
        efficiency: Share of the nominal rate that each resource reaches, 0..1, by resource name.
    """

    peaks: Mapping[str, Fraction]
    level: MemoryLevel
    efficiency: Mapping[str, Fraction]


@dataclass(frozen=True)
class Target:
    """What a row runs on: parts of a chip, a split over N chips, an efficiency per resource.

    Attributes:
        peak: The compute unit's nominal dense peak in the compute dtype [FLOP/s].
        level: The memory level that feeds the unit.
        route: The interconnects to the other chips; None for one chip.
        sharding: What is split over them.
        efficiency: Share of the nominal rate that each resource reaches, 0..1, by resource name.
    """

    peak: Fraction
    level: MemoryLevel
    route: Route | None
    sharding: Sharding
    efficiency: Mapping[str, Fraction]
