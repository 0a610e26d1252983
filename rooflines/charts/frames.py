"""What the rows of several charts share: ridges, corners of roofs, shares of the peak, options."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.model.network import axes_text
from rooflines.model.resources import RESOURCES, math_rate, memory_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.catalogue.entries import Chip, Price
    from rooflines.charts.results import Selection
    from rooflines.sweep.operations import OperationBlock, Variant
    from rooflines.sweep.sweep import Sweep

TIMES = {resource.bound: f"t_{resource.name}_s" for resource in RESOURCES}
"""The column of each resource's time, by the name of the bottleneck."""

BAND = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
"""The columns of a calibrated time and of its band."""

NOMINAL, CALIBRATED = BASES = ("nominal", "calibrated")
"""What numbers of a chart are by: the data sheet, or a calibration."""

SECONDS_PER_HOUR = 3600

PRICE_KINDS = ("spot", "reserved", "committed", "on demand")
"""Words of what is sold; `listed` if it has none of them."""

MONTH = re.compile(r"\d{4}(-\d{2})?")


def lowest(frame: pl.DataFrame, column: str, otherwise: float = 1.0) -> float:
    """The smallest value of a column, or a default if it has none."""
    value = frame.select(pl.col(column).cast(pl.Float64).min()).item()
    return otherwise if value is None else float(value)


def highest(frame: pl.DataFrame, column: str, otherwise: float = 1.0) -> float:
    """The largest value of a column, or a default if it has none."""
    value = frame.select(pl.col(column).cast(pl.Float64).max()).item()
    return otherwise if value is None else float(value)


def with_missing(rows: pl.LazyFrame, *columns: str) -> pl.LazyFrame:
    """Rows of a table with columns that it may not store, then null."""
    missing = {*columns} - {*rows.collect_schema()}
    texts = {name for name in missing if name.endswith("bound")}
    return rows.with_columns(
        pl.lit(None, dtype=pl.String if name in texts else pl.Float64).alias(name)
        for name in sorted(missing)
    )


def has_bandwidth(entry: Chip) -> bool:
    """Whether the catalogue has the bandwidth of a chip's main memory."""
    return MAIN_MEMORY in entry.memory and bool(entry.memory[MAIN_MEMORY].bytes_per_s)


def chips_of(sweep: Sweep) -> list[str]:
    """The chips of a sweep that have rows."""
    return list(dict.fromkeys(chip_rows.chip for chip_rows in sweep.by_chip))


def dtypes_of(sweep: Sweep, chips: Sequence[str] = ()) -> tuple[str, ...]:
    """The dtype combinations of a sweep that any, or all, of some chips can do."""
    by_chip: dict[str, set[str]] = {}
    for rows in sweep.by_chip:
        by_chip.setdefault(rows.chip, set()).update(variant.dtypes for variant in rows.variants)
    every = set().union(*by_chip.values())
    for chip in chips:
        every &= by_chip.get(chip, set())
    return tuple(name for name in sweep.combinations if name in every)


def route_name(chip_rows: OperationBlock, variant: Variant) -> str | None:
    """The network of rows as charts name it, with several axes, as in `ici 4x4`."""
    along = f" {axes_text(variant.axes)}" if len(variant.axes) > 1 else ""
    return chip_rows.network and chip_rows.network + along


def shares_below_peak(sweep: Sweep) -> list[float]:
    """The shares of the peak that a sweep solves for besides 1, the largest first [1]."""
    return sorted((float(share) for share in sweep.config.shares if share < 1), reverse=True)


def at_largest(frame: pl.DataFrame, dims: Iterable[str]) -> pl.DataFrame:
    """The rows at the largest of each size held fixed."""
    for dim in dims:
        if frame[dim].n_unique() > 1:
            frame = frame.filter(pl.col(dim) == frame[dim].max())
    return frame


def fixed_text(frame: pl.DataFrame, dims: Iterable[str]) -> str:
    """The shape, or else the sizes, that all rows share, in words."""
    shape = frame["shape"].drop_nulls().unique()
    if len(shape) == 1:
        return str(shape[0])
    sizes = {dim: frame[dim].unique() for dim in dims}
    return ", ".join(f"{dim} = {values[0]:,}" for dim, values in sizes.items() if len(values) == 1)


