"""Devices named in a file with timings or counters, compared with the chip that was given."""

from __future__ import annotations

import csv
import gzip
import re
from contextlib import suppress
from itertools import combinations
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.file_kinds import file_kind
from rooflines.basics.files import GZIP, READ_ERRORS, scan_parquet
from rooflines.hardware.chip_catalogue import chip_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rooflines.hardware.entries import Chip

HEAD_BYTES = 2**18
"""Bytes searched at the start [byte]."""

DEVICE = re.compile(
    r"\b(?:NVIDIA|AMD|Intel)(?: (?:Instinct|Tesla|GeForce|Data Center GPU|Gaudi))*"
    r"(?: RTX| GTX| Max)? ?[A-Z]{0,4} ?\d{2,4}[A-Za-z]*"
)
"""Device name, as drivers and profilers print it, up to its model number."""

DEVICE_KEYS = (
    "accelerator",
    "device",
    "device_name",
    "gpu",
    "gpu_model",
    "gpu_name",
    "gpu_type",
    "hardware",
    "hw",
    "product_name",
)
"""JSON keys and table columns with a device's name, in lower case."""

KEYED = re.compile(rf'(?i)"(?:{"|".join(DEVICE_KEYS)})"\s*:\s*"([^"\n]{{2,80}})"')
"""JSON entry with a device's name."""

CAPABILITY = re.compile(r"\bCC (\d{1,2}\.\d)\b")
"""Compute capability in Nsight Compute's text."""

CAPABILITIES = {
    "7.0": "Volta",
    "7.5": "Turing",
    "8.0": "Ampere",
    "8.6": "Ampere",
    "8.9": "Ada",
    "9.0": "Hopper",
    "10.0": "Blackwell",
    "10.3": "Blackwell",
    "12.0": "Blackwell",
    "12.1": "Blackwell",
}
"""NVIDIA's generations by compute capability."""

GFX = re.compile(r"\bgfx\d[0-9a-f]{2,3}\b")
"""Architecture name on AMD devices."""

ARCHITECTURES = {"gfx90a": "CDNA 2", "gfx942": "CDNA 3", "gfx950": "CDNA 4"}
"""AMD's generations by architecture."""

PROFILER_VENDORS = {"ncu": "NVIDIA", "rocprof": "AMD", "hipblaslt": "AMD"}
"""Device makers by a file kind's prefix; its tool serves no other devices."""

SIBLINGS = ("sysinfo.csv", "*agent_info.csv")
"""Files beside counters in which AMD's profilers name the device."""

MIN_STEM = 3
"""Least length at which a chip's stem tells chips apart [characters]."""

CAPABILITY_LINES = 400
"""Lines at a table's beginning that are searched for a compute capability [1]."""


def device_note(path: Path, chip: str) -> str | None:
    """Note if a file names another device than a chip; None: it names none, or the same.

    A name counts first, in the file or in one that a profiler writes beside it; then the
    architecture; then the maker whose devices the profiler serves.

    Args:
        path: The file.
        chip: The chip's id; ids outside the catalogue are compared with nothing.
    """
    entry = chip_entries().get(chip)
    if entry is None:
        return None
    texts = [_head(file) for file in (path, *_siblings(path))]
    devices = sorted({name for text in texts for name in _names_in(text)} | {*_columns(path)})
    known_devices = [device for device in devices if _is_known(device)]
    if known_devices:
        given = _stem(entry.base or chip)
        if any(_has_stem(device, given) for device in known_devices):
            return None
        shortest = [
            device
            for device in known_devices
            if not any(
                device != shorter and device.startswith(shorter) for shorter in known_devices
            )
        ]
        return _note("names", shortest, chip)
    return _architecture_note(texts, entry, chip) or _vendor_note(path, entry, chip)


def _note(verb: str, words: Iterable[str], chip: str) -> str:
    return f"the file {verb} {' and '.join(words)}, and the chip given is {chip}"


