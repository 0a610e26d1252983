"""The numbers of a chip that the model reads, exact: peak, memory level, link."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.model.sharding import Sharding

__all__ = ["Level", "Link", "Target"]


@dataclass(frozen=True)
class Level:
    """A memory level.

    Attributes:
        bytes_per_s: Bandwidth to the compute units [byte/s].
        capacity_bytes: Capacity [byte]; None where it is not published.
    """

    bytes_per_s: Fraction
    capacity_bytes: Fraction | None = None


@dataclass(frozen=True)
class Link:
    """An interconnect, as one chip sees it.

    Attributes:
        bytes_per_s: Bandwidth of one link, one way [byte/s].
        topology: `switch` (every link reaches every chip), `mesh` (a link to each other chip) or
            `torus` (a line or a ring).
        links: Links of one chip [1].
        domain: The most chips that it joins; None without a documented limit [1].
        ring_multiple: On a torus, the axis closes into a ring where N is a multiple of this; None
            where it never does [1].
        hop_latency_s: Time of one hop of a collective [s].
    """

    bytes_per_s: Fraction
    topology: str
    links: int = 1
    domain: int | None = None
    ring_multiple: int | None = None
    hop_latency_s: Fraction = Fraction(0)

    @property
    def chips_joined(self) -> int | None:
        """The most chips that it joins [1]; None without a documented limit.

        A mesh has a link to every other chip.
        """
        return self.links + 1 if self.domain is None and self.topology == "mesh" else self.domain

    def links_used(self, shards: int) -> int:
        """Links over which one chip can send at once in a collective of N chips [1].

        Args:
            shards: N, chips in the collective [1].

        Returns:
            All of them on a switch; N-1 in a mesh; on a torus 2 where N closes the axis into a
            ring, else 1.
        """
        if self.topology == "switch":
            return self.links
        if self.topology == "mesh":
            return min(self.links, max(shards - 1, 1))
        multiple = self.ring_multiple
        closed = multiple is not None and shards > 2 and shards % multiple == 0  # noqa: PLR2004, two chips are a pair
        return 2 if closed else 1


@dataclass(frozen=True)
class Target:
    """What a row runs on: parts of a chip, a split over N chips, an efficiency per resource.

    Attributes:
        peak: The compute unit's nominal dense peak in the compute dtype [FLOP/s].
        level: The memory level that feeds the unit.
        link: The interconnect; None where the chip has none.
        sharding, shards: The split and its N chips.
        efficiency: Share of the nominal rate that each resource reaches, 0..1, by resource name.
    """

    peak: Fraction
    level: Level
    link: Link | None
    sharding: Sharding
    shards: int
    efficiency: Mapping[str, Fraction]
