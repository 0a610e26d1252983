"""The roofline of a chip: what it attains at every arithmetic intensity, from each memory level and over each interconnect."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from rooflines.charts.frames import highest, lowest
from rooflines.charts.kit.drawing import (
    LAYOUTS,
    SHORT_LABEL,
    Chart,
    Choice,
    assemble,
    chosen,
    data,
    log_axis,
    placed_text,
    places_of,
    starting,
    zoom,
)
from rooflines.charts.kit.labels import (
    Box,
    Place,
    Spot,
    chip_label,
    count,
    part_name,
    place,
    si,
    significant,
    width_em,
)
from rooflines.charts.kit.themes import Margins, plot_size
from rooflines.charts.roof_labels import (
    ALONG,
    CLEAR,
    FOOT,
    OFF_SLOPE,
    POINT_SIDES,
    above_ceilings,
    beside_ridge,
    turned,
)
from rooflines.charts.times import BOUNDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["roofline"]

MARGINS = Margins(left=4.2, right=1.6, bottom=4.4)
REGIONS = ("memory", "compute")
"""What binds left and right of the ridge; styles of the same names write it."""

TOOLTIP = {
    "ceiling": "compute peak",
    "memory": "memory level",
    "network": "interconnect",
    "point": "operating point",
}


class Plane:
    """The plot in em: log-log, the same decades for every chip."""

    def __init__(self, frame: pl.DataFrame) -> None:
        ridges = frame.filter(pl.col("kind").is_in(["memory", "network"]))
        points = frame.filter(kind="point")
        main = ridges.filter(kind="memory").unique(["chip", "dtypes"], keep="first")
        least = [ridges["intensity"].min(), points["intensity"].min()]
        self.low = (
            10.0 ** math.floor(math.log10(min(float(v) for v in least if v is not None) * 0.55)) * 3  # type: ignore[arg-type]
        )
        most = [ridges["intensity"].max(), points["intensity"].max()]
        self.high = max(float(v) for v in most if v is not None) * 4  # type: ignore[arg-type]
        self.top = highest(frame, "flops_per_s") * 1.9
        slow = lowest(main, "bytes_per_s") * self.low
        self.bottom = min(slow / 1.6, self.top / 1e4)

    @property
    def turn(self) -> str:
        """The angle of a slope, as an expression of the plot's size [degree]: one decade up for one decade across."""
        up, across = math.log10(self.top / self.bottom), math.log10(self.high / self.low)
        return f"-atan2(height / {up:.6g}, width / {across:.6g}) * 180 / PI"

    def at(self, size: tuple[float, float], x: float, y: float) -> tuple[float, float]:
        """A point in em, y downwards."""
        across = math.log(x / self.low) / math.log(self.high / self.low)
        up = math.log(y / self.bottom) / math.log(self.top / self.bottom)
        return across * size[0], (1 - up) * size[1]


def roofline(
    frame: pl.DataFrame, *, first: Mapping[str, Any] | None = None, title: str | None = None
) -> Chart:
    """The roofline of one chip, chosen among those of the frame.

    Args:
        frame: From `frames.roofline_frame`: peaks [FLOP/s], bandwidths [byte/s], ridges [FLOP/byte] and operating points.
        first: What is shown first, by the names of the parameters; the first of the frame by default.
        title: In place of the finding.

    Returns:
        A chart with the parameters `chip` and `dtypes`.
    """
    plane = Plane(frame)
    chips = frame["chip"].unique(maintain_order=True).to_list()
    combinations = frame["dtypes"].drop_nulls().unique(maintain_order=True).to_list()
    pieces: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("roof", "slope", "ceiling", "region", "ridge", "point", "word")
    }
    labels: dict[str, list[pl.DataFrame]] = {
        style: [] for style in ("strong", "label", "note", *REGIONS)
    }
    findings = {}
    for key, of_chip in _cases(frame, chips, combinations):
        case = _Case(plane, of_chip, *key)
        for name, found in case.pieces().items():
            pieces[name] += found
        for style, frame_of_style in case.labels().items():
            labels[style].append(frame_of_style)
        finding = case.finding()
        findings["|".join(key)] = (title or finding[0], finding[1])
    x = alt.X(
        "x:Q",
        **log_axis(
            plane.low, plane.high, "Arithmetic intensity (FLOP per byte moved)", SHORT_LABEL
        ),
    )
    y = alt.Y("y:Q", **log_axis(plane.bottom, plane.top, "Attainable FLOP/s"))
    layers = [*_marks(pieces, x, y), *_texts(labels, x, y, plane.turn)]
    return assemble(
        layers,
        findings,
        starting([Choice("chip", chips), Choice("dtypes", combinations)], first),
        MARGINS,
    )


