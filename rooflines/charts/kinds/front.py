"""Throughput over interactivity: Pareto front of each chip's batches and splits.

Rows are steps at a context, or requests: mean times with prompts between tokens, or two pools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.answers.claims import MIN_FACTOR, Ranking, Sentence, first_true
from rooflines.basics.lazy import pl
from rooflines.basics.text import counted, significant
from rooflines.charts import frames
from rooflines.charts.chart_models import STEP_NEEDS, named_model, published_in, step_bases
from rooflines.charts.frames import NOMINAL, dtypes_by_chip
from rooflines.charts.kit import label_placement
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, with_value
from rooflines.charts.kit.label_placement import DOT, Label, Plane
from rooflines.charts.kit.themes import Margins
from rooflines.charts.options import Menu
from rooflines.charts.views import Kind, Need, View
from rooflines.dictionary.columns import ESTIMATE_SUFFIX, SERIAL_SUFFIX
from rooflines.models.architecture import DECODE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.chart_data import Results
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.sweep.step_sweep import ModelSweep

MARGINS, NAME_ROOM = Margins(left=4.6, right=13.6), 12.8

POOLS_RATE = "tokens_per_s_per_chip_pools"
"""Column: tokens/s over the chips of both pools, serialized."""

MEASURED_TIME = "measured_s"
"""Column: measured time of a row, where the sweep has `measured`."""

TARGET = 50
"""Interactivity at which titles compare chips [tokens/s/user]."""

TIME, RATE = "t_serial_s", "tokens_per_s_per_chip_serial"
"""Columns: serialized step time, and tokens/s/chip at that time."""

MIXED_TIME = "tpot_mixed_serial_s"
"""Column: serialized token time of servers that read prompts between steps."""

SERVED_RATE = "output_tokens_per_s_per_chip"
"""Column: output tokens/s/chip of given numbers of servers, by the bound."""

AXIS_ROOM, MAX_SLOWDOWN = 1.3, 3.0
"""Factors by which axes extend beyond the values, and below the slowest step that fits [1]."""

TEXT_AT = [0.04 + 0.02 * step for step in range(47)]
"""Heights tried for the target's text, as shares of the plot height, best first [1]."""

FRONT = 2
"""State of a point on the front; 1: fits, 0: does not fit."""


def menus(sweep: ModelSweep, choice: Mapping[str, Option]) -> list[Menu]:
    """Menus: model, dtypes, context, and the basis of the numbers."""
    offered = set().union(*dtypes_by_chip(sweep).values())
    first = [
        Menu("model", tuple(sweep.models)),
        Menu("dtypes", tuple(name for name in sweep.combinations if name in offered)),
        Menu("request", tuple(_requests(sweep)))
        if sweep.config.requests
        else Menu("S", tuple(sweep.contexts)),
    ]
    chosen = {menu.name: choice.get(menu.name, menu.options[0]) for menu in first if menu.options}
    bases = step_bases(sweep, {**chosen, "phase": DECODE})
    if sweep.config.pools is not None and sweep.config.pools.servers is None:
        bases = (NOMINAL,)
    return [*first, *([Menu("basis", bases)] if len(bases) > 1 else [])]


def _requests(sweep: ModelSweep) -> dict[str, dict[str, int]]:
    """Requests in a sweep: key values by text."""
    return {
        f"{request.input:,} in, {request.output:,} out": {
            "input": request.input,
            "output": request.output,
        }
        for request in sweep.config.requests or ()
    }


