"""Text for readers: counts, abridged lists, SI prefixes; no formulas in spreadsheets."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_ITEMS_SHOWN = 10
"""Maximum of items in a `repr` or a message [1]."""

PREFIXES = {"Z": 1e21, "E": 1e18, "P": 1e15, "T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3}
"""SI prefixes, the largest first."""

TIME_PREFIXES = {"": 1.0, "m": 1e-3, "µ": 1e-6, "n": 1e-9}
"""Prefixes for times up to a second, the largest first."""

DIGITS = 3
"""Default number of significant digits [1]."""

MAX_PREFIXED = 1e24
"""Limit from which quantities have an exponent; the largest prefix is 1e21."""

MAX_PREFIXED_S = 1e6
"""Limit from which times have an exponent [s]."""

MONTHS = [
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
]

DATE = re.compile(r"(\d{4})-(0[1-9]|1[0-2])(-\d{2})?")
"""Date with a month, such as 2026-08-20 or 2026-08."""

FORMULA = r"(^|;)(\s*[=+\-@＝＋－＠]|[\t\r\n])"  # noqa: RUF001, the wide forms are formulas where they are typed
"""Pattern for a formula: at the start of a text, or after a semicolon, which separates cells in
many languages."""

FORMULA_START = re.compile(FORMULA)


def normalize_name(text: str) -> str:
    """Normalize a name for comparison: no case, spaces, underscores or hyphens."""
    return re.sub(r"[\s_-]+", "", text.lower())


def counted(number: int, noun: str) -> str:
    """Number with its noun, in the plural unless 1: "1 part", "12 parts"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def month(date: str) -> str:
    """Month and year, such as August 2026; a text that has no month stays."""
    match = DATE.fullmatch(date)
    return f"{MONTHS[int(match[2]) - 1]} {match[1]}" if match else date


def abridge(head: str, lines: Iterable[str]) -> str:
    """Heading above an indented list, cut after a few lines: a `repr` of a collection."""
    items = list(lines)
    more = [f"... and {len(items) - MAX_ITEMS_SHOWN} more"] if len(items) > MAX_ITEMS_SHOWN else []
    return "\n  ".join([head, *items[:MAX_ITEMS_SHOWN], *more])


def significant(value: float, digits: int = DIGITS) -> str:
    """Number with a few significant digits, integers in full; no trailing zeros, no exponent."""
    decimals = max(digits - 1 - math.floor(math.log10(abs(value))), 0) if value else 0
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def si(value: float, unit: str, digits: int = DIGITS) -> str:
    """Quantity with an SI prefix: 1.97e14 FLOP/s is `197 TFLOP/s`; an exponent beyond all prefixes.

    Args:
        value: The number [unit].
        unit: The unit without prefix.
        digits: Significant digits shown [1].
    """
    if abs(value) >= MAX_PREFIXED:
        return f"{value:.{digits}g} {unit}"
    prefix, scale = _prefix(value, PREFIXES | {"": 1.0}, digits)
    return f"{significant(value / scale, digits)} {prefix}{unit}"


def seconds(value: float) -> str:
    """Time with a prefix: 4.13e-5 s is `41.3 µs`; an exponent beyond weeks."""
    if value >= MAX_PREFIXED_S:
        return f"{value:.{DIGITS}g} s"
    prefix, scale = _prefix(value, TIME_PREFIXES, DIGITS)
    return f"{significant(value / scale)} {prefix}s"


def count(value: float) -> str:
    """Integer with thousands separators; with a prefix from a million on."""
    return f"{value:,.0f}" if value < PREFIXES["M"] else si(value, "").replace(" ", "")


def _prefix(value: float, prefixes: dict[str, float], digits: int) -> tuple[str, float]:
    """Largest prefix that the rounded value reaches, or the smallest prefix."""
    rounding = 1 - 0.5 * 10.0**-digits  # 999.96 GB/s rounds to 1 TB/s
    fitting = ((name, scale) for name, scale in prefixes.items() if abs(value) >= scale * rounding)
    return next(fitting, list(prefixes.items())[-1])


def is_formula(text: str) -> bool:
    """Tell whether a spreadsheet that opens a CSV file would run this text as a formula."""
    return FORMULA_START.search(text) is not None
