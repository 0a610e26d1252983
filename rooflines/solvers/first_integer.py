"""Search for the first whole number from which on a condition holds, for all rows at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TRIAL = "#at"
"""Column with the trial number [1]."""

HALF_EVERY = 4
"""Period of bisection steps: they end a search that secant steps do not [1]."""

FAR_APART = 4.0
"""Ratio of two bounds beyond which a bisection step halves their exponents [1]."""

ULP = 2.0**-52
"""Relative distance between neighbouring Float64 numbers [1]."""


def first_integers(
    frame: pl.DataFrame,
    margin: pl.Expr,
    low: pl.Expr,
    high: pl.Expr,
    extents: Callable[[pl.LazyFrame], pl.LazyFrame],
) -> pl.Series:
    """Find, row by row, the first whole number at which a margin is above zero, as at larger ones.

    Pegasus method: the next trial is the zero of the secant between two bounds, since the margin is
    nearly a line; the value at the bound that stays is scaled down at every step.

    Args:
        frame: The rows.
        margin: The margin at `TRIAL`, with the extents that follow from it.
        low: The first trial number [1].
        high: The result where the margin is not above zero there [1].
        extents: Adds the columns with these extents.

    Returns:
        The number, Float64.
    """
    low_at, high_at, value = pl.col("#low"), pl.col("#high"), pl.col("#value")
    below, above, is_open = pl.col("#below"), pl.col("#above"), pl.col("#open")
    gap = pl.max_horizontal(pl.lit(1.0), high_at * ULP)
    # a gap is less than two neighbouring numbers, so that a trial is between bounds beyond two gaps
    end = pl.max_horizontal(pl.lit(1.0), high_at * (2.0 * ULP))
    still_open = [(high_at - low_at > end).alias("#open")]

    def evaluate(rows: pl.DataFrame, at: pl.Expr, then: Sequence[pl.Expr]) -> pl.DataFrame:
        """Evaluate the margin at a trial number, then update the bounds."""
        ready = extents(rows.lazy().with_columns(at.alias(TRIAL)))
        valued = ready.with_columns(margin.alias("#value"))
        updated = valued.with_columns(then).with_columns(still_open)
        return updated.collect(optimizations=pl.QueryOptFlags.none())

    rows = frame.with_columns(
        low.cast(pl.Float64).alias("#low"), high.cast(pl.Float64).alias("#high")
    )
    lower = pl.when(value > 0).then(low_at).otherwise(high_at).alias("#high")
    rows = evaluate(rows, low_at, [lower, value.alias("#below")])
    upper = pl.when(value > 0).then(low_at).otherwise(high_at).alias("#low")
    rows = evaluate(rows, high_at, [upper, value.alias("#above")])

    # Factors on the value at the bound that stays, v / (v + value), when the other moves.
    below_factor, above_factor = (
        (bound / (bound + value)).fill_nan(0.5) for bound in (below, above)
    )
    beyond, step = is_open & (value > 0), 0
    within = is_open & ~beyond
    update = [
        pl.when(beyond).then(TRIAL).otherwise(high_at).alias("#high"),
        pl.when(within).then(TRIAL).otherwise(low_at).alias("#low"),
        pl.when(beyond).then(value).otherwise(above * below_factor).alias("#above"),
        pl.when(within).then(value).otherwise(below * above_factor).alias("#below"),
    ]
    secant = low_at - below * (high_at - low_at) / (above - below)
    mean = (low_at + high_at) / 2.0
    middle = pl.when(high_at > FAR_APART * low_at).then((low_at * high_at).sqrt()).otherwise(mean)
    while rows["#open"].any():
        step += 1
        trial = (secant if step % HALF_EVERY else middle).ceil()
        at = pl.when(is_open).then(trial.clip(low_at + gap, high_at - gap)).otherwise(high_at)
        rows = evaluate(rows, at, update)
    return rows["#high"]
