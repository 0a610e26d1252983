"""Critical batches, batches within a time and context ceilings of a case, exact.

With S and T fixed, t_math = m B. t_memory = w + c B + e touched(B) is concave, as the number of
experts touched is, and positive at 0: t_math overtakes it once if m > c, else never. t_network =
max(s B, l), since collectives overlap: t_math never reaches it if s > m, else from l / m on. From
the larger of the two batches on, every batch is compute-bound.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.model.columns import ALWAYS, BEYOND, ENDLESS, FOUND, NEVER
from rooflines.model.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflines.models.shape import Shape
    from rooflines.serving.lines import CaseLines, Experts, Lines, StepLines

BOUNDS = {resource.name: resource.bound for resource in RESOURCES}
MEMORY, NETWORK = BOUNDS["memory"], BOUNDS["network"]

ROUNDED = 2.0**-52
"""Newton's method ends with a step that is no larger share of the batch [1]."""


class Solution(NamedTuple):
    """A threshold.

    Attributes:
        outcome: What it is.
        exact: The real size [1]; None without.
        whole: The whole size [1]; None without.
        limit: What binds beyond it, or always.
    """

    outcome: str
    exact: float | None = None
    whole: int | None = None
    limit: str | None = None


class Growth(NamedTuple):
    """What a sequence adds to a step [unit].

    Attributes:
        math, memory: To compute and to memory.
        least: The least `math` for which the network does not outgrow compute.
    """

    math: int
    memory: int
    least: int

    @property
    def ahead(self) -> int:
        """How much compute grows more than memory [unit]."""
        return self.math - self.memory


class Crossing(NamedTuple):
    """The batch from which on t_math is at least another time.

    Attributes:
        whole: The smallest whole one [1].
        exact: The real one [1].
    """

    whole: int
    exact: float


def first(holds: Callable[[int], bool], least: int) -> int:
    """The smallest whole number from `least` on for which a condition holds, as for all larger.

    Numbers are tried in doubling steps, then by bisection. The condition may hold for none: then it
    is a number of `LARGEST_COUNT` or more.
    """
    low, step = least, 1
    while not holds(low + step - 1):
        low, step = low + step, 2 * step
        if low >= LARGEST_COUNT:
            return low
    high = low + step - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def critical_batch(step: StepLines, replicas: int) -> Solution:
    """The smallest batch that is compute-bound.

    Args:
        step: The lines of the step.
        replicas: dp: no batch is smaller [1].
    """
    total = step.total
    crossings = beyond_memory(step), beyond_network(step)
    known = [crossing for crossing in crossings if crossing is not None]
    if len(known) < len(crossings):
        slopes = total.memory, step.network[0]
        never = [
            (slope, limit)
            for slope, limit, crossing in zip(slopes, (MEMORY, NETWORK), crossings, strict=True)
            if crossing is None
        ]
        return Solution(NEVER, limit=max(never, key=lambda each: each[0])[1])
    last = max(known)
    if last.whole <= replicas:
        return Solution(ALWAYS, last.exact, replicas)
    before = last.whole - 1
    memory = total.memory_at(before, step.touched(before))
    limit = NETWORK if total.network_at(before) > memory else MEMORY
    if last.whole >= LARGEST_COUNT:
        return Solution(BEYOND, last.exact, limit=limit)
    return Solution(FOUND, last.exact, last.whole, limit)


def beyond_memory(step: StepLines) -> Crossing | None:
    """Where t_math overtakes t_memory; None: never."""
    total = step.total
    gain = ahead_of_memory(total)
    if gain <= 0:
        return None
    if step.experts is None:
        return crossing(Fraction(total.weights, gain))
    most = Fraction(total.weights + total.expert * step.experts.E, gain)
    if most >= LARGEST_COUNT:
        return crossing(most)

    def enough_with(touched: Fraction) -> int:
        return math.ceil((total.weights + total.expert * touched) / gain)

    least = enough_with(step.touched(enough_with(Fraction(0))))
    whole = first(lambda batch: batch >= enough_with(step.touched(batch)), least)
    return Crossing(whole, real_batch(total, step.experts, float(most)))


