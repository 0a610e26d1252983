"""Sweeps over whole models, and their cases: a model in one phase, with dtypes and a split."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Self

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, quote
from rooflines.basics.memo import Memo
from rooflines.basics.text import counted
from rooflines.config.axis_sizes import Sizes
from rooflines.dictionary.columns import columns_of, step_columns
from rooflines.fits.calibration_files import AUTO_CALIBRATION, AUTO_ENGINES
from rooflines.fits.fit_keys import Software
from rooflines.hardware.support import Reason
from rooflines.models.architecture import DECODE, PREFILL
from rooflines.models.groups import Step, StepExtents
from rooflines.models.memory import kv_cache_elements
from rooflines.models.mtp import with_mtp_layer
from rooflines.models.step_kernels import Sharing, StepKernels
from rooflines.sweep.axes import Axis, check_length
from rooflines.sweep.cases import BaseSweep, Block, Case, Skipped, skipped_rows, stored_columns
from rooflines.sweep.pipelines import is_pipelined, pipeline_of, times_in_batches
from rooflines.theory.extents import DraftPairs, Entries, Pairs
from rooflines.theory.kernel import NETWORK_BYTES
from rooflines.theory.operation import MATRIX
from rooflines.theory.poly import ONE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rooflines.config.model_fields import ModelSweepConfig, Request
    from rooflines.dictionary.columns import Column
    from rooflines.fits.calibration_files import FittedStep
    from rooflines.models.architecture import Phase, Shape
    from rooflines.models.engine_rules import Engine
    from rooflines.models.engine_start import Started
    from rooflines.models.model import Model
    from rooflines.models.split import Parallelism
    from rooflines.models.tensor_dtypes import StepDtypes
    from rooflines.sweep.pipelines import Pipeline
    from rooflines.theory.attention_window import AttentionWindow
    from rooflines.theory.extents import Attended
    from rooflines.theory.kernel import Kernel
    from rooflines.theory.operation import Unit
    from rooflines.theory.poly import Poly
    from rooflines.theory.times import Seconds, Times


FULL_ELEMENTS, LOCAL_ELEMENTS = "#full_elements", "#local_elements"
"""Columns with the cache elements per sequence: in layers that keep every token, and in layers with
a window [1]."""

STEPS_TOGETHER = 300_000
"""Chips share a part, and compiled works, up to this many rows of steps or kernels [1]."""

TIMES_OF_LEVERS = 2
"""Times that a lever's thresholds are by: the bound, and the estimate [1]."""

MAX_ENDS = 8
"""Ends of ranges in which a lever pays, at most, on a stretch without chunks of attention [1]."""

REQUEST = "#request"
"""Column with the index of a row's request in its sweep."""


