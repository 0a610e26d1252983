"""Tori: slices, parallelisms over their axes, and the least time for all collectives in a step.

A slice has two axes, or three, of which each is a line or closes into a ring (`Slice`). Every axis
is a product over factors, one a parallelism, in the layout's order from the inside
(`AxisMapping`); a factor n outside s other chips is a part with stride s (`AxisPart`). A
collective adds its parts' bandwidths; all collectives in a step may deal their bytes over
their axes, so that the network takes the least time T in which every axis keeps up. By duality T is
the largest, over axis weights with sum 1, in a sum that is linear in the bytes: each set with
weights is a network level, whose times are summed over collectives as on any other.

Source: slice shapes on Google's pages on TPU v4, v5p and v5e; links added over axes: How
to Scale Your Model, "Sharded Matrices".
"""

from __future__ import annotations

import math
import re
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import combinations, pairwise, product
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.numbers import divisors, rounded
from rooflines.theory.network import ALL_TO_ALL, PAIR, RING_PASSES, Link, axes_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

AXIS_NAMES = "abc"
"""Letters for axes, the shortest axis first."""

CUBE = 4
"""Chips along a cube's edge; slices with three axes are made from cubes [1]."""

PLANE, SPACE = 2, 3
"""Axes in tori with known slices [1]."""

MAX_FIRST_AXIS = 24
"""Longest axis with which a slice comes before others with as many chips [1]."""

BELOW_CUBE = ((1, 1, 1), (1, 2, 2), (2, 2, 2), (2, 2, 4), (2, 4, 4))
"""Slices with three axes below a cube, open along every axis [1]."""

MAX_CHIPS_TRIED = 2**14
"""Chips on either side among which the nearest number with a shape is sought [1]."""

DIGITS = 12
"""Digits to which mapping times are compared [1]."""

GATHER, SHARES, COPIES, SENDS = "gather", "shares", "copies", "sends"
"""Load forms: gathers and reductions; an all-to-all; token copies for experts; sends between
neighbours."""


