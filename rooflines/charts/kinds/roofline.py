"""Roofline: one chip with memory levels, links and peaks, or several chips."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rooflines.answers.claims import Sentence, first_true
from rooflines.basics.lazy import pl
from rooflines.basics.text import count, counted, si, significant
from rooflines.charts import frames, ridges, roofline_layers
from rooflines.charts.frames import BAND, CALIBRATED, NOMINAL, dimension_sizes
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.chart_text import chip_label, part_name, with_value
from rooflines.charts.kit.label_placement import (
    DOT,
    Label,
    Plane,
    at_ends,
    overlap_counts,
    place_labels,
)
from rooflines.charts.kit.themes import Margins
from rooflines.charts.options import ALL, Menu, basis_menus, chosen_option, shape_menus
from rooflines.charts.views import Kind, Need, View
from rooflines.theory.network import PAIR, NetworkLevel
from rooflines.theory.resources import NETWORK, collective_rate, math_rate, memory_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.charts.chart_data import Results, Selection
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.options import Option
    from rooflines.hardware.entries import Chip
    from rooflines.sweep.cases import Block
    from rooflines.sweep.operation_sweep import OperationCase, Sweep
    from rooflines.theory.resources import ChipRates

MULTI_CHIP_MARGINS, NAME_ROOM = Margins(left=4.2, right=15.6), 14.9

RIDGE_SIDES = ("br", "tl", "b", "t", "tr", "bl")
"""Sides tried for a ridge's number, best first."""

ESTIMATES = ("estimate", "fast", "slow")
"""Columns of the calibrated rate, and of the rate at p10 and p90 of the time [FLOP/s]."""

POINT_SIDES = ("tl", "br", "b", "t", "r", "l")

COLUMNS = {
    **dict.fromkeys(("chip", "dtypes", "kind", "name"), str),
    **dict.fromkeys(("flops_per_s", "bytes_per_s", "intensity"), float),
    "size": int,
    "shape": str,
    **dict.fromkeys(ESTIMATES, float),
}
"""Columns of the rows of a one-chip view, with their types."""


def menus(sweep: Sweep, choice: Mapping[str, Option]) -> list[Menu]:
    """Menus: a chip or all chips, and dtypes; for one chip also shape and basis."""
    chips = [
        chip for chip in frames.chips_with_rows(sweep) if frames.has_bandwidth(sweep.chips[chip])
    ]
    together = (ALL,) if len(chips) > 1 else ()
    chip = chosen_option(choice, "chip", chips)
    one_chip = [chip] if chip in chips else []
    dtypes = frames.dtypes_of(sweep, one_chip)
    chip_menus = [Menu("chip", (*chips, *together)), Menu("dtypes", dtypes)]
    if not one_chip:
        return chip_menus
    return [*chip_menus, *shape_menus(sweep), *basis_menus(sweep, {**choice, "chip": chip}, dtypes)]


def view(results: Results, sweep: str, chips: Sequence[str], choice: Mapping[str, Any]) -> View:
    """Draw one chip's roofline with points from the sweep, or several chips' rooflines."""
    chip, dtypes = choice["chip"], choice["dtypes"]
    if chip == ALL:
        return _multi_chip_view(
            results.select(sweep, _able_chips(results, sweep, chips, dtypes), [dtypes]), dtypes
        )
    selection = results.select(sweep, [chip], [dtypes])
    rows = pl.concat([_lines(selection), _points(selection, choice.get("shape"))]).with_columns(
        ridge=pl.when(pl.col("kind") != "point").then(pl.col("flops_per_s") / pl.col("bytes_per_s"))
    )
    return _one_chip_view(selection, rows, choice.get("basis", NOMINAL))


def _able_chips(results: Results, sweep: str, chips: Sequence[str], dtypes: str) -> list[str]:
    """Compared chips that support the dtypes; if none does, the sweep's first that do."""
    operation_sweep = results.sweep(sweep)
    usable = frames.able_chips(operation_sweep, frames.chips_with_rows(operation_sweep), dtypes)
    return [chip for chip in chips if chip in usable] or usable[: KIND.max_chips]