def apart(values: Sequence[int], most: int) -> list[int]:
    """Sizes of a table with few columns: powers of two first, then an even selection."""
    powers = [value for value in values if value & (value - 1) == 0]
    kept = powers if len(powers) > 1 else list(values)
    if len(kept) <= most:
        return kept
    step = -(-len(kept) // most)
    return sorted(kept[::-1][::step])


def price_of(entry: Chip, seller: str | None = None) -> Price | None:
    """The lowest price of a chip at a seller; None: it has none."""
    prices = [each for each in entry.prices or () if seller in (None, seller_of(each))]
    return min(prices, key=lambda price: price.usd_per_hour, default=None)


def seller_of(price: Price) -> str:
    """Provider, kind and month of a price: those with the same can be compared."""
    month = MONTH.match(price.date)
    kind = kind_of(price)
    words = [price.provider, *([kind] if kind != "listed" else []), month[0] if month else ""]
    return ", ".join(word for word in words if word)


def kind_of(price: Price) -> str:
    """One of `PRICE_KINDS`, or `listed`."""
    sold = (price.sku or "").lower()
    return next((kind for kind in PRICE_KINDS if kind in sold), "listed")


def ridge_frame(of: Selection, seller: str | None = None) -> pl.DataFrame:
    """Ridge points of chips in dtype combinations, from main memory.

    Args:
        of: The chips and combinations, from `Results.of`.
        seller: Whose prices, from `seller_of`; None: the lowest of all.

    Returns:
        `chip`, `vendor`, `unit`, `dtypes`, `compute`, `flops_per_s` [FLOP/s], `bytes_per_s` of main
        memory [byte/s], `ridge` [FLOP/byte], `watts` [W], and a listed price: `usd_per_hour`
        [USD/h], `provider`, `sku`, `sku_kind`, `date`, `month`; `flops_per_usd` [FLOP/USD] and
        `flops_per_joule` [FLOP/J]. No row if a chip does not support the combination; null if it
        has no price or power.
    """
    records: list[dict[str, Any]] = []
    for chip, combination, target in of.targets():
        entry = of.sweep.chips[chip]
        price = price_of(entry, seller)
        if has_bandwidth(entry):
            level = replace(target, level=entry.memory[MAIN_MEMORY].exact)
            records.append(
                {
                    "chip": chip,
                    "vendor": entry.vendor or "",
                    "unit": of.sweep.unit,
                    "dtypes": combination,
                    "compute": of.sweep.combinations[combination].compute,
                    "flops_per_s": float(math_rate(target).per_s),
                    "bytes_per_s": float(memory_rate(level).per_s),
                    "watts": entry.power and entry.power.watts,
                    "usd_per_hour": price and price.usd_per_hour,
                    "provider": price and price.provider,
                    "sku": price and price.sku,
                    "sku_kind": price and kind_of(price),
                    "date": price and price.date,
                    "month": price and price.date[:7],
                }
            )
    floats = ("flops_per_s", "bytes_per_s", "watts", "usd_per_hour")
    texts = ("chip", "vendor", "unit", "dtypes", "compute")
    prices = ("provider", "sku", "sku_kind", "date", "month")
    schema = dict.fromkeys((*texts, *prices), pl.String) | dict.fromkeys(floats, pl.Float64)
    return pl.DataFrame(records, schema=schema, orient="row").with_columns(
        ridge=pl.col("flops_per_s") / pl.col("bytes_per_s"),
        flops_per_usd=pl.col("flops_per_s") * SECONDS_PER_HOUR / pl.col("usd_per_hour"),
        flops_per_joule=pl.col("flops_per_s") / pl.col("watts"),
    )


def bases_of(sweep: Sweep, chip: str, dtypes: str) -> tuple[str, ...]:
    """What numbers of a chip can be by; calibrated ones are of sweeps without tiles alone."""
    rows = [rows for rows in sweep.by_chip if rows.chip == chip][:1]
    fitted = not sweep.tile and any(
        variant.dtypes == dtypes and of_chip.case(variant).is_calibrated
        for of_chip in rows
        for variant in of_chip.variants
    )
    return BASES if fitted else (NOMINAL,)
