"""The roof of one chip in one dtype combination: its plot, and the rows of its marks and labels."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.basics.text import count, si, significant
from rooflines.charts.frames import BAND
from rooflines.charts.kit.place import DOT, Label, Place, Plane, labelled
from rooflines.charts.kit.text import part_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.charts.kit.place import Point
    from rooflines.charts.kit.themes import Margins

REGIONS = ("memory", "compute")
"""The bottleneck left and right of the ridge; styles of the same names write it."""

ESTIMATES = dict(zip(("estimate", "fast", "slow"), BAND, strict=True))
"""What a point attains calibrated, and at p10 and p90 of the time, by the column of the time."""

AT_FOOT = [Place(0.0, -1.1, "center")]
AT_RIDGE = [Place(0.5, -2.8, "left"), Place(-0.5, -2.8, "right")]
AT_CEILING = [
    Place(-0.25, -0.65, "right"),
    *(Place(-0.25 - step, down, "right") for down in (0.0, 0.65) for step in range(24)),
]
"""Places of the names of regions, beside the line of the ridge, and at the right end of ceilings:
above it, else left of the names above on the ceiling itself, or below it."""

POINT_SIDES = ("tl", "br", "b", "t", "r", "l")


class Roof:
    """One chip in one dtype combination, and its plot.

    Args:
        rows: Lines and points, as the kind `roofline` makes them.
    """

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows
        lines = rows.filter(pl.col("kind").is_in(["memory", "network"]))
        self.slopes = lines.sort("bytes_per_s", descending=True, maintain_order=True).to_dicts()
        self.main = lines.filter(kind="memory").row(0, named=True)
        self.points = rows.filter(kind="point").to_dicts()
        self.peak: float = self.main["flops_per_s"]
        grouped: dict[float, list[str]] = {}
        for name, peak in rows.filter(kind="ceiling").select("name", "flops_per_s").iter_rows():
            grouped.setdefault(peak, []).append(name)
        self.ceilings = dict(sorted(grouped.items(), reverse=True))
        at = [*(row["ridge"] for row in self.slopes), *(row["intensity"] for row in self.points)]
        self.low, self.high = 10.0 ** math.floor(math.log10(min(at) * 0.55)) * 3, max(at) * 4
        top = max([*self.ceilings, self.peak]) * 1.9
        self.bottom = min(self.main["bytes_per_s"] * self.low / 1.6, top / 1e4)
        self.plane = Plane((self.low, self.high), (self.bottom, top))

    def path(self, bytes_per_s: float, peak: float) -> list[Point]:
        """The corners of the roof of a bandwidth and a peak [FLOP/byte, FLOP/s]."""
        start = max(self.low, self.bottom / bytes_per_s)
        return [(start, start * bytes_per_s), (peak / bytes_per_s, peak), (self.high, peak)]

    def data(self, margins: Margins) -> dict[str, pl.DataFrame]:
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
        flat, along = [*self._labels()], [*self._along_slopes()]
        lines = [
            *(self.path(slope["bytes_per_s"], self.peak)[:2] for slope in self.slopes),
            *(self.path(self.main["bytes_per_s"], peak)[1:] for peak in self.ceilings),
            [(self.main["ridge"], self.peak), (self.main["ridge"], self.bottom)],
        ]
        dots = [((row["intensity"], row["flops_per_s"]), DOT) for row in self.points]
        labels = labelled(margins, self.plane, [*flat, *along], lines, dots)
        return {**drawn, "labels": labels[: len(flat)], "along": labels[len(flat) :]}

    def _labels(self) -> Iterator[Label]:
        """The names of regions, the ridge, ceilings and points."""
        main, bottom = self.path(self.main["bytes_per_s"], self.peak), self.bottom
        for region, (left, right) in zip(REGIONS, pairwise(x for x, _ in main), strict=True):
            middle = (math.sqrt(left * right), bottom)
            yield Label(f"{region}-bound", [middle], region, places=AT_FOOT, span=(left, right))
        ridge = f"ridge · {significant(self.main['ridge'])} FLOP/byte"
        yield Label(ridge, [(self.main["ridge"], bottom)], places=AT_RIDGE)
        for peak, names in self.ceilings.items():
            text = f"{', '.join(names)} · {si(peak, 'FLOP/s')}"
            style = "strong" if peak == self.peak else "note"
            yield Label(text, [(self.high, peak)], style, places=AT_CEILING)
        for row in self.points:
            at = (row["intensity"], row["flops_per_s"])
            yield Label(f"{row['name']} = {count(row['size'])}", [at], "label", sides=POINT_SIDES)

    def _along_slopes(self) -> Iterator[Label]:
        """The bandwidths."""
        for slope in self.slopes:
            text = f"{part_name(slope['name'])} · {si(slope['bytes_per_s'], 'B/s')}"
            style = "strong" if slope["name"] == self.main["name"] else "note"
            start, end, _ = self.path(slope["bytes_per_s"], self.peak)
            yield Label(text, [start], style, to=end)
