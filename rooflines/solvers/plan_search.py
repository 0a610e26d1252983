"""Search for training plans, by floors and dominance.

A layout is tp, pp, cp, dp and ep. Each has its own best interleave, micro-batch, shard, recompute,
and on request loss and offload; its best plan is kept. Rules for a step's time t, serialized or
without overlap, and for its memory:

- m micro-batches with b sequences take A(b) = m f(b), and f(b) / b never grows: kernels are affine,
  hops a maximum, experts that are read concave. So t >= A(largest b) (m + (pp - 1)/v) / m.
- Interleaving sends more; stages with two kinds of layers may be lighter with it.
- `selective` counts no work, but moves traffic from one kernel to another, so that both are tried;
  `full` is a forward pass more. Memory never grows along them, but for one-layer stages.
- Memory never falls with b, and never grows from `optimizer` to `weights`, without working memory.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rooflines.basics.errors import RooflinesError
from rooflines.basics.memo import Memo
from rooflines.basics.numbers import divisors, rounded
from rooflines.models.groups import Step, StepExtents
from rooflines.theory.kernel import NETWORK_BYTES
from rooflines.theory.resources import (
    ACTIVATION,
    MEMORY,
    NETWORK,
    RESOURCES,
    collective_rates,
)
from rooflines.training.parallel_plan import FUSED_LOSS, LOGITS
from rooflines.training.plan_parts import StatePlan
from rooflines.training.stage_memory import PlannedModel, PlannedStates
from rooflines.training.training_kernels import MICRO_BATCH, MICRO_BATCHES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from fractions import Fraction

    from rooflines.sweep.training_sweep import TrainingCase
    from rooflines.theory.extents import ActivatedExperts, Extent
    from rooflines.theory.kernel import Kernel, Transfer
    from rooflines.theory.network import Route
    from rooflines.theory.poly import Poly
    from rooflines.theory.resources import ChipRates, Resource
    from rooflines.training.parallel_plan import TrainingPlan
    from rooflines.training.pipeline_stages import Stage
    from rooflines.training.stage_memory import TrainedModel
    from rooflines.training.training_kernels import KernelRuns

SHARDS = ("none", "optimizer", "gradients", "weights")
RECOMPUTE = ("none", "selective", "full")
OFFLOADS = ((), ("saved",), ("states",), ("saved", "states"))

MAX_INTERLEAVE = 16
"""Most chunks per stage that are tried [1]."""

MIN_CONTEXT = 4096
"""Fewest tokens in a sequence per chip for which cp is tried unless it is asked for [1]."""

RANK_TIMES: Mapping[str, float] = {"t_serial_s": 0.0, "t_rank_s": 0.5, "t_upper_s": 1.0}
"""Times that rank plans, by their share in the time that overlap can hide:
t = t_serial + share * (t_upper - t_serial)."""

DIGITS = 12
"""Digits in times and memory that rank plans [1]."""

SLACK = 1e-5
"""Share by which a floor is lowered: ZeRO-2 and FSDP leave out gradients for vectors in some
kernels, which are fewer than that [1]."""

ROUNDING = 1e-9

SEARCHED = ("interleave", "micro_batch", "shard", "recompute")
"""Plan keys that are searched unless they are given, besides the layout."""

ON_REQUEST = ("loss", "offload", "cp")
"""Keys that are searched on request; cp then down to one token per chip."""


# ------------------------------------------------------------ evaluation


class SizeLine(NamedTuple):
    """Value by the sequences b in a micro-batch.

    Attributes:
        constant, slope: constant + slope * b.
        experts: (coefficient, E, decay per sequence) for each E (1 - exp(-decay b)).
    """

    constant: float
    slope: float
    experts: tuple[tuple[float, float, float], ...] = ()

    def at(self, size: int) -> float:
        """Value at b sequences."""
        value = self.constant + self.slope * size
        for coefficient, experts, decay in self.experts:
            value -= coefficient * experts * math.expm1(-decay * size)
        return value

    def plus(self, addend: SizeLine) -> SizeLine:
        """Sum of two lines."""
        experts = self.experts + addend.experts
        return SizeLine(self.constant + addend.constant, self.slope + addend.slope, experts)


NO_TIME = SizeLine(0.0, 0.0)


class Bound(NamedTuple):
    """Resource time: a line, and terms that are maxima over minima over lines."""

    line: SizeLine
    maxima: tuple[tuple[tuple[SizeLine, ...], ...], ...]

    def at(self, size: int) -> float:
        """Time at b sequences [s]."""
        bends = (
            max(min(line.at(size) for line in piece) for piece in term) for term in self.maxima
        )
        return self.line.at(size) + sum(bends)


class PlanSeconds(NamedTuple):
    """Busiest stage's times [s].

    Attributes:
        serial, upper: Serialized, and without overlap.
        hidden: Serialized, without the replicas' collectives once a step.
    """

    serial: float
    upper: float
    hidden: float


class StageTimes(NamedTuple):
    """Kernel times in a micro-batch, over kernels that a stage has equally often.

    Attributes:
        stage_part, share, only_stage: As in `KernelRun`.
        values: Slope per micro-batch, start and once, serialized; the same without overlap [s].
        replicas: Serialized time for replicas' collectives, once a step [s].
    """

    stage_part: str
    share: float
    only_stage: Stage | None
    values: tuple[float, ...]
    replicas: float


@dataclass(eq=False)
class PlanEvaluator:
    """Evaluator for plans' times and memory in one question; shared parts are computed once.

    Attributes:
        template: A case in the question: the place, model and dtypes.
        batch, context: B and S [1].
        rank: Share in the time that overlap can hide, see `RANK_TIMES` [1].
    """

    template: TrainingCase
    batch: int
    context: int
    rank: float

    def __post_init__(self) -> None:
        """Start empty memos."""
        extents = StepExtents(Step(self.batch, self.context, self.context))
        del extents["B"]
        self._extents = extents
        self._bounds: dict[KernelRuns, list[tuple[Any, ...]]] = {}
        self._times: dict[tuple[KernelRuns, int], list[StageTimes]] = {}
        self._seconds: dict[TrainingPlan, PlanSeconds] = {}
        self._saved: dict[tuple[Any, ...], list[tuple[float, ...]]] = {}
        self._names: dict[TrainingPlan, str] = {}

    @property
    def model(self) -> TrainedModel:
        """The model with its dtypes."""
        return self.template.workload.kernels.model

    @cached_property
    def capacity(self) -> float:
        """Chip memory, without end where it is unknown [byte]."""
        capacity = self.template.machine.level.capacity_bytes
        return math.inf if capacity is None else float(capacity)

    @cached_property
    def is_uniform(self) -> bool:
        """True if stages do not depend on interleaving: all mix the same kinds of layers."""
        shape = self.model.shape
        return shape.single or not (shape.mlp_layers and shape.moe_layers)

    def case(self, plan: TrainingPlan) -> TrainingCase:
        """Case with a plan."""
        sharing = replace(self.template.sharing, split=plan)
        workload = replace(self.template.workload, sharing=sharing)
        case = replace(self.template, workload=workload)
        if self.template.mapping is None:
            return case
        return case.on_fastest_axes(self.batch, self.context)

    def micro_batches(self, plan: TrainingPlan) -> int:
        """Micro-batches per step [1]."""
        return self.batch // plan.global_micro_batch

    def stretch(self, plan: TrainingPlan) -> float:
        """Micro-batches' time with the bubble, over that without [1]."""
        batches = self.micro_batches(plan)
        return (batches + (plan.pp - 1) / plan.interleave) / batches

    # -------------------------------------------------------- memory

    @cached_property
    def _states(self) -> Memo[StatePlan, list[tuple[Stage, float, float, int]]]:
        """States, gathered weights and chunks in flight, by stage kind."""
        model = self.model

        def states(plan: StatePlan) -> list[tuple[Stage, float, float, int]]:
            planned = PlannedStates(model, plan)
            return [
                (
                    stage,
                    float(planned.bytes_on(stage)),
                    float(planned.gathered_on(stage)),
                    planned.max_in_flight(stage),
                )
                for stage, _ in planned.stages
            ]

        return Memo(states)

    def bytes_of(self, plan: TrainingPlan) -> float:
        """Memory that `fits` counts on the fullest stage [byte]."""
        stages, saved = self._states[StatePlan.from_plan(plan)], self._saved_by(plan)
        size, batches = plan.micro_batch * self.context, self.micro_batches(plan)
        factor, chunks = plan.working_factor, plan.interleave
        largest = 0.0
        for (_, states, gathered, in_flight), (chunk, transient, loss) in zip(
            stages, saved, strict=True
        ):
            stage_bytes = states + (chunk * min(in_flight, batches * chunks) + transient) * size
            if factor is not None:
                stage_bytes = stage_bytes * factor + gathered + loss * size
            largest = max(largest, stage_bytes)
        return largest

    def _saved_by(self, plan: TrainingPlan) -> list[tuple[float, ...]]:
        """Activations per token and sequence, by stage kind [byte]."""
        tp = plan.tp if plan.save == "gathered" else 0
        chips = plan.pp, plan.interleave, plan.tp * plan.cp, tp, plan.is_expert_parallel
        key = (*chips, plan.recompute, plan.loss, plan.offload)
        if key not in self._saved:
            planned = PlannedModel(self.model, plan.model_copy(update={"micro_batch": 1}))
            self._saved[key] = [
                tuple(map(float, planned.activations(stage))) for stage, _ in planned.states.stages
            ]
        return self._saved[key]

    # -------------------------------------------------------- times

    @cached_property
    def _counts(self) -> Memo[tuple[Stage, str], float]:
        """Kernel copies, by stage and kernel name."""
        return Memo(lambda key: float(key[0].kernel_count(key[1])))

    def seconds(self, plan: TrainingPlan) -> PlanSeconds:
        """Busiest stage's times [s]."""
        if plan not in self._seconds:
            self._seconds[plan] = self._computed(plan)
        return self._seconds[plan]

    def _computed(self, plan: TrainingPlan) -> PlanSeconds:
        case, batches, stretched = self.case(plan), self.micro_batches(plan), self.stretch(plan)
        parts = [
            part for runs in case.run_groups for part in self._stage_times(runs, plan.micro_batch)
        ]
        most = [0.0, 0.0, 0.0]
        for stage, *_ in self._states[StatePlan.from_plan(plan)]:
            totals, replicas_s = [0.0] * 6, 0.0
            for part in parts:
                if part.only_stage is not None:
                    repeats = float(part.only_stage == stage)
                else:
                    repeats = part.share * self._counts[stage, part.stage_part]
                if repeats:
                    replicas_s += repeats * part.replicas
                    for index, value in enumerate(part.values):
                        totals[index] += repeats * value
            for index in (0, 1):
                slope, start, once = totals[3 * index : 3 * index + 3]
                seconds = (slope * batches + start) * stretched + once
                most[index] = max(most[index], seconds)
                if index == 0:
                    most[2] = max(most[2], seconds - replicas_s)
        return PlanSeconds(*most)

    def _stage_times(self, runs: KernelRuns, size: int) -> list[StageTimes]:
        """Kernel times in a micro-batch, summed by the stages that have them."""
        if (runs, size) not in self._times:
            if runs not in self._bounds:
                self._bounds[runs] = [(run, self._kernel_bounds(run.kernel)) for run in runs.runs]
            sums: dict[tuple[Any, ...], list[float]] = {}
            for run, bounds in self._bounds[runs]:
                by_bound = [bound.at(size) for bound in bounds]
                values = max(by_bound), sum(by_bound)
                terms = run.runs_per_step.terms
                is_once = run.only_stage is not None
                slope, start = (
                    0.0 if is_once else float(terms.get(extents, 0))
                    for extents in ((MICRO_BATCHES,), ())
                )
                total = sums.setdefault((run.stage_part, run.share, run.only_stage), [0.0] * 7)
                if is_once and run.kernel.works.keys() <= {NETWORK_BYTES}:
                    total[6] += values[0]
                for index, value in enumerate(values):
                    for offset, weight in enumerate((slope, start, float(is_once))):
                        total[3 * index + offset] += weight * value
            self._times[runs, size] = [
                StageTimes(part, float(share), stage, tuple(total[:6]), total[6])
                for (part, share, stage), total in sums.items()
            ]
        return self._times[runs, size]

    def _kernel_bounds(self, kernel: Kernel) -> list[Bound]:
        """Kernel times by resource, with activation traffic in memory time."""
        bounds = []
        for resource in RESOURCES:
            if resource.rate is None:
                bounds.append(self._sending(kernel.transfers))
                continue
            line = self._work_time(kernel, resource)
            if resource is MEMORY:
                line = line.plus(self._work_time(kernel, ACTIVATION))
            bounds.append(Bound(line, ()))
        return bounds

    def _work_time(self, kernel: Kernel, resource: Resource) -> SizeLine:
        """Time for a kernel's work on a resource with a rate."""
        work = resource.kernel_work(kernel)
        if not work:
            return NO_TIME
        rate = cast("Callable[[ChipRates, str], Fraction]", resource.rate)
        return self._line(work, float(rate(self.template.machine, kernel.compute)))

    def _sending(self, transfers: Sequence[Transfer]) -> Bound:
        """Collective times, one after another: the larger time, sending or hops."""
        line, maxima = NO_TIME, []
        share = self.template.machine.efficiency[NETWORK.name]
        for transfer in transfers:
            if transfer.load is not None:
                pace, hops = map(float, transfer.load.own_time(share))
            else:
                rates = collective_rates(cast("Route", transfer.route), transfer.kind, share)
                levels = [*zip(transfer.bytes_per_payload_byte, rates, strict=True)]
                pace = max(float(sent) / float(rate.per_s) for sent, rate in levels)
                hops = max(float(rate.latency_s) if sent else 0.0 for sent, rate in levels)
            sending = self._line(transfer.payload, 1.0 / pace) if pace else NO_TIME
            if hops:
                maxima.append(((sending,), (SizeLine(hops, 0.0),)))
            else:
                line = line.plus(sending)
        return Bound(line, tuple(maxima))

    def _line(self, poly: Poly, per_s: float) -> SizeLine:
        """Time for a work at this context, as a line in a micro-batch's sequences."""
        constant = slope = 0.0
        experts = []
        for extents, coefficient in poly.terms.items():
            varying = [extent for extent in extents if MICRO_BATCH in extent.sizes]
            value = float(coefficient) / per_s
            for extent in extents:
                if MICRO_BATCH not in extent.sizes:
                    value *= float(self._extents[extent])
            if not varying:
                constant += value
            elif varying == [MICRO_BATCH]:
                slope += value
            else:
                experts.append((value, *self._decay(varying)))
        return SizeLine(constant, slope, tuple(experts))

    def _decay(self, varying: Sequence[Extent]) -> tuple[float, float]:
        """Experts in a layer, and the rate at which those not read decay per sequence."""
        (activated,) = varying
        chosen = cast("ActivatedExperts", activated)
        tokens = math.prod(
            float(self._extents[size]) for size in chosen.tokens if size != MICRO_BATCH
        )
        return float(chosen.experts), chosen.decay * tokens

    # -------------------------------------------------------- order

    def rank_s(self, plan: TrainingPlan) -> float:
        """Time that ranks a plan [s]."""
        serial, upper, _ = self.seconds(plan)
        return serial + self.rank * (upper - serial)

    def floor_s(self, plan: TrainingPlan, shards: Sequence[str]) -> float:
        """Time before which no plan with these values for `shard` ranks [s].

        Without overlap none takes less than `optimizer` but for `none`, whose gradients may be
        smaller than weights; serialized, collectives in a micro-batch may hide.
        """
        floors = []
        if "none" in shards or len(shards) == 1:
            floors.append(self.rank_s(plan.model_copy(update={"shard": shards[0]})))
        if len(shards) > 1:
            _, upper, hidden = self.seconds(plan.model_copy(update={"shard": "optimizer"}))
            floors.append(hidden + self.rank * (upper - hidden))
        return min(floors) * (1 - SLACK)

    def order(self, plan: TrainingPlan) -> tuple[Any, ...]:
        """Order of plans: time, least recomputed, memory, least sharded, name."""
        return plan_order(self.rank_s(plan), self.bytes_of(plan), plan, self.name(plan))

    def name(self, plan: TrainingPlan) -> str:
        """Plan name."""
        if plan not in self._names:
            self._names[plan] = plan.name
        return self._names[plan]


