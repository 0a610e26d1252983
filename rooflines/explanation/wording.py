"""Numbers as text, so that nothing is rounded to the other side of a bound."""

from __future__ import annotations

import math

from rooflines.basics.text import seconds, significant

DIGITS = 4
"""Significant digits of intensities, factors and real sizes [1]."""

SLACK = 1e-12
"""Share by which a number may exceed a rounded one: it has a few roundings itself [1]."""

NO_BREAK = "\xa0"
"""A space that no line is broken at."""


def percent(share: float) -> str:
    """A share in percent; less than all is never 100%."""
    text = significant(100 * share)
    if text == "100":
        text = significant(rounded(100 * share, DIGITS + 1, up=False), DIGITS + 1)
    return f"{text}%"


def apart(one: float, other: float) -> tuple[str, str]:
    """Two numbers with as many digits as tell them apart."""
    for digits in range(DIGITS, 17):
        first, second = significant(one, digits), significant(other, digits)
        if first != second or one == other:
            break
    return first, second


def crossover(size: float) -> str:
    """A real size, with two decimals or as many as tell it from a whole number."""
    for decimals in range(2, 12):
        text = f"{size:,.{decimals}f}"
        if size == round(size) or text.rstrip("0")[-1] != ".":
            break
    return text.rstrip("0").rstrip(".")


def rounded(value: float, digits: int, *, up: bool) -> float:
    """A number above zero to a few digits, never on the other side of what it bounds."""
    scale = 10.0 ** (digits - 1 - math.floor(math.log10(value)))
    return (math.ceil if up else math.floor)(
        value * scale * (1 + (-SLACK if up else SLACK))
    ) / scale


def unbroken(time_s: float) -> str:
    """A time that no line is broken in."""
    return seconds(time_s).replace(" ", NO_BREAK)
