"""Interconnects: what they join, how many bytes are sent, and how many hops follow."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from oracle.quantities import exact, whole


@dataclass(frozen=True)
class Link:
    """One interconnect of a chip."""

    name: str
    rate: Fraction
    links: int
    topology: str
    domain: int | None
    ring_multiple: int | None
    hop_s: Fraction
    typical_s: Fraction
    published: bool = True

    def ring(self, chips):
        """Return whether an axis of N chips is closed."""
        return self.ring_multiple is not None and chips % self.ring_multiple == 0 and chips > 2

    def links_used(self, axes):
        """Return over how many links a chip sends at once."""
        if self.topology == "switch":
            return self.links
        if self.topology == "mesh":
            return min(math.prod(axes) - 1, self.links) or 1
        return sum(2 if self.ring(chips) else 1 for chips in axes)

    def bytes_per_s(self, axes):
        """Return what one chip sends per second in a collective."""
        return self.rate * self.links_used(axes)

    def hops(self, axes):
        """Return how many hops follow one another in one round."""
        if self.topology == "torus":
            return sum(n // 2 if self.ring(n) else n - 1 for n in axes)
        return 1 if math.prod(axes) > 1 else 0

    def scattered(self, axes):
        """Return what a chip sends in an all-to-all, per byte of its own share."""
        chips = math.prod(axes)
        if self.topology != "torus":
            return Fraction(chips - 1, chips)
        loads = []  # of the busiest link of each axis, which shares take one after another
        for n in axes:
            if self.ring(n):
                loads.append(Fraction(sum(min(far, n - far) for far in range(n)), 2 * n))
            else:
                loads.append(Fraction((n // 2) * (n - n // 2), n))
        return max(loads) * sum(2 if self.ring(n) else 1 for n in axes)


def tiers(links, axes, stride=1):
    """Return the levels of a network, inner first, with what each of them joins.

    Chips that are further apart are fewer inside: from one to the next it is `stride` chips.
    """
    if len(links) == 1:
        return [(links[0], axes)]
    chips = math.prod(axes)
    inside = chips if links[0].domain is None else largest_group(chips, links[0].domain // stride)
    return [(links[0], (inside,)), (links[1], (chips // inside,))]


def sent_per_byte(links, axes, kind, stride=1):
    """Return what a chip sends on each level per byte of a payload, in a pass of a collective."""
    levels = tiers(links, axes, stride)
    counts = [math.prod(axes) for _, axes in levels]
    if kind == "all-to-all":
        amounts = [link.scattered(joined) for link, joined in levels]
        return amounts if len(levels) == 1 else [amounts[0] / counts[1], amounts[1]]
    shares = [Fraction(1), *(Fraction(1, counts[0]) for _ in levels[1:])]
    return [share * Fraction(n - 1, n) for share, n in zip(shares, counts, strict=True)]


def why_not_joined(links, axes):
    """Return why links do not join chips in this form; None if they do."""
    chips = math.prod(axes)
    if chips == 1:
        return None
    if not links:
        return "network"
    inner = links[0]
    if len(links) > 1 and inner.topology == "torus":
        return "inner torus"
    if len(axes) > 1 and (
        len(links) > 1 or inner.topology != "torus" or 2 * len(axes) > inner.links
    ):
        return "axes"
    if len(links) == 1:
        return "domain" if inner.domain is not None and max(axes) > inner.domain else None
    return why_not_grouped(inner, links[1], chips)


def fastest_axes(links, chips):
    """Return the axes along which chips are, of one number of them.

    On a torus those of the most links, two of which are for an axis, then of the fewest hops; one
    axis where none joins them.
    """
    if len(links) != 1 or links[0].topology != "torus":
        return (chips,)
    (link,) = links
    forms = axes_of(chips, max(link.links // 2, 1))
    joined = [form for form in forms if link.domain is None or max(form) <= link.domain]
    return max(joined, key=lambda form: (link.links_used(form), -link.hops(form)), default=(chips,))


def why_not_grouped(inner, outer, chips):
    """Return why two levels do not join chips; None if they do."""
    if inner.domain is None or chips <= inner.domain:
        return None
    joined = chips if outer.topology == "switch" else chips // inner.domain
    if not inner.published or (outer.domain is not None and joined > outer.domain):
        return "domain"
    return "groups" if largest_group(chips, inner.domain) == 1 else None


def largest_group(chips, most):
    """Return the largest divisor of a chip count within a domain, at least 1."""
    return max(n for n in range(1, max(min(most, chips), 1) + 1) if chips % n == 0)


def in_groups(links, chips):
    """Return links whose inner one joins the groups into which a job of training divides."""
    if len(links) < 2 or links[0].topology == "torus" or not links[0].published:
        return links
    inner = links[0]
    if inner.domain is None or chips <= inner.domain or largest_group(chips, inner.domain) == 1:
        return links
    return (replace(inner, domain=largest_group(chips, inner.domain)), *links[1:])


def axes_of(chips, axes):
    """Return every product of at most so many axes that has as many chips."""
    found = [(chips,)]
    for first in range(2, chips):
        if axes > 1 and chips % first == 0:
            found += [(first, *others) for others in axes_of(chips // first, axes - 1)]
    return found


def link_of(name, entry):
    """Return an interconnect of the catalogue."""
    domain = most_joined(entry)
    hop = exact(entry.get("hop_latency_s", 0))
    ring = entry.get("ring_multiple")
    return Link(
        name=name,
        rate=exact(entry["bytes_per_s"]),
        links=whole(entry.get("links", 1)),
        topology=entry["topology"],
        domain=2 if domain == "unknown" else None if domain == "unlimited" else whole(domain),
        ring_multiple=None if ring is None else whole(ring),
        hop_s=hop,
        typical_s=exact(entry.get("typical_hop_latency_s", hop)),
        published=domain != "unknown",
    )


def most_joined(network):
    """Return how many chips a network joins at most: a number, unlimited, or unknown."""
    if network.get("domain") is not None:
        return network["domain"] if network["domain"] == "unlimited" else whole(network["domain"])
    return whole(network.get("links", 1)) + 1 if network["topology"] == "mesh" else "unknown"


def largest_domain(links):
    """Return the most chips along one axis, None without a limit, and whether it is published.

    Inside another network a torus joins none: one chip.
    """
    inner, *others = links
    if others and inner.topology == "torus":
        return 1, True
    if not others or inner.domain is None or not inner.published:
        return inner.domain, inner.published
    outer = others[0]
    if outer.domain is None:
        return None, True
    groups = outer.domain // inner.domain if outer.topology == "switch" else outer.domain
    return inner.domain * max(groups, 1), outer.published


def families(links):
    """Return families of numbers of chips, counted from 1, in which links have one rate.

    Of two levels: whole groups.
    """
    if len(links) > 1 and links[0].domain is not None:
        group = links[0].domain
        return [lambda k: k * group]
    ring = links[0].ring_multiple if links[0].topology == "torus" else None
    if ring is None or ring == 1:
        return [lambda k: k + 1]
    return [lambda k: k * ring, lambda k: k + (k - 1) // (ring - 1)]
