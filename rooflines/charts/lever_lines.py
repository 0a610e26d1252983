"""Thresholds of a lever over the batch, the context or the step time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.answers.claims import Sentence
from rooflines.basics.errors import RooflinesError, check_choices, quote
from rooflines.basics.lazy import pl
from rooflines.basics.text import significant
from rooflines.charts import frames
from rooflines.charts.kit import label_placement
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, shorten, with_value
from rooflines.charts.kit.label_placement import Plane
from rooflines.charts.kit.themes import Margins
from rooflines.charts.views import View
from rooflines.dictionary.columns import FOUND, FROM, TO
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.solvers.payoffs import ESTIMATED_TIME, LOWER_TIME, SERIAL_TIME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.charts.kit.layers import Layer
    from rooflines.hardware.entries import Chip

MARGINS, NAME_ROOM = Margins(left=4.6, right=13.6), 12.8

AXIS_ROOM = 1.15
"""Factor by which axes extend beyond the values [1]."""


class LeverText(NamedTuple):
    """Texts about a lever's threshold.

    Attributes:
        quantity: Title of the vertical axis.
        claim: Title, with the range of the thresholds in braces.
        linear: Whether the vertical axis starts at zero.
        side: Side on which the lever pays, `from` or `to` the threshold.
    """

    quantity: str
    claim: str
    linear: bool = False
    side: str = FROM


LEVERS: Mapping[str, LeverText] = {
    "B_draft": LeverText(
        "Largest batch at which a draft pays", "A draft pays up to batches of {}", side=TO
    ),
    "accepted_draft": LeverText(
        "Accepted tokens", "A draft pays above {} accepted tokens", linear=True
    ),
    "B_pools": LeverText("Batch of a mixed server", "Separate servers pay beyond batches of {}"),
    "chunk": LeverText(
        "Tokens of a prompt",
        "A decode step takes {} tokens of a prompt along",
        linear=True,
        side=TO,
    ),
}
"""Levers whose thresholds are along sizes of a grid."""

SIZES = {
    "B": ("Batch B", kit.COUNT_LABEL),
    "S": ("Context S", kit.COUNT_LABEL),
    "target_s": ("Step time", kit.TIME_LABEL),
}
"""Title and labels of the horizontal axis, by column."""

TIMES = {
    LOWER_TIME: "bounds",
    SERIAL_TIME: "kernels one after another",
    ESTIMATED_TIME: "estimates",
}
"""Times in the subtitle."""

KEYS, CHIP_KEYS = ("model", "split", "dtypes", "T"), ("memory", "network")
"""Columns with one value in a chart, and with one for each chip."""


def lever_view(
    thresholds: pl.DataFrame,
    axis: str,
    *,
    time: str = LOWER_TIME,
    chips: Mapping[str, Chip] | None = None,
    title: str | None = None,
) -> View:
    """Draw a lever's thresholds, a line for each chip; arguments as in `charts.levers`."""
    check_choices([axis], list(LEVERS), "no lever along a grid")
    rows = thresholds.filter(axis=axis, time=time).drop_nulls("critical_exact")
    size = _size(rows, axis)
    rows = rows.sort("chip", size, maintain_order=True)
    _check_keys(rows, size)
    _check_ends(rows, axis, size)
    points = rows.select(
        "chip",
        size=pl.col(size).cast(pl.Float64),
        threshold="critical_exact",
        pays="side",
        shown=pl.col("critical" if LEVERS[axis].side == TO else "critical_exact").cast(pl.Float64),
        outcome=pl.col("outcome").cast(pl.String),
    )
    plane = _plane(points, linear=LEVERS[axis].linear)
    names = points["chip"].unique(maintain_order=True).to_list()
    entries = chip_entries() if chips is None else chips
    vendors = {name: entries[name].vendor if name in entries else None for name in names}
    return View(
        _claim(points, axis, title),
        _subtitle(rows, size, time),
        _layers(axis, size, vendors),
        {"points": points, "names": _names(points, plane)},
        MARGINS,
        rows,
        _plane_params(plane, size),
        names,
    )


def _size(rows: pl.DataFrame, axis: str) -> str:
    """Column along which thresholds differ, with the most values."""
    counts = {name: rows[name].n_unique() for name in SIZES if name in rows.columns}
    size = max(counts, key=counts.__getitem__, default="B")
    if rows.is_empty() or counts[size] == 1:
        problem = f"has {rows.height} numbers of {axis} along B, S and target_s, too few for a line"
        raise RooflinesError("thresholds", problem, f"list several sizes, and {axis} in thresholds")
    return size


def _check_ends(rows: pl.DataFrame, axis: str, size: str) -> None:
    """Refuse thresholds that a line and its title would show wrongly."""
    several = rows.select("chip", size).is_duplicated().any()
    if several or not rows["side"].drop_nulls().is_in([LEVERS[axis].side]).all():
        problem = f"has several thresholds of {axis} at one {size}, or ones from its other side"
        raise RooflinesError("thresholds", problem, "read them in the table, or keep one")
    if FOUND not in rows["outcome"].cast(pl.String):
        problem = f"has no {axis} at which the lever starts or ceases to pay: always or never"
        raise RooflinesError("thresholds", problem, "list other sizes")


