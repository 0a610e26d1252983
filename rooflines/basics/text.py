"""Text for readers: numbers by one table of formats, abridged lists, formulas in spreadsheets."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_ITEMS_SHOWN = 10
"""Maximum of items in a `repr` or a message [1]."""

NUMBER_FORMATS: Mapping[str, Any] = json.loads(
    Path(__file__).with_name("number_formats.json").read_bytes()
)
"""Formats of numbers, which the site's scripts have too: default `digits`, `prefixes` with their
sizes, the largest first, and `formats`.

A format is a list of ranges; the first one whose limit, `below`, exceeds the number's magnitude
counts. A range has a factor, `scale`; `prefixes`, of which the largest that the number reaches
counts; significant `digits`, or `decimals` that are all shown, or `cut`, decimals after which the
number is cut, so that it never rounds up, or an `exponent`; a `sign` before the number, a `space`
and a `unit` after it.
"""

PREFIXES: Mapping[str, float] = {
    prefix: size for prefix, size in NUMBER_FORMATS["prefixes"]["si"].items() if prefix
}
"""SI prefixes, the largest first."""

TIME_PREFIXES: Mapping[str, float] = NUMBER_FORMATS["prefixes"]["time"]
"""Prefixes for times up to a second, the largest first."""

DIGITS: int = NUMBER_FORMATS["digits"]
"""Default number of significant digits [1]."""

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

MAX_NAMES = 8192
"""Normalized names that are remembered: each word is compared with all names [1]."""


@lru_cache(MAX_NAMES)
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


def format_number(value: float, kind: str, *, unit: str = "", digits: int = DIGITS) -> str:
    """Number as text in a format of `NUMBER_FORMATS`.

    Args:
        value: The number, in SI units.
        kind: Name of the format.
        unit: Unit without prefix, for a format that has none.
        digits: Significant digits, for a format that has none [1].
    """
    ranges = NUMBER_FORMATS["formats"][kind]
    form = next(form for form in ranges if abs(value) < form.get("below", math.inf))
    digits = form.get("digits", digits)
    scaled, prefix = value * form.get("scale", 1), ""
    if sizes := NUMBER_FORMATS["prefixes"].get(form.get("prefixes")):
        prefix, size = _prefix(scaled, sizes, digits)
        scaled /= size
    if form.get("exponent"):
        text = f"{scaled:.{digits}g}"
    elif "decimals" in form:
        text = f"{scaled:,.{form['decimals']}f}"
    elif "cut" in form:
        text = _cut(scaled, form["cut"])
    else:
        text = significant(scaled, digits)
    return f"{form.get('sign', '')}{text}{form.get('space', '')}{prefix}{form.get('unit', unit)}"


def si(value: float, unit: str, digits: int = DIGITS) -> str:
    """Quantity with an SI prefix: 1.97e14 FLOP/s is `197 TFLOP/s`; an exponent beyond all prefixes.

    Args:
        value: The number [unit].
        unit: The unit without prefix.
        digits: Significant digits shown [1].
    """
    return format_number(value, "quantity", unit=unit, digits=digits)


def seconds(value: float) -> str:
    """Time with a prefix: 4.13e-5 s is `41.3 µs`; an exponent beyond weeks."""
    return format_number(value, "seconds")


def count(value: float) -> str:
    """Integer with thousands separators; with a prefix from a million on."""
    return format_number(value, "count")


def whole_percent(share: float) -> str:
    """Share [1] in whole percent."""
    return format_number(share, "whole percent")


def column_percent(share: float) -> str:
    """Share [1] in percent with one decimal, for columns that are compared."""
    return format_number(share, "column percent")


def percent(share: float) -> str:
    """Share in percent; a share below 1 is never 100%."""
    return format_number(share, "percent")


def usd(price: float) -> str:
    """Price in dollars: with cents from a dollar on, without them from a hundred on."""
    return format_number(price, "usd")


def _prefix(value: float, prefixes: Mapping[str, float], digits: int) -> tuple[str, float]:
    """Largest prefix that the rounded value reaches, or the smallest prefix."""
    rounding = 1 - 0.5 * 10.0**-digits  # 999.96 GB/s rounds to 1 TB/s
    fitting = ((name, size) for name, size in prefixes.items() if abs(value) >= size * rounding)
    return next(fitting, list(prefixes.items())[-1])


def _cut(value: float, decimals: int) -> str:
    """Number rounded down to some decimals, without trailing zeros."""
    shown = math.floor(value * 10**decimals) / 10**decimals
    return f"{shown:.{decimals}f}".rstrip("0").rstrip(".")


def is_formula(text: str) -> bool:
    """Tell whether a spreadsheet that opens a CSV file would run this text as a formula."""
    return FORMULA_START.search(text) is not None
