"""Places of labels at the ends of lines, right of the plot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.charts.kit.place import Place, placed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.basics.lazy import pl
    from rooflines.charts.kit.place import Plane
    from rooflines.charts.kit.themes import Margins

END_DISTANCE, END_GAP = 0.6, 1.35
"""From a line's end to its label, and from one such label to the next below it [em]."""


def dodge(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions close to the wanted ones, in the same order, at least a gap apart, within bounds.

    Args:
        wanted: Positions along a line, in any order [em].
        gap: The least distance [em].
        low: The lower bound [em].
        high: The upper bound [em]; if there is not room for all, the last ones lie beyond it.

    Returns:
        A position for each, in the order of `wanted` [em].
    """
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    clusters: list[tuple[float, int]] = []  # the centre of neighbours one gap apart, and how many
    for index in order:
        centre, size = wanted[index], 1
        while True:
            half = gap * (size - 1) / 2
            centre = min(max(centre, low + half), max(high - half, low + half))
            if not clusters or centre - clusters[-1][0] >= gap * (size + clusters[-1][1]) / 2:
                break
            other, others = clusters.pop()
            centre = (centre * size + other * others) / (size + others)
            size += others
        clusters.append((centre, size))
    sorted_positions = (
        centre + gap * (rank - (size - 1) / 2) for centre, size in clusters for rank in range(size)
    )
    positions = dict(zip(order, sorted_positions, strict=True))
    return [positions[index] for index in range(len(wanted))]


def end_places(ends: Sequence[float], down: float, gap: float = END_GAP) -> list[Place | None]:
    """Places right of the plot for labels at the ends of lines.

    Args:
        ends: Heights of the ends, from above [em].
        down: Height of the plot [em].
        gap: From one label to the next below it [em].

    Returns:
        A place for each; if there is not room for all, for as many as fit, evenly chosen.
    """
    most = int(down / gap) + 1
    kept = list(range(len(ends)))
    if len(ends) > most:
        kept = sorted({round(i * (len(ends) - 1) / (most - 1)) for i in range(most)})
    heights = dict(zip(kept, dodge([ends[i] for i in kept], gap, 0.0, down), strict=True))
    return [
        Place(END_DISTANCE, heights[i] - end, "left") if i in heights else None
        for i, end in enumerate(ends)
    ]


def at_ends(margins: Margins, plane: Plane, heights: Sequence[float]) -> pl.DataFrame:
    """Places right of the plot for labels at lines that end at these heights, as of `placed`."""
    return placed(
        margins,
        lambda plot: end_places([plane.at(plot, plane.x[1], y)[1] for y in heights], plot[1]),
    )
