"""Which charts are drawn, and of what: those a config lists, or those that fit its sweeps."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from rooflines.basics.errors import (
    Mistakes,
    RooflinesError,
    check_known,
    close_to,
    placed,
    quote,
)
from rooflines.basics.numbers import whole
from rooflines.charts.chart import Chart, MeasuredChart, ModelChart, Spec
from rooflines.charts.measured_choice import fitting_measured, listed_of_measured
from rooflines.charts.model_choice import fitting_models, listed_of_models
from rooflines.charts.models import models_of, typical_layer
from rooflines.charts.needs import (
    absent,
    check_shown,
    check_suits,
    chips_for,
    further,
    lacking,
)
from rooflines.charts.offers import (
    TWO,
    check_asked,
    map_dims,
    shape_names,
    sizes_of,
    unsupported,
)
from rooflines.charts.registry import charts as all_charts
from rooflines.settings.charts import ChartConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence

    from rooflines.measured.sets import MeasuredSet
    from rooflines.serving.sweep import ModelSweep
    from rooflines.settings.shapes import Shape
    from rooflines.sweep.support import Variant
    from rooflines.sweep.sweep import Sweep

BY_NAME = 12
"""Most chips of a sweep that counts as naming them; the names of larger sweeps are not counted."""

MOST_SPLITS = 4
"""Numbers of chips that a chart shows where the config does not say which."""


def choose(
    charts: str | Sequence[ChartConfig],
    sweeps: Mapping[str, Sweep],
    model_sweeps: Mapping[str, ModelSweep],
    measurements: Mapping[str, MeasuredSet],
    refused: Collection[str] = (),
) -> tuple[Spec, ...]:
    """The charts of a config.

    Args:
        charts: `auto`, or what the config lists.
        sweeps: The config's sweeps of operations.
        model_sweeps: Its sweeps of whole models.
        measurements: Its sets of timings.
        refused: Names of sweeps and sets that were refused; charts of them are left out.

    Returns:
        The charts in order, each with an id of its own.

    Raises:
        RooflinesError: A chart asks for what its sweep does not have; key paths start at the list.
    """
    popular = _Popular(sweeps)
    every: dict[str, Sweep | ModelSweep] = {**sweeps, **model_sweeps}
    if isinstance(charts, str):
        return (
            *_fitting(sweeps, popular),
            *fitting_models(model_sweeps),
            *fitting_measured(measurements),
        )
    specs: list[Spec] = []
    with Mistakes() as mistakes:
        for index, config in enumerate(charts):
            with mistakes.at(f"[{index}]") as part:
                with part.at("chart"):
                    _check_name(config.chart)
                if {config.sweep, config.measurements} & {*refused}:
                    continue
                with part.at("sweep"):
                    check_known(config.sweep, [*every, *refused], "no sweep of this config")
                part.check()
                chart = all_charts()[config.chart]
                if isinstance(chart, MeasuredChart):
                    spec = listed_of_measured(config, chart, measurements)
                elif isinstance(chart, ModelChart):
                    spec = listed_of_models(config, chart, _sweep_of(config, chart), model_sweeps)
                else:
                    spec = _listed(config, chart, sweeps, popular)
                if spec.id in {other.id for other in specs}:
                    raise RooflinesError(
                        "id",
                        f"is {quote(spec.id)}, which another chart has",
                        "give it an id of its own",
                    )
                specs.append(spec)
    return tuple(specs)


def _check_name(name: object) -> None:
    """Refuse a name that no chart has; the schema accepts any value."""
    names = list(all_charts())
    if name not in names:
        raise RooflinesError(
            "",
            f"is {quote(name)}, which is no chart",
            f"use one of {', '.join(names)}",
            close=close_to(name, names),
        )


def _sweep_of(config: ChartConfig, chart: Chart | ModelChart) -> str:
    """The sweep of a chart that needs one."""
    if config.measurements is not None:
        problem = f"is no choice of {chart.name}, a chart of a sweep"
        raise RooflinesError("measurements", problem, "leave it out")
    if config.sweep is None:
        raise RooflinesError("", "lacks its sweep", "add sweep:")
    return config.sweep


def _shapes(sweep: Sweep) -> list[Shape]:
    """A sweep's shapes."""
    return sweep.config.shapes or []