def _cases(
    frame: pl.DataFrame, chips: Sequence[str], combinations: Sequence[str]
) -> list[tuple[tuple[str, str], pl.DataFrame]]:
    """What is drawn of every chip in every combination that it can do."""
    cases = []
    for chip in chips:
        for combination in combinations:
            found = frame.filter(
                (pl.col("chip") == chip)
                & ((pl.col("dtypes") == combination) | pl.col("dtypes").is_null())
            )
            if found.filter(kind="memory").height:
                cases.append(((chip, combination), found))
    return cases


class _Case:
    """One chip in one dtype combination."""

    def __init__(self, plane: Plane, frame: pl.DataFrame, chip: str, dtypes: str) -> None:
        self.plane, self.key = plane, {"chip": chip, "dtypes": dtypes}
        self.slopes = (
            frame.filter(pl.col("kind").is_in(["memory", "network"]))
            .sort("bytes_per_s", descending=True)
            .to_dicts()
        )
        self.points = frame.filter(kind="point").sort("B").to_dicts()
        main = frame.filter(kind="memory")["name"][0]
        self.main = next(
            slope for slope in self.slopes if slope["kind"] == "memory" and slope["name"] == main
        )
        self.peak = self.main["flops_per_s"]
        grouped: dict[float, list[str]] = {}
        for row in frame.filter(kind="ceiling").to_dicts():
            grouped.setdefault(row["flops_per_s"], []).append(row["name"])
        self.ceilings = dict(sorted(grouped.items(), reverse=True))
        self.highest = max(self.ceilings, default=self.peak)

    def roof(self, bytes_per_s: float, peak: float) -> list[tuple[float, float]]:
        """The corners of a roof [FLOP/byte, FLOP/s]."""
        low, high = self.plane.low, self.plane.high
        start = max(low, self.plane.bottom / bytes_per_s)
        return [(start, start * bytes_per_s), (peak / bytes_per_s, peak), (high, peak)]

    def pieces(self) -> dict[str, list[dict[str, Any]]]:
        """The rows of every layer."""
        main = self.main
        found: dict[str, list[dict[str, Any]]] = {
            "roof": self._path(self.roof(main["bytes_per_s"], self.peak), "roof"),
            "slope": [],
            "ceiling": [],
            "region": self._regions(),
            "ridge": [
                {**self.key, "x": main["intensity"], "y": self.plane.bottom, "y2": self.peak}
            ],
            "point": [
                {
                    **self.key,
                    "x": p["intensity"],
                    "y": p["flops_per_s"],
                    "at": p["B"],
                    "shape": p["shape"] or "",
                }
                for p in self.points
            ],
        }
        for slope in self.slopes:
            corners = self.roof(
                slope["bytes_per_s"], self.highest if slope["kind"] == "memory" else self.peak
            )[:2]
            about = {
                "name": part_name(slope["name"]),
                "bytes_per_s": slope["bytes_per_s"],
                "ridge": slope["intensity"],
            }
            found["slope"] += [row | about for row in self._path(corners, slope["name"])]
        fastest = max(s["bytes_per_s"] for s in self.slopes if s["kind"] == "memory")
        for peak, names in self.ceilings.items():
            corners = [(peak / fastest, peak), (self.plane.high, peak)]
            found["ceiling"] += [
                row | {"name": ", ".join(names), "peak": peak}
                for row in self._path(corners, names[0])
            ]
        return found

    def _path(self, corners: Sequence[tuple[float, float]], line: str) -> list[dict[str, Any]]:
        return [{**self.key, "line": line, "x": x, "y": y} for x, y in corners]

    def _regions(self) -> list[dict[str, Any]]:
        """The areas under the main roof: memory-bound left of its ridge, compute-bound right of it."""
        corners = self.roof(self.main["bytes_per_s"], self.peak)
        return [
            {**self.key, "region": region, "x": x, "y": y, "y2": self.plane.bottom}
            for region, ends in zip(REGIONS, pairwise(corners), strict=True)
            for x, y in ends
        ]

    def labels(self) -> dict[str, pl.DataFrame]:
        """Every label with its places in both layouts."""
        texts, places = self._texts(), {}
        for layout, size in LAYOUTS.items():
            places[layout] = self._placed(plot_size(size, MARGINS), texts)
        frame = pl.DataFrame([{**self.key, **text} for text in texts]).hstack(places_of(places))
        return {
            style: frame.filter(pl.col("style") == style).drop("style")
            for style in ("strong", "label", "note", *REGIONS)
        }

    def _texts(self) -> list[dict[str, Any]]:
        """What is said where; places are found in this order."""
        bottom = self.plane.bottom
        cuts = [x for x, _ in self.roof(self.main["bytes_per_s"], self.peak)]
        texts: list[dict[str, Any]] = [
            {
                "role": "foot",
                "style": region,
                "text": f"{region}-bound",
                "x": math.sqrt(left * right),
                "y": bottom,
                "span": (left, right),
            }
            for region, (left, right) in zip(REGIONS, pairwise(cuts), strict=True)
        ]
        texts.append(
            {
                "role": "ridge",
                "style": "strong",
                "text": f"ridge · {significant(self.main['intensity'])} FLOP/byte",
                "x": self.main["intensity"],
                "y": bottom,
            }
        )
        for peak, names in self.ceilings.items():
            style = "strong" if peak == self.peak else "note"
            texts.append(
                {
                    "role": "ceiling",
                    "style": style,
                    "text": f"{', '.join(names)} · {si(peak, 'FLOP/s')}",
                    "x": self.plane.high,
                    "y": peak,
                }
            )
        texts += [
            {
                "role": "point",
                "style": "label",
                "text": f"{point['name']} = {count(point['B'])}",
                "x": point["intensity"],
                "y": point["flops_per_s"],
            }
            for point in self.points
        ]
        for slope in self.slopes:
            style = "strong" if slope is self.main else "note"
            text = f"{part_name(slope['name'])} · {si(slope['bytes_per_s'], 'B/s')}"
            corners = self.roof(slope["bytes_per_s"], self.peak)
            texts.append(
                {
                    "role": "slope",
                    "style": style,
                    "text": text,
                    "x": corners[0][0],
                    "y": corners[0][1],
                    "end": corners[1],
                }
            )
        return texts

    def _placed(self, plot: tuple[float, float], texts: list[dict[str, Any]]) -> list[Place | None]:
        """Places of all labels in one layout."""
        lines = [
            (*self.plane.at(plot, *a), *self.plane.at(plot, *b))
            for slope in self.slopes
            for a, b in [self.roof(slope["bytes_per_s"], self.peak)[:2]]
        ]
        lines += [
            (
                *self.plane.at(plot, peak / self.main["bytes_per_s"], peak),
                *self.plane.at(plot, self.plane.high, peak),
            )
            for peak in self.ceilings
        ]
        ridge_x = self.plane.at(plot, self.main["intensity"], self.peak)[0]
        lines.append((ridge_x, self.plane.at(plot, 1, self.peak)[1], ridge_x, plot[1]))
        done: list[Place | None] = []
        taken: list[Box] = []
        for role in ("foot", "ridge", "ceiling", "point", "slope"):
            group = [text for text in texts if text["role"] == role]
            spots = [self._spot(text, plot) for text in group]
            found: list[Place | None]
            if role == "foot":
                found = self._at_foot(group, spots, plot)
            elif role == "ridge":
                found = [beside_ridge(spot, plot) for spot in spots]
            elif role == "ceiling":
                found = above_ceilings(spots, plot)
            elif role == "point":
                found = place(
                    [replace(spot, sides=POINT_SIDES) for spot in spots],
                    plot,
                    boxes=taken,
                    segments=lines,
                )
            else:
                found = self._along_slopes(group, spots, plot, taken)
            taken += [p.box(s) for p, s in zip(found, spots, strict=True) if p and role != "slope"]
            done += found
        return done

    def _spot(self, text: Mapping[str, Any], plot: tuple[float, float]) -> Spot:
        x, y = self.plane.at(plot, text["x"], text["y"])
        return Spot(x, y, text["text"], bold=text["style"] not in ("label", "note"))

    def _at_foot(
        self, group: Sequence[Mapping[str, Any]], spots: Sequence[Spot], plot: tuple[float, float]
    ) -> list[Place | None]:
        """The regions' names, each where its region is wide enough."""
        found: list[Place | None] = []
        for text, spot in zip(group, spots, strict=True):
            left, right = (self.plane.at(plot, x, self.plane.bottom)[0] for x in text["span"])
            found.append(
                Place(0.0, -FOOT, "center")
                if right - left > width_em(spot.text, bold=True) + CLEAR
                else None
            )
        return found

    def _along_slopes(
        self,
        group: Sequence[Mapping[str, Any]],
        spots: Sequence[Spot],
        plot: tuple[float, float],
        taken: Sequence[Box],
    ) -> list[Place | None]:
        """Names of bandwidths along their slopes, turned like them, where the turned text meets nothing."""
        found: list[Place | None] = []
        mine = list(taken)
        for text, spot in zip(group, spots, strict=True):
            end = self.plane.at(plot, *text["end"])
            angle = math.atan2(spot.y - end[1], end[0] - spot.x)
            length = math.hypot(end[0] - spot.x, spot.y - end[1])
            half = width_em(spot.text, bold=spot.bold) / 2
            best = None
            for share, off in product(ALONG, (-OFF_SLOPE, OFF_SLOPE)):
                along = length * share
                if along - half < CLEAR or along + half > length - CLEAR:
                    continue
                boxes = turned(spot, along, off, angle)
                if not any(box.meets(other) for box in boxes for other in mine):
                    best = Place(along, off, "center")
                    mine += boxes
                    break
            found.append(best)
        return found

    def finding(self) -> tuple[str, str]:
        """Title and subtitle."""
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
        return (
            title,
            f"{combination} at {si(self.peak, 'FLOP/s')}, {level} at {si(self.main['bytes_per_s'], 'B/s')}.{points}",
        )


