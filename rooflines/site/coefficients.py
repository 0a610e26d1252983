"""Sums of products as page JSON: exact numbers, polynomials, and pooled values.

A sum maps each product, extents such as `B D x`, to its factor; the empty product is a constant.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rooflines.basics.numbers import MAX_SIZE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from rooflines.basics.yaml_file import JSON

Terms = dict[str, int | str]
"""Factors by product of extents."""

PER_CHIP, CHIPS = "1/N", "N"
"""Extents of a chip count N [1]: one chip's share 1/N, and N."""

MAX_DIGITS = 17
"""Significant digits of a double [1]."""


def json_number(value: Fraction) -> int | str:
    """Rational as JSON: an integer that JavaScript holds exactly, or text such as `1/8`."""
    return value.numerator if value.denominator == 1 and abs(value) <= MAX_SIZE else str(value)


def double(value: Fraction, digits: int = MAX_DIGITS) -> float:
    """Rational as a double: an integer that JavaScript holds exactly, or a decimal.

    Args:
        value: The rational.
        digits: Significant digits of a decimal [1].
    """
    exact = json_number(value)
    return float(f"{float(value):.{digits}g}") if isinstance(exact, str) else exact


def coefficients(values: Sequence[Fraction]) -> list[float]:
    """Polynomial coefficients without trailing zeros."""
    listed = list(values)
    while len(listed) > 1 and not listed[-1]:
        listed.pop()
    return [double(coefficient) for coefficient in listed]


def over_chips(polynomial: Sequence[Fraction], extents: Sequence[str] = ()) -> Terms:
    """Terms in p(N) / N, for a polynomial p in the chip count N.

    Args:
        polynomial: Coefficients for N^0, N^1, ...
        extents: Extents that multiply it.
    """
    powers = (PER_CHIP, *(" ".join([CHIPS] * power) for power in range(len(polynomial))))
    return {
        " ".join([*extents, *power.split()]): json_number(coefficient)
        for power, coefficient in zip(powers, polynomial, strict=False)
        if coefficient
    }


class Pool:
    """Distinct values with indices; many cases share values."""

    def __init__(self) -> None:
        self._indices: dict[str, int] = {}
        self.values: list[JSON] = []
        """Values in index order."""

    def index(self, value: JSON) -> int:
        """Index in the pool; a new value is added."""
        index = self._indices.setdefault(json.dumps(value), len(self.values))
        if index == len(self.values):
            self.values.append(value)
        return index
