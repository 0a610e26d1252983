"""Sweeps over training steps, and their cases: a model with a plan, in the phase `train`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import groupby, product
from typing import TYPE_CHECKING, Any, ClassVar, cast

from rooflines.basics.memo import KeyT, Memo, ValueT
from rooflines.dictionary.columns import columns_of
from rooflines.fits.calibration_choice import bands_of
from rooflines.fits.calibration_files import AUTO_CALIBRATION
from rooflines.hardware.chip_catalogue import SET_SUFFIX
from rooflines.hardware.support import Reason, host_link, interconnects, need_of
from rooflines.models.architecture import PREFILL, TRAIN
from rooflines.models.groups import StepExtents
from rooflines.models.step_kernels import Sharing
from rooflines.models.tensor_dtypes import STATE_DTYPE, bits_of
from rooflines.sweep.axes import Axis
from rooflines.sweep.cases import Block, ChipPlace, Skipped, skipped_rows
from rooflines.sweep.step_sweep import MAX_ENDS, ModelSweep, StepCase, skipped_split, step_axis
from rooflines.theory.costs import BITS_PER_BYTE
from rooflines.theory.network import TORUS, group_size
from rooflines.theory.poly import Poly, total
from rooflines.theory.resources import sum_collective_times
from rooflines.training.optimizers import optimizer_of
from rooflines.training.torus_plans import fastest_for, torus_mappings
from rooflines.training.training_kernels import (
    MICRO_BATCH,
    MICRO_BATCHES,
    ModelKernels,
    TrainingKernels,
    amounts_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rooflines.config.model_fields import ModelSweepConfig
    from rooflines.dictionary.columns import Column
    from rooflines.fits.calibration_files import Calibrations, FittedTraining
    from rooflines.hardware.dtype_catalogue import DtypeFile
    from rooflines.hardware.entries import Chip
    from rooflines.models.architecture import Phase
    from rooflines.models.groups import Step
    from rooflines.models.model import Model
    from rooflines.models.split import Parallelism
    from rooflines.models.tensor_dtypes import StepDtypes
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.network import Link
    from rooflines.theory.resources import CollectiveTimes, Resource
    from rooflines.theory.times import Times
    from rooflines.theory.tori import AxisMapping
    from rooflines.training.parallel_plan import TrainingPlan
    from rooflines.training.stage_memory import StageMemory
    from rooflines.training.training_kernels import KernelRun, KernelRuns


MIN_CHOICES = 2
"""Mappings among which one is chosen [1]."""

POINT_COLUMN = "#point"
"""Column with the index of a context."""

PlacedRuns = tuple["ChipPlace", "KernelRuns", int]
"""Kernels of a micro-batch at a place, and sequences in the micro-batch."""

SizedCase = tuple[tuple[tuple[int, ...], tuple[int, ...]], "TrainingCase"]
"""Case with the batches and contexts that its plan allows."""


@dataclass(frozen=True, eq=False)
class TrainingCase(StepCase):
    """Case: a training step at a place; works are for one chip, in the mean over all stages.

    Attributes:
        workload: The step's kernels.
        mapping: Mapping from the plan onto torus axes; None: on another network.
    """

    workload: TrainingKernels
    mapping: AxisMapping | None = field(default=None, kw_only=True)

    @property
    def plan(self) -> TrainingPlan:
        """Plan: split of the step over chips."""
        return self.workload.plan

    @property
    def shares(self) -> Mapping[str, tuple[str, int]]:
        """Micro-batches, B / global micro-batch; see `Case.shares`."""
        return {MICRO_BATCHES: ("B", self.plan.global_micro_batch)}

    @cached_property
    def keys(self) -> Mapping[str, str | int | None]:
        """Values in tables' key columns."""
        plan = self.plan
        keys = {"pp": plan.pp, "cp": plan.cp, "interleave": plan.interleave}
        keys[MICRO_BATCH] = plan.micro_batch
        return {**super().keys, **keys, "shard": plan.shard, "recompute": plan.recompute}

    @property
    def trained_parameters(self) -> int:
        """Parameters that the training changes [1]."""
        return self.workload.kernels.model.trained_parameters(self.plan.lora)

    @cached_property
    def run_groups(self) -> tuple[KernelRuns, ...]:
        """Groups of kernel runs in a step, which plans share."""
        return self.workload.runs_over(self.place.links, self.host, self.mapping)

    @property
    def host(self) -> Link | None:
        """Link to the host, over which a plan offloads; None: it does not, or there is none."""
        link = host_link(self.place.entry) if self.plan.offload else None
        return None if link is None else link[1]

    @property
    def placed_runs(self) -> list[PlacedRuns]:
        """Runs in a micro-batch, with all that their times depend on."""
        return [(self.place, runs, self.plan.micro_batch) for runs in self.run_groups]

    @cached_property
    def runs(self) -> tuple[KernelRun, ...]:
        """Runs in a step: in every micro-batch, then once."""
        return tuple(run for runs in self.run_groups for run in runs.runs)

    @property
    def listed_count(self) -> int:
        """Kernels that the kernel table lists [1]."""
        return len(self.listed_kernels)

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """Kernels of a micro-batch, then once a step."""
        return tuple(run.kernel for run in self.runs)

    def runs_of(self, index: int) -> Poly:
        """Kernel runs per layer and step, by the kernel's position [1]."""
        return self.runs[index].runs_per_step

    def _summed_work(self, column: str) -> Poly:
        """Compute a column's work, in the mean over all stages."""
        return total(runs.works[column] for runs in self.run_groups) / self.plan.pp

    def rate(self, resource: Resource) -> Fraction | None:
        """Rate for all work on a resource [FLOP/s]; None: several, or collectives."""
        if resource.rate is None:
            return None
        rates = {resource.rate(self.machine, dtype) for dtype in self.sharing.compute}
        return rates.pop() if len(rates) == 1 else None

    def work_time(self, resource: Resource) -> Poly:
        """Nominal resource time, except the network, averaged over stages [s]."""
        rate = self.rate(resource)
        if rate is not None:
            return self.work(resource.work) / rate
        times = (runs.work_time(resource, self.machine) for runs in self.run_groups)
        return total(times) / self.plan.pp

    @cached_property
    def collective_times(self) -> CollectiveTimes:
        """Nominal collective times, averaged over stages [s]."""
        share, times = Fraction(1, self.plan.pp), self.place.collective_times
        return sum_collective_times((share, times[runs]) for runs in self.run_groups)

    @cached_property
    def kernel_estimates(self) -> tuple[Times | None, ...]:
        """Estimates of kernels: None, since no calibration has training kernels."""
        return (None,) * len(self.kernels)

    @property
    def timed_chip(self) -> str:
        """Chip by whose steps the slowdown is fitted: without numbers typed with `--set`."""
        return self.chip.removesuffix(SET_SUFFIX)

    @property
    def fit(self) -> FittedTraining | None:
        """Fitted slowdown; None without a calibration."""
        return self.choice.calibrations.training_of(
            self.timed_chip, self.softwares, self.computes[0], experts=self.has_experts
        )

    @property
    def math_slowdown(self) -> float | None:
        """Fitted time over the math [1]; None: there is no fit, or one to more than the math.

        The time without overlap has memory and networks in it, and says nothing of math alone.
        """
        fit = self.fit
        return self.slowdown if fit is not None and fit.base == "math" else None

    @property
    def slowdown(self) -> float | None:
        """Fitted time over the time that the fit is of [1]; None: there is no fit."""
        return None if self.fit is None else self.fit.slowdown(self.model.shape.D)

    @property
    def unjudged_part(self) -> str | None:
        """Model part that no judged step has, so that no fit applies; None: there is none.

        Judged steps have attention to all tokens or a window, or states beside experts.
        """
        shape = self.model.shape
        if shape.sparse is not None:
            return "sparse attention"
        return "states without experts" if shape.state is not None and not shape.moe else None

    @property
    def softwares(self) -> Sequence[str]:
        """Software whose training fits may apply."""
        if self.unjudged_part is not None:
            return ()
        named = self.place.sweep.config.calibration
        if named == [AUTO_CALIBRATION]:
            return self.choice.calibrations.training_softwares(
                self.timed_chip, self.computes[0], experts=self.has_experts
            )
        return named or ()

    @property
    def fitted_softwares(self) -> list[str]:
        """Software whose fit the estimate takes; empty: there is no estimate."""
        fits = self.choice.calibrations
        compute, experts = self.computes[0], self.has_experts
        return [
            name
            for name in self.softwares
            if fits.training_of(self.timed_chip, [name], compute, experts=experts)
        ][:1]

    @property
    def band(self) -> tuple[float | None, float | None]:
        """Band: p10 and p90 of measured over estimated time [1]; None without a calibration."""
        none = (None, None)
        return bands_of(self.fit).get("step", none) if self.fit else none

    @cached_property
    def stage_memory(self) -> tuple[StageMemory, ...]:
        """Memory on a chip, by kind of stage."""
        planned = self.workload.planned
        return tuple(planned.memory(stage) for stage, _ in self.workload.stages)

    def on_fastest_axes(self, batch: int, context: int) -> TrainingCase:
        """The case on the mapping with the least network time in a step; itself elsewhere.

        Args:
            batch: B, sequences in all replicas [1].
            context: S, tokens in each [1].
        """
        mappings = self.mappings
        if len(mappings) < MIN_CHOICES:
            return replace(self, mapping=mappings[0]) if mappings else self
        runs = self.workload.runs_over(self.place.links, self.host, mappings[0])
        amounts = amounts_of(runs, self.extents(self.step(batch, context)))
        return replace(self, mapping=fastest_for(mappings, amounts))

    @property
    def mappings(self) -> tuple[AxisMapping, ...]:
        """Mappings onto torus axes that the plan allows; empty on another network."""
        place = self.place
        if self.plan.chips == 1 or not place.links or place.links[0].topology != TORUS:
            return ()
        mappings = torus_mappings(self.plan, place.networks, place.links)
        return () if isinstance(mappings, Reason) else mappings

    def extents(self, step: Step) -> StepExtents:
        """Extents for a step; B counts sequences in all replicas."""
        extents = StepExtents(step)
        extents[MICRO_BATCH] = self.plan.micro_batch
        extents[MICRO_BATCHES] = step.B // self.plan.global_micro_batch
        return extents