def plan_order(
    rank_s: float, held_bytes: float, plan: TrainingPlan, name: str
) -> tuple[float, int, float, int, str]:
    """Order of plans: time and memory to `DIGITS` digits.

    Args:
        rank_s: Time that ranks [s].
        held_bytes: Memory that `fits` counts [byte].
        plan: The plan.
        name: Its name.
    """
    recomputed, sharded = RECOMPUTE.index(plan.recompute), SHARDS.index(plan.shard)
    return rounded(rank_s, DIGITS), recomputed, rounded(held_bytes, DIGITS), sharded, name


# ------------------------------------------------------------ space


@dataclass(eq=False)
class PlanSpace:
    """Choices for a layout.

    Attributes:
        evaluator: Times and memory.
        free: Keys that are searched, from `SEARCHED` and `ON_REQUEST`.
    """

    evaluator: PlanEvaluator
    free: frozenset[str]

    def __post_init__(self) -> None:
        """Start an empty memo."""
        self._interleaves: dict[int, list[int]] = {}

    def interleaves(self, layout: TrainingPlan) -> list[int]:
        """Chunks per stage that the model allows, 1 first."""
        if "interleave" not in self.free:
            return [layout.interleave]
        if layout.pp not in self._interleaves:
            shape = self.evaluator.model.shape
            allowed = [1]
            for chunks in range(2, min(MAX_INTERLEAVE, shape.layers // layout.pp) + 1):
                if shape.layers % (layout.pp * chunks):  # unequal stages are not searched
                    continue
                try:
                    layout.model_copy(update={"interleave": chunks}).check(shape)
                except RooflinesError:
                    continue
                allowed.append(chunks)
            self._interleaves[layout.pp] = allowed if layout.pp > 1 else [1]
        return self._interleaves[layout.pp]

    def micro_batches(self, layout: TrainingPlan) -> list[int]:
        """Sequences in a micro-batch that divide a replica's, ascending."""
        sequences = self.evaluator.batch // layout.dp
        if layout.gradients == "freed":
            return [sequences] if "micro_batch" in self.free else [layout.micro_batch]
        return divisors(sequences) if "micro_batch" in self.free else [layout.micro_batch]

    def shards(self, layout: TrainingPlan) -> tuple[str, ...]:
        """Values for `shard`; `none` only where it may send less than `optimizer`."""
        if "shard" not in self.free:
            return (layout.shard,)
        if layout.replicas == layout.expert_replicas == 1:
            return ("optimizer",)
        sizes = self.evaluator.model.sizes
        return SHARDS if sizes["gradients"] < sizes["weights"] else SHARDS[1:]

    @cached_property
    def variants(self) -> list[Mapping[str, object]]:
        """Values for keys that are searched on request."""
        variants: list[Mapping[str, object]] = [{}]
        for key, values in (("loss", (LOGITS, FUSED_LOSS)), ("offload", OFFLOADS)):
            if key in self.free:
                variants = [{**update, key: value} for update, value in product(variants, values)]
        return variants

    def recomputes(self, layout: TrainingPlan) -> list[tuple[str, ...]]:
        """Values for `recompute`: those that repeat no FLOPs, most memory first; and `full`."""
        if "recompute" not in self.free:
            return [(layout.recompute,)]
        return [RECOMPUTE[:2], RECOMPUTE[2:]]

    def plans(self, layout: TrainingPlan) -> Iterator[TrainingPlan]:
        """Yield every plan with a layout."""
        again = [mode for modes in self.recomputes(layout) for mode in modes]
        for variant, chunks, size, shard, recompute in product(
            self.variants,
            self.interleaves(layout),
            self.micro_batches(layout),
            self.shards(layout),
            again,
        ):
            keys = {"interleave": chunks, "micro_batch": size, "shard": shard}
            yield layout.model_copy(update={**variant, **keys, "recompute": recompute})

    def lean_shards(self, layout: TrainingPlan) -> tuple[str, ...]:
        """Values for `shard`, among them that with the least memory."""
        shards = self.shards(layout)
        return shards[-1:] if layout.working_factor is None else shards

    def leanest(self, layout: TrainingPlan) -> TrainingPlan:
        """Plan that needs the least memory."""
        size = self.micro_batches(layout)[0]
        chunks = self.interleaves(layout)
        again = [modes[-1] for modes in self.recomputes(layout)]
        lean = [
            layout.model_copy(
                update={
                    **variant,
                    "interleave": runs,
                    "micro_batch": size,
                    "shard": shard,
                    "recompute": recompute,
                }
            )
            for variant, runs, shard, recompute in product(
                self.variants,
                chunks[:1] if self.evaluator.is_uniform else chunks,
                self.lean_shards(layout),
                again,
            )
        ]
        return min(lean, key=self.evaluator.bytes_of)

    def fits(self, plan: TrainingPlan) -> bool:
        """True if the plan's memory is within the chip's."""
        return self.evaluator.bytes_of(plan) <= self.evaluator.capacity


# ------------------------------------------------------------ search


TOO_LARGE = "do not fit, whatever is sharded or recomputed"
SLOWER_AT_BEST = "are slower than those shown, even with memory without end"
SLOWER = "are slower than those shown, with what fits"


@dataclass
class FoundPlans:
    """Outcome of a search.

    Attributes:
        plans: The best plan of each layout, best first.
        reasons: Layouts without one, by reason.
        leanest: Where none fits, the plan that needs the least memory.
        layouts: Layouts that were searched [1].
    """

    plans: list[TrainingPlan]
    reasons: Counter[str] = field(default_factory=Counter)
    leanest: TrainingPlan | None = None
    layouts: int = 0


class Floor(NamedTuple):
    """Least time for plans, whatever fits.

    Attributes:
        rank_s: No plan with these chunks and micro-batch ranks before [s].
        plan: A plan; its `recompute` is the last in `modes`.
        modes: Values for `recompute`.
    """

    rank_s: float
    plan: TrainingPlan
    modes: tuple[str, ...]


def search(
    space: PlanSpace, layouts: Sequence[TrainingPlan], keep: int | None = None
) -> FoundPlans:
    """Search each layout's best plan, and the best among these.

    Args:
        space: What may be chosen.
        layouts: The layouts.
        keep: How many plans are found; None: one of each layout that fits [1].
    """
    evaluator = space.evaluator
    outcome = FoundPlans([], layouts=len(layouts))
    floors = []
    leanest: list[TrainingPlan] = []
    for layout in layouts:
        lean = space.leanest(layout)
        if space.fits(lean):
            floors.append(sorted(_floors(space, layout), key=lambda floor: floor.rank_s))
        else:
            leanest.append(lean)
    if leanest:
        outcome.reasons[TOO_LARGE] = len(leanest)
    if not floors:
        outcome.leanest = min(leanest, key=evaluator.bytes_of, default=None)
        return outcome
    floors.sort(key=lambda of_layout: of_layout[0].rank_s)
    best: list[tuple[tuple[Any, ...], TrainingPlan]] = []
    for index, of_layout in enumerate(floors):
        last_s = best[keep - 1][0][0] if keep is not None and len(best) >= keep else math.inf
        if of_layout[0].rank_s > last_s * (1 + ROUNDING):
            outcome.reasons[SLOWER_AT_BEST] = len(floors) - index
            break
        entry = _best_of(space, of_layout, last_s)
        if entry is None:
            outcome.reasons[SLOWER] += 1
            continue
        best.append(entry)
        best.sort(key=lambda entry: entry[0])
        if keep is not None and len(best) > keep:
            best.pop()
            outcome.reasons[SLOWER] += 1
    outcome.plans = [plan for _, plan in best]
    return outcome


def _floors(space: PlanSpace, layout: TrainingPlan) -> Iterator[Floor]:
    """Yield a floor for each interleave, micro-batch and group of recomputations."""
    evaluator = space.evaluator
    for variant, modes in product(space.variants, space.recomputes(layout)):
        base = layout.model_copy(update={**variant, "recompute": modes[-1]})
        by_chunks: dict[int, list[TrainingPlan]] = {}
        for chunks in space.interleaves(layout):
            plans = []
            for size in space.micro_batches(layout):
                plan = base.model_copy(update={"interleave": chunks, "micro_batch": size})
                lean = (
                    plan.model_copy(update={"shard": shard}) for shard in space.lean_shards(layout)
                )
                if not any(map(space.fits, lean)):
                    break  # more sequences never need less
                plans.append(plan)
            if plans:
                by_chunks[chunks] = plans
        if not by_chunks:
            continue
        largest = max(plans[-1].micro_batch for plans in by_chunks.values())
        tops: dict[int, tuple[float, float]] = {}
        for chunks, plans in by_chunks.items():
            start = min(by_chunks) if evaluator.is_uniform else chunks
            if start not in tops:
                top = base.model_copy(update={"interleave": start, "micro_batch": largest})
                floor_s = min(
                    evaluator.floor_s(
                        top.model_copy(update={"recompute": mode}), space.shards(layout)
                    )
                    for mode in modes
                )
                tops[start] = floor_s, evaluator.stretch(top)
            top_s, top_stretch = tops[start]
            for plan in plans:
                share = min(evaluator.stretch(plan) / top_stretch, 1.0)
                yield Floor(top_s * share, plan, modes)


def _best_of(
    space: PlanSpace, floors: Sequence[Floor], last_s: float
) -> tuple[tuple[Any, ...], TrainingPlan] | None:
    """Best plan in a layout with its order; None: none ranks before `last_s`."""
    evaluator, best = space.evaluator, None
    for floor in floors:
        limit_s = min(last_s, best[0][0] if best else math.inf) * (1 + ROUNDING)
        if floor.rank_s > limit_s:
            break
        for plan in _fitting(space, floor):
            if evaluator.rank_s(plan) <= limit_s:
                entry = evaluator.order(plan), plan
                if best is None or entry[0] < best[0]:
                    best = entry
    return best


def _fitting(space: PlanSpace, floor: Floor) -> Iterator[TrainingPlan]:
    """Yield a floor's plans that fit."""
    for shard, mode in product(space.shards(floor.plan), floor.modes):
        plan = floor.plan.model_copy(update={"shard": shard, "recompute": mode})
        if space.fits(plan):
            yield plan
