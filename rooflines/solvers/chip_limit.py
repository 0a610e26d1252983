"""Chip limit: the largest number of chips on which a split operation is compute-bound.

The solution is a closed form. N times a time is a polynomial in the number of chips N: constant for
math, alpha + beta N for memory, gamma (N - 1) for a collective over links that do not change with
N, delta N for hops on a switch and quadratic for hops along a line or a ring. Where the topology
changes with N there are segments: a torus closes into rings at multiples of a number, and on two
levels whole groups are added. Polynomials interpolate three points of the formulas that fill the
tables.

On every segment each resource bounds the number of chips from above, so the largest number is a
minimum over resources. It is Float64, rounded down after the bound on its error is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import polars as pl

from rooflines.basics.expressions import quotient
from rooflines.dictionary.columns import ALWAYS, FOUND, NEVER, UNKNOWN, WITHOUT_END
from rooflines.evaluation.compiler import RowCompiler
from rooflines.solvers.crossover import MAX_SLACK, ROUNDING, TIE_TOLERANCE, first_largest
from rooflines.sweep.cases import Block
from rooflines.sweep.operation_sweep import OperationCase
from rooflines.theory.network import PAIR, max_domain
from rooflines.theory.poly import ZERO, Poly, constant
from rooflines.theory.resources import MATH, NETWORK, NON_MATH, RESOURCES, level_times

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.sweep.operation_sweep import Sweep
    from rooflines.theory.network import Link
    from rooflines.theory.resources import Resource

MAX_CHIPS = 2**53
"""Number of chips from which on a compute-bound split has no largest number of chips [1]."""

SINGLE, LINE, RING, ODD_RING = "single", "line", "ring", "odd_ring"
"""Segments: one chip; several; multiples of a step, where the topology changes; and odd multiples,
where the hops around a ring are another polynomial. A number in two segments is in the later."""

SEGMENTS = (SINGLE, LINE, RING, ODD_RING)

POWERS = range(3)
"""Powers of N in the polynomials."""

Key = TypeVar("Key")

Polynomial = tuple[Fraction, ...]
"""Coefficients, by power of N."""


class Segment(NamedTuple):
    """Numbers of chips N on which every N t is one polynomial.

    Attributes:
        name: `SINGLE`, `LINE`, `RING` or `ODD_RING`.
        first, last: First number [1], and last number or more.
        step: Step between numbers [1].
        samples: Numbers that determine the polynomials: three, or all.
    """

    name: str
    first: int
    last: int
    step: int
    samples: tuple[int, ...]

    @property
    def offset(self) -> int:
        """Remainder, numbers modulo `step` [1]."""
        return self.first % self.step


@dataclass(frozen=True)
class ChipNumbers:
    """Numbers of chips that interconnects join along one axis.

    Attributes:
        max_chips: Largest number of chips; `MAX_CHIPS` without a limit [1].
        is_published: True if the limit is published.
        max_line: Largest number of chips on a line, or in a group [1].
        step: Rings, or whole groups, have multiples of it; 0: there are none [1].
        group: Chips that the inner of two networks joins; 0: there is one network [1].
    """

    max_chips: int
    is_published: bool
    max_line: int
    step: int
    group: int

    @property
    def segments(self) -> tuple[Segment, ...]:
        """Segments, on which the times are polynomials."""
        step, group = self.step, self.group
        samples: tuple[int, ...] = (2, 3, 4)
        if group:
            samples = tuple(range(2, min(group, 4) + 1))
        elif step:
            samples = (2, step + 1, 2 * step + 1) if step > 1 else (2,)
        single = Segment(SINGLE, 1, 1, 1, (1,))
        lines = single, Segment(LINE, 2, self.max_line, 1, samples)
        if group:
            multiples = tuple(group * groups for groups in (2, 3, 4))
            return (*lines, Segment(RING, 2 * group, self.max_chips, group, multiples))
        first_ring = step * (PAIR // step + 1) if step else 0  # a ring has three chips or more
        if step % 2 == 0:
            multiples = tuple(step * k for k in (4, 6, 8))
            return (
                (*lines, Segment(RING, first_ring, self.max_chips, step, multiples))
                if step
                else lines
            )
        rings = (
            Segment(
                name, first, self.max_chips, 2 * step, tuple(first + 2 * step * k for k in range(3))
            )
            for first in (first_ring, first_ring + step)
            for name in (ODD_RING if first % 2 else RING,)
        )
        return (*lines, *sorted(rings, key=lambda ring: ring.name == ODD_RING))


def find_chip_numbers(links: tuple[Link, ...]) -> ChipNumbers:
    """Numbers of chips that a route over these interconnects may have along one axis."""
    max_chips, is_published = max_domain(links)
    inner, max_chips = links[0], MAX_CHIPS if max_chips is None else max_chips
    if max_chips == 1:
        group = inner.domain or 0 if len(links) > 1 else 0
        return ChipNumbers(max_chips, is_published, max_chips, group, group)
    if len(links) > 1 and inner.domain is not None:
        return ChipNumbers(
            max_chips, is_published, min(inner.domain, max_chips), inner.domain, inner.domain
        )
    ring = inner.ring_multiple or 0 if inner.topology == "torus" else 0
    return ChipNumbers(
        max_chips, is_published, min(max_chips, PAIR) if ring == 1 else max_chips, ring, 0
    )


def polynomials_through(
    samples: Sequence[int], values: Sequence[Mapping[Key, Fraction]]
) -> dict[Key, Polynomial]:
    """Interpolate N * value(N) by polynomials in N, one for every product of extents."""
    return {
        dims: interpolate([(n, n * value[dims]) for n, value in zip(samples, values, strict=True)])
        for dims in values[0]  # all numbers of a piece have the same products
    }


def interpolate(points: Sequence[tuple[int, Fraction]]) -> Polynomial:
    """Coefficients of the polynomial with the least degree, at most 2, through points."""
    constant, slope, square = points[0][1], Fraction(0), Fraction(0)
    if len(points) > 1:
        slopes = [(b - a) / (n - m) for (m, a), (n, b) in pairwise(points)]
        if len(points) > 2:  # noqa: PLR2004, a parabola has three
            square = (slopes[1] - slopes[0]) / (points[2][0] - points[0][0])
        slope = slopes[0] - square * (points[0][0] + points[1][0])
        constant -= slope * points[0][0] + square * points[0][0] ** 2
    return constant, slope, square


def _quadratic(samples: Sequence[int], polys: Sequence[Poly]) -> list[Poly]:
    """Interpolate N * poly(N) between samples, by powers of N."""
    terms = polynomials_through(samples, [poly.terms for poly in polys])
    return [
        Poly({dims: powers[power] for dims, powers in terms.items() if powers[power]})
        for power in POWERS
    ]


Lines = dict[str, list[Poly]]
"""N times each time, by `<resource>:<number>@<segment>`, and works by their name."""


def candidate_times(case: OperationCase, resource: Resource) -> list[Poly]:
    """Times of a resource, whose maximum counts [s]; for a network the sending, then the hops."""
    if resource is not NETWORK:
        return [poly for polys in case.times.by_bound[resource.bound].pieces for poly in polys]
    (kernel,) = case.kernels
    share = case.machine.efficiency[resource.name]
    sending, waits = list[Poly](), list[Poly]()
    for transfer in kernel.transfers:
        for seconds_per_byte, latency_s in level_times(transfer, share):
            sending.append(transfer.payload * seconds_per_byte)
            if latency_s:
                waits.append(constant(latency_s))
    return [*sending, *waits]


def segment_lines(case: OperationCase, segments: Sequence[Segment]) -> Lines:
    """N times every time of a case on every segment, and works on the last segment."""
    lines: Lines = {}
    for segment in segments:
        cases = [replace(case, axes=(shards,)) for shards in segment.samples]
        for resource in RESOURCES:
            # On an empty segment a larger number may have hops that a smaller one lacks.
            times = zip(
                *(candidate_times(sample, resource) for sample in cases),
                strict=segment.last >= segment.first,
            )
            for number, polys in enumerate(times):
                lines[f"{resource.name}:{number}@{segment.name}"] = _quadratic(
                    segment.samples, polys
                )
            if segment is segments[-1]:
                works = [sample.work(resource.work) for sample in cases]
                lines[resource.work] = _quadratic(segment.samples, works)
    return lines


class SplitLines:
    """Lines of all splits in a sweep, as columns.

    Args:
        cases: Every dtype combination and split, on every chip that has an interconnect.
        sweep: Their sweep.

    Attributes:
        rows: Cases times points along the sizes [1].
        lines: Names of lines by resource and segment.
        quadratic_lines: Names of lines with a square in any case.
    """

    def __init__(self, cases: Sequence[OperationCase], sweep: Sweep) -> None:
        block = Block((), tuple(cases), sweep.size_axes)
        self._compiler = RowCompiler(block, inner=len(block.after))
        numbers = [find_chip_numbers(case.place.links) for case in cases]
        case_segments = [
            {segment.name: segment for segment in chip_numbers.segments} for chip_numbers in numbers
        ]
        pairs = zip(cases, case_segments, strict=True)
        case_lines = [segment_lines(case, [*by_name.values()]) for case, by_name in pairs]
        zeros = ZERO, ZERO, ZERO
        self._columns: dict[str, pl.Expr] = {}
        self.quadratic_lines = set[str]()
        names = dict.fromkeys(name for lines in case_lines for name in lines)
        for name, power in product(names, POWERS):
            polys = [lines.get(name, zeros)[power] for lines in case_lines]
            self._columns[f"#{name}:{power}"] = self._compiler.total(self._compiler.poly(polys))
            if any(polys) and power == POWERS[-1]:
                self.quadratic_lines.add(name)
        self.segments = [
            name for name in SEGMENTS if any(name in by_name for by_name in case_segments)
        ]
        self.lines = {
            (resource, segment): [
                name
                for name in names
                if name.startswith(f"{resource.name}:") and name.endswith(f"@{segment}")
            ]
            for resource in RESOURCES
            for segment in self.segments
        }
        for segment in self.segments:
            for part in ("first", "last", "step"):
                self._put(
                    f"{part}_{segment}",
                    [getattr(by_name.get(segment), part, 0) for by_name in case_segments],
                )
        self._put("max_chips", [chip_numbers.max_chips for chip_numbers in numbers])
        self._put("group", [chip_numbers.group for chip_numbers in numbers])
        self._put("unpublished", [not chip_numbers.is_published for chip_numbers in numbers])

    def _put(self, name: str, values: Iterable[float]) -> None:
        self._compiler.put(f"#{name}", pl.Series(list(map(float, values)), dtype=pl.Float64))

    def names_of(self, resources: Iterable[Resource], *segments: str) -> list[str]:
        """Names of resources' lines on segments."""
        return [name for key in product(resources, segments) for name in self.lines[key]]

    def frames(
        self, share: Fraction, stages: Sequence[Mapping[str, pl.Expr]]
    ) -> Iterator[pl.DataFrame]:
        """Yield the lines, math lines over a share of the peak, and more columns, in slices."""
        names = self.names_of([MATH], *self.segments)
        math = [f"#{name}:{power}" for name in names for power in POWERS]
        shared = {name: quotient(pl.col(name), pl.lit(float(share))) for name in math}
        return self._compiler.slices([self._columns, shared, *stages])


