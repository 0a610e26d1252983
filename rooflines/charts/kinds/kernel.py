"""Kernel sweep: time over a size with bound and estimate, or dots under a chip's roof."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.answers.claims import Sentence, first_true
from rooflines.basics.lazy import pl
from rooflines.basics.text import count, si, significant
from rooflines.charts import frames, roofline_layers
from rooflines.charts.frames import BAND, MIN_TABLE_SIZES
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, shorten
from rooflines.charts.kit.label_placement import DOT, Label, Plane, at_ends, place_labels
from rooflines.charts.kit.themes import Margins
from rooflines.charts.options import Menu, chosen_option
from rooflines.charts.views import Kind, Need, View
from rooflines.dictionary.columns import FOUND, LOWER_MEAN, LOWER_RING
from rooflines.kinds.collectives import PAYLOAD
from rooflines.sweep.kind_sweep import KindSweep
from rooflines.theory.operation import MATRIX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.chart_data import Results
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.sweep.config_sweeps import AnyKernelSweep

MARGINS, NAME_ROOM = Margins(left=5.4, right=11.6), 11.0
"""Margins, and room for curve names [em]."""

TIME, ROOFLINE = VIEWS = ("time", "roofline")
"""Pictures."""

POINT_SIDES = ("tl", "br", "b", "t", "r", "l")

PHASES = ("prefill", "decode")
"""Phases that a title names."""

BYTES_LABEL = (
    "datum.value >= 1073741824 ? format(datum.value / 1073741824, '~r') + ' GiB'"
    " : datum.value >= 1048576 ? format(datum.value / 1048576, '~r') + ' MiB'"
    " : datum.value >= 1024 ? format(datum.value / 1024, '~r') + ' KiB' : datum.value"
)
"""Payload label on an axis, as a Vega expression."""

LOWER_WORDS = {LOWER_MEAN: "mean of uniform routing", LOWER_RING: "ring"}
"""Words for times other than bounds."""

AXIS_TITLES = {PAYLOAD: "Payload"}
"""Axis titles; other letters have their meaning."""


def _size_axis(sweep: AnyKernelSweep) -> str:
    """Letter along the x axis: the one solved for with several sizes, else the longest axis."""
    sizes = _sizes(sweep)

    def suitability(letter: str) -> tuple[bool, bool, int]:
        several = len(sizes[letter]) >= MIN_TABLE_SIZES
        return several, letter in sweep.solved, len(sizes[letter])

    return max(sizes, key=suitability)


def _sizes(sweep: AnyKernelSweep) -> dict[str, Sequence[int]]:
    """Sizes by letter, the first on every axis."""
    return {next(iter(axis.columns)): sorted({*axis.columns[next(iter(axis.columns))]})
            for axis in sweep.size_axes}  # fmt: skip


def _chips(sweep: AnyKernelSweep) -> list[str]:
    """Chips with rows."""
    return [*sweep.rows_by_chip()]


def menus(sweep: AnyKernelSweep, choice: Mapping[str, Option]) -> list[Menu]:
    """Menus: the picture, dtypes or chip counts, and for a roofline the chip."""
    if not isinstance(sweep, KindSweep):
        shards = tuple(dict.fromkeys(int(str(case.keys["shards"])) for case in sweep.cases))
        return [Menu("by", (TIME,)), Menu("shards", shards[::-1])]
    by = Menu("by", VIEWS)
    chips = _chips(sweep)
    one_chip = [chosen_option(choice, "chip", chips)]
    on_chip = [] if chosen_option(choice, "by", VIEWS) == TIME else [Menu("chip", tuple(chips))]
    able = {case.dtypes for case in sweep.cases if not on_chip or case.chip in one_chip}
    dtypes = tuple(name for name in sweep.combinations if name in able)
    return [by, *on_chip, Menu("dtypes", dtypes)]


def view(results: Results, sweep: str, chips: Sequence[str], choice: Mapping[str, Any]) -> View:
    """Draw times over a size on several chips, or one chip's roof with the sweep's rows."""
    kernel_sweep = results.kernel_sweep(sweep)
    axis = _size_axis(kernel_sweep)
    one_chip = choice.get("chip")
    shown = [one_chip] if one_chip else [chip for chip in _chips(kernel_sweep) if chip in chips]
    rows = _rows(results, kernel_sweep, shown or _chips(kernel_sweep), choice, axis)
    if choice["by"] == ROOFLINE:
        return _roof_view(kernel_sweep, rows, axis, str(one_chip), str(choice["dtypes"]))
    knees = _knees(results, kernel_sweep, rows, axis, choice)
    return _time_view(kernel_sweep, rows, knees, axis)


def _rows(
    results: Results,
    sweep: AnyKernelSweep,
    chips: Sequence[str],
    choice: Mapping[str, Any],
    axis: str,
) -> pl.DataFrame:
    """Rows on these chips, each at one place, other letters at their largest sizes."""
    rows = results.rows(sweep.name).filter(pl.col("chip").is_in(list(chips)))
    rows = _placed(sweep, frames.with_missing(rows, *BAND, "t_strict_s"))
    chosen = {key: choice[key] for key in ("dtypes", "shards") if key in choice}
    largest = [
        pl.col(letter) == sizes[-1] for letter, sizes in _sizes(sweep).items() if letter != axis
    ]
    return (
        rows.filter(*largest, **chosen)
        .unique(["chip", axis], keep="first")
        .sort("chip", axis)
        .collect()
    )


def _placed(sweep: AnyKernelSweep, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Rows by chip at its first memory level, over its first network."""
    first = {block.place.chip: block.place for block in reversed(sweep.blocks)}
    places = {
        key: pl.col("chip").replace_strict(
            {chip: getattr(place, key) for chip, place in first.items()},
            default=None,
            return_dtype=pl.String,
        )
        for key in ("memory", "network")
    }
    return rows.filter(*(pl.col(key).eq_missing(value) for key, value in places.items()))


