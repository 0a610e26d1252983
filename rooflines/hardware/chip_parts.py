"""Parts of a chip with numbers: one list for everything that walks over a chip."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from rooflines.hardware.entries import Level, Measured, Network, Peak, Price, Sourced
from rooflines.hardware.entry_forms import UNLIMITED, Entry, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.hardware.entries import Chip

SOURCED_WITH = {
    "links": "bytes_per_s",
    "domain": "bytes_per_s",
    "ring_multiple": "bytes_per_s",
    "pod": "bytes_per_s",
    "driver_reserved_bytes": "capacity_bytes",
}
"""Number whose source also covers this one: printed beside it, or derived from it."""


NUMBER_KEYS = {
    "flops_per_s": ("dense peak", "FLOP/s"),
    "bytes_per_s": ("bandwidth", "B/s"),
    "capacity_bytes": ("capacity", "B"),
    "driver_reserved_bytes": ("reserved by the driver", "B"),
    "bus_bits": ("width of the bus", "bit"),
    "pin_bits_per_s": ("rate of a pin", "bit/s"),
    "links": ("links", ""),
    "domain": ("most chips joined", ""),
    "pod": ("chips of a pod", ""),
    "ring_multiple": ("closes into a ring at multiples of", ""),
    "hop_latency_s": ("least latency of a hop", "s"),
    "typical_hop_latency_s": ("typical latency of a hop", "s"),
    "exp_per_s": ("exponentials per second", "1/s"),
    "watts": ("design power", "W"),
    "usd_per_hour": ("price", "USD/h"),
    "fraction_of_peak": ("share of peak that was reached", ""),
    "math": ("share of the peak that is reached", ""),
    "memory": ("share of the memory's bandwidth that is reached", ""),
    "network": ("share of the network's bandwidth that is reached", ""),
    "overhead_s": ("fixed time of an operation", "s"),
}
"""Quantity and unit by number key."""

SPARSE_PEAK = "printed_with_sparsity"
"""Key with the printed with-sparsity figure, which is no number of the chip."""

SHARE_PARTS = ("measured", "efficiency", "calibration")
"""Parts with shares of rates, not rates."""

TREES = ("memory", "networks", "special", "power", "prices", *SHARE_PARTS)
"""A chip's keys with parts, besides units, in order."""


class ChipPart(NamedTuple):
    """A part of a chip.

    Attributes:
        tree: The chip's key with this part, such as `units`.
        names: Names below that key, such as matrix and bf16; the index in a list.
        entry: The part's entry.
    """

    tree: str
    names: tuple[str, ...]
    entry: Entry

    @property
    def path(self) -> str:
        """Dotted path, such as `units.matrix.bf16`."""
        return ".".join((self.tree, *self.names))

    @property
    def label(self) -> str:
        """Label for readers, such as `memory hbm (HBM3)`."""
        entry, name = self.entry, ", ".join(self.names)
        if isinstance(entry, Peak):
            unit, dtype = self.names
            return f"{unit} unit, {dtype}"
        if isinstance(entry, Level):
            return f"memory {name}" + (f" ({entry.technology})" if entry.technology else "")
        if isinstance(entry, Network):
            unlimited = ", unlimited" if entry.domain == UNLIMITED else ""
            return f"network {name} ({entry.topology}{unlimited})"
        if isinstance(entry, Price):
            return ", ".join(text for text in (entry.provider, entry.sku, entry.date) if text)
        if isinstance(entry, Measured):
            return entry.quantity
        return ", ".join((self.tree, *self.names))


