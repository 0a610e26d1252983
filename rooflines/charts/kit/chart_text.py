"""Text in charts: its width, shortening and wrapping, and names of chips, models, sizes and splits.

Widths are measured in the font that the pictures are drawn in.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.models.library import model_entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from PIL import ImageFont

FONTS = Path(__file__).parent / "fonts"
FACES = {False: "Inter-Regular.ttf", True: "Inter-SemiBold.ttf"}

FONT_SIZE = 100
"""Font size that widths are measured at [px]."""

MAX_LISTED = 3
"""Longest list that is written in full even if its numbers double [1]."""

PARTS = {
    "hbm": "HBM",
    "nvlink": "NVLink",
    "infiniband": "InfiniBand",
    "ici": "ICI link",
    "pcie": "PCIe",
    "neuronlink": "NeuronLink",
    "roce": "RoCE",
}


@cache
def _face(*, bold: bool) -> ImageFont.FreeTypeFont:
    from PIL import ImageFont  # noqa: PLC0415, planning measures no text

    return ImageFont.truetype(str(FONTS / FACES[bold]), FONT_SIZE)


@cache
def width_em(text: str, *, bold: bool = False) -> float:
    """Text width in the vendored font [em]."""
    return float(_face(bold=bold).getlength(text)) / FONT_SIZE


def shorten(text: str, max_width: float, *, bold: bool = False, tail: bool = False) -> str:
    """Shorten a line to a width, with an ellipsis for the missing part.

    Args:
        text: One line.
        max_width: Available width [em].
        bold: Whether it is set in the heavier weight.
        tail: Keep the end too, where names often differ, and words with digits if the rest fits.

    Returns:
        The text itself if it fits.
    """
    if width_em(text, bold=bold) <= max_width:
        return text
    if tail and (short := _shorten_between_numbers(text, max_width, bold=bold)):
        return short
    fits, upper = 0, len(text) - 1
    while fits < upper:
        count = (fits + upper + 1) // 2
        if width_em(_elided(text, count, tail=tail), bold=bold) <= max_width:
            fits = count
        else:
            upper = count - 1
    return _elided(text, fits, tail=tail)


def with_value(name: str, value: str, max_width: float) -> str:
    """Bold label `name · value` within a width [em]; the name is shortened to fit."""
    tail = f" · {value}"
    return shorten(name, max_width - width_em(tail, bold=True), bold=True, tail=True) + tail


def _shorten_between_numbers(text: str, max_width: float, *, bold: bool) -> str | None:
    """Shorten a name at one place, keeping words with digits; None if it stays too long.

    The first word is kept whole too.
    """
    fixed = {at for word in re.finditer(r"\S*\d\S*", text) for at in range(*word.span())}
    fixed.update(range(text.find(" ")))
    for cut in range(1, len(text) - 1):
        length = len(text) - cut
        preferred = length - length // 3
        for start in sorted(range(1, length), key=lambda start: abs(start - preferred)):
            if fixed.isdisjoint(range(start, start + cut)):
                short = f"{text[:start].rstrip()}…{text[start + cut :].lstrip()}"
                if width_em(short, bold=bold) <= max_width:
                    return short
    return None


def _elided(text: str, length: int, *, tail: bool) -> str:
    """Cut a text to a number of characters: at its end, or before its last third."""
    end = length // 3 if tail else 0
    return text[: length - end].rstrip() + "…" + (text[-end:].lstrip() if end else "")


def wrapped(text: str, max_width: float) -> list[str]:
    """Wrap a subtitle into at most two lines of a width [em]."""
    words = [word for word in text.split(" ") if word]

    def width(count: int) -> float:
        return width_em(" ".join(words[:count]))

    first = max(bisect_right(range(1, len(words) + 1), max_width, key=width), 1)
    lines = [" ".join(words[:first]), *([" ".join(words[first:])] if words[first:] else [])]
    return [shorten(line, max_width) for line in lines]


def sizes_text(size: str, values: Iterable[int]) -> str:
    """Text of a size, or of a range, with all digits: `B = 246 to 1,250,000`.

    A range whose ends agree to three digits is one number: `about B = 1,250,000`.
    """
    numbers = [round(value) for value in values]
    low, high = min(numbers), max(numbers)
    if low == high:
        return f"{size} = {low:,}"
    about = {float(f"{value:.2e}") for value in (low, high)}
    return (
        f"about {size} = {about.pop():,.0f}" if len(about) == 1 else f"{size} = {low:,} to {high:,}"
    )


def named_sizes(sizes: Mapping[str, int]) -> str:
    """Sizes by dimension: `D = 1,024, F = 4,096`, and `D = F = 4,096` if all are equal."""
    if len(set(sizes.values())) == 1:
        return f"{' = '.join(sizes)} = {next(iter(sizes.values())):,}"
    return ", ".join(f"{dim} = {size:,}" for dim, size in sizes.items())


def listed(values: Iterable[int]) -> str:
    """Numbers in words: `2, 4 or 8`, and `2, 4 ... 64` where more than three double."""
    numbers = sorted(set(values))
    names = [f"{value:,}" for value in numbers]
    doubling = all(after == 2 * before for before, after in pairwise(numbers))
    if len(numbers) > MAX_LISTED and doubling:
        return f"{names[0]}, {names[1]} ... {names[-1]}"
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def on_chips(chip: str, shards: Iterable[int]) -> str:
    """Chip with its count: `H100 SXM`, `2, 4 or 8 × H100 SXM`."""
    numbers = listed(shards)
    return chip_label(chip) if numbers == "1" else f"{numbers} × {chip_label(chip)}"


def over_text(networks: Iterable[str | None]) -> str:
    """Phrase of networks: ` over NVLink + InfiniBand`, ` over ICI link along 4x4`; "" if mixed."""
    named = [name.partition(" ") for name in dict.fromkeys(networks) if name]
    if len({name for name, *_ in named}) != 1:
        return ""
    axes = [form for *_, form in named if form]
    along = f" along {' or '.join(axes)}" if axes else ""
    return f" over {part_name(named[0][0])}{along}"


def chip_label(name: str) -> str:
    """Display name of a chip or model id: `tpu-v5e` is `TPU v5e`, `h100-sxm` is `H100 SXM`.

    A variant's suffix is in brackets: `h100-sxm-book` is `H100 SXM (book)`. Ids that begin with no
    catalogue chip and are no catalogue model are returned unchanged.
    """
    short_names = {
        chip: entry.short for chip, entry in chip_entries().items() if entry.base is None
    }
    base = max(
        (chip for chip in short_names if f"{name}-".startswith(f"{chip}-")), key=len, default=""
    )
    if not base:
        entry = model_entries().get(name)
        return entry.name if entry else name
    variant = name[len(base) + 1 :].replace("-", " ")
    return f"{short_names[base]} ({variant})" if variant else short_names[base] or base


def part_name(name: str) -> str:
    """Display name of a memory level or interconnect: `hbm` is `HBM`, `ici` is `ICI link`.

    Two networks are joined by a plus, axes follow: `ici 4x4` is `ICI link 4x4`.
    """
    parts, _, axes = name.partition(" ")
    names = " + ".join(PARTS.get(part, part.upper()) for part in parts.split("+"))
    return f"{names} {axes}" if axes else names
