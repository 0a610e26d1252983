"""What charts that compare chips share: the selected chip, and rows of chips."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import significant
from rooflines.charts.claims import Finding, claim, over
from rooflines.charts.kit.drawing import data, placed_text
from rooflines.charts.kit.text import chip_label, shorten

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EVERY = "all"
"""The choice that highlights no chip."""

MOST_ROWS = 16
"""Rows that a picture has room for; of more chips an even selection is shown."""

ALONG = 0.008
"""Lines closer than this share of the plot's height hide each other."""

MOST_BENEATH = 3
"""Lines on a line for which it gets wider [1]."""

NAMED = 3
"""Chips that a subtitle names; of more it gives the number [1]."""

CHIP_MARGIN, NAME_ROOM = 10.4, 9.5
"""Room left of the plot for the names of chips, and the width that a name may have [em]."""


ADDED = "(!datum.added || datum.chip == chip)"
"""A filter: rows of the chips compared, and of the one that the reader adds to them."""

BESIDE = f"(added ? chip : '{EVERY}')"
"""The chip that the reader adds to those compared, as an expression; else the choice of all."""


def compared_rows(frame: pl.DataFrame) -> alt.Chart:
    """The rows of the chips compared; if the frame has `added`, with those of the added one."""
    base = alt.Chart(data(frame))
    return base.transform_filter(ADDED) if "added" in frame.columns else base


def added_parameters(added: Sequence[str]) -> list[alt.Parameter]:
    """Parameters of the chips that a reader can add: their names, and how many are added, 0 or 1.

    Args:
        added: The chips; none for a chart without that choice.
    """
    names = {chip: shorten(chip_label(chip), NAME_ROOM, tail=True) for chip in added}
    parameters = [
        alt.param(name="addable", value=names),
        alt.param(name="added", expr="addable[chip] ? 1 : 0"),
    ]
    return parameters if added else []


def names_at_ends(
    ends: pl.DataFrame,
    points: pl.DataFrame,
    now: str,
    **encoding: Any,  # noqa: ANN401, handed on to Altair
) -> list[alt.Chart]:
    """The chips' names right of the plot; chips compared have other places beside an added one.

    Args:
        ends: With the columns of `placed`, `text`, `line`, the chip, and `chip`, the added one.
        points: What is drawn; it has `added` if chips can be added.
        now: A filter on what the reader chose.
        encoding: Of the names, besides their place across.
    """
    if "added" in points.columns:
        now += f" && datum.chip == {BESIDE}"
    place = {"x": at_right_edge(), **encoding}
    named = placed_text(ends, "value", now, halo=False, clip=False, **place)
    return [each.transform_calculate(chip="datum.line") for each in named]


def at_right_edge() -> Any:  # noqa: ANN401, Altair does not type its values
    """The right edge of the plot, at any width."""
    return alt.value(alt.expr("width"))


def highlight() -> Any:  # noqa: ANN401, Altair does not type its conditions
    """Opacity: full for the selected chip, or for all if none is selected."""
    return (
        alt.when(f"chip == '{EVERY}' || datum.chip == chip")
        .then(alt.value(1))
        .otherwise(alt.value(0.18))
    )


def ridges_compared(part: pl.DataFrame, dtype: str, subtitle: str) -> Finding:
    """The largest ridge over the smallest, of chips with one row each; or the ridge they share."""
    rows = part.sort("ridge").to_dicts()
    least, most = rows[0], rows[-1]
    ratio = most["ridge"] / least["ridge"]
    times, shown = significant(ratio), over(part, "chip", "dtypes")
    if times == "1":
        chips = f"{part.height} chips" if part.height > 1 else chip_label(least["chip"])
        title = f"The {dtype} ridge of {chips} is {significant(least['ridge'])} FLOP per byte"
        return Finding(title, subtitle, claim("value", "ridge", shown, least["ridge"]))
    more, less = chip_label(most["chip"]), chip_label(least["chip"])
    title = f"In {dtype} {more} needs {times} times the intensity of {less}"
    value = [ratio, most["chip"], least["chip"]]
    return Finding(title, subtitle, claim("times", "ridge", shown, value))


Position = TypeVar("Position")
"""Where along a line its height is known."""


