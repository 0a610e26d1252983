"""The fewest chips that hold a model and its caches, and the most sequences that fit."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.dictionary.columns import CAPACITY_UNKNOWN, FOUND, HEADS, NEVER, UNKNOWN
from rooflines.evaluation.footprints import Footprint
from rooflines.hardware.entry_forms import checked
from rooflines.hardware.support import not_joined
from rooflines.models.memory import kv_cache_elements
from rooflines.models.split import Split
from rooflines.solvers.context_limit import Solution
from rooflines.theory.network import most_chips, placed_axes
from rooflines.theory.resources import NETWORK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.sweep.step_sweep import StepCase


def fewest_chips(
    cases: Iterable[StepCase], batches: Sequence[int], contexts: Sequence[int]
) -> Iterator[tuple[StepCase, dict[str, object]]]:
    """The fewest chips of all splits, at every batch and context.

    Args:
        cases: Those that differ in their split alone count once.
        batches: B [1].
        contexts: S [1].

    Yields:
        A case, and the columns of its threshold: the fewest chips, and the most sequences that fit
        on them, null beyond `LARGEST_COUNT` [1].
    """
    alike: dict[tuple[str | None, ...], StepCase] = {}
    for case in cases:
        keys = (case.name, case.phase, case.chip, case.memory, case.network, case.dtypes.label)
        alike.setdefault(keys, case)
    for case in alike.values():
        tried, beyond = splits_tried(case)
        footprints = [(split.shards, Footprint.of(case, split)) for split in tried]
        shape = case.workload.resident_shape
        fits = {}
        for context in contexts:
            far, near = (kv_cache_elements(shape, context, local=each) for each in (False, True))
            fits[context] = [(chips, each.sequences(far, near)) for chips, each in footprints]
        for batch, context in product(batches, contexts):
            solution, most = _fewest(batch, fits[context], beyond)
            fit = None if most is None or most > LARGEST_COUNT else most
            sizes = {"B": batch, "S": context, "max_B_fit": fit}
            yield case, {"axis": "chips", **sizes, **solution._asdict()}


def _fewest(
    batch: int, fits: Sequence[tuple[int, int | None]], beyond: Solution
) -> tuple[Solution, int | None]:
    """The first number of chips on which a batch fits, of those tried, and the most that fit."""
    for number, sequences in fits:
        if sequences is None:
            return Solution(CAPACITY_UNKNOWN), None
        if sequences >= batch:
            return Solution(FOUND, critical=number), sequences
    return beyond, None


def splits_tried(case: StepCase) -> tuple[list[Split], Solution]:
    """Tensor parallelism over 1, 2, 4, ... chips, and what the solution is if none is enough.

    On a torus they may take any of its axes.
    """
    links = case.place.links
    published = not links or most_chips(links)[1]
    found: list[Split] = []
    while True:
        chips = 2 ** len(found)
        split = checked(Split, {"tp": chips})
        try:
            split.check(case.model.shape, case.sharing.cache_split)
        except RooflinesError:
            return found, Solution(NEVER, limit=HEADS)
        axes = placed_axes(links, split.axes)
        if chips > 1 and (not links or not_joined(case.place.networks, links, axes)):
            return found, Solution(NEVER if published else UNKNOWN, limit=NETWORK.bound)
        found.append(split)
