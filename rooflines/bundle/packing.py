"""Columns as a page reads them: short where values repeat, in runs or over and over, as they do in every sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.resources import Plain

__all__ = ["packed", "packed_rows"]

PAIR = 2
"""Numbers that a run takes [1]."""

TRIES = 12
"""How many times a column may come back to its first value before its period is full [1]."""


def packed(column: pl.Series) -> dict[str, Any]:
    """A column in the one of four forms that is about the shortest.

    Args:
        column: Text, numbers or truth values.

    Returns:
        `{"values": [...]}`, `{"levels": [...], "codes": [...]}`, `{"levels": [...], "runs": [code, length, ...]}`, or
        `{"levels": [...], "cycle": [code, ...], "rows": n}`, whose codes begin anew until there are n.
    """
    runs = column.rle().struct.unnest()
    period = _period(column)
    if PAIR * runs.height <= period:
        levels, codes = _coded(runs["value"])
        return {"levels": levels, "runs": [number for run in zip(codes, runs["len"].to_list(), strict=True) for number in run]}
    if PAIR * period <= column.len():
        levels, codes = _coded(column.head(period))
        return {"levels": levels, "cycle": codes, "rows": column.len()}
    if PAIR * column.n_unique() <= column.len():
        levels, codes = _coded(column)
        return {"levels": levels, "codes": codes}
    return {"values": column.to_list()}


def _period(column: pl.Series) -> int:
    """After how many rows a column repeats itself to its end; its length where it does not."""
    if column.is_empty():
        return 0
    first = column[0]
    again = (column.is_null() if first is None else column.eq_missing(first)).arg_true()
    for place in again.slice(1, TRIES).to_list():
        if column.head(column.len() - place).eq_missing(column.tail(column.len() - place)).all():
            return int(place)
    return column.len()


def _coded(column: pl.Series) -> tuple[list[Any], list[int]]:
    """The values that there are, and for each row the place of its value among them."""
    levels = column.unique(maintain_order=True)
    places = levels.to_frame("level").with_row_index("code")
    codes = column.to_frame("level").join(places, on="level", how="left", nulls_equal=True, maintain_order="left")["code"]
    return levels.to_list(), codes.to_list()


def packed_rows(rows: Sequence[Plain]) -> dict[str, Any] | None:
    """Rows as packed columns.

    Args:
        rows: What a chart draws, as its specification has it.

    Returns:
        The columns by name; None where the rows do not all have the same keys, or a column has values of several kinds.
    """
    keys = list(rows[0]) if rows else []
    if not keys or any(list(row) != keys for row in rows):
        return None
    columns = [_series(rows, key) for key in keys]
    known = [column for column in columns if column is not None]
    return {column.name: packed(column) for column in known} if len(known) == len(keys) else None


def _series(rows: Sequence[Mapping[str, Any]], key: str) -> pl.Series | None:
    """A column of rows, or None where its values are of several kinds."""
    values = [row[key] for row in rows]
    kinds = {type(value) for value in values} - {type(None)}
    known = {frozenset({str}): pl.String, frozenset({bool}): pl.Boolean, frozenset({int}): pl.Int64, frozenset[type](): pl.Null}
    dtype = known.get(frozenset(kinds), pl.Float64 if kinds in ({float}, {int, float}) else None)
    return None if dtype is None else pl.Series(key, values, dtype=dtype)
