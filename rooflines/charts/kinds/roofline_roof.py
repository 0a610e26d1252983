"""The plane of a roofline, and the roof of one chip in one dtype combination."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.basics.text import si, significant
from rooflines.charts.basis import CALIBRATED
from rooflines.charts.claims import Finding, claim
from rooflines.charts.frames import highest, lowest
from rooflines.charts.kit.place import Plane
from rooflines.charts.kit.text import chip_label, part_name
from rooflines.charts.kit.themes import Margins

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ESTIMATES", "MARGINS", "REGIONS", "SLOPE_ANGLE", "Roof", "plane_of"]

MARGINS = Margins(left=4.2, right=1.6, bottom=4.4)

ESTIMATES = ("estimate", "slow", "fast")
"""Columns of what a point attains calibrated, and of its band, at p90 and at p10."""

REGIONS = ("memory", "compute")
"""The bottleneck left and right of the ridge; styles of the same names write it."""

SLOPE_ANGLE = (
    "-atan2(height / log(plane.y[1] / plane.y[0]), width / log(plane.x[1] / plane.x[0])) * 180 / PI"
)
"""The angle of a slope in the present plane, as an expression [degree]."""


def plane_of(frame: pl.DataFrame) -> Plane:
    """The plot of a frame from `roofline_frame`: the same decades for all of its chips."""
    ridges = frame.filter(pl.col("kind").is_in(["memory", "network"]))
    points = frame.filter(kind="point")
    main = ridges.filter(kind="memory").unique(["chip", "dtypes"], keep="first")
    least = [ridges["intensity"].min(), points["intensity"].min()]
    lowest_shown = min(float(v) for v in least if v is not None)  # type: ignore[arg-type]
    low = 10.0 ** math.floor(math.log10(lowest_shown * 0.55)) * 3
    most = [ridges["intensity"].max(), points["intensity"].max()]
    high = max(float(v) for v in most if v is not None) * 4  # type: ignore[arg-type]
    top = highest(frame, "flops_per_s") * 1.9
    slow = lowest(main, "bytes_per_s") * low
    return Plane((low, high), (min(slow / 1.6, top / 1e4), top))


class Roof:
    """One chip in one dtype combination."""

    def __init__(self, plane: Plane, frame: pl.DataFrame, chip: str, dtypes: str) -> None:
        self.plane, self.key = plane, {"chip": chip, "dtypes": dtypes}
        (self.low, self.high), self.bottom = plane.x, plane.y[0]
        rows = frame.to_dicts()
        slopes = [row for row in rows if row["kind"] in ("memory", "network")]
        self.slopes = sorted(slopes, key=lambda row: row["bytes_per_s"], reverse=True)
        points = [row for row in rows if row["kind"] == "point"]
        self.points = sorted(points, key=lambda row: row["B"])
        self.main = next(row for row in rows if row["kind"] == "memory")
        self.peak = self.main["flops_per_s"]
        grouped: dict[float, list[str]] = {}
        for row in rows:
            if row["kind"] == "ceiling":
                grouped.setdefault(row["flops_per_s"], []).append(row["name"])
        self.ceilings = dict(sorted(grouped.items(), reverse=True))
        self.highest = max(self.ceilings, default=self.peak)

    def path(self, bytes_per_s: float, peak: float) -> list[tuple[float, float]]:
        """The corners of the roof of a bandwidth and a peak [FLOP/byte, FLOP/s]."""
        start = max(self.low, self.bottom / bytes_per_s)
        return [(start, start * bytes_per_s), (peak / bytes_per_s, peak), (self.high, peak)]

    def pieces(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of every layer."""
        main = self.main
        rows: dict[str, list[dict[str, Any]]] = {
            "roof": self._line(self.path(main["bytes_per_s"], self.peak), "roof"),
            "slope": [],
            "ceiling": [],
            "region": self._regions(),
            "ridge": [{**self.key, "x": main["intensity"], "y": self.bottom, "y2": self.peak}],
            "point": [
                {
                    **self.key,
                    "x": p["intensity"],
                    "y": p["flops_per_s"],
                    "at": p["B"],
                    "shape": p["shape"] or "",
                    **{name: p[name] for name in ESTIMATES},
                }
                for p in self.points
            ],
        }
        for slope in self.slopes:
            corners = self.path(
                slope["bytes_per_s"], self.highest if slope["kind"] == "memory" else self.peak
            )[:2]
            about = {
                "name": part_name(slope["name"]),
                "bytes_per_s": slope["bytes_per_s"],
                "ridge": slope["intensity"],
            }
            rows["slope"] += [row | about for row in self._line(corners, slope["name"])]
        fastest = max(s["bytes_per_s"] for s in self.slopes if s["kind"] == "memory")
        for peak, names in self.ceilings.items():
            corners = [(max(self.low, peak / fastest), peak), (self.high, peak)]
            rows["ceiling"] += [
                row | {"name": ", ".join(names), "peak": peak}
                for row in self._line(corners, names[0])
            ]
        return rows

    def _line(self, corners: Sequence[tuple[float, float]], line: str) -> list[dict[str, Any]]:
        """Rows of a line through corners."""
        return [{**self.key, "line": line, "x": x, "y": y} for x, y in corners]

    def _regions(self) -> list[dict[str, Any]]:
        """The areas under the main roof: memory-bound left of the ridge, else compute-bound."""
        corners = self.path(self.main["bytes_per_s"], self.peak)
        return [
            {**self.key, "region": region, "x": x, "y": y, "y2": self.bottom}
            for region, ends in zip(REGIONS, pairwise(corners), strict=True)
            for x, y in ends
        ]

    @property
    def calibrated(self) -> bool:
        """Whether any point has a calibrated value."""
        return any(point["estimate"] is not None for point in self.points)

    def finding(self, basis: str) -> Finding:
        """Title and subtitle: the ridge, and the numbers that it follows from."""
        name, combination = chip_label(self.key["chip"]), self.key["dtypes"]
        level = part_name(self.main["name"])
        shape = next((point["shape"] for point in self.points if point["shape"]), None)
        title = (
            f"The {level} ridge of {name} is {significant(self.main['intensity'])} FLOP per byte"
        )
        points = (
            f" Dots: {shape} at several {self.points[0]['name']}."
            if shape
            else " Dots: the largest matrices of the sweep."
            if self.points
            else ""
        )
        if basis == CALIBRATED:
            band = any(point["slow"] is not None for point in self.points)
            points += f" Pale: nominal; dark: calibrated{', p10 to p90' if band else ''}."
        rates = f"{si(self.peak, 'FLOP/s')}, {level} at {si(self.main['bytes_per_s'], 'B/s')}"
        rows = {"chip": [self.key["chip"]], "dtypes": [combination], "memory": [self.main["name"]]}
        found = claim("value", "ridge", rows, self.main["intensity"])
        return Finding(title, f"{combination} at {rates}.{points}", found)