def crossing(real: Fraction) -> Crossing:
    """The crossing at a rational batch."""
    return Crossing(math.ceil(real), float(real))


def real_batch(total: Lines, experts: Experts, start: float) -> float:
    """The real batch at which t_math overtakes t_memory, by Newton's method from a larger one on.

    Their difference is convex: every step stays above the batch.
    """
    gain = ahead_of_memory(total)
    real, step = start, start
    while step > ROUNDED * real:
        batch = Fraction(real)
        touched = experts.touched(batch)
        ahead = gain * batch - total.weights - total.expert * touched
        slope = gain - total.expert * (experts.E - touched) * Fraction(experts.decay)
        step = float(ahead / slope)
        real -= step
    return real


def beyond_network(step: StepLines) -> Crossing | None:
    """Where t_math overtakes t_network; None: never."""
    math_, (slope, latency) = step.total.math, step.network
    return None if math_ < slope else crossing(Fraction(latency, math_))


def largest_within(step: StepLines, target: Fraction, time: str, replicas: int) -> int | None:
    """The largest batch whose step takes at most a time [1].

    Args:
        step: The lines of the step.
        target: The time, in units of the lines.
        time: Which time of the step it is: `t_lower_s` or `t_ops_s`.
        replicas: dp: no batch is smaller [1].

    Returns:
        0 if no batch is as fast; None if the batch is `LARGEST_COUNT` or more.
    """
    of_batch = step.lower if time == "t_lower_s" else step.ops
    slow = first(lambda batch: of_batch(batch) > target, replicas)
    if slow >= LARGEST_COUNT:
        return None
    return slow - 1 if slow > replicas else 0


def context_ceiling(lines: CaseLines, new: int) -> Solution:
    """The largest context at which some batch of a decode step is compute-bound.

    Args:
        lines: The lines of the case.
        new: T, new tokens of each sequence: no context is smaller [1].
    """

    def growth(context: int) -> Growth:
        step = lines.at(context, new)
        return Growth(step.total.math, step.total.memory, step.network[0])

    return largest_context(growth, lines.case.model.shape, new)


def largest_context(growth: Callable[[int], Growth], shape: Shape, new: int) -> Solution:
    """The largest context at which some large batch is compute-bound.

    For large B only what grows with B counts. Let h(S) be how much compute grows by a sequence more
    than memory. h > 0 is needed. Until all windows are full h is concave, from then on a straight
    line; if that falls, h falls everywhere. The network does not depend on S and compute does not
    fall, so the network forbids short contexts only.

    Args:
        growth: What a sequence adds, by the context.
        shape: The model.
        new: T, new tokens of each sequence: no context is smaller [1].
    """
    windows = [window for _, window in shape.windows if window is not None]
    far = max(windows, default=0) + new
    end, after = growth(far), growth(far + 1)
    fall = end.ahead - after.ahead
    if fall < 0 or (fall == 0 and end.ahead > 0):
        enough = after.math > end.math or end.math >= end.least
        return Solution(ENDLESS) if enough else Solution(NEVER, limit=NETWORK)
    if end.ahead > 0:
        real = far + Fraction(end.ahead, fall)
        last = math.ceil(real) - 1
        math_at_last = end.math + (last - far) * (after.math - end.math)
    else:
        peak = first(lambda context: growth(context + 1).ahead <= growth(context).ahead, new)
        if growth(peak).ahead <= 0:
            return Solution(NEVER, limit=MEMORY)
        last = first(lambda context: growth(context + 1).ahead <= 0, peak)
        ahead = growth(last).ahead
        real = last + Fraction(ahead, ahead - growth(last + 1).ahead)
        math_at_last = growth(last).math
    if math_at_last < end.least:
        return Solution(NEVER, limit=NETWORK)
    if last >= LARGEST_COUNT:
        return Solution(BEYOND, float(real), limit=MEMORY)
    return Solution(FOUND, float(real), last, MEMORY)


def ahead_of_memory(total: Lines) -> int:
    """How much t_math grows by a sequence more than t_memory [unit]."""
    return total.math - total.memory
