"""Step time of a model: by kernel over the batch, or by kernel and resource."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rooflines.answers.claims import Sentence, first_true
from rooflines.basics.errors import RooflinesError
from rooflines.basics.lazy import pl
from rooflines.basics.text import seconds
from rooflines.charts import frames, grid
from rooflines.charts.chart_models import STEP_NEEDS, named_model, published_in, step_bases
from rooflines.charts.frames import BAND, NOMINAL, TIMES, dtypes_by_chip
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, on_chips, width_em
from rooflines.charts.kit.label_placement import LAYOUTS
from rooflines.charts.kit.themes import Margins, plot_size
from rooflines.charts.options import Menu
from rooflines.charts.views import Kind, View
from rooflines.models.architecture import TRAIN
from rooflines.theory.resources import MEMORY, NETWORK, RESOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.chart_data import Results
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.sweep.step_sweep import ModelSweep

MARGINS, NAME_ROOM = Margins(left=8.6, right=7.0), 7.8

KERNEL, RESOURCE = "kernel", "resource"

PROJECTIONS, COLLECTIVES, ENGINE = "qkv, o", "collectives", "engine"
OPTIMIZER = "optimizer"
COLLECTIVES_OPTIMIZER = f"{COLLECTIVES}, {OPTIMIZER}"
"""Training work outside the passes of layers; both share one colour."""

STAGE_SUFFIX = r"-(fwd|again|bwd|dgrad|wgrad|wgrad-add|[0-9]+)$"
"""Suffix of a training kernel's name: its pass, or its kind of stage."""

FAMILIES = {
    **dict.fromkeys(
        (
            "attention",
            "attention-window",
            "attention-chunk",
            "attention-compressed",
            "attention-strided",
            "indexer",
            "state",
        ),
        "attention",
    ),
    **dict.fromkeys(("gate-up", "up", "down", "shared"), "up, down"),
    **dict.fromkeys(("experts", "router"), "experts"),
    **dict.fromkeys(("embed", "unembed"), "LM head"),
    "optimizer": OPTIMIZER,
    **dict.fromkeys(("engine-layers", "engine-sequences"), ENGINE),
}
"""Family of each kernel, drawn as one; the LM head includes the embedding; all other kernels are
attention's projections."""

FAMILY_ORDER = ("attention", PROJECTIONS, "up, down", "experts", "LM head", COLLECTIVES)
"""Drawn families in order; `collectives` is the time exposed beyond the kernel's. Kernels with a
calibration include their collectives; then engine overhead has that place."""

PLACES = {
    **{name: place for place, name in enumerate(FAMILY_ORDER)},
    **dict.fromkeys((ENGINE, COLLECTIVES_OPTIMIZER, OPTIMIZER), len(FAMILY_ORDER) - 1),
}

MAX_ROWS, MAX_TIMED_ROWS = 11, 4
"""Maximum rows of batches, and maximum rows of kernels with a time for every resource [1]."""

BAR_THICKNESS = 0.78 / len(RESOURCES)
"""Thickness of a resource's bar / row height [1]."""


