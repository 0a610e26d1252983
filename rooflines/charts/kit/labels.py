"""Labels: what they say, how wide they are, and where they stand so that none lies on another.

Places are found in em, once for each layout, so that a chart's labels keep clear of each other in every size and theme. Widths are
measured with the font that the pictures are drawn in.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from PIL import ImageFont

__all__ = [
    "FONTS",
    "Box",
    "Place",
    "Spot",
    "chip_label",
    "count",
    "dodge",
    "listed",
    "on_chips",
    "part_name",
    "place",
    "seconds",
    "shorten",
    "si",
    "significant",
    "sizes_text",
    "split_on",
    "split_text",
    "width_em",
]

FONTS = Path(__file__).parent / "fonts"
FACES = {False: "Inter-Regular.ttf", True: "Inter-SemiBold.ttf"}

MEASURED_AT = 100
PARALLEL = 1e-9
LINE = 1.3
"""Height that a line of text takes [em]."""

PREFIXES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
SMALL = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
DIGITS = 3

UPPER = {"tpu", "sxm", "pcie", "nvl", "oam", "hbm", "gpu", "rtx", "ici", "dcn", "vmem", "l1", "l2"}
PROPER = {
    "nvlink": "NVLink",
    "infiniband": "InfiniBand",
    "gaudi": "Gaudi",
    "trainium": "Trainium",
    "inferentia": "Inferentia",
    "llama": "Llama",
    "qwen": "Qwen",
    "mixtral": "Mixtral",
    "mistral": "Mistral",
    "gemma": "Gemma",
    "deepseek": "DeepSeek",
    "gpt": "GPT",
    "large": "Large",
}


@cache
def _face(*, bold: bool) -> ImageFont.FreeTypeFont:
    from PIL import ImageFont  # noqa: PLC0415, reading a config does not wait for Pillow

    return ImageFont.truetype(str(FONTS / FACES[bold]), MEASURED_AT)


@cache
def width_em(text: str, *, bold: bool = False) -> float:
    """Width of a line of text in the vendored font [em]."""
    return float(_face(bold=bold).getlength(text)) / MEASURED_AT


def shorten(text: str, most: float, *, bold: bool = False, tail: bool = False) -> str:
    """A text that is at most so wide: itself, or what fits of it and an ellipsis.

    Args:
        text: One line.
        most: The room there is [em].
        bold: Whether it is set in the heavier weight.
        tail: Whether its end is kept too, as names often differ there.
    """
    if width_em(text, bold=bold) <= most:
        return text
    least, most_kept = 0, len(text) - 1
    while least < most_kept:
        kept = (least + most_kept + 1) // 2
        if width_em(_without_middle(text, kept, tail=tail), bold=bold) <= most:
            least = kept
        else:
            most_kept = kept - 1
    return _without_middle(text, least, tail=tail)


def _without_middle(text: str, kept: int, *, tail: bool) -> str:
    """So many characters of a text, with an ellipsis for the others: at its end, or before the last third of what is kept."""
    end = kept // 3 if tail else 0
    return text[: kept - end].rstrip() + "…" + (text[-end:].lstrip() if end else "")


def significant(value: float) -> str:
    """A number to three digits, without trailing zeros."""
    places = max(DIGITS - 1 - math.floor(math.log10(abs(value))), 0) if value else 0
    return f"{value:.{places}f}".rstrip("0").rstrip(".") if places else f"{value:,.0f}"


def si(value: float, unit: str) -> str:
    """A quantity with an SI prefix: 1.97e14 FLOP/s is `197 TFLOP/s`."""
    prefix = max(
        (p for p, scale in PREFIXES.items() if abs(value) >= scale * 0.9995),
        key=lambda p: PREFIXES[p],
        default="",
    )
    return f"{significant(value / PREFIXES[prefix])} {prefix}{unit}"


def seconds(value: float) -> str:
    """A time: 4.13e-5 is `41.3 µs`."""
    unit = next((u for u, scale in SMALL.items() if value >= scale * 0.9995), "ns")
    return f"{significant(value / SMALL[unit])} {unit}"


def count(value: float) -> str:
    """A whole number with its thousands set off; short from a million on."""
    return f"{value:,.0f}" if value < PREFIXES["M"] else si(value, "").replace(" ", "")


def sizes_text(size: str, values: Iterable[int]) -> str:
    """A size, or the range of several, with every digit: `B = 246 to 1,250,000`."""
    found = sorted({round(value) for value in values})
    return (
        f"{size} = {found[0]:,}" if len(found) == 1 else f"{size} = {found[0]:,} to {found[-1]:,}"
    )


def listed(values: Iterable[int]) -> str:
    """Each of some numbers: `2, 4 or 8`, and `2, 4 ... 64` where more than three of them double."""
    found = sorted(set(values))
    names = [f"{value:,}" for value in found]
    if len(found) > DIGITS and all(after == 2 * before for before, after in pairwise(found)):
        return f"{names[0]}, {names[1]} ... {names[-1]}"
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]


def on_chips(chip: str, shards: Iterable[int]) -> str:
    """Chips of one kind, by how many of them share the work: `H100 SXM`, `2, 4 or 8 × H100 SXM`."""
    numbers = listed(shards)
    return chip_label(chip) if numbers == "1" else f"{numbers} × {chip_label(chip)}"


def split_on(sharding: str, chip: str, shards: Iterable[int]) -> str:
    """A split of the work and the chips that share it: `column on 2, 4 or 8 × H100 SXM`; for one chip its name alone."""
    on = on_chips(chip, shards)
    return on if on == chip_label(chip) else f"{sharding} on {on}"


def split_text(sharding: str, shards: Iterable[int], network: str | None) -> str:
    """How chips share the work: `, split contracting/all-reduce over NVLink`; nothing for one chip."""
    over = f" over {part_name(network)}" if network else ""
    return f", split {sharding}{over}" if max(shards) > 1 else ""


def chip_label(name: str) -> str:
    """The name of a chip or a model as one reads it: `tpu-v5e` is `TPU v5e`, `h100-sxm` is `H100 SXM`.

    Ids of another form stay as they are.
    """
    words = name.split("-")
    known = (
        re.fullmatch(r"[a-z]{1,5}\d+[a-z]*", words[0])
        or words[0].rstrip("0123456789") in PROPER
        or words[0] in UPPER
    )
    if not known:
        return name
    text = " ".join(_word(word, first=not index) for index, word in enumerate(words))
    return re.sub(r"\b(\d) (\d)(?= )", r"\1.\2", text)


def part_name(name: str) -> str:
    """A memory level or interconnect as one reads it."""
    return {
        "hbm": "HBM",
        "nvlink": "NVLink",
        "infiniband": "InfiniBand",
        "ici": "ICI link",
        "pcie": "PCIe",
    }.get(name, name.upper())


def _word(word: str, *, first: bool) -> str:
    if word in PROPER:
        return PROPER[word]
    if (
        word in UPPER
        or re.fullmatch(r"\d+(b|gb|m)|a\d+b", word)
        or (first and re.fullmatch(r"[a-z]{1,4}\d+[a-z]*", word))
    ):
        return word.upper()
    if re.fullmatch(r"\d+x\d+b", word):
        return word.replace("b", "B")
    split = re.fullmatch(r"([a-z]{5,})(\d+)", word)
    return f"{PROPER[split[1]]} {split[2]}" if split and split[1] in PROPER else word


def dodge(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near the wanted ones, in their order, at least a gap apart and within bounds.

    Args:
        wanted: Positions along a line, in any order [em].
        gap: The least distance [em].
        low: The lower bound [em].
        high: The upper one [em]; where there is not room for all, the last ones lie beyond it.

    Returns:
        A position for each, in the order given [em].
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    clusters: list[tuple[float, int]] = []
    for place_in_order in range(len(order)):
        centre, size = wanted[order[place_in_order]], 1
        while clusters and centre - gap * size / 2 < clusters[-1][0] + gap * clusters[-1][1] / 2:
            other, others = clusters.pop()
            centre, size = (centre * size + other * others) / (size + others), size + others
        half = gap * (size - 1) / 2
        centre = min(max(centre, low + half), max(high - half, low + half))
        clusters.append((centre, size))
        while (
            len(clusters) > 1
            and clusters[-1][0] - gap * clusters[-1][1] / 2
            < clusters[-2][0] + gap * clusters[-2][1] / 2 - 1e-9
        ):
            (other, others), (centre, size) = clusters[-2], clusters[-1]
            clusters[-2:] = [((centre * size + other * others) / (size + others), size + others)]
            half = gap * (clusters[-1][1] - 1) / 2
            clusters[-1] = (
                min(max(clusters[-1][0], low + half), max(high - half, low + half)),
                clusters[-1][1],
            )
    found = [
        centre + gap * (index - (size - 1) / 2)
        for centre, size in clusters
        for index in range(size)
    ]
    placed = [0.0] * len(wanted)
    for index, position in zip(order, found, strict=True):
        placed[index] = position
    return placed


@dataclass(frozen=True)
class Box:
    """A rectangle in the plot, y downwards [em]."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether the two overlap."""
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def crossed(self, segment: tuple[float, float, float, float]) -> bool:
        """Whether a straight line from (x1, y1) to (x2, y2) goes through it."""
        x1, y1, x2, y2 = segment
        if (
            max(x1, x2) <= self.left
            or min(x1, x2) >= self.right
            or max(y1, y2) <= self.top
            or min(y1, y2) >= self.bottom
        ):
            return False
        low, high = 0.0, 1.0
        for start, delta, least, most in (
            (x1, x2 - x1, self.left, self.right),
            (y1, y2 - y1, self.top, self.bottom),
        ):
            if abs(delta) < PARALLEL:
                if not least < start < most:
                    return False
                continue
            a, b = sorted(((least - start) / delta, (most - start) / delta))
            low, high = max(low, a), min(high, b)
        return low < high


