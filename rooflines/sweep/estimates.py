"""Estimates of a sweep's rows: the calibration of every variant, and its pieces as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from rooflines.fits.estimate import estimate_of
from rooflines.sweep.calibrated import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.fits.estimate import Estimate, Sum
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep

CALIBRATED = "#calibrated"
"""The column that says whether a variant has a calibration."""

PLAIN = 0
"""The key of what counts by sizes; of what counts by whole spans, it is the span [1]."""

Parts = dict[int, dict[tuple[str, ...], str]]
"""By span: the dimensions of every product, and the column of its coefficient."""


@dataclass(frozen=True)
class EstimateColumns:
    """The pieces of the estimates of variants.

    Attributes:
        common: What is added to the largest piece.
        pieces: Their bounds and the sums of which the least counts, in order.
        columns: One value for each variant, null without a calibration: the coefficients [s per
            product of sizes], and `#low_<bound>` and `#high_<bound>`, the bands [1].
    """

    common: Parts
    pieces: tuple[tuple[str, tuple[Parts, ...]], ...]
    columns: Mapping[str, pl.Series]


def estimates(sweep: Sweep, variants: Sequence[ChipVariant]) -> list[Estimate | None]:
    """The estimate of every variant; None without a calibration."""
    found: list[Estimate | None] = []
    for chip_rows, variant in variants:
        fit = chip_rows.case(variant).fit
        workload, target = sweep.case(chip_rows, variant), sweep.target(chip_rows, variant)
        found.append(None if fit is None else estimate_of(fit, workload, target))
    return found


def estimate_columns(sweep: Sweep, variants: Sequence[ChipVariant]) -> EstimateColumns | None:
    """The pieces of the estimates of variants as columns; None without any calibration."""
    found = estimates(sweep, variants)
    if not any(found):
        return None
    columns: dict[str, list[float | None]] = {}
    pieces: list[tuple[str, tuple[Parts, ...]]] = []

    def put(name: str, index: int, value: float) -> None:
        blank: list[float | None] = [None if each is None else 0.0 for each in found]
        columns.setdefault(name, blank)[index] = value

    def add_sums(name: str, sums: Iterable[Sum | None]) -> Parts:
        parts: Parts = {}
        for index, (total, estimate) in enumerate(zip(sums, found, strict=True)):
            if total is None or estimate is None:
                continue
            for key, terms in ((PLAIN, total.plain), (estimate.span, total.counted)):
                for dims, coefficient in terms.items():
                    column = f"#{name}_{key}:{','.join(dims)}"
                    parts.setdefault(key, {})[dims] = column
                    put(column, index, float(coefficient))
        return parts

    common = add_sums("common", (each.common if each else None for each in found))
    for number, (bound, least) in enumerate(slots_of(found)):
        parts = (add_sums(f"{number}_{index}", sums) for index, sums in enumerate(least))
        pieces.append((bound, tuple(parts)))
    return EstimateColumns(
        common,
        tuple(pieces),
        {
            CALIBRATED: pl.Series([each is not None for each in found]),
            **{name: pl.Series(values, dtype=pl.Float64) for name, values in columns.items()},
            **band_columns(found),
        },
    )


def slots_of(found: Sequence[Estimate | None]) -> list[tuple[str, list[list[Sum | None]]]]:
    """The pieces of several estimates side by side.

    Returns:
        For each piece, in the order that decides ties: its bound, and the sums of which the least
        counts; for each of these its value in every estimate, None where it has no such piece.
    """
    slots: dict[tuple[str, int], list[tuple[Sum, ...]]] = {}
    for index, estimate in enumerate(found):
        for slot, least in _slots(estimate).items() if estimate else ():
            slots.setdefault(slot, [()] * len(found))[index] = least
    order = sorted(slots, key=lambda slot: (BOUNDS.index(slot[0]), slot[1]))
    return [
        (
            slot[0],
            [
                [least[min(number, len(least) - 1)] if least else None for least in slots[slot]]
                for number in range(max(map(len, slots[slot])))
            ],
        )
        for slot in order
    ]


def _slots(estimate: Estimate) -> dict[tuple[str, int], tuple[Sum, ...]]:
    """The pieces by their bound, and their number among those of it."""
    found: dict[tuple[str, int], tuple[Sum, ...]] = {}
    for piece in estimate.pieces:
        number = sum(bound == piece.bound for bound, _ in found)
        found[piece.bound, number] = piece.least
    return found


def band_columns(found: Sequence[Estimate | None]) -> dict[str, pl.Series]:
    """`#low_<bound>` and `#high_<bound>` of estimates [1]; null where one has no band."""
    columns = {}
    for bound in BOUNDS:
        if not any(each and any(piece.bound == bound for piece in each.pieces) for each in found):
            continue
        bands = [each.bands.get(bound) if each else None for each in found]
        for side, name in enumerate(("low", "high")):
            values = [None if band is None else band[side] for band in bands]
            columns[f"#{name}_{bound}"] = pl.Series(values, dtype=pl.Float64)
    return columns
