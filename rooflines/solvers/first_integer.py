"""The first whole number from which on a condition holds, in many rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

AT = "#at"
"""The column with the number that is tried [1]."""

HALF_EVERY = 8
"""Period of the bisection steps, which end what the secant does not [1]."""

ULP = 2.0**-52
"""Float64 has no more numbers between two whose difference is this share of them [1]."""


def first_in_rows(
    frame: pl.DataFrame,
    ahead: pl.Expr,
    low: pl.Expr,
    high: pl.Expr,
    extents: Callable[[pl.LazyFrame], pl.LazyFrame],
) -> pl.Series:
    """The first whole number at which a value is above zero, as at all larger ones, by row.

    It is tried where the secant between two bounds is zero, as it is nearly a line; the value at
    the bound that stays counts for less with each of these steps (Pegasus).

    Args:
        frame: The rows.
        ahead: The value at `AT` and the extents that follow from it.
        low: The first number that is tried [1].
        high: The result where the value is not above zero there [1].
        extents: Adds the columns of these extents.

    Returns:
        The number, Float64.
    """
    low_at, high_at, value = pl.col("#low"), pl.col("#high"), pl.col("#value")
    below, above, is_open = pl.col("#below"), pl.col("#above"), pl.col("#open")
    gap = pl.max_horizontal(pl.lit(1.0), high_at * ULP)
    more = [(high_at - low_at > gap).alias("#open")]

    def tried(rows: pl.DataFrame, at: pl.Expr, then: Sequence[pl.Expr]) -> pl.DataFrame:
        """The rows after a number is tried."""
        ready = extents(rows.lazy().with_columns(at.alias(AT)))
        done = ready.with_columns(ahead.alias("#value")).with_columns(then).with_columns(more)
        return done.collect(optimizations=pl.QueryOptFlags.none())

    rows = frame.with_columns(
        low.cast(pl.Float64).alias("#low"), high.cast(pl.Float64).alias("#high")
    )
    lower = pl.when(value > 0).then(low_at).otherwise(high_at).alias("#high")
    rows = tried(rows, low_at, [lower, value.alias("#below")])
    upper = pl.when(value > 0).then(low_at).otherwise(high_at).alias("#low")
    rows = tried(rows, high_at, [upper, value.alias("#above")])

    def less(bound: pl.Expr) -> pl.Expr:
        """The share of its value that the other bound keeps, when this one moves."""
        return (bound / (bound + value)).fill_nan(0.5)

    beyond, step = is_open & (value > 0), 0
    within = is_open & ~beyond
    update = [
        pl.when(beyond).then(AT).otherwise(high_at).alias("#high"),
        pl.when(within).then(AT).otherwise(low_at).alias("#low"),
        pl.when(beyond).then(value).otherwise(above * less(below)).alias("#above"),
        pl.when(within).then(value).otherwise(below * less(above)).alias("#below"),
    ]
    secant = low_at - below * (high_at - low_at) / (above - below)
    while rows["#open"].any():
        step += 1
        near = (secant if step % HALF_EVERY else (low_at + high_at) / 2.0).ceil()
        at = pl.when(is_open).then(near.clip(low_at + gap, high_at - gap)).otherwise(high_at)
        rows = tried(rows, at, update)
    return rows["#high"]
