"""The colour of every chip: one of its own, the same in all charts of all configs."""

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
"""Light and dark colours of the chips of the catalogue, by vendor.

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
"""Where the catalogue's chips are in the order of all."""


def shades(ink: str, *, dark: bool) -> list[str]:
    """The colours of the catalogue's chips in the order of all, then those of their variants.

    Args:
        ink: The colour of text; a variant's is a third of the way from its base's to this.
        dark: Whether the background is dark.
    """
    colours = [pair[dark] for vendor_chips in CHIPS.values() for pair in vendor_chips.values()]
    return [*colours, *(_towards(ink, colour) for colour in colours)]


def in_letters(colours: Iterable[str]) -> list[str]:
    """Colours as text has them."""
    return [DARKER.get(colour, colour) for colour in colours]


def chip_order(vendors: Mapping[str, str | None]) -> list[str]:
    """All chips in the order of `shades`: those of the catalogue, then others at their places.

    A variant has a place of its base, as its id says: `<base>-<variant>`. Any other chip has that
    of a variant of one of its vendor's chips, by a checksum of its id. Of two in one chart with
    the same place the later takes the next.

    Args:
        vendors: The chips of a chart with their vendors.

    Returns:
        Ids, and names without meaning at places that no chip of the chart has.
    """
    taken = {place: chip for chip, place in PLACES.items()}
    for chip in (chip for chip in vendors if chip not in PLACES):
        place = len(PLACES) + PLACES[_base_of(chip, vendors[chip])]
        while place in taken:
            place += 1
        taken[place] = chip
    return [taken.get(place, f"\u200b{place}") for place in range(max(taken) + 1)]


def _base_of(chip: str, vendor: str | None) -> str:
    """The chip of the catalogue whose variant a chip looks like."""
    bases = [base for base in PLACES if chip.startswith(f"{base}-")]
    alike = list(CHIPS.get(vendor or "", PLACES))
    return max(bases, key=len, default=alike[crc32(chip.encode()) % len(alike)])


def _towards(ink: str, colour: str) -> str:
    """The colour a third of the way to another, `#RRGGBB` each."""
    pairs = zip(bytes.fromhex(colour[1:]), bytes.fromhex(ink[1:]), strict=True)
    return f"#{bytes((2 * a + b) // 3 for a, b in pairs).hex().upper()}"