def _multi_chip_view(selection: Selection, dtypes: str) -> View:
    """Draw the main-memory roof of each chip."""
    rows = ridges.ridge_frame(selection).sort("flops_per_s", "ridge", descending=[True, False])
    left, right = frames.lowest(rows, "ridge") / 12, frames.highest(rows, "ridge") * 6
    bottom = left * frames.lowest(rows, "bytes_per_s") * 0.8
    plane = Plane((left, right), (bottom, frames.highest(rows, "flops_per_s") * 1.8))
    rates = rows.select("bytes_per_s", "flops_per_s").iter_rows()
    paths = [roofline_layers.corners(rate, peak, plane) for rate, peak in rates]
    texts = [
        with_value(chip_label(chip), si(peak, "FLOP/s"), NAME_ROOM)
        for chip, peak in rows.select("chip", "flops_per_s").iter_rows()
    ]
    names = at_ends(MULTI_CHIP_MARGINS, plane, rows["flops_per_s"].to_list())
    lines = rows.select(
        "chip",
        "flops_per_s",
        "bytes_per_s",
        "ridge",
        overlap_count=pl.Series(overlap_counts(paths, plane), dtype=pl.Int64),
        x=pl.Series([[x for x, _ in path] for path in paths], dtype=pl.List(pl.Float64)),
        y=pl.Series([[y for _, y in path] for path in paths], dtype=pl.List(pl.Float64)),
    ).explode("x", "y")
    points = rows.select("ridge", "flops_per_s").rows()
    labels = [Label(significant(at[0]), [at], sides=RIDGE_SIDES) for at in points]
    numbers = place_labels(MULTI_CHIP_MARGINS, plane, labels, paths, [(at, DOT) for at in points])
    vendors = dict(rows.select("chip", "vendor").iter_rows())
    unit = rows["unit"][0]
    return View(
        Sentence(text=f"{dtypes} roofs of {counted(rows.height, 'chip')}, {unit} unit"),
        f"{dtypes}: dense peak of the {unit} unit over main-memory bandwidth. Dots and numbers:"
        " ridges, FLOP per byte.",
        _multi_chip_layers(vendors),
        {
            "roofs": lines,
            "names": rows.select("chip", "flops_per_s", text=pl.Series(texts)).hstack(names),
            "ridges": rows.select("chip").hstack(numbers),
        },
        MULTI_CHIP_MARGINS,
        rows,
        kit.plane_params(plane),
        tuple(vendors),
    )


def _multi_chip_layers(vendors: Mapping[str, str | None]) -> list[Layer]:
    """Layers: roofs in chip colours, names at their right ends, and ridges."""
    line, letters = (kit.chip_colour(vendors, letters=as_text) for as_text in (False, True))
    across = "Arithmetic intensity (FLOP per byte of main memory)"
    x = kit.quantitative_channel("x", **kit.log_axis("x", across, kit.SHORT_LABEL))
    y = kit.quantitative_channel("y", **kit.log_axis("y", "Attainable FLOP/s"))
    tips = kit.tips(
        chip="chip", flops_per_s="peak FLOP/s", bytes_per_s="byte/s", ridge="ridge, FLOP/byte"
    )
    at = {"x": x, "y": y}
    path = {**at, "color": line, "order": kit.quantitative_channel("x"), "tooltip": tips}
    end = {
        "x": {"value": kit.expr("width")},
        "y": {**y, "field": "flops_per_s"},
        "fill": letters,
    }
    return [
        kit.layer("roofs", "line", "curve", path, **kit.OVERLAP_WIDTH),
        *kit.labels("names", "value", end, halo=False, clip=False),
        kit.layer("ridges", "point", "dot", {**at, "color": line}),
        *kit.labels("ridges", "value", {**at, "fill": letters}),
    ]


