"""Sums of products as JSON of a page: exact numbers, polynomials, and values in common.

A sum of products is a mapping from a product of extents, such as `B D x`, to its factor; the empty
product is a constant.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rooflines.basics.numbers import LARGEST_SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from rooflines.basics.yaml_file import JSON

Terms = dict[str, int | str]
"""Factors by product of extents."""

PER_CHIP, CHIPS = "1/N", "N"
"""The extents of a number of chips N [1]: one chip's share, and the number itself."""


def json_number(value: Fraction) -> int | str:
    """A rational as JSON: an integer that JavaScript holds exactly, or text such as `1/8`."""
    return value.numerator if value.denominator == 1 and abs(value) <= LARGEST_SIZE else str(value)


def coefficients(values: Sequence[Fraction]) -> list[int | str]:
    """Coefficients of a polynomial, without zeros at the end."""
    listed = list(values)
    while len(listed) > 1 and not listed[-1]:
        listed.pop()
    return [json_number(coefficient) for coefficient in listed]


def over_chips(polynomial: Sequence[Fraction], of: Sequence[str] = ()) -> Terms:
    """A polynomial in the number of chips N, over N.

    Args:
        polynomial: The coefficients of N^0, N^1, ...
        of: Extents that it is multiplied by.
    """
    powers = (PER_CHIP, *(" ".join([CHIPS] * power) for power in range(len(polynomial))))
    return {
        " ".join([*of, *power.split()]): json_number(coefficient)
        for power, coefficient in zip(powers, polynomial, strict=False)
        if coefficient
    }


class Pool:
    """Distinct values with an index each: many cases have the same."""

    def __init__(self) -> None:
        self._indices: dict[str, int] = {}

    def index(self, value: JSON) -> int:
        """The index of a value."""
        return self._indices.setdefault(json.dumps(value), len(self._indices))

    @property
    def values(self) -> list[JSON]:
        """The values, in the order of their indices."""
        return [json.loads(text) for text in self._indices]
