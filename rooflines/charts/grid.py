"""Tables of cells with a number each: critical sizes, and bottlenecks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, shorten, width_em
from rooflines.charts.kit.label_placement import LAYOUTS
from rooflines.charts.kit.themes import plot_size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.kit.themes import Margins

CELL_TEXT, MIN_CELL_HEIGHT = 0.9, 1.05
"""Text size in a cell, and minimum height for a cell with a number [em]."""

SUBTEXT_SIZE, MIN_TWO_LINE_HEIGHT = 0.75, 2.1
"""Size of the text below a number [1], and minimum cell height for both lines [em]."""

NAME_GAP, ROW_NAME_HEIGHT, MIN_NAME_WIDTH = 0.5, 1.35, 4.0
"""Gap between column names, height of a row name, and minimum width of a column name, below which
some names are left out [em]."""

BINARY = 1024

TEXTS = ("chip", "dtypes", "layer", "limit")
"""Cell columns that hold text, not sizes."""


def size_name(size: float) -> str:
    """Axis label of a size: multiples of 1,024 with k."""
    whole = round(size)
    if whole >= BINARY and whole % BINARY == 0:
        return f"{whole // BINARY:,}k"
    return f"{whole:,}"


def axis_names(key: str, values: Sequence[Any]) -> list[str]:
    """Axis labels of a column's values."""
    if key == "chip":
        return [chip_label(value) for value in values]
    return [size_name(value) if isinstance(value, int) else str(value) for value in values]


def cell_tips(names: Sequence[str]) -> list[Layer]:
    """Tooltip fields of a cell; sizes show all digits."""
    return [
        kit.nominal_channel(name)
        if name in TEXTS
        else kit.quantitative_channel(name, format=",d", title=name)
        for name in names
    ]


def to_cells(
    frame: pl.DataFrame, column: str, row: str, columns: Sequence[object], rows: Sequence[object]
) -> pl.DataFrame:
    """Place rows of a table as cells: adds `x` and `y`.

    Args:
        frame: The rows.
        column: The column along x.
        row: The column along y.
        columns: Values along x from the left.
        rows: Values along y from above.
    """
    places = {
        name: pl.DataFrame(
            {key: values, name: [float(place) for place in range(len(values))]},
            schema={key: frame.schema[key], name: pl.Float64},
        )
        for name, key, values in (("x", column, columns), ("y", row, rows))
    }
    cells = frame.join(places["x"], on=column).join(places["y"], on=row)
    return cells.unique(["x", "y"], keep="first", maintain_order=True).sort("y", "x")


def grid_params(
    margins: Margins, columns: Sequence[str], rows: Sequence[str], room: float
) -> dict[str, Any]:
    """Parameters of a grid: edges, and as many names as fit.

    Args:
        margins: Room around the plot.
        columns: Column names from the left.
        rows: Row names from above.
        room: Width of a row name [em].
    """
    layouts = {}
    for layout, size in zip(("wide", "narrow"), LAYOUTS.values(), strict=True):
        wide, tall = plot_size(size, margins)
        widest = max((width_em(text) for text in columns), default=1.0)
        cell = wide / max(len(columns), 1)
        name_width = max(cell - NAME_GAP, min(widest, MIN_NAME_WIDTH))
        steps = math.ceil((name_width + NAME_GAP) / cell)
        layouts[layout] = {
            "across": list(range(0, len(columns), steps)),
            "up": list(range(0, len(rows), math.ceil(ROW_NAME_HEIGHT * len(rows) / tall))),
            "columns": [shorten(text, name_width, tail=True) for text in columns],
        }
    return {
        "plane": {
            "x": [-0.5, len(columns) - 0.5],
            "y": [len(rows) - 0.5, -0.5],
            **layouts,
        },
        "rows": [shorten(text, room, tail=True) for text in rows],
    }


def grid_axes(across: str, up: str | None) -> tuple[Layer, Layer]:
    """Position channels of cells, x and y."""
    bare = {"grid": False, "domain": False, "ticks": False}
    names = "(narrow ? plane.narrow : plane.wide)"
    x = kit.axis("x", across, f"{names}.columns[datum.value] || ''", **bare)
    y = kit.axis("y", up, "rows[datum.value] || ''", **bare)
    x["axis"]["values"] = kit.expr(f"{names}.across")
    y["axis"]["values"] = kit.expr(f"{names}.up")
    return kit.quantitative_channel("x", **x), kit.quantitative_channel("y", **y)


def with_texts(
    cells: pl.DataFrame, margins: Margins, texts: Sequence[str], below: Sequence[str | None] = ()
) -> pl.DataFrame:
    """Add `text` and `below` to cells, and flags for whether they fit in each layout."""
    lines = list(below) or [None] * len(texts)
    counts = [int(cells[axis].max() or 0) + 1 for axis in "xy"]  # type: ignore[arg-type]
    fits: dict[str, list[bool]] = {}
    for tail, size in LAYOUTS.items():
        plot = plot_size(size, margins)
        wide, tall = (side / count for side, count in zip(plot, counts, strict=True))
        fits[f"on{tail}"] = [
            tall > MIN_CELL_HEIGHT and width_em(text) * CELL_TEXT < wide - 0.25 for text in texts
        ]
        fits[f"two{tail}"] = [
            text is not None
            and tall >= MIN_TWO_LINE_HEIGHT
            and width_em(text) * SUBTEXT_SIZE < wide - 0.25
            for text in lines
        ]
    return cells.with_columns(
        text=pl.Series(list(texts), dtype=pl.String),
        below=pl.Series(lines, dtype=pl.String),
        **{name: pl.Series(values, dtype=pl.Boolean) for name, values in fits.items()},
    )


def cell_layer(
    x: Layer, y: Layer, tips: Sequence[Layer], colour: Mapping[str, Any], where: str = ""
) -> Layer:
    """Layer of cells; without a colour, cells marked "never"."""
    edges = {
        "x": {**x, "field": "left"},
        "x2": {"field": "right"},
        "y": {**y, "field": "top"},
        "y2": {"field": "bottom"},
        "tooltip": list(tips),
    }
    style = ["cell"] if colour else ["cell", "never"]
    layer = kit.layer("cells", "rect", style, {**edges, **colour}, where=where)
    sides = {"left": "x - 0.5", "right": "x + 0.5", "top": "y - 0.5", "bottom": "y + 0.5"}
    layer.setdefault("transform", []).extend(
        {"calculate": f"datum.{side}", "as": name} for name, side in sides.items()
    )
    return layer


def text_layers(
    x: Layer, y: Layer, style: str, where: str = "true", *, two: bool = True
) -> list[Layer]:
    """Layers of numbers that fit their cells, and of the smaller numbers below them."""
    shown = f"(narrow ? datum.on_narrow : datum.on) && {where}"
    has_two_lines = "(narrow ? datum.two_narrow : datum.two)"
    at = {"x": x, "y": y}
    up = {"dy": kit.expr(f"{has_two_lines} ? em * -0.5 : 0")} if two else {}
    first = kit.layer(
        "cells", "text", style, {**at, "text": kit.nominal_channel("text")}, where=shown, **up
    )
    if not two:
        return [first]
    return [
        first,
        kit.layer(
            "cells",
            "text",
            style,
            {**at, "text": kit.nominal_channel("below")},
            where=f"{shown} && {has_two_lines}",
            dy=kit.expr("em * 0.6"),
            fontSize=kit.expr(f"em * {SUBTEXT_SIZE}"),
        ),
    ]