@dataclass(frozen=True)
class Spot:
    """Something that wants a label.

    Attributes:
        x, y: Where it is in the plot, y downwards [em].
        text: What the label says.
        bold: Whether it is set in the heavier weight.
        sides: Where the label may stand, best first: combinations of l, r, t, b around the point.
        distance: From the point to the label [em].
    """

    x: float
    y: float
    text: str
    bold: bool = False
    sides: tuple[str, ...] = ("tr", "br", "tl", "bl", "r", "l", "t", "b")
    distance: float = 0.55


@dataclass(frozen=True)
class Place:
    """Where a label stands relative to its point [em], and on which side of that its text is."""

    dx: float
    dy: float
    align: str

    def box(self, spot: Spot) -> Box:
        """The room it takes."""
        wide = width_em(spot.text, bold=spot.bold)
        left = spot.x + self.dx - {"left": 0.0, "center": wide / 2, "right": wide}[self.align]
        middle = spot.y + self.dy
        return Box(left - 0.2, middle - LINE / 2, left + wide + 0.2, middle + LINE / 2)


def place(
    spots: Sequence[Spot],
    plot: tuple[float, float],
    *,
    boxes: Iterable[Box] = (),
    segments: Sequence[tuple[float, float, float, float]] = (),
    must: bool = False,
) -> list[Place | None]:
    """Places for labels, the first ones first: beside their points, inside the plot, on no other label, if it can be on no line.

    Args:
        spots: What wants a label, the most important first.
        plot: Width and height of the plot [em].
        boxes: Room that is taken.
        segments: Lines that are better not crossed.
        must: Whether a label that finds no free place beside its point may go further away.

    Returns:
        A place for each, or None where there is no room; never two that overlap.
    """
    taken = list(boxes)
    dots = [Box(s.x - 0.35, s.y - 0.35, s.x + 0.35, s.y + 0.35) for s in spots]
    placed: list[Place | None] = []
    for index, spot in enumerate(spots):
        others = [*taken, *(dot for number, dot in enumerate(dots) if number != index)]
        best: tuple[int, Place] | None = None
        for reach in (1.0, 1.9, 3.0, 4.2) if must else (1.0, 1.7):
            for side in spot.sides:
                candidate = _beside(side, spot.distance * reach)
                box = candidate.box(spot)
                if (
                    box.left < 0
                    or box.right > plot[0]
                    or box.top < 0
                    or box.bottom > plot[1]
                    or any(box.meets(o) for o in others)
                ):
                    continue
                crossings = sum(box.crossed(segment) for segment in segments)
                if best is None or crossings < best[0]:
                    best = crossings, candidate
            if best and not best[0]:
                break
        placed.append(best[1] if best else None)
        if best:
            taken.append(best[1].box(spot))
    return placed


def _beside(side: str, distance: float) -> Place:
    """The place on a side of a point: t and b are above and below, l and r before and after."""
    across = distance if "r" in side else -distance if "l" in side else 0.0
    down = -1.0 if "t" in side else 1.0 if "b" in side else 0.0
    align = "left" if "r" in side else "right" if "l" in side else "center"
    both = len(side) > 1
    return Place(
        across * (0.55 if both else 1.0),
        down * (distance + (0.25 if both else LINE / 2 - 0.1)),
        align,
    )
