"""The plots of charts that the site has for every chip: that of the picture, and those of others.

What a picture shows has the picture's axes on the site too; what a reader adds may have others.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.charts.kit.drawing import SHORT_LABEL, log_axis, log_scale

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rooflines.charts.kit.place import Plane

__all__ = [
    "FAR",
    "PICTURE",
    "in_picture",
    "log_axes",
    "pictured",
    "plane_parameters",
    "plane_scale",
    "sides_of",
]

PICTURE, FAR = "", "far"
"""The keys of the picture's own plane, and of one that holds all that a chart can show."""


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
