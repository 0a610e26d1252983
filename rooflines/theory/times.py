"""Times of kernels: sum of max of min of polynomials, nominal or calibrated."""

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
"""Maximum over pieces of the minimum over a piece's polynomials [s]."""

MEMORY_BOUND = "memory"
"""Bound whose time includes activation traffic in serialized times."""

NO_TIME: Pieces = ((ZERO,),)
"""Pieces for zero time."""

TIE_SHARE = 1e-13
"""Largest relative difference between tied times: a time has at most a few dozen roundings, 1.1e-16
each [1]."""

Band = tuple[float, float]
"""Quantiles p10 and p90 of measured / estimated time [1]."""


@dataclass(frozen=True)
class FitRange:
    """Range of a calibration's timings, beyond which bands are wider.

    Attributes:
        sizes: Minimum and maximum sizes timed: for matmuls D and F, for attention S [1], for a
            collective its payload, `bytes` [byte], and chips, `shards` [1].
        out_of_range_band: The band for sizes outside; None: unknown.
        other_engine_band: The band for an engine other than the one timed; None: unknown.
        from_other_engine: Whether the timings come from another engine.
    """

    sizes: Mapping[str, tuple[int, int]]
    out_of_range_band: Band | None = None
    other_engine_band: Band | None = None
    from_other_engine: bool = False


class SizedRange(NamedTuple):
    """Range of a calibration, and the sizes on one chip to estimate, by name."""

    fit_range: FitRange
    sizes: Mapping[str, Poly]


@dataclass(frozen=True, eq=False)
class Time:
    """A time: sum over terms of max over pieces of min over polynomials [s].

    Attributes:
        terms: The terms; proportional ones, which bend at the same sizes, are merged.
    """

    terms: tuple[Pieces, ...] = ()

    @classmethod
    def max_of(cls, *polys: Poly) -> Time:
        """Maximum over polynomials; those that never are the largest are left out."""
        maxima: list[Poly] = []
        for poly in polys:
            if poly and not any(rival.dominates(poly) for rival in maxima):
                maxima = [rival for rival in maxima if not poly.dominates(rival)] + [poly]
        return cls((tuple((poly,) for poly in maxima),)) if maxima else cls()

    @classmethod
    def total(cls, parts: Iterable[tuple[int, Time]]) -> Time:
        """Sum of count * time [s]."""
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
        """This time as one maximum of minima: sums distribute over max and min."""
        if not self.terms:
            return NO_TIME
        if len(self.terms) == 1:
            return self.terms[0]
        return tuple(
            tuple(total(polys) for polys in product(*minima)) for minima in product(*self.terms)
        )

    def at(self, extents: Mapping[str, Fraction | int]) -> Fraction:
        """Exact time at given extents [s]."""
        return sum(
            (
                max(min(poly.at(extents) for poly in minimum) for minimum in term)
                for term in self.terms
            ),
            Fraction(0),
        )


def align_pieces(case_pieces: Sequence[Pieces | None]) -> Iterator[list[list[Poly | None]]]:
    """Align the pieces of several cases.

    Args:
        case_pieces: Pieces by case; None for a case without a time.

    Yields:
        For each piece the polynomials whose minimum counts, each as a list by case: zero for a case
        with fewer pieces, None for a case without a time.
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
    """Key that is equal for proportional pieces."""
    if len(term) == len(term[0]) == 1:
        return "line"
    polys = [poly for minimum in term for poly in minimum]
    values = (value for poly in polys for value in poly.terms.values())
    unit = next((value for value in values if value), Fraction(1))
    return tuple(map(len, term)), tuple(poly / unit for poly in polys)


def _sum_pieces(proportional: list[Pieces]) -> Pieces:
    """Sum of proportional pieces."""
    if len(proportional) == 1:
        return proportional[0]
    return tuple(
        tuple(total(polys) for polys in zip(*minima, strict=True))
        for minima in zip(*proportional, strict=True)
    )


@dataclass(frozen=True)
class Seconds:
    """Exact times at given sizes.

    Attributes:
        by_bound: Time by bound [s].
        activation: Time of activation traffic between kernels, through memory [s].
    """

    by_bound: Mapping[str, Fraction]
    activation: Fraction

    def __getitem__(self, bound: str) -> Fraction:
        """Time of a bound [s]."""
        return self.by_bound[bound]

    @property
    def lower(self) -> Fraction:
        """Lower bound, full overlap: max over bounds, activation traffic left out [s]."""
        return max(self.by_bound.values())

    @property
    def with_activation_traffic(self) -> dict[str, Fraction]:
        """Times by bound, activation traffic included in memory time [s]."""
        return {**self.by_bound, MEMORY_BOUND: self.by_bound[MEMORY_BOUND] + self.activation}

    @property
    def serial(self) -> Fraction:
        """Serialized time of a kernel: max over bounds, activation traffic in memory time [s]."""
        return max(self.with_activation_traffic.values())


@dataclass(frozen=True, eq=False)
class Times:
    """Times of one or several kernels by bound, nominal or calibrated [s].

    Attributes:
        by_bound: Time by bound, in the order that decides ties [s].
        common: Overhead added to the largest time, for any bound [s].
        activation: Time of activation traffic between kernels, through memory [s]: separate from
            memory time in nominal times, included in estimates.
        bands: Bands by bound; a bound without a band is left out.
        ranges: Ranges of an estimate's fits: under "" for the kernel, under the network's bound
            for its only collective, which counts where network time is largest.
    """

    by_bound: Mapping[str, Time]
    common: Poly = ZERO
    activation: Poly = ZERO
    bands: Mapping[str, Band] = field(default_factory=dict)
    ranges: Mapping[str, SizedRange] = field(default_factory=dict)

    @property
    def largest(self) -> Time:
        """Maximum over the times by bound [s]."""
        return Time((tuple(piece for time in self.by_bound.values() for piece in time.pieces),))

    def at(self, extents: Mapping[str, Fraction | int]) -> Seconds:
        """Exact times at given extents [s]."""
        by_bound = {bound: time.at(extents) for bound, time in self.by_bound.items()}
        return Seconds(by_bound, self.activation.at(extents))

    @cached_property
    def with_activation_traffic(self) -> Mapping[str, Time]:
        """Times by bound, activation traffic included in memory time [s]."""
        if not self.activation:
            return self.by_bound
        traffic = Time.total([(1, self.by_bound[MEMORY_BOUND]), (1, Time.max_of(self.activation))])
        return {**self.by_bound, MEMORY_BOUND: traffic}

    @classmethod
    def total(cls, parts: Iterable[tuple[int, Times]]) -> Times:
        """Sums of count * time by bound [s]; never sums of maxima over bounds."""
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
