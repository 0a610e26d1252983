"""Exact numbers as JSON of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.basics.numbers import LARGEST_SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction


def coefficients(values: Sequence[Fraction]) -> list[int | str]:
    """Coefficients of a polynomial, without zeros at the end."""
    listed = list(values)
    while len(listed) > 1 and not listed[-1]:
        listed.pop()
    return [plain(coefficient) for coefficient in listed]


def plain(value: Fraction) -> int | str:
    """A rational as JSON: an integer that JavaScript holds exactly, or text such as `1/8`."""
    return value.numerator if value.denominator == 1 and abs(value) <= LARGEST_SIZE else str(value)