def _check_keys(rows: pl.DataFrame, size: str) -> None:
    """Refuse rows with several cases on a chip."""
    fixed = [name for name in (*KEYS, *SIZES) if name != size and name in rows.columns]
    parts = [(name, rows) for name in fixed]
    parts += [(name, part) for name in CHIP_KEYS for _, part in rows.group_by("chip")]
    for name, part in parts:
        if part[name].n_unique() > 1:
            problem = f"has several {name}, such as {_listed(part[name])}"
            fix = f"keep one, as by .filter({name}=..)"
            raise RooflinesError("thresholds", problem, fix)


def _listed(values: pl.Series) -> str:
    """First two values."""
    return " and ".join(quote(value) for value in values.unique(maintain_order=True).head(2))


def _plane(points: pl.DataFrame, *, linear: bool) -> Plane:
    """Plot coordinates, extended somewhat beyond the points; x is logarithmic."""
    sizes = frames.lowest(points, "size"), frames.highest(points, "size")
    if linear:
        top = max(frames.highest(points, "threshold"), 0.1)
        return Plane(sizes, (0.0, top * AXIS_ROOM), linear=True)
    positive = points.filter(pl.col("threshold") > 0)
    low, high = frames.lowest(positive, "threshold"), frames.highest(positive, "threshold")
    return Plane(sizes, (low / AXIS_ROOM, high * AXIS_ROOM))


def _plane_params(plane: Plane, size: str) -> dict[str, Any]:
    """Edges and ticks: sizes at powers of two."""
    up = kit.even_ticks(plane.y[1]) if plane.linear else None
    if size == "target_s":
        return kit.plane_params(plane, up=up)
    return kit.plane_params(plane, kit.powers_of_two(*plane.x), up)


def _names(points: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """Chip names right of the plot, with the threshold at the largest size if there is one."""
    ends = points.group_by("chip", maintain_order=True).last()
    reaches = (pl.col("size") == points["size"].max()) & (pl.col("outcome") == FOUND)
    last = ends.with_columns(shown=pl.when(reaches).then("shown"))
    texts = [
        shorten(chip_label(chip), NAME_ROOM, bold=True)
        if value is None
        else with_value(chip_label(chip), significant(value), NAME_ROOM)
        for chip, value in last.select("chip", "shown").iter_rows()
    ]
    heights = last["threshold"].clip(*plane.y).to_list()
    named = last.select("chip", threshold=pl.Series(heights), text=pl.Series(texts))
    return named.hstack(label_placement.at_ends(MARGINS, plane, heights))


def _layers(axis: str, size: str, vendors: Mapping[str, str | None]) -> list[Layer]:
    """Layers: a line and dots for each chip, and names at the right edge."""
    across, label = SIZES[size]
    x = kit.quantitative_channel("size", **kit.log_axis("x", across, label))
    lever = LEVERS[axis]
    scale = kit.axis if lever.linear else kit.log_axis
    y = kit.quantitative_channel("threshold", **scale("y", lever.quantity, kit.SHORT_LABEL))
    at: dict[str, Any] = {"x": x, "y": y, "color": kit.chip_colour(vendors)}
    at["tooltip"] = kit.tips(chip="chip", size=size, threshold="threshold", pays="pays")
    line = {**at, "order": kit.quantitative_channel("size")}
    named = {
        "x": {"value": kit.expr("width")},
        "y": y,
        "fill": kit.chip_colour(vendors, letters=True),
    }
    return [
        kit.layer("points", "line", "curve", line, clip=True),
        kit.layer("points", "point", "dot", at, size=kit.expr("pow(em * 0.6, 2)")),
        *kit.labels("names", "value", named, halo=False, clip=False),
    ]


def _claim(points: pl.DataFrame, axis: str, title: str | None) -> Sentence:
    """Range of the thresholds at which the lever starts or ceases to pay; `to` has whole sizes."""
    turning = points.filter(outcome=FOUND)
    low, high = (significant(end(turning, "shown")) for end in (frames.lowest, frames.highest))
    rows = turning.select("chip").unique(maintain_order=True).to_dicts()
    text = LEVERS[axis].claim.format(f"{low} to {high}" if low != high else low)
    return Sentence(text=title or text, rows=rows, every=[row["chip"] for row in rows])


def _subtitle(rows: pl.DataFrame, size: str, time: str) -> str:
    """Subtitle: model, dtypes, split, other sizes, and what thresholds are by."""
    row = rows.row(0, named=True)
    fixed = [
        f"{name} = {row[name]:,}"
        for name in ("B", "S", "T")
        if name != size and row.get(name) is not None
    ]
    target = row.get("target_s")
    if size != "target_s" and target is not None:
        fixed.append(f"a step of {target * 1e3:g} ms")
    elif row["axis"] == "chunk" and target is None:
        fixed.append("no longer than decode alone")
    by = TIMES.get(time, time)
    slowdowns = rows["slowdown"].unique().to_list()
    if time == ESTIMATED_TIME and len(slowdowns) == 1 and slowdowns[0] is not None:
        by = f"{significant(slowdowns[0])} times the bounds"
    missing = "always, never or no estimate" if by == TIMES[ESTIMATED_TIME] else "always or never"
    setting = [chip_label(str(row["model"])), str(row["dtypes"]), str(row["split"]), *fixed]
    return f"{', '.join(setting)}; by {by}. No point: {missing}."