def menus(sweep: ModelSweep, choice: Mapping[str, Option]) -> list[Menu]:
    """Menus: kernels or resources, model, chip, dtypes, split, phase, and sizes."""
    by, offered = str(choice.get("by", KERNEL)), dtypes_by_chip(sweep)
    dtypes = offered.get(str(choice.get("chip", next(iter(offered), ""))), set())
    batches = sweep.batches
    middle = [batches[len(batches) // 2], *batches]
    first = [
        Menu("by", (KERNEL, RESOURCE)),
        Menu("model", tuple(sweep.models)),
        Menu("chip", tuple(offered)),
        Menu("dtypes", tuple(name for name in sweep.combinations if name in dtypes)),
        Menu("split", tuple(split.name for split in sweep.config.splits)),
        Menu("phase", tuple(sweep.config.phase)),
        Menu("S", tuple(sweep.contexts)),
    ]
    if by == RESOURCE:
        return [*first, Menu("B", tuple(dict.fromkeys(middle)))]
    if TRAIN in sweep.config.phase:
        return first
    chosen = {menu.name: choice.get(menu.name, menu.options[0]) for menu in first if menu.options}
    bases = step_bases(sweep, chosen)
    return [*first, *([Menu("basis", bases)] if len(bases) > 1 else [])]


def view(results: Results, sweep: str, _: Sequence[str], choice: Mapping[str, Any]) -> View:
    """Draw a model's step time: by kernel over B, or by resource at one B."""
    by, model, chip, dtypes = (choice[menu] for menu in ("by", "model", "chip", "dtypes"))
    basis = choice.get("basis", NOMINAL)
    filters = {menu: choice[menu] for menu in ("chip", "dtypes", "split", "phase", "S")}
    model_sweep, rows = results.model_sweep(sweep), _rows(results, sweep, model, filters)
    published = published_in(model_sweep, model, dtypes)
    named = named_model(model_sweep, model, dtypes) if published else chip_label(model)
    on = f"{named} on {on_chips(chip, [rows['chips'][0]])}"
    if by == KERNEL:
        parts = _kernels(rows, BAND[0] if basis != NOMINAL else "t_serial_s")
        sizes = frames.few_sizes(sorted(parts["B"].unique().to_list()), MAX_ROWS)
        rows = rows.filter(pl.col("B").is_in(sizes))
        drawn, params, marks = _stacks(parts.filter(pl.col("B").is_in(sizes)), sizes)
        about = f"{on}, {'bounds' if basis == NOMINAL else 'estimates'}"
        sentences = _kernel_sentences(parts, about, [{"chip": chip}])
    else:
        rows = rows.filter(B=choice["B"])
        if rows.is_empty():
            raise _too_large(model, filters)
        drawn, params, marks = _bars(_resources(rows))
        sentences = _resource_sentences(rows, on)
    return View(
        first_true(replace(sentence, chosen=chip, published=published) for sentence in sentences),
        _subtitle(rows, filters, by, basis),
        marks,
        drawn,
        MARGINS,
        rows.drop("family", "place"),
        params,
        (chip, named),
    )


def _rows(results: Results, sweep: str, model: str, filters: Mapping[str, Option]) -> pl.DataFrame:
    """Kernels of batches that fit, with their `family` and its `place`."""
    steps = results.rows(sweep).filter(model=model, **filters).select("B", "fits").collect()
    fitting = steps.filter(pl.col("fits").fill_null(value=True))["B"].to_list()
    kernels = results.kernels(sweep, model, str(filters["chip"])).filter(**filters)
    kernels = kernels.filter(pl.col("B").is_in(fitting))
    if "runs" in kernels.columns:
        kernels = kernels.with_columns(
            pl.col("group").str.replace(STAGE_SUFFIX, ""),
            count=pl.col("count").cast(pl.Float64) * pl.col("runs") / pl.col("pp"),
            **{BAND[0]: pl.lit(None, pl.Float64)},
        )
    if kernels.is_empty():
        raise _too_large(model, filters)
    keys = ("model", "chip", "dtypes", "split", "phase", "chips", "B", "S", "group", "count")
    family = pl.col("group").replace_strict(FAMILIES, default=PROJECTIONS)
    return kernels.select(
        *keys, "bound", "t_serial_s", BAND[0], "t_activation_s", *TIMES.values(), family=family
    ).with_columns(place=family.replace_strict(PLACES))


def _too_large(model: str, filters: Mapping[str, Option]) -> RooflinesError:
    where = f"{filters['split']} on {filters['chip']}, S = {filters['S']}"
    problem = f"has no step of {model} in {filters['dtypes']} with {where} that fits the memory"
    return RooflinesError("B", problem, "choose more chips, smaller sizes or smaller dtypes")


def _times() -> dict[str, pl.Expr]:
    """Time of each resource in one layer's kernel, by bottleneck [s]."""
    times = {bound: pl.col(time) for bound, time in TIMES.items()}
    return times | {MEMORY.bound: times[MEMORY.bound] + pl.col("t_activation_s")}


def _kernels(rows: pl.DataFrame, time: str) -> pl.DataFrame:
    """Seconds by family and B; nominal times have exposed collectives as a family."""
    rows = rows.drop_nulls(time)
    if rows.is_empty():
        raise RooflinesError("basis", "has no calibration of all kernels", "choose nominal")
    alone = [resource_time for bound, resource_time in _times().items() if bound != NETWORK.bound]
    kernel_time = (
        pl.col(time) if time != "t_serial_s" else pl.min_horizontal(time, pl.max_horizontal(alone))
    )
    parts = [
        rows.select("B", "family", "place", seconds=pl.col("count") * kernel_time),
        rows.select(
            "B",
            family=pl.lit(COLLECTIVES),
            place=pl.lit(PLACES[COLLECTIVES], dtype=rows.schema["place"]),
            seconds=pl.col("count") * (pl.col(time) - kernel_time),
        ),
    ]
    kernels = pl.concat(parts)
    if OPTIMIZER in kernels["family"]:
        kernels = kernels.with_columns(
            pl.col("family").replace([COLLECTIVES, OPTIMIZER], COLLECTIVES_OPTIMIZER)
        )
    return (
        kernels.group_by("B", "family", "place")
        .agg(pl.col("seconds").sum())
        .filter(pl.col("seconds") > 0)
        .sort("B", "place")
        .with_columns(share=pl.col("seconds") / pl.col("seconds").sum().over("B"))
    )


def _resources(rows: pl.DataFrame) -> pl.DataFrame:
    """Seconds by family and resource; the longest `binds`."""
    sums = [(pl.col("count") * time).sum().alias(bound) for bound, time in _times().items()]
    tall = rows.group_by("family", "place").agg(sums).sort("place")
    tall = tall.unpivot(list(TIMES), index="family", variable_name="resource", value_name="seconds")
    longest = pl.col("seconds").max().over("family")
    return tall.filter(pl.col("seconds") > 0).with_columns(binds=pl.col("seconds") == longest)


def _bars(parts: pl.DataFrame) -> tuple[dict[str, pl.DataFrame], dict[str, Any], list[Layer]]:
    """Data, parameters and layers: a bar per family and resource, the bottleneck in full colour."""
    families = [name for name in (*FAMILY_ORDER, OPTIMIZER) if name in parts["family"]]
    step = {name: (i - (len(TIMES) - 1) / 2) * BAR_THICKNESS for i, name in enumerate(TIMES)}
    place = {name: float(i) for i, name in enumerate(families)}
    bars = parts.with_columns(
        middle=pl.col("family").replace_strict(place, return_dtype=pl.Float64)
        + pl.col("resource").replace_strict(step, return_dtype=pl.Float64),
        text=pl.Series([seconds(value) for value in parts["seconds"]], dtype=pl.String),
    )
    bars = bars.with_columns(
        low=pl.col("middle") - BAR_THICKNESS * 0.42, high=pl.col("middle") + BAR_THICKNESS * 0.42
    )
    top = frames.highest(bars, "seconds") * 1.02
    x, y = kit.bar_axes("Time of each resource alone", kit.TIME_LABEL)
    scale = {"domain": list(TIMES), "range": "ordinal"}
    bar = {
        "x": kit.quantitative_channel("seconds", **x),
        "x2": {"datum": 0},
        "y": kit.quantitative_channel("low", **y),
        "y2": {"field": "high"},
        "color": kit.nominal_channel("resource", scale=scale, legend=_legend(list(TIMES))),
        "opacity": {"condition": {"test": "datum.binds", "value": 1}, "value": 0.38},
        "tooltip": kit.tips(family="kernels", resource="resource", text="time"),
    }
    at = {
        "x": bar["x"],
        "y": kit.quantitative_channel("middle", **y),
        "text": kit.nominal_channel("text"),
    }
    marks = [
        kit.layer("bars", "rect", "bar", bar),
        kit.layer("bars", "text", "strong", at, where="datum.binds", **kit.RIGHT_OF_BAR),
    ]
    if len(families) <= MAX_TIMED_ROWS:
        marks.append(
            kit.layer("bars", "text", "small", at, where="!datum.binds", **kit.RIGHT_OF_BAR)
        )
    return {"bars": bars}, kit.bar_params(families, NAME_ROOM, top), marks


def _legend(names: Sequence[str]) -> Layer:
    """Colour legend above the plot."""
    return {
        "title": None,
        "orient": "none",
        "direction": "horizontal",
        "legendX": 0,
        "legendY": kit.expr("em * -1.6"),
        "values": list(names),
        "columns": len(names),
        "columnPadding": kit.expr("em * 0.8"),
    }


def _stacks(
    parts: pl.DataFrame, sizes: Sequence[int]
) -> tuple[dict[str, pl.DataFrame], dict[str, Any], list[Layer]]:
    """Data, parameters and layers: stacked shares of step time by family over B, and totals."""
    place = {size: float(i) for i, size in enumerate(sizes)}
    drawn = parts.with_columns(
        row=pl.col("B").replace_strict(place, return_dtype=pl.Float64),
        right=pl.col("share").cum_sum().over("B"),
        text=pl.format("{} {} %", "family", (pl.col("share") * 100).round(0).cast(pl.Int64)),
    )
    widths = pl.Series([width_em(f"{name} 88 %", bold=True) for name in drawn["family"]])
    room = {tail: plot_size(size, MARGINS)[0] - 0.8 for tail, size in LAYOUTS.items()}
    drawn = drawn.with_columns(
        low=pl.col("row") - 0.36,
        high=pl.col("row") + 0.36,
        left=pl.col("right") - pl.col("share"),
        middle=pl.col("right") - pl.col("share") / 2,
        **{f"on{tail}": pl.col("share") * wide > widths for tail, wide in room.items()},
    )
    totals = drawn.group_by("row").agg(pl.col("seconds").sum()).sort("row")
    totals = totals.select(
        "row", end=pl.lit(1.0), text=pl.Series([seconds(total) for total in totals["seconds"]])
    )
    x, y = kit.bar_axes("Share of step time (total at right)", "format(datum.value, '.0%')")
    last = next(
        (name for name in (ENGINE, COLLECTIVES_OPTIMIZER) if name in parts["family"]), COLLECTIVES
    )
    domain = [*FAMILY_ORDER[:-1], last]
    families = [name for name in domain if name in parts["family"]]
    scale = {"domain": domain, "range": "ramp"}
    part = {
        "x": kit.quantitative_channel("left", **x),
        "x2": {"field": "right"},
        "y": kit.quantitative_channel("low", **y),
        "y2": {"field": "high"},
        "color": kit.nominal_channel("family", scale=scale, legend=_legend(families)),
        "tooltip": kit.tips(family="kernels", share="share", seconds="time, s"),
    }
    text = {
        "x": kit.quantitative_channel("middle", **x),
        "y": kit.quantitative_channel("row", **y),
        "text": kit.nominal_channel("text"),
    }
    shown = "narrow ? datum.on_narrow : datum.on"
    marks = [
        kit.layer("parts", "rect", "cell", part),
        kit.layer("parts", "text", "on-resource", text, where=shown),
        kit.layer(
            "totals",
            "text",
            "strong",
            {**text, "x": kit.quantitative_channel("end", **x)},
            **kit.RIGHT_OF_BAR,
        ),
    ]
    names = [f"B = {grid.size_name(size)}" for size in sizes]
    params = kit.bar_params(names, NAME_ROOM, 1.0, [0, 0.25, 0.5, 0.75, 1])
    return {"parts": drawn.drop("place"), "totals": totals}, params, marks


def _subtitle(rows: pl.DataFrame, filters: Mapping[str, Option], by: str, basis: str) -> str:
    """Subtitle: phase, dtypes, split, context and basis."""
    phase = "Training" if filters["phase"] == TRAIN else str(filters["phase"]).capitalize()
    setting = f"{phase} in {filters['dtypes']}, {filters['split']}, S = {filters['S']:,}"
    least = float((rows["count"] * rows["t_serial_s"]).sum())
    if by == RESOURCE:
        return f"{setting}. Full colour: the longest; serialized {seconds(least)}."
    if basis != NOMINAL:
        return f"{setting}. Estimates; kernels include their collectives."
    exposed = "; collectives: exposed time"
    sent = bool(float(rows["t_network_s"].sum()))
    return f"{setting}. Bounds of kernels, one after another{exposed * sent}."


def _kernel_sentences(
    parts: pl.DataFrame, on: str, rows: Sequence[Mapping[str, str]]
) -> Iterator[Sentence]:
    """Candidate titles: the longest family at large batches, and from which batch on."""
    first = parts.sort("B", "seconds", "place", descending=[False, True, False]).unique(
        "B", keep="first", maintain_order=True
    )
    last = first["family"][-1]
    earlier = first.filter(pl.col("family") != last)["B"].to_list()
    starts = min(size for size in first["B"] if size > max(earlier, default=0))
    verb = "takes" if last in {"attention", ENGINE, "LM head"} else "take"
    if earlier:
        yield Sentence(text=f"{on}: {last} {verb} longest from B = {starts:,}", rows=rows)
    shares = [f"{100 * share:.0f}" for share in parts.filter(family=last)["share"]]
    low, high = min(shares, key=float), max(shares, key=float)
    span = f"{low} to {high}" if low != high else low
    yield Sentence(text=f"{on}: {last} {verb} {span} % of step time", rows=rows)


def _resource_sentences(rows: pl.DataFrame, on: str) -> Iterator[Sentence]:
    """Candidate title: the bottleneck with the most kernel time, and its share."""
    time = pl.col("count") * pl.col("t_serial_s")
    by_bound = rows.group_by(pl.col("bound").cast(pl.String)).agg(seconds=time.sum())
    bound, most = by_bound.sort("seconds", "bound", descending=[True, False]).row(0)
    share = f"{100 * most / by_bound['seconds'].sum():.0f} %"
    waits = "is compute-bound" if bound == "compute" else f"waits for {bound}"
    binding = rows.filter(pl.col("bound").cast(pl.String) == bound)
    yield Sentence(
        text=f"{on}: {share} {waits} at B = {rows['B'][0]:,}",
        rows=binding.select("chip", "bound").to_dicts(),
        blames=str(bound),
    )


KIND = Kind(
    name="time",
    source="model_sweeps",
    menus=menus,
    view=view,
    needs=STEP_NEEDS,
    reads=("fits",),
)
