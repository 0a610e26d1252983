"""Pictures with a palette."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Mapping

LEVELS = 256
"""Values of a channel [1]."""

Colour = tuple[int, int, int]


def palettized(picture: Image.Image, colours: int) -> Image.Image:
    """A picture with a palette: exact if it has no more colours, else the nearest by median cut.

    Args:
        picture: In RGB.
        colours: Size of the palette, at most 256 [1].
    """
    counted = cast("list[tuple[int, Colour]] | None", picture.getcolors(colours))
    if counted is None:
        return picture.quantize(colours, dither=Image.Dither.NONE)
    return _indexed(picture, [colour for _, colour in sorted(counted, reverse=True)])


def _indexed(picture: Image.Image, palette: list[Colour]) -> Image.Image:
    """A picture with a palette that has all of its colours, in a third of the time of `quantize`.

    Two lookups: red and green have a number, and that number and blue have the index.
    """
    red, green, blue = picture.split()
    pairs: dict[tuple[int, int], int] = {}
    for r, g, _ in palette:
        pairs.setdefault((r, g), len(pairs))
    indices = {(pairs[r, g], b): index for index, (r, g, b) in enumerate(palette)}
    indexed = _looked_up(_looked_up(red, green, pairs), blue, indices)
    indexed.putpalette([value for colour in palette for value in colour])
    return indexed


def _looked_up(
    high: Image.Image, low: Image.Image, values: Mapping[tuple[int, int], int]
) -> Image.Image:
    """A channel from two: the value of each pixel's pair."""
    table = [0] * LEVELS**2
    for (first, second), value in values.items():
        table[first * LEVELS + second] = value
    words = Image.merge("LA", (low, high)).tobytes()  # little-endian
    return Image.frombytes("I;16", high.size, words).convert("I").point(table, "L")
