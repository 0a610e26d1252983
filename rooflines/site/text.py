"""Values as text for a page: JSON that is safe in a script, and numbers with prefix and unit."""

from __future__ import annotations

import json

from rooflines.basics.text import seconds, si

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
        At most four digits of it; a plain number is written out, a time has a small prefix.
    """
    if not unit:
        return f"{value:,.10g}"
    if unit == "s" and value:
        return seconds(value)
    rounded = float(f"{value:.{DIGITS}g}")  # ties to even: 362.05 TFLOP/s is 362 TFLOP/s
    return si(rounded, unit, DIGITS)
