"""How times depend on the number of chips N: N times a time is a line in N, piece by piece.

It is constant for math, alpha + beta N for memory, gamma (N - 1) for a collective over links that
do not change with N. Where the topology changes the rate it is a line on each piece: a mesh adds a
link with every chip, and a torus has twice the rate where N closes it into a ring. The lines go
through two points of the formulas that fill the tables. Only a latency, whose hops grow with N, is
quadratic: it is kept apart, as the latency per hop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.model.resources import RESOURCES, Resource
from rooflines.sweep.sweep import Sweep, Variant

if TYPE_CHECKING:
    from rooflines.model.target import Link
    from rooflines.sweep.space import ChipVariant

__all__ = [
    "ENDLESS",
    "ONE",
    "OPEN",
    "PAIR",
    "RING",
    "LineColumns",
    "domain_of",
    "latency_per_hop",
    "line_columns",
    "on_chips",
    "pieces",
    "ring_multiple",
    "time_line",
]

ENDLESS = 2**53
"""A split that stays compute-bound on this number of chips has no largest number of chips [1]."""

PAIR = 2
"""Two chips are never a ring [1]."""

Line = Mapping[tuple[str, ...], tuple[Fraction, Fraction]]
"""For every product of extents: constant and slope in N."""


@dataclass(frozen=True)
class Piece:
    """Numbers of chips over which N times every time is a line, latency aside.

    Attributes:
        name: For columns.
        samples: Two of the numbers; the same twice if there is only one [1].
    """

    name: str
    samples: tuple[int, int]


ONE, OPEN, RING = "one", "open", "ring"


def pieces(sweep: Sweep, chip_variant: ChipVariant) -> list[Piece]:
    """One chip, several chips and, if the interconnect is a torus that closes, rings."""
    multiple = ring_multiple(sweep, chip_variant)
    if not multiple:
        return [Piece(ONE, (1, 1)), Piece(OPEN, (2, 3))]
    return [
        Piece(ONE, (1, 1)),
        Piece(OPEN, (2, multiple + 1)),
        Piece(RING, (3 * multiple, 4 * multiple)),
    ]


def link_of(sweep: Sweep, chip_variant: ChipVariant) -> Link:
    """The interconnect of a chip that has one."""
    chip_rows = chip_variant[0]
    return sweep.chips[chip_rows.chip].networks[str(chip_rows.network)].exact


def domain_of(sweep: Sweep, chip_variant: ChipVariant) -> int | None:
    """The most chips that the interconnect joins [1]; None: no published limit."""
    return link_of(sweep, chip_variant).chips_joined


def ring_multiple(sweep: Sweep, chip_variant: ChipVariant) -> int | None:
    """The number whose multiples close a torus into rings [1]; None: it never closes."""
    link = link_of(sweep, chip_variant)
    return link.ring_multiple if link.topology == "torus" else None


def on_chips(chip_variant: ChipVariant, shards: int) -> ChipVariant:
    """The same variant on another number of chips."""
    chip_rows, variant = chip_variant
    return chip_rows, Variant(variant.dtypes, variant.sharding, shards)


def line(
    values: Callable[[int], Mapping[tuple[str, ...], Fraction]], samples: tuple[int, int]
) -> Line:
    """The line through N times a function's values at two N, for every product of extents."""
    first, second = samples
    low, high = values(first), values(second)
    lines = {}
    for dims in low:  # all numbers of a piece have the same products
        at_low, at_high = low[dims] * first, high[dims] * second
        slope = Fraction(at_high - at_low, second - first) if second > first else Fraction(0)
        lines[dims] = (at_low - slope * first, slope)
    return lines


def time_line(sweep: Sweep, chip_variant: ChipVariant, resource: Resource, piece: Piece) -> Line:
    """N times the time that a resource's work takes, for every product of extents [s]."""

    def values(shards: int) -> Mapping[tuple[str, ...], Fraction]:
        chip_rows, variant = on_chips(chip_variant, shards)
        rate = resource.rate(sweep.target(chip_rows, variant))
        if rate is None:
            return {}
        terms = sweep.case(variant).costs[resource.work]
        return {dims: coefficient / rate.per_s for dims, coefficient in terms.items()}

    return line(values, piece.samples)


def work_line(sweep: Sweep, chip_variant: ChipVariant, resource: Resource) -> Line:
    """N times a resource's work, for every product of extents [FLOP or byte]."""
    return line(
        lambda shards: sweep.case(on_chips(chip_variant, shards)[1]).costs[resource.work], (2, 3)
    )


def latency_per_hop(sweep: Sweep, chip_variant: ChipVariant, resource: Resource) -> Fraction:
    """The latency of a resource on two chips; on N chips it is N - 1 times that [s]."""
    rate = resource.rate(sweep.target(*on_chips(chip_variant, 2)))
    return rate.latency_s if rate else Fraction(0)


class LineColumns:
    """Lines as columns of coefficients, one value per variant.

    Attributes:
        values: The columns.
        terms: By `<line>0` (constant) and `<line>1` (slope): the column of every product.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.values: dict[str, list[float]] = {}
        self.terms: dict[str, dict[tuple[str, ...], str]] = {}

    def put_line(self, name: str, index: int, lines: Line) -> None:
        """Set the line of a variant."""
        for dims, coefficients in lines.items():
            for power, coefficient in enumerate(coefficients):
                column = f"{name}{power}:{','.join(dims)}"
                self.terms.setdefault(f"{name}{power}", {})[dims] = column
                self.put(column, index, float(coefficient))

    def put(self, column: str, index: int, value: float) -> None:
        """Set the number of a variant."""
        self.values.setdefault(column, [0.0] * self.count)[index] = value

    @property
    def rings(self) -> bool:
        """Whether the interconnect of any chip closes into rings."""
        return any(self.values["#ring"])


def line_columns(sweep: Sweep, variants: Sequence[ChipVariant]) -> LineColumns:
    """All lines and limits of variants.

    Returns:
        Lines of times `#<resource>_<piece>` and of works `#<work>_`; numbers `#latency_<resource>`
        per hop [s], `#ring` (0: none) and `#domain` [1].
    """
    columns = LineColumns(len(variants))
    for index, each in enumerate(variants):
        for resource in RESOURCES:
            for piece in pieces(sweep, each):
                times = time_line(sweep, each, resource, piece)
                columns.put_line(f"#{resource.name}_{piece.name}", index, times)
            columns.put_line(f"#{resource.work}_", index, work_line(sweep, each, resource))
            latency = latency_per_hop(sweep, each, resource)
            if latency:
                columns.put(f"#latency_{resource.name}", index, float(latency))
        columns.put("#ring", index, float(ring_multiple(sweep, each) or 0))
        columns.put("#domain", index, float(domain_of(sweep, each) or ENDLESS))
    return columns