def view(results: Results, sweep: str, chips: Sequence[str], choice: Mapping[str, Any]) -> View:
    """Draw the Pareto front of each chip over its batches and splits."""
    model, dtypes = choice["model"], choice["dtypes"]
    basis = choice.get("basis", NOMINAL)
    model_sweep = results.model_sweep(sweep)
    case = {"S": choice["S"]} if "S" in choice else _requests(model_sweep)[choice["request"]]
    usable = [chip for chip, names in dtypes_by_chip(model_sweep).items() if dtypes in names]
    shown = [chip for chip in chips if chip in usable] or usable[: KIND.max_chips]
    filters = {"model": model, "dtypes": dtypes, "phase": DECODE, **case}
    chosen = results.rows(sweep).filter(pl.col("chip").is_in(shown), **filters)
    rows = _rows(chosen, basis, model_sweep, [*case])
    steps, measured = _with_front(rows), _measured(rows)
    at_target = _at_target(steps)
    plane = _plane(steps, measured)
    claim = first_true(_sentences(model_sweep, model, dtypes, at_target, steps, basis))
    vendors = {chip: model_sweep.chips[chip].vendor for chip in shown}
    return View(
        claim,
        _subtitle(
            model_sweep,
            steps,
            (model, dtypes, _case_text(choice)),
            basis,
            has_measured=measured.height > 0,
        ),
        _layers(vendors, "Tokens/s/chip" if "S" in case else "Output tokens/s/chip"),
        {
            "points": steps.filter(pl.col("state") < FRONT).select(
                "chip", "split", "chips", "B", "user", "rate", "state", "max_B"
            ),
            "fronts": _fronts(steps, plane),
            "measured": measured,
            "names": _names(steps, at_target, plane),
            "target": _target(steps, measured, plane),
        },
        MARGINS,
        rows.drop("user", "rate", "measured_user", "measured_rate"),
        kit.plane_params(plane),
        (model, *shown),
    )


def _rows(rows: pl.LazyFrame, basis: str, sweep: ModelSweep, case: Sequence[str]) -> pl.DataFrame:
    """Decode steps with `user`, tokens/s/user = 1 / time, and `rate`, tokens/s/chip [1/s].

    `measured_user` and `measured_rate` are both at the measured time; null without one.
    """
    estimate = frames.BAND[0]
    rows = frames.with_missing(rows.drop_nulls("max_B"), estimate, MEASURED_TIME)
    rows = rows.unique(["chip", "split", "B"], keep="first", maintain_order=True)
    keys = ("model", "phase", "chip", "dtypes", "split", "chips", "B", *case)
    rate = _rate_column(sweep, basis)
    time = estimate
    if basis == NOMINAL:
        time = MIXED_TIME if _is_mixed(sweep) else TIME
    per_chip = pl.col(rate)
    if not rate.startswith(SERVED_RATE):  # else it is on the basis
        per_chip = per_chip * pl.col(TIME) / pl.col(time)
    columns = dict.fromkeys((TIME, rate, estimate, time, MEASURED_TIME))
    measured = pl.col(MEASURED_TIME)
    if sweep.config.pools is not None:  # a measured time says nothing of prefill servers
        measured = pl.lit(None, dtype=pl.Float64)
    return (
        rows.select(*keys, "fits", "max_B", *columns)
        .with_columns(
            user=1 / pl.col(time),
            rate=per_chip,
            measured_user=1 / measured,
            measured_rate=pl.col(rate) * pl.col(TIME) / measured,
        )
        .drop_nulls("user")
        .collect()
    )


def _is_mixed(sweep: ModelSweep) -> bool:
    """Check for requests that all have a serialized time with prompts between steps."""
    requests = sweep.config.requests or ()
    return bool(requests) and all(request.mixed for request in requests)


def _rate_column(sweep: ModelSweep, basis: str) -> str:
    """Column with tokens/s/chip, of both pools where prompts have servers of their own."""
    pools = sweep.config.pools
    if pools is None:
        return RATE
    if pools.servers is None:
        return POOLS_RATE
    return f"{SERVED_RATE}{SERIAL_SUFFIX if basis == NOMINAL else ESTIMATE_SUFFIX}"


