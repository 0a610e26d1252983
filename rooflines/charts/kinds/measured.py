"""Timings beside the model: dots under the roof, or measured / predicted time over the bound.

Profiled kernels are dots under the roofs of their chip.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

from rooflines.answers.claims import Sentence, first_true
from rooflines.basics.errors import RooflinesError, printable
from rooflines.basics.lazy import pl
from rooflines.basics.text import counted, si, significant
from rooflines.charts import frames, roofline_layers
from rooflines.charts.frames import CASE, NO_SOFTWARE
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, part_name, with_value
from rooflines.charts.kit.label_placement import Label, Plane, at_ends
from rooflines.charts.kit.themes import Margins
from rooflines.charts.options import Menu
from rooflines.charts.views import Kind, Need, View
from rooflines.fits.nsight import short_name
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.theory.operation import MATRIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.chart_data import MeasuredRows, Results
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.hardware.entries import Chip
    from rooflines.theory.resources import ChipRates

ROOF, RATIO = "roof", "ratio"

RATIO_MARGINS = Margins(left=4.2, right=7.8)

MAX_DOTS = 600
"""Maximum number of timings drawn as dots [1]."""

BINS_PER_DECADE, MIN_TIMINGS = 6, 10
"""Bins per factor of ten, and minimum timings for stated quantiles [1]."""

REFERENCES = {"ratio_lower": "bound", "ratio_estimate": "estimate"}
"""Denominator of each ratio; the numerator is the measured time."""

STYLES = {
    "ratio_lower": ("to-bound", "roof", "strong"),
    "ratio_estimate": ("to-estimate", "estimate", "estimate-text"),
}
"""Styles for dots, line and text by ratio."""

SECONDS_LABEL = "replace(format(datum.value, '~s'), regexp('([mµn]?)$'), ' $1s')"
RATIO_LABEL = "format(datum.value, '~g')"


def menus(source: MeasuredRows, choice: Mapping[str, Option]) -> list[Menu]:
    """Menus: kind of plot, chip, dtypes and software, the most timed first."""
    chosen = {key: choice[key] for key in CASE if key in choice}
    timing_menus = [Menu("by", (RATIO, ROOF))]
    for key in ("chip", "dtypes", "software"):
        counts: Counter[str] = Counter()
        for case in source.cases:
            values = {**case._asdict(), "software": case.software or NO_SOFTWARE}
            if all(values[name] == chosen[name] for name in chosen if name != key):
                counts[str(values[key])] += case.timings
        options = tuple(name for name, _ in counts.most_common())
        timing_menus.append(Menu(key, options))
        if options:
            chosen.setdefault(key, options[0])
    return timing_menus


def view(results: Results, sweep: str, _: Sequence[str], choice: Mapping[str, Any]) -> View:
    """Draw the timings of one chip, software and dtype combination."""
    by, chip, dtypes, software = (choice[menu] for menu in ("by", "chip", "dtypes", "software"))
    joined = results.joined(sweep)
    timings = joined.timings_of(chip, software, dtypes)
    machine = joined.entries[chip].chip_rates(MATRIX, MAIN_MEMORY)
    claim = first_true(_sentences(timings, by))
    about = f"{dtypes} on {chip_label(chip)}, {software}."
    under_roof = by == ROOF
    layers, data, plane, words = (
        _roof_plot(timings, machine) if under_roof else _ratio_plot(timings)
    )
    return View(
        claim,
        f"{about} {words}",
        layers,
        data,
        roofline_layers.MARGINS if under_roof else RATIO_MARGINS,
        timings.drop("flops", "fits_cache"),
        kit.plane_params(plane),
        (chip, software, dtypes),
    )


def sample(part: pl.DataFrame, x: str, y: str, max_count: int = MAX_DOTS) -> pl.DataFrame:
    """Thin timings evenly to at most `max_count`, in the order of two columns."""
    return part.sort(x, y).gather_every(max(1, math.ceil(part.height / max_count)))


def _dots_text(drawn: int, total: int) -> str:
    """Number of dots drawn, for the subtitle."""
    chosen = ", evenly chosen" if drawn < total else ""
    return f"Dots: {drawn:,} of {counted(total, 'timing')}{chosen}"


def _roof_plot(
    timings: pl.DataFrame, machine: ChipRates
) -> tuple[list[Layer], dict[str, pl.DataFrame], Plane, str]:
    """Layers, data, plane and words of attained FLOP/s over intensity, under the bound."""
    peak = float(machine.peaks[timings["compute"][0]])
    rate = float(machine.level.bytes_per_s)
    dots = timings.select(
        *"BDF",
        "seconds",
        intensity="memory_intensity",
        flops_per_s=pl.col("flops") / pl.col("seconds"),
        hollow=pl.col("fits_cache").fill_null(value=False),
    )
    drawn = sample(dots, "intensity", "flops_per_s")
    roof = roofline_layers.Roof(
        roofline_layers.plain_lines(rate, {"bound": peak}),
        drawn.select("intensity", "flops_per_s").rows(),
    )
    hollow = "; hollow: the operands fit the last-level cache" if drawn["hollow"].any() else ""
    words = f"{_dots_text(drawn.height, dots.height)}{hollow}."
    layers = roofline_layers.roof_layers("Attained FLOP/s", _timing_layers)
    return layers, {**roof.data(), "dots": drawn}, roof.plane, words


def _timing_layers(at: Layer) -> list[Layer]:
    """Layers of timings under the roof; hollow dots if the operands fit the cache."""
    tips = kit.tips(B="B", D="D", F="F", seconds="measured, s", flops_per_s="FLOP/s")
    encoding = {**_at_dots(at), "tooltip": tips}
    return [
        kit.layer(
            "dots",
            "point",
            "timing",
            encoding,
            where=f"{negation}datum.hollow",
            filled=bool(negation),
        )
        for negation in ("!", "")
    ]


def _at_dots(at: Layer) -> Layer:
    """Position channels of dots in a roof's plot."""
    return {"x": {**at["x"], "field": "intensity"}, "y": {**at["y"], "field": "flops_per_s"}}


