"""Roof of one chip: memory levels, links and peaks, with dots from a sweep or timings."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.basics.text import si, significant
from rooflines.charts import frames
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import part_name
from rooflines.charts.kit.label_placement import Label, Place, Plane, place_labels
from rooflines.charts.kit.themes import Margins
from rooflines.hardware.entries import MAIN_MEMORY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rooflines.charts.kit.label_placement import Point
    from rooflines.charts.kit.layers import Layer

MARGINS = Margins(left=4.2, right=1.6, bottom=4.4)

ACROSS = "Arithmetic intensity (FLOP per byte moved)"

SLOPE_ANGLE = (
    "-atan2(height / log(plane.y[1] / plane.y[0]), width / log(plane.x[1] / plane.x[0])) * 180 / PI"
)
"""Angle of slopes in the plot, as a Vega expression [degree]."""

REGIONS = ("memory", "compute")
"""Bottleneck left and right of the ridge; also names of text styles."""

AT_FOOT = [Place(0.0, -1.1, "center")]
AT_RIDGE = [Place(0.5, -2.8, "left"), Place(-0.5, -2.8, "right")]
AT_CEILING = [
    Place(-0.25, -0.65, "right"),
    *(Place(-0.25 - step, down, "right") for down in (0.0, 0.65) for step in range(24)),
]
"""Places of labels: of regions, beside the ridge line, and at a ceiling's right end: above it, else
further left on the ceiling itself or below it."""


def plain_lines(bytes_per_s: float, peaks: Mapping[str, float]) -> pl.DataFrame:
    """Lines for `Roof`: main memory [byte/s], and peaks by name [FLOP/s]."""
    top = max(peaks.values())
    rows = [("ceiling", name, peak, None, None) for name, peak in peaks.items()]
    main = ("memory", MAIN_MEMORY, top, bytes_per_s, top / bytes_per_s)
    columns = ("kind", "name", "flops_per_s", "bytes_per_s", "ridge")
    return pl.DataFrame([main, *rows], schema=list(columns), orient="row")


def corners(bytes_per_s: float, peak: float, plane: Plane) -> list[Point]:
    """Corners of a roof, min(peak, intensity * bandwidth), in a plot [FLOP/byte, FLOP/s]."""
    start = max(plane.x[0], plane.y[0] / bytes_per_s)
    return [(start, start * bytes_per_s), (peak / bytes_per_s, peak), (plane.x[1], peak)]


class Roof:
    """Roof of one chip, and its plot coordinates.

    Args:
        lines: Memory levels, the main one first, networks and ceilings, which is their `kind`, with
            `name`, `flops_per_s`, `bytes_per_s` and `ridge`.
        dots: Points to include in the plot [FLOP/byte, FLOP/s].
    """

    def __init__(self, lines: pl.DataFrame, dots: Sequence[Point]) -> None:
        slopes = lines.filter(pl.col("kind").is_in(["memory", "network"]))
        self.slopes = slopes.sort("bytes_per_s", descending=True, maintain_order=True).to_dicts()
        self.main = slopes.filter(kind="memory").row(0, named=True)
        self.peak: float = self.main["flops_per_s"]
        grouped: dict[float, list[str]] = {}
        for name, peak in lines.filter(kind="ceiling").select("name", "flops_per_s").iter_rows():
            grouped.setdefault(peak, []).append(name)
        self.ceilings = dict(sorted(grouped.items(), reverse=True))
        at = [*(row["ridge"] for row in self.slopes), *(x for x, _ in dots)]
        start = 10.0 ** math.floor(math.log10(min(at) * 0.55))
        self.low = 3 * start if 3 * start <= min(at) * 0.55 else start
        self.high = max(at) * 4
        rates = [y for _, y in dots]
        top = max([*self.ceilings, self.peak, *rates]) * 1.9
        foot = min([self.main["bytes_per_s"] * self.low, *rates]) / 1.6
        self.bottom = min(foot, top / 1e4)
        self.plane = Plane((self.low, self.high), (self.bottom, top))

    def path(self, bytes_per_s: float, peak: float) -> list[Point]:
        """Corners of a roof in this plot, by `corners`."""
        return corners(bytes_per_s, peak, self.plane)

    def data(
        self,
        labels: Iterable[Label] = (),
        dots: Sequence[tuple[Point, float]] = (),
        *,
        regions: bool = True,
    ) -> dict[str, pl.DataFrame]:
        """Rows for each layer of `roof_layers` except dots.

        Args:
            labels: Dot labels, placed after the peaks; without regions after the highest only.
            dots: The dots, which labels do not cover, and their radii [em].
            regions: Draw the ridge and the regions beside it.
        """
        main = self.path(self.main["bytes_per_s"], self.peak)
        slopes, ceilings = [], []
        for slope in self.slopes:
            to = max(self.ceilings) if slope["kind"] == "memory" else self.peak
            about = (part_name(slope["name"]), slope["bytes_per_s"], slope["ridge"])
            slopes += [(*about, *point) for point in self.path(slope["bytes_per_s"], to)[:2]]
        fastest = max(row["bytes_per_s"] for row in self.slopes if row["kind"] == "memory")
        for peak, named in self.ceilings.items():
            start = max(self.low, peak / fastest)
            ceilings += [(", ".join(named), peak, x, peak) for x in (start, self.high)]
        sides = [
            (region, x, y, self.bottom)
            for region, ends in zip(REGIONS, pairwise(main), strict=True)
            for x, y in ends
        ]
        ridge = [(self.main["ridge"], self.bottom, self.peak)]
        tables: dict[str, tuple[tuple[str, ...], Sequence[tuple[Any, ...]]]] = {
            "region": (("region", "x", "y", "y2"), sides if regions else []),
            "ceiling": (("name", "peak", "x", "y"), ceilings),
            "slope": (("name", "bytes_per_s", "ridge", "x", "y"), slopes),
            "ridge": (("x", "y", "y2"), ridge if regions else []),
            "roof": (("x", "y"), main),
        }
        drawn = {
            name: pl.DataFrame(rows, schema=list(columns), orient="row")
            for name, (columns, rows) in tables.items()
        }
        highest, *lower_ceilings = self._ceiling_labels()
        peaks = (
            [highest, *lower_ceilings, *labels] if regions else [highest, *labels, *lower_ceilings]
        )
        flat = [*(self._region_labels() if regions else ()), *peaks]
        lines = [
            *(self.path(slope["bytes_per_s"], self.peak)[:2] for slope in self.slopes),
            *(self.path(self.main["bytes_per_s"], peak)[1:] for peak in self.ceilings),
            *([(x, y) for y in ends] for x, *ends in ridge if regions),
        ]
        placed = place_labels(MARGINS, self.plane, [*flat, *self._slope_labels()], lines, dots)
        return {**drawn, "labels": placed[: len(flat)], "along": placed[len(flat) :]}

    def _region_labels(self) -> Iterator[Label]:
        """Region labels, and the ridge's."""
        main = self.path(self.main["bytes_per_s"], self.peak)
        for region, (left, right) in zip(REGIONS, pairwise(x for x, _ in main), strict=True):
            middle = (math.sqrt(left * right), self.bottom)
            yield Label(f"{region}-bound", [middle], region, places=AT_FOOT, span=(left, right))
        ridge = f"ridge · {significant(self.main['ridge'])} FLOP/byte"
        yield Label(ridge, [(self.main["ridge"], self.bottom)], places=AT_RIDGE)

    def _ceiling_labels(self) -> Iterator[Label]:
        """Labels of peaks."""
        for peak, names in self.ceilings.items():
            text = f"{', '.join(names)} · {si(peak, 'FLOP/s')}"
            style = "strong" if peak == self.peak else "note"
            yield Label(text, [(self.high, peak)], style, places=AT_CEILING)

    def _slope_labels(self) -> Iterator[Label]:
        """Labels of bandwidths, along their lines."""
        for slope in self.slopes:
            text = f"{part_name(slope['name'])} · {si(slope['bytes_per_s'], 'B/s')}"
            style = "strong" if slope["name"] == self.main["name"] else "note"
            start, end, _ = self.path(slope["bytes_per_s"], self.peak)
            yield Label(text, [start], style, to=end)