class _Popular:
    """What a config names most often: chips, dtypes and models, to choose some of a large sweep."""

    def __init__(self, sweeps: Mapping[str, Sweep]) -> None:
        self.chips: Counter[str] = Counter()
        self.dtypes: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        shapes = {shape.name: shape for sweep in sweeps.values() for shape in _shapes(sweep)}
        models = models_of(list(shapes.values()))
        model_of = {shape: model for model, layers in models.items() for shape in layers.values()}
        for sweep in sweeps.values():
            chips = sweep.config.chips
            self.chips.update(chips if len(chips) <= BY_NAME else ())
            self.dtypes.update(list(sweep.combinations))
            self.models.update({model_of[name] for name in shape_names(sweep)} - {""})

    def chips_of(self, chart: Chart, sweep: Sweep) -> tuple[str, ...]:
        """The chips of a sweep to show: if too few of them suit the chart, those that do."""
        chips = list(dict.fromkeys(chip_rows.chip for chip_rows in sweep.by_chip))
        able = chips_for(chart, sweep)
        if chart.only is not None:
            return _most_common(able, self.chips, chart.most_chips)
        first = _most_common(chips, self.chips, chart.most_chips)
        enough = len(set(first) & set(able)) >= min(TWO, len(first))
        return first if enough else _most_common(able, self.chips, chart.most_chips)

    def dtypes_of(self, chart: Chart, sweep: Sweep, chips: Sequence[str]) -> tuple[str, ...]:
        """The dtype combinations to show, of those that the chips support."""
        supported = {variant.dtypes for variant in _variants(sweep, chips, None)}
        if chart.only is not None:
            supported &= {dtypes for chip, dtypes in chart.only(sweep) if chip in chips}
        names = [name for name in sweep.combinations if name in supported]
        return _most_common(names, self.dtypes, chart.most_dtypes)

    def model_of(self, sweep: Sweep) -> str:
        """The model to show."""
        models = models_of(_shapes(sweep))
        return max(models, key=lambda name: (self.models[name], len(models[name]) > 1), default="")


def _most_common(names: Sequence[str], counts: Counter[str], most: int) -> tuple[str, ...]:
    """The names counted most often, in their own order."""
    kept = sorted(names, key=lambda name: (-counts[name], names.index(name)))[:most]
    return tuple(name for name in names if name in kept)


def _fitting(sweeps: Mapping[str, Sweep], popular: _Popular) -> Iterator[Spec]:
    """The charts that fit the sweeps: at most a few of each kind, in the order of the registry.

    A sweep that is in none of them gets the one with the most needs of those that fit it.
    """
    kinds = [chart for chart in all_charts().values() if isinstance(chart, Chart)]
    shown: set[str] = set()
    for chart in kinds:
        ranked = (
            sorted(sweeps.values(), key=chart.preferred) if chart.preferred else sweeps.values()
        )
        fitting = (sweep for sweep in ranked if _fits(chart, sweep))
        for merged in islice(_merged(chart, fitting), chart.most):
            shown |= {sweep.name for sweep in merged}
            yield _automatic(chart, merged, sweeps, popular)
    for sweep in (sweep for name, sweep in sweeps.items() if name not in shown):
        suited = [chart for chart in kinds if _fits(chart, sweep)]
        if suited:
            chart = max(suited, key=lambda chart: len(chart.needs))
            yield _automatic(chart, [sweep], sweeps, popular)


def _fits(chart: Chart, sweep: Sweep) -> bool:
    """Whether `auto` may show a sweep in a chart."""
    return not lacking(chart, sweep, auto=True) and not absent(chart, sweep)


def _automatic(
    chart: Chart, merged: Sequence[Sweep], sweeps: Mapping[str, Sweep], popular: _Popular
) -> Spec:
    """A chart of `auto` that shows a sweep, or several with a menu."""
    specs = []
    for sweep in merged:
        config = ChartConfig.model_validate({"chart": chart.name, "sweep": sweep.name})
        specs.append(_spec(chart, sweep, sweeps, popular, config))
    chips = tuple(dict.fromkeys(chip for spec in specs for chip in spec.chips))
    dtypes = tuple(dict.fromkeys(name for spec in specs for name in spec.dtypes))
    more_chips = dict.fromkeys(chip for spec in specs for chip in spec.more_chips)
    more_dtypes = dict.fromkeys(name for spec in specs for name in spec.more_dtypes)
    return replace(
        specs[0],
        auto=True,
        others=tuple(sweep.name for sweep in merged[1:]),
        chips=chips,
        dtypes=dtypes,
        more_chips=tuple(chip for chip in more_chips if chip not in chips),
        more_dtypes=tuple(name for name in more_dtypes if name not in dtypes),
    )


def _merged(chart: Chart, sweeps: Iterable[Sweep]) -> Iterator[list[Sweep]]:
    """Sweeps by the chart that shows them, in order of the first of each."""
    merged: dict[Hashable, list[Sweep]] = {}
    for sweep in sweeps:
        key = chart.merges(sweep) if chart.merges else sweep.name
        merged.setdefault(key, []).append(sweep)
    yield from merged.values()


def _listed(
    config: ChartConfig, chart: Chart, sweeps: Mapping[str, Sweep], popular: _Popular
) -> Spec:
    """A chart that the config lists, checked against its sweep."""
    name = _sweep_of(config, chart)
    with placed("sweep"):
        check_known(name, sweeps, f"no sweep of operations, which {chart.name} needs")
    sweep = sweeps[name]
    check_suits(chart, sweep)
    variants = _check_choices(config, chart, sweep)
    if not variants:
        raise unsupported(config.chips or ["its chips"], config.dtypes or [])
    spec = _spec(chart, sweep, sweeps, popular, config)
    check_shown(chart, sweep, spec.chips, spec.dtypes or config.dtypes or [])
    return spec


