"""Collectives asked alone: bytes that a chip sends or receives, hops, and their times.

`bytes` is the whole tensor, in an all-to-all what one chip holds. Counted is what one chip must
send or receive, whichever is more; links are full duplex.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.quantities import quantity
from rooflines.hardware.support import default_route, interconnects, missing_route_reason
from rooflines.theory.network import (
    RING_PASSES,
    TORUS,
    Link,
    NetworkLevel,
    Route,
    parse_axes,
    resolve_axes,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.hardware.entries import Chip

PAYLOAD = "bytes"
"""Payload letter."""

BINARY_SUFFIX = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGT])i?", re.ASCII | re.IGNORECASE)
"""Binary thousands: 64M is 64 * 1024^2, as 8k is 8,192."""

LARGE_PAYLOAD = 1 << 40
"""Payload at which bandwidth decides which network is the slowest [byte]."""

ALL_REDUCE = "all-reduce"

ROOTED = ("gather", "scatter")
"""Collectives in which a root sends or receives all parts but its share."""

WHOLE = ("broadcast", "reduce")
"""Collectives in which a chip sends or receives the whole tensor."""

PAIRWISE = ("send", "permute")
"""Transfers between pairs of chips."""

COLLECTIVE_MEANINGS: Mapping[str, str] = {
    ALL_REDUCE: "sum over all chips, on all chips",
    "all-gather": "all parts, on all chips",
    "reduce-scatter": "sum over all chips, a part on each",
    "all-to-all": "a part from each chip to each other chip",
    "gather": "all parts, on one chip",
    "scatter": "a part from one chip to each",
    "broadcast": "one chip's tensor, on all chips",
    "reduce": "sum over all chips, on one chip",
    "send": "one chip's tensor, on another chip",
    "permute": "each chip's tensor, on another chip",
}
"""Meaning by collective."""

COLLECTIVE_SYNONYMS: Mapping[str, str] = {
    **{name.replace("-", ""): name for name in COLLECTIVE_MEANINGS if "-" in name},
    **{name.replace("-", "_"): name for name in COLLECTIVE_MEANINGS if "-" in name},
    "psum": ALL_REDUCE,
    "ppermute": "permute",
    "recv": "send",
    "sendrecv": "permute",
    "alltoall": "all-to-all",
    "a2a": "all-to-all",
}
"""Collective by further name."""


def in_switch_share(ring_share: Fraction, chips: int) -> Fraction:
    """Bytes per payload byte where a switch adds up: min(ring, (N+1)/N) [1].

    Args:
        ring_share: Bytes per payload byte in the ring [1].
        chips: N [1].
    """
    return min(ring_share, Fraction(chips + 1, chips))


class LevelTime(NamedTuple):
    """A collective on one level of a route.

    Attributes:
        name: The interconnect.
        sent_bytes: Bytes that a chip sends or receives [byte].
        bytes_per_s: Bandwidth out of one chip [byte/s].
        latency_s: Least latency, that of the hops [s].
    """

    name: str
    sent_bytes: Fraction
    bytes_per_s: Fraction
    latency_s: Fraction

    @property
    def time_s(self) -> Fraction:
        """Time on this level, max(hops, bytes / bandwidth) [s]."""
        return max(self.latency_s, self.sent_bytes / self.bytes_per_s)


@dataclass(frozen=True)
class PlacedCollective:
    """A collective on the chips of a route.

    Attributes:
        kind: The collective.
        names: Interconnects, inner first.
        route: The route.
        reduces: Whether the network adds up payloads in its switch.
        efficiency: Share of the nominal bandwidth that is reached [1].
        memory_per_s: Bandwidth of the main memory [byte/s].
    """

    kind: str
    names: tuple[str, ...]
    route: Route
    reduces: bool
    efficiency: Fraction
    memory_per_s: Fraction

    @property
    def chips(self) -> int:
        """Chips N [1]."""
        return math.prod(self.route.axes)

    def levels(self, payload: int) -> list[LevelTime]:
        """Route levels, inner first.

        Args:
            payload: The whole tensor, in an all-to-all what one chip holds [byte].
        """
        shares, passes = self._shares, RING_PASSES.get(self.kind, 1)
        return [
            LevelTime(
                name,
                share * payload,
                level.bytes_per_s * self.efficiency,
                self._hops(level) * passes * level.link.hop_latency_s if share else Fraction(0),
            )
            for name, level, share in zip(self.names, self.route.levels, shares, strict=True)
        ]

    def _hops(self, level: NetworkLevel) -> int:
        """Sequential hops in one pass [1]; one between a pair of neighbours."""
        return min(level.hops, 1) if self.kind in PAIRWISE else level.hops

    @property
    def _shares(self) -> tuple[Fraction, ...]:
        """Bytes over every level per payload byte [1]."""
        levels = self.route.levels
        if self.kind in RING_PASSES:
            return self.route.bytes_per_payload_byte(self.kind)
        if self.kind in ROOTED:
            return self.route.bytes_per_payload_byte("all-gather")
        crossed = [Fraction(int(level.chips > 1)) for level in levels]
        if len(levels) == 1 or not crossed[1]:
            return (crossed[0], *(Fraction(0) for _ in levels[1:]))
        if self.kind in PAIRWISE:  # the pair may be in two groups
            return Fraction(0), Fraction(1)
        group = levels[0].chips
        return Fraction(group - 1, group), Fraction(1, group)

    @property
    def hops(self) -> int:
        """Sequential hops over all passes and networks that carry bytes [1]."""
        passes, levels = RING_PASSES.get(self.kind, 1), self.route.levels
        carrying = zip(levels, self._shares, strict=True)
        return passes * sum(self._hops(level) for level, share in carrying if share)

    @property
    def is_ring_alone(self) -> bool:
        """True if the network adds up in its switch, so that the ring's time is no bound."""
        return self.reduces and self.kind == ALL_REDUCE

    @property
    def switched_share(self) -> Fraction | None:
        """Bytes per payload byte in the switch, min(ring, (N+1)/N) [1]; None: no addition."""
        is_joined_outside = any(level.chips > 1 for level in self.route.levels[1:])
        if not self.is_ring_alone or is_joined_outside:
            return None
        return in_switch_share(self._shares[0], self.chips)

    @property
    def switch_share(self) -> Fraction | None:
        """Bytes per payload byte that no switch goes below [1]; None where it adds up nothing.

        A chip sends its summand or, where it adds, the sum.
        """
        return None if self.switched_share is None else Fraction(1)

    @property
    def memory_share(self) -> Fraction:
        """Bytes of main memory per payload byte, at least [1]."""
        if self.chips == 1:
            return Fraction(0)
        if self.kind == ALL_REDUCE:
            return Fraction(2)
        if self.kind == "all-to-all":
            return Fraction(2 * (self.chips - 1), self.chips)
        return Fraction(1)

    @property
    def bus_factor(self) -> Fraction:
        """Bus bandwidth / algorithm bandwidth, as nccl-tests prints them [1]."""
        n = self.chips
        if self.kind in (*WHOLE, *PAIRWISE):
            return Fraction(1)
        return Fraction(RING_PASSES.get(self.kind, 1) * (n - 1), n)

    def network_s(self, payload: int) -> Fraction:
        """Time on the slowest level [s]."""
        return max(level.time_s for level in self.levels(payload))

    def memory_s(self, payload: int) -> Fraction:
        """Main memory's time [s]."""
        return self.memory_share * payload / self.memory_per_s

    def in_switch_s(self, payload: int) -> Fraction | None:
        """Time where the switch adds up: min(ring, (N+1)/N V) / rate [s]; None elsewhere."""
        if self.switched_share is None:
            return None
        _, _, rate, latency = self.levels(payload)[0]
        return max(latency, self.switched_share * payload / rate)

    def exact_payload(self) -> Fraction:
        """Real payload whose bytes take as long as the hops [byte]; 0 without hops."""
        level = max(self.levels(LARGE_PAYLOAD), key=lambda level: level.time_s)
        share = level.sent_bytes / LARGE_PAYLOAD
        return level.latency_s * level.bytes_per_s / share if share else Fraction(0)

    def bandwidth_bound_from(self) -> int:
        """Smallest payload whose bytes take as long as the hops [byte]; 0 without hops."""
        return math.ceil(self.exact_payload())


