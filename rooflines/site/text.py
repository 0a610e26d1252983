"""Values as text for a page: JSON that is safe in a script, and numbers with prefix and unit."""

from __future__ import annotations

import json
import math

__all__ = ["as_json", "quantity"]

PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")
THOUSAND = 1000.0
DIGITS = 4
"""Significant digits of a number with a prefix; its tooltip has all of them."""


def as_json(value: object) -> str:
    """JSON that is safe in a script: no `<` in it can end the script."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c")


def quantity(value: float, unit: str) -> str:
    """A number with a prefix and a unit, such as 989 TFLOP/s.

    Args:
        value: The number [unit].
        unit: Its unit, without prefix; empty for a plain number.

    Returns:
        At most four digits of it; a plain number is written out.
    """
    if not unit:
        return f"{value:,.10g}"
    value = float(f"{value:.{DIGITS}g}")  # 999.96 is 1 k, not 1000
    power = int(math.log10(abs(value)) // 3) if value else 0
    power = min(max(power, 0), len(PREFIXES) - 1)
    return f"{value / THOUSAND**power:.{DIGITS}g} {PREFIXES[power]}{unit}"
