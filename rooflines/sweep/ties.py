"""Exact times of one row."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from rooflines.model.costs import exact_cost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.model.resources import Resource
    from rooflines.sweep.operations import OperationBlock, Variant
    from rooflines.sweep.sweep import Sweep


def exact_parts(
    sweep: Sweep,
    chip_rows: OperationBlock,
    variant: Variant,
    resource: Resource,
    sizes: Mapping[str, int],
) -> tuple[Fraction, Fraction]:
    """Seconds that a resource needs for its work, and its latency, as exact rationals [s].

    Returns:
        The two terms whose larger one is the time of one row.
    """
    workload = sweep.case(chip_rows, variant)
    rate = resource.rate(sweep.target(chip_rows, variant))
    if rate is None:
        return Fraction(0), Fraction(0)
    return exact_cost(workload, resource.work, sizes) / rate.per_s, rate.latency_s


def exact_time(
    sweep: Sweep,
    chip_rows: OperationBlock,
    variant: Variant,
    resource: Resource,
    sizes: Mapping[str, int],
) -> Fraction:
    """Seconds that a resource needs for one row, as an exact rational [s]."""
    return max(exact_parts(sweep, chip_rows, variant, resource, sizes))
