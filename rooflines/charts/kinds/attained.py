"""Attained FLOP/s over a size, a curve for each of several shapes or other sizes."""

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
    LONG_AXIS,
    SHORT_AXIS,
    dimension_sizes,
    has_axis,
    lead_of,
)
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, named_sizes, shorten, sizes_text
from rooflines.charts.kit.label_placement import Label, Place, Plane, labelled
from rooflines.charts.kit.themes import Margins
from rooflines.charts.kit.titles import title_fits
from rooflines.charts.options import Menu, basis_menus, chosen
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
"""Room around the plot, and its height over the peak [1]."""

NAME_ROOM, PAST_EDGE = 14.0, 2.0
"""Width of a curve's name, and how far a number may reach into the right margin [em]."""

MIDDLE, ANCHORED, MOST_ANCHORS = 0.55, (0.2, 0.95), 12
"""The best place of a name down the plot, the part of its width that has names, and the points of
a curve that are tried [1]."""

SIDES = ("br", "r", "tl", "l", "b", "t", "tr", "bl")
AT_PEAK = [Place(0.3, -0.8, "left")]
FEET = [Place(x * 0.35, -y, "left" if x > 0 else "right") for y in (0.9, 2.2, 3.5) for x in (-1, 1)]
"""Sides of a point that the name of its curve is tried on, and places at the peak and at the foot
of a stem."""

Point = tuple[float, ...]
"""A size, and what it attains in each of some times; null where a time is unknown [FLOP/s]."""

MOST_POINTS, FEW_POINTS, STEPS = 33, 9, 6
"""Sizes that a curve is drawn through, where `attained_between` is exact fewer, and straight parts
between two of them [1]."""

MOST_SERIES, DIGITS = 6, 5
"""Curves, and significant digits of their points [1]."""

RATES = ("flops_per_s", "fast", "slow")
"""What is attained in each time of `BAND` [FLOP/s]."""


def menus(sweep: Sweep, given: Mapping[str, Option]) -> list[Menu]:
    """The chip, the dtypes, the model of shapes, and what numbers are by."""
    chips = tuple(frames.chips_with_rows(sweep))
    dtypes = frames.dtypes_of(sweep, [chosen(given, "chip", chips)])
    models = tuple(layers_by_model(sweep.config.shapes or ()))
    of_models = [Menu("model", models)] if len(models) > 1 else []
    found = [Menu("chip", chips), Menu("dtypes", dtypes), *of_models]
    return [*found, *basis_menus(sweep, given, dtypes)]


def view(results: Results, sweep: str, _: Sequence[str], choice: Mapping[str, Any]) -> View:
    """The curves of one chip and dtype combination, of the shapes of a model if one is chosen."""
    chip, dtypes = choice["chip"], choice["dtypes"]
    calibrated = choice.get("basis") == CALIBRATED
    of = results.of(sweep, [chip], [dtypes])
    lead = lead_of(of.sweep, curve=True)
    (case,) = of.cases()
    peak = float(math_rate(case.machine, case.combination.compute).per_s)
    rows, knees = _rows(of, lead, choice.get("model"))
    exact = calibrated or bool(of.sweep.tile) or of.sweep.flops != "leading"
    if calibrated:
        knees = knees.clear()
    rates = frames.calibrated_rates(RATES) if calibrated else {RATES[0]: pl.col(RATES[0])}
    points = rows.select("series", pl.col(lead).cast(pl.Float64), **rates).drop_nulls(RATES[0])
    curves = _curves(points, knees, peak, MOST_POINTS if exact else FEW_POINTS)
    low, high = frames.lowest(rows, lead), frames.highest(rows, lead)
    span = (low, high if high > low else low * 2)
    plane = Plane(span, (0.0, float(f"{peak * HEADROOM:.5g}")), linear=True)
    says = first_true(_sentences(of, rows, knees, lead, peak, calibrated=calibrated))
    subtitle = _subtitle(of, rows, peak, lead, calibrated=calibrated)
    drawn = {
        "labels": _labels(curves, knees, peak, plane, lead),
        **_data(curves, knees, peak),
    }
    return View(
        says,
        subtitle,
        _layers(list(curves), lead, calibrated=calibrated),
        drawn,
        MARGINS,
        rows.drop("series", "flops_per_s"),
        kit.plane_params(plane, kit.powers_of_two(*span), kit.even_ticks(plane.y[1])),
        (chip, dtypes, *curves),
    )


