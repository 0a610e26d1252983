"""Numbers as people write them: exact decimals, also if YAML reads text (`1.97e14`)."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING

from rooflines.basics.errors import RooflinesError, quote

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_SIZE = 2**53
"""Maximum size of one dimension: up to here Float64 holds every whole number."""

MAX_COUNT = 2**62
"""Maximum integer in columns and intermediate results: the sum of two fits an Int64."""

MAX_NUMBER = 1e300
"""Upper limit on quantities; products of larger numbers could overflow."""

DECIMAL = re.compile(r"[+-]?((0|[1-9]\d*(_\d+)*)(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
"""An unambiguous decimal number: no leading zeros, only single underscores between digits."""

MAX_DECIMAL = 400
"""Maximum length of a number written as text [characters]; Python itself refuses whole numbers
with thousands of digits."""


def number(value: object) -> int | float:
    """Read a YAML number, or a text that is one.

    PyYAML reads `1.97e14` as text, because YAML 1.1 wants a sign in the exponent; nobody means
    text by it.

    Raises:
        RooflinesError: Not a number, or not finite.
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
        raise RooflinesError("", f"is {quote(value)}, which is no number", fix, value=value)
    return result


def exact(value: object) -> Fraction:
    """Exact fraction of a written decimal: 0.95 is 19/20, not the nearest binary number."""
    return _fraction(str(number(value)))


@cache
def _fraction(decimal: str) -> Fraction:
    """Fraction of a decimal; cached, since catalogue numbers are read thousands of times."""
    return Fraction(decimal)


def whole(value: object, *, minimum: int = 1, maximum: int = MAX_SIZE) -> int:
    """Read a whole number within bounds.

    Raises:
        RooflinesError: Not a number, a fraction, or out of bounds.
    """
    result = number(value)
    fix = f"write a whole number from {minimum:,} to {maximum:,}"
    if result != int(result):
        raise RooflinesError("", f"is {quote(value)}, which is no whole number", fix, value=value)
    if result < minimum:
        raise RooflinesError(
            "", f"is {quote(value)}, which is less than {minimum}", fix, value=value
        )
    if result > maximum:
        raise RooflinesError(
            "", f"is {quote(value)}, which is more than {maximum:,}", fix, value=value
        )
    return int(result)


def divisors(number: int) -> list[int]:
    """Divisors of a number, ascending."""
    low = [size for size in range(1, math.isqrt(number) + 1) if number % size == 0]
    return sorted({*low, *(number // size for size in low)})


def rounded(value: float, digits: int) -> float:
    """Value to a number of significant digits."""
    return float(f"{value:.{digits}g}")


def first(holds: Callable[[int], bool], low: int, high: int, guess: float = 0.0) -> int:
    """Smallest whole number, from `low` on, that meets a monotone condition.

    Args:
        holds: The condition, which also holds for all larger numbers.
        low: The first number tried [1].
        high: A number that meets the condition [1].
        guess: Initial guess of the result [1].
    """
    step, probe = 1, min(max(int(guess), low), high)
    while low < high:  # from the guess in doubling steps to both sides, then by bisection
        if holds(probe):
            high, probe = probe, max(probe - step, low) if step else (low + probe) // 2
        else:
            low, probe = probe + 1, probe + 1 + step
        step *= 2
        if not low <= probe < high:
            probe = (low + high) // 2
    return low
