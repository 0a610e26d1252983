"""What maps of critical sizes share: coloured cells with numbers, and axes of two sizes."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import count
from rooflines.charts.basis import (
    CALIBRATED,
    basis_names,
    by_basis,
    critical_views,
    with_both,
)
from rooflines.charts.frames import SPLIT
from rooflines.charts.kit.drawing import BINARY_LABEL, data
from rooflines.charts.kit.place import LAYOUTS, in_cell, placed
from rooflines.charts.kit.text import width_em
from rooflines.charts.kit.themes import plot_size

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.charts.kit.place import Place
    from rooflines.charts.kit.themes import Margins

SPREAD = 16.0
"""Above this multiple of the smallest number the colour does not change."""

DARK_FROM = 0.6
"""Share of the colour scale from which on numbers are written in the other colour.

Black and white reach a contrast of 4.5 on the colour there, in both themes.
"""

UNDRAWN = (*SPLIT, "shape", "limit_intensity", "reached", "share", "style", "middle_x", "middle_y")
"""Columns of cells that no mark and no tooltip reads."""

BELOW = 0.75
"""Size of the text below a number, as a share of other text [1]."""

TWO_LINES = 2.1
"""Least height of a cell that has such text [em]."""

SHOWN = ("text", "below", "on", "on_narrow", "two", "two_narrow")
"""Columns of numbers that their marks read."""

STYLES = ("cell-low", "cell-high", "cell-never")
"""Styles of numbers: on a pale cell, on a dark one, and where there is no number."""

MEANING = {"D": "D (contracting dimension)", "F": "F (output dimension)"}


def size_axes(
    span: tuple[float, float, float, float],
    dims: tuple[str, str],
    ticks: tuple[Sequence[float], Sequence[float]],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scales and axes of two sizes: from and to across, from and to up."""
    axes: list[dict[str, Any]] = []
    for low, high, dim, values in zip(span[::2], span[1::2], dims, ticks, strict=True):
        axis = alt.Axis(
            values=list(values),
            labelExpr=BINARY_LABEL,
            title=MEANING.get(dim, dim),
            grid=False,
            domain=False,
            ticks=False,
        )
        scale = alt.Scale(type="log", base=2, domain=[low, high], nice=False)
        axes.append({"scale": scale, "axis": axis})
    return axes[0], axes[1]


def middles() -> dict[str, pl.Expr]:
    """The middles of cells on logarithmic axes."""
    return {
        f"middle_{axis}": (pl.col(f"{axis}_low") * pl.col(f"{axis}_high")).sqrt() for axis in "xy"
    }


BY_BASIS = ("critical", "text", "near", "exact")
"""Columns of cells that a calibration changes."""


