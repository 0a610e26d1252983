"""Collectives over interconnects: bytes that each chip sends, link rates, hops.

A route joins N chips on one level, along one axis or several of a torus, or on two levels: an inner
interconnect joins groups of chips, an outer one joins the groups.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PAIR = 2
"""Chips of the smallest group: never a ring, and joined by every interconnect [1]."""

ALL_TO_ALL = "all-to-all"

TORUS = "torus"

LEVEL_SEPARATOR = "+"
"""What stands between the names of two networks, inner and outer, in tables."""

RING_PASSES = {"all-gather": 1, "reduce-scatter": 1, "all-reduce": 2, ALL_TO_ALL: 1}
"""Times that each collective goes around: an all-reduce is a reduce-scatter and an all-gather."""


@dataclass(frozen=True)
class Link:
    """An interconnect, as one chip sees it.

    Attributes:
        bytes_per_s: Bandwidth of one link, one way [byte/s].
        topology: `switch` (every link reaches every chip), `mesh` (a link to each other chip) or
            `torus` (every axis a line or a ring).
        links: Links of one chip [1].
        domain: The most chips that it joins, on a torus along one axis; None: unlimited [1].
        ring_multiple: On a torus, an axis closes into a ring where its number of chips is a
            multiple of this; None where it never does [1].
        hop_latency_s: Least time of one hop [s].
        domain_known: Whether the domain is published; if not, `domain` is a pair.
        typical_hop_latency_s: Usual time of one hop, for estimates; None: the least [s].
    """

    bytes_per_s: Fraction
    topology: str
    links: int = 1
    domain: int | None = None
    ring_multiple: int | None = None
    hop_latency_s: Fraction = Fraction(0)
    domain_known: bool = True
    typical_hop_latency_s: Fraction | None = None

    @property
    def axes(self) -> int:
        """Axes of a torus, two links of a chip each; 1 of another topology [1]."""
        return max(self.links // 2, 1) if self.topology == TORUS else 1

    def is_ring(self, chips: int) -> bool:
        """Whether an axis of this many chips is a ring."""
        multiple = self.ring_multiple if self.topology == TORUS else None
        return multiple is not None and chips > PAIR and chips % multiple == 0


@dataclass(frozen=True)
class NetworkLevel:
    """Chips that one interconnect joins.

    Attributes:
        link: The interconnect.
        axes: Chips along each axis; one axis unless it is a torus [1].
    """

    link: Link
    axes: tuple[int, ...]

    @property
    def chips(self) -> int:
        """Chips that it joins [1]."""
        return math.prod(self.axes)

    @property
    def links_used(self) -> int:
        """Links over which one chip sends at once in a collective [1].

        Returns:
            All of them on a switch; one to each other chip in a mesh; on a torus 2 along every axis
            that is a ring and 1 along every line.
        """
        if self.link.topology == "switch":
            return self.link.links
        if self.link.topology == "mesh":
            return min(self.link.links, max(self.chips - 1, 1))
        return sum(2 if self.link.is_ring(chips) else 1 for chips in self.axes)

    @property
    def bytes_per_s(self) -> Fraction:
        """Bytes/s out of one chip over the links that it uses at once [byte/s]."""
        return self.link.bytes_per_s * self.links_used

    def bytes_per_payload_byte(self, collective: str) -> Fraction:
        """Bytes that each chip sends per byte of the payload [1]; 0 for one chip.

        Args:
            collective: A key of `RING_PASSES`.

        Returns:
            (N-1)/N for each pass. The payload of an all-to-all is a chip's share; on a torus chips
            forward the shares of others, so that the busiest link carries floor(n^2/4)/(2n) of it
            on a ring of n chips and floor(n^2/4)/n on a line; of several axes, which a share takes
            one after another, the busiest counts. This counts that times the links used.

        Source: All About Rooflines, "Network communication rooflines", generalised from two chips
            to N; all-to-all: How to Scale Your Model, "Sharded Matrices".
        """
        n = self.chips
        if collective != ALL_TO_ALL or self.link.topology != TORUS:
            return Fraction(RING_PASSES[collective] * (n - 1), n)
        busiest = max(Fraction(n * n // 4, n * (1 + self.link.is_ring(n))) for n in self.axes)
        return busiest * self.links_used

    @property
    def hops(self) -> int:
        """The least sequential hops of one pass that the topology allows [1]; 0 for one chip.

        Returns:
            1 on a switch or a mesh; on a torus the sum over its axes of N/2, rounded down, around a
            ring and N-1 along a line.
        """
        if self.link.topology != TORUS:
            return min(self.chips - 1, 1)
        return sum(n // 2 if self.link.is_ring(n) else n - 1 for n in self.axes)


@dataclass(frozen=True)
class Route:
    """The interconnects over which N chips communicate.

    Attributes:
        links: One interconnect, or two: inner, outer.
        axes: Chips along each axis; their product is N [1].
    """

    links: tuple[Link, ...]
    axes: tuple[int, ...]

    def __hash__(self) -> int:
        """That of its fields, computed once."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.links, self.axes))

    @cached_property
    def levels(self) -> tuple[NetworkLevel, ...]:
        """The levels, inner first: as many chips as the inner one joins, then their groups."""
        inner, *outer = self.links
        if not outer:
            return (NetworkLevel(inner, self.axes),)
        chips = math.prod(self.axes)
        group = chips if inner.domain is None else min(chips, inner.domain)
        return NetworkLevel(inner, (group,)), NetworkLevel(outer[0], (chips // group,))

    def bytes_per_payload_byte(self, collective: str) -> tuple[Fraction, ...]:
        """Bytes that each chip sends over every level, per byte of the payload [1].

        On two levels a reduction runs inside, then between the groups with 1/d of the payload for d
        chips in a group, then inside again; a gather the other way round. In an all-to-all only
        what stays in the group, 1/n of a chip's share for n groups, is sent inside.
        """
        amounts = [level.bytes_per_payload_byte(collective) for level in self.levels]
        if len(amounts) == 1:
            return tuple(amounts)
        (inner, outer), (group, groups) = amounts, (level.chips for level in self.levels)
        if collective == ALL_TO_ALL:
            return inner / groups, outer
        return inner, outer / group

    def dispatch_bytes(self, p_rank_hit: Callable[[int], Fraction]) -> tuple[Fraction, ...]:
        """Bytes a chip sends over every level if a byte goes once to each chip that needs it.

        On two levels it goes once to each group, and is forwarded inside.

        Args:
            p_rank_hit: By number of parts: the probability that one of them needs a token.
        """
        parts, amounts = math.prod(self.axes), []
        for level in self.levels:
            amounts.append(level.bytes_per_payload_byte(ALL_TO_ALL) * parts * p_rank_hit(parts))
            parts //= level.chips
        return tuple(amounts)

    def latencies_s(self, collective: str, *, typical: bool = False) -> tuple[Fraction, ...]:
        """Time of the sequential hops of a collective on every level [s].

        Args:
            collective: A key of `RING_PASSES`.
            typical: Whether to take the usual time of a hop instead of the least.
        """
        times = []
        for level in self.levels:
            hop = level.link.hop_latency_s
            if typical and level.link.typical_hop_latency_s is not None:
                hop = level.link.typical_hop_latency_s
            times.append(RING_PASSES[collective] * level.hops * hop)
        return tuple(times)


def max_domain(links: tuple[Link, ...]) -> tuple[int | None, bool]:
    """The most chips that interconnects join, and whether that is published.

    Returns:
        On one level along one axis; 1 where a torus is the inner of two networks, which no split
        may use; None: as many as one likes [1].
    """
    inner, *outer = links
    if outer and inner.topology == TORUS:
        return 1, True
    if not outer or inner.domain is None or not inner.domain_known:
        return inner.domain, inner.domain_known
    (link,) = outer
    if link.domain is None:
        return None, True
    groups = link.domain // inner.domain if link.topology == "switch" else link.domain
    return inner.domain * max(groups, 1), link.domain_known


MAX_AXIS = 2**16
"""Chips along an axis that are tried where a torus has no limit [1]."""


@cache
def torus_axes(link: Link, chips: int) -> tuple[tuple[int, ...], ...]:
    """Every way to lay chips along axes of a torus, two links of a chip each; shorter axes first.

    Args:
        link: The torus.
        chips: Their number [1].
    """
    max_axis = min(MAX_AXIS if link.domain is None else link.domain, chips)
    divisors = [each for each in range(PAIR, max_axis + 1) if chips % each == 0]
    fits_one_axis = chips <= max_axis or link.domain is None
    layouts: list[tuple[int, ...]] = [(chips,)] if fits_one_axis else []
    for axes in range(PAIR, link.axes + 1):
        products = combinations_with_replacement(divisors, axes)
        layouts += [each for each in products if math.prod(each) == chips]
    return tuple(layouts)


@cache
def fastest_axes(link: Link, chips: int, collective: str = "all-gather") -> tuple[int, ...] | None:
    """The axes of a torus over which a collective is fastest: least time a byte, then fewest hops.

    Args:
        link: The torus.
        chips: Their number [1].
        collective: A key of `RING_PASSES`.

    Returns:
        Chips along each axis [1]; None: no product of axes has as many.
    """

    def slowness(axes: tuple[int, ...]) -> tuple[Fraction, int]:
        level = NetworkLevel(link, axes)
        return level.bytes_per_payload_byte(collective) / level.links_used, level.hops

    return min(torus_axes(link, chips), key=slowness, default=None)


def resolve_axes(
    links: tuple[Link, ...], axes: tuple[int, ...], collective: str = "all-gather"
) -> tuple[int, ...]:
    """The axes that chips take: those that are typed; of a plain number the fastest of a torus.

    Args:
        links: The interconnects, inner first.
        axes: Chips along each axis as typed [1].
        collective: What they are fastest in, a key of `RING_PASSES`.
    """
    if len(links) != 1 or links[0].topology != TORUS or len(axes) > 1:
        return axes
    return fastest_axes(links[0], axes[0], collective) or axes


AXES_PATTERN = re.compile(r"[1-9][0-9]*(x[1-9][0-9]*)*")


@cache
def parse_axes(form: int | str) -> tuple[int, ...]:
    """The chips along each axis that a number of chips, or a product such as `4x4`, stands for."""
    if not AXES_PATTERN.fullmatch(str(form)):
        raise ValueError(form)
    return tuple(int(chips) for chips in str(form).split("x"))


def axes_text(axes: tuple[int, ...]) -> str:
    """A number of chips as it is written: `16`, or `4x4`."""
    return "x".join(map(str, axes))
