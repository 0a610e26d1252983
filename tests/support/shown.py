"""Numbers as pages show them."""

import math
import re

from rooflines.basics.text import PREFIXES, SMALL


def number_of(text):
    """The number that a text shows, and half of its last digit."""
    match = re.fullmatch(r"([\d,]+)(?:\.(\d+))?(?: (\D*)|(%))?", text)
    assert match, text
    whole, decimals, unit, share = match.groups()
    scale = {**PREFIXES, **SMALL}.get((unit or "")[:1], 1.0) if unit not in ("B", "s", "") else 1.0
    scale = 0.01 if share else scale
    digits = len(decimals or "")
    value = float(whole.replace(",", "") + "." + (decimals or "0"))
    return value * scale, 0.5 * 10.0**-digits * scale


def rounds_to(text, value, digits=3):
    """Whether a text is this number, rounded to its digits: integers are whole."""
    seen, half = number_of(text)
    if value == 0:
        return seen == 0
    if 0.9995 <= value < 1 and text.endswith("%"):  # cut, not rounded: 100% is all of it
        return 0 <= value - seen < 1e-5
    last = 0.5 * 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return abs(seen - value) <= min(half, last) * (1 + 1e-9)
