"""Exact pieces of the estimates of a case in whole multiples of a unit of time, along B.

With S and T fixed, a piece of a kernel grows linearly with B and with the rows that are computed in
whole tiles, except for the experts that the tokens use. Of the pieces of one bound the largest
counts, and a piece of the network is the least of several lines.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Self

from rooflines.fits.quantities import whole_tiles
from rooflines.models.cache import entries_moved, pairs
from rooflines.models.groups import ONCE, TOUCHED
from rooflines.serving.kernels import IN_TILES, named
from rooflines.serving.lines import experts_used

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from fractions import Fraction

    from rooflines.fits.estimate import Estimate, Sum
    from rooflines.models.groups import Terms
    from rooflines.serving.case import Case
    from rooflines.serving.kernels import Kernel
    from rooflines.serving.lines import Experts, Whole

Pieces = list[list["Terms"]]
"""Pieces of one bound of a kernel: the largest counts, of each the least of its sums."""

LeastLines = tuple[tuple["Line", ...], ...]
"""The same as lines."""


class Rows(NamedTuple):
    """Rows that are computed in whole spans.

    Attributes:
        each: Rows of a sequence [1].
        span: Rows that are computed together, over all replicas [1].
    """

    each: int
    span: int

    def counted(self, batch: int) -> int:
        """Rows that are computed of a batch [1]."""
        return whole_tiles(self.each * batch, self.span)

    @property
    def period(self) -> int:
        """The fewest sequences whose rows are whole spans [1]."""
        return self.span // math.gcd(self.each, self.span)


class Line(NamedTuple):
    """A time along B [unit].

    Attributes:
        constant: At every batch.
        slope: Per sequence.
        counted: Per counted row, of each kind of rows.
        expert: Per expert that the tokens use, besides those of every batch.
    """

    constant: int
    slope: int
    counted: tuple[int, ...]
    expert: int = 0

    def at(self, batch: int, counted: Iterable[int]) -> int:
        """The time, without experts [unit]."""
        time = self.constant + self.slope * batch
        for per, rows in zip(self.counted, counted, strict=True):
            time += per * rows
        return time

    def end(self, rows: Iterable[Rows]) -> tuple[int, int]:
        """What a sequence adds, rows on average, and the constant [unit]."""
        each = (per * kind.each for per, kind in zip(self.counted, rows, strict=True))
        return self.slope + sum(each), self.constant


class Curve(NamedTuple):
    """The times of one bound in all kernels, along B.

    Attributes:
        line: Of the kernels with one line.
        bent: The pieces of each of the others.
    """

    line: Line
    bent: tuple[LeastLines, ...] = ()

    def at(self, batch: int, counted: tuple[int, ...]) -> int:
        """The time, without experts [unit]."""
        return self.line.at(batch, counted) + sum(
            max(min(line.at(batch, counted) for line in least) for least in pieces)
            for pieces in self.bent
        )

    def end(self, rows: tuple[Rows, ...]) -> tuple[int, int]:
        """What a sequence adds to a large batch, rows on average, and the constant [unit]."""
        ends = [
            max(min(line.end(rows) for line in least) for least in pieces) for pieces in self.bent
        ]
        slopes, constants = zip(self.line.end(rows), *ends, strict=True)
        return sum(slopes), sum(constants)


@dataclass(frozen=True)
class CalibratedStep:
    """The pieces of a step with S and T fixed.

    Attributes:
        rows: The kinds of rows that are computed in whole spans.
        curves: The times of every bound.
        experts: The experts; None where their number does not depend on the batch.
    """

    rows: tuple[Rows, ...]
    curves: Mapping[str, Curve]
    experts: Experts | None

    @cached_property
    def period(self) -> int:
        """The fewest sequences whose rows of every kind are whole spans [1]."""
        return math.lcm(*(kind.period for kind in self.rows))

    def time(self, curve: Curve, batch: int) -> int | Fraction:
        """The time of a bound in all kernels [unit]."""
        time = curve.at(batch, tuple(kind.counted(batch) for kind in self.rows))
        if self.experts is None or not curve.line.expert:
            return time
        return time + curve.line.expert * self.experts.touched(batch)


class WholePieces(NamedTuple):
    """The pieces of one bound in all kernels, by extents [unit].

    Attributes:
        total: The sum over the kernels with one piece of one sum.
        others: The pieces of each of the others.
    """

    total: Whole
    others: list[list[list[Whole]]]

    def curve(self, line: Callable[[Whole], Line]) -> Curve:
        """The times along B.

        Args:
            line: The line of a sum.
        """
        bent = (tuple(tuple(map(line, least)) for least in pieces) for pieces in self.others)
        return Curve(line(self.total), tuple(bent))


@dataclass(frozen=True)
class CalibratedLines:
    """The calibrated pieces of a case at all its sizes.

    Attributes:
        case: The case.
        estimates: The calibrated times of its kernels.
    """

    case: Case
    estimates: tuple[Estimate, ...]

    @classmethod
    def of(cls, case: Case) -> Self | None:
        """Those of a case; None without a calibration of every kernel."""
        estimates = tuple(each for each in case.estimates if each is not None)
        return cls(case, estimates) if len(estimates) == len(case.kernels) else None

    @cached_property
    def pieces(self) -> Mapping[str, list[Pieces]]:
        """The pieces of every bound in the kernels that have any, all layers [s]."""
        found: dict[str, list[Pieces]] = {}
        for kernel, estimate in zip(self.case.kernels, self.estimates, strict=True):
            own: dict[str, Pieces] = {}
            for piece in estimate.pieces:
                least = [_of_layers(kernel, each) for each in piece.least]
                own.setdefault(piece.bound, []).append(least)
            for bound, pieces in own.items():
                found.setdefault(bound, []).append(pieces)
        return found

    @cached_property
    def per_s(self) -> int:
        """Units of time in a second: the least number that makes all coefficients whole [1/s]."""
        terms = _sums(chain.from_iterable(self.pieces.values()))
        return math.lcm(*(part.denominator for each in terms for part in each.values()))

    @cached_property
    def spans(self) -> tuple[tuple[str, int], ...]:
        """The extents that are counted in whole spans: their kind, of `IN_TILES`, and span [1]."""
        terms = _sums(chain.from_iterable(self.pieces.values()))
        dims = dict.fromkeys(dim for each in terms for product in each for dim in product)
        parts = (dim.partition(":") for dim in dims)
        return tuple((kind, int(span)) for kind, _, span in parts if kind in IN_TILES)

    @cached_property
    def whole_pieces(self) -> Mapping[str, WholePieces]:
        """The pieces of every bound [unit]."""
        return {bound: self._whole_pieces(kernels) for bound, kernels in self.pieces.items()}

    def _whole_pieces(self, kernels: Sequence[Pieces]) -> WholePieces:
        def whole(terms: Terms) -> Whole:
            return {dims: int(seconds * self.per_s) for dims, seconds in terms.items()}

        total: Counter[tuple[str, ...]] = Counter()
        for terms in _sums(pieces for pieces in kernels if _is_line(pieces)):
            total.update(whole(terms))
        others = [pieces for pieces in kernels if not _is_line(pieces)]
        return WholePieces(
            total, [[list(map(whole, least)) for least in pieces] for pieces in others]
        )

    def at(self, context: int, new: int = 1) -> CalibratedStep:
        """The pieces of a step.

        Args:
            context: S, tokens of each sequence after the step; in prefill the prompt [1].
            new: T, new tokens of each; in prefill all are new [1].
        """
        step = self.case.step(1, context, new)
        extents = {"B": 1, "T": step.T}
        for _, window in self.case.model.shape.windows:
            of = window or ""
            extents[f"pairs:{of}"] = pairs(step.S, step.T, window)
            extents[f"entries:{of}"] = entries_moved(step.S, step.T, window)
        fewest, experts = experts_used(self.case.kernels, step)
        names = [f"{kind}:{span}" for kind, span in self.spans]

        def line(terms: Whole) -> Line:
            expert = terms.get(TOUCHED, 0)
            growing = {dims: per for dims, per in terms.items() if "B" in dims}
            return Line(
                terms.get(ONCE, 0) + fewest * expert,
                sum(per * _product(dims, extents) for dims, per in growing.items()),
                tuple(terms.get((name,), 0) for name in names),
                0 if fewest else expert,
            )

        return CalibratedStep(
            tuple(Rows(_product(IN_TILES[kind], extents), span) for kind, span in self.spans),
            {bound: pieces.curve(line) for bound, pieces in self.whole_pieces.items()},
            experts,
        )


def _of_layers(kernel: Kernel, total: Sum) -> Terms:
    """A sum of an estimate in all layers; extents name their window [s]."""
    terms = named(kernel, dict(total.plain))
    return {dims: kernel.group.count * seconds for dims, seconds in terms.items()}


def _sums(kernels: Iterable[Pieces]) -> Iterator[Terms]:
    """All sums of the pieces of kernels."""
    return (terms for pieces in kernels for least in pieces for terms in least)


def _is_line(pieces: Pieces) -> bool:
    """Whether there is one sum."""
    return sum(map(len, pieces)) == 1


def _product(dims: Iterable[str], extents: Mapping[str, int]) -> int:
    return math.prod([extents[dim] for dim in dims])
