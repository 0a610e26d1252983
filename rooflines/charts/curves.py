"""What an operation attains over its batch: curves that bend at the critical batch, or never reach the roof."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from rooflines.charts.frames import highest, lowest
from rooflines.charts.kit.drawing import (
    LAYOUTS,
    Chart,
    Choice,
    assemble,
    binary_axis,
    chosen,
    data,
    placed_text,
    places_of,
    si_axis,
    starting,
    zoom,
)
from rooflines.charts.kit.labels import (
    Box,
    Place,
    Spot,
    chip_label,
    count,
    place,
    shorten,
    si,
    sizes_text,
    width_em,
)
from rooflines.charts.kit.themes import Margins, plot_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["attained"]

MARGINS = Margins(left=4.6, right=2.6)
HEADROOM = 1.12
NAME_ROOM = 14.0

REACH = 5.0
"""How far a label can be from its point [em]."""

MIDDLE, OFF_MIDDLE, CROSSED = 0.45, 4.0, 10.0
"""The height at which a curve's name stands best, and what a place costs that is elsewhere, or on a line [1]."""

FEET = tuple(
    Place(side * 0.35, -down, "left" if side > 0 else "right")
    for down in (0.9, 2.2, 3.5)
    for side in (-1, 1)
)
"""Places beside the foot of a stem, the lowest first."""