def _knees(
    results: Results,
    sweep: AnyKernelSweep,
    rows: pl.DataFrame,
    axis: str,
    choice: Mapping[str, Any],
) -> pl.DataFrame:
    """Thresholds along the axis; none where it is not solved for."""
    solved = _placed(sweep, results.thresholds(sweep.name)).filter(axis=axis)
    chosen = {key: choice[key] for key in ("dtypes", "shards") if key in choice}
    fixed_letters = [letter for letter in _sizes(sweep) if letter != axis]
    same = [pl.col(letter) == rows[letter][0] for letter in fixed_letters]
    chips = rows["chip"].unique().to_list()
    return solved.filter(*same, pl.col("chip").is_in(chips), **chosen).collect()


def _time_view(sweep: AnyKernelSweep, rows: pl.DataFrame, knees: pl.DataFrame, axis: str) -> View:
    """Draw bound and estimate over a size, a colour for each chip."""
    chips = [chip for chip in _chips(sweep) if chip in {*rows["chip"]}]
    vendors = {chip: sweep.chips[chip].vendor for chip in chips}
    low, high = frames.lowest(rows, axis), frames.highest(rows, axis)
    times = rows.select("t_lower_s", *BAND).cast(pl.Float64)
    bottom = min(value for value in times.min().row(0) if value) / 1.5
    top = max(value for value in times.max().row(0) if value) * 1.5
    plane = Plane((low, high if high > low else 2 * low), (bottom, top))
    ends = rows.group_by("chip", maintain_order=True).last()
    ends = ends.sort(pl.col("chip").cast(pl.Enum(chips)))
    texts = [shorten(chip_label(chip), NAME_ROOM, bold=True) for chip in ends["chip"]]
    at = at_ends(MARGINS, plane, ends["t_lower_s"].to_list())
    solutions = knees.filter(pl.col("critical").is_not_null()).select(
        "chip", pl.col("critical").cast(pl.Int64), size=pl.col("critical").cast(pl.Float64)
    )
    marks = _on_curves(solutions, rows, axis).filter(pl.col("size").is_between(*plane.x))
    labels = [
        Label(_size_text(axis, int(size)), [(size, time)], sides=POINT_SIDES)
        for size, time in marks.select("size", "t_lower_s").iter_rows()
    ]
    paths = [
        [*zip(part[axis].cast(pl.Float64), part["t_lower_s"], strict=True)]
        for part in rows.partition_by("chip", maintain_order=True)
    ]
    dots = [(point, DOT) for point in marks.select("size", "t_lower_s").iter_rows()]
    placed = place_labels(MARGINS, plane, labels, paths, dots)
    drawn = rows.select(
        "chip",
        "bound",
        "t_lower_is",
        "t_strict_s",
        size=pl.col(axis).cast(pl.Float64),
        seconds="t_lower_s",
        estimate_s="t_estimate_s",
        fast_s="t_estimate_p10_s",
        slow_s="t_estimate_p90_s",
    )
    timed = drawn["estimate_s"].is_not_null().any()
    claim = first_true(_sentences(sweep, rows, knees, axis))
    return View(
        claim,
        _subtitle(sweep, rows, axis, timed=bool(timed)),
        _time_layers(sweep, vendors, axis, timed=bool(timed)),
        {
            "curves": drawn,
            "names": ends.select("chip", seconds="t_lower_s", text=pl.Series(texts)).hstack(at),
            "knees": marks,
            "sizes": marks.select("chip").hstack(placed),
        },
        MARGINS,
        rows,
        kit.plane_params(plane, kit.powers_of_two(*plane.x)),
        tuple(chips),
    )


