"""Memory footprints of models, and the largest batch that fits, as columns."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.numbers import MAX_COUNT
from rooflines.evaluation.space import whole_numbers
from rooflines.models.memory import CacheUnits, cache_units, weights_on_chip
from rooflines.models.mtp import merge_elements
from rooflines.models.split import Split
from rooflines.sweep.step_sweep import FULL_ELEMENTS, LOCAL_ELEMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.evaluation.operation_rows import Stages
    from rooflines.models.split import Parallelism
    from rooflines.models.step_kernels import StepKernels
    from rooflines.sweep.step_sweep import StepCase


ALL = Fraction(1)
"""Whole capacity of a chip, as a share [1]."""


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
    def from_case(
        cls,
        case: StepCase,
        split: Parallelism,
        model: StepKernels | None = None,
        share: Fraction = ALL,
    ) -> Footprint:
        """Footprint for a case, with another split.

        Args:
            case: The case.
            split: The split.
            model: Model whose cache elements are counted, of a stage's case; None: its own.
            share: Share of the capacity that may be filled [1].
        """
        weights, units = _on_chip(case.workload, split, model)
        capacity = case.machine.level.capacity_bytes
        free = None if capacity is None else (share * capacity - weights) / units.unit
        return cls(weights, units, free)

    def max_batch(self, full: int, local: int) -> int | None:
        """Largest batch whose KV cache fits beside the weights [1].

        None: the capacity is unknown, or a stage has no cache.

        Args:
            full: Cache elements per sequence in layers that keep every token [1].
            local: Cache elements per sequence in other layers [1].
        """
        units_per_sequence = self.units.sequence_units(full, local)
        if self.free is None or (not units_per_sequence and self.free >= 0):
            return None
        return max(int(self.free // units_per_sequence), 0) if units_per_sequence else 0


def stage_footprints(case: StepCase, share: Fraction = ALL) -> list[Footprint]:
    """Chip footprints by kind of pipeline stage; one without stages.

    Args:
        case: The case.
        share: Share of the capacity that may be filled [1].
    """
    if case.pipeline is None:
        return [Footprint.from_case(case, case.split, share=share)]
    stages = (stage for stage, _ in case.pipeline.stages)
    return [Footprint.from_case(stage, case.split, case.workload, share) for stage in stages]


def largest_fitting_batch(
    case: StepCase, full: int, local: int, share: Fraction = ALL
) -> int | None:
    """Largest batch per replica that fits on the fullest chip [1]; None: capacity unknown.

    Args:
        case: The case.
        full: Cache elements per sequence in layers that keep every token [1].
        local: Cache elements per sequence in other layers [1].
        share: Share of the capacity that may be filled [1].
    """
    batches = [footprint.max_batch(full, local) for footprint in stage_footprints(case, share)]
    return min((batch for batch in batches if batch is not None), default=None)


@lru_cache(maxsize=2**10)
def _on_chip(
    workload: StepKernels, split: Parallelism, model: StepKernels | None
) -> tuple[Fraction, CacheUnits]:
    """Weights [byte] and KV cache units on one chip; the same on every kind of chip."""
    shape, sharing = workload.resident_shape, workload.sharing
    counted = None if model is None else model.resident_shape
    units = cache_units(shape, sharing.bits, split, sharing.cache_split, counted)
    weights = weights_on_chip(shape, sharing.bits, split)
    if workload.mtp_tokens:
        weights += merge_elements(shape, split.share("weights")) * sharing.bytes_of("weights")
    return weights, units


def footprint_columns(cases: Sequence[StepCase]) -> dict[str, pl.Series]:
    """Columns from which footprints are computed, for the first stage kind.

    Args:
        cases: The cases, with as many kinds of pipeline stages; further kinds have their index
            behind the names.

    Returns:
        `weights_footprint_bytes` [byte]; `#unit_bytes`, bytes per cache unit, chip and replica
        [byte]; `#units_*`, units per cache element of each kind, and units of states [1];
        `#free_units` and `#free_units_all`, units that fit beside the weights in one replica, and
        in all replicas [1], null where the capacity is unknown.
    """
    columns: dict[str, pl.Series] = {}
    splits = [case.workload.sharing.split for case in cases]
    by_case = [
        stage_footprints(case)
        if isinstance(split, Split) and split.pp > 1
        else [Footprint.from_case(case, split)]
        for case, split in zip(cases, splits, strict=True)
    ]
    for index, kind in enumerate(zip(*by_case, strict=True)):
        footprints = [*zip((split.dp for split in splits), kind, strict=True)]
        named = {
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
        end = f":{index}" if index else ""
        columns |= {f"{name}{end}": values for name, values in named.items()}
    return columns


def _unit_factors(values: Sequence[int]) -> pl.Series:
    """Column of factors on 64-bit numbers, wide enough for the product."""
    column = whole_numbers(values)
    return column if max(values) <= 1 else column.cast(pl.Int128)


def sequence_units(kind: int = 0) -> pl.Expr:
    """Cache units per sequence: full * units_full + local * units_local + states [1].

    Args:
        kind: Index of the stage kind.
    """
    end = f":{kind}" if kind else ""
    full, local = (
        pl.col(FULL_ELEMENTS) * pl.col(f"#units_full{end}"),
        pl.col(LOCAL_ELEMENTS) * pl.col(f"#units_local{end}"),
    )
    return full + local + pl.col(f"#units_state{end}")


def max_sequences(kinds: int = 1) -> pl.Expr:
    """Largest batch whose KV cache fits beside the weights [1]; null beyond 2^62, or unknown.

    Args:
        kinds: Stage kinds [1].
    """
    batches = []
    for kind in range(kinds):
        end = f":{kind}" if kind else ""
        per_replica = pl.col(f"#free_units{end}") // sequence_units(kind)
        per_replica = per_replica.clip(lower_bound=0).cast(pl.Int64, strict=False)
        fits = per_replica <= pl.lit(MAX_COUNT) // pl.col("dp")
        batches.append(pl.when(fits).then(per_replica * pl.col("dp")))
    return batches[0] if kinds == 1 else pl.min_horizontal(*batches)


def footprint_stages(kinds: int = 1) -> Stages:
    """Footprints, `fits`, and the largest batch that fits; exact, in whole numbers.

    With several stage kinds the fullest chip counts.

    Args:
        kinds: Stage kinds [1].
    """
    if kinds > 1:
        return _fullest_stage(kinds)
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


def _fullest_stage(kinds: int) -> Stages:
    """Columns as in `footprint_stages`, for a chip on the fullest stage."""
    ends = ["", *(f":{kind}" for kind in range(1, kinds))]
    weights = [pl.col(f"weights_footprint_bytes{ends[kind]}") for kind in range(kinds)]
    caches = [pl.col(f"#cache{kind}") for kind in range(kinds)]
    totals = [weight + cache for weight, cache in zip(weights, caches, strict=True)]
    fullest = pl.max_horizontal(*totals)

    def of_fullest(values: Sequence[pl.Expr]) -> pl.Expr:
        pairs = zip(totals, values, strict=True)
        return pl.coalesce(pl.when(total >= fullest).then(value) for total, value in pairs)

    fits = [
        pl.col("B") <= pl.col(f"#free_units_all{ends[kind]}") // sequence_units(kind)
        for kind in range(kinds)
    ]
    return [
        {
            f"#cache{kind}": pl.col("B").cast(pl.Float64)
            * (sequence_units(kind).cast(pl.Float64) * pl.col(f"#unit_bytes{ends[kind]}"))
            for kind in range(kinds)
        },
        {
            "kv_cache_footprint_bytes": of_fullest(caches),
            "footprint_bytes": fullest,
            "weights_footprint_bytes": of_fullest(weights),
            "fits": pl.all_horizontal(*fits),
            "max_B": max_sequences(kinds),
        },
    ]
