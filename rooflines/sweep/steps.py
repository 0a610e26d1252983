"""Cases of a step of a model: a model in one phase, with dtypes and a split, at a place."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.catalogue.unsupported import Reason
from rooflines.models.cache import cache_elements
from rooflines.models.groups import Step
from rooflines.models.kernels import Sharing, StepExtents, StepKernels
from rooflines.models.shape import PREFILL
from rooflines.sweep.axes import Axis
from rooflines.sweep.cases import Block, Case, Skipped

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.model.kernel import Kernel
    from rooflines.model.times import Seconds
    from rooflines.models.dtypes import StepDtypes
    from rooflines.models.model import Model
    from rooflines.models.reach import AttentionReach
    from rooflines.models.shape import Phase, Shape
    from rooflines.models.split import Split
    from rooflines.settings.model_sweeps import Request
    from rooflines.sweep.cases import Axes, Place, Requested


ELEMENTS, NEAR = "#elements", "#near_elements"
"""The columns with the cache elements of a sequence: of layers that keep every token, and of those
with a window [1]."""

REQUEST = "#request"
"""The index of a row's request in its sweep."""


@dataclass(frozen=True, eq=False)
class StepCase(Case):
    """A model in one phase at a place.

    Attributes:
        name: The model's name in tables.
        model: The model.
        dtypes: The dtypes.
        workload: Its kernels, which cases of other chips have as well.
    """

    name: str
    model: Model
    dtypes: StepDtypes
    workload: StepKernels

    @property
    def phase(self) -> Phase:
        """`decode` or `prefill`."""
        return self.workload.phase

    @property
    def sharing(self) -> Sharing:
        """How chips share the model and store its tensors."""
        return self.workload.sharing

    @property
    def split(self) -> Split:
        """How chips share the model."""
        return self.sharing.split

    @property
    def routing(self) -> str:
        """Which experts tokens choose."""
        return self.sharing.routing

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """What runs in a step, in order."""
        return self.workload.over(self.place.links)

    @property
    def keys(self) -> Mapping[str, str | int | None]:
        """Its values in the key columns of tables."""
        split = self.split
        return {
            "model": self.name,
            "phase": self.phase,
            "chip": self.chip,
            "memory": self.memory,
            "network": self.network,
            "dtypes": self.dtypes.label,
            "split": split.name,
            "chips": split.chips,
            "tp": split.shards,
            "dp": split.dp,
            "ep": split.parts,
        }

    def step(self, batch: int, context: int, new: int = 1) -> Step:
        """The sizes of a step.

        Args:
            batch: B, sequences [1].
            context: S, tokens of each after the step; in prefill, of its prompt [1].
            new: T, new tokens of each; in prefill all are new [1].
        """
        return Step(batch, context, context if self.phase == PREFILL else new, self.routing)

    def seconds(self, step: Step) -> Seconds:
        """The exact times of a step on one chip, over kernels and layers [s]."""
        return self.times.at(StepExtents(step))


@dataclass(frozen=True)
class SkippedSteps(Skipped):
    """Rows of a sweep of models that are not supported.

    Attributes:
        model, split: Of the step that is not supported; None: all.
    """

    model: str | None = None
    split: str | None = None

    def asked(self) -> str:
        """The request."""
        parts = (self.model, self.split, self.chip, self.dtypes, self.memory)
        return ", ".join(part for part in parts if part)

    @property
    def problem(self) -> str:
        """A predicate of the sweep, for a message."""
        return f"asks for {self.asked()}: {self.reason}"


@dataclass(frozen=True, eq=False)
class Stepped:
    """What all cases of a sweep of models have in common.

    Attributes:
        models: By name.
        phases, splits: Those of the sweep.
        combinations: Dtypes by name.
        bits: Bits per element of each class of tensors, by dtypes [bit].
        cache_split: `heads` or `batch`.
        routing: Which experts tokens choose.
        batches: B [1].
        points: The axis of contexts and new tokens of a model and phase, or of requests.
    """

    models: Mapping[str, Model]
    phases: Sequence[Phase]
    splits: Sequence[Split]
    combinations: Mapping[str, StepDtypes]
    bits: Mapping[str, Mapping[str, Fraction]]
    cache_split: str
    routing: str
    batches: Sequence[int]
    points: Callable[[Model, Phase], Axis]

    def joined(self, split: Split) -> tuple[Axes, ...]:
        """The groups of chips that communicate, as chips along every axis [1]."""
        return (split.axes, split.experts_axes)

    def workload(self, name: str, phase: Phase, split: Split, label: str) -> StepKernels:
        """The kernels of a model with these dtypes."""
        computed = self.combinations[label].computed
        sharing = Sharing(split, self.bits[label], computed, self.cache_split, self.routing)
        return StepKernels(self.models[name].shape, phase, sharing)

    def not_split(self, name: str, split: Split) -> SkippedSteps | None:
        """Why a model cannot be split like that; None where it can."""
        try:
            split.check(self.models[name].shape, self.cache_split)
        except RooflinesError as error:
            return SkippedSteps(f"{error.where} {error.problem}", model=name, split=split.name)
        return None


