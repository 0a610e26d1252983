"""Thresholds over the number of chips that share the work: where splitting stops paying."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import altair as alt
import polars as pl

from rooflines.charts.chips import EVERY, at_right_edge, end_places, told_apart
from rooflines.charts.frames import highest, lowest
from rooflines.charts.kit.drawing import (
    LAYOUTS,
    SHORT_LABEL,
    Chart,
    Choice,
    assemble,
    binary_axis,
    data,
    palette_of,
    placed_text,
    places_of,
    starting,
    ticks_between,
)
from rooflines.charts.kit.labels import (
    Place,
    chip_label,
    count,
    part_name,
    shorten,
    sizes_text,
    split_on,
)
from rooflines.charts.kit.themes import Margins, plot_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["critical_over_shards"]

MARGINS = Margins(left=4.6, right=12.5)
NAME_ROOM = 11.6
LANE = 0.05
MOST_LANES = 8
"""Share of the plot's height that one chip's row has in the area of never."""


def critical_over_shards(
    frame: pl.DataFrame,
    *,
    size: str = "B",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
    palette: Mapping[str, str] | None = None,
) -> Chart:
    """The smallest compute-bound size over the number of chips, a line for each chip; never is an area of its own.

    Args:
        frame: From `frames_sizes.shards_frame`: `critical` [1] over `shards` [1].
        size: What is solved for.
        first: What is shown first, by the names of the parameters; the first of the frame by default.
        title: In place of the finding.
        palette: Chips with their vendors, where several charts are to share colours.

    Returns:
        A chart with the parameters `dtypes`, `sharding`, and `chip` for the one to tell from the others.
    """
    chips, combinations, shardings = (
        frame[name].unique(maintain_order=True).to_list() for name in ("chip", "dtypes", "sharding")
    )
    span = lowest(frame, "shards") / 1.12, highest(frame, "shards") * 1.12
    lines, ends, bands, findings, edges = [], [], [], {}, {}
    for (combination, split), case in frame.group_by("dtypes", "sharding", maintain_order=True):
        room = _Room(case)
        lines.append(room.placed(case))
        ends.append(_ends(lines[-1], room))
        bands.append(
            {
                "dtypes": combination,
                "sharding": split,
                "left": span[0],
                "right": span[1],
                **room.band(),
            }
        )
        edges[f"{combination}|{split}"] = {
            "low": room.low,
            "high": room.high,
            "ticks": ticks_between(room.low, room.never),
        }
        for chip in (EVERY, *chips):
            findings[f"{chip}|{combination}|{split}"] = _finding(
                lines[-1], str(combination), str(split), size, title
            )
    placed = pl.concat(lines)
    known = [
        alt.param(name="edges", value=edges),
        alt.param(
            name="span", expr="edges[dtypes + '|' + sharding] || {low: 1, high: 10, ticks: []}"
        ),
    ]
    x = alt.X("shards:Q", **binary_axis(*span, "Chips that share the work"))
    axis = alt.Axis(
        values=alt.expr("span.ticks"), labelExpr=SHORT_LABEL, title=f"Smallest compute-bound {size}"
    )
    scale = alt.Scale(
        type="log", domainMin=alt.expr("span.low"), domainMax=alt.expr("span.high"), nice=False
    )
    y = alt.Y("y:Q", scale=scale, axis=axis)
    color = alt.Color("chip:N", legend=None, scale=palette_of(frame, palette))
    now = "datum.dtypes == dtypes && datum.sharding == sharding"
    tooltip = [
        "chip:N",
        "link:N",
        alt.Tooltip("shards:Q", title="chips"),
        alt.Tooltip("critical:Q", title=f"critical {size}", format=",d"),
        "limit:N",
    ]
    base = alt.Chart(data(placed.drop("setting"))).transform_filter(now)
    encoding = {"x": x, "y": y, "color": color, "opacity": told_apart(), "tooltip": tooltip}
    ground = alt.Chart(data(pl.DataFrame(bands))).transform_filter(
        f"{now} && datum.high > datum.never"
    )
    layers: list[alt.Chart] = [
        ground.mark_rect(style="never", opacity=0.55).encode(
            x=alt.X("left:Q"), x2="right:Q", y=alt.Y("never:Q"), y2="high:Q"
        ),
        ground.mark_text(
            style="note", align="right", x=0, dx=alt.expr("em * -0.45"), text="never", clip=False
        ).encode(y=alt.Y("middle:Q")),
    ]
    layers += [
        base.transform_filter("!datum.never")
        .mark_line(style="curve")
        .encode(**encoding, detail="chip:N"),
        base.transform_filter("!datum.never")
        .mark_point(style="dot", filled=True)
        .encode(**encoding),
        base.transform_filter("datum.never")
        .mark_point(style="dot", filled=True, shape="cross", size=alt.expr("em * em * 0.62"))
        .encode(**encoding),
        *placed_text(
            pl.concat(ends),
            "value",
            now,
            halo=False,
            clip=False,
            x=at_right_edge(),
            y=alt.Y("y:Q"),
            color=color,
            opacity=told_apart(),
        ),
    ]
    choices = [
        Choice("chip", [EVERY, *chips]),
        Choice("dtypes", combinations),
        Choice("sharding", shardings, "Split"),
    ]
    return assemble(layers, findings, starting(choices, first), MARGINS, known)


class _Room:
    """The heights of one choice: from the least critical size to the largest, and rows for never above them."""

    def __init__(self, case: pl.DataFrame) -> None:
        chips = case["chip"].unique(maintain_order=True).to_list()
        self.low = lowest(case, "critical", 1) / 1.8
        self.never = max(highest(case, "critical", 10) * 1.8, self.low * 10)
        share = 1 - LANE * min(len(chips), MOST_LANES) if case["critical"].null_count() else 1.0
        self.high = self.low * (self.never / self.low) ** (1 / share)
        lanes = min(len(chips), MOST_LANES)
        self.lane = {
            c: self.never * (self.high / self.never) ** ((i % lanes + 0.5) / lanes)
            for i, c in enumerate(chips)
        }

    def placed(self, case: pl.DataFrame) -> pl.DataFrame:
        """With the height of every point, `y`, and the interconnect as one reads it."""
        lane = pl.col("chip").replace_strict(self.lane, return_dtype=pl.Float64)
        links = {name: part_name(name) for name in case["network"].drop_nulls().unique()}
        return case.with_columns(
            y=pl.coalesce(pl.col("critical").cast(pl.Float64), lane),
            never=pl.col("critical").is_null(),
            link=pl.col("network")
            .replace_strict(links, default="", return_dtype=pl.String)
            .fill_null(""),
        )

    def band(self) -> dict[str, float]:
        """The heights themselves."""
        return {
            "low": self.low,
            "never": self.never,
            "high": self.high,
            "middle": math.sqrt(self.never * self.high),
        }

    def at(self, y: float) -> float:
        """A height as a share of the plot's, from above."""
        return 1 - math.log(y / self.low) / math.log(self.high / self.low)


