"""The colour of every chip: one of its own, the same in all charts of all configs."""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

CHIPS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Google": {
        "tpu-v2": ("#5970BA", "#A6B0FE"),
        "tpu-v3": ("#014F65", "#57DBF5"),
        "tpu-v4": ("#225EE2", "#6381B6"),
        "tpu-v5e": ("#1E3A8A", "#C3DAFF"),
        "tpu-v5p": ("#0E8FB0", "#35BFD8"),
        "tpu-v6e": ("#3B82F6", "#4C8DF6"),
        "tpu-7x": ("#0B7A5E", "#37AE89"),
    },
    "NVIDIA": {
        "v100-sxm2-32gb": ("#4E4C14", "#999E2B"),
        "v100-pcie-32gb": ("#984653", "#D67682"),
        "t4": ("#915955", "#FE5B43"),
        "a100-sxm-80gb": ("#6B7280", "#9AA5B4"),
        "a100-sxm-40gb": ("#7C252E", "#EC8578"),
        "a100-pcie-80gb": ("#672C16", "#EC4803"),
        "a100-pcie-40gb": ("#9F5628", "#FFD0A7"),
        "a30": ("#D12112", "#DCA38D"),
        "a10": ("#8F0634", "#B4787E"),
        "a40": ("#7F0500", "#C46955"),
        "l4": ("#7C760D", "#E2E516"),
        "l40": ("#B75C26", "#FFA24F"),
        "l40s": ("#78424A", "#C95E6F"),
        "rtx-4090": ("#5B2730", "#EE3F69"),
        "h100-sxm": ("#A3231C", "#FFB3A3"),
        "h100-pcie": ("#CB4661", "#C68990"),
        "h100-nvl": ("#845A36", "#AE7522"),
        "h200-sxm": ("#A97B00", "#E3C04A"),
        "h200-nvl": ("#CB144E", "#FA7386"),
        "h20": ("#7B3405", "#BA866B"),
        "h800": ("#89733E", "#C1A909"),
        "gh200-96gb": ("#6B6F3A", "#9C9256"),
        "gh200-144gb": ("#710127", "#FD93A1"),
        "b100": ("#68343B", "#DF5C7D"),
        "b200": ("#E8760A", "#E8811F"),
        "gb200": ("#AC5E62", "#E14C4B"),
        "b300": ("#7B5D03", "#BBB078"),
        "gb300": ("#533600", "#FDDA88"),
        "rubin": ("#B34257", "#FB5986"),
        "rubin-cpx": ("#6D4C1F", "#BB9A57"),
        "rtx-5090": ("#854835", "#CD620F"),
        "rtx-pro-6000-ws": ("#D24510", "#FF9470"),
        "rtx-pro-6000-server": ("#9B6B4E", "#AA765D"),
        "gb10": ("#DE2E43", "#DE949D"),
    },
    "AMD": {
        "mi210": ("#A14AD5", "#AA62D0"),
        "mi250x": ("#614073", "#CFB3FE"),
        "mi300a": ("#6A019F", "#9462F4"),
        "mi300x": ("#C04FA8", "#D878C4"),
        "mi325x": ("#472D5B", "#F0BAFA"),
        "mi350x": ("#91037B", "#A96D95"),
        "mi355x": ("#6D4BC3", "#A58BF0"),
        "mi455x": ("#73206D", "#FDA2ED"),
    },
    "Intel": {
        "gaudi2": ("#167915", "#56FE8A"),
        "gaudi3": ("#164524", "#A5CA9B"),
        "max-1550": ("#5E7F3C", "#A1FA62"),
        "arc-pro-b60": ("#056401", "#20BC40"),
    },
    "AWS": {
        "trainium1": ("#5A5D28", "#9FBF06"),
        "inferentia2": ("#527F01", "#CAE1A9"),
        "trainium2": ("#3B3E02", "#758B25"),
        "trainium3": ("#4E6D28", "#B0E461"),
    },
    "Microsoft": {
        "maia-200": ("#006065", "#5EEBE2"),
    },
    "Meta": {
        "mtia-300": ("#005241", "#4D8F7B"),
        "mtia-400": ("#51805E", "#52D886"),
        "mtia-450": ("#0F5C31", "#0A994E"),
        "mtia-500": ("#018743", "#9FF3CD"),
    },
    "Huawei": {
        "ascend-910c": ("#691248", "#FFC6E5"),
        "ascend-950pr": ("#AB017C", "#DF419B"),
        "ascend-950dt": ("#9E6184", "#FF8ACF"),
    },
}
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

PLACES = {chip: place for place, chip in enumerate(chip for of in CHIPS.values() for chip in of)}
"""Where the catalogue's chips are in the order of all."""


def shades(ink: str, *, dark: bool) -> list[str]:
    """The colours of the catalogue's chips in the order of all, then those of their variants.

    Args:
        ink: The colour of text; a variant's is a third of the way from its base's to this.
        dark: Whether the background is dark.
    """
    own = [pair[dark] for of_vendor in CHIPS.values() for pair in of_vendor.values()]
    return [*own, *(_towards(ink, colour) for colour in own)]


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
