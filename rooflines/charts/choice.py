"""Which charts are drawn, and of what: as the config lists them, or those that fit the axes of its sweeps."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, check_known, placed, quote
from rooflines.basics.numbers import whole
from rooflines.charts.needs import (
    TWO,
    absent,
    check_asked,
    chips_for,
    lacking,
    map_dims,
    shape_names,
    sizes_of,
)
from rooflines.settings.charts import KINDS, ChartConfig

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rooflines.sweep.sweep import Sweep, Variant

__all__ = ["Spec", "choose", "models_of"]

MOST_CHIPS, MOST_DTYPES = 7, 3
"""What the selectors of a chart offer, where a sweep has more."""

BY_NAME = 12
"""A sweep of more chips than this names none of them in particular."""

DTYPES_OF = {"bounds": 2, "critical-map": 2, "time": 2, "ridges": 8}
"""The same for charts that are large with each of them, and for the one that shows them side by side."""

MOST_OF_A_KIND = {"attained": 4, "shards": 3, "bounds": 2}
"""Charts of a kind that `auto` draws; one of the others."""

BY_COLOUR = ("chips", "shards", "ridges", "per-dollar", "per-watt")
"""Charts in which colour is the chip."""

MAP_CHIPS = 4
"""Chips of a map, which has a cell for every pair of sizes of each."""


@dataclass(frozen=True)
class Spec:
    """One chart to draw, nothing left open.

    Attributes:
        chart, id, family: What it is, what its files are called, and which job draws it.
        sweep, chips, dtypes: What it shows.
        title: In place of the finding.
        shape, model, sharding, up, sizes, shards: What else it shows, where the chart asks for it.
        shapes: Named shapes with their D and F, for the map.
        palette: The chips that have colours in any chart of the config, with their vendors: a chip has one colour in all of them.
        auto: Whether nobody asked for it in particular; then it may show fewer chips where all of them are too many.
    """

    chart: str
    id: str
    family: str
    sweep: str
    chips: tuple[str, ...]
    dtypes: tuple[str, ...]
    title: str | None = None
    shape: str | None = None
    model: str | None = None
    sharding: str | None = None
    up: str | None = None
    sizes: tuple[int, ...] = ()
    shards: tuple[int, ...] = ()
    shapes: tuple[tuple[str, int, int], ...] = ()
    palette: tuple[tuple[str, str], ...] = ()
    auto: bool = False

    def plain(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def choose(
    charts: str | Sequence[ChartConfig | None],
    sweeps: Mapping[str, Sweep],
    refused: Collection[str] = (),
) -> tuple[Spec, ...]:
    """The charts of a config.

    Args:
        charts: `auto`, or what the config lists; None in the place of a chart that was refused.
        sweeps: The config's sweeps.
        refused: Names of sweeps that were refused; charts of them are left out.

    Returns:
        The charts in order, each with an id of its own.

    Raises:
        RooflinesError: A chart asks for what its sweep does not have; key paths start at the list.
    """
    liked = _Liked(sweeps)
    if isinstance(charts, str):
        return _coloured(list(_fitting(sweeps, liked)), sweeps)
    specs: list[Spec] = []
    with Mistakes() as mistakes:
        for index, given in enumerate(charts):
            with mistakes.at(f"[{index}]"):
                if given is None or given.sweep in refused:
                    continue
                with placed("sweep"):
                    check_known(given.sweep, [*sweeps, *refused], "no sweep of this config")
                spec = _listed(given, sweeps, liked)
                if spec.id in {other.id for other in specs}:
                    raise RooflinesError(
                        "id",
                        f"is {quote(spec.id)}, which another chart has",
                        "give it an id of its own",
                    )
                specs.append(spec)
    return _coloured(specs, sweeps)


def _coloured(specs: Sequence[Spec], sweeps: Mapping[str, Sweep]) -> tuple[Spec, ...]:
    """The charts with the palette that those of them share which tell chips by colour."""
    chips = {
        (chip, sweeps[s.sweep].chips[chip].vendor or "")
        for s in specs
        if s.chart in BY_COLOUR
        for chip in s.chips
    }
    palette = tuple(sorted(chips))
    return tuple(
        replace(spec, palette=palette) if spec.chart in BY_COLOUR else spec for spec in specs
    )


class _Liked:
    """What a config names most often: the chips, dtypes and models that stand for all of a large sweep."""

    def __init__(self, sweeps: Mapping[str, Sweep]) -> None:
        self.chips: Counter[str] = Counter()
        self.dtypes: Counter[str] = Counter()
        self.models: Counter[str] = Counter()
        named = models_of(
            list(dict.fromkeys(name for sweep in sweeps.values() for name in shape_names(sweep)))
        )
        model_of = {shape: model for model, layers in named.items() for shape in layers.values()}
        for sweep in sweeps.values():
            self.chips.update(sweep.config.chips if len(sweep.config.chips) <= BY_NAME else ())
            self.dtypes.update(list(sweep.combinations))
            self.models.update({model_of[name] for name in shape_names(sweep)} - {""})

    def chips_of(self, kind: str, sweep: Sweep, most: int) -> tuple[str, ...]:
        found = _liked(
            list(dict.fromkeys(chip_rows.chip for chip_rows in sweep.by_chip)), self.chips, most
        )
        able = chips_for(kind, sweep)
        return (
            found
            if len(set(found) & set(able)) >= min(TWO, len(found))
            else _liked(able, self.chips, most)
        )

    def dtypes_of(self, sweep: Sweep, chips: Sequence[str], most: int) -> tuple[str, ...]:
        served = {variant.dtypes for variant in _served(sweep, chips, None)}
        return _liked([name for name in sweep.combinations if name in served], self.dtypes, most)

    def model_of(self, sweep: Sweep) -> str:
        found = models_of(shape_names(sweep))
        return max(found, key=lambda model: (self.models[model], len(found[model]) > 1), default="")


def _liked(names: Sequence[str], counts: Counter[str], most: int) -> tuple[str, ...]:
    """The names counted most often, in their own order."""
    kept = sorted(names, key=lambda name: (-counts[name], names.index(name)))[:most]
    return tuple(name for name in names if name in kept)


def _fitting(sweeps: Mapping[str, Sweep], liked: _Liked) -> Iterator[Spec]:
    """The charts that fit the sweeps' axes: at most a few of each kind, in the order of families and sweeps."""
    drawn: Counter[str] = Counter()
    for kind in KINDS:
        for sweep in _best_first(kind, sweeps):
            if (
                drawn[kind] < MOST_OF_A_KIND.get(kind, 1)
                and not lacking(kind, sweep, auto=True)
                and not absent(kind, sweep)
            ):
                drawn[kind] += 1
                given = ChartConfig.model_validate({"chart": kind, "sweep": sweep.name})
                yield replace(_spec(kind, sweep, sweeps, liked, given), auto=True)


