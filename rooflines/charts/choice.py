"""Which charts are drawn, and of what: those a config lists, or one of each kind that fits it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import (
    Mistakes,
    RooflinesError,
    check_known,
    close_to,
    quote,
)
from rooflines.charts.models import models_of, typical_layer
from rooflines.charts.offers import dtypes_by_chip, unsupported
from rooflines.charts.registry import REPLACED, kinds
from rooflines.charts.views import Spec, check_menu

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from rooflines.charts.views import Kind, Option
    from rooflines.measured.sets import MeasuredSet
    from rooflines.settings.charts import ChartConfig
    from rooflines.sweep.step_sweep import ModelSweep
    from rooflines.sweep.sweep import Sweep

BY_NAME = 12
"""Most chips of a sweep that counts as naming them; the names of larger sweeps are not counted."""

MOST_MODELS = 4
"""Models that the gallery offers [1]."""

DESCRIBE = "describe one under `measurements:` of the config, and add measurements: with its name"
"""How to fix a chart of timings in a config without timings."""

MENUS = {"shape": "shape", "model": "model", "sharding": "split", "up": "by", "shards": "shards"}
"""The menus whose options keys of a chart's config name; `view` names any."""

WORDS = {
    "sweeps": "no sweep of operations",
    "model_sweeps": "no sweep of whole models",
    "measurements": "no set of timings of this config",
}
"""What a message calls a missing source."""


def choose(
    charts: Sequence[ChartConfig] | None,
    sweeps: Mapping[str, Sweep],
    model_sweeps: Mapping[str, ModelSweep],
    measurements: Mapping[str, MeasuredSet],
    refused: Collection[str] = (),
) -> tuple[Spec, ...]:
    """The charts of a config.

    Args:
        charts: What the config lists; None: `auto`.
        sweeps: The config's sweeps of operations.
        model_sweeps: Its sweeps of whole models.
        measurements: Its sets of timings.
        refused: Names of sweeps and sets that were refused; charts of them are left out.

    Returns:
        The charts in order, each with an id of its own.

    Raises:
        RooflinesError: A chart asks for what its sweep does not have; key paths start at the list.
    """
    sources: dict[str, Mapping[str, Any]] = {
        "sweeps": sweeps,
        "model_sweeps": model_sweeps,
        "measurements": measurements,
    }
    popular = Popular(sweeps)
    if charts is None:
        return tuple(_fitting(sources, popular))
    specs: list[Spec] = []
    with Mistakes() as mistakes:
        for index, config in enumerate(charts):
            with mistakes.at(f"[{index}]") as part:
                with part.at("chart"):
                    _check_name(config.chart)
                if {config.sweep, config.measurements} & {*refused}:
                    continue
                part.check()
                spec = _listed(config, sources, popular)
                if spec.id in {other.id for other in specs}:
                    problem = f"is {quote(spec.id)}, which another chart has"
                    raise RooflinesError("id", problem, "give it an id of its own")
                specs.append(spec)
    return tuple(specs)


class Popular:
    """What a config names most often: chips, dtypes and models, to choose some of a large sweep."""

    def __init__(self, sweeps: Mapping[str, Sweep]) -> None:
        self.chips: Counter[str] = Counter()
        self.dtypes: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        for sweep in sweeps.values():
            chips = sweep.config.chips
            self.chips.update(chips if len(chips) <= BY_NAME else ())
            self.dtypes.update(list(sweep.combinations))
            self.models.update(list(models_of(sweep.config.shapes or ())))

    def of(self, kind: Kind, source: Any) -> tuple[tuple[str, ...], tuple[str, ...]]:  # noqa: ANN401
        """Chips and dtypes of a source, those that are named most often first."""
        offered = offers(kind, source)
        if kind.source == "measurements":
            return tuple(offered), tuple(dict.fromkeys(n for of in offered.values() for n in of))
        chips = sorted(offered, key=lambda chip: -self.chips[chip])[: kind.most_chips]
        able = [name for name in source.combinations if any(name in offered[c] for c in chips)]
        return tuple(chips), tuple(sorted(able, key=lambda name: -self.dtypes[name]))

    def given(self, source: Any) -> dict[str, tuple[Option, ...]]:  # noqa: ANN401, of any kind
        """Options of menus that the gallery offers: models, and of each its typical layer."""
        named = getattr(source, "models", None)
        if named is not None:
            order = sorted(named, key=lambda name: -self.models[name])
            return {"model": tuple(order[:MOST_MODELS])}
        shapes = getattr(source.config, "shapes", None) or ()
        if not shapes:
            return {}
        models = models_of(shapes)
        order = sorted(models, key=lambda name: (not name, -self.models[name]))[:MOST_MODELS]
        return {
            "model": tuple(order),
            "shape": tuple(typical_layer(models[name]) for name in order),
        }


