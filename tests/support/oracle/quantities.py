"""Numbers and sizes of a config, exactly."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

Sizes = int | float | str | list[Any] | Mapping[str, Any]


ENDLESS = 2**53  # the largest size and number of chips
LARGEST = 2**62  # a whole size from here on is null


def exact(value):
    """Return the decimal number that was written, exactly."""
    return (
        Fraction(value)
        if isinstance(value, (int, Fraction))
        else Fraction(str(value).replace("_", ""))
    )


def whole(value):
    """Return a number that must be whole as an int."""
    number = exact(value)
    assert number.denominator == 1, f"{value} is not whole"
    return int(number)


SNAP = Fraction(1, 10**9)


def sizes_of(spec):
    """Return the sizes that one entry of a grid asks for (a tie is not one of them)."""
    if isinstance(spec, list):
        return [whole(value) for value in spec]
    if not isinstance(spec, Mapping):
        return [whole(spec)]
    if "sequences" in spec:
        return [
            whole(
                exact(spec["sequences"])
                * exact(spec["tokens_per_sequence"])
                / exact(spec["replicas"])
            )
        ]
    first, last = exact(spec["from"]), exact(spec["to"])
    if "count" in spec:
        return list(
            dict.fromkeys(
                nearest_mean(first, last, step, int(spec["count"]) - 1)
                for step in range(int(spec["count"]))
            )
        )
    values, value = [], first
    while value <= last:
        values.append(value)
        value = value * exact(spec["factor"]) if "factor" in spec else value + exact(spec["step"])
    if "factor" in spec and value <= last * (1 + SNAP):
        values.append(last)
    elif "factor" in spec and len(values) > 1 and values[-1] >= last * (1 - SNAP):
        values[-1] = last
    return list(dict.fromkeys(math.floor(value + Fraction(1, 2)) for value in values))


def nearest_mean(first, last, step, steps):
    """Return first * (last / first)^(step / steps) rounded half up, by powers of whole numbers."""
    if not steps:
        return math.floor(first + Fraction(1, 2))
    power = first ** (steps - step) * last**step
    size = round(math.exp(math.log(first) + math.log(last / first) * step / steps))
    while (size + Fraction(1, 2)) ** steps <= power:
        size += 1
    while (size - Fraction(1, 2)) ** steps > power:
        size -= 1
    return size


def as_list(value):
    """Return a list as it is and anything else as a list of one."""
    return list(value) if isinstance(value, list) else [value]


def stored_size(size):
    """Return a whole size as its column has it: null from 2^62 on."""
    return size if size is not None and size < LARGEST else None


def first(good, least):
    """The first whole number from `least` on that is good; after it all are."""
    if good(least):
        return least
    low = least
    while not good(2 * low):
        low *= 2
    high = 2 * low
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if good(middle) else (middle, high)
    return high


def last(good, least):
    """The last whole number from `least` on that is good; none after it is. None: not even it."""
    return first(lambda n: not good(n), least) - 1 if good(least) else None