def cells_by_basis(frame: pl.DataFrame, by: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Cells, and their numbers by `basis`.

    Args:
        frame: As `critical_views` needs it.
        by: As in `numbered`. With `chip` among them one chip is shown at a time; those without a
            calibration have no calibrated numbers.

    Returns:
        A row for each cell, as `with_both` makes it; and cells with `text`, `style` and `basis`.
    """
    views = {basis: numbered(view, by) for basis, view in critical_views(frame).items()}
    numbers = pl.concat(view.with_columns(basis=pl.lit(name)) for name, view in views.items())
    if "chip" in by:
        numbers = numbers.filter((pl.col("basis") != CALIBRATED) | pl.col("calibrated"))
    return with_both(views, BY_BASIS), numbers


def numbered(frame: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Cells with the `text` of their numbers and its `style`, by the colour of the cell.

    `below` is the number for a smaller share of the peak, null without one.

    Args:
        frame: With `critical`, null for never, and the columns of `share_values`.
        by: The columns of what a reader chooses: colours begin at the smallest number of a choice,
            without those of `added` rows.
    """
    least = _colours_from(frame).min().over(by).cast(pl.Float64)
    low = least.map_elements(rounded_down, pl.Float64)
    share = (pl.col("critical").cast(pl.Float64) / low).log() / math.log(SPREAD)
    texts = [count(value) if value is not None else "never" for value in frame["critical"]]
    below = [None if reached is None else count(reached) for reached in frame["reached"]]
    return frame.with_columns(
        text=pl.Series(texts, dtype=pl.String),
        below=pl.Series(below, dtype=pl.String),
        style=pl.when(pl.col("critical").is_null())
        .then(pl.lit("cell-never"))
        .when(share > DARK_FROM)
        .then(pl.lit("cell-high"))
        .otherwise(pl.lit("cell-low")),
    )


def with_room(
    numbers: pl.DataFrame,
    margins: Margins,
    rooms: Callable[[tuple[float, float]], Sequence[tuple[float, float]]],
) -> pl.DataFrame:
    """Numbers with the places of `placed`, and `two` and `two_narrow`: if `below` has room, too.

    Args:
        numbers: From `cells_by_basis`.
        margins: Room around the plot.
        rooms: Gives width and height of the cell of each number in a plot of this size [em].
    """
    place, rooms = cache(in_cell), cache(rooms)
    columns = {}
    for layout, tail in (("wide", ""), ("narrow", "_narrow")):
        plot = plot_size(LAYOUTS[layout], margins)
        columns[f"two{tail}"] = [
            text is not None and tall >= TWO_LINES and width_em(text) * BELOW < wide
            for text, (wide, tall) in zip(numbers["below"], rooms(plot), strict=True)
        ]

    def places(plot: tuple[float, float]) -> list[Place | None]:
        return [place(text, *room) for text, room in zip(numbers["text"], rooms(plot), strict=True)]

    return numbers.with_columns(
        *(pl.Series(name, values, dtype=pl.Boolean) for name, values in columns.items()),
        *placed(margins, places),
    )


def below_text(numbers: pl.DataFrame) -> str:
    """What a subtitle says of the smaller numbers; "" if no cell has one.

    Args:
        numbers: From `with_room`.
    """
    shares = numbers.filter(pl.col("two") | pl.col("two_narrow"))["share"]
    return f" Small: {100 * shares[0]:g} % of the peak." if len(shares) else ""


def _colours_from(frame: pl.DataFrame) -> pl.Expr:
    """The numbers that colours begin at the smallest of."""
    critical = pl.col("critical")
    return pl.when(~pl.col("added")).then(critical) if "added" in frame.columns else critical


def lowest_sizes(numbers: pl.DataFrame, by: Sequence[str]) -> list[alt.Parameter]:
    """Parameters of the colour scale: its lower end for every choice, and for the present one.

    Args:
        numbers: From `cells_by_basis`.
        by: As there.
    """
    by = [*by, *basis_names(numbers)]
    lows = numbers.group_by(by, maintain_order=True).agg(_colours_from(numbers).min())
    values = {"|".join(key): rounded_down(low) for *key, low in lows.iter_rows() if low}
    key = " + '|' + ".join(by)
    return [
        alt.param(name="lows", value=values),
        alt.param(name="lowest", expr=f"lows[{key}] || 1"),
    ]


def rounded_down(value: float) -> float:
    """The number rounded down to two digits, the start of a legend."""
    power = 10.0 ** (math.floor(math.log10(value)) - 1)
    return max(math.floor(value / power) * power, 1.0)


def _color(size: str) -> alt.Color:
    """The colour of a critical size, on a scale that begins at the smallest one shown."""
    steps = ", ".join(f"lowest * {2**i}" for i in range(int(math.log2(SPREAD)) + 1))
    label = f"(datum.value >= lowest * {SPREAD:g} ? '≥ ' : '') + format(datum.value, ',d')"
    legend = alt.Legend(
        title=f"Critical {size}",
        values=alt.expr(f"[{steps}]"),
        labelExpr=label,
        gradientLength=alt.expr("height * 0.72"),
    )
    scale = alt.Scale(
        type="log",
        domainMin=alt.expr("lowest"),
        domainMax=alt.expr(f"lowest * {SPREAD:g}"),
        clamp=True,
        range="heatmap",
        nice=False,
    )
    return alt.Color("critical:Q", scale=scale, legend=legend)


def cell_marks(
    cells: pl.DataFrame,
    now: str,
    size: str,
    position: Mapping[str, Any],
    **encoding: Any,  # noqa: ANN401, handed on to Altair
) -> list[alt.Chart]:
    """Cells in the colours of their critical sizes; never is grey.

    Args:
        cells: From `cells_by_basis`.
        now: A filter on what the reader chose.
        size: What is solved for.
        position: The encoding of the four edges, with `tooltip`.
        encoding: More for the cells that have a colour.
    """
    base = alt.Chart(data(cells.drop(UNDRAWN, strict=False))).transform_filter(now)
    base = by_basis(base, cells, BY_BASIS)
    return [
        base.transform_filter("datum.critical == null")
        .mark_rect(style=["cell", "never"])
        .encode(**position),
        base.transform_filter("datum.critical != null")
        .mark_rect(style="cell")
        .encode(**position, color=_color(size), **encoding),
    ]


def number_marks(
    cells: pl.DataFrame, now: str, columns: Sequence[str], x: alt.X, y: alt.Y
) -> list[alt.Chart]:
    """The numbers of cells at their places, above those for a smaller share.

    Args:
        cells: From `with_room`.
        now: A filter on what the reader chose.
        columns: Those that the filter and the places need.
        x: The middles of the cells.
        y: The same.
    """
    layers: list[alt.Chart] = []
    two = "(narrow ? datum.two_narrow : datum.two)"
    small = alt.expr(f"em * {BELOW}")
    for style in STYLES:
        part = cells.filter(style=style).select(*columns, *SHOWN)
        if not part.height:
            continue
        base = alt.Chart(data(part)).encode(x=x, y=y)
        base = base.transform_filter(f"(narrow ? datum.on_narrow : datum.on) && {now}")
        up, down = alt.expr(f"{two} ? em * -0.5 : 0"), alt.expr("em * 0.6")
        layers.append(base.mark_text(style=style, dy=up).encode(text=alt.Text("text:N")))
        if part["two"].any() or part["two_narrow"].any():
            layers.append(
                base.transform_filter(two)
                .mark_text(style=style, dy=down, fontSize=small)
                .encode(text=alt.Text("below:N"))
            )
    return layers
