"""Chart choice: charts that a config lists, or with `auto` one from each kind that fits it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, check_choices, close_to, quote
from rooflines.charts.chart_models import layers_by_model, typical_layer
from rooflines.charts.frames import by_timings, check_shown, dtypes_by_chip
from rooflines.charts.registry import REPLACED, kinds
from rooflines.charts.views import Spec, check_menu

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rooflines.charts.options import Option
    from rooflines.charts.views import Kind
    from rooflines.config.chart_fields import ChartConfig
    from rooflines.measured.timing_sets import MeasuredSet
    from rooflines.sweep.config_sweeps import AnyKernelSweep
    from rooflines.sweep.operation_sweep import Sweep
    from rooflines.sweep.step_sweep import ModelSweep

MAX_NAMED_CHIPS = 12
"""Chips of the largest sweep whose list counts as naming chips [1]; larger ones list catalogues."""

MAX_KERNEL_CHARTS = 8
"""Kernel sweeps that `auto` draws a chart of [1]."""

MAX_MODELS = 4
"""Models that the gallery offers [1]."""

ADD_TIMINGS = (
    "describe one under `measurements:` of the config, and add measurements: with its name"
)
"""Hint for a chart of timings in a config without timings."""

SOURCE_NAMES = {
    "sweeps": "no sweep of operations",
    "kernel_sweeps": "no sweep of kernels",
    "model_sweeps": "no sweep of whole models",
    "measurements": "no set of timings of this config",
}
"""Names of missing sources in messages."""


def choose(  # noqa: PLR0913, PLR0917, the sources of charts
    charts: Sequence[ChartConfig] | None,
    sweeps: Mapping[str, Sweep],
    kernel_sweeps: Mapping[str, AnyKernelSweep],
    model_sweeps: Mapping[str, ModelSweep],
    measurements: Mapping[str, MeasuredSet],
    refused: Collection[str] = (),
) -> tuple[Spec, ...]:
    """Choose a config's charts.

    Args:
        charts: The config's list; None: `auto`.
        sweeps: The config's operation sweeps.
        kernel_sweeps: Its sweeps over kernels.
        model_sweeps: Its sweeps over whole models.
        measurements: Its timing sets.
        refused: Refused sweeps and sets by name; their charts are left out.

    Returns:
        The charts in order, with distinct ids.

    Raises:
        RooflinesError: A chart needs data that its sweep lacks; key paths start at the list.
    """
    sources: dict[str, Mapping[str, Any]] = {
        "sweeps": sweeps,
        "kernel_sweeps": kernel_sweeps,
        "model_sweeps": model_sweeps,
        "measurements": measurements,
    }
    counts = _count_names(sweeps)
    if charts is None:
        return tuple(_auto_specs(sources, counts))
    specs: list[Spec] = []
    with Mistakes() as mistakes:
        for index, config in enumerate(charts):
            with mistakes.at(index) as part:
                with part.at("chart"):
                    _check_name(config.chart)
                if {config.sweep, config.measurements} & {*refused}:
                    continue
                part.check()
                spec = _listed_spec(config, sources, counts)
                if spec.id in {earlier.id for earlier in specs}:
                    problem = f"is {quote(spec.id)}, which another chart has"
                    raise RooflinesError("id", problem, "give it an id of its own")
                specs.append(spec)
    return tuple(specs)


def _count_names(sweeps: Mapping[str, Sweep]) -> Counter[str]:
    """Name counts in a config: chips, dtypes and models."""
    counts: Counter[str] = Counter()
    for sweep in sweeps.values():
        chips = sweep.config.chips
        counts.update(chips if len(chips) <= MAX_NAMED_CHIPS else ())
        counts.update([*sweep.combinations, *layers_by_model(sweep.config.shapes or ())])
    return counts


def _defaults(
    kind: Kind,
    source: Any,  # noqa: ANN401, of any kind
    counts: Counter[str],
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, tuple[Option, ...]]]:
    """Default chips, dtypes, and models with a typical layer each, the most often named first."""

    def rarity(name: str) -> int:
        return -counts[name]

    offered = dtypes_by_chip(source)
    if kind.source == "measurements":
        return tuple(offered), tuple(dict.fromkeys(c.dtypes for c in by_timings(source))), {}
    chips = sorted(offered, key=rarity)[: kind.max_chips]
    usable = [name for name in source.combinations if any(name in offered[c] for c in chips)]
    options: dict[str, tuple[Option, ...]] = {}
    if kind.source == "model_sweeps":
        options["model"] = tuple(sorted(source.models, key=rarity)[:MAX_MODELS])
    elif kind.source == "kernel_sweeps":
        options = {}
    elif models := layers_by_model(source.config.shapes or ()):
        order = sorted(models, key=lambda name: (not name, rarity(name)))[:MAX_MODELS]
        shapes = tuple(typical_layer(models[name]) for name in order)
        options = {"model": tuple(order), "shape": shapes}
    return tuple(chips), tuple(sorted(usable, key=rarity)), options


def _auto_specs(sources: Mapping[str, Mapping[str, Any]], counts: Counter[str]) -> Iterator[Spec]:
    """Specs of `auto`: for each kind that fits, its preferred sweep, or each."""
    for kind in kinds().values():
        fitting = [
            source
            for source in sources[kind.source].values()
            if not kind.unmet_need(source, auto=True) and not absent(kind, source)
        ]
        fitting.sort(key=kind.preferred)
        for source in fitting[: MAX_KERNEL_CHARTS if kind.each_sweep else 1]:
            chips, dtypes, options = _defaults(kind, source, counts)
            name = f"{kind.name}-{source.name}"
            yield Spec(
                kind.name, name, source.name, chips, dtypes, tuple(options.items()), auto=True
            )


def absent(kind: Kind, source: Any) -> list[str]:  # noqa: ANN401, of any kind
    """Columns that a kind reads but the sweep does not store."""
    stored = getattr(source.config, "columns", None)
    return [name for name in kind.reads if isinstance(stored, list) and name not in stored]


def _check_name(name: object) -> None:
    """Refuse a name that no kind has; the schema accepts any value."""
    names = list(kinds())
    if name in names:
        return
    if isinstance(name, str) and name in REPLACED:
        problem = f"is {quote(name)}, a chart of an earlier version"
        raise RooflinesError("", problem, f"use {REPLACED[name]}")
    problem, fix = f"is {quote(name)}, which is no chart", f"use one of {', '.join(names)}"
    raise RooflinesError("", problem, fix, close=close_to(name, names))


def _source_of(config: ChartConfig, kind: Kind, sources: Mapping[str, Mapping[str, Any]]) -> Any:  # noqa: ANN401
    """Source that a chart in the config names: a sweep or a timing set."""
    key, foreign_key = ("sweep", "measurements")
    if kind.source == "measurements":
        key, foreign_key = foreign_key, key
    if getattr(config, foreign_key) is not None:
        raise RooflinesError(
            foreign_key, f"is no choice of {kind.name}", f"leave it out, write {key}:"
        )
    name = getattr(config, key)
    named_sources = sources[kind.source]
    if name is None:
        fix = f"add {key}: one of {', '.join(named_sources)}" if named_sources else ADD_TIMINGS
        raise RooflinesError("", f"is {kind.name} and lacks its {key}", fix)
    with Mistakes() as mistakes, mistakes.at(key):
        check_choices(name, named_sources, f"{SOURCE_NAMES[kind.source]}, which {kind.name} needs")
    return named_sources[name]


def _listed_spec(
    config: ChartConfig, sources: Mapping[str, Mapping[str, Any]], counts: Counter[str]
) -> Spec:
    """Spec of a chart in the config's list, checked against its sweep."""
    kind = kinds()[config.chart]
    source = _source_of(config, kind, sources)
    kind.check(source, "chart")
    if missing := absent(kind, source):
        raise RooflinesError(
            "chart",
            f"is {kind.name}, which reads columns that sweep {source.name} does not store",
            f"add {', '.join(missing)} to the sweep's `columns`",
        )
    chips, dtypes, options = _defaults(kind, source, counts)
    chips, dtypes = tuple(config.chips or chips), tuple(config.dtypes or dtypes)
    check_shown(source, chips, dtypes)
    options |= _view_options(config, kind, source, (chips, dtypes))
    name = config.id or f"{kind.name}-{source.name}"
    return Spec(kind.name, name, source.name, chips, dtypes, tuple(options.items()), config.title)


def _view_options(
    config: ChartConfig,
    kind: Kind,
    source: Any,  # noqa: ANN401, of any kind
    shown: tuple[Sequence[str], Sequence[str]],
) -> dict[str, tuple[Option, ...]]:
    """Menu options under `view` of a chart in the config, checked."""
    view_options = {menu: tuple(options) for menu, options in (config.view or {}).items()}
    first: dict[str, Option] = {menu: options[0] for menu, options in view_options.items()}
    (chips, dtypes), offered = shown, dtypes_by_chip(source)
    if "chip" not in first and "chip" in {menu.name for menu in kind.menus(source, first)}:
        first["chip"] = next(chip for chip in chips if offered[chip] & {*dtypes})
    menus = {menu.name: menu.options for menu in kind.menus(source, first)}
    with Mistakes() as mistakes:
        for menu, options in view_options.items():
            with mistakes.at("view", menu):
                check_menu(kind, menu, menus)
                check_choices(list(options), list(menus[menu]), f"no {menu} of {source.name}")
    return view_options