def roof_layers(up: str, dots: Callable[[Layer], Iterable[Layer]]) -> list[Layer]:
    """Roof layers: regions, lines, dots and labels.

    Args:
        up: Title for the y axis.
        dots: Builds dot layers from their position channels.
    """
    x = kit.quantitative_channel("x", **kit.log_axis("x", ACROSS, kit.SHORT_LABEL))
    y = kit.quantitative_channel("y", **kit.log_axis("y", up))
    at: Layer = {"x": x, "y": y}
    to = {**at, "y2": {"field": "y2"}}
    colour = kit.nominal_channel(
        "region", legend=None, scale={"domain": list(frames.TIMES), "range": "ordinal"}
    )
    peak = kit.tips(name="name", peak="peak FLOP/s")
    rate = kit.tips(name="name", bytes_per_s="byte/s", ridge="ridge, FLOP/byte")
    by_name = {"detail": kit.nominal_channel("name")}
    drawn = [
        kit.layer("region", "area", "region", {**to, "color": colour}),
        kit.layer("ceiling", "line", "context", {**at, **by_name, "tooltip": peak}),
        kit.layer("slope", "line", "context", {**at, **by_name, "tooltip": rate}),
        kit.layer("ridge", "rule", "rule", to),
        kit.layer("roof", "line", "roof", at),
        *dots(at),
    ]
    for style in ("strong", "label", "note", *REGIONS):
        drawn += kit.labels("labels", style, at, where=f"datum.style == '{style}'")
    for style in ("strong", "note"):
        where = f"datum.style == '{style}'"
        drawn += kit.labels("along", style, at, where=where, angle=kit.expr(SLOPE_ANGLE))
    return drawn
