"""config/chips.yaml, read without the package: entries by kind, claims about them all."""

from typing import Any, NamedTuple

from oracle import resolve_chips
from plain_files import plain_file

DOCUMENT: dict[str, Any] = plain_file("chips.yaml")
SOURCES: dict[str, dict[str, Any]] = DOCUMENT["sources"]
WRITTEN: dict[str, dict[str, Any]] = DOCUMENT["chips"]
BASES = [name for name, chip in WRITTEN.items() if "base" not in chip]
VARIANTS = [name for name, chip in WRITTEN.items() if "base" in chip]
CHIPS = resolve_chips(WRITTEN, WRITTEN)
"""Every chip, variants with all that they take from their base."""


class Item(NamedTuple):
    """An entry of a chip: a peak, memory level, network, power, price or measurement."""

    chip: str
    path: str
    entry: dict[str, Any]


def items_of(chips, section):
    """All entries of a section of these chips."""
    found = []
    for name in chips:
        part = CHIPS[name].get(section) or {}
        if section == "units":
            part = {f"{unit}.{key}": one for unit, of in part.items() for key, one in of.items()}
        elif isinstance(part, list):
            part = {str(number): entry for number, entry in enumerate(part)}
        elif section in ("power", "special"):
            part = {section: part} if part else {}
        found += [Item(name, path, entry) for path, entry in part.items()]
    return found


PEAKS, LEVELS, NETWORKS, POWERS, PRICES, MEASURED, SPECIALS = (
    items_of(BASES, section)
    for section in ("units", "memory", "networks", "power", "prices", "measured", "special")
)


def each(cases):
    """A claim about every case, as one test that lists all offenders."""

    def over_all(claim):
        def test():
            assert cases
            offenders = []
            for case in cases:
                try:
                    claim(*(case if type(case) is tuple else (case,)))
                except (AssertionError, LookupError) as error:
                    name = f"{case.chip}:{case.path}" if isinstance(case, Item) else case
                    offenders.append(f"{name}: {type(error).__name__} {error}")
            assert not offenders, "\n".join(offenders)

        test.__name__, test.__doc__ = claim.__name__, claim.__doc__
        return test

    return over_all


def peak(name, dtype, unit="matrix"):
    """A dense peak [FLOP/s]."""
    return float(CHIPS[name]["units"][unit][dtype]["flops_per_s"])


def main_bandwidth(name):
    """Bandwidth of a chip's main memory [byte/s]."""
    return float(CHIPS[name]["memory"]["hbm"]["bytes_per_s"])


def half_precision(name):
    """The 16-bit dtype a chip is rated by: bf16, or fp16 where it has no bf16."""
    return "bf16" if "bf16" in CHIPS[name]["units"]["matrix"] else "fp16"


HALF_PRECISION = [name for name in CHIPS if half_precision(name) in CHIPS[name]["units"]["matrix"]]
"""Chips with a 16-bit matrix peak; of a few only narrower rates are published."""
