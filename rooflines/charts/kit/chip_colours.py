"""Chip colours: one per chip, the same in all charts and configs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CHIPS: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)
"""Light and dark colours of catalogue chips, by vendor.

Google's are blue, NVIDIA's warm, AMD's violet, those of the others green or pink; a TPU7x and an
A100 SXM 80GB have the colours that they have had. Contrast with the background is 4.5 or more,
but of those in `DARKER` 3.
"""

DARKER = {
    "#3B82F6": "#2B71E4",
    "#0E8FB0": "#03809F",
    "#E8760A": "#B95C02",
    "#A97B00": "#986F04",
    "#C04FA8": "#BA49A2",
}
"""Letters in these colours are darker: their contrast is 4.5."""

PLACES = {
    chip: place
    for place, chip in enumerate(chip for vendor_chips in CHIPS.values() for chip in vendor_chips)
}
"""Position of each catalogue chip in the colour order."""


def shades(ink: str, *, dark: bool) -> list[str]:
    """Colours of catalogue chips in order, then of their variants in the same order.

    Args:
        ink: Text colour; a variant's colour is a third of the way from its base's to it.
        dark: Whether the background is dark.
    """
    colours = [pair[dark] for vendor_chips in CHIPS.values() for pair in vendor_chips.values()]
    return [*colours, *(_towards(ink, colour) for colour in colours)]


def in_letters(colours: Iterable[str]) -> list[str]:
    """Colours for text: darker where contrast needs it."""
    return [DARKER.get(colour, colour) for colour in colours]


def chip_order(vendors: Mapping[str, str | None]) -> list[str]:
    """Chips in the order of `shades`: the catalogue's, then others at variant positions.

    A variant, `<base>-<variant>`, has its base's variant position. Any other chip takes the variant
    position of one of its vendor's chips, by a checksum of its id. If a position is taken, the
    later chip takes the next.

    Args:
        vendors: Vendors by chip of a chart.

    Returns:
        Ids, with placeholder names at unused positions.
    """
    taken = {place: chip for chip, place in PLACES.items()}
    for chip in (chip for chip in vendors if chip not in PLACES):
        place = len(PLACES) + PLACES[_base_of(chip, vendors[chip])]
        while place in taken:
            place += 1
        taken[place] = chip
    return [taken.get(place, f"\u200b{place}") for place in range(max(taken) + 1)]


def _base_of(chip: str, vendor: str | None) -> str:
    """Catalogue chip whose variant position a chip takes."""
    bases = [base for base in PLACES if chip.startswith(f"{base}-")]
    alike = list(CHIPS.get(vendor or "", PLACES))
    return max(bases, key=len, default=alike[crc32(chip.encode()) % len(alike)])


def _towards(ink: str, colour: str) -> str:
    """Mix colours, `#RRGGBB`: (2 * colour + ink) / 3."""
    pairs = zip(bytes.fromhex(colour[1:]), bytes.fromhex(ink[1:]), strict=True)
    return f"#{bytes((2 * a + b) // 3 for a, b in pairs).hex().upper()}"
