"""Attained FLOP/s over a size, with a curve per shape or other size."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rooflines.answers.claims import Sentence, first_true
from rooflines.basics.lazy import pl
from rooflines.basics.text import count, si
from rooflines.charts import frames
from rooflines.charts.chart_models import layers_by_model
from rooflines.charts.frames import (
    BAND,
    CALIBRATED,
    MIN_CURVE_SIZES,
    MIN_TABLE_SIZES,
    dimension_sizes,
    has_axis,
    sweep_axis,
)
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, named_sizes, shorten, sizes_text
from rooflines.charts.kit.label_placement import Label, Place, Plane, place_labels
from rooflines.charts.kit.themes import Margins
from rooflines.charts.kit.titles import title_fits
from rooflines.charts.options import Menu, basis_menus, chosen_option
from rooflines.charts.views import Kind, Need, View
from rooflines.theory.resources import math_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.chart_data import Results, Selection
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.sweep.operation_sweep import Sweep
    from rooflines.theory.operation import Operation

MARGINS, HEADROOM = Margins(left=4.6, right=2.6), 1.12
"""Margins, and plot height / peak [1]."""

NAME_ROOM, MAX_OVERHANG = 14.0, 2.0
"""Width of a curve's name, and overhang of a number into the right margin [em]."""

ANCHOR_HEIGHT, ANCHOR_RANGE, MAX_ANCHORS = 0.55, (0.2, 0.95), 12
"""Preferred height of names in the plot, their horizontal range, and points tried per curve [1]."""

SIDES = ("br", "r", "tl", "l", "b", "t", "tr", "bl")
AT_PEAK = [Place(0.3, -0.8, "left")]
FEET = [Place(x * 0.35, -y, "left" if x > 0 else "right") for y in (0.9, 2.2, 3.5) for x in (-1, 1)]
"""Sides tried for a curve's name, and places at the peak and at the foot of a stem."""

Point = tuple[float, ...]
"""A size and its attained rates, one per time; null where a time is unknown [FLOP/s]."""

MAX_POINTS, MAX_EXACT_POINTS, STEPS = 33, 9, 6
"""Sizes per curve, sizes if `attained_between` is exact, and segments between two sizes [1]."""

MAX_SERIES, DIGITS = 6, 5
"""Number of curves, and significant digits of points [1]."""

RATES = ("flops_per_s", "fast", "slow")
"""Columns of the attained rate at each time in `BAND` [FLOP/s]."""


def menus(sweep: Sweep, choice: Mapping[str, Option]) -> list[Menu]:
    """Menus: chip, dtypes, the model of the shapes, and the basis of the numbers."""
    chips = tuple(frames.chips_with_rows(sweep))
    dtypes = frames.dtypes_of(sweep, [chosen_option(choice, "chip", chips)])
    models = tuple(layers_by_model(sweep.config.shapes or ()))
    model_menu = [Menu("model", models)] if len(models) > 1 else []
    chip_menus = [Menu("chip", chips), Menu("dtypes", dtypes), *model_menu]
    return [*chip_menus, *basis_menus(sweep, choice, dtypes)]


def view(results: Results, sweep: str, _: Sequence[str], choice: Mapping[str, Any]) -> View:
    """Draw the curves of one chip and dtype combination, for a chosen model's shapes if any."""
    chip, dtypes = choice["chip"], choice["dtypes"]
    calibrated = choice.get("basis") == CALIBRATED
    selection = results.select(sweep, [chip], [dtypes])
    axis = sweep_axis(selection.sweep, curve=True)
    (case,) = selection.cases()
    peak = float(math_rate(case.machine, case.combination.compute))
    rows, knees = _rows(selection, axis, choice.get("model"))
    exact = calibrated or bool(selection.sweep.tile) or selection.sweep.flops != "leading"
    if calibrated:
        knees = knees.clear()
    rates = frames.calibrated_rates(RATES) if calibrated else {RATES[0]: pl.col(RATES[0])}
    points = rows.select("series", pl.col(axis).cast(pl.Float64), **rates).drop_nulls(RATES[0])
    curves = _curves(points, knees, peak, MAX_POINTS if exact else MAX_EXACT_POINTS)
    low, high = frames.lowest(rows, axis), frames.highest(rows, axis)
    span = (low, high if high > low else low * 2)
    plane = Plane(span, (0.0, float(f"{peak * HEADROOM:.5g}")), linear=True)
    claim = first_true(_sentences(selection, rows, knees, axis, peak, calibrated=calibrated))
    subtitle = _subtitle(selection, rows, peak, axis, calibrated=calibrated)
    drawn = {
        "labels": _labels(curves, knees, peak, plane, axis),
        **_data(curves, knees, peak),
    }
    return View(
        claim,
        subtitle,
        _layers(list(curves), axis, calibrated=calibrated),
        drawn,
        MARGINS,
        rows.drop("series", "flops_per_s"),
        kit.plane_params(plane, kit.powers_of_two(*span), kit.even_ticks(plane.y[1])),
        (chip, dtypes, *curves),
    )


