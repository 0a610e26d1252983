"""Estimates of a sweep's rows: the calibration of every variant, and its pieces as columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import polars as pl

from rooflines.calibration.estimate import Fit, estimate_of
from rooflines.calibration.form import Numbers
from rooflines.calibration.quantities import whole_size
from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.model.operation import MATRIX
from rooflines.model.resources import MATH
from rooflines.sweep.extents import variables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.calibration.entries import Fitted, FittedCollective
    from rooflines.calibration.estimate import Estimate, Sum
    from rooflines.catalogue.entries import Calibration
    from rooflines.sweep.blocked import FactoredSums
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep

__all__ = [
    "CALIBRATED",
    "ESTIMATE_BOUNDS",
    "EstimateColumns",
    "Parts",
    "estimate_columns",
    "estimates",
    "is_calibrated",
]

ESTIMATE_BOUNDS = ("compute", "memory", "network", "mixed")
"""The bounds of an estimate, in the order that decides ties."""

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

    @property
    def bounds(self) -> dict[str, str]:
        """The bound of every column of `expressions` with a piece."""
        return {f"#piece_{index}": bound for index, (bound, _) in enumerate(self.pieces)}

    def expressions(self, sweep: Sweep, sums: FactoredSums) -> dict[str, pl.Expr]:
        """`#common` and `#piece_<index>` [s], by factors that are added to those to compute."""
        found = {"#common": _total("common", self.common, sweep, sums)}
        for index, (_, least) in enumerate(self.pieces):
            totals = [
                _total(f"piece_{index}_{number}", parts, sweep, sums)
                for number, parts in enumerate(least)
            ]
            found[f"#piece_{index}"] = totals[0] if len(totals) == 1 else pl.min_horizontal(totals)
        return found


def _total(name: str, parts: Parts, sweep: Sweep, sums: FactoredSums) -> pl.Expr:
    """A sum of products of sizes and of what counts by whole spans [s]."""
    row = sweep.op.dims[0]
    totals = []
    for span, terms in parts.items():
        extents = {dim: whole_size(dim, max(span, 1) if dim == row else 1) for dim in sweep.op.dims}
        if span != PLAIN and sweep.tile:
            extents = variables(sweep, MATH.work)
        totals.append(sums.add(f"{name}_{span}", terms, extents))
    return reduce(add, totals) if totals else pl.lit(0.0)


def estimates(sweep: Sweep, variants: Sequence[ChipVariant]) -> list[Estimate | None]:
    """The estimate of every variant; None without a calibration."""
    found: list[Estimate | None] = []
    for chip_rows, variant in variants:
        fit = _fit(sweep, (chip_rows, variant))
        workload, target = sweep.case(chip_rows, variant), sweep.target(chip_rows, variant)
        found.append(None if fit is None else estimate_of(fit, workload, target))
    return found


def is_calibrated(sweep: Sweep, chip_variant: ChipVariant) -> bool:
    """Whether a variant has a calibration."""
    return _fit(sweep, chip_variant) is not None


def _fit(sweep: Sweep, chip_variant: ChipVariant) -> Fit | None:
    """The calibration of a variant: of the software that the sweep names, or the chip's own.

    Fits are of the matrix unit and the main memory. Those of collectives are of one over a chip's
    first interconnect.
    """
    chip_rows, variant = chip_variant
    chip, compute = sweep.chips[chip_rows.chip], sweep.combinations[variant.dtypes].compute
    if not sweep.config.calibration:
        own = (chip.calibration or {}).get(compute)
        return Fit(_numbers(own)) if own else None
    matmul = sweep.calibrations.matmul(chip_rows.chip, sweep.config.calibration, compute)
    if matmul is None or (sweep.unit, chip_rows.memory) != (MATRIX, MAIN_MEMORY):
        return None
    collective: FittedCollective | None = None
    transfers = sweep.shardings[variant.sharding].transfers
    if len(transfers) == 1 and chip_rows.networks == tuple(chip.networks)[:1]:
        collective = sweep.calibrations.collective(
            chip_rows.chip, sweep.config.calibration, transfers[0][1]
        )
    return Fit(
        matmul.numbers,
        collective.numbers if collective else None,
        {**_bands(matmul), **(_bands(collective) if collective else {})},
    )


def _bands(entry: Fitted) -> dict[str, tuple[float, float]]:
    return {bound: (float(low), float(high)) for bound, (low, high) in entry.bands.items()}


def _numbers(own: Calibration) -> Numbers:
    """The calibration of a chip's entry, of form `max`."""
    fitted = own.exact
    shares = {name: fitted.shares.get(name, 1) for name in ("math", "memory", "network")}
    return Numbers(
        math=shares["math"],
        memory=shares["memory"],
        overhead_s=fitted.overhead_s,
        network=shares["network"],
    )