def payload_bytes(text: str) -> int:
    """Payload [byte]: 64M and 64MiB are binary, as 8k is 8,192, 64MB decimal.

    Raises:
        RooflinesError: It is no whole number of bytes.
    """
    if match := BINARY_SUFFIX.fullmatch(text.strip()):
        amount = Fraction(match[1]) * 1024 ** (1 + "KMGT".index(match[2].upper()))
    else:
        try:
            amount = Fraction(quantity(text, "bytes"))
        except RooflinesError:
            problem = f"is {quote(text)}"
            raise RooflinesError("", problem, "write a number, or 64M, 64MB, 64MiB") from None
    if amount.denominator != 1 or amount < 1:
        raise RooflinesError("", f"is {quote(text)}, no whole number of bytes", "write a whole one")
    return int(amount)


def find_collective(name: str) -> str | None:
    """Collective by name or synonym, in any case; None: there is none."""
    text = name.strip().lower()
    return text if text in COLLECTIVE_MEANINGS else COLLECTIVE_SYNONYMS.get(text)


def placed_collective(
    chip: Chip, name: str, kind: str, shards: int | str, network: Sequence[str] | None = None
) -> PlacedCollective:
    """A collective between chips.

    Args:
        chip: The chip.
        name: Its id, for messages.
        kind: The collective.
        shards: Chips, or `4x4` along the axes of a torus [1].
        network: Interconnects, inner first; None: the chip's first that joins the chips.

    Raises:
        RooflinesError: The interconnects do not join the chips.
    """
    axes = parse_axes(shards)
    if math.prod(axes) == 1:
        raise RooflinesError("chips", f"are missing: {kind} needs several", "write --shards 8")
    names = [*(network or default_route(chip, math.prod(axes)))]
    _, links, missing = interconnects(chip, names)
    axes = _fastest(links, axes, kind)
    reason = missing or missing_route_reason(names, links, axes)
    if reason:
        fix = "use fewer chips, or another network: --network nvlink,infiniband"
        raise RooflinesError("network", f"of {name}: {reason}", fix)
    route = Route(links, axes)
    rates = chip.chip_rates("matrix", "hbm", chip.efficiency)
    return PlacedCollective(
        kind,
        tuple(names),
        route,
        chip.networks[names[0]].reduces,
        rates.efficiency["network"],
        rates.level.bytes_per_s * rates.efficiency["memory"],
    )


def _fastest(links: tuple[Link, ...], axes: tuple[int, ...], kind: str) -> tuple[int, ...]:
    """Torus axes that a number of chips takes."""
    if not links or links[0].topology != TORUS:
        return axes
    return resolve_axes(links, axes, kind if kind in RING_PASSES else "all-gather")