def attained(
    frame: pl.DataFrame,
    *,
    size: str = "B",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> Chart:
    """Attained FLOP/s over a size, a curve for each of several other sizes.

    Args:
        frame: From `frames.attained_frame`: curves [FLOP/s], and the critical sizes as knees.
        size: What the sizes are called.
        first: What is shown first, by the names of the parameters; the first of the frame by default.
        title: In place of the finding.

    Returns:
        A chart with the parameters `chip` and `dtypes`.
    """
    chips, combinations = (
        frame[name].unique(maintain_order=True).to_list() for name in ("chip", "dtypes")
    )
    curves = frame.filter(kind="curve")
    low, high = lowest(curves, "size"), highest(curves, "size")
    high = high if high > low else low * 2
    series = frame.sort("order")["series"].unique(maintain_order=True).to_list()
    labels, findings, roofs = [], {}, []
    for (chip_id, combination), case in frame.group_by("chip", "dtypes", maintain_order=True):
        peak = highest(case, "peak")
        labels.append(
            _labels(case, size, (low, high, peak * HEADROOM)).with_columns(
                chip=pl.lit(chip_id), dtypes=pl.lit(combination)
            )
        )
        findings[f"{chip_id}|{combination}"] = _finding(
            case, str(chip_id), str(combination), size, title
        )
        roofs.append({"chip": chip_id, "dtypes": combination, "peak": peak})
    shown = frame.filter((pl.col("kind") == "curve") | pl.col("size").is_between(low, high))
    return assemble(
        [*_marks(shown, pl.DataFrame(roofs), size), *_texts(pl.concat(labels), series)],
        findings,
        starting([Choice("chip", chips), Choice("dtypes", combinations)], first),
        MARGINS,
        [
            alt.param(
                name="tops",
                value={f"{r['chip']}|{r['dtypes']}": r["peak"] * HEADROOM for r in roofs},
            ),
            alt.param(name="top", expr="tops[chip + '|' + dtypes] || 1"),
        ],
    )


def _color(series: Sequence[str]) -> alt.Color:
    """A step of the ramp for every curve."""
    return alt.Color("series:N", legend=None, scale=alt.Scale(domain=list(series), range="ramp"))


def _marks(frame: pl.DataFrame, roofs: pl.DataFrame, size: str) -> list[alt.Chart]:
    """The peak, stems, curves and knees."""
    now = chosen("chip", "dtypes")
    sizes = frame.filter(kind="curve")["size"]
    low, high = float(sizes.min()), float(sizes.max())  # type: ignore[arg-type]
    x = alt.X(
        "size:Q",
        **binary_axis(
            low, max(high, low * 2), "Batch size B (tokens)" if size == "B" else f"Size of {size}"
        ),
    )
    y = alt.Y(
        "flops_per_s:Q",
        axis=si_axis("Attained FLOP/s"),
        scale=alt.Scale(domainMin=0, domainMax=alt.expr("top"), nice=False),
    )
    color = _color(frame.sort("order")["series"].unique(maintain_order=True).to_list())
    attains = alt.Tooltip("flops_per_s:Q", title="attained FLOP/s", format=".4~s")
    tooltip = ["series:N", alt.Tooltip("size:Q", title=size, format=",.0f"), attains]
    exactly = alt.Tooltip("exact:Q", title="exactly", format=",.4f")
    at_knee = [
        "series:N",
        alt.Tooltip("size:Q", title=f"critical {size}", format=",.0f"),
        exactly,
        "limit:N",
    ]
    common = ("chip", "dtypes", "series", "size", "flops_per_s")
    kept = {"knee": (*common, "exact", "limit"), "curve": common}
    knees, curves = (
        alt.Chart(data(frame.filter(kind=kind).select(columns))).transform_filter(now)
        for kind, columns in kept.items()
    )
    return [
        alt.Chart(data(roofs))
        .transform_filter(now)
        .mark_rule(style="rule")
        .encode(y=alt.Y("peak:Q")),
        knees.mark_rule(style="stem").encode(
            x=x, y=y, y2=alt.datum(0), color=color, detail="series:N"
        ),
        curves.mark_line(style="curve")
        .encode(x=x, y=y, color=color, tooltip=tooltip)
        .add_params(zoom("x")),
        knees.mark_point(style="dot", filled=True).encode(x=x, y=y, color=color, tooltip=at_knee),
    ]


def _texts(labels: pl.DataFrame, series: Sequence[str]) -> list[alt.Chart]:
    """Numbers and names in the colours of their curves, the peak in grey."""
    now = chosen("chip", "dtypes")
    place_of: dict[str, Any] = {"x": alt.X("size:Q"), "y": alt.Y("flops_per_s:Q")}
    layers = placed_text(
        labels.filter(style="value").drop("style"), "value", now, color=_color(series), **place_of
    )
    return layers + placed_text(labels.filter(style="note").drop("style"), "note", now, **place_of)


def _labels(case: pl.DataFrame, size: str, span: tuple[float, float, float]) -> pl.DataFrame:
    """Names on the curves, numbers at the knees, the peak."""
    low, high, _ = span
    knees = case.filter(kind="knee").sort("order").to_dicts()
    curves = {
        str(key[0]): part.sort("size")
        for key, part in case.filter(kind="curve").group_by("series", maintain_order=True)
    }
    peak = highest(case, "peak")
    texts: list[dict[str, Any]] = [
        {
            "style": "note",
            "series": "",
            "text": f"peak · {si(peak, 'FLOP/s')}",
            "size": low,
            "flops_per_s": peak,
            "role": "peak",
        }
    ]
    first = True
    for knee in knees:
        if knee["size"] is not None and low <= knee["size"] <= high:
            text = f"{size} = {count(knee['size'])}" if first else count(knee["size"])
            texts.append(
                {
                    "style": "value",
                    "series": knee["series"],
                    "text": text,
                    "size": knee["size"],
                    "flops_per_s": 0.0,
                    "role": "knee",
                }
            )
            first = False
    for knee in knees:
        never = "" if knee["size"] is not None else " · never"
        later = (
            f" · from {count(knee['size'])}"
            if knee["size"] is not None and knee["size"] > high
            else ""
        )
        name = shorten(knee["series"], NAME_ROOM, bold=True) + never + later
        texts.append(
            {
                "style": "value",
                "series": knee["series"],
                "text": name,
                "role": "name",
                "size": None,
                "flops_per_s": None,
            }
        )
    places = {}
    anchors: dict[str, tuple[float, float]] = {}
    for layout, look in LAYOUTS.items():
        places[layout] = _place(texts, curves, plot_size(look, MARGINS), span, anchors)
    for unplaced in texts:
        if unplaced["size"] is None:
            unplaced["size"], unplaced["flops_per_s"] = anchors.get(unplaced["series"], (low, 0.0))
    frame = pl.DataFrame(texts, schema_overrides={"size": pl.Float64, "flops_per_s": pl.Float64})
    return frame.drop("role").hstack(places_of(places))


class _Plot:
    """The plot of one case in one layout, in em: linear upwards, powers of two across."""

    def __init__(
        self,
        curves: Mapping[str, pl.DataFrame],
        plot: tuple[float, float],
        span: tuple[float, float, float],
    ) -> None:
        self.plot, self.span, self.curves = plot, span, curves
        self.taken: list[Box] = []
        paths = [
            [self.at(row["size"], row["flops_per_s"]) for row in part.to_dicts()]
            for part in curves.values()
        ]
        self.lines = [(*a, *b) for path in paths for a, b in pairwise(path)]
        self.stems: list[tuple[float, float, float, float]] = []

    def at(self, size: float, attains: float) -> tuple[float, float]:
        low, high, top = self.span
        return math.log(size / low) / math.log(high / low) * self.plot[0], (
            1 - attains / top
        ) * self.plot[1]

    def near(self, spot: Spot) -> list[tuple[float, float, float, float]]:
        """The lines that a label beside this place could cross."""
        reach = width_em(spot.text, bold=spot.bold) + REACH
        left, right, top, bottom = spot.x - reach, spot.x + reach, spot.y - REACH, spot.y + REACH
        lines = (line for line in (*self.lines, *self.stems) if line[2] > left and line[0] < right)
        return [
            line for line in lines if max(line[1], line[3]) > top and min(line[1], line[3]) < bottom
        ]


def _place(
    texts: Sequence[dict[str, Any]],
    curves: Mapping[str, pl.DataFrame],
    plot: tuple[float, float],
    span: tuple[float, float, float],
    anchors: dict[str, tuple[float, float]],
) -> list[Place | None]:
    """Places in one layout: numbers at the foot of their stems, then names beside their curves where these are apart."""
    room = _Plot(curves, plot, span)
    room.stems = [
        (*room.at(t["size"], 0), *room.at(t["size"], span[2] / HEADROOM))
        for t in texts
        if t["role"] == "knee"
    ]
    found: list[Place | None] = []
    for text in texts:
        spot, got = Spot(0.0, 0.0, text["text"]), None
        if text["role"] == "peak":
            spot, got = (
                Spot(*room.at(text["size"], text["flops_per_s"]), text["text"]),
                Place(0.3, -0.8, "left"),
            )
        elif text["role"] == "knee":
            spot = Spot(*room.at(text["size"], 0.0), text["text"], bold=True)
            got = _at_foot(spot, room)
        else:
            got, spot = _beside_curve(text, room, anchors)
        found.append(got)
        if got:
            room.taken.append(got.box(spot))
    return found


def _at_foot(spot: Spot, room: _Plot) -> Place | None:
    """A place beside the foot of a stem: low rather than high, and on another stem only where nothing else is free."""
    spare = None
    for candidate in FEET:
        box = candidate.box(spot)
        if (
            box.left >= 0
            and box.right <= room.plot[0] + 2
            and not any(box.meets(other) for other in room.taken)
        ):
            if not any(box.crossed(line) for line in room.near(spot)):
                return candidate
            spare = spare or candidate
    return spare


def _beside_curve(
    text: Mapping[str, Any], room: _Plot, anchors: dict[str, tuple[float, float]]
) -> tuple[Place | None, Spot]:
    """A place for a curve's name: where the other layout has its anchor, else at the point of the curve with the clearest side."""
    rows = room.curves[text["series"]].to_dicts()
    fixed = anchors.get(text["series"])
    points = (
        [fixed]
        if fixed
        else [(row["size"], row["flops_per_s"]) for row in rows[len(rows) // 5 : -2 : 3]]
    )
    best: tuple[float, Place, Spot, tuple[float, float]] | None = None
    for off, anchor in sorted(
        (abs(room.at(*point)[1] / room.plot[1] - MIDDLE), point) for point in points
    ):
        if best and OFF_MIDDLE * off >= best[0]:
            break
        spot = Spot(
            *room.at(*anchor),
            text["text"],
            bold=True,
            sides=("br", "r", "tl", "l", "b", "t", "tr", "bl"),
            distance=0.5,
        )
        lines = room.near(spot)
        (candidate,) = place([spot], room.plot, boxes=room.taken, segments=lines)
        if candidate is None:
            continue
        crossings = sum(candidate.box(spot).crossed(line) for line in lines)
        cost = CROSSED * crossings + OFF_MIDDLE * off + abs(candidate.dx) * 0.05
        if best is None or cost < best[0]:
            best = cost, candidate, spot, anchor
    if best is None:
        return None, Spot(0, 0, text["text"])
    anchors.setdefault(text["series"], best[3])
    return best[1], best[2]


def _finding(
    case: pl.DataFrame, chip: str, combination: str, size: str, title: str | None
) -> tuple[str, str]:
    """Title and subtitle."""
    knees = case.filter(kind="knee").sort("order").to_dicts()
    peak = highest(case, "peak")
    subtitle = f"{combination} on {chip_label(chip)}, every byte counted. Dots: the first compute-bound {size}; roof {si(peak, 'FLOP/s')}."
    found = [knee for knee in knees if knee["size"] is not None]
    if title or not knees:
        return title or f"What {chip_label(chip)} attains over {size}", subtitle
    never = [knee for knee in knees if knee["size"] is None]
    if not found:
        return f"No {size} makes {combination} compute-bound at the sizes shown", subtitle
    first = min(found, key=lambda knee: knee["size"])
    last = never[-1] if never else max(found, key=lambda knee: knee["size"])
    if not never and first["size"] == last["size"]:
        at = first["series"] if len(found) == 1 else "every size shown"
        return (
            f"{combination} is compute-bound from {sizes_text(size, [first['size']])} on at {at}",
            subtitle,
        )
    start = f"{combination} needs {sizes_text(size, [first['size']])} at {first['series']}"
    sizes, _, value = last["series"].rpartition(" = ")
    other = value if sizes and first["series"].startswith(f"{sizes} = ") else last["series"]
    return (
        f"{start}; at {other} no {size} is enough"
        if never
        else f"{start}, {round(last['size']):,} at {other}",
        subtitle,
    )