def _measured(rows: pl.DataFrame) -> pl.DataFrame:
    """Measured points: `user` and `rate` at the measured time, and the time that is predicted."""
    at = {"user": pl.col("measured_user"), "rate": pl.col("measured_rate")}
    ratio = pl.col("user") / pl.col("measured_user")
    keys = ("chip", "split", "chips", "B")
    return rows.select(*keys, **at, ratio=ratio).drop_nulls("user")


def _with_front(rows: pl.DataFrame) -> pl.DataFrame:
    """Add `state`: 0 does not fit, 1 fits, 2 is on its chip's front."""
    order = rows.sort("user", "rate", descending=[True, True])
    best = pl.when("fits").then("rate").cum_max().forward_fill().shift().over("chip")
    front = pl.col("fits") & (best.is_null() | (pl.col("rate") > best))
    return order.with_columns(state=pl.col("fits").cast(pl.Int64) + front.cast(pl.Int64))


def _at_target(steps: pl.DataFrame) -> dict[str, float]:
    """Largest throughput by chip at `TARGET` tokens/s/user or more, largest first [1/s]."""
    reaching = steps.filter(pl.col("fits"), pl.col("user") >= TARGET)
    rates = (
        reaching.group_by("chip")
        .agg(pl.col("rate").max())
        .sort("rate", "chip", descending=[True, False])
    )
    return dict(rates.iter_rows())


def _plane(steps: pl.DataFrame, measured: pl.DataFrame) -> Plane:
    """Plot coordinates, extended somewhat beyond the steps that fit and measured points."""
    fitting = steps.filter("fits")
    low, high = frames.lowest(steps, "user"), frames.highest(steps, "user")
    if fitting.height:
        low = max(low, frames.lowest(fitting, "user") / MAX_SLOWDOWN)
    bottom, top = frames.lowest(steps, "rate"), frames.highest(steps, "rate")
    for user, rate in measured.select("user", "rate").iter_rows():
        low, high = min(low, user), max(high, user)
        bottom, top = min(bottom, rate), max(top, rate)
    return Plane((low / AXIS_ROOM, high * AXIS_ROOM), (bottom / AXIS_ROOM, top * AXIS_ROOM))