def _marks(pieces: Mapping[str, list[dict[str, Any]]], x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Regions, then lines, then points."""
    now = chosen("chip", "dtypes")
    frames = {
        name: data(pl.DataFrame(rows, infer_schema_length=None))
        for name, rows in pieces.items()
        if rows
    }

    def layer(name: str) -> alt.Chart:
        return alt.Chart(frames[name]).transform_filter(now)

    region = alt.Color("region:N", legend=None, scale=alt.Scale(domain=BOUNDS, range="ordinal"))
    rate = alt.Tooltip("bytes_per_s:Q", title="byte/s", format=".3~s")
    layers = [
        layer("region")
        .mark_area(style="region")
        .encode(x=x, y=y, y2="y2:Q", color=region, detail="region:N"),
        layer("ceiling")
        .mark_line(style="context")
        .encode(
            x=x,
            y=y,
            detail="line:N",
            tooltip=["name:N", alt.Tooltip("peak:Q", title="peak FLOP/s", format=".4~s")],
        ),
        layer("slope")
        .mark_line(style="context")
        .encode(
            x=x,
            y=y,
            detail="line:N",
            tooltip=[
                "name:N",
                rate,
                alt.Tooltip("ridge:Q", title="ridge, FLOP/byte", format=".4~s"),
            ],
        ),
        layer("ridge").mark_rule(style="rule").encode(x=x, y=y, y2="y2:Q"),
        layer("roof").mark_line(style="roof").encode(x=x, y=y).add_params(zoom("x", "y")),
    ]
    if "point" in frames:
        tooltip = [
            alt.Tooltip("shape:N"),
            alt.Tooltip("at:Q", title="size", format=",d"),
            alt.Tooltip("x:Q", title="FLOP/byte", format=".4~s"),
            alt.Tooltip("y:Q", title="attained FLOP/s", format=".4~s"),
        ]
        layers.append(
            layer("point")
            .mark_point(style="ink-dot", filled=True)
            .encode(x=x, y=y, tooltip=tooltip)
        )
    return layers


def _texts(
    labels: Mapping[str, list[pl.DataFrame]], x: alt.X, y: alt.Y, turn: str
) -> list[alt.Chart]:
    """Every label; those of slopes are turned by the slopes' angle."""
    layers = []
    for style, found in labels.items():
        frame = pl.concat(found, how="diagonal")
        slopes = pl.col("role") == "slope"
        for part, angle in ((frame.filter(slopes), turn), (frame.filter(~slopes), "0")):
            if part.height:
                plain = part.drop("role", "span", "end", strict=False)
                layers += placed_text(plain, style, chosen("chip", "dtypes"), angle=angle, x=x, y=y)
    return layers