def offers(kind: Kind, source: Any) -> dict[str, set[str]]:  # noqa: ANN401, of any kind
    """The dtypes of each chip of a source, in its order."""
    if kind.source == "model_sweeps":
        return dtypes_by_chip(source)
    found: dict[str, set[str]] = {}
    if kind.source == "measurements":
        for case in sorted(source.cases, key=lambda case: -case.timings):
            found.setdefault(case.chip, set()).add(case.dtypes)
    else:
        for rows in source.by_chip:
            found.setdefault(rows.chip, set()).update(v.dtypes for v in rows.variants)
    return found


def _fitting(sources: Mapping[str, Mapping[str, Any]], popular: Popular) -> Iterator[Spec]:
    """One chart of each kind that fits: of the sweep that suits it best."""
    for kind in kinds().values():
        fitting = [
            source
            for source in sources[kind.source].values()
            if not kind.lacking(source, auto=True) and not absent(kind, source)
        ]
        if fitting:
            source = min(fitting, key=kind.preferred)
            chips, dtypes = popular.of(kind, source)
            given = tuple(popular.given(source).items())
            name = f"{kind.name}-{source.name}"
            yield Spec(kind.name, name, source.name, chips, dtypes, given, auto=True)


def absent(kind: Kind, source: Any) -> list[str]:  # noqa: ANN401, of any kind
    """The columns that a kind reads and the sweep does not store."""
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
    """What a chart of the config is of."""
    key, other = ("sweep", "measurements")
    if kind.source == "measurements":
        key, other = other, key
    if getattr(config, other) is not None:
        raise RooflinesError(other, f"is no choice of {kind.name}", f"leave it out, write {key}:")
    name = getattr(config, key)
    known = sources[kind.source]
    if name is None:
        fix = f"add {key}: one of {', '.join(known)}" if known else DESCRIBE
        raise RooflinesError("", f"is {kind.name} and lacks its {key}", fix)
    with Mistakes() as mistakes, mistakes.at(key):
        check_known(name, known, f"{WORDS[kind.source]}, which {kind.name} needs")
    return known[name]


def _listed(
    config: ChartConfig, sources: Mapping[str, Mapping[str, Any]], popular: Popular
) -> Spec:
    """A chart that the config lists, checked against its sweep."""
    kind = kinds()[config.chart]
    source = _source_of(config, kind, sources)
    kind.check(source, "chart")
    if missing := absent(kind, source):
        raise RooflinesError(
            "chart",
            f"is {kind.name}, which reads columns that sweep {source.name} does not store",
            f"add {', '.join(missing)} to the sweep's `columns`",
        )
    offered = offers(kind, source)
    every = set().union(*offered.values())
    with Mistakes() as mistakes:
        with mistakes.at("chips"):
            check_known(config.chips, list(offered), f"no chip of {source.name}")
        with mistakes.at("dtypes"):
            check_known(config.dtypes, sorted(every), f"no dtypes of {source.name}")
    chips, dtypes = popular.of(kind, source)
    chips, dtypes = tuple(config.chips or chips), tuple(config.dtypes or dtypes)
    if not any(offered[chip] & {*dtypes} for chip in chips):
        raise unsupported(chips, dtypes)
    own = _given(config, kind, source, (chips, dtypes))
    given = {} if kind.source == "measurements" else popular.given(source)
    return Spec(
        kind.name,
        config.id or f"{kind.name}-{source.name}",
        source.name,
        chips,
        dtypes,
        tuple({**given, **own}.items()),
        config.title,
    )


def _given(
    config: ChartConfig,
    kind: Kind,
    source: Any,  # noqa: ANN401, of any kind
    shown: tuple[Sequence[str], Sequence[str]],
) -> dict[str, tuple[Option, ...]]:
    """The options of menus that a chart of the config names, checked."""
    asked: dict[str, tuple[str, tuple[Option, ...]]] = {}
    for key, menu in MENUS.items():
        value = getattr(config, key)
        if value is not None:
            asked[key] = menu, tuple(value) if isinstance(value, list) else (value,)
    if config.sizes is not None:
        sizes = [menu.name for menu in kind.menus(source, {}) if len(menu.name) == 1]
        asked["sizes"] = (sizes[0] if sizes else "sizes"), tuple(config.sizes)
    for menu, option in (config.view or {}).items():
        asked[f"view.{menu}"] = menu, (option,)
    first: dict[str, Option] = {menu: options[0] for menu, options in asked.values()}
    chips, dtypes = shown
    names = {menu.name for menu in kind.menus(source, first)}
    if "chip" in names and "chip" not in first:
        able = [c for c in chips if offers(kind, source)[c] & {*dtypes}]
        first["chip"] = able[0]
    menus = {menu.name: menu.options for menu in kind.menus(source, first)}
    with Mistakes() as mistakes:
        for key, (menu, options) in asked.items():
            with mistakes.at(key):
                check_menu(kind, menu, menus)
                check_known(list(options), list(menus[menu]), f"no {menu} of {source.name}")
    return dict(asked.values())
