"""What a model takes of the memory of chips, and the largest batch that fits, as columns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.models.footprint import CacheUnits, cache_units, weights_on_chip
from rooflines.sweep.space import whole_numbers
from rooflines.sweep.steps import ELEMENTS, NEAR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.sweep.estimate_rows import Stages
    from rooflines.sweep.steps import StepCase


def footprint_columns(cases: Sequence[StepCase]) -> dict[str, pl.Series]:
    """What the footprints of cases depend on.

    Returns:
        `weights_footprint_bytes` [byte]; `#unit_bytes`, of a unit of the cache on a chip and
        replica [byte]; `#units_`, those of an element of each kind and of states [1]; `#room` and
        `#room_of_all`, the units that fit beside the weights on the chips of a replica, and of all
        replicas [1], null where the capacity is unknown.
    """
    weights, sizes, room, room_of_all = [], [], [], []
    of_units: list[CacheUnits] = []
    for case in cases:
        shape, split, bits = case.model.shape, case.split, case.sharing.bits
        held = weights_on_chip(shape, bits, split)
        units = cache_units(shape, bits, split, case.sharing.cache_split)
        one, capacity = units.unit, case.machine.level.capacity_bytes
        of_units.append(units)
        free = None if capacity is None else (capacity - held) / one
        weights.append(float(held))
        sizes.append(float(one / split.dp))
        room.append(None if free is None else math.floor(free))
        room_of_all.append(None if free is None else math.floor(free * split.dp))
    return {
        "weights_footprint_bytes": pl.Series(weights, dtype=pl.Float64),
        "#unit_bytes": pl.Series(sizes, dtype=pl.Float64),
        "#units_far": whole_numbers([units.far for units in of_units]),
        "#units_near": whole_numbers([units.near for units in of_units]),
        "#units_state": whole_numbers([units.state for units in of_units]),
        "#room": whole_numbers(room),
        "#room_of_all": whole_numbers(room_of_all),
    }


def footprint_stages() -> Stages:
    """Footprints, whether they fit, and the largest batch that does; all whole and exact."""
    far, near = pl.col(ELEMENTS) * pl.col("#units_far"), pl.col(NEAR) * pl.col("#units_near")
    elements, batch = far + near + pl.col("#units_state"), pl.col("B")
    of_replica = (pl.col("#room") // elements).clip(lower_bound=0).cast(pl.Int64, strict=False)
    cached = batch.cast(pl.Float64) * (elements.cast(pl.Float64) * pl.col("#unit_bytes"))
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
