"""The formulas of a table, as expressions: works, times, intensities and what follows from them."""

from __future__ import annotations

from functools import reduce
from operator import add, mul
from typing import TYPE_CHECKING

import polars as pl

from rooflines.sweep.extents import variables

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from rooflines.model.resources import Resource
    from rooflines.sweep.sweep import Sweep


def quotient(dividend: pl.Expr, divisor: pl.Expr, *, by_row: bool = False) -> pl.Expr:
    """The Float64 nearest to a dividend over its divisor, the same in every slice of a table.

    polars divides by a column of one value by multiplying with its reciprocal, which rounds twice:
    3528 / 49 is then not 72. A slice of one row, or a thread's share of one row, is divided
    instead, so the last digit would depend on how a table is cut. A divisor that is computed row by
    row avoids both.

    Args:
        dividend: The dividend.
        divisor: The divisor.
        by_row: Whether the divisor is computed row by row already.
    """
    return dividend / (divisor if by_row else divisor + dividend * 0.0)


def work(
    sweep: Sweep, name: str, terms: Mapping[tuple[str, ...], str], columns: Container[str]
) -> pl.Expr:
    """A work: the sum of its products of extents, each times its coefficient [FLOP or byte].

    Exact for whole numbers below 2^53: a coefficient is a whole number times a power of two, if
    necessary after scaling by `#parts_<work>`.
    """
    extents = variables(sweep, name)
    products = [
        reduce(mul, [*(extents[dim] for dim in dims), pl.col(coefficient)])
        for dims, coefficient in terms.items()
    ]
    return unscaled(name, reduce(add, products), columns) if products else pl.lit(0.0)


def unscaled(name: str, scaled: pl.Expr, columns: Container[str]) -> pl.Expr:
    """A work from its sum with scaled coefficients: divided by `#parts_<work>` if there is one."""
    parts = f"#parts_{name}"
    return quotient(scaled, pl.col(parts)) if parts in columns else scaled


def time(resource: Resource, columns: Container[str], by_row: Container[str] = ()) -> pl.Expr:
    """Seconds that a resource needs for its work: work / rate, and at least its latency [s].

    Args:
        resource: The resource.
        columns: The columns of the variants.
        by_row: The columns that are computed row by row.

    Source: All About Rooflines, "Where does the time go?".
    """
    rate, latency = f"#rate_{resource.name}", f"#latency_{resource.name}"
    seconds = quotient(pl.col(resource.work), pl.col(rate), by_row=rate in by_row)
    return pl.max_horizontal(seconds, latency) if latency in columns else seconds
