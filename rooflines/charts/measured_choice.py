"""Which charts of timings are drawn, and of what."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from rooflines.basics.errors import Mistakes, RooflinesError, check_known, placed
from rooflines.charts.chart import MeasuredChart, Spec
from rooflines.charts.measured import FEWEST_DOTS, MOST_DOTS
from rooflines.charts.needs import lacking
from rooflines.charts.offers import unsupported
from rooflines.charts.registry import charts
from rooflines.settings.charts import ChartConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.measured.sets import MeasuredSet, TimedCase

DESCRIBE = "describe one under `measurements:` of the config, and add measurements: with its name"
"""How to fix a chart of timings in a config without timings."""

MOST_CASES = MOST_DOTS // FEWEST_DOTS
"""Cases of a picture that have enough dots each [1]."""


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
    return _spec(chart, one, config)


def _spec(chart: MeasuredChart, one: MeasuredSet, config: ChartConfig) -> Spec:
    """A chart with a value for every choice that it has: what has most timings.

    Raises:
        RooflinesError: None of the chips that the config names has timings in its dtypes.
    """
    cases = [
        case
        for case in one.cases
        if case.chip in (config.chips or [case.chip])
        and case.dtypes in (config.dtypes or [case.dtypes])
    ]
    if not cases:
        raise unsupported(config.chips or [], config.dtypes or [])
    ranked_chips, ranked_dtypes = _ranked(cases)
    dtypes = ranked_dtypes[: chart.most_dtypes]
    if config.dtypes is not None:
        dtypes = [name for name in config.dtypes if name in ranked_dtypes]
    of_chips = Counter(case.chip for case in cases if case.dtypes in dtypes)
    most = sum(count <= MOST_CASES for count in accumulate(of_chips[chip] for chip in ranked_chips))
    chips = config.chips or ranked_chips[: min(max(most, 1), chart.most_chips)]
    return Spec(
        chart=chart.name,
        id=config.id or f"{chart.name}-{one.name}",
        family=chart.family,
        sweep="",
        chips=tuple(chips),
        dtypes=tuple(dtypes),
        more_chips=tuple(chip for chip in ranked_chips if chip not in chips),
        more_dtypes=tuple(name for name in ranked_dtypes if name not in dtypes),
        title=config.title,
        measurements=one.name,
    )


def _ranked(cases: Sequence[TimedCase]) -> tuple[list[str], list[str]]:
    """Chips and dtypes: those of the case with most timings, then those with most timings."""
    chips: Counter[str] = Counter()
    dtypes: Counter[str] = Counter()
    for case in cases:
        chips[case.chip] += case.timings
        dtypes[case.dtypes] += case.timings
    first = max(cases, key=lambda case: (case.timings, chips[case.chip], dtypes[case.dtypes]))
    return (
        sorted(chips, key=lambda name: (name != first.chip, -chips[name])),
        sorted(dtypes, key=lambda name: (name != first.dtypes, -dtypes[name])),
    )
