"""Columns as a page reads them: short where values repeat, in runs or over and over, as they do in every sweep."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.basics.yaml_file import JSON

__all__ = ["packed", "packed_rows"]

PAIR = 2
"""Numbers that a run takes [1]."""

TRIES = 12
"""How many times a column may come back to its first value before its period is full [1]."""


def packed(column: Sequence[Any]) -> dict[str, Any]:
    """A column in the one of four forms that is about the shortest.

    Args:
        column: Text, numbers, truth values and None.

    Returns:
        `{"values": [...]}`, `{"levels": [...], "codes": [...]}`, `{"levels": [...], "runs": [code, length, ...]}`, or
        `{"levels": [...], "cycle": [code, ...], "rows": n}`, whose codes begin anew until there are n.
    """
    runs = [(value, len(list(run))) for value, run in groupby(column)]
    period = _period(column)
    if PAIR * len(runs) <= period:
        levels, codes = _coded([value for value, _ in runs])
        return {
            "levels": levels,
            "runs": [
                number for code, run in zip(codes, runs, strict=True) for number in (code, run[1])
            ],
        }
    if PAIR * period <= len(column):
        levels, codes = _coded(column[:period])
        return {"levels": levels, "cycle": codes, "rows": len(column)}
    levels, codes = _coded(column)
    return (
        {"levels": levels, "codes": codes}
        if PAIR * len(levels) <= len(column)
        else {"values": list(column)}
    )


def _period(column: Sequence[Any]) -> int:
    """After how many rows a column repeats itself to its end; its length where it does not."""
    place = 0
    for _ in range(TRIES):
        try:
            place = column.index(column[0], place + 1)
        except (ValueError, IndexError):
            break
        if column[place:] == column[:-place]:
            return place
    return len(column)


def _coded(column: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """The values that there are, and for each row the place of its value among them."""
    places: dict[Any, int] = {}
    codes = [places.setdefault(value, len(places)) for value in column]
    return list(places), codes


def packed_rows(rows: Sequence[JSON]) -> dict[str, Any] | None:
    """Rows as packed columns.

    Args:
        rows: What a chart draws, as its specification has it.

    Returns:
        The columns by name; None where the rows do not all have the same keys, or a column has values of several kinds.
    """
    keys = list(rows[0]) if rows else []
    if not keys or any(list(row) != keys for row in rows):
        return None
    columns = {key: [row[key] for row in rows] for key in keys}
    return (
        {key: packed(column) for key, column in columns.items()}
        if all(map(_of_one_kind, columns.values()))
        else None
    )


def _of_one_kind(values: Sequence[Any]) -> bool:
    """Whether values are all text, all numbers or all truth values: 1 and True are one key to Python, but not to a page."""
    kinds = {
        float if isinstance(value, int) and not isinstance(value, bool) else type(value)
        for value in values
    } - {type(None)}
    return not kinds or (len(kinds) == 1 and kinds <= {str, float, bool})
