"""Sweeps of whole models, and their cases: a model in one phase, with dtypes and a split."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, quote
from rooflines.basics.text import counted
from rooflines.config.axis_sizes import Sizes
from rooflines.dictionary.columns import columns_of, step_columns
from rooflines.fits.calibration_choice import bands_of
from rooflines.hardware.support import Reason
from rooflines.models.architecture import DECODE, PREFILL
from rooflines.models.groups import Step, StepExtents
from rooflines.models.memory import kv_cache_elements
from rooflines.models.mtp import with_mtp_layer
from rooflines.models.step_kernels import Sharing, StepKernels
from rooflines.sweep.axes import Axis, check_length
from rooflines.sweep.cases import BaseSweep, Block, Case, Skipped, skipped_rows, stored_columns
from rooflines.theory.kernel import NETWORK_BYTES
from rooflines.theory.operation import MATRIX
from rooflines.theory.poly import ONE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.config.model_fields import ModelSweepConfig, Request
    from rooflines.dictionary.columns import Column
    from rooflines.fits.calibration_files import FittedStep
    from rooflines.models.architecture import Phase, Shape
    from rooflines.models.attention_window import AttentionWindow
    from rooflines.models.model import Model
    from rooflines.models.split import Split
    from rooflines.models.tensor_dtypes import StepDtypes
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.operation import Unit
    from rooflines.theory.poly import Poly
    from rooflines.theory.times import Seconds


FULL_ELEMENTS, LOCAL_ELEMENTS = "#full_elements", "#local_elements"
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
        """`decode`, `prefill` or `train`."""
        return self.workload.phase

    @property
    def sharing(self) -> Sharing:
        """How chips share the model and store its tensors."""
        return self.workload.sharing

    @cached_property
    def prefill(self) -> StepCase:
        """The prefill of the same model at the same place."""
        return replace(self, workload=self.workload.prefill)

    @property
    def engine(self) -> FittedStep | None:
        """What its engine adds to its kernels in decode; None without a fit."""
        return self.choice.step() if self.workload.engine and self.phase == DECODE else None

    @property
    def band(self) -> tuple[float | None, float | None]:
        """The p10 and p90 of measured over estimated time of a token [1]; None without a fit."""
        none = (None, None)
        return bands_of(self.engine).get("step", none) if self.engine else none

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
        return self.workload.kernels_on(self.place.links)

    def runs_of(self, index: int) -> Poly:
        """How often a layer runs a kernel in a step, by its position [1]."""
        del index
        return ONE

    def work(self, column: str) -> Poly:
        """A work of all kernels and layers; chips share all but what is sent [FLOP or byte]."""
        if column == NETWORK_BYTES or column not in self.workload.works:
            return super().work(column)
        return self.workload.works[column]

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
        return Step(batch, context, new if self.phase == DECODE else context, self.routing)

    def extents(self, step: Step) -> StepExtents:
        """The extents of a step."""
        return StepExtents(step)

    def seconds(self, step: Step) -> Seconds:
        """The exact times of a step on one chip, over kernels and layers [s]."""
        return self.times.at(self.extents(step))


@dataclass(frozen=True, repr=False)
class ModelSweep(BaseSweep[StepCase]):
    """A sweep of whole models over sizes, dtypes, chips and splits.

    Check it with `checks.checked_sweep`. The order of its rows is fixed, slowest first: model,
    phase, split, chip, memory, network, dtypes, B, T, S.

    Attributes:
        models: Its models by name.
    """

    config: ModelSweepConfig
    models: Mapping[str, Model]

    ALTERNATIVES = "models, splits, chips, dtypes or batches"

    def __repr__(self) -> str:
        """Its name, models and extent, in one line."""
        return (
            f"<ModelSweep {self.name}: {counted(len(self.models), 'model')}, "
            f"{counted(len(self.config.chips), 'chip')}, {counted(self.rows, 'row')}>"
        )

    @cached_property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """The values of B, S and T; without T one new token, or the whole prompt.

        Requests have B only.
        """
        needed = ("B",) if self.config.requests else ("B", "S")
        with at_path("grid"), Mistakes() as mistakes:
            grid = self.config.grid
            for letter, size in grid.items():
                if self.config.requests and letter != "B":
                    problem = "is given, but requests set the tokens"
                    mistakes.add(RooflinesError(letter, problem, "leave it out, or requests"))
                elif size.same_as is not None:
                    problem = f"is {quote(size.same_as)}, but no size repeats another one here"
                    mistakes.add(RooflinesError(letter, problem, "write numbers"))
            if missing := [letter for letter in needed if letter not in grid]:
                problem = f"lacks {', '.join(missing)}"
                raise RooflinesError("", problem, "write B: [1, 8, 64] and S: [1024, 8192]")
        counts = {letter: size.count for letter, size in grid.items()}
        check_length(counts, self.config.rows_per_part)
        return {letter: size.values() for letter, size in grid.items()}

    @property
    def batches(self) -> tuple[int, ...]:
        """B, the sequences of a step [1]."""
        return self.sizes["B"]

    @property
    def contexts(self) -> tuple[int, ...]:
        """S, the tokens of each after the step; of requests after the last one [1]."""
        if self.config.requests:
            totals = {request.input + request.output for request in self.config.requests}
            return tuple(sorted(totals))
        return self.sizes["S"]

    @property
    def new_tokens(self) -> tuple[int, ...] | None:
        """T, the new tokens of each [1]; None where neither the grid nor a draft has some."""
        draft = self.config.draft
        return self.sizes.get("T") if draft is None else (draft.tokens + 1,)

    @cached_property
    def combinations(self) -> dict[str, StepDtypes]:
        """Its dtypes by name."""
        return {dtypes.label: dtypes for dtypes in self.config.dtypes}

    @cached_property
    def computes(self) -> dict[str, tuple[str, ...]]:
        """The compute dtypes of its dtypes, by the name of these."""
        return {name: each.compute_dtypes for name, each in self.combinations.items()}

    @cached_property
    def bits(self) -> dict[str, Mapping[str, Fraction]]:
        """Bits per element of each class of tensors, by the name of dtypes [bit]."""
        return {name: each.bits(self.dtypes.formats) for name, each in self.combinations.items()}

    @cached_property
    def _workloads(self) -> dict[tuple[str, str, str], StepKernels]:
        return {}

    def workload(self, name: str, phase: Phase, split: Split, label: str) -> StepKernels:
        """The kernels of a model with these dtypes; those that phases share are made once."""
        key = name, split.name, label
        if key not in self._workloads:
            self._workloads[key] = self._decode(name, split, label)
        return self._workloads[key] if phase == DECODE else self._workloads[key].prefill

    def _decode(self, name: str, split: Split, label: str) -> StepKernels:
        config, computed = self.config, self.combinations[label].compute_dtypes
        sharing = Sharing(split, self.bits[label], computed, config.cache_split, config.routing)
        drafts, named = config.draft is not None, config.calibration or ()
        engine = self.calibrations.engines.intersection(each.partition("-")[0] for each in named)
        shape, drafted = self.models[name].shape, self.drafted(self.models[name])
        fastest = self.fastest_axes
        return StepKernels(
            shape, DECODE, sharing, drafts, bool(engine), drafted, fastest_axes=fastest
        )

    def drafted(self, model: Model) -> int:
        """Tokens that a layer of the model itself drafts [1]; 0 without one, or a draft."""
        draft = self.config.draft
        return draft.tokens if draft is not None and model.shape.mtp else 0

    def sizes_of(self, model: Model, phase: Phase) -> Axis:
        """Contexts and new tokens of a step, or requests, with the extents that follow."""
        if self.config.requests:
            return request_axis(model.shape, self.config.requests)
        return self.steps_of(model, phase)

    def steps_of(self, model: Model, phase: Phase) -> Axis:
        """Contexts and new tokens of a step, with the extents that follow."""
        drafts = self.drafted(model) > 0
        shape = with_mtp_layer(model.shape) if drafts else model.shape
        return step_axis(shape, phase, self.contexts, self.new_tokens, drafts=drafts)

    @property
    def points(self) -> int:
        """Contexts and new tokens of one batch, or requests [1]."""
        if self.config.requests:
            return len(self.config.requests)
        return len(self.contexts) * len(self.new_tokens or (1,))

    def max_thresholds(self) -> int:
        """Rows of all its thresholds, at most [1]."""
        asked, targets = self.config.thresholds, self.config.targets
        cases = sum(len(block.cases) for block in self.blocks)
        tokens, contexts = len(self.new_tokens or (1,)), len(self.contexts)
        by_axis = {
            "B": tokens * contexts * (len(targets.t_step_s) if targets else 1),
            "S": tokens,
            "chips": len(self.batches) * contexts,
        }
        axes = {*asked, "B"} if targets else {*asked}
        return cases * sum(by_axis[axis] for axis in axes)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of its rows, in order."""
        return step_columns(
            new_tokens=self.new_tokens is not None,
            requests=bool(self.config.requests),
            pools=self.config.pools is not None,
        )

    @cached_property
    def prefill_pool(self) -> ModelSweep | None:
        """The sweep of servers that prefill; None where answers are computed there, too."""
        if self.config.pools is None:
            return None
        pool = self.config.pools.prefill
        keys: dict[str, object] = {
            "chips": [pool.chip],
            "splits": [pool.split],
            "network": pool.network and [pool.network],
            "grid": {"B": Sizes(pool.split.dp)},
            "pools": None,
        }
        return replace(self, config=self.config.model_copy(update=keys))

    @property
    def stored_layers(self) -> list[Column]:
        """Those of its table of kernels."""
        return stored_columns(self.layer_columns, self.config.columns)

    @property
    def unit(self) -> Unit:
        """The compute unit that runs it."""
        return MATRIX

    @property
    def has_layers(self) -> bool:
        """Whether it has a table of kernels: a row of requests is of many steps."""
        return self.config.layers and not self.config.requests

    @cached_property
    def layer_columns(self) -> tuple[Column, ...]:
        """The columns of its kernels, in order."""
        return columns_of("layers", new_tokens=self.new_tokens is not None)

    def find_cases(self) -> tuple[tuple[Block[StepCase], ...], tuple[Skipped, ...]]:
        """The cases that chips support, in blocks by model, phase and split, and rows skipped."""
        config, points = self.config, self.points
        rows: Counter[Skipped] = Counter()
        everywhere = {
            split.name: list(
                self.supported_at({split.name: split.groups}, lambda name: {"split": name})
            )
            for split in config.splits
        }
        blocks = []
        for name, phase, split in product(self.models, config.phase, config.splits):
            unsplit = not_split(self, name, split)
            batches = tuple(batch for batch in self.batches if batch >= split.dp)
            fewer = Reason("sequences", f"fewer sequences than the {split.dp} replicas")
            too_few = Skipped(fewer, model=name, split=split.name)
            workloads = {
                label: self.workload(name, phase, split, label) for label in self.combinations
            }
            cases = []
            for at in everywhere[split.name]:
                for skipped, combinations in at.skipped.items():
                    rows[skipped] += points * len(self.batches) * combinations
                for label in at.dtypes if at.splits else ():
                    if unsplit is not None:
                        rows[unsplit] += points * len(self.batches)
                        continue
                    rows[too_few] += points * (len(self.batches) - len(batches))
                    dtypes, workload = self.combinations[label], workloads[label]
                    cases.append(StepCase(at.place, name, self.models[name], dtypes, workload))
            if cases and batches:
                sizes = Axis({"B": batches}), self.sizes_of(self.models[name], phase)
                blocks.append(Block((), tuple(cases), sizes))
        return tuple(blocks), skipped_rows(rows)


