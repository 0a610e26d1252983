"""The batch and the context at which the estimate of a step attains 90 % of its own plateau.

An estimate is a sum over the kernels, of the largest piece of each. With S and T fixed, a piece
grows linearly with B and with the rows that are computed in whole spans, and is concave in the
experts that tokens use. So B over the time never falls, but where a span begins. The batch is
found for spans that are all full first: no smaller one attains as much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.critical.batches import Experts, experts_at, extents_at, first
from rooflines.critical.saturation import ATTAINED, ERROR
from rooflines.model.poly import TOUCHED, sizes_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.model.poly import Poly
    from rooflines.model.times import Times
    from rooflines.sweep.steps import StepCase

FAR = 2**80
"""A context so large that only the fastest growing term counts [1]."""


class Spans(NamedTuple):
    """Rows that are computed in whole spans.

    Attributes:
        rows: Of a sequence [1].
        span: Rows that are computed together [1].
    """

    rows: int
    span: int

    def full(self, batch: float) -> float:
        """Spans of a batch, if all are full [1]."""
        return self.rows * batch / self.span

    def whole(self, batch: float) -> float:
        """Whole spans of a batch [1]."""
        return float(-(-self.rows * int(batch) // self.span))

    def last(self, batch: int) -> int:
        """The largest batch that needs no more spans [1]."""
        return -(-self.rows * batch // self.span) * self.span // self.rows


class Piece(NamedTuple):
    """A time along B, of all layers of a kernel [s].

    Attributes:
        constant: At every batch.
        slope: Per sequence.
        expert: Per expert that tokens use.
        counted: Per whole span, by the name of the extent.
    """

    constant: float
    slope: float
    expert: float
    counted: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class StepEstimate:
    """The estimate of a step along B.

    Attributes:
        kernels: For each kernel what is common to its pieces, and the pieces: of each the least
            counts.
        spans: The rows that are computed in whole spans, by the name of the extent.
        experts: The experts.
    """

    kernels: Sequence[tuple[Piece, Sequence[Sequence[Piece]]]]
    spans: Mapping[str, Spans]
    experts: Experts

    def _sum(self, value: Callable[[Piece], float]) -> float:
        return sum(
            value(common) + max(min(map(value, least)) for least in pieces)
            for common, pieces in self.kernels
        )

    def at(self, batch: float, *, whole: bool = True) -> float:
        """The time of a batch [s].

        Args:
            batch: B [1].
            whole: Whether spans are whole; else all are full.
        """
        touched, kind = self.experts.touched(batch), Spans.whole if whole else Spans.full
        spans = {name: kind(each, batch) for name, each in self.spans.items()}

        def value(piece: Piece) -> float:
            time = piece.constant + piece.slope * batch + piece.expert * touched
            return time + sum(per * spans[name] for name, per in piece.counted)

        return self._sum(value)

    @cached_property
    def slope(self) -> float:
        """What a sequence adds to a large batch, if all spans are full [s]."""
        spans = {name: each.full(1.0) for name, each in self.spans.items()}
        return self._sum(
            lambda piece: piece.slope + sum(per * spans[n] for n, per in piece.counted)
        )

    def attains(self, batch: float, *, whole: bool = True) -> bool:
        """Whether a batch attains 90 % of the plateau."""
        return self.at(batch, whole=whole) <= self.slope * batch / ATTAINED * (1.0 + ERROR)

    def saturates(self, replicas: int) -> int | None:
        """The smallest batch that attains 90 % of the plateau [1]; None: 2^62 or more.

        Args:
            replicas: dp: no batch is smaller [1].
        """
        full = partial(self.attains, whole=False)
        if not full(LARGEST_COUNT - 1):
            return None
        batch, guess = replicas, 1.0
        for _ in range(2):  # what is not proportional to the batch may be nine times as much
            lead = self.at(guess, whole=False) - self.slope * guess
            guess = max(lead * ATTAINED / (1.0 - ATTAINED) / self.slope, 1.0)
        batch = first(full, replicas, LARGEST_COUNT, guess)
        while True:  # ends with the first batch of full spans
            last = min((each.last(batch) for each in self.spans.values()), default=batch)
            if self.attains(last):
                return first(self.attains, batch, last)
            batch = last + 1


class CaseEstimates:
    """The estimates of a case at all its contexts.

    Args:
        case: The case.
        times: The calibrated times of its kernels.
    """

    def __init__(self, case: StepCase, times: Sequence[Times]) -> None:
        self._case = case
        self._kernels = [
            (
                kernel.count,
                each.common,
                [least for time in each.by.values() for least in time.pieces],
            )
            for kernel, each in zip(case.kernels, times, strict=True)
        ]

    @classmethod
    def of(cls, case: StepCase) -> CaseEstimates | None:
        """Those of a case; None where a kernel has no calibration."""
        known = [times for times in case.kernel_estimates if times is not None]
        return cls(case, known) if len(known) == len(case.kernels) else None

    @cached_property
    def _polys(self) -> list[Poly]:
        found = [common for _, common, _ in self._kernels]
        return found + [p for *_, pieces in self._kernels for least in pieces for p in least]

    @cached_property
    def _counted(self) -> set[str]:
        """The extents that are counted in whole spans."""
        names = {name for poly in self._polys for product in poly.terms for name in product}
        return {name for name in names if "/" in name and not name.startswith(TOUCHED)}

    def at(self, context: int, new: int) -> StepEstimate:
        """The estimate of a step with S and T fixed."""
        extents = extents_at(self._case.model.shape, context, new)
        spans = {}
        for name in self._counted:
            sizes, _, span = name.partition("/")
            rows = math.prod(extents[size] for size in sizes.split("*") if size != "B")
            spans[name] = Spans(rows, int(span))
        kernels = [
            (
                piece_of(common, count, extents),
                [[piece_of(poly, count, extents) for poly in least] for least in pieces],
            )
            for count, common, pieces in self._kernels
        ]
        return StepEstimate(kernels, spans, experts_at(self._polys, new))

    def saturating_context(self, new: int) -> int | None:
        """The smallest context at which a large batch attains 90 % of the plateau along S [1].

        Args:
            new: T, new tokens of a sequence: no context is smaller [1].

        Returns:
            None where what a sequence adds does not grow with its context, or for 2^62 or more.
        """
        slope = (self.at(2 * FAR, new).slope - self.at(FAR, new).slope) / FAR
        if slope <= 0:
            return None

        def attains(context: int) -> bool:
            return self.at(context, new).slope <= slope * context / ATTAINED * (1.0 + ERROR)

        if not attains(LARGEST_COUNT - 1):
            return None
        windows = [window for _, window in self._case.model.shape.windows if window is not None]
        far = max(windows, default=0) + new
        lead = self.at(far, new).slope - slope * far
        guess = lead * ATTAINED / (1.0 - ATTAINED) / slope
        return first(attains, new, LARGEST_COUNT, max(guess, 1.0))


def piece_of(poly: Poly, count: int, extents: Mapping[str, int]) -> Piece:
    """A polynomial along B, times a number of layers, at the extents of one sequence."""
    constant = slope = expert = 0.0
    counted = []
    for product, coefficient in poly.terms.items():
        value, along = float(coefficient * poly.scale) * count, ""
        for name in product:
            if "B" in sizes_of(name):
                along = name
            else:
                value *= extents[name]
        if not along:
            constant += value
        elif along == "B":
            slope += value
        elif along.startswith(TOUCHED):
            expert += value
        else:
            counted.append((along, value))
    return Piece(constant, slope, expert, tuple(counted))
