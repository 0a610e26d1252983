"""The roof of one chip in one dtype combination: its plot, and the rows of its marks."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.charts.frames import BAND
from rooflines.charts.kit.place import Plane
from rooflines.charts.kit.text import part_name

if TYPE_CHECKING:
    from collections.abc import Sequence

REGIONS = ("memory", "compute")
"""The bottleneck left and right of the ridge; styles of the same names write it."""

ESTIMATES = dict(zip(("estimate", "fast", "slow"), BAND, strict=True))
"""What a point attains calibrated, and at p10 and p90 of the time, by the column of the time."""


class Roof:
    """One chip in one dtype combination, and its plot.

    Args:
        rows: From `_lines` and `_points`.
    """

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows
        lines = rows.filter(pl.col("kind").is_in(["memory", "network"]))
        self.slopes = lines.sort("bytes_per_s", descending=True, maintain_order=True).to_dicts()
        self.main = lines.filter(kind="memory").row(0, named=True)
        self.points = [
            {**row, "B": row["size"]} for row in rows.filter(kind="point").iter_rows(named=True)
        ]
        self.peak: float = self.main["flops_per_s"]
        grouped: dict[float, list[str]] = {}
        for row in rows.filter(kind="ceiling").iter_rows(named=True):
            grouped.setdefault(row["flops_per_s"], []).append(row["name"])
        self.ceilings = dict(sorted(grouped.items(), reverse=True))
        for row in (*self.slopes, self.main):
            row["intensity"] = row["ridge"]
        self.plane = self._plane()
        (self.low, self.high), self.bottom = self.plane.x, self.plane.y[0]

    def _plane(self) -> Plane:
        at = [row["intensity"] for row in (*self.slopes, *self.points)]
        low = 10.0 ** math.floor(math.log10(min(at) * 0.55)) * 3
        high = max(at) * 4
        top = max([*self.ceilings, self.peak]) * 1.9
        return Plane((low, high), (min(self.main["bytes_per_s"] * low / 1.6, top / 1e4), top))

    def path(self, bytes_per_s: float, peak: float) -> list[tuple[float, float]]:
        """The corners of the roof of a bandwidth and a peak [FLOP/byte, FLOP/s]."""
        start = max(self.low, self.bottom / bytes_per_s)
        return [(start, start * bytes_per_s), (peak / bytes_per_s, peak), (self.high, peak)]

    def data(self) -> dict[str, pl.DataFrame]:
        """The rows of every layer."""
        main, highest = self.path(self.main["bytes_per_s"], self.peak), max(self.ceilings)
        slopes, ceilings = [], []
        for slope in self.slopes:
            to = highest if slope["kind"] == "memory" else self.peak
            about = (part_name(slope["name"]), slope["bytes_per_s"], slope["ridge"])
            slopes += [(*about, *point) for point in self.path(slope["bytes_per_s"], to)[:2]]
        fastest = max(row["bytes_per_s"] for row in self.slopes if row["kind"] == "memory")
        for peak, named in self.ceilings.items():
            start = max(self.low, peak / fastest)
            ceilings += [(", ".join(named), peak, x, peak) for x in (start, self.high)]
        regions = [
            (region, x, y, self.bottom)
            for region, ends in zip(REGIONS, pairwise(main), strict=True)
            for x, y in ends
        ]
        made: dict[str, tuple[tuple[str, ...], Sequence[tuple[Any, ...]]]] = {
            "region": (("region", "x", "y", "y2"), regions),
            "ceiling": (("name", "peak", "x", "y"), ceilings),
            "slope": (("name", "bytes_per_s", "ridge", "x", "y"), slopes),
            "ridge": (("x", "y", "y2"), [(self.main["ridge"], self.bottom, self.peak)]),
            "roof": (("x", "y"), main),
        }
        drawn = {
            name: pl.DataFrame(rows, schema=list(columns), orient="row")
            for name, (columns, rows) in made.items()
        }
        points = self.rows.filter(kind="point").rename({"intensity": "x", "flops_per_s": "y"})
        drawn["point"] = points.select("x", "y", "size", "shape", *ESTIMATES)
        return drawn