def not_split(sweep: ModelSweep, name: str, split: Split) -> Skipped | None:
    """Why a model cannot be split like that; None where it can."""
    try:
        split.check(sweep.models[name].shape, sweep.config.cache_split)
    except RooflinesError as error:
        reason = f"{error.where} {error.problem}"
        if error.where == "model":
            reason = Reason("model", reason)
        return Skipped(reason, model=name, split=split.name)
    return None


def step_axis(
    shape: Shape,
    phase: Phase,
    contexts: Sequence[int],
    new_tokens: Sequence[int] | None,
    *,
    drafts: bool = False,
) -> Axis:
    """New tokens and contexts of a step as an axis, with the extents that follow from them.

    Args:
        shape: The model.
        phase: `decode` or `prefill`, in which all tokens are new.
        contexts: S [1].
        new_tokens: T [1]; None: one.
        drafts: Whether a layer of the model drafts tokens.

    Returns:
        `T`, `S`, the extents of every reach, `FULL_ELEMENTS` and `LOCAL_ELEMENTS`.
    """
    sizes = [(s, s) for s in contexts]
    if phase != PREFILL:
        sizes = [(t, s) for t, s in product(new_tokens or (1,), contexts)]
    columns: dict[str, Sequence[object]] = {
        "T": [t for t, _ in sizes],
        "S": [s for _, s in sizes],
    }
    for reach in shape.attention_windows:
        rows = [reach.extents(s, t) for t, s in sizes]
        names = (*reach.extent_names, reach.draft_extent) if drafts else reach.extent_names
        columns |= {name: [row[name] for row in rows] for name in names}
    return Axis({**columns, **_held(shape, [s for _, s in sizes])})


