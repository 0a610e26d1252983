"""What the page of chips shows: a row for every chip, and all its numbers with their sources."""

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
"""Numbers that are written out although they have a unit."""

CONFIDENCE = {"vendor-quoted": "vendor, quoted"}
"""Texts for confidences whose key is not their text."""

MAIN_DTYPE = "bf16"

DIGITS = 4
"""Significant digits of a number with a prefix; its tooltip has all of them."""

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
"""Columns of the table, with the unit that they are shown in, its size in SI units, and meaning."""

MOST_CHIPS = 500
"""Rows shown at once [1]."""


def chip_table(chips: Mapping[str, Chip]) -> JSON:
    """The table of chips, newest first, each number in one unit; variants come last."""
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
        MOST_CHIPS,
    )


def _summary(chip: str, entry: Chip) -> list[str | float | None]:
    """A row of `COLUMNS` without the id, in SI units."""
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
    """All numbers of chips, and the documents that they name.

    Returns:
        `chips`, by id what there is to say, and of each number its part and meaning, its text,
        its value with unit, ids of its sources, the kind of source, whether it is an estimate, and
        remarks; of a variant whose base is listed the numbers that differ. `sources`, by id the
        title, address, and date and kind of a document.
    """
    details = {chip: _details(each, chips.get(each.base or "")) for chip, each in chips.items()}
    named = {name for of in details.values() for number in of["numbers"] for name in number[3]}
    return {
        "chips": details,
        "sources": {
            name: [
                str(document["title"]),
                document.get("url"),
                ", ".join(str(document[key]) for key in ("date", "kind") if document.get(key)),
            ]
            for name, document in sources.items()
            if name in named
        },
    }


def _details(entry: Chip, base: Chip | None) -> JSON:
    inherited = {_identity(number) for number in (number_records(base) if base else ())}
    boosted = "Peaks are for the boost clock, which this card may exceed: a time below the bound is"
    said = [
        f"A variant of {entry.base}; here are the numbers that differ." if base else None,
        f"{boosted} possible." if entry.clock == "boost" else None,
        entry.note,
    ]
    return {
        "about": [text for text in said if text],
        "numbers": [
            _number(number, estimate=entry.estimate is True)
            for number in number_records(entry)
            if _identity(number) not in inherited
        ],
    }


def _identity(number: NumberRecord) -> tuple[str, str, float]:
    """What a variant's number has in common with that of its base, if it is inherited."""
    return number["part"], number["meaning"], number["value"]


def _text(number: NumberRecord) -> str:
    """A number with its unit."""
    key, value, unit = number["path"].rpartition(".")[2], number["value"], number["unit"]
    if key in WITHOUT_PREFIX:
        return f"{value:,.10g} {unit}"
    return with_unit(value, unit) + (f", label {number['label']}" if number["label"] else "")


def _number(number: NumberRecord, *, estimate: bool) -> list[object]:
    """A number, as `chip_details` has it, perhaps of a chip that is an estimate."""
    confidence = number["confidence"] or ""
    notes = [number["note"]] if number["note"] else []
    if sparse := number["printed_with_sparsity"]:
        half = ", of which this is half" if number["halved"] else ""
        notes.append(f"printed with sparsity: {with_unit(sparse, number['unit'])}{half}")
    return [
        f"{number['part']}: {number['meaning']}",
        _text(number),
        f"{number['value']} {number['unit']}",
        number["source"].split(", ") if number["source"] else [],
        CONFIDENCE.get(confidence, confidence),
        estimate or number["estimate"],
        "; ".join(notes),
    ]


def with_unit(value: float, unit: str) -> str:
    """A number with a prefix and a unit, such as 989 TFLOP/s.

    Args:
        value: The number [unit].
        unit: Its unit, without prefix; empty for a plain number.

    Returns:
        At most four digits of it; a plain number is written out, a time has a small prefix.
    """
    if not unit:
        return f"{value:,.10g}"
    if unit == "s" and value:
        return seconds(value)
    rounded = float(f"{value:.{DIGITS}g}")  # ties to even: 362.05 TFLOP/s is 362 TFLOP/s
    return si(rounded, unit, DIGITS)
