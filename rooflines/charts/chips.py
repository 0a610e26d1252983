"""Chips on one roofline: the main roof of each, in one dtype combination."""

from __future__ import annotations

import math
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
    data,
    log_axis,
    palette_of,
    placed_text,
    places_of,
    starting,
    zoom,
)
from rooflines.charts.kit.labels import (
    Place,
    Spot,
    chip_label,
    dodge,
    place,
    shorten,
    si,
    significant,
)
from rooflines.charts.kit.themes import Margins, plot_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["EVERY", "chips_on_one_roofline", "ridges_compared", "told_apart"]

EVERY = "all"
"""The choice that tells no chip from the others."""

MARGINS = Margins(left=4.2, right=13.5)
NAME_ROOM = 12.8
GAP = 1.35
"""From one label to the next below it [em]."""


def chips_on_one_roofline(
    frame: pl.DataFrame,
    *,
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
    palette: Mapping[str, str] | None = None,
) -> Chart:
    """The roofs of several chips in one plot.

    Args:
        frame: From `frames.ridge_frame`: peaks [FLOP/s], bandwidths [byte/s], ridges [FLOP/byte].
        first: What is shown first, by the names of the parameters; the first of the frame by default.
        title: In place of the finding.
        palette: Chips with their vendors, where several charts are to share colours.

    Returns:
        A chart with the parameters `dtypes`, and `chip` for the one to tell from the others.
    """
    chips, combinations = (
        frame[name].unique(maintain_order=True).to_list() for name in ("chip", "dtypes")
    )
    low = lowest(frame, "ridge") / 12
    high = highest(frame, "ridge") * 6
    bottom = low * lowest(frame, "bytes_per_s") * 0.8
    top = highest(frame, "flops_per_s") * 1.8
    lines = frame.select(
        "chip",
        "dtypes",
        "ridge",
        peak="flops_per_s",
        rate="bytes_per_s",
        x=pl.concat_list(pl.lit(low), "ridge", pl.lit(high)),
        y=pl.concat_list(pl.col("bytes_per_s") * low, "flops_per_s", "flops_per_s"),
    ).explode("x", "y")
    ends, knees, findings = [], [], {}
    for combination in combinations:
        part = frame.filter(dtypes=combination).sort(
            "flops_per_s", "ridge", descending=[True, False]
        )
        ends.append(_ends(part, bottom, top))
        knees.append(_knees(part, (low, high, bottom, top)))
        for chosen_chip in (EVERY, *chips):
            findings[f"{chosen_chip}|{combination}"] = _finding(part, combination, title)
    x = alt.X(
        "x:Q",
        **log_axis(low, high, "Arithmetic intensity (FLOP per byte of main memory)", SHORT_LABEL),
    )
    y = alt.Y("y:Q", **log_axis(bottom, top, "Attainable FLOP/s"))
    color = alt.Color("chip:N", legend=None, scale=palette_of(frame, palette))
    now = "datum.dtypes == dtypes"
    opacity = told_apart()
    tooltip = [
        "chip:N",
        alt.Tooltip("peak:Q", title="peak FLOP/s", format=".4~s"),
        alt.Tooltip("rate:Q", title="byte/s", format=".4~s"),
        alt.Tooltip("ridge:Q", title="ridge, FLOP/byte", format=".4~s"),
    ]
    base = alt.Chart(data(lines)).transform_filter(now)
    layers: list[alt.Chart] = [
        base.mark_line(style="curve")
        .encode(x=x, y=y, color=color, opacity=opacity, tooltip=tooltip, order="x:Q")
        .add_params(zoom("x", "y")),
        base.transform_filter("datum.x == datum.ridge")
        .mark_point(style="dot", filled=True)
        .encode(x=x, y=y, color=color, opacity=opacity, tooltip=tooltip),
        *placed_text(
            pl.concat(ends),
            "value",
            now,
            halo=False,
            clip=False,
            y=y,
            x=at_right_edge(),
            color=color,
            opacity=opacity,
        ),
        *placed_text(pl.concat(knees), "value", now, x=x, y=y, color=color, opacity=opacity),
    ]
    return assemble(
        layers,
        findings,
        starting([Choice("chip", [EVERY, *chips]), Choice("dtypes", combinations)], first),
        MARGINS,
    )