def _fronts(steps: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """Front points, with the overlap count of their line."""
    fronts = steps.filter(state=FRONT).sort("chip", "user")
    paths = fronts.group_by("chip", maintain_order=True).agg("user", "rate")
    points = [list(zip(*row, strict=True)) for row in paths.select("user", "rate").iter_rows()]
    counts = paths.select(
        "chip",
        overlap_count=pl.Series(label_placement.overlap_counts(points, plane), dtype=pl.Int64),
    )
    columns = ("chip", "split", "chips", "B", "user", "rate")
    return fronts.select(columns).join(counts, on="chip", maintain_order="left")


def _target(steps: pl.DataFrame, measured: pl.DataFrame, plane: Plane) -> pl.DataFrame:
    """Place the target's text beside its line, clear of fronts and points; none if off the plot."""
    low, high = plane.y
    heights = [low * (high / low) ** share for share in TEXT_AT]
    text = f"{TARGET} tokens/s/user"
    points = [(float(TARGET), height) for height in heights]
    label = Label(text, points, style="note", sides=("r", "l"), distance=0.5)
    fronts = steps.filter(state=FRONT).sort("chip", "user").group_by("chip", maintain_order=True)
    lines = [
        list(zip(*row, strict=True)) for row in fronts.agg("user", "rate").drop("chip").iter_rows()
    ]
    points_drawn = pl.concat([frame.select("user", "rate") for frame in (steps, measured)])
    dots = [(point, DOT) for point in points_drawn.iter_rows()]
    labels = [label] if plane.x[0] < TARGET < plane.x[1] else []
    placed = label_placement.place_labels(MARGINS, plane, labels, lines, dots)
    return placed.rename({"x": "user", "y": "rate"})


def _names(steps: pl.DataFrame, at_target: Mapping[str, float], plane: Plane) -> pl.DataFrame:
    """Place chip names right of the plot, with throughput at the target."""
    chips = steps["chip"].unique(maintain_order=True).to_list()
    least = steps.filter("fits").group_by("chip").agg(pl.col("rate").min())
    lowest = dict(least.iter_rows())
    heights = [(chip, at_target.get(chip, lowest.get(chip, plane.y[0]))) for chip in chips]

    def value_text(chip: str) -> str:
        if chip in at_target:
            return f"{significant(at_target[chip])}/s"
        return "too slow" if chip in lowest else "does not fit"

    rows = [
        (chip, rate, with_value(chip_label(chip), value_text(chip), NAME_ROOM))
        for chip, rate in heights
    ]
    schema = {"chip": pl.String, "rate": pl.Float64, "text": pl.String}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    return table.hstack(label_placement.at_ends(MARGINS, plane, table["rate"].to_list()))


def _layers(vendors: Mapping[str, str | None], rate_title: str) -> list[Layer]:
    """Layers: points, fronts, target, and names at the right edge."""
    x = kit.quantitative_channel(
        "user", **kit.log_axis("x", "Tokens/s/user", "format(datum.value, ',~g')")
    )
    y = kit.quantitative_channel("rate", **kit.log_axis("y", rate_title, kit.SHORT_LABEL))
    named = {
        "x": {"value": kit.expr("width")},
        "y": y,
        "fill": kit.chip_colour(vendors, letters=True),
    }
    return [
        kit.layer("target", "rule", "rule", {"x": x}),
        *_points({"x": x, "y": y}, {"color": kit.chip_colour(vendors)}),
        *kit.labels("target", "note", {"x": x, "y": y}),
        *kit.labels("names", "value", named, halo=False, clip=False),
    ]


def _points(at: Layer, colour: Layer) -> list[Layer]:
    """Layers of points that do not fit, points that fit, fronts, and measured points."""
    tips = kit.tips(
        **{name: name for name in ("chip", "split", "chips", "B")},
        user="tokens/s/user",
        rate="tokens/s/chip",
    )
    point = {**at, "tooltip": [*tips, *kit.tips(max_B="largest B that fits")]}
    front = {**at, **colour, "tooltip": tips}
    small = kit.expr("em * em * 0.16")
    outside: Any = {"filled": False, "size": small, "opacity": 0.7, "clip": True}
    inside: Any = {"size": small, "strokeWidth": 0}
    crossed = kit.tips(ratio="measured / predicted time")
    cross = {**at, **colour, "tooltip": [*tips, *crossed]}
    medium = kit.expr("pow(em * 0.8, 2)")
    large = kit.expr("pow(em * (0.62 + 0.3 * datum.overlap_count), 2)")
    line = {**front, "order": kit.quantitative_channel("user")}
    return [
        kit.layer("points", "point", "context", point, where="datum.state == 0", **outside),
        kit.layer(
            "points", "point", "dot", {**point, **colour}, where="datum.state == 1", **inside
        ),
        kit.layer("fronts", "line", "curve", line, **kit.OVERLAP_WIDTH),
        kit.layer("fronts", "point", "dot", front, size=large),
        kit.layer("measured", "point", "dot", cross, shape="cross", angle=45, size=medium),
    ]


def _case_text(choice: Mapping[str, Any]) -> str:
    """Context or request in words."""
    return f"decode at S = {choice['S']:,}" if "S" in choice else str(choice["request"])


def _times_text(sweep: ModelSweep, basis: str) -> str:
    """Basis in words, with the place where prompts are read."""
    times = "kernels one after another" if basis == NOMINAL else "estimates"
    if not sweep.config.requests:
        return times
    if sweep.config.pools is not None:
        return f"{times}, chips of prefill servers counted"
    alone = basis == NOMINAL and not _is_mixed(sweep)
    return f"{times}, {'decode alone' if alone else 'prompts between tokens'}"


def _subtitle(
    sweep: ModelSweep,
    steps: pl.DataFrame,
    case: tuple[str, str, str],
    basis: str,
    *,
    has_measured: bool,
) -> str:
    """Subtitle: model, dtypes, context or request, basis and routing."""
    model, dtypes, case_text = case
    times = _times_text(sweep, basis)
    moe = sweep.models[model].shape.moe is not None
    experts = f" Experts: {sweep.config.routing} routing." if moe else ""
    published = published_in(sweep, model, dtypes)
    weights = f" (published in {published})" if published else ""
    hollow = "; hollow: does not fit in memory" if not steps["fits"].all() else ""
    hollow += "; crosses: measured" if has_measured else ""
    return (
        f"{chip_label(model)} in {dtypes}{weights}, {case_text}; {times}.{experts}"
        f" Dots: batches and splits{hollow}. Numbers: at {TARGET} tokens/s/user."
    )


def _sentences(  # noqa: PLR0913, PLR0917, what is said depends on all
    sweep: ModelSweep,
    model: str,
    dtypes: str,
    at_target: Mapping[str, float],
    steps: pl.DataFrame,
    basis: str,
) -> Iterator[Sentence]:
    """Candidate titles, the strongest first."""
    chips = steps["chip"].unique(maintain_order=True).to_list()
    every = [chip for chip, names in dtypes_by_chip(sweep).items() if dtypes in names]
    if basis != NOMINAL:
        every = [chip for chip in every if chip in chips]  # those that have a calibration
    published, named = published_in(sweep, model, dtypes), named_model(sweep, model, dtypes)
    about: dict[str, Any] = {"rows": [{"chip": chip} for chip in chips], "every": every}
    at = f"at {TARGET} tokens/s/user"
    if not steps["fits"].any():
        yield Sentence(text=f"{named} fits none of these chips", published=published, **about)
    elif not at_target:
        text = f"{named}: no chip reaches {TARGET} tokens/s/user"
        yield Sentence(text=text, published=published, **about)
    elif len(at_target) > 1 and basis == NOMINAL:
        best, first = next(iter(at_target.items()))
        second = list(at_target.values())[1]
        factor = significant(first / second)
        text = f"By bounds {chip_label(best)} gives {factor}× the next chip {at}"
        yield Sentence(text=text, ranks=Ranking(first, second), **about)
        near = [chip for chip, rate in at_target.items() if rate * MIN_FACTOR > first]
        words = " and ".join(chip_label(chip) for chip in near[:2])
        text = f"{len(near)} chips" if len(near) > 2 else words  # noqa: PLR2004
        factor = f"{MIN_FACTOR:g}×"
        yield Sentence(text=f"{text} lead {at} (bounds within {factor})", **about)
    if at_target:
        low, high = significant(min(at_target.values())), significant(max(at_target.values()))
        few = len(at_target) < len(chips)
        every_chip = "both chips" if len(chips) == 2 else f"all {len(chips)} chips"  # noqa: PLR2004
        whole = f"{len(at_target)} of {len(chips)} chips" if few else every_chip
        by = "By bounds" if basis == NOMINAL else "By estimates"
        text = f"{by} {whole} reach {TARGET} tokens/s/user, with {low} to {high} tokens/s/chip"
        if len(chips) == 1:
            chip = chip_label(chips[0])
            text = f"{chip}: {low} tokens/s/chip {at}, {by.lower()}"
        yield Sentence(text=text, **about)
    yield Sentence(text=f"{named} on {counted(len(chips), 'chip')}", published=published)


KIND = Kind(
    name="front",
    source="model_sweeps",
    menus=menus,
    view=view,
    needs=(
        Need("decode among its `phase`", lambda s: DECODE in s.config.phase),
        *STEP_NEEDS[1:],
        Need("several batches", lambda s: len(s.batches) > 1, auto=True),
    ),
    reads=(TIME, RATE, "fits", "max_B"),
    preferred=lambda sweep: (int(bool(sweep.config.requests)),),
    multi_chip=True,
    max_chips=8,
)
