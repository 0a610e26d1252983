"""Where an operation of three dimensions is compute-bound, over two of them, in closed form.

Every cost is linear in every single size. So at a size n of the first dimension, the time of the
math exceeds another time by a x y + b x + c y + d, over the sizes x and y of the two others. That
is zero on a hyperbola, (x + c / a) (y + b / a) = (b c - a d) / a^2. Only a can be positive, since
everything but the math counts against it: the operation is compute-bound to the upper right of the
hyperbola, and never if a is not positive.

Coefficients are whole numbers, so that they are exact; lines are Float64, rounded once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.critical.solving import WHOLE_PEAK, rate_at
from rooflines.fits.critical import COMPUTE
from rooflines.fits.quantities import whole_tiles
from rooflines.model.resources import MATH, OTHERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.fits.estimate import Estimate, Sum
    from rooflines.fits.quantities import Polynomial
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep

CLOSE = 1e-5
"""Heights that differ by a smaller share are one point of a border [1]."""

STRAIGHT = 1e-6
"""An arc is straight where it is as close to a limit as this share of it [1]."""

NOTHING = (Fraction(0), Fraction(0))
"""A line that is zero everywhere."""

Products = tuple[int, int, int, int]
"""Coefficients of x y, x, y and 1."""

ExactLine = tuple[Fraction, Fraction]
"""Slope and constant along an axis."""


def exact_threshold(math_line: ExactLine, lines: Sequence[ExactLine]) -> Fraction | None:
    """The real extent from which on t_math is at least every line; None: never."""
    reals = [overtakes(math_line, line) for line in lines]
    return None if None in reals else max(real for real in reals if real is not None)


def overtakes(math_line: ExactLine, line: ExactLine) -> Fraction | None:
    """The real extent from which on a_math n + b_math >= a n + b; None: never."""
    (a_math, b_math), (a, b) = math_line, line
    if a_math > a:
        return max((b - b_math) / (a_math - a), Fraction(0))
    return Fraction(0) if a_math == a and b <= b_math else None


def whole_size(real: Fraction | None) -> int | None:
    """The whole size of a real threshold [1]; None: none, or one that is too large."""
    if real is None:
        return None
    whole = max(math.ceil(real), 1)
    return whole if whole < LARGEST_COUNT else None


class Window(NamedTuple):
    """A part of the plane, by the sizes at its edges [1]."""

    left: float
    right: float
    bottom: float
    top: float


class Arc(NamedTuple):
    """A part of a border, from its upper left to its lower right end.

    Along it (x - x_limit) (y - y_limit) is constant. A straight one has no limits: it is horizontal
    or vertical.
    """

    x: float
    y: float
    x_end: float
    y_end: float
    x_limit: float | None = None
    y_limit: float | None = None


@dataclass(frozen=True)
class Hyperbola:
    """The line (x - x_limit) (y - y_limit) = bend, right of and above its limits.

    Without a bend it is a corner.
    """

    x_limit: float
    y_limit: float
    bend: float

    def height(self, x: float) -> float:
        """The y of the line at an x; infinite left of it."""
        if x <= self.x_limit:
            return math.inf
        return self.y_limit + self.bend / (x - self.x_limit)

    def crossings(self, other: Hyperbola) -> Iterator[float]:
        """The x at which two lines meet."""
        lead = self.y_limit - other.y_limit
        linear = self.bend - other.bend - lead * (self.x_limit + other.x_limit)
        rest = (
            lead * self.x_limit * other.x_limit
            - self.bend * other.x_limit
            + other.bend * self.x_limit
        )
        root = linear * linear - 4 * lead * rest
        if root < 0:
            return
        stable = -(linear + math.copysign(math.sqrt(root), linear)) / 2
        if lead:
            yield stable / lead
        if stable:
            yield rest / stable

    def reaches(self, y: float) -> float:
        """The x at which the line comes down to a y; infinite if it stays above."""
        return self.x_limit + self.bend / (y - self.y_limit) if y > self.y_limit else math.inf


@dataclass(frozen=True)
class Margin:
    """By how much the math's time exceeds another, times a positive number: n * slope + constant.

    Attributes:
        slope, constant: Of the size of the first dimension.
        counted: What is added to the slope by the size rounded up to whole spans.
    """

    slope: Products
    constant: Products
    counted: Products = (0, 0, 0, 0)


@dataclass(frozen=True)
class Area:
    """Where an operation is compute-bound.

    Attributes:
        conditions: Of each at least one margin is not negative.
        span: Sizes of the first dimension that are computed together [1].
    """

    conditions: tuple[tuple[Margin, ...], ...]
    span: int = 1

    def threshold(self, x: int, y: int) -> Fraction | None:
        """The size of the first dimension from which on all conditions hold [1]; None: never.

        Of conditions with one margin each, none of which is counted in whole spans.
        """
        at = (x * y, x, y, 1)
        lines = [
            (Fraction(-_dot(margin.slope, at)), Fraction(-_dot(margin.constant, at)))
            for (margin,) in self.conditions
        ]
        return exact_threshold(NOTHING, lines)

    def lines(self, size: Fraction) -> list[list[Hyperbola]]:
        """The lines at a size of the first dimension; an area is above one of each list.

        A list is empty where its condition never holds.
        """
        whole = whole_tiles(math.ceil(size), self.span)
        numbers = (size.numerator, whole * size.denominator, size.denominator)

        def at_size(margin: Margin) -> Hyperbola | None:
            parts = zip(margin.slope, margin.counted, margin.constant, strict=True)
            a, b, c, d = (_dot(each, numbers) for each in parts)
            if a <= 0:
                return None if any((a, b, c, d)) else Hyperbola(0.0, 0.0, 0.0)
            return Hyperbola(_over(-c, a), _over(-b, a), _over(b * c - a * d, a * a))

        return [[line for line in map(at_size, margins) if line] for margins in self.conditions]


def _dot(one: Sequence[int], other: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(one, other, strict=True))


def _over(number: int, other: int) -> float:
    """A quotient, rounded once; infinite where it is too large for Float64."""
    try:
        return number / other
    except OverflowError:
        return math.inf


def nominal_area(sweep: Sweep, chip_variant: ChipVariant, share: Fraction = WHOLE_PEAK) -> Area:
    """Where a sweep's operation attains a share of the peak, by nominal times.

    Args:
        sweep: A sweep of an operation of three dimensions, without tiles.
        chip_variant: A chip and a variant of it.
        share: The share of the attainable peak [1].
    """
    workload, target = sweep.case(*chip_variant), sweep.target(*chip_variant)
    dims = sweep.op.dims
    peak = rate_at(MATH, target, share)
    math_s = _scaled(workload.costs[MATH.work], 1 / peak.per_s) if peak else {}
    conditions = []
    for resource in OTHERS:
        if rate := rate_at(resource, target, share):
            times = [_scaled(workload.costs[resource.work], 1 / rate.per_s)]
            times += [{(): rate.latency_s}] if rate.latency_s else []
            conditions += [(_margin(_minus(math_s, each), {}, dims),) for each in times]
    return Area(tuple(conditions))


def estimated_area(estimate: Estimate, dims: Sequence[str]) -> Area:
    """Where an operation of three dimensions is compute-bound by its estimate.

    Args:
        estimate: The estimate; if rows are computed in whole spans, these are of the first
            dimension.
        dims: The dimensions.
    """
    computes = [each for piece in estimate.pieces if piece.bound == COMPUTE for each in piece.least]

    def margin(compute: Sum, other: Sum) -> Margin:
        plain = _minus(compute.plain, other.plain)
        return _margin(plain, _minus(compute.counted, other.counted), dims)

    conditions = tuple(
        tuple(margin(compute, each) for each in piece.least for compute in computes)
        for piece in estimate.pieces
        if piece.bound != COMPUTE
    )
    return Area(conditions, estimate.span)


def _scaled(terms: Polynomial, factor: Fraction) -> Polynomial:
    return {dims: factor * coefficient for dims, coefficient in terms.items()}


def _minus(one: Polynomial, other: Polynomial) -> Polynomial:
    nothing = Fraction(0)
    return {dims: one.get(dims, nothing) - other.get(dims, nothing) for dims in {*one, *other}}


def _margin(plain: Polynomial, counted: Polynomial, dims: Sequence[str]) -> Margin:
    """A difference of times in whole numbers, by the products of sizes that it is a sum of."""
    numbers = [*plain.values(), *counted.values()]
    scale = math.lcm(*(number.denominator for number in numbers))
    first, x, y = dims

    def products(terms: Mapping[tuple[str, ...], Fraction], lead: tuple[str, ...]) -> Products:
        found = {frozenset(of): (scale * number).numerator for of, number in terms.items()}
        xy, by_x, by_y, rest = (
            found.get(frozenset((*lead, *each)), 0) for each in ((x, y), (x,), (y,), ())
        )
        return xy, by_x, by_y, rest

    return Margin(products(plain, (first,)), products(plain, ()), products(counted, (first,)))


def border(lines: Sequence[Sequence[Hyperbola]], window: Window) -> list[Arc]:
    """The border of an area within a window, clamped to its lower edge, as arcs from left to right.

    Args:
        lines: From `Area.lines`.
        window: The part of the plane that is shown.

    Returns:
        The arcs; none if no part of the area is in the window.
    """
    if not all(lines):
        return []
    arcs: list[Arc] = []
    height = window.top
    for start, end in pairwise(_cuts(lines, window)):
        middle = math.sqrt(start * end)
        line = max(
            (min(each, key=lambda one: one.height(middle)) for each in lines),
            key=lambda one: one.height(middle),
        )
        arc = _clamped(line, start, end, window)
        if arc is None:
            height = window.top
            continue
        if arcs and _continues(arc, arcs[-1]):
            arc = arcs.pop()._replace(x_end=end, y_end=arc.y_end)
        elif start > window.left and height > arc.y * (1 + CLOSE):
            arcs.append(Arc(start, height, start, arc.y))
        arcs.append(arc)
        height = arc.y_end
    return arcs


def _continues(arc: Arc, last: Arc) -> bool:
    """Whether an arc is of the same curve as the one before it, or as level."""
    if arc.x_limit is None:
        return last.y == last.y_end == arc.y == arc.y_end
    return (arc.x_limit, arc.y_limit) == (last.x_limit, last.y_limit)


def _cuts(lines: Sequence[Sequence[Hyperbola]], window: Window) -> list[float]:
    """The x between which one line is the border, or none is within the window."""
    every = [line for each in lines for line in each]
    found = {x for pair in combinations(every, 2) for x in pair[0].crossings(pair[1])}
    for line in every:
        heights = (window.top, window.bottom, line.y_limit * (1 + STRAIGHT))
        found |= {line.x_limit, line.x_limit * (1 + STRAIGHT), *map(line.reaches, heights)}
    return [window.left, *sorted(x for x in found if window.left < x < window.right), window.right]


def _clamped(line: Hyperbola, start: float, end: float, window: Window) -> Arc | None:
    """The part of a line between two of `_cuts`; None above the window."""
    x = math.sqrt(start * end)
    y = line.height(x)
    if y >= window.top:
        return None
    if y <= max(window.bottom, line.y_limit * (1 + STRAIGHT)):
        height = max(line.y_limit, window.bottom)
        return Arc(start, height, end, height)
    ends = (min(line.height(start), window.top), max(line.height(end), window.bottom))
    if x < line.x_limit * (1 + STRAIGHT):
        return Arc(end, ends[0], end, ends[1])
    return Arc(start, ends[0], end, ends[1], line.x_limit, line.y_limit)
