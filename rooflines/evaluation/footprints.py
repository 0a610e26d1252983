"""What a model takes of the memory of chips, and the largest batch that fits, as columns."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.numbers import MAX_COUNT
from rooflines.evaluation.space import whole_numbers
from rooflines.models.memory import CacheUnits, cache_units, weights_on_chip
from rooflines.models.mtp import merge_elements
from rooflines.sweep.step_sweep import ELEMENTS, NEAR

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from rooflines.evaluation.operation_rows import Stages
    from rooflines.models.split import Split
    from rooflines.models.step_kernels import StepKernels
    from rooflines.sweep.step_sweep import StepCase


class Footprint(NamedTuple):
    """What a model takes of the memory of a chip.

    Attributes:
        weights: The parameters that it holds [byte].
        units: What a sequence takes, in whole units.
        free: Units that fit beside the weights [1]; None: the capacity is unknown.
    """

    weights: Fraction
    units: CacheUnits
    free: Fraction | None

    @classmethod
    def of(cls, case: StepCase, split: Split) -> Footprint:
        """That of a case, with another split."""
        weights, units = _on_chip(case.workload, split)
        capacity = case.machine.level.capacity_bytes
        return cls(weights, units, None if capacity is None else (capacity - weights) / units.unit)

    def sequences(self, far: int, near: int) -> int | None:
        """The most sequences whose caches fit beside the weights [1]; None: capacity unknown.

        Args:
            far: Cache elements of each in layers that keep every token [1].
            near: Those in other layers [1].
        """
        each = self.units.sequence_units(far, near)
        return None if self.free is None else max(int(self.free // each), 0)


@lru_cache(maxsize=2**10)
def _on_chip(workload: StepKernels, split: Split) -> tuple[Fraction, CacheUnits]:
    """Weights [byte] and units of the cache on a chip, which is the same on all kinds of chips."""
    shape, sharing = workload.resident_shape, workload.sharing
    units = cache_units(shape, sharing.bits, split, sharing.cache_split)
    weights = weights_on_chip(shape, sharing.bits, split)
    if workload.mtp_tokens:
        weights += merge_elements(shape, split.share("weights")) * sharing.bytes_of("weights")
    return weights, units


def footprint_columns(cases: Sequence[StepCase]) -> dict[str, pl.Series]:
    """What the footprints of cases depend on.

    Returns:
        `weights_footprint_bytes` [byte]; `#unit_bytes`, of a unit of the cache on a chip and
        replica [byte]; `#units_`, those of an element of each kind and of states [1]; `#room` and
        `#room_of_all`, the units that fit beside the weights on the chips of a replica, and of all
        replicas [1], null where the capacity is unknown.
    """
    found = [(case.split.dp, Footprint.of(case, case.split)) for case in cases]
    return {
        "weights_footprint_bytes": pl.Series([float(each.weights) for _, each in found]),
        "#unit_bytes": pl.Series([float(each.units.unit / dp) for dp, each in found]),
        "#units_far": _factors([each.units.full for _, each in found]),
        "#units_near": _factors([each.units.local for _, each in found]),
        "#units_state": whole_numbers([each.units.state for _, each in found]),
        "#room": whole_numbers(
            [None if each.free is None else math.floor(each.free) for _, each in found]
        ),
        "#room_of_all": whole_numbers(
            [None if each.free is None else math.floor(each.free * dp) for dp, each in found]
        ),
    }


def _factors(values: Sequence[int]) -> pl.Series:
    """Whole numbers that others of up to 64 bits are multiplied by, wide enough for the product."""
    column = whole_numbers(values)
    return column if max(values) <= 1 else column.cast(pl.Int128)


def cache_units_of() -> pl.Expr:
    """What a sequence takes of a chip [units]."""
    far, near = pl.col(ELEMENTS) * pl.col("#units_far"), pl.col(NEAR) * pl.col("#units_near")
    return far + near + pl.col("#units_state")


def most_sequences() -> pl.Expr:
    """The most sequences whose caches fit beside the weights [1]; null beyond 2^62, or unknown."""
    of_replica = pl.col("#room") // cache_units_of()
    of_replica = of_replica.clip(lower_bound=0).cast(pl.Int64, strict=False)
    fits = of_replica <= pl.lit(MAX_COUNT) // pl.col("dp")
    return pl.when(fits).then(of_replica * pl.col("dp"))


def footprint_stages() -> Stages:
    """Footprints, whether they fit, and the largest batch that does; all whole and exact."""
    units, batch = cache_units_of(), pl.col("B")
    return [
        {
            "kv_cache_footprint_bytes": batch.cast(pl.Float64)
            * (units.cast(pl.Float64) * pl.col("#unit_bytes")),
            "fits": batch <= pl.col("#room_of_all") // units,
            "max_B": most_sequences(),
        },
        {"footprint_bytes": pl.col("weights_footprint_bytes") + pl.col("kv_cache_footprint_bytes")},
    ]
