"""Points of the arcs of a critical map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.critical.plane import Arc

POINTS = 9
"""Points of an arc [1]."""


def points(frame: pl.DataFrame) -> pl.DataFrame:
    """Points of all arcs of a frame, with the other columns of their arcs."""
    arcs = frame.filter(pl.col("kind") != "shape").to_dicts()
    found = [{**arc, "D": d, "F": f} for arc in arcs for d, f in points_of(arc)]
    return pl.DataFrame(found, schema=frame.schema)


def points_of(arc: Mapping[str, Any]) -> Iterator[tuple[float, float]]:
    """Points of an arc: (D - D_limit) (F - F_limit) is constant, or it is straight."""
    left, low = arc["D_limit"] or 0.0, arc["F_limit"] or 0.0
    for share in (step / (POINTS - 1) for step in range(POINTS)):
        across = (arc["D"] - left) ** (1 - share) * (arc["D_end"] - left) ** share
        up = (arc["F"] - low) ** (1 - share) * (arc["F_end"] - low) ** share
        yield left + across, low + up


def height(arcs: Sequence[Arc], x: float) -> float | None:
    """The y of a border at an x; None where no arc is."""
    found = []
    for arc in arcs:
        if arc.x <= x <= arc.x_end and arc.x < arc.x_end:
            if arc.x_limit is None or arc.y_limit is None:
                found.append(arc.y)
            elif x - arc.x < arc.x_end - x:  # from the nearer end, where rounding is smaller
                rest = (arc.x - arc.x_limit) / (x - arc.x_limit)
                found.append(arc.y_limit + (arc.y - arc.y_limit) * rest)
            else:
                rest = (arc.x_end - arc.x_limit) / (x - arc.x_limit)
                found.append(arc.y_limit + (arc.y_end - arc.y_limit) * rest)
    return min(found, default=None)
