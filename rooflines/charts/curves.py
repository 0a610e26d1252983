"""Curves of attained FLOP/s: which there are, and their points."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

from rooflines.basics.lazy import pl
from rooflines.charts.kit.text import named_sizes

if TYPE_CHECKING:
    from collections.abc import Sequence

Point = tuple[float, ...]
"""A size, and what it attains in each of some times; null where a time is unknown [FLOP/s]."""

MOST_POINTS, FEW_POINTS, STEPS = 33, 9, 6
"""Sizes that a curve is drawn through, where `between` is exact fewer, and straight parts between
two of them [1]."""


def series_of(rows: pl.LazyFrame, dims: Sequence[str], most: int) -> pl.DataFrame:
    """The sizes that get a curve each: named shapes, or sizes of the dimensions.

    Args:
        rows: With `shape` and the sizes.
        dims: The dimensions besides that of the axis.
        most: The most curves [1].

    Returns:
        `shape` and the sizes; `series`, the shape, or the sizes of which there are several.
    """
    order = [True] * len(dims)
    unique = rows.select("shape", *dims).unique()
    found = unique.sort(*dims, "shape", descending=[*order, False]).collect()
    if found.height > most and len(dims) > 1:
        square = found.filter(pl.all_horizontal(pl.col(dim) == pl.col(dims[0]) for dim in dims))
        found = square if square.height > 1 else found
    few = min(most, found.height)
    found = found[sorted({round(i * (found.height - 1) / max(few - 1, 1)) for i in range(few)})]
    several = [dim for dim in dims if found[dim].n_unique() > 1] or list(dims)
    names = [
        row["shape"] or named_sizes({dim: row[dim] for dim in several}) for row in found.to_dicts()
    ]
    return found.with_columns(series=pl.Series(names, dtype=pl.String))


def thinned(table: pl.DataFrame, column: str, points: int = MOST_POINTS) -> pl.DataFrame:
    """As many sizes of a table as a curve needs, about even on a log axis."""
    sizes = table[column].unique().sort().to_list()
    if len(sizes) <= points:
        return table
    low, high = sizes[0], sizes[-1]
    wanted = (low * (high / low) ** (i / (points - 1)) for i in range(points - 1))
    kept = {sizes[bisect_left(sizes, size)] for size in wanted} | {high}
    return table.filter(pl.col(column).is_in(kept))


def smooth(points: Sequence[Point], steps: int = STEPS) -> list[Point]:
    """Points of a curve with further ones between two that differ, by `between`."""
    found: list[Point] = []
    for one, other in pairwise(points):
        found.append(one)
        for step in range(1, steps) if one[1:] != other[1:] else ():
            at = one[0] * (other[0] / one[0]) ** (step / steps)
            known = [
                between((one[0], a), (other[0], b), at) if a and b else a
                for a, b in zip(one[1:], other[1:], strict=True)
            ]
            found.append((at, *known))
    return [*found, *points[-1:]]


def between(low: Point, high: Point, size: float) -> float:
    """What a size between two points of a curve attains, with one bottleneck between them [FLOP/s].

    The work is proportional to the size, so the size over what it attains is to the time, which is
    affine in the size.

    Args:
        low: The lower point: the size, and what it attains [FLOP/s].
        high: The higher point.
        size: The size.
    """
    start, end = low[0] / low[1], high[0] / high[1]
    return size / (start + (end - start) * (size - low[0]) / (high[0] - low[0]))
