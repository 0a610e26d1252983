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
    "money": dict.fromkeys(("", "/h", "/hr", "/hour", "usd", "usd/h"), Fraction(1)),
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
    scaled = Fraction(digits.replace("_", "")) * scale
    return int(scaled) if scaled.denominator == 1 else float(scaled)


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

MeasuredKind = Literal["time", "tokens_per_s", "tokens_per_s_per_chip", "tokens_per_s_per_user"]

RATES: Mapping[str, MeasuredKind] = {
    **dict.fromkeys(("tok/s", "tokens/s", "tps", "toks/s"), "tokens_per_s"),
    **{
        f"{tokens}/s/{unit}": "tokens_per_s_per_chip"
        for tokens in ("tok", "tokens")
        for unit in ("gpu", "chip", "tpu")
    },
    **{f"{tokens}/s/user": "tokens_per_s_per_user" for tokens in ("tok", "tokens")},
}
"""Kinds of measured rates by unit."""

UTILIZATION = re.compile(r"%\s*(mfu|hfu|mbu)\s*(full)?|(mfu|hfu|mbu)\s*(full)?")
"""Unit of a measured utilization: 41%mfu, or 0.41mfu; full: attention without the causal mask."""


class MeasuredValue(NamedTuple):
    """Measured number for a step.

    Attributes:
        value: In its SI unit: s, tokens/s, or a share.
        kind: `time`, an output token rate, `mfu`, `hfu` or `mbu`.
        full: Whether a utilization counts attention without its causal mask.
    """

    value: float
    kind: str
    full: bool = False


def measured_value(text: str) -> MeasuredValue:
    """Parse a measured number: 30ms, 250us, 1397tok/s, 9500tok/s/gpu, 35tok/s/user, 41%mfu.

    Raises:
        RooflinesError: It is no such number.
    """
    fix = "write 30ms, 250us, 1397tok/s (all chips), 9500tok/s/gpu, 35tok/s/user or 41%mfu"
    split = split_unit(text)
    if split is None or not split[1]:
        raise RooflinesError("", f"is {quote(text)}, which has no unit of a measured number", fix)
    digits, unit = split[0], split[1].lower()
    prefix = unit[0] if unit[:1] == "k" else ""
    if kind := RATES.get(unit.removeprefix(prefix)):
        value = float(Fraction(digits.replace("_", "")) * SCALES[prefix])
        return _positive(MeasuredValue(value, kind), text, fix)
    if match := UTILIZATION.fullmatch(unit):
        share = float(Fraction(digits.replace("_", "")) / (100 if match[1] else 1))
        full = bool(match[2] or match[4])
        return _positive(MeasuredValue(share, match[1] or match[3], full), text, fix)
    if unit in SCALES_BY_KIND["time"]:
        return _positive(MeasuredValue(quantity(text, "time"), "time"), text, fix)
    raise RooflinesError("", f"is {quote(text)}, whose unit {quote(unit)} is unknown", fix)


def _positive(measured: MeasuredValue, text: str, fix: str) -> MeasuredValue:
    if not measured.value > 0:
        raise RooflinesError("", f"is {quote(text)}, which is not above zero", fix)
    return measured
