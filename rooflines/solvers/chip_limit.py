"""The largest number of chips on which a split operation is compute-bound, in closed form.

N times a time is a polynomial in the number of chips N: constant for math, alpha + beta N for
memory, gamma (N - 1) for a collective over links that do not change with N, delta N for hops on a
switch and quadratic for hops along a line or a ring. Where the topology changes with N there are
segments: a torus closes into rings at multiples of a number, and on two levels whole groups are
added. A polynomial goes through three points of the formulas that fill the tables.

On every segment each resource bounds the number of chips from above, so the largest number is a
minimum over resources. It is Float64, rounded down after the bound on its own error is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.dictionary.columns import ALWAYS, FOUND, NEVER, UNKNOWN
from rooflines.dictionary.columns import ENDLESS as WITHOUT_END
from rooflines.evaluation.compiler import Sheet, quotient
from rooflines.solvers.crossover import MOST_SLACK, ROUNDING, TIED, first_largest
from rooflines.sweep.cases import Block
from rooflines.sweep.operation_sweep import OperationCase
from rooflines.theory.network import PAIR, most_chips
from rooflines.theory.poly import ZERO, Poly, constant
from rooflines.theory.resources import MATH, NETWORK, OTHERS, RESOURCES, level_times

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.sweep.operation_sweep import Sweep
    from rooflines.theory.network import Link
    from rooflines.theory.resources import Resource

ENDLESS = 2**53
"""A split that stays compute-bound on this number of chips has no largest number of chips [1]."""

SINGLE, LINE, RING, ODD_RING = "single", "line", "ring", "odd_ring"
"""One chip; several; multiples of a step, on which the topology is another; odd ones of these, of
which the hops around a ring are another polynomial. The later one has a number that is in two."""

SEGMENTS = (SINGLE, LINE, RING, ODD_RING)

POWERS = range(3)
"""Of N in the polynomials."""

Polynomial = tuple[Fraction, ...]
"""Coefficients of these powers."""


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
class ChipNumbers:
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


def numbers_of(links: tuple[Link, ...]) -> ChipNumbers:
    """The numbers of chips that a route over these interconnects may have along one axis."""
    most, published = most_chips(links)
    inner, most = links[0], ENDLESS if most is None else most
    if most == 1:
        return ChipNumbers(most, published, most, 0, 0)
    if len(links) > 1 and inner.domain is not None:
        return ChipNumbers(most, published, min(inner.domain, most), inner.domain, inner.domain)
    ring = inner.ring_multiple or 0 if inner.topology == "torus" else 0
    return ChipNumbers(most, published, min(most, PAIR) if ring == 1 else most, ring, 0)


def through(
    samples: Sequence[int], values: Sequence[Mapping[tuple[str, ...], Fraction]]
) -> dict[tuple[str, ...], Polynomial]:
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


def _quadratic(samples: Sequence[int], polys: Sequence[Poly]) -> list[Poly]:
    """N times a polynomial at some N, by powers of N."""
    terms = through(samples, [poly.coefficients for poly in polys])
    return [
        Poly({dims: each[power] for dims, each in terms.items() if each[power]}) for power in POWERS
    ]


Lines = dict[str, list[Poly]]
"""N times times, by `<resource>:<number>@<segment>`, and works by their name."""


def times_of(case: OperationCase, resource: Resource) -> list[Poly]:
    """Candidates for the time of a resource, the largest of them [s]; one for each network."""
    if resource is not NETWORK:
        return [poly for least in case.times.by[resource.bound].pieces for poly in least]
    (kernel,) = case.kernels
    share = case.machine.efficiency[resource.name]
    levels = [each for sent in kernel.transfers for each in level_times(sent, share)]
    waits = [constant(latency_s) for _, latency_s in levels if latency_s]
    return [*(sending for sending, _ in levels), *waits]


def lines_of(case: OperationCase, segments: Sequence[Segment]) -> Lines:
    """N times every time of a case on every segment, and its works on the last one."""
    found: Lines = {}
    for segment in segments:
        cases = [replace(case, axes=(shards,)) for shards in segment.samples]
        for each in RESOURCES:
            times = zip(*(times_of(one, each) for one in cases), strict=True)
            for number, polys in enumerate(times):
                found[f"{each.name}:{number}@{segment.name}"] = _quadratic(segment.samples, polys)
            if segment is segments[-1]:
                works = [one.work(each.work) for one in cases]
                found[each.work] = _quadratic(segment.samples, works)
    return found


class SplitLines:
    """The lines of all splits of a sweep as columns.

    Args:
        cases: Every dtype combination and split, on every chip that has an interconnect.
        sweep: Their sweep.

    Attributes:
        rows: Cases times points of the sizes [1].
        lines: Names of lines by resource and segment.
        bent: Those that have a square in any case.
    """

    def __init__(self, cases: Sequence[OperationCase], sweep: Sweep) -> None:
        block = Block((), tuple(cases), sweep.size_axes)
        self.rows, self._sheet = block.rows, Sheet([block], inner=len(block.after))
        numbers = [numbers_of(case.place.links) for case in cases]
        segments = [{each.name: each for each in one.segments} for one in numbers]
        pairs = zip(cases, segments, strict=True)
        found = [lines_of(case, [*own.values()]) for case, own in pairs]
        none = ZERO, ZERO, ZERO
        self._columns: dict[str, pl.Expr] = {}
        self.bent = set[str]()
        names = dict.fromkeys(name for lines in found for name in lines)
        for name, power in product(names, POWERS):
            polys = [one.get(name, none)[power] for one in found]
            self._columns[f"#{name}:{power}"] = self._sheet.total(self._sheet.poly(polys))
            if any(polys) and power == POWERS[-1]:
                self.bent.add(name)
        self.segments = [name for name in SEGMENTS if any(name in own for own in segments)]
        self.lines = {
            (each, segment): [
                name
                for name in names
                if name.startswith(f"{each.name}:") and name.endswith(f"@{segment}")
            ]
            for each in RESOURCES
            for segment in self.segments
        }
        for segment in self.segments:
            for part in ("least", "most", "step"):
                self._put(
                    f"{part}_{segment}", [getattr(own.get(segment), part, 0) for own in segments]
                )
        self._put("most", [each.most for each in numbers])
        self._put("group", [each.group for each in numbers])
        self._put("unpublished", [not each.published for each in numbers])

    def _put(self, name: str, values: Iterable[float]) -> None:
        self._sheet.put(f"#{name}", pl.Series(list(map(float, values)), dtype=pl.Float64))

    def of(self, resources: Iterable[Resource], *segments: str) -> list[str]:
        """The names of the lines of resources on segments."""
        return [name for key in product(resources, segments) for name in self.lines[key]]

    def frames(
        self, share: Fraction, stages: Sequence[Mapping[str, pl.Expr]]
    ) -> Iterator[pl.DataFrame]:
        """The lines, those of math over a share of the peak, and further columns, in slices."""
        names = self.of([MATH], *self.segments)
        math = [f"#{name}:{power}" for name in names for power in POWERS]
        shared = {name: quotient(pl.col(name), pl.lit(float(share))) for name in math}
        return self._sheet.slices([self._columns, shared, *stages], self.rows)


# ------------------------------------------------------------ the largest number


def polynomial(name: str) -> list[pl.Expr]:
    """Constant, slope and square of a line at a row's sizes [s]."""
    return [pl.col(f"#{name}:{power}") for power in POWERS]