def _size_text(axis: str, size: int) -> str:
    """Critical size as a label."""
    return f"{count(size)} bytes" if axis == PAYLOAD else f"{axis} = {count(size)}"


def _on_curves(solutions: pl.DataFrame, rows: pl.DataFrame, axis: str) -> pl.DataFrame:
    """Critical sizes with the time on their chip's curve, a line between two sizes."""
    times: list[float | None] = []
    for chip, _, size in solutions.iter_rows():
        points = rows.filter(chip=chip).select(pl.col(axis).cast(pl.Float64), "t_lower_s").rows()
        below = [point for point in points if point[0] <= size]
        above = [point for point in points if point[0] >= size]
        if not below or not above:
            times.append(None)
            continue
        (x0, y0), (x1, y1) = below[-1], above[0]
        if axis == PAYLOAD:  # as long as the hops, to the byte
            times.append(y0)
            continue
        times.append(y0 if x1 == x0 else y0 + (y1 - y0) * (size - x0) / (x1 - x0))
    return solutions.with_columns(t_lower_s=pl.Series(times, dtype=pl.Float64)).drop_nulls(
        "t_lower_s"
    )


def _time_layers(
    sweep: AnyKernelSweep, vendors: Mapping[str, str | None], axis: str, *, timed: bool
) -> list[Layer]:
    """Layers: bands and estimates, bounds, critical sizes, and names."""
    line, letters = (kit.chip_colour(vendors, letters=as_text) for as_text in (False, True))
    meaning = AXIS_TITLES.get(axis, f"{axis}, {sweep.letters[axis]}")
    label = BYTES_LABEL if axis == PAYLOAD else kit.COUNT_LABEL
    across = kit.log_axis("x", meaning, label, grid=False)
    across["scale"]["base"] = 2
    x = kit.quantitative_channel("size", **across)
    y = kit.quantitative_channel("seconds", **kit.log_axis("y", "Time", kit.TIME_LABEL))
    at: Layer = {"x": x, "y": y, "color": line}
    tips = kit.tips(chip="chip", size=axis, seconds="t_lower_s", t_lower_is="which is a")
    tips += kit.tips(bound="bottleneck")
    layers = []
    if timed:
        timed_rows = "datum.slow_s != null"
        band = {**at, "y": {**y, "field": "slow_s"}, "y2": {"field": "fast_s"}}
        layers.append(kit.layer("curves", "area", "region", band, where=timed_rows))
        estimate = {**at, "y": {**y, "field": "estimate_s"}, "tooltip": tips}
        dashed = kit.layer("curves", "line", "curve", estimate, where="datum.estimate_s != null")
        dashed["mark"]["strokeDash"] = [4, 3]
        layers.append(dashed)
    end = {"x": {"value": kit.expr("width")}, "y": y, "fill": letters}
    knee = {**at, "y": {**y, "field": "t_lower_s"}, "tooltip": kit.tips(chip="chip", size=axis)}
    text = {"x": {**x, "field": "x"}, "y": {**y, "field": "y"}, "fill": letters}
    return [
        *layers,
        kit.layer("curves", "line", "curve", {**at, "tooltip": tips}),
        kit.layer("knees", "point", "dot", knee),
        *kit.labels("names", "value", end, halo=False, clip=False),
        *kit.labels("sizes", "value", text),
    ]


