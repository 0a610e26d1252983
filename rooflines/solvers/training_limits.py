"""Training limits: the batch, context or micro-batch from which on a step is compute-bound.

Along each size t_math grows at least linearly, with the context also quadratically. Other times are
the largest of several, each with a constant, which grow linearly, with activated experts less than
that: t_math minus each is convex, so that once it is positive it stays positive. With attention in
chunks that holds within a chunk, and at the same place in all chunks. The least whole number is
exact, by a Fraction search, and so is the real size before it, but for rounding.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import ceil, gcd, lcm, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import MAX_SIZE, exact, first
from rooflines.config.model_fields import LEVER_AXES
from rooflines.dictionary.columns import (
    ALWAYS,
    BEYOND_MAX_COUNT,
    CAPACITY_UNKNOWN,
    FOUND,
    FROM,
    NEVER,
)
from rooflines.solvers.payoffs import End
from rooflines.theory.network import MAX_AXIS, PAIR, TORUS, NetworkLevel, fastest_axes
from rooflines.theory.resources import MATH, MEMORY, NETWORK, NON_MATH
from rooflines.theory.tori import max_slice
from rooflines.training.stage_memory import PlannedModel
from rooflines.training.training_kernels import MICRO_BATCH, MICRO_BATCHES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflines.models.groups import StepExtents
    from rooflines.sweep.training_sweep import TrainingCase, TrainingSweep
    from rooflines.theory.network import Link
    from rooflines.theory.poly import Poly
    from rooflines.theory.resources import Resource
    from rooflines.training.parallel_plan import TrainingPlan

MAX_BUBBLE_SHARE = Fraction(1, 10)
"""Largest pipeline bubble, as a share of a step, of `min_B_bubble` [1]."""

DP_TP_MIX = "dp"
"""Axis along replicas, with dp * tp fixed."""

MAX_DOUBLINGS = 21
"""Number of powers of two to try as replicas [1]."""

PROBE_UNITS = 2**20
"""Units at which windows are full and all experts active; the search starts from there [1]."""


MAX_SECANTS = 100
"""Limit on trials for a real size, more than are ever needed [1]."""


class Margin(NamedTuple):
    """Margin along a size: t_math minus another time that is one polynomial, in units.

    Attributes:
        unit: Elements in a unit, of which the size is a multiple [1].
        value: Margin by the number of units [s].
        chunk: Elements in an attention chunk, at whose end the margin bends; 0 without chunks [1].
    """

    unit: int
    value: Callable[[int | Fraction], Fraction]
    chunk: int = 0

    @property
    def max_units(self) -> int:
        """Largest number of units to try [1]."""
        return MAX_SIZE // self.unit

    @property
    def period(self) -> int:
        """Units after which chunks start at the same place again; 1 without chunks [1]."""
        return lcm(self.chunk, self.unit) // self.unit if self.chunk else 1

    def min_units(self) -> int | None:
        """Find the least units from which on the margin is not negative [1].

        None: never, or beyond `max_units`.
        """
        if self.value(self.max_units) < 0:
            return None
        if self.chunk:
            return self._after_chunks()
        guess = ceil(self.extrapolated(PROBE_UNITS))
        return first(lambda units: self.value(units) >= 0, 1, self.max_units, guess)

    def _after_chunks(self) -> int | None:
        """Find the least units where attention has chunks [1].

        In every period, whole chunks of whole units, the margin relative to the size has not
        fallen since the same place of the period before.
        """
        period, last_period = self.period, self.max_units // self.period - 1
        is_positive = cache(lambda number: self._last_negative(number * period, period) is None)
        if not is_positive(last_period):
            return None
        guess = self.extrapolated(PROBE_UNITS * period) / period
        number = first(is_positive, 0, last_period, guess)
        last = self._last_negative((number - 1) * period, period) if number else None
        return 1 if last is None else last + 1

    def _last_negative(self, start: int, period: int) -> int | None:
        """Last units with a negative margin, among those after `start` up to a period later [1]."""
        chunks = period * self.unit // self.chunk
        for index in reversed(range(chunks)):
            low = start + index * self.chunk // self.unit + 1
            high = start + (index + 1) * self.chunk // self.unit
            if low > high:
                continue
            if self.value(high) < 0:
                return high
            least = first(lambda at: self.value(at + 1) >= self.value(at), low, high)
            if self.value(least) < 0:
                return first(lambda at: self.value(at) >= 0, least, high) - 1
        return None

    def is_gaining_at_limit(self) -> bool:
        """True if the margin still grows at `max_units`, so that a larger size is the threshold."""
        return self.value(self.max_units) > self.value(self.max_units - self.period)

    def real_size(self, units: int) -> float:
        """Real size at which the margin is zero, by secants [1].

        Args:
            units: The least whole units with a margin that is not negative, else 0 is returned.
        """
        low, high = Fraction(units - 1), Fraction(units)
        below, above = self.value(low), self.value(high)
        if below >= 0:
            return 0.0
        at = high
        for _ in range(MAX_SECANTS):
            previous, at = at, Fraction(float(low - below * (high - low) / (above - below)))
            if at == previous or not low < at < high:
                break
            value = self.value(at)
            if value < 0:
                low, below, above = at, value, above / 2
            else:
                high, above, below = at, value, below / 2
        return float(at * self.unit)

    def extrapolated(self, units: int) -> float:
        """Real units at which the parabola through three numbers, a period apart, is zero [1].

        Args:
            units: The first of them [1].
        """
        step = self.period
        value, second, third = (self.value(units + offset * step) for offset in range(3))
        curvature = (third - 2 * second + value) / 2
        slope = second - value - curvature
        discriminant = slope * slope - 4 * curvature * value
        if discriminant < 0 or slope <= 0:
            return 0.0
        root_distance = float(2 * value) / (float(slope) + sqrt(discriminant))
        return max(units - root_distance * step, 0.0)


class Overtaking(NamedTuple):
    """Threshold along a size against one resource, whose time is the largest of several.

    Attributes:
        margins: Margins of t_math over each time.
    """

    margins: Sequence[Margin]

    def min_units(self) -> int | None:
        """Find the least units from which on no margin is negative [1].

        None: never, or beyond `max_units`.
        """
        units = [margin.min_units() for margin in self.margins]
        return max((unit or 0 for unit in units), default=1) if None not in units else None

    def real_size(self, units: int | None) -> float | None:
        """Real size from which on no margin is negative [1]; None: never.

        Args:
            units: `min_units`.
        """
        if units is not None:
            return max((margin.real_size(units) for margin in self.margins), default=0.0)
        rising = [margin for margin in self.margins if margin.min_units() is None]
        if not all(margin.is_gaining_at_limit() for margin in rising):
            return None
        return max(margin.extrapolated(margin.max_units) * margin.unit for margin in rising)

    def value(self, units: int) -> Fraction:
        """Least margin [s]."""
        return min((margin.value(units) for margin in self.margins), default=Fraction(0))


def training_thresholds(
    sweep: TrainingSweep,
) -> Iterator[tuple[TrainingCase, dict[str, Any]]]:
    """Yield the thresholds along every axis in a sweep's config.

    Yields:
        A case, and the values by column.
    """
    for axis in sweep.config.thresholds:
        if axis in LEVER_AXES:
            continue
        for block in sweep.blocks:
            sizes, points = block.after
            for case in cast("tuple[TrainingCase, ...]", block.cases):
                for batch in [None] if axis in ("B", *CHIP_AXES) else sizes.columns["B"]:
                    for context in [None] if axis == "S" else points.columns["S"]:
                        keys = {"axis": axis, "B": batch, "S": context}
                        if axis in CHIP_AXES:
                            solution = CHIP_AXES[axis](case, context or 1)
                        elif axis == DP_TP_MIX:
                            solution = best_mix(case, batch or 1, context or 1)
                        else:
                            solution = size_threshold(case, axis, batch, context)
                        yield case, {**keys, **solution}


def size_threshold(
    case: TrainingCase, axis: str, batch: int | None, context: int | None
) -> dict[str, Any]:
    """Solve for the threshold of a case along an axis.

    Args:
        case: The case.
        axis: `B`, `S` or `micro_batch`; the size along it is not read.
        batch: B, sequences in all replicas [1].
        context: S, tokens in each sequence [1].
    """
    plan = case.plan
    batches = 1 if batch is None else batch // plan.global_micro_batch
    overtakings = _overtakings(case, axis, batches, context)
    unit = size_unit(plan, axis)
    min_units = {resource: times.min_units() for resource, times in overtakings.items()}
    real_sizes = [times.real_size(min_units[resource]) for resource, times in overtakings.items()]
    thresholds: dict[str, Any] = {
        f"critical_{resource.name}": None if units is None else units * unit
        for resource, units in min_units.items()
    }
    numbers = [units for units in min_units.values() if units is not None]
    units = max(numbers) if len(numbers) == len(min_units) else None
    before = MAX_SIZE // unit if units is None else units - 1
    if units is None:
        outcome = NEVER if None in real_sizes else BEYOND_MAX_COUNT
    else:
        outcome = FOUND if before else ALWAYS
    last = min(overtakings, key=lambda resource: overtakings[resource].value(before))
    thresholds |= {
        "outcome": outcome,
        "critical_exact": None if outcome == NEVER else max(size or 0.0 for size in real_sizes),
        "critical": None if units is None else units * unit,
        "limit": None if outcome == ALWAYS else last.bound,
    }
    return {**thresholds, **_size_limits(case, axis, batches, context)}


def size_unit(plan: TrainingPlan, axis: str) -> int:
    """Elements along an axis that are added together [1]."""
    return {"B": plan.global_micro_batch, "S": plan.cp}.get(axis, 1)


def hidden_network(case: TrainingCase, batches: int, slowdown: Fraction) -> End:
    """Contexts from which the network time is at most math times a slowdown.

    Args:
        case: The case.
        batches: Micro-batches in a step [1].
        slowdown: Real time over the math at peak [1].
    """
    overtaking = _overtakings(case, "S", batches, None, slowdown)[NETWORK]
    unit, units = size_unit(case.plan, "S"), overtaking.min_units()
    if units is None:
        return End(NEVER)
    if units <= 1:
        return End(ALWAYS)
    return End(FOUND, FROM, units * unit, overtaking.real_size(units))


def largest_micro_batch(case: TrainingCase, context: int) -> int:
    """Most sequences in a micro-batch that fit, one after another; 0: none [1]."""
    capacity, single = case.machine.level.capacity_bytes, case.plan.micro_batch
    counted = [memory.counted(1, _factor(case.plan)) for memory in case.stage_memory]
    tokens = min(((capacity or 0) - fixed) / per_token for fixed, per_token in counted)
    return max(int(tokens * single // context), 0)


def _overtakings(
    case: TrainingCase,
    axis: str,
    batches: int,
    context: int | None,
    slowdown: Fraction = Fraction(1),
) -> dict[Resource, Overtaking]:
    """Thresholds of t_math over the other times along an axis, by resource.

    Args:
        case: The case.
        axis: `B`, `S` or `micro_batch`.
        batches: Micro-batches, along another axis than B [1].
        context: S, along another axis [1].
        slowdown: Real time over the math at peak [1].
    """
    plan, by = case.plan, case.times.by_bound
    unit = size_unit(plan, axis)
    windows = case.model.shape.attention_windows if axis == "S" else ()
    chunk = lcm(*(window.tokens or 1 for window in windows if window.chunked))
    is_chunked = any(window.chunked for window in windows)

    @cache
    def at(units: int | Fraction) -> StepExtents:
        """Extents at a number of units, also between whole numbers."""
        sequences = plan.global_micro_batch * (unit if axis == "B" else batches)
        extents = case.extents(case.step(sequences, context or 1))
        sizes = {"B": ("B",), "S": ("S", "T"), MICRO_BATCH: (MICRO_BATCH,)}[axis]
        extents |= dict.fromkeys(sizes, units * unit)
        if axis == "B":
            extents[MICRO_BATCHES] = units
        return extents

    def margin(poly: Poly) -> Margin:
        def value(units: int | Fraction) -> Fraction:
            return slowdown * by[MATH.bound].at(at(units)) - poly.at(at(units))

        return Margin(unit, cache(value), chunk if is_chunked else 0)

    return {
        resource: Overtaking([margin(poly) for (poly,) in by[resource.bound].pieces])
        for resource in NON_MATH
    }


def largest_tp(case: TrainingCase, context: int) -> dict[str, Any]:
    """Largest tp whose all-gathers take no longer than its math.

    Math takes M / tp and the network N (tp - 1) / tp, so that tp is at most 1 + M / N, over the
    inner network, as if it had no limit.
    """
    links = case.place.links[:1]
    if not links:
        return {"outcome": NEVER, "limit": NETWORK.bound}
    one_pod = {"pods": 1, "share_over_pods": False}
    pair = case.plan.model_copy(update={"tp": PAIR, "pp": 1, "dp": 1, "cp": 1, "ep": 1, **one_pod})
    sharing = replace(case.sharing, split=pair)
    unlimited = tuple(replace(link, domain=None) for link in links)
    place = replace(case.place, links=unlimited)
    workload = replace(case.workload, sharing=sharing)
    pair_case = replace(case, place=place, workload=workload, mapping=None)
    seconds = pair_case.times.at(
        pair_case.extents(pair_case.step(pair.global_micro_batch, context))
    )
    ratio = seconds[MATH.bound] * PAIR / (seconds[NETWORK.bound] * PAIR / (PAIR - 1))
    real, critical = 1 + ratio, int(1 + ratio)
    if links[0].topology == TORUS:
        real, critical = _largest_on_torus(links[0], ratio)
    return {
        "outcome": FOUND,
        "critical_exact": float(real),
        "critical": critical,
        "limit": NETWORK.bound,
    }


def _largest_on_torus(link: Link, ratio: Fraction) -> tuple[Fraction, int]:
    """Largest tp over axes of a torus whose all-gathers take no longer than its math.

    Args:
        link: The torus.
        ratio: M / N over one link, so that over l links tp is at most 1 + l M / N [1].

    Returns:
        The real number of chips for the axes of the whole number, and the whole number [1].
    """
    max_axis = MAX_AXIS if link.domain is None else link.domain
    max_chips = min(int(1 + 2 * link.axes * ratio), max_axis**link.axes)
    for chips in range(max_chips, 1, -1):
        if axes := fastest_axes(link, chips):
            real = 1 + NetworkLevel(link, axes).links_used * ratio
            if chips <= real:
                return real, chips
    return 1 + ratio, 1


def fewest_replicas(case: TrainingCase, context: int) -> dict[str, Any]:
    """Minimum chips whose memory holds a step, over 1, 2, 4, ... replicas, many micro-batches."""
    capacity, workload = case.machine.level.capacity_bytes, case.workload
    if capacity is None:
        return {"outcome": CAPACITY_UNKNOWN}
    previous, last_dp = None, 0
    for exponent in range(MAX_DOUBLINGS):
        plan = _plan_with_replicas(case, 2**exponent)
        if plan.chips > 1 and case.place.missing_route_reason(plan.groups):
            return {"outcome": NEVER, "limit": NETWORK.bound}
        if plan.dp == last_dp or (plan.ep > 1 and plan.stage_chips % plan.ep):
            continue
        if plan.placement_problem(case.place.networks, case.place.links):
            if case.mapping is not None and plan.chips <= max_slice(case.mapping.slice.link):
                continue  # no slice has this number of chips
            return {"outcome": NEVER, "limit": NETWORK.bound}
        last_dp = plan.dp
        planned = PlannedModel(workload.kernels.model, plan)
        stages = [planned.memory(stage) for stage, _ in workload.stages]
        counted = [memory.counted(memory.max_in_flight, _factor(plan)) for memory in stages]
        footprint = max(fixed + per_token * context for fixed, per_token in counted)
        if footprint <= capacity:
            return {"outcome": FOUND, "critical": plan.chips}
        if footprint == previous:
            break
        previous = footprint
    return {"outcome": NEVER, "limit": MEMORY.bound}


def _factor(plan: TrainingPlan) -> Fraction | None:
    """Factor of a plan's stack on states and saved tensors [1]; None: no stack is named."""
    factor = plan.working_factor
    return None if factor is None else exact(factor)


