"""The smallest compute-bound batch of a step, and the largest batch within a time.

With S and T fixed every nominal time of a step is the largest of a few lines in B. Those of memory
have the experts that tokens use besides: touched(B) is concave. So t_math overtakes each
line once or never.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.critical.solving import ROUNDING, Line, Reach, limit, outcome, reach
from rooflines.model.columns import ALWAYS
from rooflines.model.poly import TOUCHED, Poly, total
from rooflines.model.resources import MATH, MEMORY, OTHERS, RESOURCES
from rooflines.models.cache import entries_moved, pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from rooflines.model.times import Times
    from rooflines.models.shape import Shape
    from rooflines.sweep.steps import StepCase

NEWTON_STEPS = 60
"""More steps than Newton's method takes [1]."""

SETTLED = 4e-16
"""Newton's method ends with a step that is no larger share of the batch [1]."""


class BatchLine(NamedTuple):
    """A time along B: constant + slope * B + expert * touched(B), by the other extents.

    Attributes:
        slope, constant, expert: [s].
    """

    slope: float
    constant: float
    expert: float

    def at(self, batch: float, touched: float) -> float:
        """The time of a batch [s]."""
        return self.constant + self.slope * batch + self.expert * touched


class Experts(NamedTuple):
    """The experts of a layer that tokens use: E (1 - exp(-decay B)).

    Attributes:
        of_layer: E [1].
        decay: Per sequence [1].
    """

    of_layer: int
    decay: float

    def touched(self, batch: float) -> float:
        """Experts that the tokens of a batch use [1]."""
        return -self.of_layer * math.expm1(-self.decay * batch)


NO_EXPERTS = Experts(0, 0.0)
"""Where their number does not depend on the batch."""


def extents_at(shape: Shape, context: int, new: int) -> dict[str, int]:
    """The extents of one sequence.

    Args:
        shape: The model.
        context: S, tokens after the step [1].
        new: T, new ones [1].
    """
    found = {"T": new, "S": context}
    for _, window in shape.windows:
        found[f"pairs:{window or ''}"] = pairs(context, new, window)
        found[f"entries:{window or ''}"] = entries_moved(context, new, window)
    return found


def experts_at(polys: Iterable[Poly], new: int) -> Experts:
    """The experts whose number depends on the batch.

    Args:
        polys: The times of a step: all experts of a model are used by the same tokens.
        new: T, new tokens of a sequence [1].
    """
    names = (name for poly in polys for product in poly.terms for name in product)
    touched = next((name for name in names if name.startswith(TOUCHED)), None)
    if touched is None:
        return NO_EXPERTS
    experts, per_token, share = touched.partition(":")[2].split(",")
    decay = -float(Fraction(share)) * new * math.log1p(-int(per_token) / int(experts))
    return Experts(int(experts), decay)


class CaseLines:
    """The lines of a case at all its contexts.

    Attributes:
        case: The case.
    """

    def __init__(self, case: StepCase) -> None:
        self.case = case
        self.by_resource = pieces_of(case.times)
        everything = [poly for polys in self.by_resource.values() for poly in polys]
        self._polys = everything
        self._along: dict[int, tuple[Poly, tuple[Poly, Poly, Poly]]] = {}

    @cached_property
    def kernels(self) -> list[tuple[int, list[Poly]]]:
        """How often each kernel runs, and of which the largest is its time."""
        kernels = zip(self.case.kernels, self.case.kernel_times, strict=True)
        return [(kernel.count, _of_kernel(times)) for kernel, times in kernels]

    def experts(self, new: int) -> Experts:
        """The experts whose number depends on the batch, for T new tokens of a sequence."""
        return experts_at(self._polys, new)

    def line(self, poly: Poly, extents: Mapping[str, int]) -> BatchLine:
        """The line of a time at the extents of one sequence."""
        if id(poly) not in self._along:
            self._along[id(poly)] = poly, poly.along("B")
        slope, constant, expert = self._along[id(poly)][1]
        return BatchLine(
            float(slope.at(extents)),
            float(constant.at(extents)),
            float(sum(expert.coefficients.values())),
        )


