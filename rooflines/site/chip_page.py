"""What the page of chips shows: every number of every chip, with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rooflines.catalogue.entries import MAIN_MEMORY, Level, Measured, Network, Peak, Price, Sourced
from rooflines.catalogue.forms import UNLIMITED
from rooflines.catalogue.parts import numbers, parts, source_of
from rooflines.site.text import capacity, quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.basics.yaml_file import JSON
    from rooflines.catalogue.entries import Chip
    from rooflines.catalogue.parts import Part

__all__ = [
    "MAIN_DTYPE",
    "ChipView",
    "DocumentView",
    "NumberView",
    "chip_views",
    "compared_numbers",
    "document_views",
    "used_sources",
]

NUMBERS = {
    "flops_per_s": ("dense peak", "FLOP/s"),
    "bytes_per_s": ("bandwidth", "B/s"),
    "capacity_bytes": ("capacity", "B"),
    "links": ("links", ""),
    "domain": ("most chips joined", ""),
    "ring_multiple": ("closes into a ring at multiples of", ""),
    "hop_latency_s": ("least latency of a hop", "s"),
    "typical_hop_latency_s": ("typical latency of a hop", "s"),
    "watts": ("design power", "W"),
    "usd_per_hour": ("price", "USD/h"),
    "fraction_of_peak": ("share of peak that was reached", ""),
    "math": ("share of the peak that is reached", ""),
    "memory": ("share of the memory's bandwidth that is reached", ""),
    "network": ("share of the network's bandwidth that is reached", ""),
    "overhead_s": ("fixed time of an operation", "s"),
}
"""The numbers of an entry by their keys: meaning and unit."""

WITHOUT_PREFIX = ("usd_per_hour", "watts")
"""Numbers that are written out although they have a unit."""

CONFIDENCE = {"vendor-quoted": "vendor, quoted"}
"""Texts for confidences whose key is not their text."""

MAIN_DTYPE = "bf16"

COMPARED = ("units", "memory", "networks", "power", "efficiency")
"""Parts that two chips are compared by; prices and measurements have no counterparts."""


@dataclass(frozen=True)
class NumberView:
    """A number of a chip.

    Attributes:
        part: The part of the chip that has it, such as "memory hbm".
        meaning: What is counted.
        value: The number [unit].
        unit: Its unit, without prefix.
        shown: The number as text, with its unit.
        sources: Its source: ids of documents, or any text.
        confidence: The kind of its source; empty if not stated.
        estimate: Whether it is an estimate.
        note: Remarks.
    """

    part: str
    meaning: str
    value: float
    unit: str
    shown: str
    sources: list[str]
    confidence: str
    estimate: bool
    note: str


class Cell(NamedTuple):
    """A cell of the summary: a number, None if the chip has none, and its text."""

    value: float | None
    shown: str


@dataclass(frozen=True)
class ChipView:
    """A chip: a row of the summary, and a section with all its numbers.

    Attributes:
        id: Its id in the catalogue.
        name: Its name; its id if it has none.
        vendor: Who makes it, if known.
        year: When it came out, if known.
        about: Vendor, year and status.
        search_text: The text that the page's filter searches.
        base: The chip that it is a variant of, if any.
        boosted: Whether its peaks are for a boost clock, which it may exceed.
        note: Remarks.
        summary: Peak, bandwidth, capacity, ridge and network bandwidth.
        numbers: Its numbers; of a variant whose base is listed too, only those that differ.
    """

    id: str
    name: str
    vendor: str | None
    year: int | None
    about: str
    search_text: str
    base: str | None
    boosted: bool
    note: str | None
    summary: list[Cell]
    numbers: list[NumberView]


@dataclass(frozen=True)
class DocumentView:
    """A document that numbers come from.

    Attributes:
        title: Its title.
        url: Its address, if any.
        about: Date and kind.
    """

    title: str
    url: str | None
    about: str


def chip_views(chips: Mapping[str, Chip]) -> dict[str, ChipView]:
    """The chips as the page shows them.

    Args:
        chips: Entries by id, variants resolved.

    Returns:
        One view for each, by id.
    """
    return {chip: _chip(chip, entry, chips.get(entry.base or "")) for chip, entry in chips.items()}


def _chip(chip: str, entry: Chip, base: Chip | None) -> ChipView:
    searched = (chip, entry.name, entry.vendor, *(entry.aliases or ()))
    inherited = set(_values(base)) if base else set()
    return ChipView(
        id=chip,
        name=entry.name or chip,
        vendor=entry.vendor,
        year=entry.year,
        about=" · ".join(str(value) for value in (entry.vendor, entry.year, entry.status) if value),
        search_text=" ".join(text or "" for text in searched).lower(),
        base=entry.base,
        boosted=entry.clock == "boost",
        note=entry.note,
        summary=_summary(entry),
        numbers=[
            _number(part, key, entry)
            for part in parts(entry)
            for key in _shown(part)
            if (_label(part), key, getattr(part.entry, key)) not in inherited
        ],
    )


def _values(chip: Chip) -> Iterator[tuple[str, str, float]]:
    """The numbers of a chip: name of the part, key and value."""
    for part in parts(chip):
        for key, value in _shown(part).items():
            yield _label(part), key, value


def _shown(part: Part) -> dict[str, float]:
    """The numbers of a part that have a row, in the order of the page."""
    values = numbers(part.entry)
    return {key: values[key] for key in NUMBERS if key in values}


def _summary(chip: Chip) -> list[Cell]:
    """Peak [FLOP/s], bandwidth [B/s], capacity [B], ridge [FLOP/B] and first network [B/s]."""
    peak = chip.units.get("matrix", {}).get(MAIN_DTYPE)
    memory = chip.memory.get(MAIN_MEMORY)
    bandwidth, size = (memory.bytes_per_s, memory.capacity_bytes) if memory else (None, None)
    ridge = peak.flops_per_s / bandwidth if peak and bandwidth else None
    network = next(iter(chip.networks.values()), None)
    return [
        _cell(peak.flops_per_s if peak else None, "FLOP/s"),
        _cell(bandwidth, "B/s"),
        Cell(size, "" if size is None else capacity(size)),
        Cell(ridge, f"{ridge or 0:,.0f}"),
        _cell(network.bytes_per_s * network.links if network else None, "B/s"),
    ]


def _cell(value: float | None, unit: str) -> Cell:
    return Cell(value, "" if value is None else quantity(value, unit))


def _label(part: Part) -> str:
    """The name of a part of a chip."""
    entry, name = part.entry, ", ".join(part.names)
    if isinstance(entry, Peak):
        unit, dtype = part.names
        return f"{unit} unit, {dtype}"
    if isinstance(entry, Level):
        return f"memory {name}" + (f" ({entry.technology})" if entry.technology else "")
    if isinstance(entry, Network):
        unlimited = ", unlimited" if entry.domain == UNLIMITED else ""
        return f"network {name} ({entry.topology}{unlimited})"
    if isinstance(entry, Price):
        return ", ".join(text for text in (entry.provider, entry.sku, entry.date) if text)
    if isinstance(entry, Measured):
        return entry.what
    return ", ".join((part.tree, *part.names))


def _text(key: str, value: float) -> str:
    """A number with its unit."""
    unit = NUMBERS[key][1]
    if key == "capacity_bytes":
        return capacity(value)
    return f"{value:,.10g} {unit}" if key in WITHOUT_PREFIX else quantity(value, unit)


def _number(part: Part, key: str, chip: Chip) -> NumberView:
    meaning, unit = NUMBERS[key]
    entry = part.entry
    value = numbers(entry)[key]
    remarks = entry if isinstance(entry, Sourced) else None
    confidence = (remarks and remarks.confidence) or ""
    notes = [remarks.note] if remarks and remarks.note else []
    if isinstance(entry, Peak) and entry.printed_with_sparsity:
        half = ", of which this is half" if entry.halved else ""
        notes.append(f"printed with sparsity: {quantity(entry.printed_with_sparsity, unit)}{half}")
    return NumberView(
        part=_label(part),
        meaning=meaning,
        value=value,
        unit=unit,
        shown=_text(key, value),
        sources=source_of(chip, entry, key),
        confidence=CONFIDENCE.get(confidence, confidence),
        estimate=chip.estimate or (remarks is not None and remarks.estimate),
        note="; ".join(notes),
    )


def compared_numbers(chips: Mapping[str, Chip]) -> dict[str, JSON]:
    """The numbers of chips as two of them are compared, those of a base included.

    Returns:
        By id the name and, by a path that chips share, meaning, value and text of every number.
    """
    return {
        chip: {
            "name": entry.name or chip,
            "numbers": {
                f"{part.path}.{key}": [
                    f"{_plain_label(part)}: {NUMBERS[key][0]}",
                    value,
                    _text(key, value),
                ]
                for part in parts(entry)
                if part.tree in COMPARED
                for key, value in _shown(part).items()
            },
        }
        for chip, entry in chips.items()
    }


def _plain_label(part: Part) -> str:
    """The name of a part without what may differ between chips."""
    if part.tree == "units":
        return _label(part)
    return " ".join(({"networks": "network"}.get(part.tree, part.tree), *part.names))


def document_views(sources: Mapping[str, JSON]) -> dict[str, DocumentView]:
    """The documents as the page lists them, by id."""
    return {
        name: DocumentView(
            str(document["title"]),
            document.get("url"),
            ", ".join(str(document[key]) for key in ("date", "kind") if document.get(key)),
        )
        for name, document in sources.items()
    }


def used_sources(chips: Mapping[str, Chip], sources: Mapping[str, JSON]) -> dict[str, JSON]:
    """The documents that numbers of these chips name, in the order of the catalogue."""
    named: set[str] = set()
    for chip in chips.values():
        for entry in (chip, *(part.entry for part in parts(chip))):
            source = entry.source if isinstance(entry, Sourced) else None
            for names in source.values() if isinstance(source, dict) else [source]:
                named.update([names] if isinstance(names, str) else names or [])
    return {name: document for name, document in sources.items() if name in named}