def _architecture_note(texts: Iterable[str], entry: Chip, chip: str) -> str | None:
    """Note if the file's compute capability or architecture has another generation."""
    if entry.generation is None:
        return None
    generations_by_name = {
        name: generations[name]
        for text in texts
        for names, generations in (
            (_capabilities(text), CAPABILITIES),
            (GFX.findall(text), ARCHITECTURES),
        )
        for name in names
        if name in generations
    }
    if not generations_by_name or entry.generation in generations_by_name.values():
        return None
    words = (
        f"{'compute capability ' if name in CAPABILITIES else ''}{name} ({generation})"
        for name, generation in sorted(generations_by_name.items())
    )
    return _note("names", words, chip)


def _vendor_note(path: Path, entry: Chip, chip: str) -> str | None:
    """Note if the file's profiler serves another maker's devices."""
    kind = file_kind(path)
    vendors = PROFILER_VENDORS.items() if kind else ()
    vendor = next((name for start, name in vendors if kind and kind.id.startswith(start)), None)
    if kind is None or None in (vendor, entry.vendor) or vendor == entry.vendor:
        return None
    return f"the file is {kind.name}, for devices of {vendor}, and the chip given is {chip}"


def _capabilities(text: str) -> Iterator[str]:
    """Compute capabilities in a table's column CC, or in text."""
    yield from CAPABILITY.findall(text)
    place = None
    for line in text.splitlines()[:CAPABILITY_LINES]:
        with suppress(csv.Error, StopIteration):
            cells = next(csv.reader([line], skipinitialspace=True))
            if "CC" in cells and "Kernel Name" in cells:
                place = cells.index("CC")
            elif place is not None and place < len(cells):
                yield cells[place].strip()


def _names_in(text: str) -> Iterator[str]:
    """Device names in a text: with their maker, or by a key or column."""
    yield from (match[0] for match in DEVICE.finditer(text))
    yield from (match[1] for match in KEYED.finditer(text))
    lines = text.splitlines()[:CAPABILITY_LINES]
    place = None
    for line in lines:
        with suppress(csv.Error, StopIteration):
            cells = [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True))]
            if place is None:
                names = (n for n, cell in enumerate(cells) if cell.lower() in DEVICE_KEYS)
                place = next(names, None)
            elif place < len(cells):
                yield cells[place]


def _columns(path: Path) -> set[str]:
    """Device names in a Parquet file's columns."""
    if path.suffix != ".parquet":
        return set()
    with suppress(OSError, pl.exceptions.PolarsError):
        table = scan_parquet(path)
        names = [name for name in table.collect_schema() if name.lower() in DEVICE_KEYS]
        columns = table.select(names).collect() if names else pl.DataFrame()
        return {str(value) for column in columns for value in column.unique()}
    return set()


def _head(path: Path) -> str:
    """Text at a file's start, unpacked; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            is_gzip = file.read(len(GZIP)) == GZIP
        with gzip.open(path) if is_gzip else path.open("rb") as file:
            return file.read(HEAD_BYTES).decode("utf-8", errors="ignore")
    except (*READ_ERRORS, ValueError):
        return ""


def _siblings(path: Path) -> list[Path]:
    """Files beside a profiler's counters that name the device."""
    kind = file_kind(path)
    if kind is None or not kind.id.startswith("rocprof"):
        return []
    with suppress(OSError, ValueError):
        return [file for pattern in SIBLINGS for file in sorted(path.parent.glob(pattern))]
    return []


def _stem(chip: str) -> str:
    """A chip's id up to its model number, without separators."""
    words = chip.split("-")
    count = next((n for n, word in enumerate(words, start=1) if any(map(str.isdigit, word))), 1)
    return "".join(words[:count])


def _is_known(device: str) -> bool:
    """Check that a name has a catalogue chip's stem."""
    stems = {_stem(name) for name in chip_entries()}
    return any(_has_stem(device, stem) for stem in stems if len(stem) >= MIN_STEM)


def _has_stem(device: str, stem: str) -> bool:
    """Check that words in a device's name begin with a chip's stem, without a longer number."""
    words = re.findall(r"[a-z0-9]+", device.lower())
    spans = combinations(range(len(words) + 1), 2)
    parts = ("".join(words[start:end]) for start, end in spans)
    return any(re.match(rf"{re.escape(stem)}(?!\d)", part) for part in parts)