def _ends(case: pl.DataFrame, room: _Room) -> pl.DataFrame:
    """The chips' names at the ends of their lines."""
    last = (
        case.sort("shards").group_by("chip", maintain_order=True).last().sort("y", descending=True)
    )
    places: dict[str, Sequence[Place | None]] = {}
    for layout, look in LAYOUTS.items():
        down = plot_size(look, MARGINS)[1]
        places[layout] = end_places([room.at(y) * down for y in last["y"]], down)
    text = [
        shorten(
            f"{chip_label(row['chip'])}" + (f" · {row['link']}" if row["link"] else ""),
            NAME_ROOM,
            bold=True,
            tail=True,
        )
        for row in last.to_dicts()
    ]
    return last.select(
        "chip", "dtypes", "sharding", "y", text=pl.Series(text, dtype=pl.String)
    ).hstack(places_of(places))


def _finding(
    case: pl.DataFrame, combination: str, split: str, size: str, title: str | None
) -> tuple[str, str]:
    """Title and subtitle: what the largest number of chips needs, or where the chip with the least reach never is compute-bound."""
    setting = case["setting"][0]
    subtitle = (
        f"{combination}, split {split}{', ' + setting if setting else ''}. Every byte counted."
    )
    if title:
        return title, subtitle
    if case["never"].all():
        return f"Split {split}: no {size} is enough on the chips shown", subtitle
    never = (
        case.group_by("chip", "shards", maintain_order=True)
        .agg(pl.col("never").all())
        .filter("never")
    )
    if never.height:
        by_chip = (
            never.group_by("chip", maintain_order=True)
            .agg("shards")
            .sort(pl.col("shards").list.len(), descending=True, maintain_order=True)
        )
        least = by_chip.row(0, named=True)
        return f"{split_on(split, least['chip'], least['shards'])}: no {size} is enough", subtitle
    most = highest(case, "shards")
    needed = case.filter(pl.col("shards") == most)["critical"]
    chips = "1 chip needs" if most == 1 else f"{count(most)} chips need"
    return (
        f"{chips} {sizes_text(size, needed.drop_nulls())}{', by type' if needed.n_unique() > 1 else ''}",
        subtitle,
    )