def _fixed_text(sweep: AnyKernelSweep, rows: pl.DataFrame, axis: str) -> str:
    """Sizes that all rows share, as text."""
    fixed = (letter for letter in sweep.letters if letter != axis and letter in rows.columns)
    sizes = {letter: rows[letter].unique() for letter in fixed}
    values = {letter: size[0] for letter, size in sizes.items() if len(size) == 1}
    return ", ".join(f"{k} = {v:,}" for k, v in values.items() if v is not None)


def _subtitle(sweep: AnyKernelSweep, rows: pl.DataFrame, axis: str, *, timed: bool) -> str:
    """Options, dtypes and fixed sizes; what lines and bands are."""
    first = rows.row(0, named=True)
    chips = f"{first['shards']} chips" if first["shards"] > 1 else None
    parts = [first["options"], first["dtypes"], chips, _fixed_text(sweep, rows, axis)]
    setting = ", ".join(str(part) for part in parts if part)
    lower = {LOWER_WORDS.get(kind, "bound") for kind in rows["t_lower_is"].cast(str).unique()}
    lines = f"Lines: {' or '.join(sorted(lower))}"
    dashes = "; dashed: estimates." if timed else "; untimed."
    return f"{setting}. {lines}{dashes}"


def _title_name(sweep: AnyKernelSweep) -> str:
    """Kernel name at the start of a title, with its phase."""
    phase = (sweep.options_text or "").partition(" ")[0]
    name = f"{sweep.kernel_name} {phase}" if phase in PHASES else sweep.kernel_name
    return f"{name[:1].upper()}{name[1:]}"


def _sentences(
    sweep: AnyKernelSweep, rows: pl.DataFrame, knees: pl.DataFrame, axis: str
) -> Iterator[Sentence]:
    """Candidate titles, the strongest first."""
    name, every = _title_name(sweep), _chips(sweep)
    records = rows.select("chip", "bound").unique().to_dicts()
    bounds = {record["bound"] for record in records}
    solved = knees.to_dicts()
    chips = [*rows["chip"].unique(maintain_order=True)]
    where = f" on {chip_label(chips[0])}" if len(chips) == 1 else ""
    if not isinstance(sweep, KindSweep):
        sizes = [row["critical"] for row in solved if row["critical"]]
        if sizes and len(sizes) == len(solved):
            span = count(min(sizes))
            span += "" if len({*sizes}) == 1 else f" to {count(max(sizes))}"
            text = f"{name} is bound by bandwidth from {span} bytes{where}, by hops below"
            yield Sentence(text=text, rows=solved, every=every)
        yield Sentence(text=f"{name}: time over its payload{where}")
        return
    solutions = [row["critical"] for row in solved if row["outcome"] == FOUND and row["critical"]]
    smallest = int(frames.lowest(rows, axis))
    if solutions and len(solutions) == len(solved):
        low, high = min(solutions), max(solutions)
        most = "up to" if axis in sweep.kind.largest else "from"
        span = f"{axis} = {count(low)}"
        span += "" if low == high else f" to {count(high)}, by chip"
        verb = "are" if sweep.kernel_name == "experts" else "is"
        text = f"{name} {verb} compute-bound {most} {span}{where}"
        yield Sentence(text=text, rows=solved, every=every, starts=smallest)
    if len(bounds) == 1:
        (bound,) = bounds
        words = {"vector": "bound by the vector unit", "exp": "bound by exponentials"}
        verdict = words.get(bound, f"{bound}-bound")
        text = f"{name} is {verdict} at every {axis} shown{where}"
        yield Sentence(text=text, rows=records, every=every, blames=bound)
    yield Sentence(text=f"{name}: time over {axis}{where}")