def most_within(math_name: str, name: str, *, quadratic: bool) -> dict[str, pl.Expr]:
    """Up to which number of chips t_math is at least one line, on a segment.

    It is the larger root of square N^2 + need N = room, from the form that does not cancel.

    Returns:
        `#real:<name>` (below zero: none; infinite: every number), and `#raised:<name>`, the same
        with the bound on its error added [1].
    """
    math0, math1, _ = polynomial(math_name)
    own0, own1, square = polynomial(name)
    room, need = math0 - own0, own1 - math1
    size = math0.abs() + own0.abs()
    if quadratic:
        root = (need * need + 4.0 * square * room.clip(0.0)).sqrt()
        found = (
            pl.when(need > 0)
            .then(quotient(2.0 * room, root + need))
            .when(square > 0)
            .then(quotient(root - need, 2.0 * square))
        )
    else:
        root = need
        found = pl.when(need > 0).then(quotient(room, need)).when(square > 0).then(math.inf)
    real = found.when(room >= -TIED * size).then(math.inf).otherwise(-1.0)
    error = ROUNDING * (8.0 * real.abs() + quotient(size, root))
    raised = pl.when(root > 0).then(real + error.clip(0.0, MOST_SLACK)).otherwise(real)
    return {f"#real:{name}": real, f"#raised:{name}": raised}


def whole_chips(most: pl.Expr, segment: str) -> pl.Expr:
    """The largest number of chips of a segment that is at most a real one [1]; 0: none."""
    least, step = pl.col(f"#least_{segment}"), pl.col(f"#step_{segment}")
    last = pl.min_horizontal(most.clip(-1.0, float(ENDLESS)), f"#most_{segment}").floor()
    joined = (last >= least) & (last >= 1.0)
    return pl.when(joined).then(last - (last - least) % step).otherwise(0.0)


def is_in(chips: pl.Expr, segment: str) -> pl.Expr:
    """Whether a number of chips is one of a segment."""
    least, step = pl.col(f"#least_{segment}"), pl.col(f"#step_{segment}")
    in_step = (chips - least) % step == 0
    return (chips >= least) & (chips <= pl.col(f"#most_{segment}")) & in_step


def largest(resources: Sequence[Resource], split: SplitLines) -> dict[str, pl.Expr]:
    """By segment: the largest joined number of chips that is compute-bound against resources.

    0: not even one; ENDLESS: no largest [1].
    """
    return {
        segment: whole_chips(least_of("raised", split.of(resources, segment)), segment)
        for segment in split.segments
    }


def least_of(part: str, names: Sequence[str]) -> pl.Expr:
    """The least of the columns of several lines; infinite without any."""
    return pl.min_horizontal(f"#{part}:{name}" for name in names) if names else pl.lit(math.inf)


