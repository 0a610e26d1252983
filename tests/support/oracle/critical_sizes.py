"""Thresholds along a size, by evaluation."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from oracle.quantities import (
    stored_size,
)
from oracle.setting import (
    RESOURCES,
    Setting,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FAR = 2**400  # a size so large that only the fastest growing term counts


def first_size(difference: Callable[[int], Fraction], step: int) -> int | None:
    """Return the first whole size from 1 on at which a difference is not negative; None: never.

    The difference is affine in the number of steps; sizes within a step (1, or a tile) cost the
    same.
    """
    if difference(1) >= 0:
        return 1
    if difference(1 + step) <= difference(1):
        return None
    high = 2
    while difference(high) < 0:
        high *= 2
    low = high // 2  # negative here, not negative at `high`
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if difference(middle) >= 0 else (middle, high)
    return high


def real_size(difference: Callable[[int], Fraction], step: int) -> Fraction:
    """Return where the line through two evaluated points is zero, in sizes; 0 if it is constant."""
    one, two = difference(step), difference(2 * step)
    return Fraction(0) if one == two else step * (1 - one / (two - one))


def thresholds_along(
    setting: Setting, axis: str, sizes: Mapping[str, int], chips: int
) -> dict[str, Any]:
    """Return the thresholds of one setting along one dimension, at the sizes of the others."""
    step = setting.tile.get(axis, 1) * (
        chips if axis == setting.sharding.split and axis in setting.tile else 1
    )

    def terms(resource: str, size: int) -> list[Fraction]:
        last = -(-size // step) * step  # of the tile
        return setting.terms({**sizes, axis: last}, chips)[resource]

    def ahead(resource: str, term: int) -> Callable[[int], Fraction]:
        return lambda size: terms("math", size)[0] - terms(resource, size)[term]

    found: dict[str, int | None] = {}
    real: dict[str, Fraction] = {}
    for resource in RESOURCES[1:]:
        lines = [ahead(resource, term) for term in range(len(terms(resource, 1)))]
        first = [first_size(line, step) for line in lines]
        found[resource] = None if None in first else max(size for size in first if size is not None)
        real[resource] = max(real_size(line, step) for line in lines)
    never = [resource for resource in found if found[resource] is None]
    critical = None if never else max(size for size in found.values() if size is not None)
    if never:
        limit: str | None = max(
            never, key=lambda r: max(terms(r, FAR * step))
        )  # the first of equals: memory
    elif critical == 1:
        limit = None
    else:
        limit = max(found, key=lambda r: (found[r], real[r]))
    tends_to = None
    if limit is not None:
        near, far = (setting.work({**sizes, axis: size * step}, chips) for size in (1, 2))
        growth = far[limit] - near[limit]
        tends_to = (far["math"] - near["math"]) / growth if growth else None
    outcome = "never" if never else "always" if critical == 1 else "found"
    return {
        **first_estimated(setting, axis, sizes, chips),
        "outcome": "beyond-2^62" if not never and stored_size(critical) is None else outcome,
        "critical": stored_size(critical),
        "critical_exact": None if never else max(real.values()),
        "critical_memory": stored_size(found["memory"]),
        "critical_network": stored_size(found["network"]),
        "limit": limit,
        "limit_intensity": tends_to,
    }


NO_ESTIMATE = dict.fromkeys(("critical_estimate", "outcome_estimate"))


def first_estimated(
    setting: Setting, axis: str, sizes: Mapping[str, int], chips: int
) -> dict[str, int | str | None]:
    """Return the first size at which a compute piece is the largest, and what it is.

    The sizes at which it is so begin at 1, or at a crossing of two pieces: those are tried. Within
    steps of whole tiles, pieces are affine in the step.
    """
    if setting.calibration is None or setting.tile:
        return NO_ESTIMATE
    probe = {**sizes, axis: 1}
    step = setting.in_whole_tiles(probe, chips)[axis] if axis == setting.operation.dims[0] else 1

    def times(number: int) -> list[tuple[str, Fraction]]:
        at = {**sizes, axis: (number - 1) * step + 1}
        lines = [piece for piece in setting.pieces(at, chips) if piece[0] != "network"]
        nominal = replace(setting, efficiency=dict.fromkeys(RESOURCES, Fraction(1)))
        terms = nominal.terms(at, chips)["network"]
        if setting.collective is None or len(terms) == 1:
            return [*lines, *(("network", time) for time in setting.network_pieces(at, chips))]
        return [*lines, *(("network", time) for time in setting.protocols(terms[0], chips))]

    def compute_bound(number: int) -> bool:
        at = {**sizes, axis: (number - 1) * step + 1}
        pieces = setting.pieces(at, chips)
        return max(pieces, key=lambda piece: piece[1])[0] == "compute"

    tried = {1}
    for (name, one), (_, two) in zip(times(1), times(2), strict=True):
        for (other, first), (_, second) in zip(times(1), times(2), strict=True):
            if (name == "compute") != (other == "compute") and two - one != second - first:
                crossing = 1 + (first - one) / ((two - one) - (second - first))
                tried |= {max(math.ceil(crossing), 1), max(math.floor(crossing) + 1, 1)}
    found = min((number for number in tried if compute_bound(number)), default=None)
    size = None if found is None else (found - 1) * step + 1
    outcome = "never" if size is None else "always" if size == 1 else "found"
    stored = stored_size(size)
    far = size is not None and stored is None
    return {"critical_estimate": stored, "outcome_estimate": "beyond-2^62" if far else outcome}
