"""Memory footprints of models, and the largest batch that fits, as columns."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.numbers import MAX_COUNT
from rooflines.evaluation.space import whole_numbers
from rooflines.models.memory import CacheUnits, cache_units, weights_on_chip
from rooflines.models.mtp import merge_elements
from rooflines.sweep.step_sweep import FULL_ELEMENTS, LOCAL_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from rooflines.evaluation.operation_rows import Stages
    from rooflines.models.split import Parallelism
    from rooflines.models.step_kernels import StepKernels
    from rooflines.sweep.step_sweep import StepCase


class Footprint(NamedTuple):
    """A model's memory footprint on one chip.

    Attributes:
        weights: Weights on the chip [byte].
        units: KV cache of a sequence, in whole units.
        free: Units that fit beside the weights, (capacity - weights) / unit [1]; None: the capacity
            is unknown.
    """

    weights: Fraction
    units: CacheUnits
    free: Fraction | None

    @classmethod
    def from_case(cls, case: StepCase, split: Parallelism) -> Footprint:
        """Footprint for a case, with another split."""
        weights, units = _on_chip(case.workload, split)
        capacity = case.machine.level.capacity_bytes
        return cls(weights, units, None if capacity is None else (capacity - weights) / units.unit)

    def max_batch(self, full: int, local: int) -> int | None:
        """Largest batch whose KV cache fits beside the weights [1]; None: capacity unknown.

        Args:
            full: Cache elements per sequence in layers that keep every token [1].
            local: Cache elements per sequence in other layers [1].
        """
        units_per_sequence = self.units.sequence_units(full, local)
        return None if self.free is None else max(int(self.free // units_per_sequence), 0)


@lru_cache(maxsize=2**10)
def _on_chip(workload: StepKernels, split: Parallelism) -> tuple[Fraction, CacheUnits]:
    """Weights [byte] and KV cache units on one chip; the same on every kind of chip."""
    shape, sharing = workload.resident_shape, workload.sharing
    units = cache_units(shape, sharing.bits, split, sharing.cache_split)
    weights = weights_on_chip(shape, sharing.bits, split)
    if workload.mtp_tokens:
        weights += merge_elements(shape, split.share("weights")) * sharing.bytes_of("weights")
    return weights, units


def footprint_columns(cases: Sequence[StepCase]) -> dict[str, pl.Series]:
    """Columns from which footprints are computed.

    Returns:
        `weights_footprint_bytes` [byte]; `#unit_bytes`, bytes per cache unit, chip and replica
        [byte]; `#units_*`, units per cache element of each kind, and units of states [1];
        `#free_units` and `#free_units_all`, units that fit beside the weights in one replica, and
        in all replicas [1], null where the capacity is unknown.
    """
    footprints = [(case.split.dp, Footprint.from_case(case, case.split)) for case in cases]
    return {
        "weights_footprint_bytes": pl.Series(
            [float(footprint.weights) for _, footprint in footprints]
        ),
        "#unit_bytes": pl.Series(
            [float(footprint.units.unit / dp) for dp, footprint in footprints]
        ),
        "#units_full": _unit_factors([footprint.units.full for _, footprint in footprints]),
        "#units_local": _unit_factors([footprint.units.local for _, footprint in footprints]),
        "#units_state": whole_numbers([footprint.units.state for _, footprint in footprints]),
        "#free_units": whole_numbers(
            [
                None if footprint.free is None else math.floor(footprint.free)
                for _, footprint in footprints
            ]
        ),
        "#free_units_all": whole_numbers(
            [
                None if footprint.free is None else math.floor(footprint.free * dp)
                for dp, footprint in footprints
            ]
        ),
    }


def _unit_factors(values: Sequence[int]) -> pl.Series:
    """Column of factors on 64-bit numbers, wide enough for the product."""
    column = whole_numbers(values)
    return column if max(values) <= 1 else column.cast(pl.Int128)


def sequence_units() -> pl.Expr:
    """Cache units per sequence: full * units_full + local * units_local + states [1]."""
    full, local = (
        pl.col(FULL_ELEMENTS) * pl.col("#units_full"),
        pl.col(LOCAL_ELEMENTS) * pl.col("#units_local"),
    )
    return full + local + pl.col("#units_state")


def max_sequences() -> pl.Expr:
    """Largest batch whose KV cache fits beside the weights [1]; null beyond 2^62, or unknown."""
    per_replica = pl.col("#free_units") // sequence_units()
    per_replica = per_replica.clip(lower_bound=0).cast(pl.Int64, strict=False)
    fits = per_replica <= pl.lit(MAX_COUNT) // pl.col("dp")
    return pl.when(fits).then(per_replica * pl.col("dp"))


def footprint_stages() -> Stages:
    """Footprints, `fits`, and the largest batch that fits; exact, in whole numbers."""
    units, batch = sequence_units(), pl.col("B")
    return [
        {
            "kv_cache_footprint_bytes": batch.cast(pl.Float64)
            * (units.cast(pl.Float64) * pl.col("#unit_bytes")),
            "fits": batch <= pl.col("#free_units_all") // units,
            "max_B": max_sequences(),
        },
        {"footprint_bytes": pl.col("weights_footprint_bytes") + pl.col("kv_cache_footprint_bytes")},
    ]