def real_chips(split: SplitLines) -> pl.Expr:
    """The real number of chips behind `#number`, by `#whole:<segment>` [1]."""
    reals = {segment: least_of("real", split.of(OTHERS, segment)) for segment in split.segments}
    number, real = pl.col("#number"), reals.get(LINE, reals[SINGLE])
    for segment in {RING, ODD_RING} & reals.keys():
        here = pl.col(f"#whole:{segment}") == number
        real = pl.when(here).then(reals[segment]).otherwise(real)
    return pl.when(number > 0).then(pl.max_horizontal(real, 1.0))


def time_at(resource: Resource, shards: pl.Expr, split: SplitLines) -> pl.Expr:
    """N times a resource's time at N [s]."""
    time = pl.lit(0.0)
    for segment in split.segments:
        lines = map(polynomial, split.lines[resource, segment])
        times = [c0 + shards * (c1 + shards * c2) for c0, c1, c2 in lines]
        here = pl.max_horizontal(times) if times else pl.lit(0.0)
        time = pl.when(is_in(shards, segment)).then(here).otherwise(time)
    return time


def next_chips() -> pl.Expr:
    """The next number of chips that may be joined, after `#number` [1]."""
    number, group = pl.col("#number"), pl.col("#group")
    in_groups = (group > 0) & (number >= group)
    return pl.when(in_groups).then(number - number % group + group).otherwise(number + 1.0)


def intensity_limits() -> dict[str, pl.Expr]:
    """By bound: what the intensity against a resource tends to as N grows [FLOP/byte].

    A constant work that limits is non-zero; FLOPs always scale as 1/N.
    """
    tends = {}
    for resource in OTHERS:
        fixed, slope, _ = polynomial(resource.work)
        ratio = quotient(pl.col(f"#{MATH.work}:0"), fixed)
        tends[resource.bound] = pl.when(slope > 0).then(0.0).otherwise(ratio)
    return tends


def stored_chips(number: pl.Expr) -> pl.Expr:
    """A number of chips as the table has it [1]; null: not even one, no largest, or unknown."""
    return pl.when(chips_outcome(number).is_in([FOUND, ALWAYS])).then(number.cast(pl.Int64))


def chips_outcome(number: pl.Expr) -> pl.Expr:
    """What a largest number of chips is: one of `columns.OUTCOMES`."""
    whole_domain = number >= pl.col("#most")
    return (
        pl.when(number < 1)
        .then(pl.lit(NEVER))
        .when(number >= float(ENDLESS))
        .then(pl.lit(WITHOUT_END))
        .when(whole_domain & (pl.col("#unpublished") > 0))
        .then(pl.lit(UNKNOWN))
        .when(whole_domain)
        .then(pl.lit(ALWAYS))
        .otherwise(pl.lit(FOUND))
    )


def solution(split: SplitLines) -> list[dict[str, pl.Expr]]:
    """The largest numbers of chips, as stages of columns."""
    bounds: dict[str, pl.Expr] = {}
    for segment in split.segments:
        (math_name,) = split.lines[MATH, segment]
        for name in split.of(OTHERS, segment):
            bounds |= most_within(math_name, name, quadratic=name in split.bent)
    wholes = {f"#whole:{name}": whole for name, whole in largest(OTHERS, split).items()}
    against = {
        f"#most:{each.name}": pl.max_horizontal(*largest([each], split).values()) for each in OTHERS
    }
    number = pl.col("#number")
    has_largest = number < float(ENDLESS)  # ENDLESS + 1 is ENDLESS in Float64
    limited = has_largest & (pl.col("#next") <= pl.col("#most"))
    times = {each.bound: time_at(each, pl.col("#next"), split) for each in OTHERS}
    finite = pl.col("#real").is_finite() & (pl.col("outcome") != UNKNOWN)
    return [
        bounds,
        {**wholes, **against},
        {"#number": pl.max_horizontal(*wholes)},
        {"#next": next_chips(), "#real": real_chips(split)},
        {
            **{
                f"critical_{each.name}": stored_chips(pl.col(f"#most:{each.name}"))
                for each in OTHERS
            },
            "outcome": chips_outcome(number),
            "critical": stored_chips(number),
            "limit": pl.when(limited).then(first_largest(times, TIED)),
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
    """Every dtype combination and split of a sweep, on every chip that has an interconnect."""
    splits = [name for name, scheme in sweep.shardings.items() if scheme.split]
    return [
        OperationCase(block.place, sweep, dtypes, name, (1,))
        for block in sweep.blocks
        if block.place.network
        for dtypes in dict.fromkeys(case.dtypes for case in block.cases)
        for name in splits
    ]


def chips_thresholds(sweep: Sweep) -> Iterator[tuple[Fraction, pl.DataFrame]]:
    """Thresholds in the number of chips, in slices, with their shares of the attainable peak."""
    along_one_axis = replace(sweep, fastest_axes=False)
    if cases := all_splits(along_one_axis):
        split = SplitLines(cases, along_one_axis)
        stages = solution(split)
        for share in sweep.shares:
            for frame in split.frames(share, stages):
                yield share, frame
