"""The cases of a sweep of models that chips support, and the rows skipped, with the reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.catalogue.entries import shares_of
from rooflines.catalogue.unsupported import (
    Reason,
    interconnects,
    missing_level_reason,
    missing_peak_reason,
    not_joined,
)
from rooflines.fits.choice import CalibrationChoice
from rooflines.model.network import ALL_TO_ALL, BETWEEN
from rooflines.model.operation import MATRIX
from rooflines.model.resources import RESOURCES
from rooflines.models.cache import BY_BATCH
from rooflines.serving.case import Case
from rooflines.serving.kernels import Sharing
from rooflines.serving.times import Machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip, Format
    from rooflines.fits.entries import Calibrations
    from rooflines.model.network import Link
    from rooflines.models.dtypes import StepDtypes
    from rooflines.models.model import Model
    from rooflines.models.shape import Phase
    from rooflines.models.split import Split
    from rooflines.settings.model_sweeps import ModelSweepConfig
    from rooflines.sweep.step_sweep import ModelSweep


@dataclass(frozen=True)
class Block:
    """The cases of one model in one phase and split, whose steps have the same kernels.

    Attributes:
        cases: They differ in chip, memory, network and dtypes.
        batches: B, at least one sequence for every replica [1].
    """

    cases: tuple[Case, ...]
    batches: tuple[int, ...]


@dataclass(frozen=True)
class SkippedSteps:
    """Rows of a sweep that are not supported; None in a field means all values."""

    reason: str
    rows: int = 0
    chip: str | None = None
    memory: str | None = None
    network: str | None = None
    model: str | None = None
    dtypes: str | None = None
    split: str | None = None

    def asked(self) -> str:
        """The request, for a message."""
        parts = (self.model, self.split, self.chip, self.dtypes, self.memory)
        return ", ".join(part for part in parts if part)

    @property
    def problem(self) -> str:
        """A predicate of the sweep, for a message."""
        return f"asks for {self.asked()}: {self.reason}"


@dataclass(frozen=True)
class Asked:
    """What a sweep asks of every chip.

    Attributes:
        config: The sweep's config.
        models, chips: By name.
        calibrations: By chip and software.
        formats: Those of the dtype catalogue.
        combinations: Dtypes by name.
        batches: B [1].
        points: Contexts and new tokens of one batch [1].
    """

    config: ModelSweepConfig
    models: Mapping[str, Model]
    chips: Mapping[str, Chip]
    calibrations: Calibrations
    formats: Mapping[str, Format]
    combinations: Mapping[str, StepDtypes]
    batches: Sequence[int]
    points: int

    @cached_property
    def machines(self) -> dict[tuple[str, str], Machine]:
        """The numbers of the chips that times read, by chip and memory level."""
        nominal = {resource.name: Fraction(1) for resource in RESOURCES}
        machines = {}
        for chip, memory in product(self.config.chips, self.config.memory):
            entry = self.chips[chip]
            if missing_level_reason(entry, memory) is None:
                machines[chip, memory] = Machine(
                    {dtype: peak.exact for dtype, peak in entry.units.get(MATRIX, {}).items()},
                    entry.memory[memory].exact,
                    {**nominal, **shares_of(entry.efficiency), **shares_of(self.config.efficiency)},
                )
        return machines


@dataclass(frozen=True)
class Place:
    """A chip with a memory level, its interconnects, dtypes and a split.

    Attributes:
        chip, memory, network: As in tables.
        dtypes: The dtypes.
        split: The split.
        links: The interconnects, inner first.
        obstacle: Why nothing runs there; None where it does.
    """

    chip: str
    memory: str
    network: str | None
    dtypes: StepDtypes
    split: Split
    links: tuple[Link, ...]
    obstacle: SkippedSteps | None


def supported(asked: Asked) -> tuple[tuple[Block, ...], tuple[SkippedSteps, ...]]:
    """The cases of a sweep by model, phase and split, and the rows that are skipped."""
    rows: Counter[SkippedSteps] = Counter()
    everywhere = {split.name: list(_places(asked, split)) for split in asked.config.splits}
    blocks = []
    for name, phase, split in product(asked.models, asked.config.phase, asked.config.splits):
        not_split = _not_split(asked, name, split)
        batches = tuple(batch for batch in asked.batches if batch >= split.dp)
        fewer = Reason("sequences", f"fewer sequences than the {split.dp} replicas")
        too_few = SkippedSteps(fewer, model=name, split=split.name)
        cases = []
        for place in everywhere[split.name]:
            obstacle = place.obstacle or not_split
            if obstacle is not None:
                rows[obstacle] += asked.points * len(asked.batches)
                continue
            rows[too_few] += asked.points * (len(asked.batches) - len(batches))
            cases.append(_case(asked, name, phase, place))
        if cases and batches:
            blocks.append(Block(tuple(cases), batches))
    skipped = tuple(replace(reason, rows=count) for reason, count in rows.items() if count)
    return tuple(blocks), skipped


def _places(asked: Asked, split: Split) -> Iterator[Place]:
    """Every chip, memory level, route and dtypes of the request, in order."""
    config = asked.config
    routes: Sequence[list[str] | None] = config.network or [None]
    alone = set()  # chips whose rows without a network are there
    for chip, memory, wanted in product(config.chips, config.memory, routes):
        entry = asked.chips[chip]
        network, links, without = interconnects(entry, wanted)
        names = network.split(BETWEEN) if network else []
        if network is None and split.joined == 1:
            if (chip, memory) in alone:
                continue
            alone.add((chip, memory))
        here = SkippedSteps("", chip=chip, memory=memory)
        no_memory = missing_level_reason(entry, memory)
        for label, dtypes in asked.combinations.items():
            obstacle = None
            if no_memory is not None:
                obstacle = replace(here, reason=no_memory)
            for compute in dtypes.computed:
                reason = missing_peak_reason(entry, MATRIX, compute)
                if obstacle is None and reason is not None:
                    obstacle = replace(here, reason=reason, dtypes=label)
            if obstacle is None and split.joined > 1:
                reason = without or _not_joined(names, links, split, config.cache_split)
                if reason is not None:
                    wired = network or (BETWEEN.join(wanted) if wanted else None)
                    obstacle = replace(here, reason=reason, network=wired, split=split.name)
            yield Place(chip, memory, network, dtypes, split, links, obstacle)


def _not_joined(
    names: Sequence[str], links: tuple[Link, ...], split: Split, cache_split: str
) -> str | None:
    """The reason why interconnects do not join the chips of a split; None where they do."""
    reason = not_joined(names, links, split.axes)
    if reason is None and split.ep > 1:
        reason = not_joined(names, links, (split.ep,))
    scattered = split.ep > 1 or cache_split == BY_BATCH
    if reason is None and scattered and len(split.axes) > 1:
        reason = Reason("network", f"no formula for an {ALL_TO_ALL} along the axes of {split.tp}")
    return reason


def _not_split(asked: Asked, name: str, split: Split) -> SkippedSteps | None:
    """Why a model cannot be split like that; None where it can."""
    try:
        split.check(asked.models[name].shape, asked.config.cache_split)
    except RooflinesError as error:
        return SkippedSteps(f"{error.where} {error.problem}", model=name, split=split.name)
    return None


def _case(asked: Asked, name: str, phase: Phase, place: Place) -> Case:
    config, dtypes = asked.config, place.dtypes
    return Case(
        name,
        asked.models[name],
        phase,
        place.chip,
        place.memory,
        place.network,
        dtypes,
        Sharing(
            place.split,
            dtypes.bits(asked.formats),
            dtypes.computed,
            config.cache_split,
            place.links,
            config.routing,
        ),
        asked.machines[place.chip, place.memory],
        CalibrationChoice(
            asked.calibrations,
            config.calibration or (),
            place.chip,
            asked.chips[place.chip],
            MATRIX,
            place.memory,
            tuple(place.network.split(BETWEEN)) if place.network else (),
        ),
    )


def old_blocks(sweep: ModelSweep) -> tuple[Block, ...]:
    """The cases of a sweep."""
    return supported(
        Asked(
            sweep.config,
            sweep.models,
            sweep.chips,
            sweep.calibrations,
            sweep.dtypes.formats,
            sweep.combinations,
            sweep.batches,
            sweep.points,
        )
    )[0]
