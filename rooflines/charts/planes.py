"""The plots of charts that the site has for every chip: that of the picture, and those of others.

What a picture shows has the picture's axes on the site too; what a reader adds may have others.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal

from rooflines.basics.lazy import alt, pl
from rooflines.charts.kit.drawing import SHORT_LABEL, log_axis, log_scale, ticks_between

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from rooflines.charts.kit.place import Plane

PICTURE, FAR = "", "far"
"""The keys of the picture's own plane, and of one that holds all that a chart can show."""

NO_PLANE = "{x: [1, 10], y: [1, 10], across: [], up: []}"
"""The plane of a choice without data, as `ticked` gives others."""


def pictured(
    frame: pl.DataFrame, added: Collection[str], added_dtypes: Collection[str]
) -> pl.DataFrame:
    """The rows that the picture shows.

    Args:
        frame: With `chip` and `dtypes`; rows without dtypes are of all.
        added: The chips that only the site has.
        added_dtypes: The dtype combinations that only the site has.
    """
    if not (added or added_dtypes):
        return frame
    further = pl.col("chip").is_in(added) | pl.col("dtypes").is_in(added_dtypes)
    return frame.filter(~further.fill_null(value=False))


def in_picture(frame: pl.DataFrame, *names: str) -> str:
    """An expression: whether the picture shows what the reader chose.

    Args:
        frame: What the picture shows.
        names: Parameters with the names of their columns.
    """
    values = {name: frame[name].drop_nulls().unique(maintain_order=True) for name in names}
    return " && ".join(
        f"indexof({json.dumps(each.to_list())}, {name}) >= 0" for name, each in values.items()
    )


def plane_parameters(planes: Mapping[str, Any], key: str) -> list[alt.Parameter]:
    """Parameters of the planes: all, by their keys, and the present `plane`.

    Args:
        planes: What a scale and its axis need, as `sides_of` gives it; that of `PICTURE` is used
            where no other has the key.
        key: An expression of the key.
    """
    if len(planes) == 1:
        return [alt.param(name="plane", value=planes[PICTURE])]
    return [
        alt.param(name="planes", value=dict(planes)),
        alt.param(name="plane", expr=f"planes[{key}] || planes['{PICTURE}']"),
    ]


def sides_of(plane: Plane) -> dict[str, tuple[float, float]]:
    """The edges of a plane, as an expression reads them."""
    return {"x": plane.x, "y": plane.y}


def ticked(plane: Plane) -> dict[str, Sequence[float]]:
    """The edges of a plane, and its ticks, as expressions read them."""
    return {**sides_of(plane), "across": ticks_between(*plane.x), "up": ticks_between(*plane.y)}


def case_planes(planes: Mapping[str, Any], names: Sequence[str]) -> list[alt.Parameter]:
    """Parameters of planes that every choice of the reader has one of.

    Args:
        planes: As `ticked` gives them, by the chosen values joined by `|`.
        names: The parameters of these values.
    """
    key = " + '|' + ".join(names)
    return [
        alt.param(name="edges", value=dict(planes)),
        alt.param(name="plane", expr=f"edges[{key}] || {NO_PLANE}"),
    ]


def plane_axis(
    axis: Literal["x", "y"], title: str, label: str, *, bare: bool = False
) -> dict[str, Any]:
    """Scale and axis of the present plane of `case_planes`, both logarithmic.

    Args:
        axis: Which.
        title: Its title.
        label: The expression of its labels.
        bare: Whether it has labels alone, without grid, line and ticks.
    """
    drawn = False if bare else alt.Undefined
    values = alt.expr({"x": "plane.across", "y": "plane.up"}[axis])
    return {
        "scale": plane_scale(axis),
        "axis": alt.Axis(
            values=values, labelExpr=label, title=title, grid=drawn, domain=drawn, ticks=drawn
        ),
    }


def log_axes(
    planes: Collection[Plane], across: str, up: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scales and axes of the present plane, both logarithmic.

    Args:
        planes: All planes: ticks are at their powers of ten, and drawn inside of the present one.
        across: The title of the x axis.
        up: The title of the y axis.
    """
    (left, right), (bottom, top) = (
        (min(side[0] for side in sides), max(side[1] for side in sides))
        for sides in ([plane.x for plane in planes], [plane.y for plane in planes])
    )
    return (
        log_axis(left, right, across, SHORT_LABEL) | {"scale": plane_scale("x")},
        log_axis(bottom, top, up) | {"scale": plane_scale("y")},
    )


def plane_scale(axis: str) -> alt.Scale:
    """The logarithmic scale of an axis of the present plane."""
    return log_scale(f"plane.{axis}[0]", f"plane.{axis}[1]")