@dataclass(frozen=True, repr=False)
class TrainingSweep(ModelSweep):
    """Sweep over training steps: sizes, dtypes, chips and plans.

    The order of rows is fixed, slowest first: chip, model, split, memory, network, dtypes, B, S.
    On a torus a plan takes the mapping onto its axes with the least network time in a step.
    """

    fastest_axes: bool = field(default=True, kw_only=True)
    maps_axes: ClassVar[bool] = True

    def workload(self, name: str, phase: Phase, split: Parallelism, label: str) -> TrainingKernels:
        """Kernels for a model with these dtypes."""
        computed, config = self.combinations[label].compute_dtypes, self.config
        sharing = Sharing(split, self.bits[label], computed, config.cache_split, config.routing)
        kernels = self._model_kernels[name, label]
        return TrainingKernels(self.models[name].shape, phase, sharing, kernels=kernels)

    @cached_property
    def _model_kernels(self) -> Memo[tuple[str, str], ModelKernels]:
        """Kernels by model and dtypes, shared by all plans."""

        def kernels(key: tuple[str, str]) -> ModelKernels:
            name, label = key
            compute = self.combinations[label].compute_dtypes
            return ModelKernels.with_dtypes(self.models[name].shape, self.bits[label], compute)

        return Memo(kernels)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns in order."""
        has = {"tokens": self.config.tokens is not None}
        return columns_of("training", **has, measured=self.config.measured is not None)

    @cached_property
    def layer_columns(self) -> tuple[Column, ...]:
        """Kernel columns, in order."""
        return columns_of("training-layers")

    def memo(self, function: Callable[[KeyT], ValueT]) -> Memo[KeyT, ValueT]:
        """Values of a function by its argument, kept with the sweep."""
        return self._memos.setdefault(function, Memo(function))

    @cached_property
    def _memos(self) -> dict[Callable[[Any], Any], Memo[Any, Any]]:
        return {}

    def max_thresholds(self) -> int:
        """Count threshold rows, at most [1]."""
        rows_per_axis = {"B": len(self.contexts), "S": len(self.batches)}
        rows_per_axis |= {"S_offload": 4 * self._max_lever_rows()["S_pull"], "X_offload": 2}
        points = len(self.contexts) * len(self.batches)
        of_stages = {"S_zero": 6 * points, "batches_zero": 3 * MAX_ENDS * points}
        rows_per_axis |= {**of_stages, "micro_batch_recompute": 3 * MAX_ENDS * points}
        return len(self.cases) * sum(
            rows_per_axis.get(axis, points) for axis in self.config.thresholds
        )

    def find_cases(self) -> tuple[tuple[Any, ...], tuple[Skipped, ...]]:
        """Find supported cases, in blocks with equal sizes and as many stages, and skipped rows."""
        rows: Counter[Skipped] = Counter()
        blocks = []

        def block_key(sized_case: SizedCase) -> tuple[Any, ...]:
            """Sizes, model and number of kinds of stages, which a block's cases share."""
            sizes, case = sized_case
            return (*sizes, case.name, len(case.workload.stages))

        for (batches, contexts, *_), group in groupby(self._cases(rows), key=block_key):
            cases = tuple(case for _, case in group)
            points = step_axis(cases[0].model.shape, PREFILL, contexts, None)
            points = Axis({**points.columns, POINT_COLUMN: range(points.count)})
            blocks.append(Block((), cases, (Axis({"B": batches}), points)))
        return tuple(blocks), skipped_rows(rows)

    def _placed(self, plan: TrainingPlan) -> Callable[[ChipPlace], ChipPlace]:
        """Function from a place to the plan's: with a network between pods, and in its groups."""

        def placed(place: ChipPlace) -> ChipPlace:
            if not place.links or plan.chips == 1:
                return place
            if place.links[0].topology == TORUS:
                joined = plan.pods > 1 and len(place.links) == 1
                return self._pod_places[place] if joined else place
            return self._grouped_places[place, plan.chips, plan.group]

        return placed

    @cached_property
    def _grouped_places(self) -> Memo[tuple[ChipPlace, int, int | None], ChipPlace]:
        """Places whose inner network joins a job's groups, by place, chips and typed group."""

        def grouped(key: tuple[ChipPlace, int, int | None]) -> ChipPlace:
            place, chips, typed = key
            inner, *outer = place.links
            if typed is None and (not outer or inner.domain is None or not inner.domain_known):
                return place
            domain = typed or group_size(chips, inner.domain)
            if typed is None and (domain == 1 or chips <= (inner.domain or chips)):
                return place
            links = (replace(inner, domain=domain, domain_known=True), *outer)
            return replace(place, links=links)

        return Memo(grouped)

    @cached_property
    def _pod_places(self) -> Memo[ChipPlace, ChipPlace]:
        """Places on torus pods, by the place on one."""

        def joined(place: ChipPlace) -> ChipPlace:
            outer = next(
                (
                    name
                    for name, network in place.entry.networks.items()
                    if network.exact.domain is None and network.exact.topology != TORUS
                ),
                None,
            )
            if outer is None:
                return place
            route = [*place.networks, outer]
            joint = interconnects(place.entry, route)
            return ChipPlace(self, place.chip, place.memory, *joint, route)

        return Memo(joined)

    def _cases(self, rows: Counter[Skipped]) -> Iterator[SizedCase]:
        """Yield the cases, each with the batches and contexts that its plan allows.

        Args:
            rows: Counter to which unsupported rows are added.
        """
        whole = len(self.batches) * len(self.contexts)
        for name, split in product(self.models, self.config.splits):
            plan, impossible = cast("TrainingPlan", split), skipped_split(self, name, split)
            batches = tuple(
                batch
                for batch in self.batches
                if batch % plan.global_micro_batch == 0
                and (plan.gradients == "kept" or batch == plan.global_micro_batch)
            )
            contexts = tuple(context for context in self.contexts if context % plan.cp == 0)
            skipped_plan = Skipped("", model=name, split=plan.name)
            problem = Reason(
                "multiple", f"B is no multiple of {plan.global_micro_batch}, dp * micro_batch"
            )
            if plan.gradients == "freed":
                problem = Reason(
                    "once",
                    f"B is not {plan.global_micro_batch}, dp * micro_batch, and freed gradients do "
                    "not add up over micro-batches",
                )
            uneven = {
                problem: whole - len(batches) * len(self.contexts),
                Reason("multiple", f"S is no multiple of {plan.cp}, cp"): (
                    len(batches) * (len(self.contexts) - len(contexts))
                ),
            }
            workloads = {
                label: self.workload(name, TRAIN, plan, label) for label in self.combinations
            }
            for supported in self.supported_at(
                {plan.name: plan.groups}, lambda split: {"split": split}, self._placed(plan)
            ):
                place = supported.place
                for skipped, combinations in supported.skipped.items():
                    unjoined = need_of(skipped.reason) == "network"
                    rows[(unjoined and impossible) or skipped] += whole * combinations
                obstacle = impossible
                if placement_problem := plan.placement_problem(place.networks, place.links):
                    obstacle = obstacle or replace(
                        skipped_plan, reason=placement_problem, chip=place.chip
                    )
                if plan.offload and host_link(supported.place.entry) is None:
                    hostless = Reason("host", "no link to its host in the catalogue")
                    obstacle = obstacle or replace(
                        skipped_plan, reason=hostless, chip=supported.place.chip
                    )
                for label in supported.dtypes if supported.splits else ():
                    unmet = obstacle
                    if contradiction := _contradiction(plan, self.combinations[label]):
                        unmet = unmet or replace(skipped_plan, reason=contradiction)
                    if unmet is not None:
                        rows[unmet] += whole
                        continue
                    for reason, number in uneven.items():
                        rows[replace(skipped_plan, reason=reason)] += number
                    if batches and contexts:
                        model, dtypes = self.models[name], self.combinations[label]
                        case = TrainingCase(place, name, model, dtypes, workloads[label])
                        yield from _on_axes(case, batches, contexts)