# ------------------------------------------------------------ the largest number


def polynomial(name: str) -> list[pl.Expr]:
    """Constant, slope and square of a line, at a row's sizes [s]."""
    return [pl.col(f"#{name}:{power}") for power in POWERS]


def max_chips_within(math_name: str, name: str, *, quadratic: bool) -> dict[str, pl.Expr]:
    """Solve for the largest number of chips N at which t_math is at least one line, on a segment.

    N is the larger root of square N^2 + slope_gap N = gap, in the form without cancellation.

    Returns:
        `#real:<name>` (below zero: none; infinite: every number), and `#raised:<name>`, the same
        plus the bound on its error [1].
    """
    math0, math1, _ = polynomial(math_name)
    line0, line1, square = polynomial(name)
    gap, slope_gap = math0 - line0, line1 - math1
    size = math0.abs() + line0.abs()
    if quadratic:
        root = (slope_gap * slope_gap + 4.0 * square * gap.clip(0.0)).sqrt()
        real_root = (
            pl.when(slope_gap > 0)
            .then(quotient(2.0 * gap, root + slope_gap))
            .when(square > 0)
            .then(quotient(root - slope_gap, 2.0 * square))
        )
    else:
        root = slope_gap
        real_root = (
            pl.when(slope_gap > 0).then(quotient(gap, slope_gap)).when(square > 0).then(math.inf)
        )
    real = real_root.when(gap >= -TIE_TOLERANCE * size).then(math.inf).otherwise(-1.0)
    error = ROUNDING * (8.0 * real.abs() + quotient(size, root))
    raised = pl.when(root > 0).then(real + error.clip(0.0, MAX_SLACK)).otherwise(real)
    return {f"#real:{name}": real, f"#raised:{name}": raised}