@cache
def slice_shapes(link: Link, chips: int) -> tuple[tuple[int, ...], ...]:
    """Slice shapes with as many chips, the default first; empty: there are none.

    Three axes: below a cube as listed, then whole cubes, 4i x 4j x 4k: an axis up to 24 first,
    then the least i + j + k, then i. Two axes: n x n or n x 2n, powers of two.

    Args:
        link: The torus.
        chips: Chips in the slice [1].
    """
    if chips > max_slice(link):
        return ()
    if link.axes == 1:
        return ((chips,),)
    if link.axes == PLANE:
        shapes = ((2**half, 2 ** (half + odd)) for half in range(chips) for odd in (0, 1))
        bounded = (shape for shape in _until(shapes, chips) if shape != (1, PAIR))
        return tuple(
            shape
            for shape in bounded
            if math.prod(shape) == chips and (link.domain is None or shape[-1] <= link.domain)
        )
    if chips % CUBE**SPACE:
        return tuple(shape for shape in BELOW_CUBE if math.prod(shape) == chips)
    cubes = chips // CUBE**SPACE
    edges = [
        (i, j, cubes // i // j)
        for i in divisors(cubes)
        for j in divisors(cubes // i)
        if i <= j <= cubes // i // j
    ]
    edges.sort(key=lambda edge: (CUBE * edge[-1] > MAX_FIRST_AXIS, sum(edge), edge))
    return tuple((CUBE * i, CUBE * j, CUBE * k) for i, j, k in edges)


def _until(shapes: Iterator[tuple[int, int]], chips: int) -> Iterator[tuple[int, int]]:
    """Shapes up to a chip count, the smallest first."""
    for shape in shapes:
        if math.prod(shape) > chips:
            return
        yield shape


def max_slice(link: Link) -> int:
    """Chips in the largest slice [1]: the pod, or all axes as long as they can be."""
    if link.pod is not None:
        return link.pod
    return MAX_CHIPS_TRIED if link.domain is None else int(link.domain**link.axes)


def nearest_slices(link: Link, chips: int) -> list[int]:
    """Nearest chip counts below and above that have a shape [1]."""
    above = range(chips + 1, min(chips + MAX_CHIPS_TRIED, max_slice(link)) + 1)
    sides = (range(min(chips - 1, max_slice(link)), 0, -1), above)
    nearest = (next((n for n in side if slice_shapes(link, n)), None) for side in sides)
    return [number for number in nearest if number is not None]


@dataclass(frozen=True)
class Slice:
    """A torus slice.

    Attributes:
        link: The torus.
        shape: Chips along each axis [1].
    """

    link: Link
    shape: tuple[int, ...]

    @property
    def chips(self) -> int:
        """All chips [1]."""
        return math.prod(self.shape)

    def is_ring(self, axis: int) -> bool:
        """Tell whether an axis closes: by its length, and on three axes in whole cubes alone."""
        whole = len(self.shape) < SPACE or not any(length % CUBE for length in self.shape)
        return whole and self.link.is_ring(self.shape[axis])

    @property
    def text(self) -> str:
        """Shape, such as `4x4x8`."""
        return axes_text(self.shape)

    @cached_property
    def twisted_distance(self) -> Fraction | None:
        """Mean distance between two chips in the twisted torus; None: it is not twisted [hop].

        In n x n x 2n a step around a short axis shifts by n along the long one; in n x 2n x 2n a
        step around the short axis shifts by n along both long ones.
        """
        if len(self.shape) < SPACE or not all(map(self.is_ring, range(SPACE))):
            return None
        first, second, third = self.shape
        if first == second and third == PAIR * first:
            return _twisted_distance(self.shape, ((2,), (2,), ()))
        if second == third == PAIR * first:
            return _twisted_distance(self.shape, ((1, 2), (), ()))
        return None


@cache
def _twisted_distance(shape: tuple[int, ...], shifted: tuple[tuple[int, ...], ...]) -> Fraction:
    """Mean distance from a chip to all, itself included, by breadth-first search [hop].

    Args:
        shape: Chips along each axis, the shortest first [1].
        shifted: By axis the axes along which a step around it shifts.
    """
    origin = (0,) * len(shape)
    distances, queue = {origin: 0}, deque([origin])
    while queue:
        chip = queue.popleft()
        for axis, step in product(range(len(shape)), (1, -1)):
            moved = [*chip]
            moved[axis] += step
            if not 0 <= moved[axis] < shape[axis]:
                moved[axis] %= shape[axis]
                for along in shifted[axis]:
                    moved[along] = (moved[along] + shape[0]) % shape[along]
            if (neighbor := tuple(moved)) not in distances:
                distances[neighbor] = distances[chip] + 1
                queue.append(neighbor)
    return Fraction(sum(distances.values()), len(distances))


class AxisPart(NamedTuple):
    """Chips along one axis in a parallelism.

    Attributes:
        axis: Axis index [1].
        chips: How many, n [1].
        stride: Distance from one to the next, s: other chips inside [1].
        is_ring: Whether it is the outermost part on a closed axis.
    """

    axis: int
    chips: int
    stride: int
    is_ring: bool

    @property
    def links(self) -> Fraction:
        """Links per chip that its collectives may use at once: 2 / s on a ring, else 1 / s [1]."""
        return Fraction(1 + self.is_ring, self.stride)

    @property
    def hops(self) -> int:
        """Least hops per pass [1]."""
        return self.stride * (self.chips // 2 if self.is_ring else self.chips - 1)

    @property
    def text(self) -> str:
        """Chips, axis and stride, such as `4a/2`."""
        stride = f"/{self.stride}" if self.stride > 1 else ""
        return f"{self.chips}{AXIS_NAMES[self.axis]}{stride}"


Weights = tuple[tuple[Fraction, ...], ...]
"""Axis weights, sum 1, one for each level."""


@dataclass(frozen=True, eq=False)
class TorusLoad:
    """Load from a collective on the axes, per payload byte.

    Attributes:
        route: Chips between which it runs.
        form: `GATHER`, `SHARES`, `COPIES` or `SENDS`.
        factor: Gathers and reductions: passes; copies: probability that a token is needed in the
            other half; sends: how many one way [1].
    """

    route: TorusRoute
    form: str
    factor: Fraction

    @cached_property
    def by_axis(self) -> Mapping[int, Fraction]:
        """Bytes over the busiest link on each axis, where there is no choice between axes."""
        route, parts = self.route, self.route.parts
        if self.form == GATHER:
            return {}
        if self.form == SENDS:
            nearest = min(parts, key=lambda part: part.stride)
            return {nearest.axis: self.factor * nearest.stride}
        if self.form == COPIES:
            halves = {part: Fraction(part.chips, 4 if part.is_ring else 2) for part in parts}
            return {part.axis: self.factor * part.stride * halves[part] for part in parts}
        if route.is_whole and (distance := route.slice.twisted_distance) is not None:
            links = route.slice.link.axes * 2
            return {part.axis: distance / links for part in parts}
        return {
            part.axis: Fraction(part.stride * (part.chips**2 // 4), part.chips * (1 + part.is_ring))
            for part in parts
        }

    @cached_property
    def bytes_dealt(self) -> Fraction:
        """Bytes per chip that its axes may share out [byte/byte]: (N - 1) / N a pass."""
        return self.factor * Fraction(self.route.chips - 1, self.route.chips)

    @cached_property
    def alone(self) -> Fraction:
        """Bytes over one link that take as long as the collective alone [byte/byte]."""
        if self.form == GATHER:
            return self.bytes_dealt / self.route.links
        return max(self.by_axis.values())

    @cached_property
    def sent(self) -> Fraction:
        """Bytes sent by a chip [byte/byte]."""
        if self.form == GATHER:
            return self.bytes_dealt
        return self.factor * 2 if self.form == SENDS else self.alone * self.route.links

    @cached_property
    def by_level(self) -> tuple[Fraction, ...]:
        """Bytes over one link at each level [byte/byte]."""
        weights = self.route.weights
        if self.form == GATHER:
            return tuple(self.bytes_dealt * self.route.share(level) for level in weights)
        return tuple(
            sum((level[axis] * load for axis, load in self.by_axis.items()), Fraction(0))
            for level in weights
        )

    @property
    def hops(self) -> int:
        """Least hops, one after another [1]."""
        if self.form == SENDS:
            return min(part.stride for part in self.route.parts)
        passes = int(self.factor) if self.form == GATHER else 1
        return passes * self.route.hops

    def level_times(self, efficiency: Fraction) -> list[tuple[Fraction, Fraction]]:
        """Times per payload byte at each level, then hops on each axis [s/byte, s].

        Args:
            efficiency: Reached share in the nominal rate, 0..1 [1].
        """
        link, none = self.route.slice.link, Fraction(0)
        rate = link.bytes_per_s * efficiency
        axes = {part.axis for part in self.route.parts}
        hops_s = self.hops * link.hop_latency_s
        return [
            *((load / rate, none) for load in self.by_level),
            *((none, hops_s * (axis in axes)) for axis in range(len(self.route.slice.shape))),
        ]

    def own_time(self, efficiency: Fraction) -> tuple[Fraction, Fraction]:
        """Time alone: per payload byte [s/byte], and for hops [s]."""
        link = self.route.slice.link
        return self.alone / (link.bytes_per_s * efficiency), self.hops * link.hop_latency_s


@dataclass(frozen=True)
class TorusRoute:
    """Chips in a collective along a slice's axes.

    Attributes:
        slice: The slice.
        parts: Its parts, one an axis at most.
        weights: Axis weights, by network level.
    """

    slice: Slice
    parts: tuple[AxisPart, ...]
    weights: Weights = ()

    @property
    def axes(self) -> tuple[int, ...]:
        """Chips along each axis [1]."""
        return tuple(part.chips for part in self.parts) or (1,)

    @property
    def chips(self) -> int:
        """Chips that it joins [1]."""
        return math.prod(self.axes)

    @property
    def is_whole(self) -> bool:
        """True if it joins the whole slice."""
        return self.chips == self.slice.chips

    @cached_property
    def links(self) -> Fraction:
        """Links used at once per chip: the sum over parts [1]."""
        return sum((part.links for part in self.parts), Fraction(0))

    @property
    def hops(self) -> int:
        """Least hops per pass: the sum over parts [1]."""
        return sum(part.hops for part in self.parts)

    def bytes_per_payload_byte(self, kind: str) -> tuple[Fraction, ...]:
        """Bytes sent by each chip per payload byte, by level: there is one [1]."""
        return (self.load(kind).sent,)

    def share(self, level: Sequence[Fraction]) -> Fraction:
        """Time for a dealt byte at axis weights: the least weight over links [1]."""
        return min(level[part.axis] / part.links for part in self.parts)

    def load(self, kind: str) -> TorusLoad:
        """Load from a collective.

        Args:
            kind: A key in `RING_PASSES`.
        """
        form = SHARES if kind == ALL_TO_ALL else GATHER
        return TorusLoad(self, form, Fraction(RING_PASSES[kind]))

    def copies(self, p_half_hit: Fraction) -> TorusLoad:
        """Load from tokens that go once to each chip with some expert for them.

        Args:
            p_half_hit: Probability that a token needs an expert in the other half.
        """
        return TorusLoad(self, COPIES, p_half_hit)

    def sends(self, number: Fraction) -> TorusLoad:
        """Load from sends to the next neighbour, half the payload each way.

        Args:
            number: Payload sends [1].
        """
        return TorusLoad(self, SENDS, number / 2)


@dataclass(frozen=True)
class AxisMapping:
    """Mapping from a layout onto a slice's axes.

    Attributes:
        slice: The slice.
        bounds: Chips inside each layout boundary, from 1 to all [1].
        factors: Between two boundaries the chips along each axis [1].
        fixed: True if some collective cannot deal its bytes over axes.
    """

    slice: Slice
    bounds: tuple[int, ...]
    factors: tuple[tuple[int, ...], ...]
    fixed: bool = False

    def __hash__(self) -> int:
        """Hash over the fields, computed once."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.slice, self.bounds, self.factors, self.fixed))

    def parts(self, chips: int, stride: int) -> tuple[AxisPart, ...]:
        """Parts for a chip group in the layout.

        Args:
            chips: How many [1].
            stride: Distance from one to the next in the layout [1].
        """
        first, last = self.bounds.index(stride), self.bounds.index(stride * chips)
        parts = []
        for axis, length in enumerate(self.slice.shape):
            number, inside = (
                math.prod(factors[axis] for factors in self.factors[start:end])
                for start, end in ((first, last), (0, first))
            )
            if number > 1:
                is_ring = number * inside == length and self.slice.is_ring(axis)
                parts.append(AxisPart(axis, number, inside, is_ring))
        return tuple(parts)

    def route(self, chips: int, stride: int) -> TorusRoute:
        """Route between a group's chips in the layout."""
        return TorusRoute(self.slice, self.parts(chips, stride), self.weights)

    @cached_property
    def weights(self) -> Weights:
        """Weights at which the step's time can be largest: network levels."""
        groups = {
            self.parts(high // low, low) for low, high in combinations(self.bounds, 2) if high > low
        }
        links = tuple(
            sorted(tuple((part.axis, part.links) for part in parts) for parts in groups if parts)
        )
        return _weights(links, len(self.slice.shape), fixed=self.fixed)

    def text(self, chips: int, stride: int) -> str:
        """Parts for a group, such as `2a/2 2b/2 4c`."""
        return " ".join(part.text for part in self.parts(chips, stride))


@cache
def _weights(
    groups: tuple[tuple[tuple[int, Fraction], ...], ...], axes: int, *, fixed: bool
) -> Weights:
    """Weights at which pieces in a sum over groups meet, less those that others dominate.

    Args:
        groups: Links by axis for every collective.
        axes: Axes [1].
        fixed: True if the load on an axis alone counts, too.
    """
    ratios: dict[tuple[int, int], set[Fraction]] = {}
    for links in groups:
        for (first, first_links), (second, second_links) in combinations(links, 2):
            ratios.setdefault((first, second), set()).add(second_links / first_links)
    candidates = {tuple(Fraction(axis == alone) for axis in range(axes)) for alone in range(axes)}
    for (first, second), quotients in ratios.items():
        for quotient in quotients:
            candidates.add(_scaled({first: Fraction(1), second: quotient}, axes))
    for pair, next_pair in combinations(ratios, 2):
        for ratio, next_ratio in product(ratios[pair], ratios[next_pair]):
            candidates.add(_scaled(_joined(pair, ratio, next_pair, next_ratio), axes))
    return _undominated(candidates, groups, fixed=fixed)


def _joined(
    pair: tuple[int, int], ratio: Fraction, next_pair: tuple[int, int], next_ratio: Fraction
) -> dict[int, Fraction]:
    """Weights for three axes from two pairs' quotients."""
    weights = {pair[0]: Fraction(1), pair[1]: ratio}
    low, high = next_pair
    if low in weights:
        weights[high] = weights[low] * next_ratio
    else:
        weights[low] = weights[high] / next_ratio
    return weights


def _scaled(weights: Mapping[int, Fraction], axes: int) -> tuple[Fraction, ...]:
    """Weights for all axes with sum 1."""
    whole = sum(weights.values(), Fraction(0))
    return tuple(weights.get(axis, Fraction(0)) / whole for axis in range(axes))


def _undominated(
    candidates: set[tuple[Fraction, ...]],
    groups: Sequence[Sequence[tuple[int, Fraction]]],
    *,
    fixed: bool,
) -> Weights:
    """Weights less those that count no collective more than others do."""

    def counts(level: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
        dealt = tuple(min(level[axis] / links for axis, links in group) for group in groups)
        return (*dealt, *level) if fixed else dealt

    by_counts = {counts(level): level for level in sorted(candidates)}
    remaining = [
        numbers
        for numbers in by_counts
        if not any(
            larger != numbers and all(map(Fraction.__ge__, larger, numbers)) for larger in by_counts
        )
    ]
    return tuple(by_counts[numbers] for numbers in remaining)


class Typed(NamedTuple):
    """Chips in a parallelism as typed along axes.

    Attributes:
        chips: Chips along each axis that is named [1].
        letters: The axes' indices; empty: no matter which.
    """

    chips: tuple[int, ...]
    letters: tuple[int, ...] = ()

    def holds(self, factors: Sequence[int]) -> bool:
        """Tell whether chips along the axes are those typed."""
        if self.letters:
            typed = dict(zip(self.letters, self.chips, strict=True))
            return all(typed.get(axis, 1) == chips for axis, chips in enumerate(factors))
        return sorted(self.chips) == sorted(chips for chips in factors if chips > 1)


@lru_cache(4096)
def mappings_onto(
    torus: Slice,
    bounds: tuple[int, ...],
    typed: tuple[tuple[int, int, Typed], ...] = (),
    *,
    fixed: bool = False,
) -> tuple[AxisMapping, ...]:
    """Mappings from a layout onto a slice; among equal axes one order, unless typed by letter.

    Args:
        torus: The slice.
        bounds: Chips inside each layout boundary, from 1 to all [1].
        typed: What is typed between two boundaries.
        fixed: As in `AxisMapping`.
    """
    counts = [high // low for low, high in pairwise(bounds)]
    names_axes = any(chips.letters for _, _, chips in typed)
    by_key: dict[object, AxisMapping] = {}
    for factors in _factors(torus.shape, counts):
        mapping = AxisMapping(torus, bounds, factors, fixed)
        if not all(
            chips.holds(_between(factors, bounds.index(low), bounds.index(high)))
            for low, high, chips in typed
        ):
            continue
        key: object = factors
        if not names_axes:
            columns = zip(torus.shape, *factors, strict=True)
            key = tuple(sorted(columns))
        by_key.setdefault(key, mapping)
    return tuple(by_key.values())


def _between(factors: Sequence[Sequence[int]], first: int, last: int) -> tuple[int, ...]:
    """Chips along each axis between two boundaries [1]."""
    return tuple(math.prod(column) for column in zip(*factors[first:last], strict=True))


def _factors(
    shape: tuple[int, ...], counts: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], ...]]:
    """Chips along each axis for every number, all chips used; the first axes first."""
    if not counts:
        if math.prod(shape) == 1:
            yield ()
        return
    for vector in _vectors(shape, counts[0]):
        rest = tuple(length // chips for length, chips in zip(shape, vector, strict=True))
        for tail in _factors(rest, counts[1:]):
            yield (vector, *tail)


@cache
def _vectors(shape: tuple[int, ...], chips: int) -> tuple[tuple[int, ...], ...]:
    """Chips along each axis whose product is a number, by their parts: first axes first."""
    if not shape:
        return ((),) if chips == 1 else ()
    vectors = (
        (divisor, *rest)
        for divisor in divisors(math.gcd(shape[0], chips))
        for rest in _vectors(shape[1:], chips // divisor)
    )
    return tuple(
        sorted(vectors, key=lambda vector: [(a, n) for a, n in enumerate(vector) if n > 1])
    )


Amounts = tuple[tuple[str, int, int, float], ...]
"""Bytes in a step: load form, the group's chips and stride, payload times factor."""


def network_times(mapping: AxisMapping, amounts: Amounts) -> tuple[float, float]:
    """Times for a step's collectives times a link's bandwidth: least for all, and their sum [byte].

    Args:
        mapping: The mapping.
        amounts: What the collectives send.
    """
    levels = [0.0] * len(mapping.weights)
    serial = 0.0
    for form, chips, stride, amount in amounts:
        numbers, longest = _unit_load(mapping, form, chips, stride)
        serial += amount * longest
        for index, number in enumerate(numbers):
            levels[index] += amount * number
    return max(levels, default=0.0), serial


@lru_cache(2**16)
def _unit_load(
    mapping: AxisMapping, form: str, chips: int, stride: int
) -> tuple[tuple[float, ...], float]:
    """Bytes over one link per byte at each level, and alone."""
    load = TorusLoad(mapping.route(chips, stride), form, Fraction(1))
    return tuple(map(float, load.by_level)), float(load.alone)


def fastest_mapping(mappings: Sequence[AxisMapping], amounts: Amounts) -> AxisMapping:
    """Mapping with the least network time, then the least sum, then the first by axes.

    Args:
        mappings: All that are allowed, at least one.
        amounts: What the collectives send.
    """

    def slowness(mapping: AxisMapping) -> tuple[float, float]:
        least, serial = network_times(mapping, amounts)
        return rounded(least, DIGITS), rounded(serial, DIGITS)

    return min(mappings, key=slowness)


AXES_TEXT = re.compile(r"(\d+(?:x\d+)*|(?:\d+[a-wyz]x?)+)(?:\+(\d+))?")
"""Chips along axes as typed, perhaps by letter, and pods: `16x16+4`, `8a8b2c`."""


def parse_typed(text: str) -> tuple[Typed, int]:
    """Parse chips along axes as typed, and pods.

    Raises:
        ValueError: It is no such text, or has a letter twice.
    """
    match = AXES_TEXT.fullmatch(text.strip().lower().replace("*", "x").replace("×", "x"))
    if match is None:
        raise ValueError(text)
    body, pods = match.groups()
    pieces = re.findall(r"(\d+)([a-wyz]?)", body)
    chips = tuple(int(number) for number, _ in pieces)
    letters = tuple(ord(letter) - ord("a") for _, letter in pieces if letter)
    if 0 in chips or len({*letters}) < len(letters):
        raise ValueError(text)
    return Typed(chips, letters), int(pods or 1)


def slice_of(text: str) -> tuple[int, ...]:
    """Parse a slice's shape, its axes in order.

    Raises:
        ValueError: It is no product of axes.
    """
    typed, pods = parse_typed(text)
    if typed.letters or pods > 1:
        raise ValueError(text)
    return tuple(sorted(typed.chips))