def _on_axes(
    case: TrainingCase, batches: tuple[int, ...], contexts: tuple[int, ...]
) -> Iterator[SizedCase]:
    """Yield a case with its sizes; on a torus by the mappings that are the fastest for them."""
    if len(case.mappings) < MIN_CHOICES:
        yield (batches, contexts), case.on_fastest_axes(batches[0], contexts[0])
        return
    cases = {size: case.on_fastest_axes(*size) for size in product(batches, contexts)}
    if len({sized.mapping for sized in cases.values()}) == 1:
        yield (batches, contexts), cases[batches[0], contexts[0]]
        return
    for (batch, context), sized in cases.items():
        yield ((batch,), (context,)), sized


def _contradiction(plan: TrainingPlan, dtypes: StepDtypes) -> Reason | None:
    """Reason why an optimizer and dtypes contradict each other; None: they do not."""
    for tensors, size in optimizer_of(plan.optimizer).sizes.items():
        dtype = getattr(dtypes, tensors)
        if dtype not in (None, STATE_DTYPE) and bits_of(dtype) != size * BITS_PER_BYTE:
            problem = f"{plan.optimizer} does not have {tensors} in {dtype}"
            return Reason("optimizer", problem)
    return None


def sweep_of_models(  # noqa: PLR0913, PLR0917, the fields of a sweep
    name: str,
    config: ModelSweepConfig,
    chips: Mapping[str, Chip],
    dtypes: DtypeFile,
    calibrations: Calibrations,
    models: Mapping[str, Model],
) -> ModelSweep:
    """Build a config's sweep, over training in that phase; arguments as in `ModelSweep`."""
    kind = TrainingSweep if TRAIN in config.phase else ModelSweep
    return kind(name, config, chips, dtypes, calibrations, models)
