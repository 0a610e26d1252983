"""What a model takes of the memory of chips, and the largest batch that fits, as columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.models.cache import cache_elements
from rooflines.models.footprint import cache_on_chip, weights_on_chip
from rooflines.sweep.space import whole_numbers
from rooflines.sweep.steps import ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.sweep.estimate_rows import Stages
    from rooflines.sweep.steps import StepCase


def footprint_columns(cases: Sequence[StepCase]) -> dict[str, pl.Series]:
    """What the footprints of cases depend on.

    Returns:
        `weights_footprint_bytes` [byte]; `#element_bytes`, of a cache element on a chip and replica
        [byte]; `#room` and `#room_of_all`, the cache elements that fit beside the weights on the
        chips of a replica, and of all replicas [1], null where the capacity is unknown.
    """
    weights, sizes, room, room_of_all = [], [], [], []
    for case in cases:
        shape, split, bits = case.model.shape, case.split, case.sharing.bits
        held = weights_on_chip(shape, bits, split)
        cached = cache_on_chip(shape, 1, bits, split, case.sharing.cache_split)
        one = cached / cache_elements(shape, 1)
        capacity = case.machine.level.capacity_bytes
        free = None if capacity is None else (capacity - held) / one
        weights.append(float(held))
        sizes.append(float(one / split.dp))
        room.append(None if free is None else math.floor(free))
        room_of_all.append(None if free is None else math.floor(free * split.dp))
    return {
        "weights_footprint_bytes": pl.Series(weights, dtype=pl.Float64),
        "#element_bytes": pl.Series(sizes, dtype=pl.Float64),
        "#room": whole_numbers(room),
        "#room_of_all": whole_numbers(room_of_all),
    }


def footprint_stages() -> Stages:
    """Footprints, whether they fit, and the largest batch that does; all whole and exact."""
    elements, batch = pl.col(ELEMENTS), pl.col("B")
    of_replica = (pl.col("#room") // elements).clip(lower_bound=0).cast(pl.Int64, strict=False)
    cached = batch.cast(pl.Float64) * (elements.cast(pl.Float64) * pl.col("#element_bytes"))
    return [
        {
            "cache_footprint_bytes": cached,
            "fits": batch <= pl.col("#room_of_all") // elements,
            "max_B": pl.when(of_replica <= pl.lit(LARGEST_COUNT) // pl.col("dp")).then(
                of_replica * pl.col("dp")
            ),
        },
        {"footprint_bytes": pl.col("weights_footprint_bytes") + pl.col("cache_footprint_bytes")},
    ]
