"""Numbers as people write them: exact decimals, also where YAML reads text (`1.97e14`)."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache

from rooflines.basics.errors import RooflinesError, quote

__all__ = ["DECIMAL", "LARGEST_COUNT", "LARGEST_SIZE", "exact", "number", "whole"]

LARGEST_SIZE = 2**53
"""The largest size of one dimension: up to here a Float64 holds every whole number."""

LARGEST_COUNT = 2**62
"""Larger whole numbers are in no column and in no step between: the sum of two still is an
Int64."""

LARGEST_NUMBER = 1e300
"""Beyond this a product of two numbers would overflow, and nothing means such a number."""

DECIMAL = re.compile(r"[+-]?((0|[1-9]\d*(_\d+)*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""A decimal number that can be read in one way only: no zero before other digits, and single
underscores between digits."""

LONGEST_DECIMAL = 400
"""Characters of a number written as text; Python itself refuses to read whole numbers of thousands
of digits."""


def number(value: object) -> int | float:
    """The number that was meant: a YAML number, or the text of one.

    PyYAML reads `1.97e14` as text, because YAML 1.1 wants a sign in the exponent; nobody means text
    by it.

    Raises:
        RooflinesError: Not a number, or not a finite one.
    """
    given = value
    if (
        isinstance(value, str)
        and len(value) <= LONGEST_DECIMAL
        and DECIMAL.fullmatch(value.strip())
    ):
        plain = value.strip().replace("_", "")
        given = int(plain) if plain.lstrip("+-").isdigit() else float(plain)
    if (
        isinstance(given, bool)
        or not isinstance(given, int | float)
        or not abs(given) < LARGEST_NUMBER
    ):
        raise RooflinesError(
            "",
            f"is {quote(value)}, which is no number",
            "write a plain number such as 4096 or 1.97e14, without a unit",
        )
    return given


def exact(value: object) -> Fraction:
    """The decimal that was written, exactly: 0.95 is 19/20, not the binary number next to it."""
    return _fraction(str(number(value)))


@cache
def _fraction(decimal: str) -> Fraction:
    """A decimal as a fraction; cached, since a catalogue's numbers are read thousands of times."""
    return Fraction(decimal)


def whole(value: object, *, least: int = 1, largest: int = LARGEST_SIZE) -> int:
    """A whole number within bounds.

    Raises:
        RooflinesError: Not a number, a fraction, or out of bounds.
    """
    given = number(value)
    fix = f"write a whole number from {least:,} to {largest:,}"
    if given != int(given):
        raise RooflinesError("", f"is {quote(value)}, which is no whole number", fix)
    if given < least:
        raise RooflinesError("", f"is {quote(value)}, which is less than {least}", fix)
    if given > largest:
        raise RooflinesError("", f"is {quote(value)}, which is more than {largest:,}", fix)
    return int(given)
