"""Values as text for a page: JSON that is safe in a script, and numbers with prefix and unit."""

from __future__ import annotations

import json

from rooflines.basics.text import seconds, si

DIGITS = 4
"""Significant digits of a number with a prefix; its tooltip has all of them."""


BINARY = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10}
"""Binary units of memory, the largest first [byte]."""

MEGABYTE = 10**6
"""Capacities in decimal units are whole numbers of these [byte]."""


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


def capacity(value: float) -> str:
    """A capacity in the units that it is a whole number of: 16 GB, but 32 GiB and 512 KiB."""
    if value % MEGABYTE == 0 or value % BINARY["KiB"]:
        return quantity(value, "B")
    unit, scale = next(each for each in BINARY.items() if value >= each[1])
    return f"{value / scale:,.10g} {unit}"
