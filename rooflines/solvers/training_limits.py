"""Thresholds of training: from which batch, context or micro-batch on a step is compute-bound.

Along each of them t_math grows at least linearly, with the context by its square too. What other
resources need grows linearly, experts that tokens touch less than that: ahead of each line of them
t_math is convex, so that once it is ahead it stays so. The least whole number is found exactly, the
real one is where the parabola through three whole numbers is zero.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from math import ceil, gcd, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import LARGEST_SIZE, first
from rooflines.dictionary.columns import ALWAYS, BEYOND, CAPACITY_UNKNOWN, FOUND, NEVER
from rooflines.theory.network import LARGEST_AXIS, PAIR, TORUS, NetworkLevel, fastest_axes
from rooflines.theory.resources import MATH, MEMORY, NETWORK, OTHERS
from rooflines.training.stage_memory import PlannedModel
from rooflines.training.training_kernels import MICRO_BATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rooflines.models.groups import StepExtents
    from rooflines.sweep.training_sweep import TrainingCase, TrainingSweep
    from rooflines.theory.network import Link
    from rooflines.theory.resources import Resource
    from rooflines.training.parallel_plan import TrainingPlan

HIDDEN = Fraction(1, 10)
"""The share of a step for which stages may wait, of `min_B_bubble` [1]."""

MIX = "dp"
"""The axis of replicas, of as many chips of tp and dp."""

MOST_DOUBLINGS = 21
"""Powers of two that are tried of replicas [1]."""

FAR = 2**20
"""Units at which windows are full and all experts are touched, to guess from [1]."""


class Margin(NamedTuple):
    """What t_math is ahead of another time along a size, in whole units.

    Attributes:
        unit: What the size is a multiple of [1].
        ahead: By the number of units [s].
    """

    unit: int
    ahead: Callable[[int], Fraction]

    @property
    def most(self) -> int:
        """The most units that are tried [1]."""
        return LARGEST_SIZE // self.unit

    def least(self) -> int | None:
        """The least units from which t_math is ahead [1]; None: never, or beyond the most."""
        if self.ahead(self.most) < 0:
            return None
        guess = ceil(self.real(FAR) / self.unit)
        return first(lambda units: self.ahead(units) >= 0, 1, self.most, guess)

    def rises(self) -> bool:
        """Whether t_math comes closer at the end, so that some larger size is beyond it."""
        return self.ahead(self.most) > self.ahead(self.most - 1)

    def real(self, units: int) -> float:
        """The real size at which t_math catches up [1].

        Args:
            units: The least whole units at which it is ahead, or some near which the parabola is
                the same [1].
        """
        here, then, last = (self.ahead(units + more) for more in range(3))
        half = (last - 2 * then + here) / 2
        slope = then - here - half
        below = slope * slope - 4 * half * here
        if below < 0 or slope <= 0:
            return 0.0
        back = float(2 * here) / (float(slope) + sqrt(below))
        return max(units - back, 0.0) * self.unit


def training_thresholds(
    sweep: TrainingSweep,
) -> Iterator[tuple[TrainingCase, dict[str, Any]]]:
    """The thresholds along every axis that a sweep asks for.

    Yields:
        A case, and the values by column.
    """
    for axis in sweep.config.thresholds:
        for block in sweep.blocks:
            sizes, points = block.after
            for case in cast("tuple[TrainingCase, ...]", block.cases):
                for batch in [None] if axis in ("B", *OF_CHIPS) else sizes.columns["B"]:
                    for context in [None] if axis == "S" else points.columns["S"]:
                        about = {"axis": axis, "B": batch, "S": context}
                        if axis in OF_CHIPS:
                            solved = OF_CHIPS[axis](case, context or 1)
                        elif axis == MIX:
                            solved = best_mix(case, batch or 1, context or 1)
                        else:
                            solved = solved_along(case, axis, batch, context)
                        yield case, {**about, **solved}


def solved_along(
    case: TrainingCase, axis: str, batch: int | None, context: int | None
) -> dict[str, Any]:
    """The threshold of a case along an axis.

    Args:
        case: The case.
        axis: `B`, `S` or `micro_batch`; its own size is not read.
        batch: B, sequences of all replicas [1].
        context: S, tokens of each [1].
    """
    plan = case.plan
    batches = 1 if batch is None else batch // plan.together
    margins = _margins(case, axis, batches, context)
    unit = margins[OTHERS[0]].unit
    least = {each: of.least() for each, of in margins.items()}
    found: dict[str, Any] = {
        f"critical_{each.name}": None if units is None else units * unit
        for each, units in least.items()
    }
    last = max(OTHERS, key=lambda each: LARGEST_SIZE if least[each] is None else least[each] or 0)
    units, of = least[last], margins[last]
    if units is None:
        outcome, exact = (BEYOND, of.real(of.most)) if of.rises() else (NEVER, None)
    else:
        outcome, exact = (ALWAYS if units == 1 else FOUND), of.real(units)
    found |= {
        "outcome": outcome,
        "critical_exact": exact,
        "critical": None if units is None else units * unit,
        "limit": None if outcome == ALWAYS else last.bound,
    }
    return {**found, **_fitting(case, axis, batches, context)}


def _margins(
    case: TrainingCase, axis: str, batches: int, context: int | None
) -> dict[Resource, Margin]:
    """What t_math of a case is ahead of the other times along an axis.

    Args:
        case: The case.
        axis: `B`, `S` or `micro_batch`.
        batches: Micro-batches, along another axis than B [1].
        context: S, along another axis [1].
    """
    plan, by = case.plan, case.times.by
    unit = {"B": plan.together, "S": plan.cp}.get(axis, 1)

    def at(units: int) -> StepExtents:
        sequences = units * unit if axis == "B" else batches * plan.together
        size = units * unit if axis == "S" else context or 1
        found = case.extents(case.step(sequences, size))
        if axis == MICRO_BATCH:  # with as many micro-batches
            found[MICRO_BATCH] = units
        return found

    def margin(bound: str) -> Margin:
        def ahead(units: int) -> Fraction:
            extents = at(units)
            return by[MATH.bound].at(extents) - by[bound].at(extents)

        return Margin(unit, ahead)

    return {each: margin(each.bound) for each in OTHERS}


def largest_tp(case: TrainingCase, context: int) -> dict[str, Any]:
    """The most chips of tensor parallelism whose gathers take no longer than their math.

    Math takes M / tp and sends N (tp - 1) / tp, so that tp is at most 1 + M / N, over the network
    inside of which tp is, without end.
    """
    links = case.place.links[:1]
    if not links:
        return {"outcome": NEVER, "limit": NETWORK.bound}
    pair = case.plan.model_copy(update={"tp": PAIR, "pp": 1, "dp": 1, "cp": 1, "ep": 1})
    sharing = replace(case.sharing, split=pair)
    endless = tuple(replace(link, domain=None) for link in links)
    place = replace(case.place, links=endless)
    alone = replace(case, place=place, workload=replace(case.workload, sharing=sharing))
    seconds = alone.times.at(alone.extents(alone.step(pair.together, context)))
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
    """The most chips over axes of a torus whose gathers take no longer than their math.

    Args:
        link: The torus.
        ratio: M / N over one link, so that over l links tp is at most 1 + l M / N [1].

    Returns:
        The real number for the axes of the whole one, and that [1].
    """
    longest = LARGEST_AXIS if link.domain is None else link.domain
    most = min(int(1 + 2 * link.axes * ratio), longest**link.axes)
    for chips in range(most, 1, -1):
        if axes := fastest_axes(link, chips):
            real = 1 + NetworkLevel(link, axes).links_used * ratio
            if chips <= real:
                return real, chips
    return 1 + ratio, 1


def fewest_replicas(case: TrainingCase, context: int) -> dict[str, Any]:
    """The fewest chips that hold a step, with 1, 2, 4, ... replicas and many micro-batches."""
    capacity, of = case.machine.level.capacity_bytes, case.workload
    if capacity is None:
        return {"outcome": CAPACITY_UNKNOWN}
    last, tried = None, 0
    for exponent in range(MOST_DOUBLINGS):
        plan = _joined(case, 2**exponent)
        if plan.chips > 1 and case.place.not_joined(plan.groups):
            return {"outcome": NEVER, "limit": NETWORK.bound}
        if plan.dp == tried or (plan.ep > 1 and plan.stage_chips % plan.ep):
            continue
        if plan.unplaced(case.place.networks, case.place.links):
            return {"outcome": NEVER, "limit": NETWORK.bound}
        tried = plan.dp
        planned = PlannedModel(of.model, plan)
        stages = [planned.memory(stage) for stage, _ in of.stages]
        held = max(each.states + each.saved(each.most) * context for each in stages)
        if held <= capacity:
            return {"outcome": FOUND, "critical": plan.chips}
        if held == last:
            break
        last = held
    return {"outcome": NEVER, "limit": MEMORY.bound}


def _joined(case: TrainingCase, replicas: int) -> TrainingPlan:
    """The plan with as many replicas, or with more that fill groups of the inner of two networks.

    Args:
        case: The case.
        replicas: dp [1].
    """
    plan, links = case.plan.model_copy(update={"dp": replicas}), case.place.links
    group = links[0].domain if len(links) > 1 else None
    if group is not None and plan.chips > group:
        each = group // gcd(group, plan.chips // replicas)
        plan = plan.model_copy(update={"dp": -(-replicas // each) * each})
    return plan


def best_mix(case: TrainingCase, batch: int, context: int) -> dict[str, Any]:
    """The replicas of a mix of dp and tp that send for the least time, of as many chips.

    With more replicas each has fewer tokens for tp to gather, but gathers larger parts of the
    weights. All mixes have as many micro-batches, larger or smaller ones.

    Returns:
        The best dp, and as `critical_network` the least batch with which math takes as long as
        what some mix sends.
    """
    plan, chips = case.plan, case.plan.tp * case.plan.dp
    if chips == 1 or not case.place.links:
        return {"outcome": NEVER, "limit": NETWORK.bound}
    batches = batch // plan.together
    sends, least = dict[int, Fraction](), []
    for dp in (each for each in range(1, chips + 1) if chips % each == 0):
        mix = plan.model_copy(update={"dp": dp, "tp": chips // dp})
        with suppress(RooflinesError):
            mix.check(case.model.shape)
            if mix.unplaced(case.place.networks, case.place.links):
                continue
            sharing = replace(case.sharing, split=mix)
            mixed = replace(case, workload=replace(case.workload, sharing=sharing))
            micro_batch, rest = divmod(batch, batches * dp)
            if not rest:
                at = mixed.extents(mixed.step(batches * mix.together, context))
                at[MICRO_BATCH] = micro_batch
                sends[dp] = mixed.times.by[NETWORK.bound].at(at)
            margin = _margins(mixed, MICRO_BATCH, batches, context)[NETWORK]
            least += [units * batches * dp for units in [margin.least()] if units is not None]
    return {
        "outcome": FOUND,
        "critical": min(sends, key=sends.__getitem__),
        f"critical_{NETWORK.name}": min(least, default=None),
    }


OF_CHIPS: Mapping[str, Callable[[TrainingCase, int], dict[str, Any]]] = {
    "tp": largest_tp,
    "chips": fewest_replicas,
}
"""What is solved for numbers of chips, by axis; B has no say in it."""


def _fitting(case: TrainingCase, axis: str, batches: int, context: int | None) -> dict[str, Any]:
    """What fits along an axis, and what hides a bubble."""
    plan, capacity = case.plan, case.machine.level.capacity_bytes
    if axis == "B":
        least = (plan.pp - 1) * (1 - HIDDEN) / (HIDDEN * plan.interleave)
        return {"min_B_bubble": max(ceil(least), 1) * plan.together}
    if capacity is None:
        return {}
    room = min((capacity - each.states) / each.saved(batches) for each in case.held)
    if axis == "S":
        return {"max_fit": max(int(room // plan.cp), 0) * plan.cp}
    return {"max_fit": max(int(room * plan.micro_batch // (context or 1)), 0)}