def _ratio_plot(timings: pl.DataFrame) -> tuple[list[Layer], dict[str, pl.DataFrame], Plane, str]:
    """Layers, data, plane and words of measured / predicted time over the bound."""
    drawn = sample(timings, "t_lower_s", "ratio_lower").select(
        *"BDF", "seconds", "t_lower_s", *REFERENCES
    )
    bins = (pl.col("t_lower_s").log(10) * BINS_PER_DECADE).floor().alias("#bin")
    medians = timings.group_by(bins).agg(pl.col("t_lower_s", *REFERENCES).median()).sort("#bin")
    values = [value for name in REFERENCES for value in drawn[name].drop_nulls()]
    across = frames.lowest(drawn, "t_lower_s") / 1.5, frames.highest(drawn, "t_lower_s") * 1.5
    plane = Plane(across, (min([*values, 1.0]) / 1.25, max([*values, 1.0]) * 1.25))
    last = medians.tail(1).row(0, named=True)
    names = [name for name in REFERENCES if last[name] is not None]
    ends_of = pl.DataFrame(
        {
            "ratio": [last[name] for name in names],
            "text": [f"/ {REFERENCES[name]}" for name in names],
            "style": [STYLES[name][2] for name in names],
        }
    )
    data = {
        "dots": drawn,
        "medians": medians.drop("#bin"),
        "one": pl.DataFrame({"one": [1.0]}),
        "names": ends_of.hstack(at_ends(RATIO_MARGINS, plane, ends_of["ratio"].to_list())),
    }
    x = kit.quantitative_channel(
        "t_lower_s", **kit.log_axis("x", "Lower bound on time", SECONDS_LABEL)
    )
    y = kit.log_axis("y", "Measured / predicted time", RATIO_LABEL)
    tips = kit.tips(B="B", D="D", F="F", seconds="measured, s", t_lower_s="bound, s")
    tips += kit.tips(**{name: f"measured / {reference}" for name, reference in REFERENCES.items()})
    layers = [kit.layer("one", "rule", "rule", {"y": kit.quantitative_channel("one", **y)})]
    for name, (dot, _, _) in STYLES.items():
        at = {"x": x, "y": kit.quantitative_channel(name, **y), "tooltip": tips}
        layers.append(kit.layer("dots", "point", dot, at, where=f"datum.{name} != null"))
    for name, (_, line, _) in STYLES.items():
        at = {"x": x, "y": kit.quantitative_channel(name, **y)}
        layers.append(kit.layer("medians", "line", line, at, where=f"datum.{name} != null"))
    for _, _, style in STYLES.values():
        at = {"x": {"value": kit.expr("width")}, "y": kit.quantitative_channel("ratio", **y)}
        where = f"datum.style == '{style}'"
        layers += kit.labels("names", style, at, halo=False, clip=False, where=where)
    words = f"{_dots_text(drawn.height, timings.height)}. Lines: medians of all, by bound."
    return layers, data, plane, words