def estimate_columns(sweep: Sweep, variants: Sequence[ChipVariant]) -> EstimateColumns | None:
    """The pieces of the estimates of variants as columns; None without any calibration."""
    found = estimates(sweep, variants)
    if not any(found):
        return None
    columns: dict[str, list[float | None]] = {}
    common: Parts = {}
    slots: dict[tuple[str, int], list[Parts]] = {}

    def put(name: str, index: int, value: float) -> None:
        blank: list[float | None] = [None if each is None else 0.0 for each in found]
        columns.setdefault(name, blank)[index] = value

    def add_sum(name: str, parts: Parts, total: Sum, index: int, span: int) -> None:
        for key, terms in ((PLAIN, total.plain), (span, total.counted)):
            for dims, coefficient in terms.items():
                column = f"#{name}_{key}:{','.join(dims)}"
                parts.setdefault(key, {})[dims] = column
                put(column, index, float(coefficient))

    most = _most_sums(found)
    for index, estimate in enumerate(found):
        if estimate is None:
            continue
        add_sum("common", common, estimate.common, index, estimate.span)
        for slot, least in _slots(estimate).items():
            parts = slots.setdefault(slot, [{} for _ in range(most[slot])])
            padded = (*least, *[least[-1]] * (most[slot] - len(least)))
            for number, total in enumerate(padded):
                name = f"{slot[0]}_{slot[1]}_{number}"
                add_sum(name, parts[number], total, index, estimate.span)
    order = sorted(slots, key=lambda slot: (ESTIMATE_BOUNDS.index(slot[0]), slot[1]))
    return EstimateColumns(
        common,
        tuple((slot[0], tuple(slots[slot])) for slot in order),
        {
            CALIBRATED: pl.Series([each is not None for each in found]),
            **{name: pl.Series(values, dtype=pl.Float64) for name, values in columns.items()},
            **_band_columns(found, {bound for bound, _ in slots}),
        },
    )


def _slots(estimate: Estimate) -> dict[tuple[str, int], tuple[Sum, ...]]:
    """The pieces by their bound, and their number among those of it."""
    found: dict[tuple[str, int], tuple[Sum, ...]] = {}
    for piece in estimate.pieces:
        number = sum(bound == piece.bound for bound, _ in found)
        found[piece.bound, number] = piece.least
    return found


def _most_sums(found: Sequence[Estimate | None]) -> dict[tuple[str, int], int]:
    """The most sums of which the least counts, by piece [1]."""
    most: dict[tuple[str, int], int] = {}
    for estimate in found:
        for slot, least in _slots(estimate).items() if estimate else ():
            most[slot] = max(most.get(slot, 0), len(least))
    return most


def _band_columns(found: Sequence[Estimate | None], bounds: set[str]) -> dict[str, pl.Series]:
    """The bands of every bound; null where a calibration has none."""
    columns = {}
    for bound in sorted(bounds):
        bands = [each.bands.get(bound) if each else None for each in found]
        for side, name in enumerate(("low", "high")):
            values = [None if band is None else band[side] for band in bands]
            columns[f"#{name}_{bound}"] = pl.Series(values, dtype=pl.Float64)
    return columns