def _lines(selection: Selection) -> pl.DataFrame:
    """Ceilings and slopes of one chip; `kind` is `memory`, `network` or `ceiling`."""
    (case,) = selection.cases()
    entry = selection.sweep.chips[case.chip]
    key = {"chip": case.chip, "dtypes": case.dtypes}
    records: list[dict[str, Any]] = [
        {
            **key,
            "kind": "ceiling",
            "name": compute,
            "flops_per_s": float(math_rate(case.machine, compute)),
        }
        for compute in entry.units[selection.sweep.unit]
    ]
    records += [{**key, **line} for line in _bandwidths(entry, selection.by_chip[case.chip], case)]
    return pl.DataFrame(records, schema=COLUMNS, orient="row")


def _bandwidths(
    entry: Chip, rows: Block[OperationCase], case: OperationCase
) -> Iterator[dict[str, Any]]:
    """Bandwidths: memory levels, the case's level first, then networks.

    A network used by the sweep's splits has the rate of its largest split, others that of a pair.
    """
    machine, compute = case.machine, case.combination.compute
    peak = float(math_rate(machine, compute))
    for name in sorted(entry.memory, key=lambda level: level != rows.place.memory):
        if entry.memory[name].bytes_per_s:
            fed = replace(machine, level=entry.memory[name].exact)
            rate = float(memory_rate(fed, compute))
            yield {"kind": "memory", "name": name, "flops_per_s": peak, "bytes_per_s": rate}
    split = _split_bandwidth(rows.cases)
    whole = {part for name in split for part in name.partition(" ")[0].split("+")}
    pairs = {
        name: pair_rate
        for name, pair_rate in _pair_bandwidths(entry, machine).items()
        if name not in whole
    }
    for name, rate in {**split, **pairs}.items():
        yield {"kind": "network", "name": name, "flops_per_s": peak, "bytes_per_s": rate}


def _pair_bandwidths(entry: Chip, machine: ChipRates) -> dict[str, float]:
    """Bandwidth of each interconnect between two chips [byte/s]."""
    share = machine.efficiency["network"]
    pairs = {
        name: NetworkLevel(interconnect.exact, (PAIR,))
        for name, interconnect in entry.networks.items()
    }
    return {
        name: float(pair.bytes_per_s * share)
        for name, pair in pairs.items()
        if pair.link.domain != 1
    }


def _split_bandwidth(cases: Sequence[OperationCase]) -> dict[str, float]:
    """Bandwidth of the network in the largest split that sends bytes, by route name [byte/s]."""
    largest = max(
        (case for case in cases if case.route and case.scheme.transfers),
        key=lambda case: case.shards,
        default=None,
    )
    if largest is None or largest.route is None:
        return {}
    kind, share = largest.scheme.transfers[0][1], largest.machine.efficiency[NETWORK.name]
    rate = collective_rate(largest.route, kind, share)
    return {str(frames.route_name(largest)): float(rate.per_s)}


def _points(selection: Selection, shape: str | None) -> pl.DataFrame:
    """One-chip rows as points, at powers of eight along the first dimension with several sizes."""
    several = (dim for dim in selection.dims if len(dimension_sizes(selection.sweep, dim)) > 1)
    axis = next(several, selection.dims[0])
    other_dims = [dim for dim in selection.dims if dim != axis]
    rows = frames.with_missing(selection.rows(), *BAND, "t_lower_s").filter(shards=1)
    largest = [pl.col(dim) == pl.col(dim).max() for dim in other_dims]
    rows = rows.filter(*([pl.col("shape") == shape] if shape is not None else largest))
    points = rows.filter(pl.col(axis).is_in([8**power for power in range(14)])).select(
        "chip",
        "dtypes",
        kind=pl.lit("point"),
        name=pl.lit(axis),
        flops_per_s="attained_flops_per_s",
        bytes_per_s=pl.lit(None, dtype=pl.Float64),
        intensity="memory_intensity",
        size=pl.col(axis).cast(pl.Int64),
        shape="shape",
        **frames.calibrated_rates(ESTIMATES),
    )
    return points.unique(["size"], keep="first").sort("size").collect()