def _sentences(timings: pl.DataFrame, by: str) -> Iterator[Sentence]:
    """Candidate titles, the strongest first."""
    chip, dtypes = timings.row(0, named=True)["chip"], timings["dtypes"][0]
    ratio, rows = timings["ratio_lower"], [{"chip": chip}]
    where = f"{dtypes} on {chip_label(chip)}"
    if by == ROOF:
        share = significant(100 * float((1 / ratio).median()))  # type: ignore[arg-type]
        text = f"Median timing: {share} % of the bound, {where}"
        yield Sentence(text=text, rows=rows, chosen=chip)
    elif len(ratio) >= MIN_TIMINGS:
        low, high = (float(ratio.quantile(q, "linear") or 0) for q in (0.1, 0.9))
        span = f"{significant(low)} to {significant(high)}"
        text = f"Timed {where}: {span} × the bound, p10 to p90"
        yield Sentence(text=text, rows=rows, chosen=chip)
    yield Sentence(text=f"{counted(timings.height, 'timing')} of {where}")


# ------------------------------------------------------------ profiled kernels

MAX_KERNELS, MAX_NAMES = 500, 12
"""Maximum kernels drawn, and named: those with the longest time [1]."""

MAX_AREA, MIN_AREA, NAME_DISTANCE = 2.4, 0.14, 0.35
"""Area for the largest share of time, and minimum area [em^2]; distance from dot to name [em]."""

MAX_NAME_WIDTH, MAX_NAME_CHARACTERS = 15.0, 200
"""Maximum width of a kernel's name [em], and characters kept; template names may have thousands."""


