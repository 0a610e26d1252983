"""Chip page: a row per chip, and all its numbers with sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.text import seconds, si
from rooflines.hardware.chip_parts import number_records
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.site.data_page import page_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.basics.yaml_file import JSON
    from rooflines.hardware.chip_parts import NumberRecord
    from rooflines.hardware.entries import Chip

WITHOUT_PREFIX = ("usd_per_hour", "watts")
"""Numbers written without a prefix although they have a unit."""

CONFIDENCE = {"vendor-quoted": "vendor, quoted"}
"""Texts for confidences that differ from their keys."""

MAIN_DTYPE = "bf16"

DIGITS = 4
"""Significant digits of a number with a prefix; its tooltip has all digits."""

COLUMNS: Mapping[str, tuple[str, float, str]] = {
    "chip": ("", 1, "id in commands and configs"),
    "name": ("", 1, "name; a variant has that of its base"),
    "vendor": ("", 1, "who makes it"),
    "year": ("", 1, "when it came out"),
    "bf16 peak": ("TFLOP/s", 1e12, "dense peak of the matrix unit"),
    "bandwidth": ("GB/s", 1e9, "of main memory"),
    "capacity": ("GB", 1e9, "of main memory that a program gets, as the device reports it"),
    "label": ("", 1, "capacity of main memory as it is printed"),
    "ridge": ("FLOP/B", 1, "bf16 peak of the matrix unit over the bandwidth of main memory"),
    "network": ("GB/s", 1e9, "of all links of the first network, one way"),
    "variant of": ("", 1, "chip that the numbers are of, but for those that differ"),
}
"""Columns of the table: displayed unit, its size in SI units, and meaning."""

MAX_CHIPS = 500
"""Rows shown at once [1]."""


def chip_table(chips: Mapping[str, Chip]) -> JSON:
    """Chip table, newest first, variants last; a column has one unit."""
    ordered = sorted(
        chips, key=lambda chip: (chips[chip].base is not None, -(chips[chip].year or 0))
    )
    rows = [[chip, *_summary(chip, chips[chip])] for chip in ordered]
    scaled = [
        [
            value / size if isinstance(value, float) else value
            for value, (_, size, _) in zip(row, COLUMNS.values(), strict=True)
        ]
        for row in rows
    ]
    about = {
        name: (f"{name}, {unit}" if unit else name, meaning)
        for name, (unit, _, meaning) in COLUMNS.items()
    }
    frame = pl.DataFrame(scaled, schema=list(COLUMNS), orient="row", infer_schema_length=None)
    return page_table(
        frame.with_columns(pl.selectors.float().round_sig_figs(DIGITS)),
        about,
        ("vendor",),
        MAX_CHIPS,
    )


def _summary(chip: str, entry: Chip) -> list[str | float | None]:
    """Values by `COLUMNS` without the id, in SI units."""
    peak = entry.units.get("matrix", {}).get(MAIN_DTYPE)
    memory = entry.memory.get(MAIN_MEMORY)
    bandwidth, size, label = (
        (memory.bytes_per_s, memory.capacity_bytes, memory.label) if memory else (None, None, None)
    )
    network = next(iter(entry.networks.values()), None)
    return [
        entry.name or chip,
        entry.vendor,
        None if entry.year is None else str(entry.year),
        peak.flops_per_s if peak else None,
        bandwidth,
        size,
        label,
        peak.flops_per_s / bandwidth if peak and bandwidth else None,
        network.bytes_per_s * network.links if network else None,
        entry.base,
    ]


def chip_details(chips: Mapping[str, Chip], sources: Mapping[str, JSON]) -> JSON:
    """All numbers of chips, and the documents that they cite.

    Returns:
        `chips`: by id, `remarks` and `numbers`, each from `_number`; a variant whose base is listed
        has only numbers that differ. `sources`: by id, a document's title, address, date and kind.
    """
    details = {chip: _details(entry, chips.get(entry.base or "")) for chip, entry in chips.items()}
    named = {
        name
        for detail in details.values()
        for number in detail["numbers"]
        for name in number["sources"]
    }
    return {
        "chips": details,
        "sources": {
            name: {
                "title": str(document["title"]),
                "url": document.get("url"),
                "date": ", ".join(
                    str(document[key]) for key in ("date", "kind") if document.get(key)
                ),
            }
            for name, document in sources.items()
            if name in named
        },
    }


def _details(entry: Chip, base: Chip | None) -> JSON:
    inherited = {_identity(number) for number in (number_records(base) if base else ())}
    boosted = "Peaks are for the boost clock, which this card may exceed: a time below the bound is"
    remarks = [
        f"A variant of {entry.base}; here are the numbers that differ." if base else None,
        f"{boosted} possible." if entry.clock == "boost" else None,
        entry.note,
    ]
    return {
        "remarks": [text for text in remarks if text],
        "numbers": [
            _number(number, estimate=entry.estimate is True)
            for number in number_records(entry)
            if _identity(number) not in inherited
        ],
    }


def _identity(number: NumberRecord) -> tuple[str, str, float]:
    """Part, meaning and value; a number inherited from the base has the same."""
    return number["part"], number["meaning"], number["value"]


def _text(number: NumberRecord) -> str:
    """A number with its unit."""
    key, value, unit = number["path"].rpartition(".")[2], number["value"], number["unit"]
    if key in WITHOUT_PREFIX:
        return f"{value:,.10g} {unit}"
    return with_unit(value, unit) + (f", label {number['label']}" if number["label"] else "")


def _number(number: NumberRecord, *, estimate: bool) -> JSON:
    """Number with its texts and sources; `estimate`: all the chip's numbers are estimated."""
    confidence = number["confidence"] or ""
    notes = [number["note"]] if number["note"] else []
    if sparse := number["printed_with_sparsity"]:
        half = ", of which this is half" if number["halved"] else ""
        notes.append(f"printed with sparsity: {with_unit(sparse, number['unit'])}{half}")
    return {
        "quantity": f"{number['part']}: {number['meaning']}",
        "text": _text(number),
        "exact": f"{number['value']} {number['unit']}",
        "sources": number["source"].split(", ") if number["source"] else [],
        "confidence": CONFIDENCE.get(confidence, confidence),
        "is_estimate": estimate or number["estimate"],
        "note": "; ".join(notes),
    }


def with_unit(value: float, unit: str) -> str:
    """Number as text with prefix and unit, such as 989 TFLOP/s.

    Args:
        value: The number [unit].
        unit: Its unit, without prefix; empty for a plain number.

    Returns:
        At most four digits; a plain number is written out, a time has a small prefix.
    """
    if not unit:
        return f"{value:,.10g}"
    if unit == "s" and value:
        return seconds(value)
    rounded = float(f"{value:.{DIGITS}g}")  # ties to even: 362.05 TFLOP/s is 362 TFLOP/s
    return si(rounded, unit, DIGITS)