def whole_chips(real: pl.Expr, segment: str) -> pl.Expr:
    """Round a real number of chips down to a number in a segment [1]; 0: none."""
    first, step = pl.col(f"#first_{segment}"), pl.col(f"#step_{segment}")
    last = pl.min_horizontal(real.clip(-1.0, float(MAX_CHIPS)), f"#last_{segment}").floor()
    joined = (last >= first) & (last >= 1.0)
    return pl.when(joined).then(last - (last - first) % step).otherwise(0.0)


def is_in(chips: pl.Expr, segment: str) -> pl.Expr:
    """True if a number of chips is in a segment."""
    first, step = pl.col(f"#first_{segment}"), pl.col(f"#step_{segment}")
    in_step = (chips - first) % step == 0
    return (chips >= first) & (chips <= pl.col(f"#last_{segment}")) & in_step


def max_chips_by_segment(resources: Sequence[Resource], split: SplitLines) -> dict[str, pl.Expr]:
    """Largest joined number of chips that is compute-bound against resources, by segment [1].

    0: not even one; MAX_CHIPS: no largest.
    """
    return {
        segment: whole_chips(min_over_lines("raised", split.names_of(resources, segment)), segment)
        for segment in split.segments
    }


def min_over_lines(part: str, names: Sequence[str]) -> pl.Expr:
    """Minimum over a column of several lines; infinite without any."""
    return pl.min_horizontal(f"#{part}:{name}" for name in names) if names else pl.lit(math.inf)


