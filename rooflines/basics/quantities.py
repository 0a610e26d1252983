"""Quantities as people type them: 50ms, 15T, 4.8TB/s, $2.50/h, 1397tok/s, 41%mfu.

Prefixes are decimal; Ki, Mi and Gi are binary. Sizes have a parser that takes a bare k as 1,024.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, NamedTuple

from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.numbers import DECIMAL, MAX_DECIMAL, number

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["time", "bytes", "bandwidth", "compute", "tokens", "money"]
"""Kind of quantity; its SI unit is in `SI`."""

SI: Mapping[Kind, str] = {
    "time": "s",
    "bytes": "byte",
    "bandwidth": "byte/s",
    "compute": "FLOP/s",
    "tokens": "",
    "money": "USD/h",
}
"""SI unit by kind; empty: a count."""

DECIMALS = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
"""Powers of ten by prefix."""

BINARIES = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40}
"""Powers of two by prefix."""

SCALES: Mapping[str, Fraction] = {
    **{prefix: Fraction(10) ** power for prefix, power in DECIMALS.items()},
    **{prefix: Fraction(2) ** power for prefix, power in BINARIES.items()},
}


def _prefixed(*units: str) -> dict[str, Fraction]:
    """Scales by prefixed unit."""
    return {f"{prefix}{unit}": scale for prefix, scale in SCALES.items() for unit in units}


COUNTS = {"": 0, "k": 3, "m": 6, "mn": 6, "b": 9, "bn": 9, "g": 9, "t": 12, "tn": 12}
"""Powers of ten by suffix of a token count, in any case; b and t are billions and trillions."""

SCALES_BY_KIND: Mapping[Kind, Mapping[str, Fraction]] = {
    "time": {
        **dict.fromkeys(("", "s", "sec", "secs", "second", "seconds"), Fraction(1)),
        **dict.fromkeys(("ms", "msec"), Fraction(1, 10**3)),
        **dict.fromkeys(("us", "µs", "μs", "usec"), Fraction(1, 10**6)),
        "ns": Fraction(1, 10**9),
        "min": Fraction(60),
        **dict.fromkeys(("h", "hours"), Fraction(3600)),
    },
    "bytes": {"": Fraction(1), **_prefixed("B")},
    "bandwidth": {"": Fraction(1), **_prefixed("B/s", "Bps")},
    "compute": {"": Fraction(1), **_prefixed("FLOP/s", "FLOPS", "FLOPs", "flops", "flop/s")},
    "tokens": {suffix: Fraction(10) ** power for suffix, power in COUNTS.items()},
    "money": dict.fromkeys(
        ("", "/h", "/hr", "/hour", "usd", "usd/h", "$/h", "$/hr", "$/hour"), Fraction(1)
    ),
}
"""Scale to the SI unit by typed unit, by kind."""

EXAMPLES: Mapping[Kind, str] = {
    "time": "50ms, 0.05 or 2s",
    "bytes": "141GB or 80GiB",
    "bandwidth": "4.8TB/s or 4.8e12",
    "compute": "989TFLOP/s or 9.89e14",
    "tokens": "15T or 1.5e13",
    "money": "2.5 or $2.50/h",
}
"""Examples in messages, by kind."""

QUANTITY = re.compile(rf"({DECIMAL.pattern})\s*([^\d\s].*)?", re.ASCII | re.DOTALL)
"""Number, then a unit."""


def quantity(value: object, kind: Kind) -> int | float:
    """Parse a quantity into its SI unit; a bare number is in that unit.

    Args:
        value: A number, or a text such as `50ms`.
        kind: Quantity kind.

    Raises:
        RooflinesError: It is no number, or has a unit for another kind.
    """
    split = split_unit(value)
    if split is None:
        return number(value)
    digits, unit = split
    scales = SCALES_BY_KIND[kind]
    scale = scales.get(unit.lower() if kind in ("tokens", "money", "time") else unit)
    if scale is None:
        taken = SI[kind] or "a count"
        unit_problem = f"is {quote(value)}, whose unit {quote(unit)} is none for {kind} ({taken})"
        raise RooflinesError("", unit_problem, f"write {EXAMPLES[kind]}")
    if not unit:
        return number(digits)
    return _scaled(digits, scale)


def _scaled(digits: str, scale: Fraction) -> int | float:
    """Number times a scale, rounded once; exponents beyond floats stay floats."""
    plain = number(digits)
    if plain == 0 or not MIN_EXACT < abs(plain) < 1 / MIN_EXACT:
        return plain * float(scale)
    scaled = Fraction(digits.replace("_", "")) * scale
    return int(scaled) if scaled.denominator == 1 else float(scaled)


MIN_EXACT = 1e-100
"""Limit on numbers that are scaled as fractions; those of huge exponents would fill the memory."""


def split_unit(value: object) -> tuple[str, str] | None:
    """Digits and unit in a text such as `50ms` or `$2.5/h`; None: no such text."""
    if not isinstance(value, str) or len(value) > MAX_DECIMAL:
        return None
    text = value.strip()
    text = f"{text[1:]}" if text.startswith("$") else text.removesuffix("$")
    match = QUANTITY.fullmatch(text)
    return None if match is None else (match[1], (match[match.re.groups] or "").strip())


def quantity_kind(value: object) -> Kind | None:
    """Quantity kind by its unit; None: it has no unit, or an unknown one."""
    split = split_unit(value)
    if split is None or not split[1]:
        return None
    kinds: tuple[Kind, ...] = ("time", "bandwidth", "compute", "bytes")
    return next((kind for kind in kinds if split[1] in SCALES_BY_KIND[kind]), None)


# ---------------------------------------------------------------- measured values

TIME, TOKENS_PER_S, PER_CHIP, PER_USER = (
    "time",
    "tokens_per_s",
    "tokens_per_s_per_chip",
    "tokens_per_s_per_user",
)
FLOPS_PER_S = "flops_per_s"
MFU, HFU, MBU = "mfu", "hfu", "mbu"

RATES: Mapping[str, str] = {
    f"{tokens}/{second}{over}": kind
    for tokens in ("tok", "toks", "token", "tokens")
    for second in ("s", "sec", "second")
    for over, kind in {
        "": TOKENS_PER_S,
        **dict.fromkeys(("/gpu", "/chip", "/tpu", "/device"), PER_CHIP),
        "/user": PER_USER,
    }.items()
} | {"tps": TOKENS_PER_S, "t/s": TOKENS_PER_S}
"""Kinds of measured rates by unit."""

FLOPS_UNITS: Mapping[str, Fraction] = {
    unit.lower(): scale for unit, scale in SCALES_BY_KIND["compute"].items() if unit
}
"""Scales of attained FLOP/s by unit in lower case."""

UTILIZATION = re.compile(r"(%?)\s*(mfu|hfu|mbu)(?:[\s-]*(full))?")
"""Unit of a measured utilization: 41%mfu, or 0.41mfu; full: attention without the causal mask."""

THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+(?=\D)")
"""Digits in groups of three, before a unit."""

MEASURED_FIX = (
    "write 30ms, 250us, 1397tok/s (of all chips), 9500tok/s/gpu, 45tok/s/user, 41%mfu, "
    "'41%mfu full' or 41%hfu, of an operation also 620TFLOP/s"
)


class MeasuredValue(NamedTuple):
    """Measured number for an operation or a step.

    Attributes:
        value: In its SI unit: s, tokens/s, FLOP/s, or a share [1].
        kind: `time`, `tokens_per_s`, `tokens_per_s_per_chip`, `tokens_per_s_per_user`,
            `flops_per_s`, `mfu`, `hfu` or `mbu`.
        full: Whether a utilization counts attention without its causal mask.
        text: Text as typed.
        rounding: Half a unit in the last typed digit, over the value [1].
    """

    value: float
    kind: str
    full: bool = False
    text: str = ""
    rounding: float = 0.0


def measured_value(typed: object) -> MeasuredValue:
    """Parse a measured number: 30ms, 250us, 1397tok/s, 9500tok/s/gpu, 45tok/s/user, 41%mfu.

    Raises:
        RooflinesError: It is no such number.
    """
    text = typed.strip() if isinstance(typed, str) else typed
    split = split_unit(
        THOUSANDS.sub(lambda match: match[0].replace(",", ""), text, count=1)
        if isinstance(text, str)
        else text
    )
    if not isinstance(text, str) or split is None:
        raise RooflinesError("", f"is {quote(typed)}, which is no number with a unit", MEASURED_FIX)
    digits, unit = split[0], split[1].lower()
    if unit in ("", "%"):
        lacking = "a share, but of what is not said" if unit else "which has no unit"
        raise RooflinesError("", f"is {quote(text)}, {lacking}", MEASURED_FIX)
    scale, kind, full = _measured_unit(unit)
    if kind is None:
        problem = f"is {quote(text)}, whose unit {quote(split[1])} is unknown"
        raise RooflinesError("", problem, MEASURED_FIX)
    try:
        value = float(_scaled(digits, scale))
    except RooflinesError:
        value = MAX_MEASURED
    if not 1 / MAX_MEASURED < value < MAX_MEASURED:
        size = "not above zero" if value <= 0 else "no number that is measured"
        raise RooflinesError("", f"is {quote(text)}, which is {size}", MEASURED_FIX)
    if kind in (MFU, HFU, MBU) and value > 1:
        problem = f"is {quote(text)}, a share above 100%"
        raise RooflinesError("", problem, "write a share of the peak, such as 41%mfu")
    return MeasuredValue(value, kind, full, text, _half_unit(digits))


def is_measured_rate(text: str) -> bool:
    """Check for a measured number that is no time, such as 1397tok/s or 41%mfu."""
    try:
        return measured_value(text).kind != TIME
    except RooflinesError:
        return False


MAX_MEASURED = 1e18
"""Limit on a measured number in its SI unit, and on its inverse [s, 1/s or 1]."""


def _measured_unit(unit: str) -> tuple[Fraction, str | None, bool]:
    """Scale, kind, and whether all token pairs count, by unit in lower case; kind None: unknown."""
    if match := UTILIZATION.fullmatch(unit):
        if match[3] and match[2] != MFU:
            return Fraction(1), None, False
        return Fraction(1, 100 if match[1] else 1), match[2], bool(match[3])
    if unit in SCALES_BY_KIND["time"]:
        return SCALES_BY_KIND["time"][unit], TIME, False
    if unit in FLOPS_UNITS:
        return FLOPS_UNITS[unit], FLOPS_PER_S, False
    for prefix in ("", "k", "m"):
        if unit.startswith(prefix) and (kind := RATES.get(unit.removeprefix(prefix))):
            return SCALES[prefix.upper()], kind, False
    return Fraction(1), None, False


def _half_unit(digits: str) -> float:
    """Half a unit in the last digit of a number above zero, over the number [1]."""
    mantissa, _, _ = digits.lower().replace("_", "").partition("e")
    _, _, decimals = mantissa.partition(".")
    return float(Fraction(1, 2 * 10 ** len(decimals)) / abs(Fraction(mantissa)))
