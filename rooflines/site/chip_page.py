"""What the page of chips shows: every number of every chip, with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.catalogue.chips import source_of
from rooflines.catalogue.entries import Chip
from rooflines.site.text import quantity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.basics.yaml_file import JSON

__all__ = ["ChipView", "DocumentView", "NumberView", "chip_views", "document_views", "used_sources"]

NUMBERS = {
    "flops_per_s": ("dense peak", "FLOP/s"),
    "bytes_per_s": ("bandwidth", "B/s"),
    "capacity_bytes": ("capacity", "B"),
    "links": ("links", ""),
    "domain": ("most chips joined", ""),
    "ring_multiple": ("closes into a ring at multiples of", ""),
    "hop_latency_s": ("latency of a hop", "s"),
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

MAIN_MEMORY, MAIN_DTYPE = "hbm", "bf16"


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


def chip_views(chips: Mapping[str, JSON]) -> dict[str, ChipView]:
    """The chips as the page shows them.

    Args:
        chips: Entries by id, variants resolved.

    Returns:
        One view for each, by id.
    """
    return {
        chip: _chip(chip, entry, chips.get(entry.get("base", ""))) for chip, entry in chips.items()
    }


def _chip(chip: str, entry: JSON, base: JSON | None) -> ChipView:
    name, vendor, year = entry.get("name") or chip, entry.get("vendor"), entry.get("year")
    searched = (chip, entry.get("name"), vendor, *(entry.get("aliases") or ()))
    inherited = {(part, key, holder[key]) for part, key, holder in _numbers(base or {})}
    return ChipView(
        id=chip,
        name=name,
        vendor=vendor,
        year=year,
        about=" · ".join(str(value) for value in (vendor, year, entry.get("status")) if value),
        search_text=" ".join(str(text or "") for text in searched).lower(),
        base=entry.get("base"),
        note=entry.get("note"),
        summary=_summary(Chip.model_validate(entry)),
        numbers=[
            _number(part, key, holder, entry)
            for part, key, holder in _numbers(entry)
            if (part, key, holder[key]) not in inherited
        ],
    )


def _summary(chip: Chip) -> list[Cell]:
    """Peak [FLOP/s], bandwidth [B/s], capacity [B], ridge [FLOP/B] and first network [B/s]."""
    peak = chip.units.get("matrix", {}).get(MAIN_DTYPE)
    memory = chip.memory.get(MAIN_MEMORY)
    bandwidth = memory.bytes_per_s if memory else None
    ridge = peak.flops_per_s / bandwidth if peak and bandwidth else None
    network = next(iter(chip.networks.values()), None)
    return [
        _cell(peak.flops_per_s if peak else None, "FLOP/s"),
        _cell(bandwidth, "B/s"),
        _cell(memory.capacity_bytes if memory else None, "B"),
        Cell(ridge, f"{ridge or 0:,.0f}"),
        _cell(network.bytes_per_s * network.links if network else None, "B/s"),
    ]


def _cell(value: float | None, unit: str) -> Cell:
    return Cell(value, "" if value is None else quantity(value, unit))


def _parts(entry: JSON) -> Iterator[tuple[str, JSON]]:
    """The parts of a chip that hold numbers, with their names."""
    for unit, peaks in entry.get("units", {}).items():
        for dtype, peak in peaks.items():
            yield f"{unit} unit, {dtype}", peak
    for name, level in entry.get("memory", {}).items():
        technology = f" ({level['technology']})" if "technology" in level else ""
        yield f"memory {name}{technology}", level
    for name, network in entry.get("networks", {}).items():
        yield f"network {name} ({network['topology']})", network
    if "power" in entry:
        yield "power", entry["power"]
    for price in entry.get("prices") or ():
        offer = (price.get(key) for key in ("provider", "sku", "date"))
        yield ", ".join(str(value) for value in offer if value), price
    for measured in entry.get("measured") or ():
        yield measured["what"], measured
    if entry.get("efficiency"):
        yield "efficiency", entry["efficiency"]
    for dtype, calibration in (entry.get("calibration") or {}).items():
        yield f"calibration, {dtype}", calibration


def _numbers(entry: JSON) -> Iterator[tuple[str, str, JSON]]:
    """The numbers of a chip: name of the part, key, and the part that has the key."""
    for part, holder in _parts(entry):
        for key in NUMBERS:
            if isinstance(holder.get(key), int | float):
                yield part, key, holder


def _number(part: str, key: str, holder: JSON, entry: JSON) -> NumberView:
    meaning, unit = NUMBERS[key]
    value = holder[key]
    source = source_of(holder, key) or entry.get("source")
    confidence = str(holder.get("confidence") or "")
    notes = [str(holder["note"])] if holder.get("note") else []
    sparse = holder.get("printed_with_sparsity") if key == "flops_per_s" else None
    if sparse:
        half = ", of which this is half" if holder.get("halved") else ""
        notes.append(f"printed with sparsity: {quantity(sparse, unit)}{half}")
    return NumberView(
        part=part,
        meaning=meaning,
        value=value,
        unit=unit,
        shown=f"{value:,.10g} {unit}" if key in WITHOUT_PREFIX else quantity(value, unit),
        sources=[] if isinstance(source, dict) else _names(source),
        confidence=CONFIDENCE.get(confidence, confidence),
        estimate=bool(holder.get("estimate") or entry.get("estimate")),
        note="; ".join(notes),
    )


def _names(source: str | list[str] | None) -> list[str]:
    return [source] if isinstance(source, str) else source or []


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


def used_sources(chips: Mapping[str, JSON], sources: Mapping[str, Any]) -> dict[str, Any]:
    """The documents that numbers of these chips name, in the order of the catalogue."""
    named: set[str] = set()
    for entry in chips.values():
        for holder in (entry, *(holder for _, holder in _parts(entry))):
            source = holder.get("source")
            for names in source.values() if isinstance(source, dict) else [source]:
                named.update(_names(names))
    return {name: document for name, document in sources.items() if name in named}
