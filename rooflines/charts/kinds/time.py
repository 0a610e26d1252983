"""Where the time goes: of each resource in a model's layers, or of the layers by size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.basics.text import seconds
from rooflines.charts import frames, grid
from rooflines.charts.frames import TIMES
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.text import chip_label, on_chips, over_text, shorten, width_em
from rooflines.charts.kit.themes import SIZES, Margins, plot_size
from rooflines.charts.models import layers_run, models_of
from rooflines.charts.offers import sizes_of
from rooflines.charts.splits import split_of
from rooflines.charts.views import Kind, Menu, Need, View
from rooflines.explanation.sentences import Sentence, first_true

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.results import Results, Selection
    from rooflines.charts.views import Option
    from rooflines.sweep.sweep import Sweep

__all__ = ["KIND"]

MARGINS, NAME_ROOM = Margins(left=8.6, right=7.0), 7.8
RESOURCES = list(TIMES)

THICK = 0.78 / len(RESOURCES)
"""Thickness of a bar of a resource, as a share of the row's height."""

CROWDED, MOST_ROWS = 5, 9
"""Rows from which on only the bottleneck has its time beside it, and rows of sizes [1]."""

RESOURCE, KERNEL = "resource", "kernel"

TWO, CLOSE = 2, 0.01
"""Both of two, and shares that are one number [1]."""


def _shaped(sweep: Sweep) -> bool:
    """Whether shapes set every dimension but the first, which has an axis of its own."""
    inner = all("shape" in axis.columns or axis.count == 1 for axis in sweep.inner)
    return bool(sweep.config.shapes) and sweep.lead is not None and inner


def menus(sweep: Sweep, given: Mapping[str, Option]) -> list[Menu]:
    """What times are of, the model, the chip, dtypes, the number of chips, and the size."""
    by, lead = str(given.get("by", RESOURCE)), sweep.op.dims[0]
    chips = tuple(frames.chips_of(sweep))
    chip = str(given.get("chip", chips[0] if chips else ""))
    known = {v.shards for rows in sweep.by_chip if rows.chip == chip for v in rows.variants}
    counts = [number for number in sweep.counts if number in known]
    sizes = sizes_of(sweep, lead)
    some = [sizes[round((len(sizes) - 1) * share)] for share in (0.5, 0.25, 0.75)]
    return [
        Menu("by", (RESOURCE, KERNEL)),
        Menu("model", tuple(models_of(sweep.config.shapes or ()))),
        Menu("chip", chips),
        Menu("dtypes", frames.dtypes_of(sweep, [chip])),
        *([Menu("shards", tuple(counts))] if len(sweep.counts) > 1 else []),
        *([Menu(lead, tuple(dict.fromkeys([*some, *sizes])))] if by == RESOURCE else []),
    ]


def view(  # noqa: PLR0913, the menus
    results: Results,
    sweep: str,
    *,
    chips: Sequence[str],
    by: str,
    model: str,
    chip: str,
    dtypes: str,
    shards: int = 1,
    **size: Option,
) -> View:
    """The times of a model's layers.

    Args:
        results: Where numbers come from.
        sweep: The sweep.
        chips: The chip again.
        by: `resource` or `kernel`.
        model: The model whose layers are shown.
        chip: The chip.
        dtypes: The dtype combination.
        shards: Chips that share the work [1].
        size: The size of the first dimension, of times by resource.
    """
    of = results.of(sweep, chips or [chip], [dtypes])
    layers = layers_run(of.sweep, model)
    rows = _rows(of, layers, shards)
    if not rows.height:
        rows = _rows(of, layers, min(of.sweep.counts))
    lead = of.dims[0]
    if by == RESOURCE:
        rows = rows.filter(pl.col(lead) == size[lead])
        drawn, params = _bars(rows, list(layers))
        marks = _resource_layers(crowded=len(layers) > CROWDED)
    else:
        sizes = frames.apart(sorted(rows[lead].unique().to_list()), MOST_ROWS)
        rows = rows.filter(pl.col(lead).is_in(sizes))
        drawn, params = _segments(rows, sizes, lead)
        marks = _kernel_layers(list(layers), lead)
    says = first_true(_sentences(of, rows, by, model))
    return View(
        says,
        _subtitle(of, rows, by, model),
        marks,
        drawn,
        MARGINS,
        rows.drop("layer", "place"),
        params,
        (chip, model, *layers),
    )