def _roof_view(sweep: Any, rows: pl.DataFrame, axis: str, chip: str, dtypes: str) -> View:  # noqa: ANN401
    """Draw one chip's roof with the sweep's rows as dots."""
    case = next(case for case in sweep.cases if (case.chip, case.dtypes) == (chip, dtypes))
    is_matrix = sweep.unit == MATRIX
    peak = case.rates.matrix if is_matrix else case.rates.vector
    unit_name = f"{case.form.compute} {sweep.unit}"
    lines = roofline_layers.plain_lines(float(case.rates.memory), {unit_name: float(peak or 1)})
    points = rows.filter(pl.col("attained_flops_per_s") > 0)
    few = {*frames.few_sizes(points[axis].to_list(), 8)}
    points = points.filter(pl.col(axis).is_in(sorted(few)))
    places = points.select("memory_intensity", "attained_flops_per_s").rows()
    roof = roofline_layers.Roof(lines, places)
    labels = [
        Label(f"{axis} = {count(size)}", [at], "label", sides=POINT_SIDES)
        for at, size in zip(places, points[axis], strict=True)
    ]
    ridge, rate = roof.main["ridge"], si(roof.main["bytes_per_s"], "B/s")
    row = {"chip": chip, "dtypes": dtypes, "unit": sweep.unit, "ridge": ridge}
    text = f"{chip_label(chip)}, {unit_name} unit: ridge {significant(ridge)} FLOP/byte"
    flops = pl.col("attained_flops_per_s") * pl.col("t_lower_s")
    return View(
        first_true(
            [
                Sentence(text=text, rows=[row], chosen=chip, ridge=True),
                Sentence(text=f"{_title_name(sweep)} under the roof of {chip_label(chip)}"),
            ]
        ),
        f"{sweep.kernel_name}, {_fixed_text(sweep, rows, axis)}. Memory {rate}. Pale: estimates.",
        roofline_layers.roof_layers("Attainable FLOP/s", _point_layers),
        {
            **roof.data(labels, [(at, DOT) for at in places]),
            "point": points.select(
                size=axis,
                x="memory_intensity",
                y="attained_flops_per_s",
                estimate=flops / pl.col("t_estimate_s"),
                fast=flops / pl.col("t_estimate_p10_s"),
                slow=flops / pl.col("t_estimate_p90_s"),
            ),
        },
        roofline_layers.MARGINS,
        rows,
        kit.plane_params(roof.plane),
        (chip, dtypes),
    )


def _point_layers(at: Layer) -> list[Layer]:
    """Row layers: at the bound, and estimates with bands."""
    tips = kit.tips(size="size", x="FLOP/byte", y="FLOP/s at the bound")
    tips += kit.tips(estimate="FLOP/s at the estimate", slow="at p90", fast="at p10")
    timed = "datum.estimate != null"
    band = {**at, "y": {**at["y"], "field": "slow"}, "y2": {"field": "fast"}, "tooltip": tips}
    dark = {**at, "y": {**at["y"], "field": "estimate"}, "tooltip": tips}
    return [
        kit.layer("point", "point", "ink-dot", {**at, "tooltip": tips}),
        kit.layer("point", "rule", "band", band, where=timed, clip=True),
        kit.layer("point", "point", "ink-dot", dark, where=timed, clip=True, opacity=0.5),
    ]


KIND = Kind(
    name="kernel",
    menus=menus,
    view=view,
    source="kernel_sweeps",
    needs=(
        Need(
            f"{MIN_TABLE_SIZES} sizes along a letter",
            lambda s: (
                max((len(sizes) for sizes in _sizes(s).values()), default=0) >= MIN_TABLE_SIZES
            ),
        ),
    ),
    reads=("attained_flops_per_s", "memory_intensity", "t_lower_s", "t_lower_is", "bound"),
    each_sweep=True,
    multi_chip=True,
)
