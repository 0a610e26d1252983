"""How times depend on the number of chips N: N t is a polynomial in N, segment by segment.

It is constant for math, alpha + beta N for memory, gamma (N - 1) for a collective over links that
do not change with N, delta N for hops on a switch and quadratic for hops along a line or a ring.
Where the topology changes with N there are segments: a torus closes into rings at multiples of a
number, and on two levels whole groups are added. A polynomial goes through three points of the
formulas that fill the tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rooflines.critical.solving import rate_at
from rooflines.model.columns import OF_LEVELS
from rooflines.model.network import PAIR, most_chips
from rooflines.model.resources import RESOURCES, Rate, Resource, network_rate, network_rates
from rooflines.sweep.operations import Variant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.model.network import Link
    from rooflines.model.target import Target
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep

ENDLESS = 2**53
"""A split that stays compute-bound on this number of chips has no largest number of chips [1]."""

SINGLE, LINE, RING, ODD_RING = "single", "line", "ring", "odd_ring"
"""One chip; several; multiples of a step, on which the topology is another; odd ones of these, of
which the hops around a ring are another polynomial. The later one has a number that is in two."""

Polynomial = tuple[Fraction, ...]
"""Coefficients of N^0, N^1 and N^2."""

Terms = dict[tuple[str, ...], Polynomial]
"""For every product of extents its coefficient, a polynomial in N."""


class Segment(NamedTuple):
    """Numbers of chips on which every N t is one polynomial.

    Attributes:
        name: `SINGLE`, `LINE`, `RING` or `ODD_RING`.
        least, most: The first of them [1], and the last or more.
        step: From one to the next [1].
        samples: Numbers that determine the polynomials: three, or all.
    """

    name: str
    least: int
    most: int
    step: int
    samples: tuple[int, ...]

    @property
    def offset(self) -> int:
        """The remainder that they leave when divided by `step` [1]."""
        return self.least % self.step


@dataclass(frozen=True)
class Numbers:
    """The numbers of chips that interconnects join along one axis.

    Attributes:
        most: The most chips; `ENDLESS` without a limit [1].
        published: Whether that limit is.
        near: The most chips of a line, or of a group [1].
        step: Rings, or whole groups, have multiples of it; 0: there are none [1].
        group: Chips that the inner of two networks joins; 0: there is one network [1].
    """

    most: int
    published: bool
    near: int
    step: int
    group: int

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Their segments."""
        step, group = self.step, self.group
        samples: tuple[int, ...] = (2, 3, 4)
        if group:
            samples = tuple(range(2, min(group, 4) + 1))
        elif step:
            samples = (2, step + 1, 2 * step + 1) if step > 1 else (2,)
        lines = (
            Segment(SINGLE, 1, 1, 1, (1,)),
            Segment(LINE, 2, self.near, 1, samples),
        )
        if group:
            far = tuple(group * groups for groups in (2, 3, 4))
            return (*lines, Segment(RING, 2 * group, self.most, group, far))
        least = step * (PAIR // step + 1) if step else 0  # a ring has three chips or more
        if step % 2 == 0:
            far = tuple(step * k for k in (4, 6, 8))
            return (*lines, Segment(RING, least, self.most, step, far)) if step else lines
        rings = (
            Segment(name, first, self.most, 2 * step, tuple(first + 2 * step * k for k in range(3)))
            for first in (least, least + step)
            for name in (ODD_RING if first % 2 else RING,)
        )
        return (*lines, *sorted(rings, key=lambda ring: ring.name == ODD_RING))


def numbers_of(links: tuple[Link, ...]) -> Numbers:
    """The numbers of chips that a route over these interconnects may have along one axis."""
    most, published = most_chips(links)
    inner, most = links[0], ENDLESS if most is None else most
    if len(links) > 1 and inner.domain is not None:
        return Numbers(most, published, min(inner.domain, most), inner.domain, inner.domain)
    ring = inner.ring_multiple or 0 if inner.topology == "torus" else 0
    return Numbers(most, published, min(most, PAIR) if ring == 1 else most, ring, 0)


def on_chips(chip_variant: ChipVariant, shards: int) -> ChipVariant:
    """The same variant on another number of chips."""
    chip_rows, variant = chip_variant
    return chip_rows, Variant(variant.dtypes, variant.sharding, (shards,))


@dataclass(frozen=True)
class Constraint:
    """One of the times whose maximum is a resource's time, on a segment.

    Attributes:
        resource: The resource.
        work: The column of the work that takes the time; empty for the latency of hops.
        terms: N times the time [s].
    """

    resource: Resource
    work: str
    terms: Terms


def parts(resource: Resource, target: Target, share: Fraction) -> list[tuple[str, Rate]]:
    """Works and rates; the largest of their times is the time of the resource."""
    if resource.rate is network_rate:
        rates = network_rates(target)
        works = OF_LEVELS if len(rates) > 1 else (resource.work,)
        return list(zip(works, rates, strict=False))
    rate = rate_at(resource, target, share)
    return [(resource.work, rate)] if rate else []


def constraints(
    sweep: Sweep, chip_variant: ChipVariant, share: Fraction, samples: Sequence[int]
) -> list[Constraint]:
    """N times every time on a segment, each as a polynomial in N through its samples."""
    workloads = [sweep.case(*on_chips(chip_variant, shards)) for shards in samples]
    targets = [sweep.target(*on_chips(chip_variant, shards)) for shards in samples]
    found = []
    for resource in RESOURCES:
        by_sample = [parts(resource, target, share) for target in targets]
        for index, (work, first) in enumerate(by_sample[0] if by_sample else []):
            rates = [each[index][1] for each in by_sample]
            found.append(
                Constraint(
                    resource,
                    work,
                    through(
                        samples,
                        [
                            {d: c / rate.per_s for d, c in workload.costs[work].items()}
                            for workload, rate in zip(workloads, rates, strict=True)
                        ],
                    ),
                )
            )
            if first.latency_s:
                hops: list[dict[tuple[str, ...], Fraction]] = [
                    {(): rate.latency_s} for rate in rates
                ]
                found.append(Constraint(resource, "", through(samples, hops)))
    return found


def through(samples: Sequence[int], values: Sequence[Mapping[tuple[str, ...], Fraction]]) -> Terms:
    """N times the values at some N, as polynomials in N: for every product of extents its own."""
    return {
        dims: interpolated([(n, n * value[dims]) for n, value in zip(samples, values, strict=True)])
        for dims in values[0]  # all numbers of a piece have the same products
    }


def interpolated(points: Sequence[tuple[int, Fraction]]) -> Polynomial:
    """The coefficients of the polynomial of least degree, at most 2, through points."""
    constant, slope, square = points[0][1], Fraction(0), Fraction(0)
    if len(points) > 1:
        slopes = [(b - a) / (n - m) for (m, a), (n, b) in pairwise(points)]
        if len(points) > 2:  # noqa: PLR2004, a parabola has three
            square = (slopes[1] - slopes[0]) / (points[2][0] - points[0][0])
        slope = slopes[0] - square * (points[0][0] + points[1][0])
        constant -= slope * points[0][0] + square * points[0][0] ** 2
    return constant, slope, square


def work_terms(
    sweep: Sweep, chip_variant: ChipVariant, resource: Resource, samples: Sequence[int]
) -> Terms:
    """N times a resource's work on a segment, as polynomials in N [FLOP or byte]."""
    variants = [on_chips(chip_variant, shards) for shards in samples]
    return through(samples, [sweep.case(*variant).costs[resource.work] for variant in variants])


class LineColumns:
    """Polynomials as columns of coefficients, one value per variant.

    Attributes:
        values: The columns.
        terms: By `<name>:<power>` the work that the coefficients belong to, and the column of every
            product of extents.
        constraints: By resource name and segment: the names of its constraints.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.values: dict[str, list[float]] = {}
        self.terms: dict[str, tuple[str, dict[tuple[str, ...], str]]] = {}
        self.constraints: dict[tuple[str, str], list[str]] = {}

    def put_terms(self, name: str, work: str, index: int, terms: Terms) -> None:
        """Set the polynomials of a variant; a coefficient that is always zero has no column."""
        for dims, polynomial in terms.items():
            for power, coefficient in enumerate(polynomial):
                if coefficient:
                    column = f"{name}:{power}:{','.join(dims)}"
                    self.terms.setdefault(f"{name}:{power}", (work, {}))[1][dims] = column
                    self.put(column, index, float(coefficient))

    def put(self, column: str, index: int, value: float) -> None:
        """Set the number of a variant."""
        self.values.setdefault(column, [0.0] * self.count)[index] = value


def line_columns(sweep: Sweep, variants: Sequence[ChipVariant], share: Fraction) -> LineColumns:
    """All polynomials and limits of variants.

    Returns:
        Polynomials of times `#<resource>_<segment>_<number>` and of works `#<work>_`; `#most` and
        `#group` as in `Numbers` [1]; `#least_<segment>`, `#most_<segment>`, 0 without it, and
        `#step_<segment>` [1]; `#unpublished`.
    """
    columns = LineColumns(len(variants))
    for index, each in enumerate(variants):
        numbers = numbers_of(sweep.links(each[0]))
        for segment in numbers.segments:
            count: dict[str, int] = {}
            for constraint in constraints(sweep, each, share, segment.samples):
                of = constraint.resource.name
                name = f"#{of}_{segment.name}_{count.get(of, 0)}"
                count[of] = count.get(of, 0) + 1
                columns.put_terms(name, constraint.work, index, constraint.terms)
                known = columns.constraints.setdefault((of, segment.name), [])
                if name not in known:
                    known.append(name)
            for field in ("least", "most", "step"):
                columns.put(f"#{field}_{segment.name}", index, float(getattr(segment, field)))
        for resource in RESOURCES:
            terms = work_terms(sweep, each, resource, segment.samples)
            columns.put_terms(f"#{resource.work}_", resource.work, index, terms)
        for name in ("most", "group"):
            columns.put(f"#{name}", index, float(getattr(numbers, name)))
        columns.put("#unpublished", index, float(not numbers.published))
    return columns
