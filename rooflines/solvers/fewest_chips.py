"""Minimum chips whose memory holds weights and KV caches, and the maximum batch on them."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import MAX_COUNT
from rooflines.dictionary.columns import CAPACITY_UNKNOWN, FOUND, HEADS, NEVER, UNKNOWN
from rooflines.evaluation.engine_columns import pool_or_none
from rooflines.evaluation.footprints import Footprint
from rooflines.hardware.entry_forms import validate_entry
from rooflines.hardware.support import missing_route_reason
from rooflines.models.memory import kv_cache_elements
from rooflines.models.split import Split
from rooflines.solvers.context_limit import Solution
from rooflines.theory.network import max_domain, resolve_axes
from rooflines.theory.resources import NETWORK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.sweep.step_sweep import StepCase


def fewest_chips(
    cases: Iterable[StepCase], batches: Sequence[int], contexts: Sequence[int]
) -> Iterator[tuple[StepCase, dict[str, object]]]:
    """Minimum chips over all splits, at every batch and context; with an engine by its pool.

    Args:
        cases: The cases; those that differ in their split alone count once.
        batches: B [1].
        contexts: S [1].

    Yields:
        A case, and the columns of its threshold: the minimum number of chips, and the maximum batch
        on them, null beyond `MAX_COUNT` [1].
    """
    distinct_cases: dict[tuple[str | None, ...], StepCase] = {}
    for case in cases:
        engine = None if case.started is None else case.started.label
        place = (case.chip, case.memory, case.network)
        keys = (case.name, case.phase, *place, case.dtypes.label, engine)
        distinct_cases.setdefault(keys, case)
    for case in distinct_cases.values():
        splits, beyond = tp_splits(case)
        footprints = [(split.shards, Footprint.from_case(case, split)) for split in splits]
        shape = case.workload.resident_shape
        fits = {}
        for context in contexts:
            full, local = (
                kv_cache_elements(shape, context, local=is_local) for is_local in (False, True)
            )
            exact = [(chips, footprint.max_batch(full, local)) for chips, footprint in footprints]
            pools = [pool_or_none(case, context, split) for split in splits]
            fits[context] = [
                (chips, sequences if pool is None else pool.requests)
                for (chips, sequences), pool in zip(exact, pools, strict=True)
            ]
        for batch, context in product(batches, contexts):
            solution, max_batch = _first_fit(batch, fits[context], beyond)
            stored_max_batch = None if max_batch is None or max_batch > MAX_COUNT else max_batch
            sizes = {"B": batch, "S": context, "max_B_fit": stored_max_batch}
            yield case, {"axis": "chips", **sizes, **solution._asdict()}


def _first_fit(
    batch: int, fits: Sequence[tuple[int, int | None]], beyond: Solution
) -> tuple[Solution, int | None]:
    """First number of chips on which a batch fits, and the maximum batch on them."""
    for number, sequences in fits:
        if sequences is None:
            return Solution(CAPACITY_UNKNOWN), None
        if sequences >= batch:
            return Solution(FOUND, critical=number), sequences
    return beyond, None


def tp_splits(case: StepCase) -> tuple[list[Split], Solution]:
    """Tensor parallelism over 1, 2, 4, ... chips, and the solution if no number is enough.

    On a torus the chips may take any of its axes.
    """
    links = case.place.links
    is_published = not links or max_domain(links)[1]
    splits: list[Split] = []
    while True:
        chips = 2 ** len(splits)
        split = validate_entry(Split, {"tp": chips})
        try:
            split.check(case.model.shape)
        except RooflinesError:
            return splits, Solution(NEVER, limit=HEADS)
        axes = resolve_axes(links, split.axes)
        if chips > 1 and (not links or missing_route_reason(case.place.networks, links, axes)):
            return splits, Solution(NEVER if is_published else UNKNOWN, limit=NETWORK.bound)
        splits.append(split)
