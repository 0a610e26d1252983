"""Number marks in exports: a point before decimals, or a comma in other locales.

"117.344" is 117 and a fraction where a point is the decimal mark, and 117,344 where it separates
thousands. Other numbers in the file tell: "98.5", "27,595,520" and "0.250" have a decimal point,
"98,5", "27.595.520" and "0,250" a decimal comma; bytes and instructions have no fraction.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import exact

if TYPE_CHECKING:
    from collections.abc import Iterable
    from fractions import Fraction


class Marks(NamedTuple):
    """Number marks in a locale.

    Attributes:
        thousands: Between thousands.
        decimal: Before decimals.
        number: Any number with these marks.
        telling: A number that has these marks and no others.
        whole: A whole number that has a fraction with the marks swapped.
    """

    thousands: str
    decimal: str
    number: re.Pattern[str]
    telling: re.Pattern[str]
    whole: re.Pattern[str]


def _marks(thousands: str, decimal: str) -> Marks:
    group, point = rf"{re.escape(thousands)}\d{{3}}", re.escape(decimal)
    first = r"\d{1,3}"
    patterns = (
        rf"{first}({group}){{2,}}",
        rf"{first}({group})+{point}\d+",
        rf"\d+{point}(\d{{1,2}}|\d{{4,}})",
        rf"0{point}\d+",
    )
    return Marks(
        thousands,
        decimal,
        re.compile(rf"\d+({group})*({point}\d*)?([eE][+-]?\d+)?"),
        re.compile("|".join(patterns)),
        re.compile(rf"[1-9]\d{{0,2}}{group}"),
    )


POINT, COMMA = _marks(",", "."), _marks(".", ",")
"""Marks with a decimal point, and marks with a decimal comma."""

WHOLE = ("byte", "inst", "op")
"""Units in which no number has a fraction."""


def marks_of(cells: Iterable[tuple[str, str]]) -> Marks | None:
    """Marks in the first telling number; None: none tells.

    Args:
        cells: Numbers as they are printed, with their units. A number without unit does not tell:
            compute capability 9.0 is no number.
    """
    for value, unit in cells:
        for marks in (POINT, COMMA) if unit else ():
            if marks.telling.fullmatch(value) or (unit in WHOLE and marks.whole.fullmatch(value)):
                return marks
    return None


def value_of(text: str, marks: Marks) -> Fraction | None:
    """Exact value of a number with marks; None: no such number."""
    if not marks.number.fullmatch(text):
        return None
    try:
        return exact(text.replace(marks.thousands, "").replace(marks.decimal, "."))
    except RooflinesError:  # beyond all numbers
        return None