def real_chips(split: SplitLines) -> pl.Expr:
    """Real number of chips that `#number` rounds, by `#whole:<segment>` [1]."""
    reals = {
        segment: min_over_lines("real", split.names_of(NON_MATH, segment))
        for segment in split.segments
    }
    number, real = pl.col("#number"), reals.get(LINE, reals[SINGLE])
    for segment in {RING, ODD_RING} & reals.keys():
        is_largest = pl.col(f"#whole:{segment}") == number
        real = pl.when(is_largest).then(reals[segment]).otherwise(real)
    return pl.when(number > 0).then(pl.max_horizontal(real, 1.0))


def time_at(resource: Resource, shards: pl.Expr, split: SplitLines) -> pl.Expr:
    """N times a resource's time at N shards [s]."""
    time = pl.lit(0.0)
    for segment in split.segments:
        lines = map(polynomial, split.lines[resource, segment])
        times = [c0 + shards * (c1 + shards * c2) for c0, c1, c2 in lines]
        longest = pl.max_horizontal(times) if times else pl.lit(0.0)
        time = pl.when(is_in(shards, segment)).then(longest).otherwise(time)
    return time


def next_chips() -> pl.Expr:
    """Next number of chips after `#number` that may be joined [1]."""
    number, group = pl.col("#number"), pl.col("#group")
    in_groups = (group > 0) & (number >= group)
    return pl.when(in_groups).then(number - number % group + group).otherwise(number + 1.0)


