"""Chips in a trace: by device name, else by compute capability, processors and memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rooflines.answers.name_search import find_chip
from rooflines.hardware.chip_catalogue import chip_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooflines.hardware.entries import Chip
    from rooflines.traces.trace_records import TracedDevice

DEVICE_NAMES = {
    "NVIDIA A100-PG509-200": "a100-sxm-40gb",
    "Tesla V100-SXM2-16GB": "v100-sxm2-32gb",
    "Tesla V100-DGXS-32GB": "v100-sxm2-32gb",
    "AMD Instinct MI210": "mi210",
    "AMD Instinct MI300X VF": "mi300x",
    "NVIDIA B300 SXM6 AC": "b300",
}
"""Chips by driver names that the catalogue lacks."""

GIGA = 1e9
"""Bytes in a gigabyte [byte]."""

DEVICE_NUMBERS: Mapping[tuple[int | None, int | None, int | None, int], str] = {
    (9, 4, 304, 206): "mi300x",
    (9, 5, 256, 309): "mi355x",
    (9, 4, 304, 274): "mi325x",
    (9, 4, 304, 275): "mi325x",
}
"""Chips by compute capability, processors and whole gigabytes, for devices without a name."""


class TracedChip(NamedTuple):
    """A chip, and what told it.

    Attributes:
        chip: Its id; None: not in the catalogue.
        source: What told it, or why nothing does.
    """

    chip: str | None
    source: str


def traced_chip(
    devices: Iterable[TracedDevice], chips: Mapping[str, Chip] | None = None
) -> TracedChip:
    """Chip that ran a trace, by the devices that its file describes.

    Args:
        devices: The devices; the first that names a chip counts.
        chips: Entries by id; None: those in the catalogue.
    """
    entries = chip_entries() if chips is None else chips
    nameless = ""
    for device in devices:
        name = device.name.strip()
        if name in DEVICE_NAMES:
            return TracedChip(DEVICE_NAMES[name], f"device {name}")
        if name and (match := find_chip(name, entries)):
            return TracedChip(match.name, f"device {name}")
        gigabytes = round((device.memory_bytes or 0) / GIGA)
        numbers = (device.major, device.minor, device.processors, gigabytes)
        chip = DEVICE_NUMBERS.get(numbers)
        if chip is not None:
            source = f"a device without a name, {numbers[2]} processors and {gigabytes} GB"
            return TracedChip(chip, source)
        nameless = nameless or (
            f"device {name} is no chip in the catalogue" if name else "the file names no device"
        )
    return TracedChip(None, nameless or "the file names no device")
