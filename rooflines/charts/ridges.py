"""Ridges, FLOP per dollar and FLOP/s per watt of catalogue chips."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.charts.frames import chips_with_rows, has_bandwidth
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.theory.resources import math_rate, memory_rate

if TYPE_CHECKING:
    from rooflines.charts.chart_data import Selection
    from rooflines.sweep.operation_sweep import Sweep

SECONDS_PER_HOUR = 3600


def preferred(sweep: Sweep) -> tuple[int, ...]:
    """Sort key that prefers sweeps on matrix units with the most chips."""
    return sweep.unit != "matrix", -len(chips_with_rows(sweep)), not sweep.config.shapes


def ridge_frame(selection: Selection) -> pl.DataFrame:
    """Ridge = peak / main-memory bandwidth [FLOP/byte], by chip and dtype combination.

    Args:
        selection: The chips and combinations, from `Results.select`.

    Returns:
        `chip`, `vendor`, `unit`, `dtypes`, `compute`, `flops_per_s` [FLOP/s], `bytes_per_s` of main
        memory [byte/s], `ridge` [FLOP/byte], `watts` [W], and the lowest dated price:
        `usd_per_hour` [USD/h], `provider`, `sku`, `date`; `flops_per_usd` [FLOP/USD] and
        `flops_per_joule` [FLOP/J]. No row if a chip does not support the combination; null if it
        has no price or power.
    """
    records: list[dict[str, Any]] = []
    for case in selection.cases():
        chip, combination, compute = case.chip, case.dtypes, case.combination.compute
        entry = selection.sweep.chips[chip]
        price = entry.lowest_price()
        if has_bandwidth(entry):
            machine = replace(case.machine, level=entry.memory[MAIN_MEMORY].exact)
            records.append(
                {
                    "chip": chip,
                    "vendor": entry.vendor or "",
                    "unit": selection.sweep.unit,
                    "dtypes": combination,
                    "compute": compute,
                    "flops_per_s": float(math_rate(machine, compute)),
                    "bytes_per_s": float(memory_rate(machine, compute)),
                    "watts": entry.power and entry.power.watts,
                    "usd_per_hour": price and price.usd_per_hour,
                    "provider": price and price.provider,
                    "sku": price and price.sku,
                    "date": price and price.date,
                }
            )
    floats = ("flops_per_s", "bytes_per_s", "watts", "usd_per_hour")
    texts = ("chip", "vendor", "unit", "dtypes", "compute")
    prices = ("provider", "sku", "date")
    schema = dict.fromkeys((*texts, *prices), pl.String) | dict.fromkeys(floats, pl.Float64)
    return pl.DataFrame(records, schema=schema, orient="row").with_columns(
        ridge=pl.col("flops_per_s") / pl.col("bytes_per_s"),
        flops_per_usd=pl.col("flops_per_s") * SECONDS_PER_HOUR / pl.col("usd_per_hour"),
        flops_per_joule=pl.col("flops_per_s") / pl.col("watts"),
    )
