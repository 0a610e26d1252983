"""Charts of rooflines: one function per chart, a frame in, an Altair chart out.

    >>> import rooflines
    >>> from rooflines import charts
    >>> results = charts.on_disk("results")      # or charts.of_config(rooflines.load_config())
    >>> frame = charts.ridge_frame(
    ...     results.of("model-shapes", ["tpu-v5e", "h100-sxm"], ["bf16"])
    ... )
    >>> charts.chips_on_one_roofline(frame)      # drawn by a notebook, or by charts.png

Every number is in the frame; a chart function only decides where it is drawn. Specifications carry
no theme: `kit.themes` has three sizes and two themes for all of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rooflines.charts.registry import public_names

if TYPE_CHECKING:
    from rooflines.charts.families import draw as draw
    from rooflines.charts.frames import ridge_frame as ridge_frame
    from rooflines.charts.kinds.attained import attained as attained
    from rooflines.charts.kinds.attained import attained_frame as attained_frame
    from rooflines.charts.kinds.bounds import bound_frame as bound_frame
    from rooflines.charts.kinds.bounds import bound_map as bound_map
    from rooflines.charts.kinds.capacity import capacity as capacity
    from rooflines.charts.kinds.capacity import capacity_frame as capacity_frame
    from rooflines.charts.kinds.chips import chips_on_one_roofline as chips_on_one_roofline
    from rooflines.charts.kinds.critical import critical as critical
    from rooflines.charts.kinds.critical import critical_frame as critical_frame
    from rooflines.charts.kinds.critical_estimate import critical_estimate as critical_estimate
    from rooflines.charts.kinds.critical_estimate import (
        critical_estimate_frame as critical_estimate_frame,
    )
    from rooflines.charts.kinds.critical_map import contour_frame as contour_frame
    from rooflines.charts.kinds.critical_map import critical_map as critical_map
    from rooflines.charts.kinds.layers import critical_of_layers as critical_of_layers
    from rooflines.charts.kinds.layers import layer_frame as layer_frame
    from rooflines.charts.kinds.measured_errors import measured_errors as measured_errors
    from rooflines.charts.kinds.measured_errors import (
        measured_errors_frame as measured_errors_frame,
    )
    from rooflines.charts.kinds.measured_ratio import measured_ratio as measured_ratio
    from rooflines.charts.kinds.measured_ratio import measured_ratio_frame as measured_ratio_frame
    from rooflines.charts.kinds.measured_roofline import measured_roofline as measured_roofline
    from rooflines.charts.kinds.measured_roofline import (
        measured_roofline_frame as measured_roofline_frame,
    )
    from rooflines.charts.kinds.pareto import pareto as pareto
    from rooflines.charts.kinds.pareto import pareto_frame as pareto_frame
    from rooflines.charts.kinds.per_unit import per_unit as per_unit
    from rooflines.charts.kinds.per_unit import price_frame as price_frame
    from rooflines.charts.kinds.ridges import ridges as ridges
    from rooflines.charts.kinds.roofline import roofline as roofline
    from rooflines.charts.kinds.roofline import roofline_frame as roofline_frame
    from rooflines.charts.kinds.shards import critical_over_shards as critical_over_shards
    from rooflines.charts.kinds.shards import shards_frame as shards_frame
    from rooflines.charts.kinds.time import time_frame as time_frame
    from rooflines.charts.kinds.time import where_the_time_goes as where_the_time_goes
    from rooflines.charts.kit.render import enable_theme as enable_theme
    from rooflines.charts.kit.render import html as html
    from rooflines.charts.kit.render import pdf as pdf
    from rooflines.charts.kit.render import png as png
    from rooflines.charts.kit.render import spec_of as spec_of
    from rooflines.charts.kit.render import svg as svg
    from rooflines.charts.profiled import kernels_frame as kernels_frame
    from rooflines.charts.profiled import kernels_on_roofline as kernels_on_roofline
    from rooflines.charts.results import Results as Results
    from rooflines.charts.results import of_config as of_config
    from rooflines.charts.results import on_disk as on_disk

HOMES = {
    "families": ("draw",),
    "frames": ("ridge_frame",),
    "kit.render": ("enable_theme", "html", "pdf", "png", "spec_of", "svg"),
    "profiled": ("kernels_frame", "kernels_on_roofline"),
    "results": ("Results", "of_config", "on_disk"),
}
"""Names of other modules than the charts' own, which are loaded when they are first used."""


def __dir__() -> list[str]:
    return sorted({*public_names(), *(name for names in HOMES.values() for name in names)})


def __getattr__(name: str) -> Any:  # noqa: ANN401, any of the names above
    """A public name; the modules that import Altair and polars wait until one is used."""
    if name == "__all__":
        return __dir__()
    for home, names in HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    if name in (charts := public_names()):
        return getattr(charts[name], name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