def _best_first(kind: str, sweeps: Mapping[str, Sweep]) -> Iterable[Sweep]:
    """Sweeps in their order; for charts that need only chips the one with most of them, and with named shapes."""
    if kind in ("roofline", "chips", "ridges", "per-dollar", "per-watt"):
        return sorted(
            sweeps.values(),
            key=lambda s: (
                s.unit != "matrix",
                -len({b.chip for b in s.by_chip}),
                not s.config.shapes,
            ),
        )
    if kind in ("time", "shards", "bounds"):
        return sorted(sweeps.values(), key=lambda s: (-len(s.config.shards), not s.config.shapes))
    return sweeps.values()


def _listed(given: ChartConfig, sweeps: Mapping[str, Sweep], liked: _Liked) -> Spec:
    """A chart that the config lists, checked against its sweep."""
    sweep = sweeps[given.sweep]
    if what := lacking(given.chart, sweep):
        fix = "choose another sweep or chart, or give the sweep what it needs"
        raise RooflinesError(
            "chart", f"is {given.chart}, which needs {what}; sweep {sweep.name} lacks that", fix
        )
    missing = absent(given.chart, sweep)
    if missing:
        fix = f"add {', '.join(missing)} to the sweep's `columns`"
        raise RooflinesError(
            "chart",
            f"is {given.chart}, which reads columns that sweep {sweep.name} does not store",
            fix,
        )
    with Mistakes() as mistakes:
        check_asked(
            sweep,
            chips=given.chips,
            dtypes=given.dtypes,
            shape=given.shape,
            up=given.up,
            sizes=given.sizes,
        )
        with mistakes.at("model"):
            check_known(
                given.model,
                list(models_of(shape_names(sweep))),
                f"no model among the shapes of sweep {sweep.name}",
            )
        able = chips_for(given.chart, sweep)
        if given.chips and not set(given.chips) & set(able):
            problem = f"are {', '.join(given.chips)}, none of which has the numbers that {given.chart} compares"
            raise RooflinesError("chips", problem, f"add some of {', '.join(able)}")
        if served := _served(sweep, given.chips, given.dtypes):
            with mistakes.at("sharding"):
                check_known(
                    given.sharding,
                    _shardings(sweep, served),
                    f"no sharding of sweep {sweep.name} that these chips can do",
                )
            with mistakes.at("shards"):
                shards = {
                    s.shards
                    for s in served
                    if s.sharding == (given.sharding or _first_split(sweep, served))
                }
                check_known(
                    given.shards,
                    sorted(shards),
                    f"no number of chips that sweep {sweep.name} has for this split",
                )
    if not served:
        chips, dtypes = ", ".join(given.chips or ()) or "its chips", ", ".join(given.dtypes or ())
        raise RooflinesError(
            "dtypes",
            f"are {dtypes}, of which {chips} can do none",
            "name a dtype combination that one of the chips can do",
        )
    return _spec(given.chart, sweep, sweeps, liked, given)


