"""Sheet Steps: model rows, estimates before bounds; large sweeps have their best batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.dictionary.columns import ESTIMATE_SUFFIX, SECTIONS, SERIAL_SUFFIX, SPLIT_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_STEPS = 2_000
"""Row limit [1]."""

SIZES = (*SECTIONS["step-sizes"], *SECTIONS["request-sizes"])

KEYS = (
    *(name for name in SECTIONS["step-keys"] if name not in SPLIT_KEYS),
    *("split", "chips", "shard", "recompute", "micro_batch", *SIZES, "micro_batches"),
)
"""Columns that name a row; B is chosen in large sweeps."""

RATE = "tokens_per_s_per_chip"
"""Column that ranks batches."""

RATES = (RATE, "usd_per_mtok", "mfu")
"""Rates and costs, at the estimate, serialized and at the bound."""

TIMES = (
    *("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s", "t_serial_s", "t_lower_s"),
    *("tpot_serial_s", "tpot_s", "prefill_estimate_s", "ttft_serial_s", "ttft_s", "ttft_pool_s"),
)
"""Times, the estimate first."""

VALUES = (
    *("fits", "bound", *TIMES),
    *(f"{name}{suffix}" for suffix in (ESTIMATE_SUFFIX, SERIAL_SUFFIX, "") for name in RATES),
    *("days_estimate", "usd_estimate", "days", "usd", "footprint_bytes", "max_B", "price_provider"),
)
"""Value columns, as far as a table has them."""


def step_rows(
    sweeps: Mapping[str, pl.LazyFrame], room: int = MAX_STEPS
) -> tuple[pl.DataFrame | None, list[str]]:
    """Model rows for the sheet, and notes on what is chosen or left out.

    A sweep is shown whole where there is room; else each case has the batch with the most tokens
    per second and chip that fits, by the estimate where there is one.

    Args:
        sweeps: Model tables by sweep.
        room: Row limit [1].

    Returns:
        The rows, None without any; and the notes.
    """
    shown, notes = list[pl.DataFrame](), list[str]()
    heights = {name: frame.select(pl.len()).collect().item() for name, frame in sweeps.items()}
    for name in sorted(heights, key=heights.__getitem__):
        frame = _selected(name, sweeps[name])
        if heights[name] > room:
            frame = _best_batches(frame)
        rows = frame.collect(engine="streaming")
        if rows.height > room:
            notes.append(f"left out: {name} ({heights[name]:,} rows)")
            continue
        if heights[name] > rows.height:
            notes.append(
                f"{name}: of {heights[name]:,} rows the batch with the most tokens/s/chip that fits"
            )
        room -= rows.height
        shown.append(rows)
    if not shown:
        return None, notes
    table = pl.concat(shown, how="diagonal_relaxed")
    filled = [column.name for column in table if column.null_count() < table.height]
    order = [name for name in ("sweep", *KEYS, *VALUES) if name in filled]
    return table.select(order), notes


def _selected(sweep: str, frame: pl.LazyFrame) -> pl.LazyFrame:
    """Sheet columns that a table has, text as text."""
    present = [*frame.collect_schema()]
    texts = pl.col(pl.Categorical, pl.Enum).cast(pl.String)
    return (
        frame.with_columns(texts)
        .select(column for column in (*KEYS, *VALUES) if column in present)
        .select(pl.lit(sweep).alias("sweep"), pl.exclude("sweep"))
    )


def _best_batches(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Choose each case's batch with the largest rate that fits."""
    present = [*frame.collect_schema()]
    keys = [key for key in KEYS if key in present and key not in ("B", "micro_batches")]
    rates = [name for name in _rates() if name in present]
    fitting = frame.filter(pl.col("fits").fill_null(value=True)) if "fits" in present else frame
    if not rates:
        return fitting.unique(keys, keep="last", maintain_order=True)
    order = pl.coalesce(rates)
    return fitting.group_by(keys, maintain_order=True).agg(pl.all().sort_by(order).last())


def _rates() -> Iterator[str]:
    for suffix in (ESTIMATE_SUFFIX, SERIAL_SUFFIX, ""):
        yield f"{RATE}{suffix}"
