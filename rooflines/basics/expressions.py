"""Arithmetic of columns whose last digit does not depend on the cuts in a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl


def quotient(dividend: pl.Expr, divisor: pl.Expr | float) -> pl.Expr:
    """Divide: the Float64 nearest to dividend / divisor, the same in every slice of a table.

    polars divides by a column with one value by multiplying with its reciprocal, which rounds
    twice: 3528 / 49 is then not 72. A slice of one row, or a thread's share of one row, is divided
    instead, so that the last digit would depend on the cuts in a table. A divisor that is computed
    row by row avoids both.
    """
    return dividend / (divisor + dividend * 0.0)