def _served(
    sweep: Sweep, chips: Sequence[str] | None, dtypes: Sequence[str] | None
) -> set[Variant]:
    """What some chips, or all of them, can do in some dtype combinations, or in all."""
    by_chip = (chip_rows for chip_rows in sweep.by_chip if not chips or chip_rows.chip in chips)
    return {
        variant
        for chip_rows in by_chip
        for variant in chip_rows.variants
        if not dtypes or variant.dtypes in dtypes
    }


def _shardings(sweep: Sweep, served: Iterable[Variant]) -> list[str]:
    """The shardings among some scenarios, in the sweep's order."""
    found = {variant.sharding for variant in served}
    return [name for name in sweep.shardings if name in found]


def _first_split(sweep: Sweep, served: Iterable[Variant]) -> str | None:
    """The first sharding that splits something; None where nothing is split."""
    return next((name for name in _shardings(sweep, served) if sweep.shardings[name].split), None)


def _spec(
    kind: str, sweep: Sweep, sweeps: Mapping[str, Sweep], liked: _Liked, given: ChartConfig
) -> Spec:
    """A chart with everything it needs."""
    most = MAP_CHIPS if kind in ("bounds", "critical", "critical-map") else MOST_CHIPS
    chips = tuple(given.chips or liked.chips_of(kind, sweep, most))
    dtypes = tuple(given.dtypes or liked.dtypes_of(sweep, chips, DTYPES_OF.get(kind, MOST_DTYPES)))
    served = _served(sweep, chips, dtypes)
    sharding = given.sharding or _first_split(sweep, served)
    splits = {variant.shards for variant in served if sharding in (None, variant.sharding)}
    models = models_of(shape_names(sweep))
    model = given.model if given.model is not None else liked.model_of(sweep)
    layers = models.get(model, {})
    shape = given.shape or (
        _typical(layers) if layers and kind in ("roofline", "shards", "bounds") else None
    )
    return Spec(
        chart=kind,
        id=given.id or f"{kind}-{sweep.name}",
        family=KINDS[kind],
        sweep=sweep.name,
        chips=chips,
        dtypes=dtypes,
        title=given.title,
        shape=shape,
        model=model if layers and kind in ("layers", "time") else None,
        sharding=sharding if kind in ("time", "shards", "bounds") else None,
        up=(given.up or map_dims(sweep)[0]) if kind == "bounds" else None,
        sizes=tuple(
            given.sizes or (_some(sizes_of(sweep, sweep.op.dims[0])) if kind == "time" else ())
        ),
        shards=tuple(given.shards or [n for n in sweep.config.shards if n in splits][:4])
        if kind == "time"
        else (),
        shapes=tuple(_published(sweeps)) if kind == "critical-map" else (),
    )


def _typical(layers: Mapping[str, str]) -> str:
    """The layer that stands for a model: the way down in its MLP, else the last."""
    return next(
        (layers[name] for name in ("down", "expert-down") if name in layers),
        list(layers.values())[-1],
    )


def _some(values: Sequence[int]) -> list[int]:
    """Three sizes of a longer axis, from its first, second and third quarter."""
    return sorted({values[round((len(values) - 1) * share)] for share in (0.25, 0.5, 0.75)})


def _published(sweeps: Mapping[str, Sweep]) -> Iterator[tuple[str, int, int]]:
    """One matrix for each model that any sweep names with D and F: that from its width to its widest."""
    seen: set[str] = set()
    for sweep in sweeps.values():
        shapes = {
            shape.name: shape.sizes
            for shape in sweep.config.shapes or []
            if {"D", "F"} <= set(shape.sizes)
        }
        for model, layers in models_of(list(shapes)).items():
            layer = next(
                (name for name in ("up", "expert-up") if name in layers), next(iter(layers))
            )
            name = model or layers[layer]
            if name not in seen:
                seen.add(name)
                yield name, whole(shapes[layers[layer]]["D"]), whole(shapes[layers[layer]]["F"])


def models_of(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Shapes by model and layer, read off their names: `llama-3-8b-up` is the layer `up` of `llama-3-8b`.

    Args:
        names: Of shapes.

    Returns:
        For every model its layers and the shapes they are. A layer is the longest ending that two names share; names without one are all
        of one model, which has no name.
    """
    endings = Counter(ending for name in names for _, ending in _cuts(name))
    models: dict[str, dict[str, str]] = {}
    for name in names:
        model, layer = next(
            ((model, ending) for model, ending in _cuts(name) if endings[ending] > 1), ("", name)
        )
        models.setdefault(model, {})[layer] = name
    for model in sorted(models, key=len, reverse=True):
        parent = next((m for m in models if m and m != model and model.startswith(f"{m}-")), None)
        if parent and len(models[model]) <= len(models[parent]):
            models[parent] |= {
                f"{model[len(parent) + 1 :]}-{layer}": name
                for layer, name in models.pop(model).items()
            }
    return models


def _cuts(name: str) -> list[tuple[str, str]]:
    """Where a name may be cut into model and layer: before a word that begins with a letter, so that `27b` stays with its model."""
    words = name.split("-")
    return [
        ("-".join(words[:cut]), "-".join(words[cut:]))
        for cut in range(1, len(words))
        if words[cut][:1].isalpha()
    ]