@dataclass(frozen=True, eq=False)
class StepCase(Case):
    """Case: a model in one phase, at a place.

    Attributes:
        name: The model's name in tables.
        model: The model.
        dtypes: The dtypes.
        workload: Kernels, shared with cases on other chips.
        started: Serving engine whose pool stands in the rows; None: none is asked for.
    """

    name: str
    model: Model
    dtypes: StepDtypes
    workload: StepKernels
    started: Started | None = field(default=None, kw_only=True)

    @property
    def phase(self) -> Phase:
        """Phase: `decode`, `prefill` or `train`."""
        return self.workload.phase

    @property
    def sharing(self) -> Sharing:
        """Sharing: split over chips, and storage dtypes for tensors."""
        return self.workload.sharing

    @cached_property
    def prefill(self) -> StepCase:
        """Prefill case: the same model at the same place."""
        return replace(self, workload=self.workload.prefill)

    @property
    def engine(self) -> FittedStep | None:
        """Engine overhead besides kernels in decode; None without a fit."""
        return self.choice.step() if self.workload.engine and self.phase == DECODE else None

    @cached_property
    def band(self) -> tuple[float | None, float | None]:
        """Band: p10 and p90 of measured over estimated time per token [1].

        None without a fit, and with pipeline stages: no published run has some.
        """
        none = (None, None)
        if is_pipelined(self):
            return none
        return (self.engine and self.engine.band_of(experts=self.has_experts)) or none

    @property
    def has_experts(self) -> bool:
        """True if the model has routed experts."""
        return self.model.shape.moe is not None

    @property
    def split(self) -> Parallelism:
        """Split of the model over chips."""
        return self.workload.sharing.split

    @property
    def computes(self) -> tuple[str, ...]:
        """Compute dtypes: linear kernels, attention."""
        return self.dtypes.compute_dtypes

    @property
    def routing(self) -> str:
        """Routing: distribution of tokens over experts."""
        return self.sharing.routing

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """Step kernels, in order."""
        return self.workload.kernels_on(self.place.links)

    @cached_property
    def listed_kernels(self) -> tuple[int, ...]:
        """Positions that the kernel table lists: engine kernels only where a fit has them."""
        has_engine = self.engine is not None
        return tuple(
            index for index, kernel in enumerate(self.kernels) if has_engine or not kernel.engine
        )

    @property
    def listed_count(self) -> int:
        """Kernels that the kernel table lists, counted without their collectives [1]."""
        engine_kernels = () if self.engine is None else self.workload.engine_kernels
        return len(self.workload.local_kernels) + len(engine_kernels)

    def runs_of(self, index: int) -> Poly:
        """Kernel runs per layer and step, by the kernel's position [1]."""
        del index
        return ONE

    def work(self, column: str) -> Poly:
        """Work over all kernels and layers, on one chip [FLOP or byte].

        Cases share all works but the bytes over networks, which depend on the chip's links.
        """
        if column == NETWORK_BYTES or column not in self.workload.works:
            return super().work(column)
        return self.workload.works[column]

    @cached_property
    def keys(self) -> Mapping[str, str | int | None]:
        """Values in tables' key columns."""
        split, started = self.split, self.started
        engine = {} if started is None else {"engine": started.label}
        engine |= {} if started is None else {"engine_version": started.version}
        return {
            **engine,
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
        """Step sizes.

        Args:
            batch: B, sequences [1].
            context: S, tokens in each sequence after the step; in prefill, in its prompt [1].
            new: T, new tokens in each sequence; in prefill all are new [1].
        """
        return Step(batch, context, new if self.phase == DECODE else context, self.routing)

    @cached_property
    def pipeline(self) -> Pipeline[StepCase] | None:
        """Pipeline stages; None: there is one stage."""
        return pipeline_of(self, lambda kernels: replace(self, workload=kernels))

    def extents(self, step: Step) -> StepExtents:
        """Step extents; in decode with pipeline stages a micro-batch's."""
        extents = StepExtents(step)
        if is_pipelined(self) and self.phase == DECODE:
            extents["B"] = self.split.stage_batch(step.B)
        return extents

    def seconds(self, step: Step) -> Seconds:
        """Exact times of a step on one chip, over kernels and layers [s]."""
        return self.times.at(self.extents(step))


@dataclass(frozen=True, eq=False)
class BatchedCase(StepCase):
    """Case whose times are in the batch on all pipeline stages, from B = pp * dp on."""

    @cached_property
    def _in_micro_batches(self) -> StepCase:
        return StepCase(self.place, self.name, self.model, self.dtypes, self.workload)

    @cached_property
    def times(self) -> Times:
        """Nominal times over all kernels and layers."""
        return times_in_batches(self._in_micro_batches.times, self.split.stages)

    @cached_property
    def kernel_times(self) -> tuple[Times, ...]:
        """Nominal times in one layer, kernel by kernel."""
        by_kernel = self._in_micro_batches.kernel_times
        return tuple(times_in_batches(times, self.split.stages) for times in by_kernel)

    @cached_property
    def kernel_estimates(self) -> tuple[Times | None, ...]:
        """Calibrated times in one layer, kernel by kernel; None without a calibration."""
        by_kernel = self._in_micro_batches.kernel_estimates
        return tuple(times and times_in_batches(times, self.split.stages) for times in by_kernel)

    @classmethod
    def from_case(cls, case: StepCase) -> Self:
        """The same case, with its times in the batch."""
        where = case.place, case.name, case.model, case.dtypes, case.workload
        return cls(*where, started=case.started)


@dataclass(frozen=True, repr=False)
class ModelSweep(BaseSweep[StepCase]):
    """Sweep over whole models: sizes, dtypes, chips and splits.

    Check it with `checks.checked_sweep`. The order of rows is fixed, slowest first: chip, model,
    phase, split, memory, network, dtypes, B, T, S.

    Attributes:
        models: Models by name.
        engines: Serving engines by id; None: those in the catalogue.
    """

    config: ModelSweepConfig
    models: Mapping[str, Model]
    engines: Mapping[str, Engine] | None = field(default=None, kw_only=True)

    ALTERNATIVES = "models, splits, chips, dtypes or batches"

    def __repr__(self) -> str:
        """Name, models and extent, in one line."""
        return (
            f"<ModelSweep {self.name}: {counted(len(self.models), 'model')}, "
            f"{counted(len(self.config.chips), 'chip')}, {counted(self.rows, 'row')}>"
        )

    @cached_property
    def sizes(self) -> dict[str, tuple[int, ...]]:
        """Values of B, S and T; without T one new token, or the whole prompt.

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
        """Sequences in a step, B [1]."""
        return self.sizes["B"]

    @property
    def contexts(self) -> tuple[int, ...]:
        """Tokens in each sequence after the step, S; for requests after the last step [1]."""
        if self.config.requests:
            totals = {request.input + request.output for request in self.config.requests}
            return tuple(sorted(totals))
        return self.sizes["S"]

    @property
    def new_tokens(self) -> tuple[int, ...] | None:
        """New tokens in each sequence, T [1]; None where neither the grid nor a draft has some."""
        draft = self.config.draft
        return self.sizes.get("T") if draft is None else (draft.tokens + 1,)

    @cached_property
    def combinations(self) -> dict[str, StepDtypes]:
        """Dtypes by name."""
        return {dtypes.label: dtypes for dtypes in self.config.dtypes}

    @cached_property
    def computes(self) -> dict[str, tuple[str, ...]]:
        """Compute dtypes, by name of the dtypes."""
        return {name: dtypes.compute_dtypes for name, dtypes in self.combinations.items()}

    @cached_property
    def bits(self) -> dict[str, Mapping[str, Fraction]]:
        """Bits per element and class of tensors, by name of the dtypes [bit]."""
        return {
            name: dtypes.bits(self.dtypes.formats) for name, dtypes in self.combinations.items()
        }

    @cached_property
    def started(self) -> tuple[Started, ...]:
        """Serving engines with their rules; empty: none is asked for.

        Raises:
            RooflinesError: An engine or its version has no rules, or an option is not its own.
        """
        starts = []
        with at_path("engine"), Mistakes() as mistakes:
            for index, start in enumerate(self.config.engine or ()):
                with mistakes.at(index):
                    starts.append(start.started(self.engines))
        return tuple(starts)

    @cached_property
    def preferred_engine(self) -> str | None:
        """Engine whose fits come first where no calibration is named; None: several, or none."""
        engines = {started.name for started in self.started}
        return engines.pop() if len(engines) == 1 else None

    @cached_property
    def without_engines(self) -> Self:
        """Sweep with the same steps, without pools, for what does not depend on them."""
        if self.config.engine is None:
            return self
        return replace(self, config=self.config.model_copy(update={"engine": None}))

    def workload(self, name: str, phase: Phase, split: Parallelism, label: str) -> StepKernels:
        """Kernels for a model with these dtypes; phases share them where they can."""
        decode = self._decode_workloads[name, split, label]
        return decode if phase == DECODE else decode.prefill

    @cached_property
    def _decode_workloads(self) -> Memo[tuple[str, Parallelism, str], StepKernels]:
        """Kernels of decode steps by model, split and dtypes."""
        return Memo(lambda key: self._decode_workload(*key))

    def _decode_workload(self, name: str, split: Parallelism, label: str) -> StepKernels:
        config, computed = self.config, self.combinations[label].compute_dtypes
        formats = self.combinations[label].storage_dtypes
        sharing = Sharing(
            split, self.bits[label], computed, config.cache_split, config.routing, formats
        )
        drafts = config.draft is not None
        named: Collection[str] = config.calibration or ()
        if named == [AUTO_CALIBRATION]:
            named = AUTO_ENGINES
        engine = self.calibrations.engines.intersection(
            Software.parse(software).engine for software in named
        )
        shape, mtp_tokens = self.models[name].shape, self.mtp_tokens(self.models[name])
        fastest = self.fastest_axes
        return StepKernels(
            shape, DECODE, sharing, drafts, bool(engine), mtp_tokens, fastest_axes=fastest
        )

    def mtp_tokens(self, model: Model) -> int:
        """Tokens drafted by the model's MTP layer [1]; 0 without this layer, or a draft."""
        draft = self.config.draft
        return draft.tokens if draft is not None and model.shape.mtp else 0

    def sizes_of(self, model: Model, phase: Phase) -> Axis:
        """Axis over contexts and new tokens, or over requests, with the extents that follow."""
        if self.config.requests:
            drafts = self.mtp_tokens(model) > 0
            shape = with_mtp_layer(model.shape) if drafts else model.shape
            (new,) = self.new_tokens or (1,)
            return request_axis(shape, self.config.requests, new, drafts=drafts)
        return self.steps_of(model, phase)

    def steps_of(self, model: Model, phase: Phase) -> Axis:
        """Axis over contexts and new tokens, with the extents that follow."""
        drafts = self.mtp_tokens(model) > 0
        shape = with_mtp_layer(model.shape) if drafts else model.shape
        return step_axis(shape, phase, self.contexts, self.new_tokens, drafts=drafts)

    @property
    def points(self) -> int:
        """Number of contexts times new tokens per batch, or number of requests [1]."""
        if self.config.requests:
            return len(self.config.requests)
        return len(self.contexts) * len(self.new_tokens or (1,))

    def rows_of(self, block: Block[Any], case: StepCase, *, kernels: bool = False) -> int:
        """Count a case's rows in a block: steps, or kernels [1]."""
        return block.points * (case.listed_count if kernels else 1)

    def rows_by_chip(self, *, kernels: bool = False) -> dict[str, int]:
        """Count rows by chip, in table order: steps, or kernels [1]."""
        if kernels and self.config.engine is not None:
            return self.without_engines.rows_by_chip(kernels=True)
        rows = dict.fromkeys(self.config.chips, 0)
        for block in self.blocks:
            for case in block.cases:
                rows[case.place.chip] += self.rows_of(block, case, kernels=kernels)
        return {chip: count for chip, count in rows.items() if count}

    def max_thresholds(self) -> int:
        """Count threshold rows, at most [1]."""
        thresholds, targets = self.config.thresholds, self.config.targets
        cases = sum(len(block.cases) for block in self.without_engines.blocks)
        tokens, contexts = len(self.new_tokens or (1,)), len(self.contexts)
        by_axis = {
            "B": tokens * contexts * (len(targets.t_step_s) if targets else 1),
            "S": tokens,
            "chips": len(self.batches) * contexts,
            **self._max_lever_rows(),
        }
        axes = {*thresholds, "B"} if targets else {*thresholds}
        engines = max(len(self.started), 1)
        repeats = {"B": engines, "chips": engines}
        return cases * sum(by_axis[axis] * repeats.get(axis, 1) for axis in axes)

    def _max_lever_rows(self) -> dict[str, int]:
        """Threshold rows of a case at most, by lever [1]."""
        targets = len(self.config.targets.t_step_s) if self.config.targets else 0
        tokens, contexts = len(self.new_tokens or (1,)), len(self.contexts)
        points = len(self.batches) * contexts
        chunks = [
            -(-(model.shape.context or 0) // (window.tokens or 1))
            for model in self.models.values()
            for window in model.shape.attention_windows
            if window.chunked
        ]
        return {
            "S_pull": TIMES_OF_LEVERS * MAX_ENDS * (1 + max(chunks, default=0)),
            "B_draft": TIMES_OF_LEVERS * MAX_ENDS * contexts,
            "accepted_draft": TIMES_OF_LEVERS * tokens * points,
            "B_pools": 3 * targets * len(self.config.requests or ()),
            "chunk": points * (TIMES_OF_LEVERS + 3 * targets),
        }

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """Columns in order."""
        return step_columns(
            new_tokens=self.new_tokens is not None,
            requests=bool(self.config.requests),
            mixed=any(request.mixed for request in self.config.requests or ()),
            pools=self.config.pools is not None,
            pool_servers=self.config.pools is not None and self.config.pools.servers is not None,
            measured=self.config.measured is not None,
            engine=self.config.engine is not None,
        )

    @cached_property
    def prefill_pool(self) -> ModelSweep | None:
        """Sweep over prefill servers; None where the same servers do both phases."""
        if self.config.pools is None:
            return None
        pool = self.config.pools.prefill
        keys: dict[str, object] = {
            "chips": [pool.chip],
            "splits": [pool.split],
            "network": pool.network and [pool.network],
            "grid": {"B": Sizes(pool.split.dp)},
            "pools": None,
            "engine": None,
        }
        return replace(self, config=self.config.model_copy(update=keys))

    @property
    def stored_layers(self) -> list[Column]:
        """Columns stored in the table of kernels."""
        return stored_columns(self.layer_columns, self.config.columns)

    @property
    def unit(self) -> Unit:
        """Compute unit."""
        return MATRIX

    @property
    def has_layers(self) -> bool:
        """True if there is a table of kernels: not with requests, rows over many steps."""
        return self.config.layers and not self.config.requests

    @cached_property
    def layer_columns(self) -> tuple[Column, ...]:
        """Kernel columns, in order."""
        return columns_of("layers", new_tokens=self.new_tokens is not None)

    def find_cases(self) -> tuple[tuple[Block[StepCase], ...], tuple[Skipped, ...]]:
        """Find supported cases, in blocks by model, phase and split, and skipped rows."""
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
            unsplit = skipped_split(self, name, split)
            batches = tuple(batch for batch in self.batches if batch >= split.dp)
            fewer = Reason("sequences", f"fewer sequences than the {split.dp} replicas")
            too_few = Skipped(fewer, model=name, split=split.name)
            workloads = {
                label: self.workload(name, phase, split, label) for label in self.combinations
            }
            cases = []
            for supported in everywhere[split.name]:
                for skipped, combinations in supported.skipped.items():
                    rows[skipped] += points * len(self.batches) * combinations
                for label in supported.dtypes if supported.splits else ():
                    if unsplit is not None:
                        rows[unsplit] += points * len(self.batches)
                        continue
                    rows[too_few] += points * (len(self.batches) - len(batches))
                    dtypes, workload = self.combinations[label], workloads[label]
                    case = StepCase(supported.place, name, self.models[name], dtypes, workload)
                    starts = self.started or (None,)
                    cases += [replace(case, started=start) for start in starts]
            if cases and batches:
                sizes = Axis({"B": batches}), self.sizes_of(self.models[name], phase)
                blocks.append(Block((), tuple(cases), sizes))
        return tuple(blocks), skipped_rows(rows)


def skipped_split(sweep: ModelSweep, name: str, split: Parallelism) -> Skipped | None:
    """Skipped rows of a split that a model does not allow; None where it does."""
    try:
        split.check(sweep.models[name].shape)
    except RooflinesError as error:
        reason = f"{error.where} {error.problem}"
        if error.path == ("model",):
            reason = Reason("model", reason)
        if error.where.startswith("lora"):
            reason = Reason("adapters" if "." in error.where else "lora", reason)
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
    """Axis over new tokens and contexts, with the extents that follow.

    Args:
        shape: The model.
        phase: `decode` or `prefill`, in which all tokens are new.
        contexts: S [1].
        new_tokens: T [1]; None: one.
        drafts: True if the model's MTP layer drafts tokens.

    Returns:
        `T`, `S`, the extents of every attention window, `FULL_ELEMENTS` and `LOCAL_ELEMENTS`.
    """
    sizes = [(s, s) for s in contexts]
    if phase != PREFILL:
        sizes = [(t, s) for t, s in product(new_tokens or (1,), contexts)]
    columns: dict[str, Sequence[object]] = {
        "T": [t for t, _ in sizes],
        "S": [s for _, s in sizes],
    }
    for window in shape.attention_windows:
        counts = [Pairs(window), Entries(window), *([DraftPairs(window)] if drafts else [])]
        columns |= {extent: [extent.amount(s, t) for t, s in sizes] for extent in counts}
    return Axis({**columns, **_cache_elements(shape, [s for _, s in sizes])})


def _cache_elements(shape: Shape, contexts: Sequence[int]) -> dict[str, Sequence[int]]:
    """Cache elements per sequence: in layers that keep every token, and in layers with a window."""
    local = [kv_cache_elements(shape, s, local=True) for s in contexts]
    return {
        FULL_ELEMENTS: [kv_cache_elements(shape, s, local=False) for s in contexts],
        LOCAL_ELEMENTS: local,
    }


def request_axis(
    shape: Shape, requests: Sequence[Request], new: int = 1, *, drafts: bool = False
) -> Axis:
    """Axis over requests, with the mean extents of their decode steps.

    Args:
        shape: The model.
        requests: The requests.
        new: T, tokens that a step computes in each sequence; several with a draft [1].
        drafts: True if the model's MTP layer drafts tokens.

    Returns:
        `REQUEST`, `input`, `output`, `T`, the mean extents of every attention window, and
        `FULL_ELEMENTS` and `LOCAL_ELEMENTS` after the last step.
    """
    columns: dict[str, Sequence[object]] = {
        REQUEST: range(len(requests)),
        "input": [request.input for request in requests],
        "output": [request.output for request in requests],
        "T": [new] * len(requests),
    }
    for window in shape.attention_windows:
        counts = [Pairs(window), Entries(window), *([DraftPairs(window)] if drafts else [])]
        columns |= {
            extent: [mean_extent(request, extent, new) for request in requests] for extent in counts
        }
    return Axis(
        {
            **columns,
            **_cache_elements(shape, [request.input + request.output for request in requests]),
        }
    )


def mean_entries(request: Request, window: AttentionWindow) -> Fraction:
    """Mean entries of a cache that a decode step moves, over a request's steps [1], exact."""
    return mean_extent(request, Entries(window), 1)


def mean_extent(request: Request, extent: Attended, new: int) -> Fraction:
    """Mean over a request's decode steps of what attention counts [1], exact.

    A step starts before each token of the answer alike, and counts its T new tokens.

    Args:
        request: The request.
        extent: What is counted.
        new: T, tokens that a step computes in each sequence [1].
    """
    first, last = request.input + new, request.input + request.output + new - 1
    if new == 1:  # pairs and entries are the same
        return Fraction(extent.window.pairs(last, request.output), request.output)
    lines = extent.window.lines_of(extent.amount, new)
    return Fraction(sum(line.sum_over(first, last) for line in lines), request.output)