class NumberRecord(TypedDict):
    """A number of a chip, with source and confidence.

    Attributes:
        path: The dotted path, such as `memory.hbm.bytes_per_s`.
        value: The number, in the SI unit that ends the path.
        unit: That unit; empty for counts and shares.
        part: Label of the part with the number.
        meaning: The quantity.
        source: Names of the sources; None if not stated.
        confidence: Origin of the figure, such as `vendor` or `measured`; None if not stated.
        estimate: Whether the number is an estimate.
        label: For a capacity: the printed figure, such as `80 GB`; None if not stated.
        halved: Whether the number is half of `printed_with_sparsity`.
        printed_with_sparsity: The printed with-sparsity figure [FLOP/s].
        clock: For a peak: `boost` if it assumes the printed boost clock.
        note: Further remarks.
    """

    path: str
    value: float
    unit: str
    part: str
    meaning: str
    source: str | None
    confidence: str | None
    estimate: bool
    label: str | None
    halved: bool
    printed_with_sparsity: float | None
    clock: str | None
    note: str | None


def iter_parts(chip: Chip) -> Iterator[ChipPart]:
    """Iterate over the parts with numbers, in catalogue order."""
    for unit, peaks in chip.units.items():
        yield from (ChipPart("units", (unit, dtype), peak) for dtype, peak in peaks.items())
    for tree in TREES:
        content = getattr(chip, tree)
        if isinstance(content, Entry):
            yield ChipPart(tree, (), content)
        elif content:
            named_entries = content.items() if isinstance(content, Mapping) else enumerate(content)
            yield from (ChipPart(tree, (str(name),), entry) for name, entry in named_entries)


def part_numbers(entry: Entry) -> dict[str, float]:
    """Numbers of a part by key, in the key's unit; those at their default are left out."""
    values = {
        key: getattr(entry, key)
        for key, field in type(entry).model_fields.items()
        if getattr(entry, key) != field.default
    }
    return {
        key: value
        for key, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }


def source_of(chip: Chip, entry: Entry, key: str) -> list[str]:
    """Sources of a number: the part's, else the chip's; empty if neither is stated."""
    entry_source = source_in(entry.source, key) if isinstance(entry, Sourced) else None
    source = entry_source or source_in(chip.source, key)
    return [source] if isinstance(source, str) else source or []


def source_in(source: Source | None, key: str) -> str | list[str] | None:
    """Source of one number; without one, the source of the number printed beside it."""
    if not isinstance(source, dict):
        return source
    return source.get(key) or source.get(SOURCED_WITH.get(key, key))


def confidence_of(entry: Sourced, key: str) -> str | None:
    """Confidence of a number in a part; None if not stated."""
    confidence = entry.confidence
    if not isinstance(confidence, dict):
        return confidence
    return confidence.get(key) or confidence.get(SOURCED_WITH.get(key, key))


def is_estimate(entry: Sourced, key: str) -> bool:
    """Tell whether a number in a part is an estimate."""
    if isinstance(entry.estimate, bool):
        return entry.estimate
    return key in entry.estimate or SOURCED_WITH.get(key) in entry.estimate


def number_records(chip: Chip, *, shares: bool = True) -> Iterator[NumberRecord]:
    """Iterate over a chip's numbers: part, quantity, value, unit and source.

    Args:
        chip: The entry.
        shares: Whether to include measured shares, efficiencies and calibrations.
    """
    for part in iter_parts(chip):
        if shares or part.tree not in SHARE_PARTS:
            yield from _records(chip, part)


def _records(chip: Chip, part: ChipPart) -> Iterator[NumberRecord]:
    entry = part.entry
    sourced = entry if isinstance(entry, Sourced) else None
    peak = entry if isinstance(entry, Peak) else None
    level = entry if isinstance(entry, Level) else None
    for key, value in part_numbers(entry).items():
        if key != SPARSE_PEAK:
            yield {
                "path": f"{part.path}.{key}",
                "part": part.label,
                "meaning": NUMBER_KEYS[key][0],
                "value": float(value),
                "unit": NUMBER_KEYS[key][1],
                "source": ", ".join(source_of(chip, entry, key)) or None,
                "confidence": confidence_of(sourced, key) if sourced else None,
                "estimate": sourced is not None and is_estimate(sourced, key),
                "label": level.label if level and key == "capacity_bytes" else None,
                "halved": peak is not None and peak.halved,
                "printed_with_sparsity": peak.printed_with_sparsity if peak else None,
                "clock": chip.clock if peak else None,
                "note": sourced.note if sourced else None,
            }