def _rows(selection: Selection, axis: str, model: str | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Table rows and thresholds for the drawn shapes."""
    other_dims = [dim for dim in selection.dims if dim != axis]
    thresholds = selection.thresholds().filter(selection.split_filter(), axis=axis)
    table = frames.with_missing(selection.rows(), *BAND).filter(selection.split_filter())
    source = thresholds if axis in selection.sweep.solved else table
    if model is not None:
        shapes = list(layers_by_model(selection.sweep.config.shapes or ())[model].values())
        source = source.filter(pl.col("shape").is_in(shapes))
    series = series_of(source, other_dims, MAX_SERIES)
    keys = ["shape", *other_dims]
    rows = table.join(series.lazy(), on=keys, nulls_equal=True).select(
        "chip",
        "dtypes",
        "sharding",
        "shards",
        "series",
        "shape",
        *selection.dims,
        "attained_flops_per_s",
        "t_lower_s",
        *BAND,
        flops_per_s=pl.col("attained_flops_per_s"),
    )
    knees = thresholds.join(series.lazy(), on=keys, nulls_equal=True).select(
        "chip",
        "dtypes",
        "series",
        "shape",
        *other_dims,
        "share",
        "critical",
        "limit",
        exact="critical_exact",
    )
    largest = [True] * len(other_dims)
    sorted_rows = rows.collect().sort(
        *other_dims, "shape", axis, descending=[*largest, False, False]
    )
    order = [*largest, False, True]
    return sorted_rows, knees.collect().sort(*other_dims, "shape", "share", descending=order)


def _curves(
    points: pl.DataFrame, knees: pl.DataFrame, peak: float, max_points: int
) -> dict[str, list[Point]]:
    """Points by curve, including the point where a curve meets the peak.

    Args:
        points: Series, size, and attained rate at each time, by rising size.
        knees: The critical sizes.
        peak: The rate there [FLOP/s].
        max_points: Sizes of the table that a curve is drawn through [1].
    """
    by_series: dict[str, list[Point]] = {}
    for series, *point in points.iter_rows():
        by_series.setdefault(series, []).append(tuple(point))
    curves = {series: thin(curve, max_points) for series, curve in by_series.items()}
    bends = knees.filter(share=1.0).drop_nulls("exact").select("series", "exact")
    for series, bend in bends.iter_rows():
        curve = curves.get(series)
        if curve and curve[0][0] <= bend <= curve[-1][0]:
            curves[series] = sorted(
                [(bend, peak), *(sample for sample in curve if sample[0] != bend)]
            )
    return curves


def _data(
    curves: Mapping[str, Sequence[Point]], knees: pl.DataFrame, peak: float
) -> dict[str, pl.DataFrame]:
    """Rows of all marks except labels."""
    drawn = [(series, *point) for series, points in curves.items() for point in smooth(points)]
    width = max(map(len, drawn), default=len(("series", "size")) + 1)
    columns = {"series": pl.String} | dict.fromkeys(("size", *RATES), pl.Float64)
    schema = dict(list(columns.items())[:width])
    stems = knees.filter(pl.col("critical").is_not_null()).select(
        "series",
        "limit",
        "exact",
        "share",
        size=pl.col("critical").cast(pl.Float64),
        flops_per_s=pl.col("share") * peak,
    )
    sizes = [point[0] for points in curves.values() for point in points]
    inside = pl.col("size").is_between(min(sizes, default=1), max(sizes, default=1))
    near = pl.col("share") == pl.col("share").filter(pl.col("share") < 1).max()
    return {
        "curves": pl.DataFrame(drawn, schema=schema, orient="row").with_columns(
            pl.selectors.float().round_sig_figs(DIGITS)
        ),
        "stems": stems.filter(inside, share=1.0),
        "near": stems.filter(near).filter(inside).select("series", "size", "flops_per_s"),
        "peak": pl.DataFrame({"flops_per_s": [peak]}),
    }


def _labels(
    curves: Mapping[str, Sequence[Point]],
    knees: pl.DataFrame,
    peak: float,
    plane: Plane,
    axis: str,
) -> pl.DataFrame:
    """Place labels: the peak, critical sizes at the feet of their stems, and curve names."""
    (low, high), top = plane.x, plane.y[1]
    critical = {
        str(name): at for name, at in knees.filter(share=1.0).select("series", "critical").rows()
    }
    feet = {name: at for name, at in critical.items() if at is not None and low <= at <= high}
    paths = {name: [(p[0], p[1]) for p in smooth(samples, 4)] for name, samples in curves.items()}

    def far(point: tuple[float, float]) -> tuple[bool, float]:
        across, down = plane.at((1.0, 1.0), *point)
        return not ANCHOR_RANGE[0] <= across <= ANCHOR_RANGE[1], abs(down - ANCHOR_HEIGHT)

    labels = [Label(f"peak · {si(peak, 'FLOP/s')}", [(low, peak)], "note", places=AT_PEAK)]
    for index, at in enumerate(feet.values()):
        text = count(at) if index else f"{axis} = {count(at)}"
        labels.append(Label(text, [(at, 0.0)], "value", places=FEET, overhang=MAX_OVERHANG))
    for name, path in paths.items():
        at = critical.get(name, 0)
        later = " · never" if at is None else f" · from {count(at)}" if at > high else ""
        text = shorten(name, NAME_ROOM, bold=True) + later
        points = sorted(path, key=far)[:MAX_ANCHORS]
        labels.append(Label(text, points, "value", sides=SIDES, distance=0.5))
    stems = [[(at, 0.0), (at, top)] for at in feet.values()]
    placed = place_labels(MARGINS, plane, labels, [*paths.values(), *stems])
    return placed.with_columns(series=pl.Series(["", *feet, *paths], dtype=pl.String))


def _layers(series: Sequence[str], axis: str, *, calibrated: bool) -> list[Layer]:
    """Layers: peak, stems down from critical sizes, bands, curves, dots, and texts."""
    title = "Batch size B (tokens)" if axis == "B" else f"Size of {axis}"
    across = kit.log_axis("x", title, kit.COUNT_LABEL, grid=False)
    across["scale"]["base"] = 2
    x = kit.quantitative_channel("size", **across)
    y = kit.quantitative_channel("flops_per_s", **kit.axis("y", "Attained FLOP/s"))
    ramp = {"legend": None, "scale": {"domain": list(series), "range": "ramp"}}
    color = kit.nominal_channel("series", **ramp)
    tips = kit.tips(series="series", size=axis, flops_per_s="attained FLOP/s")
    if calibrated:
        tips += kit.tips(fast="at p10 of the time", slow="at p90 of the time")
    at: Layer = {"x": x, "y": y, "color": color}
    knee = kit.tips(series="series", size=f"critical {axis}", exact="exactly", limit="limit")
    band = {**at, "y": {**y, "field": "slow"}, "y2": {"field": "fast"}}
    hollow = {"x": x, "y": y, "stroke": color, "tooltip": knee}
    text = {"x": {**x, "field": "x"}, "y": {**y, "field": "y"}}
    return [
        kit.layer("peak", "rule", "rule", {"y": y}),
        kit.layer("stems", "rule", "stem", {**at, "y2": {"datum": 0}}),
        *(
            [kit.layer("curves", "area", "region", band, where="datum.slow != null")]
            if calibrated
            else []
        ),
        kit.layer("curves", "line", "curve", {**at, "tooltip": tips}),
        kit.layer("near", "point", "hollow", hollow),
        kit.layer("stems", "point", "dot", {**at, "tooltip": knee}),
        *kit.labels("labels", "value", {**text, "color": color}, where="datum.style == 'value'"),
        *kit.labels("labels", "note", text, where="datum.style == 'note'"),
    ]


def _subtitle(
    selection: Selection, rows: pl.DataFrame, peak: float, axis: str, *, calibrated: bool
) -> str:
    setting = frames.fixed_text(rows, [dim for dim in selection.dims if dim != axis])
    about = (
        f"{selection.dtypes[0]} on {chip_label(selection.chips[0])}{', ' * bool(setting)}{setting}"
    )
    if calibrated:
        return f"{about}. Calibrated; bands: p10 to p90. Roof {si(peak, 'FLOP/s')}."
    shares = frames.shares_below_peak(selection.sweep)
    hollow = f", hollow for {100 * shares[0]:g} % of the peak" if shares else ""
    tiles = (
        " Tiles are computed whole; padding is not counted as work." if selection.sweep.tile else ""
    )
    return (
        f"{about}, every byte counted. Dots: the first compute-bound {axis}{hollow};"
        f" roof {si(peak, 'FLOP/s')}.{tiles}"
    )


def _writes(op: Operation) -> bool:
    """Check for a batched product whose output a fused kernel would keep on chip."""
    x, w, out = set(op.x), set(op.w), set(op.out)
    return bool(x & w & out and (x - w) & out and (w - x) & out)


def _sentences(  # noqa: PLR0913, what is said depends on all
    selection: Selection,
    rows: pl.DataFrame,
    knees: pl.DataFrame,
    axis: str,
    peak: float,
    *,
    calibrated: bool,
) -> Iterator[Sentence]:
    """Candidate titles, the strongest first."""
    chip, dtypes = selection.chips[0], selection.dtypes[0]
    unfused = "Unfused, " if _writes(selection.sweep.op) else ""
    about: dict[str, Any] = {"chosen": chip, "writes": bool(unfused)}
    if calibrated:
        attained, *_ = frames.calibrated_rates(RATES).values()
        most = rows.select(attained.max() / peak).item()
        if most is not None:
            share = f"{100 * most:.0f} %"
            text = f"Calibrated, {dtypes} attains at most {share} of the peak of {chip_label(chip)}"
            yield Sentence(text=f"{unfused}{text}", rows=[{"chip": chip}], **about)
    thresholds = knees.filter(share=1.0).to_dicts()
    solved = [row for row in thresholds if row["critical"] is not None]
    never = [row for row in thresholds if row["critical"] is None]
    per = frames.per_expert(knees["shape"])
    start = {"starts": int(frames.lowest(rows, axis)), **about}
    if thresholds and not solved:
        text = f"{unfused}{dtypes} is never compute-bound over {axis} at the sizes shown"
        yield Sentence(text=text, rows=thresholds, **start)
    if solved:
        first = min(solved, key=lambda row: row["critical"])
        last = max(solved, key=lambda row: row["critical"])
        least = f"{sizes_text(axis, [first['critical']])}{per}"
        needs = f"{unfused}{dtypes} on {chip_label(chip)} is compute-bound from {least}"
        more = f"; never at {never[-1]['series']}" if never else ""
        if not never and first["critical"] != last["critical"]:
            more = f", {last['critical']:,} at {last['series']}"
        texts = (
            f"{needs} at {first['series']}{more}",
            f"{needs} at {first['series']}",
            needs,
        )
        claim_rows = [first, never[-1] if never else last]
        for text in texts:
            if title_fits(text, MARGINS) or text is texts[-1]:
                yield Sentence(text=text, rows=claim_rows, **start)
    yield Sentence(text=f"{unfused}{dtypes} over {axis} on {chip_label(chip)}", **about)


def _has_solved_axis(sweep: Sweep) -> bool:
    axis = sweep_axis(sweep, curve=True)
    return has_axis(sweep, axis) and axis in sweep.solved and 1 in sweep.config.shares


def _preferred(sweep: Sweep) -> tuple[int, ...]:
    tiled = bool(sweep.tile)
    long = len(dimension_sizes(sweep, sweep_axis(sweep, curve=True))) >= MIN_CURVE_SIZES
    return sweep.unit != "matrix", tiled, not long, -len(frames.chips_with_rows(sweep))


# ------------------------------------------------------------ points of curves


def series_of(rows: pl.LazyFrame, dims: Sequence[str], max_curves: int) -> pl.DataFrame:
    """Choose the curves: named shapes, or sizes of the dimensions.

    Args:
        rows: With `shape` and the sizes.
        dims: Dimensions other than the axis.
        max_curves: Maximum number of curves [1].

    Returns:
        `shape`, the sizes, and `series`: the shape, or the sizes that vary.
    """
    order = [True] * len(dims)
    unique = rows.select("shape", *dims).unique()
    series = unique.sort(*dims, "shape", descending=[*order, False]).collect()
    if series.height > max_curves and len(dims) > 1:
        square = series.filter(pl.all_horizontal(pl.col(dim) == pl.col(dims[0]) for dim in dims))
        series = square if square.height > 1 else series
    few = min(max_curves, series.height)
    series = series[sorted({round(i * (series.height - 1) / max(few - 1, 1)) for i in range(few)})]
    several = [dim for dim in dims if series[dim].n_unique() > 1] or list(dims)
    names = [
        row["shape"] or named_sizes({dim: row[dim] for dim in several}) for row in series.to_dicts()
    ]
    return series.with_columns(series=pl.Series(names, dtype=pl.String))


def thin(points: Sequence[Point], max_points: int) -> list[Point]:
    """Thin points to `max_points`, about evenly on a log axis."""
    sizes = [size for size, *_ in points]
    if len(sizes) <= max_points:
        return [*points]
    low, high = sizes[0], sizes[-1]
    wanted = (low * (high / low) ** (i / (max_points - 1)) for i in range(max_points - 1))
    indices = {bisect_left(sizes, size) for size in wanted} | {len(sizes) - 1}
    return [points[place] for place in sorted(indices)]


def smooth(points: Sequence[Point], steps: int = STEPS) -> list[Point]:
    """Interpolate a curve by `attained_between` wherever two points differ."""
    curve: list[Point] = []
    for start, end in pairwise(points):
        curve.append(start)
        for step in range(1, steps) if start[1:] != end[1:] else ():
            at = start[0] * (end[0] / start[0]) ** (step / steps)
            rates = [
                attained_between((start[0], a), (end[0], b), at) if a and b else a
                for a, b in zip(start[1:], end[1:], strict=True)
            ]
            curve.append((at, *rates))
    return [*curve, *points[-1:]]


def attained_between(low: Point, high: Point, size: float) -> float:
    """Attained rate at a size between two points with the same bottleneck [FLOP/s].

    Work is proportional to size, so size / rate is proportional to time, which is affine in size.

    Args:
        low: The lower point: size and attained rate [FLOP/s].
        high: The higher point.
        size: The size.
    """
    start, end = low[0] / low[1], high[0] / high[1]
    return size / (start + (end - start) * (size - low[0]) / (high[0] - low[0]))


KIND = Kind(
    name="attained",
    menus=menus,
    view=view,
    needs=(
        Need("an operation of several dimensions", lambda s: len(s.op.dims) > 1),
        Need(
            "a dimension with an axis of its own and `thresholds`, with 1 among its `shares`",
            _has_solved_axis,
        ),
        Need(
            f"{MIN_TABLE_SIZES} sizes of that dimension",
            lambda s: len(dimension_sizes(s, sweep_axis(s, curve=True))) >= MIN_TABLE_SIZES,
            auto=True,
        ),
        Need("no shapes", lambda s: not s.config.shapes, auto=True),
        Need("rows of one chip alone", lambda s: min(s.counts) == 1),
    ),
    reads=("attained_flops_per_s", "t_lower_s"),
    preferred=_preferred,
)