def kernels_view(
    kernels: pl.DataFrame,
    chip: str,
    chips: Mapping[str, Chip] | None = None,
    title: str | None = None,
) -> View:
    """Draw profiled kernels under their roofs; arguments as in `charts.kernels`."""
    shown = kernels.filter(pl.col("memory_intensity") > 0, pl.col("flops_per_s") > 0)
    if shown.is_empty():
        problem = "has no kernel with both operations and memory traffic"
        raise RooflinesError("", problem, "profile kernels that compute, or read the table")
    entry = (chip_entries() if chips is None else chips)[chip]
    share = pl.col("seconds") / kernels["seconds"].sum()
    drawn = shown.with_columns(time_share=share).sort("time_share", descending=True)
    area = (MAX_AREA / drawn["time_share"][0] * pl.col("time_share")).clip(MIN_AREA)
    drawn = drawn.head(MAX_KERNELS).with_columns(area=area)
    names = [printable(name) for name in drawn["kernel"]]
    names = [
        n if len(n) <= MAX_NAME_CHARACTERS else f"{n[: MAX_NAME_CHARACTERS - 1]}…" for n in names
    ]
    texts = [
        with_value(short_name(name), f"{significant(100 * part)} %", MAX_NAME_WIDTH)
        for name, part in zip(names, drawn["time_share"], strict=True)
    ]
    dots = drawn.select(
        "launches",
        "flops_per_s",
        "seconds",
        "time_share",
        "roof_share",
        "bound",
        "area",
        intensity="memory_intensity",
        kernel=pl.Series(names, dtype=pl.String),
        attainable=pl.col("flops_per_s") / pl.col("roof_share"),
    )
    at = dots.select("intensity", "flops_per_s").rows()
    radii = [math.sqrt(area / math.pi) for area in dots["area"]]
    labels = [
        Label(text, [point], distance=radius + NAME_DISTANCE)
        for text, point, radius in zip(texts[:MAX_NAMES], at, radii, strict=False)
    ]
    roof = roofline_layers.Roof(_kernel_lines(kernels, entry), at)
    roof_data = roof.data(labels, list(zip(at, radii, strict=True)), regions=False)
    return View(
        _claim(kernels, chip, title),
        _subtitle(kernels, dots, entry),
        roofline_layers.roof_layers("Attained FLOP/s", _kernel_layers),
        {**roof_data, "dots": dots},
        roofline_layers.MARGINS,
        drawn.drop("area"),
        kit.plane_params(roof.plane),
        (chip,),
    )


def _kernel_lines(kernels: pl.DataFrame, entry: Chip) -> pl.DataFrame:
    """Roof lines: main memory, and the peak of every unit and dtype in the profile."""
    compared = kernels.drop_nulls("compute").select("unit", "compute").unique(maintain_order=True)
    peaks = {
        f"{compute}, {unit}": float(entry.units[unit][compute].exact)
        for unit, compute in compared.iter_rows()
    }
    return roofline_layers.plain_lines(float(entry.memory[MAIN_MEMORY].exact.bytes_per_s), peaks)


def _kernel_layers(at: Layer) -> list[Layer]:
    """Layers: a line from each dot to its roof, and the dots."""
    tips = kit.tips(
        kernel="kernel",
        launches="launches",
        roof_share="share of roof",
        time_share="share of time",
        seconds="measured, s",
        intensity="FLOP/byte",
        flops_per_s="FLOP/s",
        bound="bound",
    )
    encoding = _at_dots(at)
    size: dict[str, Any] = {"opacity": 0.85, "size": kit.expr("em * em * datum.area")}
    return [
        kit.layer("dots", "rule", "rule", {**encoding, "y2": {"field": "attainable"}}),
        kit.layer("dots", "point", "timing", {**encoding, "tooltip": tips}, **size),
    ]


def _claim(kernels: pl.DataFrame, chip: str, title: str | None) -> Sentence:
    """Share of the roofline over all kernels: sum of bounds / sum of measured times."""
    share = float(kernels["t_lower_s"].sum()) / float(kernels["seconds"].sum())
    number = counted(kernels.height, "kernel")
    text = f"{number} at {significant(100 * share)} % of the roofline of {chip_label(chip)}"
    return Sentence(text=title or text, rows=[{"chip": chip}], chosen=chip)


def _subtitle(kernels: pl.DataFrame, dots: pl.DataFrame, entry: Chip) -> str:
    """Subtitle: reading guide, and kernels that are not drawn."""
    rate = si(float(entry.memory[MAIN_MEMORY].exact.bytes_per_s), "B/s")
    words = (
        f"Bound / measured time of all kernels; {part_name(MAIN_MEMORY)} at {rate}. Area and "
        "number of a dot: share of the time. Dashed: to its roof."
    )
    if left_out := kernels.height - dots.height:
        time = 100 * (1 - float(dots["time_share"].sum()))
        words += f" Not drawn: {counted(left_out, 'kernel')}, {significant(time)} % of the time."
    return words


KIND = Kind(
    name="measured",
    source="measurements",
    menus=menus,
    view=view,
    needs=(
        Need("timings of matmuls that the model has rows for", lambda source: bool(source.cases)),
    ),
)