def intensity_limits() -> dict[str, pl.Expr]:
    """Limit of the intensity against a resource as N grows, by bound [FLOP/byte].

    A constant work that limits is non-zero; FLOPs always scale as 1/N.
    """
    limits = {}
    for resource in NON_MATH:
        fixed, slope, _ = polynomial(resource.work)
        ratio = quotient(pl.col(f"#{MATH.work}:0"), fixed)
        limits[resource.bound] = pl.when(slope > 0).then(0.0).otherwise(ratio)
    return limits


def stored_chips(number: pl.Expr) -> pl.Expr:
    """Number of chips as stored in the table [1]; null: not even one, no largest, or unknown."""
    return pl.when(chips_outcome(number).is_in([FOUND, ALWAYS])).then(number.cast(pl.Int64))


def chips_outcome(number: pl.Expr) -> pl.Expr:
    """Outcome of a largest number of chips, one of `columns.OUTCOMES`."""
    whole_domain = number >= pl.col("#max_chips")
    return (
        pl.when(number < 1)
        .then(pl.lit(NEVER))
        .when(number >= float(MAX_CHIPS))
        .then(pl.lit(WITHOUT_END))
        .when(whole_domain & (pl.col("#unpublished") > 0))
        .then(pl.lit(UNKNOWN))
        .when(whole_domain)
        .then(pl.lit(ALWAYS))
        .otherwise(pl.lit(FOUND))
    )


def threshold_stages(split: SplitLines) -> list[dict[str, pl.Expr]]:
    """Stages of columns that solve for the largest numbers of chips."""
    bounds: dict[str, pl.Expr] = {}
    for segment in split.segments:
        (math_name,) = split.lines[MATH, segment]
        for name in split.names_of(NON_MATH, segment):
            bounds |= max_chips_within(math_name, name, quadratic=name in split.quadratic_lines)
    wholes = {
        f"#whole:{name}": whole for name, whole in max_chips_by_segment(NON_MATH, split).items()
    }
    against = {
        f"#max_chips:{resource.name}": pl.max_horizontal(
            *max_chips_by_segment([resource], split).values()
        )
        for resource in NON_MATH
    }
    number = pl.col("#number")
    has_largest = number < float(MAX_CHIPS)  # MAX_CHIPS + 1 is MAX_CHIPS in Float64
    limited = has_largest & (pl.col("#next") <= pl.col("#max_chips"))
    times = {resource.bound: time_at(resource, pl.col("#next"), split) for resource in NON_MATH}
    finite = pl.col("#real").is_finite() & (pl.col("outcome") != UNKNOWN)
    return [
        bounds,
        {**wholes, **against},
        {"#number": pl.max_horizontal(*wholes)},
        {"#next": next_chips(), "#real": real_chips(split)},
        {
            **{
                f"critical_{resource.name}": stored_chips(pl.col(f"#max_chips:{resource.name}"))
                for resource in NON_MATH
            },
            "outcome": chips_outcome(number),
            "critical": stored_chips(number),
            "limit": pl.when(limited).then(first_largest(times, TIE_TOLERANCE)),
        },
        {
            "critical_exact": pl.when(finite).then("#real"),
            "limit_intensity": pl.coalesce(
                pl.when(pl.col("limit") == bound).then(ratio)
                for bound, ratio in intensity_limits().items()
            ),
        },
    ]


def all_splits(sweep: Sweep) -> list[OperationCase]:
    """Every dtype combination and split in a sweep, on every chip that has an interconnect."""
    splits = [name for name, scheme in sweep.shardings.items() if scheme.split]
    return [
        OperationCase(block.place, sweep, dtypes, name, (1,))
        for block in sweep.blocks
        if block.place.network
        for dtypes in dict.fromkeys(case.dtypes for case in block.cases)
        for name in splits
    ]


def chips_thresholds(sweep: Sweep) -> Iterator[tuple[Fraction, pl.DataFrame]]:
    """Yield thresholds in the number of chips, in slices, with the share of the attainable peak."""
    along_one_axis = replace(sweep, fastest_axes=False)
    if cases := all_splits(along_one_axis):
        split = SplitLines(cases, along_one_axis)
        stages = threshold_stages(split)
        for share in sweep.shares:
            for frame in split.frames(share, stages):
                yield share, frame