def _check_choices(config: ChartConfig, chart: Chart, sweep: Sweep) -> set[Variant]:
    """Refuse choices that the sweep does not offer; return the variants chosen."""
    variants: set[Variant] = set()
    with Mistakes() as mistakes:
        check_asked(
            sweep,
            chips=config.chips,
            dtypes=config.dtypes,
            shape=config.shape,
            up=config.up,
            sizes=config.sizes,
        )
        with mistakes.at("model"):
            models = list(models_of(_shapes(sweep)))
            check_known(config.model, models, f"no model among the shapes of sweep {sweep.name}")
        able = chips_for(chart, sweep)
        if config.chips and not set(config.chips) & set(able):
            numbers = f"none of which has the numbers that {chart.name} compares"
            raise RooflinesError(
                "chips",
                f"are {', '.join(config.chips)}, {numbers}",
                f"add some of {', '.join(able)}",
            )
        if variants := _variants(sweep, config.chips, config.dtypes):
            shardings = _shardings(sweep, variants)
            with mistakes.at("sharding"):
                what = f"no sharding of sweep {sweep.name} that these chips can do"
                check_known(config.sharding, shardings, what)
            with mistakes.at("shards"):
                sharding = config.sharding or _first_split(sweep, variants)
                shards = sorted({v.shards for v in variants if v.sharding == sharding})
                what = f"no number of chips that sweep {sweep.name} has for this split"
                check_known(config.shards, shards, what)
    return variants


def _variants(
    sweep: Sweep, chips: Sequence[str] | None, dtypes: Sequence[str] | None
) -> set[Variant]:
    """The variants of some chips, or of all, in some dtype combinations, or in all."""
    by_chip = (chip_rows for chip_rows in sweep.by_chip if not chips or chip_rows.chip in chips)
    return {
        variant
        for chip_rows in by_chip
        for variant in chip_rows.variants
        if not dtypes or variant.dtypes in dtypes
    }


def _shardings(sweep: Sweep, variants: Iterable[Variant]) -> list[str]:
    """The shardings among some variants, in the sweep's order."""
    names = {variant.sharding for variant in variants}
    return [name for name in sweep.shardings if name in names]


def _first_split(sweep: Sweep, variants: Iterable[Variant]) -> str | None:
    """The first sharding that splits something; None if nothing is split."""
    names = _shardings(sweep, variants)
    return next((name for name in names if sweep.shardings[name].split), None)


def _spec(
    chart: Chart,
    sweep: Sweep,
    sweeps: Mapping[str, Sweep],
    popular: _Popular,
    config: ChartConfig,
) -> Spec:
    """A chart with a value for every choice that it has."""
    fills = chart.fills
    chips = tuple(config.chips or popular.chips_of(chart, sweep))
    dtypes = tuple(config.dtypes or popular.dtypes_of(chart, sweep, chips))
    more_chips, more_dtypes = further(chart, sweep, config, chips, dtypes)
    variants = _variants(sweep, chips, dtypes)
    sharding = config.sharding or _first_split(sweep, variants)
    splits = {variant.shards for variant in variants if sharding in (None, variant.sharding)}
    model = config.model if config.model is not None else popular.model_of(sweep)
    layers = models_of(_shapes(sweep)).get(model, {})
    shape = config.shape or (typical_layer(layers) if layers and "shape" in fills else None)
    sizes, shards = config.sizes or [], config.shards or []
    if "sizes" in fills:
        sizes = sizes or _some(sizes_of(sweep, sweep.op.dims[0]))
    if "shards" in fills:
        shards = shards or [n for n in sweep.counts if n in splits][:MOST_SPLITS]
    return Spec(
        chart=chart.name,
        id=config.id or f"{chart.name}-{sweep.name}",
        family=chart.family,
        sweep=sweep.name,
        chips=chips,
        dtypes=dtypes,
        more_chips=more_chips,
        more_dtypes=more_dtypes,
        title=config.title,
        shape=shape,
        model=model if layers and "model" in fills else None,
        sharding=sharding if "sharding" in fills else config.sharding,
        up=(config.up or map_dims(sweep)[0]) if "up" in fills else None,
        sizes=tuple(sizes),
        shards=tuple(shards) if "shards" in fills else (),
        shapes=tuple(_published(sweeps)) if "shapes" in fills else (),
    )


def _some(values: Sequence[int]) -> list[int]:
    """Three sizes of a longer axis, at a quarter, a half and three quarters of it."""
    return sorted({values[round((len(values) - 1) * share)] for share in (0.25, 0.5, 0.75)})


def _published(sweeps: Mapping[str, Sweep]) -> Iterator[tuple[str, int, int]]:
    """Name, D and F of one shape per model: that from its width to its widest layer."""
    seen: set[str] = set()
    for sweep in sweeps.values():
        shapes = {shape.name: shape for shape in _shapes(sweep) if {"D", "F"} <= set(shape.sizes)}
        for model, layers in models_of(list(shapes.values())).items():
            layer = next(
                (name for name in ("up", "expert-up") if name in layers), next(iter(layers))
            )
            name = model or layers[layer]
            if name not in seen:
                seen.add(name)
                sizes = shapes[layers[layer]].sizes
                yield name, whole(sizes["D"]), whole(sizes["F"])
