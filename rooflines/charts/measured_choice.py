"""Which charts of timings are drawn, and of what."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from rooflines.basics.errors import Mistakes, RooflinesError, check_known, placed
from rooflines.charts.chart import MeasuredChart, Spec
from rooflines.charts.needs import lacking
from rooflines.charts.offers import unsupported
from rooflines.charts.registry import charts
from rooflines.settings.charts import ChartConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.measured.sets import MeasuredSet

__all__ = ["fitting_measured", "listed_of_measured"]

DESCRIBE = "describe one under `measurements:` of the config, and add measurements: with its name"
"""How to fix a chart of timings in a config without timings."""


def fitting_measured(sets: Mapping[str, MeasuredSet]) -> Iterator[Spec]:
    """The charts that fit sets of timings, in the order of the registry."""
    for chart in charts().values():
        if isinstance(chart, MeasuredChart):
            fitting = (one for one in sets.values() if not lacking(chart, one, auto=True))
            for one in islice(fitting, chart.most):
                config = ChartConfig.model_validate({"chart": chart.name, "measurements": one.name})
                yield replace(_spec(chart, one, config), auto=True)


def listed_of_measured(
    config: ChartConfig, chart: MeasuredChart, sets: Mapping[str, MeasuredSet]
) -> Spec:
    """A chart that the config lists, checked against its set of timings.

    Raises:
        RooflinesError: It names no set, or asks for what the set does not have.
    """
    if config.measurements is None:
        fix = f"add measurements: one of {', '.join(sets)}" if sets else DESCRIBE
        raise RooflinesError("", f"is {chart.name}, which needs a set of timings", fix)
    with placed("measurements"):
        check_known(config.measurements, sets, "no set of timings of this config")
    one = sets[config.measurements]
    if what := lacking(chart, one):
        raise RooflinesError(
            "chart",
            f"is {chart.name}, which needs {what}; set {one.name} lacks that",
            "choose another set of timings or chart",
        )
    found = one.cases
    offered = {
        "chips": ({case.chip for case in found}, "no chip with rows"),
        "dtypes": ({case.dtypes for case in found}, "no dtype combination with rows"),
    }
    with Mistakes() as mistakes:
        for key in ("sweep", "shape", "model", "sharding", "up", "sizes", "shards"):
            with mistakes.at(key):
                if getattr(config, key) is not None:
                    problem = f"is no choice of {chart.name}, a chart of timings"
                    raise RooflinesError("", problem, "leave it out")
        for key, (known, what) in offered.items():
            with mistakes.at(key):
                check_known(getattr(config, key), sorted(known), f"{what} of set {one.name}")
    spec = _spec(chart, one, config)
    if not spec.dtypes:
        raise unsupported(spec.chips, config.dtypes or [])
    return spec


def _spec(chart: MeasuredChart, one: MeasuredSet, config: ChartConfig) -> Spec:
    """A chart with a value for every choice that it has: what has most timings."""
    found = one.cases
    by_chip: Counter[str] = Counter()
    by_dtypes: Counter[str] = Counter()
    for case in found:
        by_chip[case.chip] += case.timings
    chips = config.chips or _most(by_chip, chart.most_chips)
    for case in found:
        if case.chip in chips:
            by_dtypes[case.dtypes] += case.timings
    dtypes = [name for name in config.dtypes or [] if name in by_dtypes]
    if config.dtypes is None:
        dtypes = _most(by_dtypes, chart.most_dtypes)
    return Spec(
        chart=chart.name,
        id=config.id or f"{chart.name}-{one.name}",
        family=chart.family,
        sweep="",
        chips=tuple(chips),
        dtypes=tuple(dtypes),
        title=config.title,
        measurements=one.name,
    )


def _most(counts: Counter[str], most: int) -> list[str]:
    """The names counted most often, the most frequent first."""
    return [name for name, _ in counts.most_common(most)]
