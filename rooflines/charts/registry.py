"""The registry of charts, filled from the files in `kinds`."""

from __future__ import annotations

import pkgutil
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from rooflines.charts import kinds
from rooflines.charts.chart import Chart, MeasuredChart, ModelChart

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType


@cache
def _modules() -> Mapping[str, ModuleType]:
    """The modules of `kinds` by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(kinds.__path__))
    return {name: import_module(f"{kinds.__name__}.{name}") for name in names}


def _charts_in(module: ModuleType) -> Iterator[Chart | ModelChart | MeasuredChart]:
    """The charts that a module defines as `CHART` or `CHARTS`."""
    for value in (getattr(module, "CHART", None), *getattr(module, "CHARTS", ())):
        if isinstance(value, Chart | ModelChart | MeasuredChart):
            yield value


@cache
def charts() -> Mapping[str, Chart | ModelChart | MeasuredChart]:
    """All charts by name, in the order of `auto`, of the schema and of messages."""
    every = [chart for module in _modules().values() for chart in _charts_in(module)]
    return {chart.name: chart for chart in sorted(every, key=lambda c: (c.order, c.name))}


def headings() -> dict[str, str]:
    """What the site calls each family."""
    return {chart.family: chart.heading for chart in charts().values() if chart.heading}


def modules_of(family: str) -> tuple[str, ...]:
    """The files that only the charts of a family use, by their paths in the package."""
    own = [
        name
        for name, module in _modules().items()
        if any(chart.family == family for chart in _charts_in(module))
    ]
    return tuple(
        f"charts/kinds/{name}.py" for name in _modules() if any(name.startswith(o) for o in own)
    )


def public_names() -> dict[str, ModuleType]:
    """What `rooflines.charts` offers of the charts' files, and the module of each name."""
    modules = [module for module in _modules().values() if any(_charts_in(module))]
    return {name: module for module in modules for name in module.__all__}
