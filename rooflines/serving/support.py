"""The cases of a sweep of models that chips support, and the rows skipped, with the reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.catalogue.lacking import interconnects, no_level, no_peak, not_joined
from rooflines.model.network import ALL_TO_ALL, BETWEEN
from rooflines.model.operation import MATRIX
from rooflines.models.cache import BY_BATCH
from rooflines.serving.case import Case
from rooflines.serving.kernels import Sharing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.model.network import Link
    from rooflines.models.dtypes import StepDtypes
    from rooflines.models.shape import Phase
    from rooflines.models.split import Split
    from rooflines.serving.sweep import ModelSweep

__all__ = ["Block", "SkippedSteps", "supported"]


@dataclass(frozen=True)
class Block:
    """The cases of one model in one phase, whose steps have the same kernels."""

    model: str
    phase: Phase
    cases: tuple[Case, ...]


@dataclass(frozen=True)
class SkippedSteps:
    """Rows that a sweep asks for but that cannot be; None in a field means all values."""

    reason: str
    rows: int = 0
    chip: str | None = None
    memory: str | None = None
    network: str | None = None
    model: str | None = None
    dtypes: str | None = None
    split: str | None = None

    def asked(self) -> str:
        """What is asked for, for a message."""
        parts = (self.model, self.split, self.chip, self.dtypes, self.memory)
        return ", ".join(part for part in parts if part)


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


def supported(sweep: ModelSweep) -> tuple[tuple[Block, ...], tuple[SkippedSteps, ...]]:
    """The cases of a sweep by model and phase, and the rows that are skipped."""
    rows: Counter[SkippedSteps] = Counter()
    places = list(_places(sweep))
    blocks = []
    for name, phase in product(sweep.models, sweep.config.phase):
        cases = []
        for place in places:
            obstacle = place.obstacle or _not_split(sweep, name, place.split)
            if obstacle is not None:
                rows[obstacle] += sweep.points * len(sweep.batches)
                continue
            too_few = sum(batch < place.split.dp for batch in sweep.batches)
            if too_few:
                dp = place.split.dp
                rows[
                    SkippedSteps(f"fewer sequences than the {dp} replicas", split=place.split.name)
                ] += sweep.points * too_few
            if too_few < len(sweep.batches):
                cases.append(_case(sweep, name, phase, place))
        if cases:
            blocks.append(Block(name, phase, tuple(cases)))
    skipped = tuple(replace(reason, rows=count) for reason, count in rows.items())
    return tuple(blocks), skipped


def _places(sweep: ModelSweep) -> Iterator[Place]:
    """Every chip, memory level, route, dtypes and split that is asked for, in order."""
    config = sweep.config
    routes: Sequence[list[str] | None] = config.network or [None]
    for chip, memory, wanted in product(config.chips, config.memory, routes):
        entry = sweep.chips[chip]
        network, links, without = interconnects(entry, wanted)
        names = network.split(BETWEEN) if network else []
        here = SkippedSteps("", chip=chip, memory=memory)
        no_memory = no_level(entry, memory)
        for (label, dtypes), split in product(sweep.combinations.items(), config.splits):
            obstacle = None
            if no_memory is not None:
                obstacle = replace(here, reason=no_memory)
            for compute in dtypes.computed:
                reason = no_peak(entry, MATRIX, compute)
                if obstacle is None and reason is not None:
                    obstacle = replace(here, reason=reason, dtypes=label)
            if obstacle is None and split.joined > 1:
                reason = without or _not_joined(names, links, split, config.cache_split)
                if reason is not None:
                    asked = network or (BETWEEN.join(wanted) if wanted else None)
                    obstacle = replace(here, reason=reason, network=asked, split=split.name)
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
        reason = f"no formula for an {ALL_TO_ALL} along the axes of {split.tp}"
    return reason


def _not_split(sweep: ModelSweep, name: str, split: Split) -> SkippedSteps | None:
    """Why a model cannot be split like that; None where it can."""
    try:
        split.check(sweep.models[name].shape, sweep.config.cache_split)
    except RooflinesError as error:
        return SkippedSteps(f"{error.where} {error.problem}", model=name, split=split.name)
    return None


def _case(sweep: ModelSweep, name: str, phase: Phase, place: Place) -> Case:
    config, dtypes = sweep.config, place.dtypes
    return Case(
        name,
        sweep.models[name],
        phase,
        place.chip,
        place.memory,
        place.network,
        dtypes,
        Sharing(
            place.split,
            dtypes.bits(sweep.dtypes.formats),
            dtypes.computed,
            config.cache_split,
            place.links,
        ),
        sweep.machine(place.chip, place.memory),
        config.routing,
    )
