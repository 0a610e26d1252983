"""Charts of rooflines: one function per chart, a frame in, an Altair chart out.

    >>> import rooflines
    >>> from rooflines import charts
    >>> results = charts.on_disk("results")                  # or charts.of_config(rooflines.load_config()), without a run
    >>> frame = charts.ridge_frame(results.of("model-shapes", ["tpu-v5e", "h100-sxm"], ["bf16"]))
    >>> charts.chips_on_one_roofline(frame)                  # a notebook draws it; charts.png draws it in one of the looks

Every number is in the frame; a chart function only decides where it is drawn. Specifications carry no theme: `looks` has three sizes
and two themes for all of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rooflines.charts.bounds import bound_map
    from rooflines.charts.chips import chips_on_one_roofline
    from rooflines.charts.compared import critical_of_layers, per_unit, ridges
    from rooflines.charts.curves import attained
    from rooflines.charts.families import draw
    from rooflines.charts.frames import (
        Results,
        attained_frame,
        of_config,
        on_disk,
        ridge_frame,
        roofline_frame,
    )
    from rooflines.charts.frames_sizes import (
        bound_frame,
        contour_frame,
        critical_frame,
        layer_frame,
        shards_frame,
        time_frame,
    )
    from rooflines.charts.kit.render import enable_theme, pdf, png, spec_of, svg
    from rooflines.charts.maps import critical, critical_map
    from rooflines.charts.roofs import roofline
    from rooflines.charts.shards import critical_over_shards
    from rooflines.charts.times import where_the_time_goes

__all__ = [
    "Results",
    "attained",
    "attained_frame",
    "bound_frame",
    "bound_map",
    "chips_on_one_roofline",
    "contour_frame",
    "critical",
    "critical_frame",
    "critical_map",
    "critical_of_layers",
    "critical_over_shards",
    "draw",
    "enable_theme",
    "layer_frame",
    "of_config",
    "on_disk",
    "pdf",
    "per_unit",
    "png",
    "ridge_frame",
    "ridges",
    "roofline",
    "roofline_frame",
    "shards_frame",
    "spec_of",
    "svg",
    "time_frame",
    "where_the_time_goes",
]

HOMES = {
    "curves": ("attained",),
    "bounds": ("bound_map",),
    "chips": ("chips_on_one_roofline",),
    "compared": ("critical_of_layers", "per_unit", "ridges"),
    "maps": ("critical", "critical_map"),
    "families": ("draw",),
    "frames": (
        "Results",
        "attained_frame",
        "of_config",
        "on_disk",
        "ridge_frame",
        "roofline_frame",
    ),
    "frames_sizes": (
        "bound_frame",
        "contour_frame",
        "critical_frame",
        "layer_frame",
        "shards_frame",
        "time_frame",
    ),
    "kit.render": ("enable_theme", "pdf", "png", "spec_of", "svg"),
    "roofs": ("roofline",),
    "shards": ("critical_over_shards",),
    "times": ("where_the_time_goes",),
}
"""Where names live."""


def __getattr__(name: str) -> Any:  # noqa: ANN401, any of the names above
    """Names are loaded when they are first used: reading a config does not wait for Altair."""
    for home, names in HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