def at_right_edge() -> Any:  # noqa: ANN401, Altair does not type its values
    """Right of the plot, whatever its width."""
    return alt.value(alt.expr("width"))


def told_apart() -> Any:  # noqa: ANN401, Altair does not type its conditions
    """Full colour for the chip chosen, or for all of them."""
    return (
        alt.when(f"chip == '{EVERY}' || datum.chip == chip")
        .then(alt.value(1))
        .otherwise(alt.value(0.18))
    )


def _ends(part: pl.DataFrame, bottom: float, top: float) -> pl.DataFrame:
    """Labels at the ends of the lines; where there is no room for all, the fastest chips have theirs."""
    places: dict[str, Sequence[Place | None]] = {}
    for layout, size in LAYOUTS.items():
        down = plot_size(size, MARGINS)[1]
        at = [
            (1 - math.log(peak / bottom) / math.log(top / bottom)) * down
            for peak in part["flops_per_s"]
        ]
        places[layout] = end_places(at, down)
    text = [
        shorten(
            f"{chip_label(row['chip'])} · {si(row['flops_per_s'], 'FLOP/s')}",
            NAME_ROOM,
            bold=True,
            tail=True,
        )
        for row in part.to_dicts()
    ]
    return part.select(
        "chip", "dtypes", y="flops_per_s", text=pl.Series(text, dtype=pl.String)
    ).hstack(places_of(places))


def end_places(at: Sequence[float], down: float, gap: float = GAP) -> list[Place | None]:
    """Places right of the plot for labels of lines that end at these heights [em]; as many as there is room for."""
    room = int(down / gap) + 1
    kept = list(range(len(at)))
    if len(at) > room:
        kept = sorted({round(i * (len(at) - 1) / (room - 1)) for i in range(room)})
    found = dict(zip(kept, dodge([at[i] for i in kept], gap, 0.0, down), strict=True))
    return [
        Place(0.6, found[i] - height, "left") if i in found else None for i, height in enumerate(at)
    ]


def _knees(part: pl.DataFrame, span: tuple[float, float, float, float]) -> pl.DataFrame:
    """The numbers of the ridge points."""
    low, high, bottom, top = span
    places: dict[str, Sequence[Place | None]] = {}
    texts = [significant(ridge) for ridge in part["ridge"]]
    for layout, size in LAYOUTS.items():
        across, down = plot = plot_size(size, MARGINS)

        def at(
            x: float, y: float, across: float = across, down: float = down
        ) -> tuple[float, float]:
            return math.log(x / low) / math.log(high / low) * across, (
                1 - math.log(y / bottom) / math.log(top / bottom)
            ) * down

        segments, spots = [], []
        for row, text in zip(part.to_dicts(), texts, strict=True):
            ridge, peak = row["ridge"], row["flops_per_s"]
            segments += [
                (*at(low, row["bytes_per_s"] * low), *at(ridge, peak)),
                (*at(ridge, peak), *at(high, peak)),
            ]
            spots.append(
                Spot(*at(ridge, peak), text, bold=True, sides=("br", "tl", "b", "t", "tr", "bl"))
            )
        places[layout] = place(spots, plot, segments=segments)
    return part.select(
        "chip", "dtypes", x="ridge", y="flops_per_s", text=pl.Series(texts, dtype=pl.String)
    ).hstack(places_of(places))


def _finding(part: pl.DataFrame, combination: str, title: str | None) -> tuple[str, str]:
    """Title and subtitle."""
    subtitle = f"{combination}: dense peak over main-memory bandwidth. The dot is the ridge, in FLOP per byte."
    if title or not part.height:
        return title or f"No chip here computes in {combination}", subtitle
    return ridges_compared(part, combination), subtitle


def ridges_compared(part: pl.DataFrame, dtype: str) -> str:
    """The largest ridge in terms of the smallest, of chips with one row each; the ridge itself where that says nothing."""
    rows = part.sort("ridge").to_dicts()
    least, most = rows[0], rows[-1]
    times = significant(most["ridge"] / least["ridge"])
    if times == "1":
        chips = f"{part.height} chips" if part.height > 1 else chip_label(least["chip"])
        return f"The {dtype} ridge of {chips} is {significant(least['ridge'])} FLOP per byte"
    return f"In {dtype} {chip_label(most['chip'])} needs {times} times the intensity of {chip_label(least['chip'])}"
