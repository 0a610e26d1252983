"""Times of kernels: sums of maxima of minima of polynomials, nominal or by a calibration."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from rooflines.theory.poly import ZERO, Poly, total

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

Pieces = tuple[tuple[Poly, ...], ...]
"""A maximum of minima: of each piece the least of its polynomials counts, of these the largest
[s]."""

MEMORY_BOUND = "memory"
"""The bound whose time kernels also spend on what they hand each other."""

NO_TIME: Pieces = ((ZERO,),)
"""Pieces of a time of zero."""

Band = tuple[float, float]
"""The p10 and p90 of measured over estimated time [1]."""


@dataclass(frozen=True)
class FitRange:
    """How far a calibration reaches: beyond it bands are wider.

    Attributes:
        sizes: The smallest and the largest sizes of its timings: of matmuls D and F, of attention
            S [1], of a collective its payload, `bytes` [byte], and its chips, `shards` [1].
        out_of_range_band: The band of other sizes; None: not known.
        other_engine_band: The band where another engine was timed; None: not known.
        from_other_engine: Whether another engine was timed than the one in question.
    """

    sizes: Mapping[str, tuple[int, int]]
    out_of_range_band: Band | None = None
    other_engine_band: Band | None = None
    from_other_engine: bool = False


class SizedRange(NamedTuple):
    """How far a calibration reaches, and the sizes on one chip that it is asked for, by name."""

    fit_range: FitRange
    sizes: Mapping[str, Poly]


@dataclass(frozen=True, eq=False)
class Time:
    """A time: a sum of maxima of minima.

    Attributes:
        terms: Those that bend at the same sizes are one.
    """

    terms: tuple[Pieces, ...] = ()

    @classmethod
    def max_of(cls, *polys: Poly) -> Time:
        """The largest of polynomials; those that never are the largest are left out."""
        maxima: list[Poly] = []
        for poly in polys:
            if poly and not any(other_poly.dominates(poly) for other_poly in maxima):
                maxima = [other_poly for other_poly in maxima if not poly.dominates(other_poly)] + [
                    poly
                ]
        return cls((tuple((other_poly,) for other_poly in maxima),)) if maxima else cls()

    @classmethod
    def total(cls, parts: Iterable[tuple[int, Time]]) -> Time:
        """The sum of times, each a number of times."""
        scaled = [
            tuple(tuple(poly * count for poly in minimum) for minimum in term)
            for count, part in parts
            for term in part.terms
        ]
        if len(scaled) == 1:
            return cls(tuple(scaled))
        proportional: dict[object, list[Pieces]] = {}
        for term in scaled:
            proportional.setdefault(_proportionality_key(term), []).append(term)
        return cls(tuple(map(_sum_pieces, proportional.values())))

    @property
    def pieces(self) -> Pieces:
        """The same as one maximum of minima: a sum of these is one of these too."""
        if not self.terms:
            return NO_TIME
        if len(self.terms) == 1:
            return self.terms[0]
        return tuple(
            tuple(total(polys) for polys in product(*minima)) for minima in product(*self.terms)
        )

    def at(self, extents: Mapping[str, Fraction | int]) -> Fraction:
        """The exact time at these extents [s]."""
        return sum(
            (
                max(min(poly.at(extents) for poly in minimum) for minimum in term)
                for term in self.terms
            ),
            Fraction(0),
        )


def align_pieces(case_pieces: Sequence[Pieces | None]) -> Iterator[list[list[Poly | None]]]:
    """The pieces of several cases next to each other.

    Args:
        case_pieces: The pieces of every case; None where it has no time.

    Yields:
        For each piece the polynomials of which the least counts, each as a list by case: zero where
        a case has fewer pieces, None where it has no time.
    """
    present = [pieces for pieces in case_pieces if pieces is not None]
    for index in range(max(map(len, present), default=0)):
        minima = [
            None if pieces is None else pieces[index] if index < len(pieces) else NO_TIME[0]
            for pieces in case_pieces
        ]
        width = max(len(minimum) for minimum in minima if minimum is not None)
        yield [
            [None if minimum is None else minimum[min(n, len(minimum) - 1)] for minimum in minima]
            for n in range(width)
        ]


def _proportionality_key(term: Pieces) -> object:
    """A key that is the same for pieces that are multiples of each other."""
    if len(term) == len(term[0]) == 1:
        return "line"
    coefficients = [poly.coefficients for minimum in term for poly in minimum]
    values = (value for terms in coefficients for value in terms.values())
    unit = next((value for value in values if value), Fraction(1))
    scaled = (frozenset((key, terms[key] / unit) for key in terms) for terms in coefficients)
    return tuple(map(len, term)), tuple(scaled)


def _sum_pieces(proportional: list[Pieces]) -> Pieces:
    """The sum of pieces that are multiples of each other."""
    if len(proportional) == 1:
        return proportional[0]
    return tuple(
        tuple(total(polys) for polys in zip(*minima, strict=True))
        for minima in zip(*proportional, strict=True)
    )


@dataclass(frozen=True)
class Seconds:
    """Exact times at some sizes.

    Attributes:
        by_bound: By bound [s].
        activation: Of what kernels hand each other through memory [s].
    """

    by_bound: Mapping[str, Fraction]
    activation: Fraction

    def __getitem__(self, bound: str) -> Fraction:
        """The time of a bound [s]."""
        return self.by_bound[bound]

    @property
    def lower(self) -> Fraction:
        """With full overlap, activations left out [s]."""
        return max(self.by_bound.values())

    @property
    def with_activation_traffic(self) -> dict[str, Fraction]:
        """The times by bound, with what kernels hand over as part of memory traffic [s]."""
        return {**self.by_bound, MEMORY_BOUND: self.by_bound[MEMORY_BOUND] + self.activation}

    @property
    def serial(self) -> Fraction:
        """Of one kernel after another: resources overlap within a kernel [s]."""
        return max(self.with_activation_traffic.values())


@dataclass(frozen=True, eq=False)
class Times:
    """The times of one or several kernels by bound, nominal or by a calibration.

    Attributes:
        by_bound: The time of every bound, in the order that decides ties.
        common: Added to the largest of them, whatever the bound [s].
        activation: Of what kernels hand each other through memory [s]. Nominal times have it apart
            from those of memory, estimates in them.
        bands: Bands by bound; a bound without one is left out.
        ranges: How far the fits of an estimate reach: under "" that of the kernel, under the bound
            of networks that of its only collective, which counts where that is the largest.
    """

    by_bound: Mapping[str, Time]
    common: Poly = ZERO
    activation: Poly = ZERO
    bands: Mapping[str, Band] = field(default_factory=dict)
    ranges: Mapping[str, SizedRange] = field(default_factory=dict)

    @property
    def largest(self) -> Time:
        """The largest of the times of all bounds [s]."""
        return Time((tuple(piece for time in self.by_bound.values() for piece in time.pieces),))

    def at(self, extents: Mapping[str, Fraction | int]) -> Seconds:
        """The exact times at these extents."""
        by_bound = {bound: time.at(extents) for bound, time in self.by_bound.items()}
        return Seconds(by_bound, self.activation.at(extents))

    @cached_property
    def with_activation_traffic(self) -> Mapping[str, Time]:
        """The times by bound, with what kernels hand over as part of memory traffic [s]."""
        if not self.activation:
            return self.by_bound
        traffic = Time.total([(1, self.by_bound[MEMORY_BOUND]), (1, Time.max_of(self.activation))])
        return {**self.by_bound, MEMORY_BOUND: traffic}

    @classmethod
    def total(cls, parts: Iterable[tuple[int, Times]]) -> Times:
        """The sums by bound, each a number of times: no sum of the largest ones."""
        counted_times = list(parts)
        bounds = dict.fromkeys(bound for _, times in counted_times for bound in times.by_bound)
        no_time = Time()
        return cls(
            {
                bound: Time.total(
                    (count, times.by_bound.get(bound, no_time)) for count, times in counted_times
                )
                for bound in bounds
            },
            total(times.common * count for count, times in counted_times),
            total(times.activation * count for count, times in counted_times),
        )