def pieces_of(times: Times) -> dict[str, list[Poly]]:
    """By resource, the polynomials of which the largest is its nominal time [s]."""
    return {
        each.name: [poly for least in times.by[each.bound].pieces for poly in least]
        for each in RESOURCES
    }


def _of_kernel(times: Times) -> list[Poly]:
    """Of which the largest is the time of a kernel that runs alone: activations use the memory."""
    found = pieces_of(times)
    name = MEMORY.name
    found[name] = [total((poly, times.activation)) for poly in found[name]]
    return [poly for polys in found.values() for poly in polys]


# ------------------------------------------------------------ the smallest compute-bound batch


def row_of(lines: CaseLines, context: int, new: int) -> dict[str, float]:
    """The lines of a step as columns of a row, and the fewest sequences.

    Returns:
        `#least` [1]; `#slope:`, `#constant:` and `#expert:<resource>:<number>` [s]; `#experts` and
        `#decay` of all experts [1].
    """
    extents = extents_at(lines.case.model.shape, context, new)
    experts = lines.experts(new)
    row = {"#least": lines.case.split.dp, "#experts": experts.of_layer, "#decay": experts.decay}
    for name, polys in lines.by_resource.items():
        for number, poly in enumerate(polys):
            for part, value in lines.line(poly, extents)._asdict().items():
                row[f"#{part}:{name}:{number}"] = value
    return row


def critical_batches(rows: Sequence[Mapping[str, float]]) -> pl.DataFrame:
    """The smallest compute-bound batches.

    Args:
        rows: From `row_of`.

    Returns:
        `outcome`, `critical_exact`, `critical` and `limit` of every row.
    """
    frame = pl.DataFrame(rows, infer_schema_length=None).cast(pl.Float64).fill_null(0.0)
    ahead = _line(f"{MATH.name}:0")
    slowest = {}
    for each in OTHERS:
        parts = [
            name.removeprefix("#slope:")
            for name in frame.columns
            if name.startswith(f"#slope:{each.name}:")
        ]
        slowest[each] = Line(*(_largest(part, parts) for part in ("slope", "constant")))
        reaches = []
        for name in parts:
            frame = _reached(frame, ahead, name)
            reaches.append(Reach.of(name))
        frame = frame.with_columns(**Reach.last(reaches).named(each.name))
    last, one = Reach.last([Reach.of(each.name) for each in OTHERS]), pl.lit(1, dtype=pl.Int64)
    return (
        frame.with_columns(**last.named("all"), limit=limit(slowest))
        .with_columns(critical_exact=pl.col("#real_all"), critical=Reach.of("all").whole(one))
        .with_columns(
            critical=pl.when(pl.col("critical").is_not_null()).then(
                pl.max_horizontal("critical", pl.col("#least").cast(pl.Int64))
            )
        )
        .with_columns(outcome=outcome(pl.col("#least")))
        .select(
            "outcome",
            "critical_exact",
            "critical",
            limit=pl.when(pl.col("outcome") != ALWAYS).then("limit"),
        )
    )


def _line(name: str) -> Line:
    return Line(pl.col(f"#slope:{name}"), pl.col(f"#constant:{name}"))


def _largest(part: str, names: Sequence[str]) -> pl.Expr:
    return pl.max_horizontal(f"#{part}:{name}" for name in names)


