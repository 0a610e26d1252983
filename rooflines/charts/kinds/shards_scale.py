"""The scales of thresholds over chips: sizes, above them the rows of never, and chips across."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.charts.kit.drawing import powers_of_two, ticks_between

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.charts.kinds.shards_lines import Line

__all__ = ["MOST_LANES", "Scale"]

LANE = 0.05
"""Share of the plot's height that one chip's row has in the area of never."""

MOST_LANES = 8
"""Rows in the area of never; more chips share them."""

MARGIN = 1.12
"""The factor by which the scale across goes beyond the numbers of chips [1]."""


class Scale:
    """The scales of one choice: critical sizes with the rows of never above them, and chips across.

    Args:
        lines: The lines that are drawn together.
        shards: The least and the largest number of chips across [1].
    """

    def __init__(self, lines: Sequence[Line], shards: tuple[int, int]) -> None:
        sizes = [size for line in lines for size in line.sizes]
        reached = [size for line in lines for size in line.reached]
        self.low = min(sizes, default=1) / 1.8
        most = max(max(sizes, default=10), max(reached, default=10))
        self.never = max(most * 1.8, self.low * 10)
        self.lanes = min(len(lines), MOST_LANES)
        gaps = any(point.critical is None for line in lines for point in line.points)
        share = 1 - LANE * self.lanes if gaps else 1.0
        self.high = self.low * (self.never / self.low) ** (1 / share)
        self.across = shards[0] / MARGIN, shards[1] * MARGIN

    def end(self, line: Line, lane: int) -> float:
        """The height at which a line ends: its last size, or the row of never that it has."""
        last = line.points[-1].critical
        if last is not None:
            return float(last)
        return float(self.never * (self.high / self.never) ** ((lane + 0.5) / self.lanes))

    def values(self) -> dict[str, Any]:
        """What the chart reads of the scales, as the parameter `span`."""
        edges = {"low": self.low, "never": self.never, "high": self.high}
        left, right = self.across
        edges |= {"left": left, "right": right}
        return {
            **{name: float(f"{value:.7g}") for name, value in edges.items()},
            "lanes": self.lanes,
            "ticks": ticks_between(self.low, self.never),
            "across": powers_of_two(left, right),
        }
