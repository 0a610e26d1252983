"""Sweeps of steps of training, and their cases: a model with a plan, in the phase `train`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import groupby, product
from typing import TYPE_CHECKING, Any, cast

from rooflines.dictionary.columns import columns_of
from rooflines.fits.calibration_choice import bands_of
from rooflines.hardware.support import Reason, need_of
from rooflines.models.architecture import PREFILL, TRAIN
from rooflines.models.groups import StepExtents
from rooflines.models.step_kernels import Sharing
from rooflines.sweep.axes import Axis
from rooflines.sweep.cases import Block, Skipped, skipped_rows
from rooflines.sweep.step_sweep import ModelSweep, StepCase, not_split, step_axis
from rooflines.theory.poly import Poly, total
from rooflines.theory.resources import sum_time_terms
from rooflines.training.training_kernels import MICRO_BATCH, MICRO_BATCHES, TrainingKernels

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.config.model_fields import ModelSweepConfig
    from rooflines.dictionary.columns import Column
    from rooflines.fits.calibration_files import Calibrations, FittedTraining
    from rooflines.hardware.dtype_catalogue import DtypeFile
    from rooflines.hardware.entries import Chip
    from rooflines.models.architecture import Phase
    from rooflines.models.groups import Step
    from rooflines.models.model import Model
    from rooflines.models.split import Split
    from rooflines.sweep.cases import ChipPlace
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.resources import Resource, TimeTerms
    from rooflines.theory.times import Times
    from rooflines.training.parallel_plan import TrainingPlan
    from rooflines.training.stage_memory import StageMemory
    from rooflines.training.training_kernels import KernelRun, KernelRuns


POINT = "#point"
"""The column with the index of a context."""

Placed = tuple["ChipPlace", "KernelRuns", int]
"""Kernels of a micro-batch at a place, and the sequences of the micro-batch."""

SizedCase = tuple[tuple[tuple[int, ...], tuple[int, ...]], "TrainingCase"]
"""A case, with the batches and contexts that its plan allows."""


@dataclass(frozen=True, eq=False)
class TrainingCase(StepCase):
    """A step of training of a model at a place; works are of one chip, in the mean of all stages.

    Attributes:
        workload: Its kernels.
    """

    workload: TrainingKernels

    @property
    def plan(self) -> TrainingPlan:
        """How chips share the step."""
        return self.workload.plan

    @property
    def shares(self) -> Mapping[str, tuple[str, int]]:
        """Its micro-batches; see `Case.shares`."""
        return {MICRO_BATCHES: ("B", self.plan.global_micro_batch)}

    @property
    def keys(self) -> Mapping[str, str | int | None]:
        """Its values in the key columns of tables."""
        plan = self.plan
        own = {"pp": plan.pp, "cp": plan.cp, "interleave": plan.interleave}
        own[MICRO_BATCH] = plan.micro_batch
        return {**super().keys, **own, "shard": plan.shard, "recompute": plan.recompute}

    @cached_property
    def together(self) -> tuple[KernelRuns, ...]:
        """What runs in a step, by what plans have in common."""
        return self.workload.runs_over(self.place.links)

    @property
    def placed(self) -> list[Placed]:
        """What runs in a micro-batch, with what decides its times."""
        return [(self.place, runs, self.plan.micro_batch) for runs in self.together]

    @cached_property
    def runs(self) -> tuple[KernelRun, ...]:
        """What runs in a step: in every micro-batch, then once."""
        return tuple(run for runs in self.together for run in runs.runs)

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """What runs in a micro-batch, then once a step."""
        return tuple(run.kernel for run in self.runs)

    def runs_of(self, index: int) -> Poly:
        """How often a layer runs a kernel in a step, by its position [1]."""
        return self.runs[index].runs_per_step

    def _summed_work(self, column: str) -> Poly:
        """The work of a column, in the mean of all stages."""
        return total(runs.work(column) for runs in self.together) / self.plan.pp

    def apart(self, resource: Resource) -> TimeTerms:
        """Nominal times of a resource, in the mean of all stages; see `resources.time_terms`."""
        if resource.rate is not None:
            rates = [self.machine.rate(resource, each) for each in {*self.sharing.compute}]
            if len({each.per_s for each in rates}) == 1 and not rates[0].latency_s:
                return [self.work(resource.work) / rates[0].per_s], []
        share = Fraction(1, self.plan.pp)
        return sum_time_terms((share, self._apart(resource, runs)) for runs in self.together)

    def _apart(self, resource: Resource, runs: KernelRuns) -> TimeTerms:
        known, key = self.place.known, (resource.name, runs)
        if key not in known:
            known[key] = runs.time_terms(resource, self.machine)
        return known[key]

    @cached_property
    def kernel_estimates(self) -> tuple[Times | None, ...]:
        """None: no calibration is of kernels of training."""
        return (None,) * len(self.kernels)

    @property
    def fit(self) -> FittedTraining | None:
        """How much longer steps take than without overlap; None without a calibration."""
        return self.choice.calibrations.training_of(self.chip, self.choice.softwares)

    @property
    def band(self) -> tuple[float | None, float | None]:
        """The p10 and p90 of measured over estimated time [1]; None without a calibration."""
        none = (None, None)
        return bands_of(self.fit).get("step", none) if self.fit else none

    @cached_property
    def held(self) -> tuple[StageMemory, ...]:
        """What a chip holds, of every kind of stage."""
        of = self.workload.planned
        return tuple(of.memory(stage) for stage, _ in of.stages)

    def extents(self, step: Step) -> StepExtents:
        """The extents of a step; its B is of all replicas."""
        found = StepExtents(step)
        found[MICRO_BATCH] = self.plan.micro_batch
        found[MICRO_BATCHES] = step.B // self.plan.global_micro_batch
        return found


@dataclass(frozen=True, repr=False)
class TrainingSweep(ModelSweep):
    """A sweep of steps of training over sizes, dtypes, chips and plans.

    The order of its rows is fixed, slowest first: model, split, chip, memory, network, dtypes, B,
    S. On a torus the chips of a plan take its fastest axes.
    """

    fastest_axes: bool = field(default=True, kw_only=True)

    def workload(self, name: str, phase: Phase, split: Split, label: str) -> TrainingKernels:
        """The kernels of a model with these dtypes."""
        del phase
        computed, config = self.combinations[label].compute_dtypes, self.config
        sharing = Sharing(split, self.bits[label], computed, config.cache_split, config.routing)
        if (name, label) not in self._made:
            self._made[name, label] = TrainingKernels.for_model(self.models[name].shape, sharing)
        return replace(self._made[name, label], sharing=sharing)

    @cached_property
    def _made(self) -> dict[tuple[str, str], TrainingKernels]:
        """What made those of a plan before, by model and dtypes."""
        return {}

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its rows, in order."""
        return columns_of("training", tokens=self.config.tokens is not None)

    @cached_property
    def layer_columns(self) -> tuple[Column, ...]:
        """The columns of its kernels, in order."""
        return columns_of("training-layers")

    @cached_property
    def run_times(self) -> dict[tuple[object, ...], object]:
        """Kernel times by contexts, shared by its plans; `evaluation.run_times` fills them."""
        return {}

    def max_thresholds(self) -> int:
        """Rows of all its thresholds, at most [1]."""
        each = {"B": len(self.contexts), "S": len(self.batches)}
        both = len(self.contexts) * len(self.batches)
        return len(self.cases) * sum(each.get(axis, both) for axis in self.config.thresholds)

    def find_cases(self) -> tuple[tuple[Any, ...], tuple[Skipped, ...]]:
        """The cases that chips support, a block of those with equal sizes and as many stages."""
        rows: Counter[Skipped] = Counter()
        blocks = []

        def alike(found: SizedCase) -> tuple[Any, ...]:
            """What cases of a block share."""
            sizes, case = found
            return (*sizes, case.name, len(case.workload.stages))

        for (batches, contexts, *_), group in groupby(self._cases(rows), key=alike):
            cases = tuple(case for _, case in group)
            points = step_axis(cases[0].model.shape, PREFILL, contexts, None)
            points = Axis({**points.columns, POINT: range(points.count)})
            blocks.append(Block((), cases, (Axis({"B": batches}), points)))
        return tuple(blocks), skipped_rows(rows)

    def _cases(self, rows: Counter[Skipped]) -> Iterator[SizedCase]:
        """The cases, each with the batches and contexts that its plan allows.

        Args:
            rows: Where rows that are not supported are counted.
        """
        whole = len(self.batches) * len(self.contexts)
        for name, split in product(self.models, self.config.splits):
            plan, impossible = cast("TrainingPlan", split), not_split(self, name, split)
            batches = tuple(each for each in self.batches if each % plan.global_micro_batch == 0)
            contexts = tuple(each for each in self.contexts if each % plan.cp == 0)
            of = Skipped("", model=name, split=plan.name)
            uneven = {
                f"B is no multiple of {plan.global_micro_batch}, dp * micro_batch": (
                    whole - len(batches) * len(self.contexts)
                ),
                f"S is no multiple of {plan.cp}, cp": (
                    len(batches) * (len(self.contexts) - len(contexts))
                ),
            }
            workloads = {
                label: self.workload(name, TRAIN, plan, label) for label in self.combinations
            }
            for at in self.supported_at({plan.name: plan.groups}, lambda split: {"split": split}):
                for skipped, combinations in at.skipped.items():
                    unjoined = need_of(skipped.reason) == "network"
                    rows[(unjoined and impossible) or skipped] += whole * combinations
                obstacle = impossible
                if unplaced := plan.placement_problem(at.place.networks, at.place.links):
                    obstacle = obstacle or replace(of, reason=unplaced, chip=at.place.chip)
                for label in at.dtypes if at.splits else ():
                    if obstacle is not None:
                        rows[obstacle] += whole
                        continue
                    for reason, number in uneven.items():
                        rows[replace(of, reason=Reason("multiple", reason))] += number
                    if batches and contexts:
                        model, dtypes = self.models[name], self.combinations[label]
                        case = TrainingCase(at.place, name, model, dtypes, workloads[label])
                        yield (batches, contexts), case


def sweep_of_models(  # noqa: PLR0913, PLR0917, the fields of a sweep
    name: str,
    config: ModelSweepConfig,
    chips: Mapping[str, Chip],
    dtypes: DtypeFile,
    calibrations: Calibrations,
    models: Mapping[str, Model],
) -> ModelSweep:
    """The sweep of a config, of training where that is its phase; arguments as of `ModelSweep`."""
    kind = TrainingSweep if TRAIN in config.phase else ModelSweep
    return kind(name, config, chips, dtypes, calibrations, models)
