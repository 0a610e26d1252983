"""Charts as Altair objects: eleven kinds, one chart for each choice in their menus.

    >>> from rooflines import charts
    >>> results = charts.on_disk("results")      # or charts.of_config(rooflines.load_config())
    >>> charts.roofline(results, "model-shapes", chip="h100-sxm", dtypes="bf16")
    >>> charts.menus("roofline", results, "model-shapes")                 # what can be chosen
    >>> charts.view("roofline", results, "model-shapes").rows             # the numbers behind it

Every number is in the rows of a view. Specifications carry no theme: `kit.themes` has three sizes
and two themes for all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.basics.lazy import lazy_attributes

if TYPE_CHECKING:
    from rooflines.charts.chart_data import Results as Results
    from rooflines.charts.chart_data import of_config as of_config
    from rooflines.charts.chart_data import on_disk as on_disk
    from rooflines.charts.functions import attained as attained
    from rooflines.charts.functions import chips as chips
    from rooflines.charts.functions import critical as critical
    from rooflines.charts.functions import front as front
    from rooflines.charts.functions import kernel as kernel
    from rooflines.charts.functions import kernels as kernels
    from rooflines.charts.functions import levers as levers
    from rooflines.charts.functions import measured as measured
    from rooflines.charts.functions import menus as menus
    from rooflines.charts.functions import requests as requests
    from rooflines.charts.functions import roofline as roofline
    from rooflines.charts.functions import time as time
    from rooflines.charts.functions import view as view
    from rooflines.charts.functions import who_binds as who_binds
    from rooflines.charts.kit.render import enable_theme as enable_theme
    from rooflines.charts.kit.render import html as html
    from rooflines.charts.kit.render import pdf as pdf
    from rooflines.charts.kit.render import png as png
    from rooflines.charts.kit.render import spec_of as spec_of
    from rooflines.charts.kit.render import svg as svg

HOMES = {
    "functions": (
        "attained",
        "chips",
        "critical",
        "front",
        "kernel",
        "kernels",
        "levers",
        "measured",
        "menus",
        "requests",
        "roofline",
        "time",
        "view",
        "who_binds",
    ),
    "kit.render": ("enable_theme", "html", "pdf", "png", "spec_of", "svg"),
    "chart_data": ("Results", "of_config", "on_disk"),
}
"""The modules of public names, which are loaded when one is first used."""

__getattr__, __dir__ = lazy_attributes(__name__, HOMES)
