"""Which charts of whole models are drawn, and of what."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from rooflines.basics.errors import check_known, placed
from rooflines.charts.chart import ModelChart, Spec
from rooflines.charts.needs import absent, check_suits, lacking
from rooflines.charts.offers import check_asked_of_models, dtypes_by_chip, unsupported
from rooflines.charts.registry import charts
from rooflines.settings.charts import ChartConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.serving.sweep import ModelSweep


def fitting_models(sweeps: Mapping[str, ModelSweep]) -> Iterator[Spec]:
    """The charts that fit the sweeps of whole models, in the order of the registry."""
    for chart in charts().values():
        if isinstance(chart, ModelChart):
            fitting = (
                sweep
                for sweep in sweeps.values()
                if not lacking(chart, sweep, auto=True) and not absent(chart, sweep)
            )
            for sweep in islice(fitting, chart.most):
                config = ChartConfig.model_validate({"chart": chart.name, "sweep": sweep.name})
                yield replace(_spec(chart, sweep, config), auto=True)


def listed_of_models(
    config: ChartConfig, chart: ModelChart, name: str, sweeps: Mapping[str, ModelSweep]
) -> Spec:
    """A chart that the config lists, checked against its sweep.

    Raises:
        RooflinesError: It asks for what its sweep does not have.
    """
    with placed("sweep"):
        check_known(name, sweeps, f"no sweep of whole models, which {chart.name} needs")
    sweep = sweeps[name]
    check_suits(chart, sweep)
    check_asked_of_models(
        sweep,
        chips=config.chips,
        dtypes=config.dtypes,
        model=config.model,
        sizes=config.sizes,
        shape=config.shape,
        up=config.up,
        sharding=config.sharding,
        shards=config.shards,
    )
    spec = _spec(chart, sweep, config)
    if not spec.dtypes:
        raise unsupported(spec.chips, config.dtypes or [])
    return spec


def _spec(chart: ModelChart, sweep: ModelSweep, config: ChartConfig) -> Spec:
    """A chart with a value for every choice that it has: the first ones of the sweep."""
    by_chip = dtypes_by_chip(sweep)
    chips = config.chips or list(by_chip)[: chart.most_chips]
    supported = set().union(*(by_chip[chip] for chip in chips))
    dtypes = [name for name in config.dtypes or sweep.combinations if name in supported]
    dtypes = dtypes if config.dtypes else dtypes[: chart.most_dtypes]
    more_chips, more_dtypes = _further(sweep, config, chips)
    models = [config.model] if config.model else list(sweep.models)[: chart.most_models]
    contexts = config.sizes or sweep.contexts[: chart.most_contexts]
    more_models = [] if config.model else sweep.models
    more_contexts = () if config.sizes else sweep.contexts
    return Spec(
        chart=chart.name,
        id=config.id or f"{chart.name}-{sweep.name}",
        family=chart.family,
        sweep=sweep.name,
        chips=tuple(chips),
        dtypes=tuple(dtypes),
        more_chips=tuple(chip for chip in more_chips if chip not in chips),
        more_dtypes=tuple(name for name in more_dtypes if name not in dtypes),
        title=config.title,
        models=tuple(models),
        more_models=tuple(name for name in more_models if name not in models),
        sizes=tuple(contexts),
        more_sizes=tuple(size for size in more_contexts if size not in contexts),
    )


def _further(
    sweep: ModelSweep, config: ChartConfig, chips: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The chips and dtypes of a sweep that the site offers, as `needs.further` does."""
    by_chip = dtypes_by_chip(sweep)
    more_chips = [] if config.chips else list(by_chip)
    supported = set().union(*(by_chip[chip] for chip in [*chips, *more_chips]))
    more_dtypes = [] if config.dtypes else sweep.combinations
    return more_chips, [name for name in more_dtypes if name in supported]
