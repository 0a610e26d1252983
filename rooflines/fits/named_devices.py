"""Devices named in a file with timings or counters, compared with the chip that was given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooflines.hardware.chip_catalogue import chip_entries

if TYPE_CHECKING:
    from pathlib import Path

HEAD_BYTES = 2**18
"""Bytes searched at the start [byte]."""

DEVICE = re.compile(
    r"\b(?:NVIDIA|AMD|Intel)(?: (?:Instinct|Tesla|GeForce|Data Center GPU|Gaudi))*"
    r"(?: RTX| GTX| Max)? ?[A-Z]{0,4} ?\d{2,4}[A-Za-z]*"
)
"""Device name, as drivers and profilers print it, up to its model number."""

MIN_STEM = 3
"""Least length at which a chip's stem tells chips apart [characters]."""


def device_note(path: Path, chip: str) -> str | None:
    """Note if a file's start names another device than a chip; None: it names none, or the same.

    Args:
        path: The file.
        chip: The chip's id; ids outside the catalogue are compared with nothing.
    """
    entry = chip_entries().get(chip)
    if entry is None:
        return None
    try:
        with path.open("rb") as file:
            text = file.read(HEAD_BYTES).decode("utf-8", errors="ignore")
    except OSError:
        return None
    given = _stem(entry.base or chip)
    stems = {_stem(name) for name in chip_entries()}
    devices = sorted({match[0] for match in DEVICE.finditer(text)})
    different = [
        device
        for device in devices
        if not _names(device, given)
        and any(_names(device, stem) for stem in stems if len(stem) >= MIN_STEM)
    ]
    if not different or len(different) < len(devices):
        return None
    return f"the file names {' and '.join(different)}, and the chip given is {chip}"


def _stem(chip: str) -> str:
    """Start of a chip's id up to its model number, without separators."""
    words = chip.split("-")
    count = next((n for n, word in enumerate(words, start=1) if any(map(str.isdigit, word))), 1)
    return "".join(words[:count])


def _names(device: str, stem: str) -> bool:
    """Check that a device's name has a chip's stem, and not a longer number."""
    name = re.sub(r"[^a-z0-9]", "", device.lower())
    return re.search(rf"{re.escape(stem)}(?!\d)", name) is not None