def beneath(
    heights: Mapping[str, Mapping[Position, float]], closer_than: float = ALONG, along: float = 0.0
) -> dict[str, int]:
    """How many lines drawn later run along each line.

    Args:
        heights: Of every line in the order of drawing, its heights by position, as shares of the
            plot's.
        closer_than: The distance below which lines hide each other, as such a share [1].
        along: They do at more than this share of their common positions [1].
    """
    names = list(heights)

    def hides(later: str, name: str) -> bool:
        shared = heights[name].keys() & heights[later].keys()
        near = (abs(heights[name][at] - heights[later][at]) < closer_than for at in shared)
        return sum(near) > along * len(shared)

    return {
        name: sum(hides(later, name) for later in names[index + 1 :])
        for index, name in enumerate(names)
    }


def wider() -> Any:  # noqa: ANN401, Altair does not type its values
    """The width of a line that has others on it, so that it is seen on both sides of them."""
    return alt.expr(f"em * (0.19 + 0.2 * min(datum.beneath, {MOST_BENEATH}))")


def larger() -> Any:  # noqa: ANN401, Altair does not type its values
    """The area of a point that has others on it, so that it is seen around them."""
    return alt.expr(f"pow(em * (0.62 + 0.3 * min(datum.beneath, {MOST_BENEATH})), 2)")


def evenly(chips: Sequence[str], most: int = MOST_ROWS) -> list[str]:
    """Chips evenly selected from a list that is longer than there is room for."""
    if len(chips) <= most:
        return list(chips)
    return [chips[round(i * (len(chips) - 1) / (most - 1))] for i in range(most)]


def by_compute(frame: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
    """The rows of one dtype combination for each dtype that is computed in: others repeat them.

    Args:
        frame: From `ridge_frame`.
        own: Those of its rows that the picture shows; their combinations come first.
    """
    columns = ("compute", "dtypes")
    rows = pl.concat([own.select(columns), frame.select(columns)])
    first = rows.unique("compute", keep="first", maintain_order=True)["dtypes"]
    return frame.filter(pl.col("dtypes").is_in(first.to_list()))


def names_of(chips: Sequence[str]) -> str:
    """A few chips by name, or how many they are."""
    return ", ".join(map(chip_label, chips)) if len(chips) <= NAMED else f"{len(chips):,} chips"


def row_of(chips: Sequence[str]) -> pl.Expr:
    """The row of each chip, counted from the top."""
    rows = {chip: row for row, chip in enumerate(chips)}
    return pl.col("chip").replace_strict(rows, return_dtype=pl.Float64)


def chip_axis(
    chips: Sequence[str] | Mapping[str, Sequence[str]],
    by: Sequence[str] = ("dtypes",),
    *,
    added: bool = False,
    least: int | None = None,
) -> dict[str, Any]:
    """Scale and axis with one row per chip.

    Args:
        chips: Their order; it may depend on parameters, and is then by their values joined by `|`.
        by: These parameters.
        added: Whether there is a last row for the chip that the reader adds.
        least: Rows that there are for every order, more only for longer ones; by default as many
            as in the longest.
    """
    orders = {"": chips} if not isinstance(chips, dict) else chips
    names = {
        key: [shorten(chip_label(chip), NAME_ROOM, tail=True) for chip in order]
        for key, order in orders.items()
    }
    chosen = " + '|' + ".join(by) if isinstance(chips, dict) else "''"
    most = max(len(order) for order in orders.values())
    least = most if least is None else least
    longer = {key: len(order) for key, order in orders.items() if len(order) > least}
    rows = f"({json.dumps(longer)}[{chosen}] || {least})" if longer else str(least)
    label = f"({json.dumps(names)}[{chosen}] || [])[datum.value] || "
    label += f"(datum.value == {rows} && addable[chip]) || ''" if added else "''"
    axis = alt.Axis(
        values=list(range(most + added)),
        labelExpr=label,
        title=None,
        grid=False,
        ticks=False,
        domain=False,
    )
    lowest = alt.expr(f"{rows} - 0.5" + " + added" * added)
    return {"scale": alt.Scale(domain=[lowest, -0.5], nice=False, zero=False), "axis": axis}


def shown_of(shown: Sequence[str], chips: Sequence[str]) -> str:
    """What a subtitle says if not all chips are shown."""
    return "" if len(shown) == len(chips) else f" {len(shown)} of {len(chips)} chips."


def heading(text: str, style: str = "strong", after: float = 0.0) -> alt.Chart:
    """The name of the values, where other charts have the title of their y axis.

    Args:
        text: The name.
        style: Its style.
        after: Room left before it [em].
    """
    base = alt.Chart(pl.DataFrame({"text": [text]}))
    x = alt.expr(f"em * {after:.2f}") if after else 0
    drawn: alt.Chart = base.mark_text(
        style=style, align="left", clip=False, x=x, y=alt.expr("em * -1.35")
    ).encode(text=alt.Text("text:N"))
    return drawn
