"""A worked number of a book, and whether this package has the same."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import NamedTuple

CLOSE = Fraction(2, 100)
"""How far a number that comes out may be from the printed one [1]."""


class Worked(NamedTuple):
    """A worked number.

    Attributes:
        quantity: What it is, with its unit.
        printed: The book's number, in digits as printed; None where a question has no answer.
        here: Computes this package's.
        why: The reason of the difference; empty if it is the digits that are printed.
    """

    quantity: str
    printed: str | None
    here: Callable[[], float | Fraction]
    why: str = ""


def comes_out(worked: Worked) -> str | None:
    """How a number agrees with the printed one.

    Returns:
        `exact`; `rounded` or `cut off` to the printed digits; `within 2 %`; None if it does not, or
        none is printed.
    """
    if worked.printed is None:
        return None
    printed, here = Decimal(worked.printed), Fraction(worked.here())
    last = Decimal(1).scaleb(int(printed.as_tuple().exponent))
    digits = Decimal(float(here))
    ways = {
        "exact": here == Fraction(printed),
        "rounded": digits.quantize(last, ROUND_HALF_UP) == printed,
        "cut off": digits.quantize(last, ROUND_DOWN) == printed,
        "within 2 %": abs(here / Fraction(printed) - 1) <= CLOSE,
    }
    return next((way for way, agrees in ways.items() if agrees), None)