def _plan_with_replicas(case: TrainingCase, replicas: int) -> TrainingPlan:
    """Plan with as many replicas, or with more that fill groups of the inner network.

    Args:
        case: The case.
        replicas: dp [1].
    """
    keys = {"dp": replicas, "pods": 1, "topology": None, "group": None}
    plan, links = case.plan.model_copy(update=keys), case.place.links
    group = links[0].domain if len(links) > 1 and links[0].topology != TORUS else None
    if group is not None and plan.chips > group:
        step = group // gcd(group, plan.chips // replicas)
        plan = plan.model_copy(update={"dp": -(-replicas // step) * step})
    return plan


def best_mix(case: TrainingCase, batch: int, context: int) -> dict[str, Any]:
    """Best mix of dp and tp: the replicas with the least network time, with dp * tp fixed.

    With more replicas each has fewer tokens for tp to gather, but gathers larger parts of the
    weights. All mixes have as many micro-batches, larger or smaller ones.

    Returns:
        The best dp, and as `critical_network` the least batch at which math takes as long as the
        network with some mix.
    """
    plan, chips = case.plan, case.plan.tp * case.plan.dp
    if chips == 1 or not case.place.links:
        return {"outcome": NEVER, "limit": NETWORK.bound}
    batches = batch // plan.global_micro_batch
    network_times, thresholds = dict[int, Fraction](), []
    for dp in range(plan.pods, chips + 1, plan.pods):
        if chips % dp:
            continue
        mix = plan.model_copy(update={"dp": dp, "tp": chips // dp})
        with suppress(RooflinesError):
            mix.check(case.model.shape)
            if mix.placement_problem(case.place.networks, case.place.links):
                continue
            sharing = replace(case.sharing, split=mix)
            workload = replace(case.workload, sharing=sharing)
            mix_batch = batches * mix.global_micro_batch
            mix_case = replace(case, workload=workload).on_fastest_axes(mix_batch, context)
            micro_batch, rest = divmod(batch, batches * dp)
            if not rest:
                at = mix_case.extents(mix_case.step(mix_batch, context))
                at[MICRO_BATCH] = micro_batch
                network_times[dp] = mix_case.times.by_bound[NETWORK.bound].at(at)
            network = _overtakings(mix_case, MICRO_BATCH, batches, context)[NETWORK]
            units = network.min_units()
            thresholds += [] if units is None else [units * batches * dp]
    return {
        "outcome": FOUND,
        "critical": min(network_times, key=network_times.__getitem__),
        f"critical_{NETWORK.name}": min(thresholds, default=None),
    }


CHIP_AXES: Mapping[str, Callable[[TrainingCase, int], dict[str, Any]]] = {
    "tp": largest_tp,
    "chips": fewest_replicas,
}
"""Solvers for numbers of chips, by axis; independent of B."""


def _size_limits(
    case: TrainingCase, axis: str, batches: int, context: int | None
) -> dict[str, Any]:
    """Sizes that fit memory along S or micro_batch; along B the batch with a small bubble."""
    plan, capacity = case.plan, case.machine.level.capacity_bytes
    if axis == "B":
        min_batches = (plan.pp - 1) * (1 - MAX_BUBBLE_SHARE) / (MAX_BUBBLE_SHARE * plan.interleave)
        return {"min_B_bubble": max(ceil(min_batches), 1) * plan.global_micro_batch}
    if capacity is None:
        return {}
    counted = [memory.counted(batches, _factor(plan)) for memory in case.stage_memory]
    max_tokens = min((capacity - fixed) / per_token for fixed, per_token in counted)
    if axis == "S":
        return {"max_fit": max(int(max_tokens // plan.cp), 0) * plan.cp}
    return {"max_fit": max(int(max_tokens * plan.micro_batch // (context or 1)), 0)}
