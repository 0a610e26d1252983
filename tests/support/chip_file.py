"""config/chips.yaml, read without the package: entries by kind, claims about them all."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from plain_files import plain_file

GIB = 2**30
DOCUMENT: dict[str, Any] = plain_file("chips.yaml")
SOURCES: dict[str, dict[str, Any]] = DOCUMENT["sources"]
CHIPS: dict[str, dict[str, Any]] = {
    name: chip for name, chip in DOCUMENT["chips"].items() if "base" not in chip
}
VARIANTS: dict[str, dict[str, Any]] = {
    name: chip for name, chip in DOCUMENT["chips"].items() if "base" in chip
}
OVERRIDES: dict[str, dict[str, float]] = {
    name: {path: value for path, value in variant.items() if "." in path}
    for name, variant in VARIANTS.items()
}


def resolved(name: str) -> dict[str, Any]:
    """A chip, or the base of a variant with its overrides.

    Mistakes of a variant are ignored here; the tests of variants below find them.
    """
    if name in CHIPS:
        return CHIPS[name]
    chip = copy.deepcopy(CHIPS.get(VARIANTS[name]["base"], {}))
    for path, value in OVERRIDES[name].items():
        *way, key = path.split(".")
        entry = chip
        for step in way:
            entry = entry.get(step, {})
        entry[key] = value
    return chip


class Item(NamedTuple):
    """An entry of a chip: a peak, memory level, network, power, price or measurement."""

    chip: str
    path: str
    entry: dict[str, Any]


def items_of(chips: list[str], section: str) -> list[Item]:
    """All entries of a section of these chips, with variants resolved."""
    found = []
    for name in chips:
        part = resolved(name).get(section, {})
        if section == "units":
            found += [
                Item(name, f"{unit}.{dtype}", peak)
                for unit, peaks in part.items()
                for dtype, peak in peaks.items()
            ]
        elif section in {"prices", "measured"}:
            found += [Item(name, str(number), entry) for number, entry in enumerate(part)]
        elif section == "power":
            found += [Item(name, "power", part)] if part else []
        else:
            found += [Item(name, key, entry) for key, entry in part.items()]
    return found


PEAKS = items_of(list(CHIPS), "units")
PEAKS_AND_VARIANTS = items_of([*CHIPS, *VARIANTS], "units")
LEVELS = items_of(list(CHIPS), "memory")
MAIN_MEMORIES = [item for item in items_of([*CHIPS, *VARIANTS], "memory") if item.path == "hbm"]
NETWORKS = items_of(list(CHIPS), "networks")
POWERS = items_of(list(CHIPS), "power")
PRICES = items_of(list(CHIPS), "prices")
MEASURED = items_of(list(CHIPS), "measured")

FORMATS = {
    "fp64",
    "fp32",
    "tf32",
    "bf16",
    "fp16",
    "fp8",
    "int8",
    "int4",
    "mxfp8",
    "mxfp6",
    "mxfp4",
    "nvfp4",
}
NUMBERS = {
    "flops_per_s",
    "bytes_per_s",
    "capacity_bytes",
    "links",
    "domain",
    "ring_multiple",
    "hop_latency_s",
    "typical_hop_latency_s",
    "watts",
    "usd_per_hour",
    "fraction_of_peak",
}
STRUCTURE = {"links", "domain", "ring_multiple"}
REMARKS = {"source", "confidence", "estimate", "note"}
KEYS = {
    "units": {"flops_per_s", "printed_with_sparsity", "halved"} | REMARKS,
    "memory": {"bytes_per_s", "capacity_bytes", "technology"} | REMARKS,
    "networks": {
        "bytes_per_s",
        "links",
        "topology",
        "domain",
        "ring_multiple",
        "hop_latency_s",
        "typical_hop_latency_s",
    }
    | REMARKS,
    "power": {"watts"} | REMARKS,
    "prices": {"usd_per_hour", "provider", "sku", "date", "source"},
    "measured": {"what", "fraction_of_peak", "source", "note"},
}
CONFIDENCES = {"vendor", "vendor-quoted", "book", "secondary", "derived", "measured"}


def label_of(case: object) -> str:
    """Label of a case: chip and entry, or the case itself."""
    return f"{case.chip}:{case.path}" if isinstance(case, Item) else str(case)


def each(cases: Collection[Any]) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """A claim about every case, as one test that lists all offenders."""

    def over_all(claim: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            assert cases
            offenders = []
            for case in cases:
                try:
                    claim(*(case if type(case) is tuple else (case,)))
                except (AssertionError, LookupError) as error:
                    offenders.append(f"{label_of(case)}: {type(error).__name__} {error}")
            assert not offenders, "\n".join(offenders)

        test.__name__, test.__doc__ = claim.__name__, claim.__doc__
        return test

    return over_all


def peak(name: str, dtype: str, unit: str = "matrix") -> float:
    """A dense peak [FLOP/s] of a chip or variant."""
    return float(resolved(name)["units"][unit][dtype]["flops_per_s"])


def main_bandwidth(name: str) -> float:
    """Bandwidth of a chip's main memory [byte/s]."""
    return float(resolved(name)["memory"]["hbm"]["bytes_per_s"])


def half_precision(name: str) -> str:
    """The 16-bit dtype a chip is rated by: bf16, or fp16 where it has no bf16."""
    return "bf16" if "bf16" in resolved(name)["units"]["matrix"] else "fp16"


def has_half_precision(name: str) -> bool:
    """Whether a chip has a 16-bit matrix peak."""
    return half_precision(name) in resolved(name)["units"]["matrix"]


HALF_PRECISION = [name for name in (*CHIPS, *VARIANTS) if has_half_precision(name)]
"""Chips and variants with a 16-bit matrix peak; of a few only narrower rates are published."""
