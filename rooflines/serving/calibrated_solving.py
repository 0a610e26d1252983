"""Critical batches and context ceilings of a case by estimate, exact.

A step is compute-bound by estimate where compute takes at least as long as every other bound. The
time of a bound is a sum over the kernels, of the largest piece of that bound in each. No time falls
as B grows.

In a period, `CalibratedStep.period`, all rows grow by whole tiles. From period to period compute is
convex, memory and mixed are concave. So if no batch of the first period is compute-bound against
one of them, none is unless compute gains in the long run. If it does, the batch a period after a
compute-bound one is compute-bound too, and the first such period is found by bisection. The network
is a straight line between the batches at which another of its lines counts.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import combinations, pairwise
from math import ceil
from typing import TYPE_CHECKING

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.fits.critical import COMPUTE
from rooflines.model.columns import ALWAYS, BEYOND, FOUND, NEVER
from rooflines.serving.calibrated_lines import Curve, Line
from rooflines.serving.solving import MEMORY, NETWORK, Growth, Solution, first, largest_context

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooflines.serving.calibrated_lines import CalibratedLines, CalibratedStep


@dataclass(frozen=True)
class Race:
    """Compute against other bounds along B.

    Attributes:
        step: The pieces of the step.
        others: The times of the other bounds: concave, but for counted rows.
    """

    step: CalibratedStep
    others: tuple[Curve, ...]

    def compute_at(self, batch: int) -> int | Fraction:
        """The time of compute [unit]."""
        return self.step.time(self.step.curves[COMPUTE], batch)

    def other_at(self, batch: int) -> int | Fraction:
        """The largest time of the other bounds [unit]."""
        return max(self.step.time(other, batch) for other in self.others)

    @property
    def gains_at_last(self) -> bool:
        """Whether compute gains on the other bounds in the long run."""
        rows = self.step.rows
        fastest = max(other.end(rows)[0] for other in self.others)
        return self.step.curves[COMPUTE].end(rows)[0] > fastest

    def first_of_period(self, start: int) -> int | None:
        """The first batch of the period from `start` on at which compute is no less; or None."""
        last = start + self.step.period - 1
        most = self.compute_at(last)
        while (needed := self.other_at(start)) <= most:
            if self.compute_at(start) >= needed:
                return start
            later = range(start + 1, last + 1)
            start = later[bisect_left(later, needed, key=self.compute_at)]
        return None

    def first(self, start: int) -> int | None:
        """The first batch from `start` on at which compute is no less; None: there is none.

        A batch of `LARGEST_COUNT` or more need not be the first.
        """
        found = self.first_of_period(start)
        if found is not None or not self.gains_at_last:
            return found
        period = self.step.period

        def good(number: int) -> bool:
            return self.first_of_period(start + number * period) is not None

        begin = start + first(good, 1) * period
        return self.first_of_period(begin) or begin


def critical_batch_estimate(step: CalibratedStep, replicas: int) -> Solution:
    """The smallest batch that is compute-bound by estimate.

    Args:
        step: The pieces of the step.
        replicas: dp: no batch is smaller [1].
    """
    searches: list[Callable[[int], int | None]] = [
        partial(first_before_network, step) if bound == NETWORK else Race(step, (curve,)).first
        for bound, curve in step.curves.items()
        if bound != COMPUTE
    ]
    batch, before = replicas, 0
    while before < min(batch, LARGEST_COUNT):
        before = batch
        for search in searches:
            found = search(batch)
            if found is None:
                return Solution(NEVER)
            batch = found
        lasting = Race(step, tuple(lasting_bounds(step, batch)))
        if lasting.others and lasting.first_of_period(batch) is None:
            return Solution(NEVER)
    if batch >= LARGEST_COUNT:
        return Solution(BEYOND)
    return Solution(ALWAYS if batch == replicas else FOUND, whole=batch)


def lasting_bounds(step: CalibratedStep, batch: int) -> Iterator[Curve]:
    """The bounds on which compute gains in no period from a batch on.

    A batch can only be compute-bound against them if the one a period before is.
    """
    for bound, curve in step.curves.items():
        if bound != COMPUTE and not Race(step, (curve,)).gains_at_last:
            straight = bound != NETWORK or len(list(stretches(curve, batch))) == 1
            if straight:
                yield curve


def first_before_network(step: CalibratedStep, start: int) -> int | None:
    """The first batch from `start` on at which compute takes no less than the network, or None."""
    for begin, end, line in stretches(step.curves[NETWORK], start):
        race = Race(step, (Curve(line),))
        if end is None or race.compute_at(end) >= race.other_at(begin):
            found = race.first(begin)
            if end is None or (found is not None and found <= end):
                return found
    return None


def stretches(network: Curve, start: int) -> Iterator[tuple[int, int | None, Line]]:
    """The straight lines of the network along B, from `start` on.

    Yields:
        The first batch, the last one (None: without end), and the line.
    """
    begins = {start}
    for pieces in network.bent:
        lines = {line for least in pieces for line in least}
        for one, other in combinations(lines, 2):
            if one.slope != other.slope:
                at = Fraction(other.constant - one.constant, one.slope - other.slope)
                begins.add(max(ceil(at), start))
    ordered = sorted(begins)
    for begin, after in pairwise(ordered):
        yield begin, after - 1, line_from(network, begin)
    yield ordered[-1], None, line_from(network, ordered[-1])


def line_from(network: Curve, begin: int) -> Line:
    """The straight line of the network from a batch on."""

    def following(line: Line) -> tuple[int, int]:
        return line.constant + line.slope * begin, line.slope

    found = [
        max((min(least, key=following) for least in pieces), key=following)
        for pieces in network.bent
    ]
    return Line(
        sum(line.constant for line in found) + network.line.constant,
        sum(line.slope for line in found) + network.line.slope,
        network.line.counted,
    )


def context_ceiling_estimate(lines: CalibratedLines, new: int) -> Solution:
    """The largest context at which some large batch of a decode step is compute-bound by estimate.

    Rows count by the average of whole tiles.

    Args:
        lines: The pieces of the case.
        new: T, new tokens of each sequence: no context is smaller [1].
    """

    def growth(context: int) -> Growth:
        step = lines.at(context, new)
        ends = {bound: curve.end(step.rows) for bound, curve in step.curves.items()}
        math, start = ends.pop(COMPUTE)
        memory, _ = ends.pop(MEMORY)
        least = max((slope + (constant > start) for slope, constant in ends.values()), default=0)
        return Growth(math, memory, least)

    return largest_context(growth, lines.case.model.shape, new)
