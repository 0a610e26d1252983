"""Numbers as people write them: exact decimals, also where YAML reads text (`1.97e14`)."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, quote

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_SIZE = 2**53
"""The largest size of one dimension: up to here a Float64 holds every whole number."""

MAX_COUNT = 2**62
"""Larger integers are in no column and no intermediate result: the sum of two fits an Int64."""

MAX_NUMBER = 1e300
"""No quantity is as large; products of larger numbers could overflow."""

DECIMAL = re.compile(r"[+-]?((0|[1-9]\d*(_\d+)*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""An unambiguous decimal number: no leading zeros, only single underscores between digits."""

MAX_DECIMAL = 400
"""Characters of a number written as text; Python itself refuses to read whole numbers of thousands
of digits."""


def number(value: object) -> int | float:
    """The number of a YAML number, or of the text of one.

    PyYAML reads `1.97e14` as text, because YAML 1.1 wants a sign in the exponent; nobody means text
    by it.

    Raises:
        RooflinesError: Not a number, or not a finite one.
    """
    result = value
    if isinstance(value, str) and len(value) <= MAX_DECIMAL and DECIMAL.fullmatch(value.strip()):
        plain = value.strip().replace("_", "")
        result = int(plain) if plain.lstrip("+-").isdigit() else float(plain)
    if (
        isinstance(result, bool)
        or not isinstance(result, int | float)
        or not abs(result) < MAX_NUMBER
    ):
        fix = "write a plain number such as 4096 or 1.97e14, without a unit"
        raise RooflinesError("", f"is {quote(value)}, which is no number", fix)
    return result


def exact(value: object) -> Fraction:
    """The decimal that was written, exactly: 0.95 is 19/20, not the binary number next to it."""
    return _fraction(str(number(value)))


@cache
def _fraction(decimal: str) -> Fraction:
    """A decimal as a fraction; cached, since a catalogue's numbers are read thousands of times."""
    return Fraction(decimal)


def whole(value: object, *, minimum: int = 1, maximum: int = MAX_SIZE) -> int:
    """A whole number within bounds.

    Raises:
        RooflinesError: Not a number, a fraction, or out of bounds.
    """
    result = number(value)
    fix = f"write a whole number from {minimum:,} to {maximum:,}"
    if result != int(result):
        raise RooflinesError("", f"is {quote(value)}, which is no whole number", fix)
    if result < minimum:
        raise RooflinesError("", f"is {quote(value)}, which is less than {minimum}", fix)
    if result > maximum:
        raise RooflinesError("", f"is {quote(value)}, which is more than {maximum:,}", fix)
    return int(result)


def first(holds: Callable[[int], bool], low: int, high: int, guess: float = 0.0) -> int:
    """The first whole number from `low` on for which a condition holds, as for all larger ones.

    Args:
        holds: The condition.
        low: The first number that is tried [1].
        high: The condition holds for it [1].
        guess: About where it starts to hold [1].
    """
    step, at = 1, min(max(int(guess), low), high)
    while low < high:  # from the guess in doubling steps to both sides, then by bisection
        if holds(at):
            high, at = at, max(at - step, low) if step else (low + at) // 2
        else:
            low, at = at + 1, at + 1 + step
        step *= 2
        if not low <= at < high:
            at = (low + high) // 2
    return low