def _one_chip_view(selection: Selection, rows: pl.DataFrame, basis: str) -> View:
    """Draw the roofline of one chip."""
    points = rows.filter(kind="point")
    places = points.select("intensity", "flops_per_s").rows()
    roof = roofline_layers.Roof(rows, places)
    labels = [
        Label(f"{name} = {count(size)}", [at], "label", sides=POINT_SIDES)
        for at, (name, size) in zip(places, points.select("name", "size").rows(), strict=True)
    ]
    main, chip, dtypes = roof.main, selection.chips[0], selection.dtypes[0]
    level, unit = part_name(main["name"]), selection.sweep.unit
    ridge = significant(main["ridge"])
    shape = next(iter(points["shape"].drop_nulls()), None)
    dots = f" Dots: {shape or 'the largest matrices'}." if places else ""
    if basis == CALIBRATED:
        dots += " Pale: nominal; dark: calibrated, p10 to p90."
    rates = f"{si(roof.peak, 'FLOP/s')}, {level} at {si(main['bytes_per_s'], 'B/s')}"
    row = {"chip": chip, "dtypes": dtypes, "unit": unit, "ridge": main["ridge"]}
    text = f"{chip_label(chip)}, {dtypes} {unit} unit: {level} ridge {ridge} FLOP/byte"
    return View(
        first_true([Sentence(text=text, rows=[row], chosen=chip, ridge=True)]),
        f"{dtypes} in the {unit} unit at {rates}.{dots}",
        roofline_layers.roof_layers(
            "Attainable FLOP/s", partial(_point_layers, calibrated=basis == CALIBRATED)
        ),
        {
            **roof.data(labels, [(at, DOT) for at in places]),
            "point": points.select("size", "shape", *ESTIMATES, x="intensity", y="flops_per_s"),
        },
        roofline_layers.MARGINS,
        rows,
        kit.plane_params(roof.plane),
        (chip, dtypes),
    )


def _point_layers(at: Layer, *, calibrated: bool) -> list[Layer]:
    """Layers of operating points; if calibrated, with bands, and nominal points pale."""
    tips = kit.tips(shape="shape", size="size", x="FLOP/byte", y="attained FLOP/s")
    if not calibrated:
        return [kit.layer("point", "point", "ink-dot", {**at, "tooltip": tips})]
    tips += kit.tips(estimate="calibrated FLOP/s", slow="at p90", fast="at p10")
    calibrated_points = "datum.estimate != null"
    band = {**at, "y": {**at["y"], "field": "slow"}, "y2": {"field": "fast"}, "tooltip": tips}
    dark = {**at, "y": {**at["y"], "field": "estimate"}, "tooltip": tips}
    return [
        kit.layer("point", "point", "ink-dot", {**at, "tooltip": tips}, opacity=0.35),
        kit.layer("point", "rule", "band", band, where=calibrated_points, clip=True),
        kit.layer("point", "point", "ink-dot", dark, where=calibrated_points, clip=True),
    ]


KIND = Kind(
    name="roofline",
    menus=menus,
    view=view,
    needs=(
        Need(
            "a chip with a known bandwidth of the main memory",
            lambda s: any(
                frames.has_bandwidth(s.chips[chip]) for chip in frames.chips_with_rows(s)
            ),
        ),
        Need(
            "the vector unit for an operation of one dimension",
            lambda s: s.op.dims != ("D",) or s.unit == "vector",
            auto=True,
        ),
    ),
    reads=("memory_intensity", "attained_flops_per_s"),
    preferred=ridges.preferred,
    multi_chip=True,
)
