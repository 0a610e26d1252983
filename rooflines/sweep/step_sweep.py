"""A validated sweep of whole models: its cases, and what chips support of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rooflines.basics.errors import Mistakes, RooflinesError, placed, quote
from rooflines.basics.text import counted
from rooflines.model.operation import MATRIX
from rooflines.model.step_columns import KERNEL_METRICS, STEP_METRICS, layer_columns, step_columns
from rooflines.models.dtypes import check_dtypes
from rooflines.models.shape import PREFILL
from rooflines.sweep.axes import check_length, check_parts
from rooflines.sweep.cases import Requested, check_chips, check_skipped, chosen
from rooflines.sweep.steps import Stepped, request_axis, step_axis, step_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.catalogue.entries import Chip, DtypeFile
    from rooflines.fits.entries import Calibrations
    from rooflines.model.columns import Column
    from rooflines.models.dtypes import StepDtypes
    from rooflines.models.model import Model
    from rooflines.models.shape import Phase
    from rooflines.settings.model_sweeps import ModelSweepConfig
    from rooflines.sweep.axes import Axis
    from rooflines.sweep.cases import Block
    from rooflines.sweep.steps import SkippedSteps, StepCase


@dataclass(frozen=True, repr=False)
class ModelSweep:
    """A sweep of whole models over sizes, dtypes, chips and splits.

    Build it with `checked_model_sweep`. The order of its rows is fixed, slowest first: model,
    phase, split, chip, memory, network, dtypes, B, T, S.
    """

    name: str
    config: ModelSweepConfig
    models: Mapping[str, Model]
    chips: Mapping[str, Chip]
    dtypes: DtypeFile
    calibrations: Calibrations

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
        with placed("grid"), Mistakes() as mistakes:
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
        check_length(grid, self.config.rows_per_part)
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
        """T, the new tokens of each [1]; None where the grid has none."""
        return self.sizes.get("T")

    @cached_property
    def combinations(self) -> dict[str, StepDtypes]:
        """Its dtypes by name."""
        return {dtypes.label: dtypes for dtypes in self.config.dtypes}

    @cached_property
    def requested(self) -> Requested:
        """What it asks of every chip."""
        config = self.config
        return Requested(
            config.chips,
            config.memory,
            config.network,
            MATRIX,
            {name: each.computed for name, each in self.combinations.items()},
            self.chips,
            config.efficiency,
            self.calibrations,
            config.calibration or (),
        )

    @cached_property
    def stepped(self) -> Stepped:
        """What all its cases have in common."""
        config = self.config
        return Stepped(
            self.models,
            config.phase,
            config.splits,
            self.combinations,
            {name: each.bits(self.dtypes.formats) for name, each in self.combinations.items()},
            config.cache_split,
            config.routing,
            self.batches,
            self.sizes_of,
        )

    @cached_property
    def supported(self) -> tuple[tuple[Block[StepCase], ...], tuple[SkippedSteps, ...]]:
        """The cases that chips support, a block for each model, phase and split, and rows not."""
        return step_blocks(self.requested, self.stepped, self.points)

    @property
    def blocks(self) -> tuple[Block[StepCase], ...]:
        """The cases that chips support, a block for each model, phase and split."""
        return self.supported[0]

    def sizes_of(self, model: Model, phase: Phase) -> Axis:
        """Contexts and new tokens of a step, or requests, with the extents that follow."""
        if self.config.requests:
            return request_axis(model.shape, self.config.requests)
        return step_axis(model.shape, phase, self.contexts, self.new_tokens)

    @property
    def skipped(self) -> tuple[SkippedSteps, ...]:
        """The rows that are not supported."""
        return self.supported[1]

    @property
    def points(self) -> int:
        """Contexts and new tokens of one batch, or requests [1]."""
        if self.config.requests:
            return len(self.config.requests)
        return len(self.contexts) * len(self.new_tokens or (1,))

    @cached_property
    def rows(self) -> int:
        """Rows of the whole table [1]."""
        return sum(block.rows for block in self.blocks)

    def solutions(self) -> int:
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
            new_tokens=self.new_tokens is not None, requests=bool(self.config.requests)
        )

    @property
    def stored(self) -> list[Column]:
        """The columns of its table: keys always, metrics as its config chooses."""
        return chosen(self.columns, STEP_METRICS, self.config.columns)

    @property
    def stored_layers(self) -> list[Column]:
        """Those of its table of kernels."""
        metrics = (*STEP_METRICS, *KERNEL_METRICS)
        return chosen(self.layer_columns, metrics, self.config.columns)

    @property
    def unit(self) -> str:
        """The compute unit that runs it."""
        return MATRIX

    @property
    def has_layers(self) -> bool:
        """Whether it has a table of kernels: a row of requests is of many steps."""
        return self.config.layers and not self.config.requests

    @cached_property
    def layer_columns(self) -> tuple[Column, ...]:
        """The columns of its kernels, in order."""
        return layer_columns(new_tokens=self.new_tokens is not None)


def checked_model_sweep(  # noqa: PLR0913, PLR0917, the parts of a sweep
    name: str,
    config: ModelSweepConfig,
    models: Mapping[str, Model],
    chips: Mapping[str, Chip],
    dtypes: DtypeFile,
    calibrations: Calibrations,
) -> ModelSweep:
    """A sweep of whole models, checked as a whole.

    Args:
        name: Its name.
        config: Its keys, each checked.
        models: Its models by name.
        chips: The catalogue and the chips of the config, by id.
        dtypes: The dtype catalogue.
        calibrations: By chip and software.

    Raises:
        RooflinesError: It has mistakes; each is named.
    """
    sweep = ModelSweep(name, config, models, chips, dtypes, calibrations)
    with Mistakes() as mistakes:
        with mistakes.at():
            _check_sizes(sweep)
        with mistakes.at("dtypes"):
            _check_dtypes(sweep)
        with mistakes.at():
            check_chips(config.chips, chips)
    check_parts(sweep.rows, config.rows_per_part)
    check_skipped(
        sweep.skipped,
        sweep.rows,
        config.on_unsupported,
        "is left with no rows.",
        "choose other models, splits, chips, dtypes or batches",
    )
    return sweep


def too_long(sweep: ModelSweep) -> Iterator[RooflinesError]:
    """Contexts beyond those that models are trained for: they can be computed, and are named."""
    place, longest = "requests" if sweep.config.requests else "grid.S", max(sweep.contexts)
    for name, model in sweep.models.items():
        trained = model.shape.context
        if trained is not None and longest > trained:
            problem = f"reaches {longest:,} tokens, and {name} is trained for {trained:,}"
            yield RooflinesError(place, problem, "choose shorter contexts, unless this is intended")


def _check_dtypes(sweep: ModelSweep) -> None:
    with Mistakes() as mistakes:
        seen = set()
        for index, dtypes in enumerate(sweep.config.dtypes):
            with mistakes.at(f"[{index}]"):
                check_dtypes(dtypes, sweep.dtypes.formats)
                if dtypes.label in seen:
                    problem = f"is {quote(dtypes.label)}, which is listed twice"
                    raise RooflinesError("", problem, "give it another name:")
                seen.add(dtypes.label)


def _check_sizes(sweep: ModelSweep) -> None:
    if sweep.config.requests and PREFILL in sweep.config.phase:
        raise RooflinesError(
            "phase", "lists prefill, but a request has both phases", "leave it out, or requests"
        )
    if sweep.new_tokens is None:
        return
    if PREFILL in sweep.config.phase:
        raise RooflinesError(
            "grid.T",
            "gives new tokens, but in prefill all S tokens are new",
            "leave T out, or prefill",
        )
    if max(sweep.new_tokens) > min(sweep.contexts):
        raise RooflinesError(
            "grid.T",
            f"has {max(sweep.new_tokens)}, more than S, {min(sweep.contexts)}, which counts them",
            "choose fewer new tokens, or longer contexts",
        )