def _rows(of: Selection, layers: Mapping[str, str], shards: int) -> pl.DataFrame:
    """Rows of the table of the layers on a number of chips."""
    split = split_of(of, layers)
    by_layer = split if isinstance(split, dict) else dict.fromkeys(layers, split)
    named = pl.DataFrame(
        [(shape, layer, by_layer[layer]) for layer, shape in layers.items()],
        schema={"shape": pl.String, "layer": pl.String, "split": pl.String},
        orient="row",
    ).with_row_index("place")
    rows = frames.with_missing(of.rows(), "network_bytes").filter(pl.col("shards") == shards)
    rows = rows.join(named.lazy(), on="shape")
    if shards > 1:
        rows = rows.filter(pl.col("sharding") == pl.coalesce("split", "sharding"))
    keys = ("chip", "dtypes", "sharding", "network", "shards", "shape", *of.dims)
    found = rows.select(
        *keys, "layer", "place", "network_bytes", "bound", "t_lower_s", *TIMES.values()
    )
    return found.unique(["shape", of.dims[0]], keep="first").sort(of.dims[0], "place").collect()


def _bars(rows: pl.DataFrame, layers: Sequence[str]) -> tuple[dict[str, pl.DataFrame], Any]:
    """A bar for each layer and resource, and the parameters of the plot."""
    step = {name: (i - (len(RESOURCES) - 1) / 2) * THICK for i, name in enumerate(RESOURCES)}
    place = {layer: float(i) for i, layer in enumerate(layers)}
    tall = rows.select("layer", "bound", **TIMES).unpivot(
        RESOURCES, index=["layer", "bound"], variable_name="resource", value_name="seconds"
    )
    bars = tall.filter(pl.col("seconds") > 0).with_columns(
        binds=pl.col("bound").cast(pl.String) == pl.col("resource"),
        middle=pl.col("layer").replace_strict(place, return_dtype=pl.Float64)
        + pl.col("resource").replace_strict(step, return_dtype=pl.Float64),
    )
    bars = bars.with_columns(
        text=pl.Series([seconds(value) for value in bars["seconds"]], dtype=pl.String),
        low=pl.col("middle") - THICK * 0.42,
        high=pl.col("middle") + THICK * 0.42,
    )
    top = frames.highest(bars, "seconds") * 1.02
    return {"bars": bars}, _params(top, kit.even_ticks(top), layers)


def _params(top: float, across: Sequence[float], names: Sequence[str]) -> dict[str, Any]:
    return {
        "plane": {
            "x": [0.0, top],
            "y": [len(names) - 0.5, -0.5],
            "across": list(across),
            "up": list(range(len(names))),
        },
        "rows": [shorten(each, NAME_ROOM, tail=True) for each in names],
    }


def _axes(title: str, label: str) -> tuple[Layer, Layer]:
    bare = {"grid": False, "ticks": False, "domain": False}
    x = kit.axis("x", title, label)
    return x, kit.axis("y", None, "rows[datum.value] || ''", **bare)


def _resource_layers(*, crowded: bool) -> list[Layer]:
    """Bars with their times, the bottleneck in full colour."""
    x, y = _axes("Time of each resource, if it were alone", kit.TIME_LABEL)
    legend = {
        "title": None,
        "orient": "none",
        "direction": "horizontal",
        "legendX": 0,
        "legendY": kit.expr("em * -1.9"),
        "columns": len(RESOURCES),
        "columnPadding": 20,
    }
    tips = [kit.tip("layer"), kit.tip("resource"), kit.tip("text", "time"), kit.tip("binds")]
    bar = {
        "x": kit.number("seconds", **x),
        "x2": {"datum": 0},
        "y": kit.number("low", **y),
        "y2": {"field": "high"},
        "color": kit.name(
            "resource", scale={"domain": RESOURCES, "range": "ordinal"}, legend=legend
        ),
        "opacity": {"condition": {"test": "datum.binds", "value": 1}, "value": 0.38},
        "tooltip": tips,
    }
    text = {
        "x": kit.number("seconds", **x),
        "y": kit.number("middle", **y),
        "text": kit.name("text"),
    }
    mark = {"align": "left", "clip": False, "dx": kit.expr("em * 0.4")}
    return [
        kit.layer("bars", "rect", "bar", bar),
        kit.layer("bars", "text", "strong", text, where="datum.binds", **mark),
        *(
            []
            if crowded
            else [kit.layer("bars", "text", "small", text, where="!datum.binds", **mark)]
        ),
    ]