def step_blocks(
    asked: Requested, of: Stepped, points: int
) -> tuple[tuple[Block[StepCase], ...], tuple[SkippedSteps, ...]]:
    """The cases that chips support, a block for each model, phase and split, and rows skipped.

    Args:
        asked: The chips, and what they are asked for.
        of: The models.
        points: Contexts and new tokens of one batch, or requests [1].
    """
    rows: Counter[SkippedSteps] = Counter()
    everywhere = {split.name: list(_obstacles(asked, of, split)) for split in of.splits}
    blocks = []
    for name, phase, split in product(of.models, of.phases, of.splits):
        unsplit = of.not_split(name, split)
        batches = tuple(batch for batch in of.batches if batch >= split.dp)
        fewer = Reason("sequences", f"fewer sequences than the {split.dp} replicas")
        too_few = SkippedSteps(fewer, model=name, split=split.name)
        workloads = {label: of.workload(name, phase, split, label) for label in of.combinations}
        cases = []
        for place, label, none in everywhere[split.name]:
            obstacle = none or unsplit
            if obstacle is not None:
                rows[obstacle] += points * len(of.batches)
                continue
            rows[too_few] += points * (len(of.batches) - len(batches))
            dtypes, workload = of.combinations[label], workloads[label]
            cases.append(StepCase(place, name, of.models[name], dtypes, workload))
        if cases and batches:
            sizes = Axis({"B": batches}), of.points(of.models[name], phase)
            blocks.append(Block((), tuple(cases), sizes))
    skipped = tuple(replace(reason, rows=count) for reason, count in rows.items() if count)
    return tuple(blocks), skipped


def _obstacles(
    asked: Requested, of: Stepped, split: Split
) -> list[tuple[Place, str, SkippedSteps | None]]:
    """Every place and dtypes, and why nothing runs there; None where it does."""
    joined, found = of.joined(split), []
    alone = set()  # chips whose rows without a network are there
    for place in asked:
        if place.network is None and split.joined == 1:
            if (place.chip, place.memory) in alone:
                continue
            alone.add((place.chip, place.memory))
        here = SkippedSteps("", chip=place.chip, memory=place.memory)
        for label in of.combinations:
            obstacle = None
            if reason := place.no_level():
                obstacle = replace(here, reason=reason)
            elif reason := place.no_peak(label):
                obstacle = replace(here, reason=reason, dtypes=label)
            elif reason := place.not_joined(joined):
                obstacle = replace(here, reason=reason, network=place.route_name, split=split.name)
            found.append((place, label, obstacle))
    return found


def step_axis(
    shape: Shape, phase: Phase, contexts: Sequence[int], new_tokens: Sequence[int] | None
) -> Axis:
    """New tokens and contexts of a step as an axis, with the extents that follow from them.

    Args:
        shape: The model.
        phase: `decode` or `prefill`, in which all tokens are new.
        contexts: S [1].
        new_tokens: T [1]; None: one.

    Returns:
        `T`, `S`, the extents of every reach, `ELEMENTS` and `NEAR`.
    """
    sizes = [(s, s) for s in contexts]
    if phase != PREFILL:
        sizes = [(t, s) for t, s in product(new_tokens or (1,), contexts)]
    columns: dict[str, Sequence[object]] = {
        "T": [t for t, _ in sizes],
        "S": [s for _, s in sizes],
    }
    for reach in shape.reaches:
        rows = [reach.extents(s, t) for t, s in sizes]
        columns |= {name: [row[name] for row in rows] for name in reach.extents(1, 1)}
    return Axis({**columns, **_held(shape, [s for _, s in sizes])})


def _held(shape: Shape, contexts: Sequence[int]) -> dict[str, Sequence[int]]:
    """Cache elements of a sequence: of layers that keep all tokens, and of those with a window."""
    near = [cache_elements(shape, s, near=True) for s in contexts]
    return {ELEMENTS: [cache_elements(shape, s, near=False) for s in contexts], NEAR: near}


def request_axis(shape: Shape, requests: Sequence[Request]) -> Axis:
    """Requests as an axis, with the mean extents of their decode steps.

    Args:
        shape: The model.
        requests: The requests.

    Returns:
        `REQUEST`, `input`, `output`, `T`, the mean extents of every reach, and `ELEMENTS` and
        `NEAR` after the last step.
    """
    columns: dict[str, Sequence[object]] = {
        REQUEST: range(len(requests)),
        "input": [each.input for each in requests],
        "output": [each.output for each in requests],
        "T": [1] * len(requests),
    }
    for reach in shape.reaches:
        means = [mean_entries(each, reach) for each in requests]
        columns |= dict.fromkeys(reach.extents(1, 1), means)
    return Axis({**columns, **_held(shape, [each.input + each.output for each in requests])})


def mean_entries(request: Request, reach: AttentionReach) -> Fraction:
    """The entries of a cache that a decode step moves, in the mean over the steps [1], exact."""
    last = request.input + request.output
    return Fraction(reach.pairs(last, request.output), request.output)