def _held(shape: Shape, contexts: Sequence[int]) -> dict[str, Sequence[int]]:
    """Cache elements of a sequence: of layers that keep all tokens, and of those with a window."""
    near = [kv_cache_elements(shape, s, local=True) for s in contexts]
    return {
        FULL_ELEMENTS: [kv_cache_elements(shape, s, local=False) for s in contexts],
        LOCAL_ELEMENTS: near,
    }


def request_axis(shape: Shape, requests: Sequence[Request]) -> Axis:
    """Requests as an axis, with the mean extents of their decode steps.

    Args:
        shape: The model.
        requests: The requests.

    Returns:
        `REQUEST`, `input`, `output`, `T`, the mean extents of every reach, and `FULL_ELEMENTS` and
        `LOCAL_ELEMENTS` after the last step.
    """
    columns: dict[str, Sequence[object]] = {
        REQUEST: range(len(requests)),
        "input": [each.input for each in requests],
        "output": [each.output for each in requests],
        "T": [1] * len(requests),
    }
    for reach in shape.attention_windows:
        means = [mean_entries(each, reach) for each in requests]
        columns |= dict.fromkeys(reach.extent_names, means)
    return Axis({**columns, **_held(shape, [each.input + each.output for each in requests])})


def mean_entries(request: Request, reach: AttentionWindow) -> Fraction:
    """The entries of a cache that a decode step moves, in the mean over the steps [1], exact."""
    last = request.input + request.output
    return Fraction(reach.pairs(last, request.output), request.output)
