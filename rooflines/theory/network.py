"""Collectives over interconnects: bytes sent by each chip, link rates, hops.

A route joins N chips on one level, along one or several axes in a torus, or on two levels: an inner
interconnect joins chips to groups, an outer one joins the groups.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PAIR = 2
"""Chips in the smallest group: never a ring, and joined by every interconnect [1]."""

ALL_TO_ALL = "all-to-all"

TORUS = "torus"

LEVEL_SEPARATOR = "+"
"""Separator between the names of inner and outer network, in tables."""

RING_PASSES = {"all-gather": 1, "reduce-scatter": 1, "all-reduce": 2, ALL_TO_ALL: 1}
"""Passes around the ring by collective: an all-reduce is a reduce-scatter and an all-gather."""


@dataclass(frozen=True)
class Link:
    """An interconnect, seen from one chip.

    Attributes:
        bytes_per_s: Bandwidth per link, one direction [byte/s].
        topology: `switch` (every link reaches every chip), `mesh` (a link to each other chip) or
            `torus` (every axis a line or a ring).
        links: Links per chip [1].
        domain: Maximum of chips joined, on a torus along one axis; None: unlimited [1].
        ring_multiple: On a torus, an axis closes into a ring if its number of chips is a multiple
            of this; None: never [1].
        hop_latency_s: Minimum time per hop [s].
        domain_known: Whether the domain is published; if not, `domain` is a pair.
        typical_hop_latency_s: Typical time per hop, for estimates; None: the minimum [s].
        pod: On a torus, chips of the largest slice; None: all axes as long as they can be [1].
    """

    bytes_per_s: Fraction
    topology: str
    links: int = 1
    domain: int | None = None
    ring_multiple: int | None = None
    hop_latency_s: Fraction = Fraction(0)
    domain_known: bool = True
    typical_hop_latency_s: Fraction | None = None
    pod: int | None = None

    @property
    def axes(self) -> int:
        """Axes: links / 2 on a torus, 1 in other topologies [1]."""
        return max(self.links // 2, 1) if self.topology == TORUS else 1

    def is_ring(self, chips: int) -> bool:
        """Tell whether an axis with this many chips closes into a ring."""
        multiple = self.ring_multiple if self.topology == TORUS else None
        return multiple is not None and chips > PAIR and chips % multiple == 0


@dataclass(frozen=True)
class NetworkLevel:
    """Chips joined by one interconnect.

    Attributes:
        link: The interconnect.
        axes: Chips along each axis; several only on a torus [1].
    """

    link: Link
    axes: tuple[int, ...]

    @property
    def chips(self) -> int:
        """Chips joined: the product over axes [1]."""
        return math.prod(self.axes)

    @property
    def links_used(self) -> int:
        """Links on which one chip sends at once in a collective [1].

        Returns:
            All links on a switch; N-1 in a mesh; on a torus 2 along every ring and 1 along every
            line.
        """
        if self.link.topology == "switch":
            return self.link.links
        if self.link.topology == "mesh":
            return min(self.link.links, max(self.chips - 1, 1))
        return sum(2 if self.link.is_ring(chips) else 1 for chips in self.axes)

    @property
    def bytes_per_s(self) -> Fraction:
        """Bandwidth out of one chip: link bandwidth * links used at once [byte/s]."""
        return self.link.bytes_per_s * self.links_used

    def bytes_per_payload_byte(self, collective: str) -> Fraction:
        """Bytes sent by each chip per payload byte [1]; 0 for one chip.

        Args:
            collective: A key of `RING_PASSES`.

        Returns:
            (N-1)/N for each pass. The payload in an all-to-all is one chip's shard; on a torus
            chips forward shards, so that the busiest link carries floor(n^2/4)/(2n) shards on a
            ring with n chips and floor(n^2/4)/n on a line; on several axes, which a shard takes one
            after another, the busiest axis counts. The result is that times the links used.

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
        """Minimum sequential hops in one pass [1]; 0 for one chip.

        Returns:
            1 on a switch or a mesh; on a torus the sum over axes: floor(N/2) around a ring, N-1
            along a line.
        """
        if self.link.topology != TORUS:
            return min(self.chips - 1, 1)
        return sum(n // 2 if self.link.is_ring(n) else n - 1 for n in self.axes)


@dataclass(frozen=True)
class Route:
    """Interconnects over which N chips communicate.

    Attributes:
        links: One interconnect, or two: inner, outer.
        axes: Chips along each axis; their product is N [1].
    """

    links: tuple[Link, ...]
    axes: tuple[int, ...]

    def __hash__(self) -> int:
        """Hash of the fields, computed once."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.links, self.axes))

    @cached_property
    def levels(self) -> tuple[NetworkLevel, ...]:
        """Levels, inner first: groups within the inner domain, then the groups joined."""
        inner, *outer = self.links
        if not outer:
            return (NetworkLevel(inner, self.axes),)
        chips = math.prod(self.axes)
        group = group_size(chips, inner.domain)
        return NetworkLevel(inner, (group,)), NetworkLevel(outer[0], (chips // group,))

    def bytes_per_payload_byte(self, collective: str) -> tuple[Fraction, ...]:
        """Bytes sent by each chip over every level, per payload byte [1].

        On two levels a reduction runs inside, then between the groups with 1/d of the payload for d
        chips in a group, then inside again; a gather runs in reverse. In an all-to-all with n
        groups, 1/n of a chip's shard stays in the group: only this is sent inside.
        """
        amounts = [level.bytes_per_payload_byte(collective) for level in self.levels]
        if len(amounts) == 1:
            return tuple(amounts)
        (inner, outer), (group, groups) = amounts, (level.chips for level in self.levels)
        if collective == ALL_TO_ALL:
            return inner / groups, outer
        return inner, outer / group

    def dispatch_bytes(self, p_rank_hit: Callable[[int], Fraction]) -> tuple[Fraction, ...]:
        """Dispatch bytes over every level per payload byte: one copy per chip that needs it [1].

        On two levels a byte goes once to each group, and is forwarded inside.

        Args:
            p_rank_hit: Probability that a token needs one part, as a function of the number of
                parts.
        """
        parts, amounts = math.prod(self.axes), []
        for level in self.levels:
            amounts.append(level.bytes_per_payload_byte(ALL_TO_ALL) * parts * p_rank_hit(parts))
            parts //= level.chips
        return tuple(amounts)

    def latencies_s(self, collective: str, *, typical: bool = False) -> tuple[Fraction, ...]:
        """Latency on every level: passes * hops * hop latency [s].

        Args:
            collective: A key of `RING_PASSES`.
            typical: Whether hops take their typical time instead of the minimum.
        """
        times = []
        for level in self.levels:
            hop = level.link.hop_latency_s
            if typical and level.link.typical_hop_latency_s is not None:
                hop = level.link.typical_hop_latency_s
            times.append(RING_PASSES[collective] * level.hops * hop)
        return tuple(times)


def group_size(chips: int, domain: int | None) -> int:
    """Chips per group on an inner network: all within its domain, else the largest divisor [1].

    Args:
        chips: All chips [1].
        domain: Maximum of chips that the network joins [1]; None: unlimited.
    """
    if domain is None or chips <= domain:
        return chips
    return next(size for size in range(domain, 0, -1) if chips % size == 0)


def strided_route(links: tuple[Link, ...], chips: int, stride: int) -> Route:
    """Route between chips that are as far apart in the layout as others lie between them.

    The inner of two networks joins a divisor of them, at most domain // stride.

    Args:
        links: The interconnects, inner first.
        chips: Chips that the route joins [1].
        stride: Distance from one to the next in the layout [1].
    """
    inner, *outer = links
    if outer and inner.domain is not None:
        inner = replace(inner, domain=group_size(chips, max(inner.domain // stride, 1)))
    strided = inner, *outer
    return Route(strided, resolve_axes(strided, (chips,)))


def stage_sends(route: Route, interleave: int = 1) -> tuple[int, ...]:
    """Sends from a pipeline stage to the next over every level, on the way through all [1].

    With two networks, neighbours within an inner domain use the inner one.

    Args:
        route: Between the stages, see `strided_route`.
        interleave: Chunks of layers per stage [1].
    """
    _, *outer = route.levels
    all_sends = interleave * math.prod(route.axes) - 1
    outer_sends = sum(interleave * level.chips - 1 for level in outer if level.chips > 1)
    return (all_sends - outer_sends, outer_sends)[: 1 + len(outer)]


def max_domain(links: tuple[Link, ...]) -> tuple[int | None, bool]:
    """Maximum of chips that interconnects join, and whether it is published.

    Returns:
        Chips, on one level along one axis; 1 for a torus as the inner network, which no split may
        use; None: unlimited [1].
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
"""Chips tried along an axis on a torus without a limit [1]."""


@cache
def torus_axes(link: Link, chips: int) -> tuple[tuple[int, ...], ...]:
    """Layouts along torus axes, two links per axis; shorter axes first.

    Args:
        link: The torus.
        chips: The number of chips [1].
    """
    max_axis = min(MAX_AXIS if link.domain is None else link.domain, chips)
    divisors = [divisor for divisor in range(PAIR, max_axis + 1) if chips % divisor == 0]
    fits_one_axis = chips <= max_axis or link.domain is None
    layouts: list[tuple[int, ...]] = [(chips,)] if fits_one_axis else []
    for axes in range(PAIR, link.axes + 1):
        products = combinations_with_replacement(divisors, axes)
        layouts += [lengths for lengths in products if math.prod(lengths) == chips]
    return tuple(layouts)


@cache
def fastest_axes(link: Link, chips: int, collective: str = "all-gather") -> tuple[int, ...] | None:
    """Torus axes with the fastest collective: minimum time per byte, then fewest hops.

    Args:
        link: The torus.
        chips: The number of chips [1].
        collective: A key of `RING_PASSES`.

    Returns:
        Chips along each axis [1]; None: no layout has this many chips.
    """

    def slowness(axes: tuple[int, ...]) -> tuple[Fraction, int]:
        level = NetworkLevel(link, axes)
        return level.bytes_per_payload_byte(collective) / level.links_used, level.hops

    return min(torus_axes(link, chips), key=slowness, default=None)


def resolve_axes(
    links: tuple[Link, ...], axes: tuple[int, ...], collective: str = "all-gather"
) -> tuple[int, ...]:
    """Choose axes: those typed; for a plain number on a torus, the fastest.

    Args:
        links: The interconnects, inner first.
        axes: Chips along each axis as typed [1].
        collective: The collective to be fastest in, a key of `RING_PASSES`.
    """
    if len(links) != 1 or links[0].topology != TORUS or len(axes) > 1:
        return axes
    return fastest_axes(links[0], axes[0], collective) or axes


AXES_PATTERN = re.compile(r"[1-9][0-9]*(x[1-9][0-9]*)*")


@cache
def parse_axes(form: int | str) -> tuple[int, ...]:
    """Parse a number of chips, or a product such as `4x4`, into chips along each axis."""
    if not AXES_PATTERN.fullmatch(str(form)):
        raise ValueError(form)
    return tuple(int(chips) for chips in str(form).split("x"))


def axes_text(axes: tuple[int, ...]) -> str:
    """Text for chips along axes: `16`, or `4x4`."""
    return "x".join(map(str, axes))
