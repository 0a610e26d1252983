"""What the page of chips shows: every number of every chip, with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rooflines.catalogue.entries import MAIN_MEMORY, Sourced
from rooflines.catalogue.parts import described, parts, records, source_of
from rooflines.site.text import capacity, quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.basics.yaml_file import JSON
    from rooflines.catalogue.entries import Chip
    from rooflines.catalogue.parts import ChipPart, NumberRecord

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
    shared = described(base) if base else ()
    inherited = {(number["part"], number["meaning"], number["value"]) for number in shared}
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
            _number(part, number, entry)
            for part in parts(entry)
            for number in records(entry, part)
            if (number["part"], number["meaning"], number["value"]) not in inherited
        ],
    )


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


def _text(number: NumberRecord) -> str:
    """A number with its unit."""
    key, value, unit = number["path"].rpartition(".")[2], number["value"], number["unit"]
    if key == "capacity_bytes":
        return capacity(value)
    return f"{value:,.10g} {unit}" if key in WITHOUT_PREFIX else quantity(value, unit)


def _number(part: ChipPart, number: NumberRecord, chip: Chip) -> NumberView:
    confidence = number["confidence"] or ""
    notes = [number["note"]] if number["note"] else []
    if sparse := number["printed_with_sparsity"]:
        half = ", of which this is half" if number["halved"] else ""
        notes.append(f"printed with sparsity: {quantity(sparse, number['unit'])}{half}")
    return NumberView(
        part=number["part"],
        meaning=number["meaning"],
        value=number["value"],
        unit=number["unit"],
        shown=_text(number),
        sources=source_of(chip, part.entry, number["path"].rpartition(".")[2]),
        confidence=CONFIDENCE.get(confidence, confidence),
        estimate=chip.estimate or number["estimate"],
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
                number["path"]: [
                    f"{_plain_label(part)}: {number['meaning']}",
                    number["value"],
                    _text(number),
                ]
                for part in parts(entry)
                if part.tree in COMPARED
                for number in records(entry, part)
            },
        }
        for chip, entry in chips.items()
    }


def _plain_label(part: ChipPart) -> str:
    """The name of a part without what may differ between chips."""
    if part.tree == "units":
        return part.label
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