def _rows(of: Selection, lead: str, model: str | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of the table, and thresholds, of the shapes that are drawn."""
    others = [dim for dim in of.dims if dim != lead]
    thresholds = of.thresholds().filter(of.over(), axis=lead)
    table = frames.with_missing(of.rows(), *BAND).filter(of.over())
    source = thresholds if lead in of.sweep.solved else table
    if model is not None:
        shapes = list(layers_by_model(of.sweep.config.shapes or ())[model].values())
        source = source.filter(pl.col("shape").is_in(shapes))
    series = series_of(source, others, MOST_SERIES)
    keys = ["shape", *others]
    rows = table.join(series.lazy(), on=keys, nulls_equal=True).select(
        *("chip", "dtypes", "sharding", "shards", "series", "shape"),
        *of.dims,
        *("attained_flops_per_s", "t_lower_s"),
        *BAND,
        flops_per_s=pl.col("attained_flops_per_s"),
    )
    knees = thresholds.join(series.lazy(), on=keys, nulls_equal=True).select(
        *("chip", "dtypes", "series", "shape"),
        *others,
        *("share", "critical", "limit"),
        exact="critical_exact",
    )
    largest = [True] * len(others)
    found = rows.collect().sort(*others, "shape", lead, descending=[*largest, False, False])
    order = [*largest, False, True]
    return found, knees.collect().sort(*others, "shape", "share", descending=order)


def _curves(
    points: pl.DataFrame, knees: pl.DataFrame, peak: float, most: int
) -> dict[str, list[Point]]:
    """The points of each curve, with that where it meets the peak.

    Args:
        points: Curves with their sizes, and what is attained in each time, by rising size.
        knees: The critical sizes.
        peak: What is attained there [FLOP/s].
        most: Sizes of the table that a curve is drawn through [1].
    """
    found: dict[str, list[Point]] = {}
    for series, *point in points.iter_rows():
        found.setdefault(series, []).append(tuple(point))
    curves = {series: thinned(of, most) for series, of in found.items()}
    bends = knees.filter(share=1.0).drop_nulls("exact").select("series", "exact")
    for series, bend in bends.iter_rows():
        of = curves.get(series)
        if of and of[0][0] <= bend <= of[-1][0]:
            curves[series] = sorted([(bend, peak), *(each for each in of if each[0] != bend)])
    return curves


def _data(
    curves: Mapping[str, Sequence[Point]], knees: pl.DataFrame, peak: float
) -> dict[str, pl.DataFrame]:
    """The rows of the marks, labels aside."""
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
    lead: str,
) -> pl.DataFrame:
    """The peak, critical sizes at the feet of their stems, and the names of curves."""
    (low, high), top = plane.x, plane.y[1]
    found = {
        str(name): at for name, at in knees.filter(share=1.0).select("series", "critical").rows()
    }
    feet = {name: at for name, at in found.items() if at is not None and low <= at <= high}
    paths = {name: [(p[0], p[1]) for p in smooth(of, 4)] for name, of in curves.items()}

    def far(point: tuple[float, float]) -> tuple[bool, float]:
        across, down = plane.at((1.0, 1.0), *point)
        return not ANCHORED[0] <= across <= ANCHORED[1], abs(down - MIDDLE)

    labels = [Label(f"peak · {si(peak, 'FLOP/s')}", [(low, peak)], "note", places=AT_PEAK)]
    for index, at in enumerate(feet.values()):
        text = count(at) if index else f"{lead} = {count(at)}"
        labels.append(Label(text, [(at, 0.0)], "value", places=FEET, past=PAST_EDGE))
    for name, path in paths.items():
        at = found.get(name, 0)
        later = " · never" if at is None else f" · from {count(at)}" if at > high else ""
        text = shorten(name, NAME_ROOM, bold=True) + later
        points = sorted(path, key=far)[:MOST_ANCHORS]
        labels.append(Label(text, points, "value", sides=SIDES, distance=0.5))
    stems = [[(at, 0.0), (at, top)] for at in feet.values()]
    placed = labelled(MARGINS, plane, labels, [*paths.values(), *stems])
    return placed.with_columns(series=pl.Series(["", *feet, *paths], dtype=pl.String))


def _layers(series: Sequence[str], lead: str, *, calibrated: bool) -> list[Layer]:
    """The peak, stems from the critical sizes down, bands, curves, dots, and texts."""
    title = "Batch size B (tokens)" if lead == "B" else f"Size of {lead}"
    across = kit.log_axis("x", title, kit.COUNT_LABEL, grid=False)
    across["scale"]["base"] = 2
    x = kit.quantity("size", **across)
    y = kit.quantity("flops_per_s", **kit.axis("y", "Attained FLOP/s"))
    ramp = {"legend": None, "scale": {"domain": list(series), "range": "ramp"}}
    color = kit.name("series", **ramp)
    tips = kit.tips(series="series", size=lead, flops_per_s="attained FLOP/s")
    if calibrated:
        tips += kit.tips(fast="at p10 of the time", slow="at p90 of the time")
    at: Layer = {"x": x, "y": y, "color": color}
    knee = kit.tips(series="series", size=f"critical {lead}", exact="exactly", limit="limit")
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
    of: Selection, rows: pl.DataFrame, peak: float, lead: str, *, calibrated: bool
) -> str:
    setting = frames.fixed_text(rows, [dim for dim in of.dims if dim != lead])
    about = f"{of.dtypes[0]} on {chip_label(of.chips[0])}{', ' * bool(setting)}{setting}"
    if calibrated:
        return f"{about}. Calibrated; bands: p10 to p90. Roof {si(peak, 'FLOP/s')}."
    shares = frames.shares_below_peak(of.sweep)
    hollow = f", hollow for {100 * shares[0]:g} % of the peak" if shares else ""
    tiles = " Whole tiles are computed; their padding is no work." if of.sweep.tile else ""
    return (
        f"{about}, every byte counted. Dots: the first compute-bound {lead}{hollow};"
        f" roof {si(peak, 'FLOP/s')}.{tiles}"
    )


def _writes(op: Operation) -> bool:
    """Whether a batched product of two tensors writes what a fused kernel would keep on chip."""
    x, w, out = set(op.x), set(op.w), set(op.out)
    return bool(x & w & out and (x - w) & out and (w - x) & out)


def _sentences(  # noqa: PLR0913, what is said depends on all
    of: Selection,
    rows: pl.DataFrame,
    knees: pl.DataFrame,
    lead: str,
    peak: float,
    *,
    calibrated: bool,
) -> Iterator[Sentence]:
    """What may be said, the strongest first."""
    chip, dtypes = of.chips[0], of.dtypes[0]
    unfused = "Unfused, " if _writes(of.sweep.op) else ""
    about: dict[str, Any] = {"chosen": chip, "writes": bool(unfused)}
    if calibrated:
        attained, *_ = frames.calibrated_rates(RATES).values()
        most = rows.select(attained.max() / peak).item()
        if most is not None:
            share = f"{100 * most:.0f} %"
            text = f"Calibrated, {dtypes} attains at most {share} of the peak of {chip_label(chip)}"
            yield Sentence(text=f"{unfused}{text}", rows=[{"chip": chip}], **about)
    found = knees.filter(share=1.0).to_dicts()
    reached = [row for row in found if row["critical"] is not None]
    never = [row for row in found if row["critical"] is None]
    per = frames.per_expert(knees["shape"])
    start = {"starts": int(frames.lowest(rows, lead)), **about}
    if found and not reached:
        text = f"{unfused}no {lead} makes {dtypes} compute-bound at the sizes shown"
        yield Sentence(text=text[0].upper() + text[1:], rows=found, **start)
    if reached:
        first = min(reached, key=lambda row: row["critical"])
        last = max(reached, key=lambda row: row["critical"])
        least = f"{sizes_text(lead, [first['critical']])}{per}"
        needs = f"{unfused}{dtypes} on {chip_label(chip)} needs {least}"
        more = f"; at {never[-1]['series']} no {lead} is enough" if never else ""
        if not never and first["critical"] != last["critical"]:
            more = f", {last['critical']:,} at {last['series']}"
        texts = (
            f"{needs} at {first['series']}{more}",
            f"{needs} at {first['series']}",
            f"{needs} or more",
        )
        said = [first, never[-1] if never else last]
        for text in texts:
            if title_fits(text, MARGINS) or text is texts[-1]:
                yield Sentence(text=text, rows=said, **start)
    yield Sentence(text=f"{unfused}{dtypes} over {lead} on {chip_label(chip)}", **about)


def _solved(sweep: Sweep) -> bool:
    lead = lead_of(sweep, curve=True)
    return has_axis(sweep, lead) and lead in sweep.solved and 1 in sweep.config.shares


def _preferred(sweep: Sweep) -> tuple[int, ...]:
    tiled = bool(sweep.tile)
    long = len(dimension_sizes(sweep, lead_of(sweep, curve=True))) >= LONG_AXIS
    return sweep.unit != "matrix", tiled, not long, -len(frames.chips_with_rows(sweep))


# ------------------------------------------------------------ points of curves


def series_of(rows: pl.LazyFrame, dims: Sequence[str], most: int) -> pl.DataFrame:
    """The sizes that get a curve each: named shapes, or sizes of the dimensions.

    Args:
        rows: With `shape` and the sizes.
        dims: The dimensions besides that of the axis.
        most: The most curves [1].

    Returns:
        `shape` and the sizes; `series`, the shape, or the sizes of which there are several.
    """
    order = [True] * len(dims)
    unique = rows.select("shape", *dims).unique()
    found = unique.sort(*dims, "shape", descending=[*order, False]).collect()
    if found.height > most and len(dims) > 1:
        square = found.filter(pl.all_horizontal(pl.col(dim) == pl.col(dims[0]) for dim in dims))
        found = square if square.height > 1 else found
    few = min(most, found.height)
    found = found[sorted({round(i * (found.height - 1) / max(few - 1, 1)) for i in range(few)})]
    several = [dim for dim in dims if found[dim].n_unique() > 1] or list(dims)
    names = [
        row["shape"] or named_sizes({dim: row[dim] for dim in several}) for row in found.to_dicts()
    ]
    return found.with_columns(series=pl.Series(names, dtype=pl.String))


def thinned(points: Sequence[Point], most: int) -> list[Point]:
    """As many points as a curve needs, about even on a log axis."""
    sizes = [size for size, *_ in points]
    if len(sizes) <= most:
        return [*points]
    low, high = sizes[0], sizes[-1]
    wanted = (low * (high / low) ** (i / (most - 1)) for i in range(most - 1))
    kept = {bisect_left(sizes, size) for size in wanted} | {len(sizes) - 1}
    return [points[place] for place in sorted(kept)]


def smooth(points: Sequence[Point], steps: int = STEPS) -> list[Point]:
    """Points of a curve with further ones between two that differ, by `attained_between`."""
    found: list[Point] = []
    for one, other in pairwise(points):
        found.append(one)
        for step in range(1, steps) if one[1:] != other[1:] else ():
            at = one[0] * (other[0] / one[0]) ** (step / steps)
            known = [
                attained_between((one[0], a), (other[0], b), at) if a and b else a
                for a, b in zip(one[1:], other[1:], strict=True)
            ]
            found.append((at, *known))
    return [*found, *points[-1:]]


def attained_between(low: Point, high: Point, size: float) -> float:
    """What a size between two points of a curve attains, with one bottleneck between them [FLOP/s].

    The work is proportional to the size, so the size over what it attains is to the time, which is
    affine in the size.

    Args:
        low: The lower point: the size, and what it attains [FLOP/s].
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
            _solved,
        ),
        Need(
            f"{SHORT_AXIS} sizes of that dimension",
            lambda s: len(dimension_sizes(s, lead_of(s, curve=True))) >= SHORT_AXIS,
            auto=True,
        ),
        Need("no shapes", lambda s: not s.config.shapes, auto=True),
        Need("rows of one chip alone", lambda s: min(s.counts) == 1),
    ),
    reads=("attained_flops_per_s", "t_lower_s"),
    preferred=_preferred,
)
