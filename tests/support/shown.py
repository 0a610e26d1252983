"""Numbers as pages and sentences show them, and whether they are those behind them."""

import math
import re

from rooflines.basics.text import PREFIXES, TIME_PREFIXES

NUMBER = re.compile(
    r"(?<![\w.,-])\d[\d,]*(?:\.\d+)?"
    r"(?: ?%| [kMGTPEµnm]?(?:FLOP/s|FLOP/byte|FLOP|B/s|B|s)\b|[kMGTPE]\b)?(?![\w-])(?!\.\d)"
)
"""A number in a text, with its unit; digits of a name, such as those of bf16 and tp8, are none."""


def number_of(text):
    """The number that a text shows, and half of its last digit."""
    match = re.fullmatch(r"([\d,]+)(?:\.(\d+))?(?: ?([^\d%]\D*)|(%))?", text)
    assert match, text
    whole, decimals, unit, share = match.groups()
    scale = (
        {**PREFIXES, **TIME_PREFIXES}.get((unit or "")[:1], 1.0)
        if unit not in ("B", "s", "")
        else 1.0
    )
    scale = 0.01 if share else scale
    digits = len(decimals or "")
    value = float(whole.replace(",", "") + "." + (decimals or "0"))
    return value * scale, 0.5 * 10.0**-digits * scale


def rounds_to(text, value, digits=3):
    """True if a text is this number, rounded to its digits: integers are whole."""
    seen, half = number_of(text)
    if value == 0:
        return seen == 0
    if 0.9995 <= value < 1 and text.endswith("%"):  # cut, not rounded: 100% is all of it
        return 0 <= value - seen < 1e-5
    last = 0.5 * 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return abs(seen - value) <= min(half, last) * (1 + 1e-9)


def numbers_in(data):
    """Every number of nested data."""
    if isinstance(data, dict | list | tuple):
        for each in data.values() if isinstance(data, dict) else data:
            yield from numbers_in(each)
    elif isinstance(data, int | float) and not isinstance(data, bool):
        yield data


def unexplained(text, data):
    """The numbers of a text that are none of those in some data, rounded; shares may be cut."""
    known = {abs(number) for number in numbers_in(data)}
    known |= {
        math.floor(scale * number) / scale
        for number in known
        for scale in (100, 100_000)
        if number < 1 and (scale == 100 or number >= 0.9995)
    }
    text = re.sub(r"(\d) to (\d+ %)", r"\1 % to \2", text)
    said = {found: number_of(found.replace(" %", "%")) for found in NUMBER.findall(text)}
    return [
        found
        for found, (seen, half) in said.items()
        if not any(abs(seen - number) <= half * (1 + 1e-9) for number in known)
    ]
