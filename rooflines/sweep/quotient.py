"""A quotient that is rounded once, and so is the same in every slice of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

__all__ = ["quotient"]


def quotient(dividend: pl.Expr, divisor: pl.Expr) -> pl.Expr:
    """The Float64 nearest to a dividend over its divisor.

    polars divides by a column that holds one value throughout by multiplying with its reciprocal, which rounds twice: 3528 / 49 is not
    72 then. And it divides where a slice, or what a thread was given of it, has a single row, so the last digit would depend on how a table
    is cut. A divisor that is computed row by row is no such column.
    """
    return dividend / (divisor + dividend * 0.0)
