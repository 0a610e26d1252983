"""Measured numbers as times, and times as rates and peak shares: inverse to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from rooflines.basics.quantities import (
    FLOPS_PER_S,
    HFU,
    MBU,
    MFU,
    PER_CHIP,
    PER_USER,
    TIME,
    TOKENS_PER_S,
)
from rooflines.models.architecture import DECODE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.basics.quantities import MeasuredValue

MFU_FULL = "mfu_full"
"""MFU with all token pairs counted in attention."""


class RateWorks(NamedTuple):
    """Works behind rates and utilizations; numbers, or columns with a number for each row.

    Attributes:
        tokens: Tokens in a step, all chips together [1]; None: an operation.
        tokens_per_user: Tokens in a step for one sequence [1]; None: a phase without TPOT.
        chips: Number of chips [1].
        flops: Useful FLOPs in an operation, on one chip [FLOP]; None: a step, which has several.
        mfu: Model FLOPs, causal, over the nominal peak in their compute dtypes [s].
        mfu_full: The same with all token pairs [s]; None: not counted.
        hfu: The same with recomputation [s]; None: an operation.
        mbu: Memory traffic over the nominal bandwidth [s].
    """

    tokens: Any
    tokens_per_user: Any
    chips: Any
    flops: Any
    mfu: Any
    mfu_full: Any
    hfu: Any
    mbu: Any

    def amounts(self) -> Iterator[tuple[str, Any]]:
        """Amounts by kind of measured number; amount / value is a time, amount / time a value."""
        if self.tokens is not None:
            yield TOKENS_PER_S, self.tokens
            yield PER_CHIP, self.tokens / self.chips
        amounts = {PER_USER: self.tokens_per_user, MFU: self.mfu, MFU_FULL: self.mfu_full}
        amounts |= {HFU: self.hfu, MBU: self.mbu, FLOPS_PER_S: self.flops}
        yield from ((kind, amount) for kind, amount in amounts.items() if amount is not None)


def amount_kind(measured: MeasuredValue) -> str:
    """Amount behind a measured rate."""
    return MFU_FULL if measured.full else measured.kind


def measured_seconds(measured: MeasuredValue, works: RateWorks) -> Any:  # noqa: ANN401, a number or a column
    """Measured number as a time [s]; None: there is no such rate.

    t = tokens / (tokens/s) = tokens / chips / (tokens/s/chip) = sequence tokens / (tokens/s/user)
    = model FLOPs / peak / mfu = bytes / bandwidth / mbu.

    Args:
        measured: The number.
        works: Operation or step works.
    """
    if measured.kind == TIME:
        return measured.value
    amount = dict(works.amounts()).get(amount_kind(measured))
    return None if amount is None else amount / measured.value


def measured_rates(time_s: Any, works: RateWorks) -> dict[str, Any]:  # noqa: ANN401, a number or a column
    """Rates and utilizations at a time, by kind: amount / time, as `measured_seconds` has them.

    Args:
        time_s: The time [s].
        works: Operation or step works.
    """
    return {kind: amount / time_s for kind, amount in works.amounts()}


def rate_works(
    row: Mapping[str, Any], memory_efficiency: float | None = None, mfu_full_s: float | None = None
) -> RateWorks:
    """Works behind rates in a row, from its rates at the bound: amount = rate * t_lower.

    Args:
        row: Operation, step or request by column: numbers, or columns; `phase` is a name.
        memory_efficiency: Share reached in an operation's memory times [1]; None: no MBU.
        mfu_full_s: FLOPs with all token pairs over the peak, where the row has none [s].
    """
    bound_s = row["t_lower_s"]
    if "tokens_per_s" not in row:
        memory_s = None
        if memory_efficiency is not None:
            memory_s = row["t_memory_s"] * memory_efficiency
        at_peak_s = row["utilization"] * bound_s
        flops = row["attained_flops_per_s"] * bound_s
        return RateWorks(None, None, row["shards"], flops, at_peak_s, None, None, memory_s)
    tokens, mfu_s = row["tokens_per_s"] * bound_s, row["mfu"] * bound_s
    return RateWorks(
        tokens=tokens,
        tokens_per_user=tokens / row["B"] if row["phase"] == DECODE else None,
        chips=row["chips"],
        flops=None,
        mfu=mfu_s,
        mfu_full=row["mfu_full"] * bound_s if "mfu_full" in row else mfu_full_s,
        hfu=row["hfu"] * bound_s if "hfu" in row else mfu_s,
        mbu=row["mbu"] * bound_s,
    )


MEASURED_PREFIX = "measured_"
"""Beginning of the columns with measured numbers."""

INPUTS = (
    *("t_lower_s", "t_estimate_s", "B", "chips", "shards", "phase"),
    *("utilization", "attained_flops_per_s", "tokens_per_s", "mfu", "mfu_full", "hfu", "mbu"),
)
"""Columns that measured numbers are computed from, where a table has them."""


def measured_names(names: Iterable[str]) -> list[str]:
    """Columns with measured numbers."""
    return [name for name in names if name.startswith(MEASURED_PREFIX)]


def measured_inputs(names: Sequence[str]) -> list[str]:
    """Columns in a table that measured numbers are computed from."""
    return [name for name in INPUTS if name in names]


def with_measured(
    rows: pl.LazyFrame, names: Iterable[str], values: Sequence[MeasuredValue]
) -> pl.LazyFrame:
    """Rows with their measured numbers.

    Args:
        rows: Rows in order.
        names: Their columns.
        values: Number for each row.
    """
    row: dict[str, Any] = {name: pl.col(name) for name in names}
    row |= {"phase": DECODE} if "phase" in row else {}
    works = rate_works(row)
    index = pl.col(ROW_INDEX)
    number = pl.lit(pl.Series([measured.value for measured in values])).gather(index)
    kind = pl.lit(pl.Series([amount_kind(measured) for measured in values])).gather(index)
    times = {TIME: number} | {name: amount / number for name, amount in works.amounts()}
    time = pl.coalesce(pl.when(kind == name).then(value) for name, value in times.items())
    rates = measured_rates(pl.col("measured_s"), works)
    return (
        rows.with_row_index(ROW_INDEX)
        .with_columns(measured_s=time)
        .with_columns(
            pl.col("measured_s").truediv(row["t_lower_s"]).alias("measured_over_bound"),
            pl.col("measured_s").truediv(row["t_estimate_s"]).alias("measured_over_estimate"),
            *(value.alias(f"{MEASURED_PREFIX}{name}") for name, value in rates.items()),
        )
    )


ROW_INDEX = "#row"
"""Column with the position of a row."""