def _segments(
    rows: pl.DataFrame, sizes: Sequence[int], lead: str
) -> tuple[dict[str, pl.DataFrame], Any]:
    """The share of each layer in the time of all, stacked, by size."""
    place = {size: float(i) for i, size in enumerate(sizes)}
    total = pl.col("t_lower_s").sum().over(lead)
    parts = rows.sort(lead, "place").with_columns(
        row=pl.col(lead).replace_strict(place, return_dtype=pl.Float64),
        share=pl.col("t_lower_s") / total,
        total=total,
    )
    parts = parts.with_columns(
        right=pl.col("share").cum_sum().over(lead),
        low=pl.col("row") - 0.36,
        high=pl.col("row") + 0.36,
        bound=pl.col("bound").cast(pl.String),
    ).with_columns(left=pl.col("right") - pl.col("share"))
    wide = {
        tail: plot_size(SIZES[size], MARGINS)[0] - 0.8
        for tail, size in (("", "slide"), ("_narrow", "paper"))
    }
    widths = pl.Series([width_em(f"{name} 88 %", bold=True) for name in parts["layer"]])
    parts = parts.with_columns(
        text=pl.format("{} {} %", "layer", (pl.col("share") * 100).round(0).cast(pl.Int64)),
        middle=(pl.col("left") + pl.col("right")) / 2,
        **{f"on{tail}": pl.col("share") * room > widths for tail, room in wide.items()},
    )
    totals = parts.unique("row", maintain_order=True).select(
        "row",
        text=pl.Series([seconds(v) for v in parts.unique("row", maintain_order=True)["total"]]),
    )
    shown = ("layer", "row", "low", "high", "left", "right", "middle", "share", "text", "bound")
    names = [f"{lead} = {grid.size_name(size)}" for size in sizes]
    data = {
        "parts": parts.select(*shown, "on", "on_narrow", "t_lower_s"),
        "totals": totals.with_columns(end=pl.lit(1.0)),
    }
    return data, _params(1.0, [0, 0.25, 0.5, 0.75, 1], names)


def _kernel_layers(layers: Sequence[str], lead: str) -> list[Layer]:
    """Stacked shares with the names of layers, and the time of all."""
    x, y = _axes("Share of the time of all layers, each once", "format(datum.value, '.0%')")
    tips = [
        kit.tip("layer"),
        kit.tip("share", "share", ".1%"),
        kit.tip("t_lower_s", "time, s", ".4~s"),
        kit.tip("bound"),
    ]
    scale = {"domain": list(layers), "range": "ramp"}
    part = {
        "x": kit.number("left", **x),
        "x2": {"field": "right"},
        "y": kit.number("low", **y),
        "y2": {"field": "high"},
        "color": kit.name("layer", scale=scale, legend=None),
        "tooltip": tips,
    }
    text = {"x": kit.number("middle", **x), "y": kit.number("row", **y), "text": kit.name("text")}
    end = {"x": kit.number("end", **x), "y": kit.number("row", **y), "text": kit.name("text")}
    shown = "narrow ? datum.on_narrow : datum.on"
    return [
        kit.layer("parts", "rect", "cell", part),
        kit.layer("parts", "text", "on-resource", text, where=shown),
        kit.layer(
            "totals", "text", "strong", end, align="left", clip=False, dx=kit.expr("em * 0.4")
        ),
        kit.heading(f"Time of the layers by {lead}"),
    ]


