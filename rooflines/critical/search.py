"""The first whole number from which on a condition holds, in many rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

AT = "#at"
"""The column with the number that is tried [1]."""

HALF_EVERY = 3
"""Period of the bisection steps, which bound a one-sided convergence of the secant [1]."""

ULP = 2.0**-52
"""Float64 has no more numbers between two whose difference is this share of them [1]."""


def first_in_rows(
    frame: pl.DataFrame,
    ahead: pl.Expr,
    low: pl.Expr,
    high: pl.Expr,
    extents: Callable[[pl.DataFrame], pl.DataFrame] | None = None,
) -> pl.Series:
    """The first whole number at which a value is above zero, as at all larger ones, by row.

    It is tried where the secant between two bounds is zero, as it is nearly a line.

    Args:
        frame: The rows.
        ahead: The value at `AT`.
        low: The first number that is tried [1].
        high: The result where the value is not above zero there [1].
        extents: Adds columns that the value needs and that are no expression of `AT`.

    Returns:
        The number, Float64.
    """
    low_at, high_at, value = pl.col("#low"), pl.col("#high"), pl.col("#value")
    below, above, is_open = pl.col("#below"), pl.col("#above"), pl.col("#open")
    gap = pl.max_horizontal(pl.lit(1.0), high_at * ULP)
    more = [(high_at - low_at > gap).alias("#open")]

    def tried(rows: pl.DataFrame, at: pl.Expr, then: Sequence[pl.Expr]) -> pl.DataFrame:
        """The rows after a number is tried."""
        ready = rows.lazy().with_columns(at.alias(AT))
        if extents is not None:
            ready = extents(ready.collect()).lazy()
        done = ready.with_columns(ahead.alias("#value")).with_columns(then).with_columns(more)
        return done.collect(optimizations=pl.QueryOptFlags.none())

    needed = {*ahead.meta.root_names(), *low.meta.root_names(), *high.meta.root_names()}
    rows = frame.select(name for name in frame.columns if name in needed)
    rows = rows.with_columns(
        low.cast(pl.Float64).alias("#low"), high.cast(pl.Float64).alias("#high")
    )
    lower = pl.when(value > 0).then(low_at).otherwise(high_at).alias("#high")
    rows = tried(rows, low_at, [lower, value.alias("#below")])
    upper = pl.when(value > 0).then(low_at).otherwise(high_at).alias("#low")
    rows = tried(rows, high_at, [upper, value.alias("#above")])
    beyond, step = is_open & (value > 0), 0
    within = is_open & ~beyond
    update = [
        pl.when(beyond).then(AT).otherwise(high_at).alias("#high"),
        pl.when(within).then(AT).otherwise(low_at).alias("#low"),
        pl.when(beyond).then(value).otherwise(above).alias("#above"),
        pl.when(within).then(value).otherwise(below).alias("#below"),
    ]
    secant = low_at - below * (high_at - low_at) / (above - below)
    while rows["#open"].any():
        halved = step % HALF_EVERY == HALF_EVERY - 1
        near = ((low_at + high_at) / 2.0 if halved else secant).ceil()
        at = pl.when(is_open).then(near.clip(low_at + gap, high_at - gap)).otherwise(high_at)
        rows = tried(rows, at, update)
        step += 1
    return rows["#high"]
