"""Columns packed for a page: dictionary, run-length or cycle encoding."""

from __future__ import annotations

import base64
import zlib
from itertools import groupby
from operator import ne
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

Packed = dict[str, Any]
"""A packed column: one of the four forms that `packed` returns."""

LEVEL = 6
"""Of compression: 9 saves a hundredth of the bytes and takes twice the time."""

PAIR = 2
"""Numbers per run: code and length [1]."""

TRIES = 12
"""Repetitions of the first value that are tried as the period of a column [1]."""


def packed(column: Sequence[Any]) -> Packed:
    """Pack a column in the form that is about the shortest.

    Args:
        column: Text, numbers, truth values and None.

    Returns:
        `{"values": [...]}`, `{"levels": [...], "codes": [...]}`,
        `{"levels": [...], "runs": [code, length, ...]}`, or
        `{"levels": [...], "cycle": [code, ...], "rows": n}`, whose codes repeat up to n rows.
    """
    changes = sum(map(ne, column, column[1:]))
    period = _period(column)
    if PAIR * min(changes + 1, len(column)) <= period:
        runs = [(value, len(list(run))) for value, run in groupby(column)]
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
    """The number of rows after which a column repeats itself to its end, or its length."""
    period = 0
    for _ in range(TRIES):
        try:
            period = column.index(column[0], period + 1)
        except (ValueError, IndexError):
            break
        if column[period:] == column[:-period]:
            return period
    return len(column)


def _coded(column: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """The distinct values, and for each row the index of its value among them."""
    indices: dict[Any, int] = {}
    codes = [indices.setdefault(value, len(indices)) for value in column]
    return list(indices), codes


def packed_text(text: str) -> str:
    """JSON as a page loads it: compressed with zlib, in Base64."""
    return base64.b64encode(zlib.compress(text.encode(), LEVEL)).decode()