def _reached(frame: pl.DataFrame, ahead: Line, name: str) -> pl.DataFrame:
    """Adds where t_math overtakes a line, by Newton's method where it has experts.

    What t_math lacks is convex in B: from a batch with all experts on, every step stays above.
    """
    behind, expert = _line(name), pl.col(f"#expert:{name}")
    if not (frame[f"#expert:{name}"] > 0).any():
        return frame.with_columns(**reach(ahead, behind).named(name))
    everything = expert * pl.col("#experts")
    found = reach(ahead, Line(behind.slope, behind.constant + everything))
    frame = frame.with_columns(**found.named(name))
    gain = ahead.slope - behind.slope
    real = pl.col(f"#real_{name}")
    unused = everything * (-pl.col("#decay") * real).exp()
    need = behind.constant - ahead.constant + everything
    step = (gain * real - need + unused) / (gain - unused * pl.col("#decay"))
    for _ in range(NEWTON_STEPS):
        before = frame[f"#real_{name}"]
        closer = pl.when(everything > 0).then(real - step).otherwise(real)
        frame = frame.with_columns(closer.alias(f"#real_{name}"))
        if not ((before - frame[f"#real_{name}"]).abs() > before.abs() * SETTLED).any():
            break
    size = ahead.slope + behind.slope + everything / real
    growth = gain - unused * pl.col("#decay")
    error = pl.when(everything > 0).then(ROUNDING * (2.0 + size / growth.abs()))
    return frame.with_columns(error.otherwise(pl.col(f"#error_{name}")).alias(f"#error_{name}"))


# ------------------------------------------------------------ the largest batch within a time


@dataclass(frozen=True)
class Summed:
    """A time along B: the sum of the largest of lines.

    Attributes:
        parts: The lines of every summand.
        experts: The experts.
    """

    parts: Sequence[Sequence[BatchLine]]
    experts: Experts

    def at(self, batch: float) -> tuple[float, float]:
        """The time of a batch [s], and what a sequence more adds, experts aside."""
        touched = self.experts.touched(batch)
        seconds = slope = 0.0
        for lines in self.parts:
            time, steep = max((line.at(batch, touched), line.slope) for line in lines)
            seconds, slope = seconds + time, slope + steep
        return seconds, slope


def step_time(lines: CaseLines, time: str, context: int, new: int) -> Summed:
    """A time of a step along B: `t_lower_s`, or `t_ops_s`, of one kernel after another."""
    extents = extents_at(lines.case.model.shape, context, new)
    if time == "t_lower_s":
        groups = [(1, [poly for polys in lines.by_resource.values() for poly in polys])]
    else:
        groups = lines.kernels
    parts = [
        [BatchLine(*(count * part for part in lines.line(poly, extents))) for poly in polys]
        for count, polys in groups
    ]
    return Summed(parts, lines.experts(new))


def largest_within(time: Summed, target_s: Fraction, replicas: int) -> int | None:
    """The largest batch whose step takes at most a time [1].

    Args:
        time: The time of the step.
        target_s: The most that it may take [s].
        replicas: dp: no batch is smaller [1].

    Returns:
        0 if no batch is as fast; None if the batch is `LARGEST_COUNT` or more.
    """
    most = float(target_s) * (1.0 + ROUNDING)
    if time.at(replicas)[0] > most:
        return 0
    if time.at(float(LARGEST_COUNT))[0] <= most:
        return None
    slow = first(
        lambda batch: time.at(batch)[0] > most, replicas, LARGEST_COUNT, _newton(time, most)
    )
    return slow - 1


def _newton(time: Summed, most: float) -> float:
    """About the batch that takes a time [1]."""
    batch = 1.0
    for _ in range(NEWTON_STEPS):
        seconds, slope = time.at(batch)
        more = (most - seconds) / slope if slope else batch  # hops take as long for any batch
        before, batch = batch, max(batch + more, 1.0)
        if abs(batch - before) < 1.0:
            break
    return batch


def first(holds: Callable[[int], bool], low: int, high: int, guess: float = 0.0) -> int:
    """The first whole number from `low` on for which a condition holds, as for all larger ones.

    Args:
        holds: The condition.
        low: The first number that is tried [1].
        high: The condition holds for it [1].
        guess: About where it starts to hold [1].
    """
    step, at = 1, min(max(int(guess), low), high)
    while low < high:  # from the guess in doubling steps to both sides, then by bisection
        if holds(at):
            high, at = at, max(at - step, low) if step else (low + at) // 2
        else:
            low, at = at + 1, at + 1 + step
        step *= 2
        if not low <= at < high:
            at = (low + high) // 2
    return low