def _subtitle(of: Selection, rows: pl.DataFrame, by: str, model: str) -> str:
    """The setting, and what is drawn."""
    row = rows.row(0, named=True)
    moving = rows.filter(pl.col("network_bytes") > 0)
    split = ", tensor parallel" if rows["sharding"].n_unique() > 1 else f", split {row['sharding']}"
    split = split + over_text(moving["network"]) if row["shards"] > 1 else ""
    each = f"The matmuls of {chip_label(model)}, each once" if model else "Matmuls, each once"
    expert = "; of experts: tokens of one" if _of_experts(rows) else ""
    on = on_chips(str(row["chip"]), [row["shards"]])
    drawn = "Full colour binds; these times add" if by == RESOURCE else "Least times; at the right"
    least = float(rows["t_lower_s"].sum())
    total = f"{drawn} up to {seconds(least)}." if by == RESOURCE else f"{drawn} their sum."
    return f"{each}{expert}, in {of.dtypes[0]} on {on}{split}. {total}"


def _of_experts(rows: pl.DataFrame) -> bool:
    """Whether any layer is one that each expert has of its own."""
    return bool(rows["layer"].str.contains("expert").any())


VERBS = {
    "compute": ("is compute-bound", "are compute-bound"),
    "network": ("waits for the network", "wait for the network"),
}
"""What a title says of one matmul with a bottleneck, and of several."""


def _sentences(of: Selection, rows: pl.DataFrame, by: str, model: str) -> Iterator[Sentence]:
    """What may be said, the strongest first."""
    chip, lead = of.chips[0], of.dims[0]
    per = " tokens per expert" if _of_experts(rows) else ""
    on = on_chips(chip, rows["shards"].unique().to_list())
    if by == RESOURCE:
        counts = rows.group_by(pl.col("bound").cast(pl.String)).len()
        bound, times = counts.sort("len", "bound", descending=[True, False]).row(0)
        verb = VERBS.get(bound, (f"waits for {bound}", f"wait for {bound}"))[times > 1]
        every = "both" if times == TWO else f"all {times}"
        what = f"{times} of {rows.height} matmuls" if times < rows.height else f"{every} matmuls"
        what = "the matmul" if rows.height == 1 else what
        binding = rows.filter(pl.col("bound").cast(pl.String) == bound)
        yield Sentence(
            text=f"At {lead} = {rows[lead][0]:,}{per}, {what} {verb} on {on}",
            rows=binding.select("chip", "layer", "bound").to_dicts(),
            chosen=chip,
            blames=str(bound),
        )
    else:
        share = pl.col("t_lower_s") / pl.col("t_lower_s").sum().over(lead)
        spans = (
            rows.with_columns(share=share)
            .group_by("layer")
            .agg(low=pl.col("share").min(), high=pl.col("share").max())
        )
        layer, low, high = spans.sort("low", "layer", descending=[True, False]).row(0)
        whose = f"{spans.height} matmuls of {chip_label(model)}" if model else "all matmuls"
        span = f"{100 * low:.0f} to {100 * high:.0f}" if high - low >= CLOSE else f"{100 * low:.0f}"
        yield Sentence(
            text=f"{layer} takes {span} % of the time of {whose} on {on}",
            rows=rows.filter(layer=layer).select("chip", "layer").to_dicts(),
            chosen=chip,
        )
    yield Sentence(text=f"Time of {chip_label(model) or 'the layers'} on {on}{per}")


def _preferred(sweep: Sweep) -> tuple[int, ...]:
    return -len(sweep.counts), -len(frames.chips_of(sweep))


KIND = Kind(
    name="time",
    heading="Where the time goes",
    caption=(
        "By resource: the time that each takes by itself; the longest, in full colour, is the "
        "least time of the kernel. By kernel: the share of each layer in the least time of all."
    ),
    order=60,
    menus=menus,
    view=view,
    needs=(Need("shapes that give every size but that of the first dimension", _shaped),),
    reads=(*TIMES.values(), "t_lower_s", "bound"),
    preferred=_preferred,
)
