"""Where the labels of a roofline may stand: beside the ridge, above ceilings, along slopes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rooflines.charts.kit.labels import Box, Place, Spot, dodge, width_em

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ALONG",
    "CLEAR",
    "FOOT",
    "OFF_SLOPE",
    "POINT_SIDES",
    "above_ceilings",
    "beside_ridge",
    "turned",
]

FOOT = 1.1
"""Height of the words at the foot of the regions [em]."""

CLEAR = 0.8
"""Room left before and after a label [em]."""

OFF_SLOPE = 0.75
"""From a slope to the middle of its name [em]."""

ALONG = (0.42, 0.5, 0.34, 0.58, 0.26, 0.66, 0.18, 0.74, 0.82)
"""Where along a slope its name may stand, best first."""

SQUARES = 9
POINT_SIDES = ("tl", "br", "b", "t", "r", "l")

LIFTED = 0.9
"""How far a ceiling's label may be from its place above the line [em]."""


def beside_ridge(spot: Spot, plot: tuple[float, float]) -> Place:
    """The ridge's number beside its line, on the side that has room."""
    right = spot.x + width_em(spot.text, bold=True) + CLEAR < plot[0]
    return Place(0.5, -FOOT - 1.7, "left") if right else Place(-0.5, -FOOT - 1.7, "right")


def above_ceilings(spots: Sequence[Spot], plot: tuple[float, float]) -> list[Place | None]:
    """Names above the right ends of their ceilings, pushed apart, but none far from its line."""
    wanted = [spot.y - 0.75 for spot in spots]
    found = dodge(wanted, 1.32, 0.4, plot[1])
    return [
        Place(-0.2, y - spot.y, "right") if abs(y - w) < LIFTED else None
        for y, spot, w in zip(found, spots, wanted, strict=True)
    ]


def turned(spot: Spot, along: float, off: float, angle: float) -> list[Box]:
    """The room of a text along a slope, as a row of squares."""
    wide = width_em(spot.text, bold=spot.bold)
    boxes = []
    for step in range(SQUARES):
        way = along + (step / (SQUARES - 1) - 0.5) * wide
        x, y = (
            spot.x + way * math.cos(angle) + off * math.sin(angle),
            spot.y - way * math.sin(angle) + off * math.cos(angle),
        )
        boxes.append(Box(x - OFF_SLOPE, y - OFF_SLOPE, x + OFF_SLOPE, y + OFF_SLOPE))
    return boxes
