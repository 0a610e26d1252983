"""The roofline: one chip with its memory levels, links and peaks, or several chips together."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.basics.text import count, counted, si, significant
from rooflines.charts import frames, ridges, roofs
from rooflines.charts.frames import BAND, CALIBRATED, NOMINAL, dimension_sizes
from rooflines.charts.kit import layers as kit
from rooflines.charts.kit.place import DOT, Label, Place, Plane, labelled
from rooflines.charts.kit.text import chip_label, part_name, with_value
from rooflines.charts.kit.themes import Margins
from rooflines.charts.options import ALL, Menu, basis_menus, chosen, shape_menus
from rooflines.charts.views import Kind, Need, View
from rooflines.explanation.sentences import Sentence, first_true
from rooflines.model.network import PAIR, NetworkLevel
from rooflines.model.resources import NETWORK, collective_rate, math_rate, memory_rate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.charts.kit.layers import Layer
    from rooflines.charts.kit.place import Point
    from rooflines.charts.options import Option
    from rooflines.charts.results import Results, Selection
    from rooflines.model.resources import Machine
    from rooflines.sweep.cases import Block
    from rooflines.sweep.operations import OperationCase, Sweep

MARGINS = Margins(left=4.2, right=1.6, bottom=4.4)
TOGETHER, NAME_ROOM = Margins(left=4.2, right=15.6), 14.9

SLOPE_ANGLE = (
    "-atan2(height / log(plane.y[1] / plane.y[0]), width / log(plane.x[1] / plane.x[0])) * 180 / PI"
)
"""The angle of a slope in the view's plane, as an expression [degree]."""

ACROSS = "Arithmetic intensity (FLOP per byte moved)"

RIDGE_SIDES = ("br", "tl", "b", "t", "tr", "bl")
"""Sides of a ridge that its number is tried on, best first."""

REGIONS = ("memory", "compute")
"""The bottleneck left and right of the ridge; styles of the same names write it."""

ESTIMATES = ("estimate", "fast", "slow")
"""What a point attains calibrated, and at p10 and p90 of the time [FLOP/s]."""

AT_FOOT = [Place(0.0, -1.1, "center")]
AT_RIDGE = [Place(0.5, -2.8, "left"), Place(-0.5, -2.8, "right")]
AT_CEILING = [
    Place(-0.25, -0.65, "right"),
    *(Place(-0.25 - step, down, "right") for down in (0.0, 0.65) for step in range(24)),
]
"""Places of the names of regions, beside the line of the ridge, and at the right end of ceilings:
above it, else left of the names above on the ceiling itself, or below it."""

POINT_SIDES = ("tl", "br", "b", "t", "r", "l")

COLUMNS = {
    **dict.fromkeys(("chip", "dtypes", "kind", "name"), str),
    **dict.fromkeys(("flops_per_s", "bytes_per_s", "intensity"), float),
    "size": int,
    "shape": str,
    **dict.fromkeys(ESTIMATES, float),
}
"""The columns of the rows of one chip."""


def menus(sweep: Sweep, given: Mapping[str, Option]) -> list[Menu]:
    """A chip or all together, dtypes; of one chip also a shape, and the source of its points."""
    chips = [
        chip for chip in frames.chips_with_rows(sweep) if frames.has_bandwidth(sweep.chips[chip])
    ]
    together = (ALL,) if len(chips) > 1 else ()
    chip = chosen(given, "chip", chips)
    one = [chip] if chip in chips else []
    dtypes = frames.dtypes_of(sweep, one)
    found = [Menu("chip", (*chips, *together)), Menu("dtypes", dtypes)]
    if not one:
        return found
    return [*found, *shape_menus(sweep), *basis_menus(sweep, {**given, "chip": chip}, dtypes)]


def view(results: Results, sweep: str, chips: Sequence[str], choice: Mapping[str, Any]) -> View:
    """The roofline of a chip, or those of several. Points are rows of the sweep."""
    chip, dtypes = choice["chip"], choice["dtypes"]
    if chip == ALL:
        return _together(results.of(sweep, _able(results, sweep, chips, dtypes), [dtypes]), dtypes)
    of = results.of(sweep, [chip], [dtypes])
    rows = pl.concat([_lines(of), _points(of, choice.get("shape"))]).with_columns(
        ridge=pl.when(pl.col("kind") != "point").then(pl.col("flops_per_s") / pl.col("bytes_per_s"))
    )
    return _view_of_one(of, Roof(rows), choice.get("basis", NOMINAL))


def _able(results: Results, sweep: str, chips: Sequence[str], dtypes: str) -> list[str]:
    """The chips compared that can do the dtypes; all of the sweep's if none of them can."""
    own = results.sweep(sweep)
    every = frames.able_chips(own, frames.chips_with_rows(own), dtypes)
    return [chip for chip in chips if chip in every] or every[: KIND.most_chips]


def _together(of: Selection, dtypes: str) -> View:
    """The main roof of each chip."""
    rows = ridges.ridge_frame(of).sort("flops_per_s", "ridge", descending=[True, False])
    plane = roofs.plane_of(rows)
    texts = [
        with_value(chip_label(chip), si(peak, "FLOP/s"), NAME_ROOM)
        for chip, peak in rows.select("chip", "flops_per_s").iter_rows()
    ]
    named = rows.with_columns(text=pl.Series(texts, dtype=pl.String), roof="chip")
    vendors = dict(rows.select("chip", "vendor").iter_rows())
    colour = {"line": kit.chip_colour(vendors), "text": kit.chip_colour(vendors, letters=True)}
    x, y, drawn = roofs.roof_layers(colour, "Arithmetic intensity (FLOP per byte of main memory)")
    at = {"x": x, "y": y}
    drawn.append(kit.layer("ridges", "point", "dot", {**at, "color": colour["line"]}))
    drawn += kit.labels("ridges", "value", {**at, "fill": colour["text"]})
    corners = rows.select("ridge", "flops_per_s").rows()
    labels = [Label(significant(at[0]), [at], sides=RIDGE_SIDES) for at in corners]
    paths = roofs.paths_of(rows, plane)
    numbers = labelled(TOGETHER, plane, labels, paths, [(at, DOT) for at in corners])
    unit = rows["unit"][0]
    shown = ("chip", "roof", "text", "flops_per_s", "bytes_per_s", "ridge")
    return View(
        Sentence(text=f"{dtypes} roofs of {counted(rows.height, 'chip')}, {unit} unit"),
        f"{dtypes}: dense peak of the {unit} unit over main-memory bandwidth. Dots and numbers:"
        " ridges, FLOP per byte.",
        drawn,
        {
            **roofs.data_of(named.select(shown), plane, TOGETHER),
            "ridges": rows.select("chip").hstack(numbers),
        },
        TOGETHER,
        rows,
        kit.plane_params(plane),
        tuple(vendors),
    )


def _lines(of: Selection) -> pl.DataFrame:
    """Ceilings and slopes of a chip: `kind` is `memory`, `network` or `ceiling`."""
    (case,) = of.cases()
    entry = of.sweep.chips[case.chip]
    key = {"chip": case.chip, "dtypes": case.dtypes}
    records: list[dict[str, Any]] = [
        {
            **key,
            "kind": "ceiling",
            "name": compute,
            "flops_per_s": float(math_rate(case.machine, compute).per_s),
        }
        for compute in entry.units[of.sweep.unit]
    ]
    records += [{**key, **line} for line in _bandwidths(entry, of.by_chip[case.chip], case)]
    return pl.DataFrame(records, schema=COLUMNS, orient="row")


def _bandwidths(
    entry: Chip, rows: Block[OperationCase], case: OperationCase
) -> Iterator[dict[str, Any]]:
    """Memory levels, the case's own first, and networks, with their rates.

    The network of the sweep's split is at the rate of its largest split, others at that of a pair.
    """
    machine, compute = case.machine, case.combination.compute
    peak = float(math_rate(machine, compute).per_s)
    for name in sorted(entry.memory, key=lambda level: level != rows.place.memory):
        if entry.memory[name].bytes_per_s:
            fed = replace(machine, level=entry.memory[name].exact)
            rate = float(memory_rate(fed, compute).per_s)
            yield {"kind": "memory", "name": name, "flops_per_s": peak, "bytes_per_s": rate}
    split = _of_split(rows.cases)
    whole = {part for name in split for part in name.partition(" ")[0].split("+")}
    pairs = {name: each for name, each in _of_pairs(entry, machine).items() if name not in whole}
    for name, rate in {**split, **pairs}.items():
        yield {"kind": "network", "name": name, "flops_per_s": peak, "bytes_per_s": rate}


def _of_pairs(entry: Chip, machine: Machine) -> dict[str, float]:
    """The rates of interconnects to one other chip [byte/s]."""
    share = machine.efficiency["network"]
    pairs = {name: NetworkLevel(each.exact, (PAIR,)) for name, each in entry.networks.items()}
    return {
        name: float(pair.bytes_per_s * share)
        for name, pair in pairs.items()
        if pair.link.domain != 1
    }


def _of_split(cases: Sequence[OperationCase]) -> dict[str, float]:
    """The rate of a chip's network in the largest split that sends something [byte/s]."""
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


def _points(of: Selection, shape: str | None) -> pl.DataFrame:
    """Rows on one chip as points, at powers of eight of the first dimension of several sizes."""
    several = (dim for dim in of.dims if len(dimension_sizes(of.sweep, dim)) > 1)
    lead = next(several, of.dims[0])
    others = [dim for dim in of.dims if dim != lead]
    rows = frames.with_missing(of.rows(), *BAND, "t_lower_s").filter(shards=1)
    largest = [pl.col(dim) == pl.col(dim).max() for dim in others]
    rows = rows.filter(*([pl.col("shape") == shape] if shape is not None else largest))
    points = rows.filter(pl.col(lead).is_in([8**power for power in range(14)])).select(
        "chip",
        "dtypes",
        kind=pl.lit("point"),
        name=pl.lit(lead),
        flops_per_s="attained_flops_per_s",
        bytes_per_s=pl.lit(None, dtype=pl.Float64),
        intensity="memory_intensity",
        size=pl.col(lead).cast(pl.Int64),
        shape="shape",
        **frames.calibrated_rates(ESTIMATES),
    )
    return points.unique(["size"], keep="first").sort("size").collect()


class Roof:
    """One chip in one dtype combination, and its plot.

    Args:
        rows: Lines and points, as the kind `roofline` makes them.
    """

    def __init__(self, rows: pl.DataFrame) -> None:
        self.rows = rows
        lines = rows.filter(pl.col("kind").is_in(["memory", "network"]))
        self.slopes = lines.sort("bytes_per_s", descending=True, maintain_order=True).to_dicts()
        self.main = lines.filter(kind="memory").row(0, named=True)
        self.points = rows.filter(kind="point").to_dicts()
        self.peak: float = self.main["flops_per_s"]
        grouped: dict[float, list[str]] = {}
        for name, peak in rows.filter(kind="ceiling").select("name", "flops_per_s").iter_rows():
            grouped.setdefault(peak, []).append(name)
        self.ceilings = dict(sorted(grouped.items(), reverse=True))
        at = [*(row["ridge"] for row in self.slopes), *(row["intensity"] for row in self.points)]
        self.low, self.high = 10.0 ** math.floor(math.log10(min(at) * 0.55)) * 3, max(at) * 4
        top = max([*self.ceilings, self.peak]) * 1.9
        self.bottom = min(self.main["bytes_per_s"] * self.low / 1.6, top / 1e4)
        self.plane = Plane((self.low, self.high), (self.bottom, top))

    def path(self, bytes_per_s: float, peak: float) -> list[Point]:
        """As `roofs.corners`."""
        return roofs.corners(bytes_per_s, peak, self.plane)

    def data(self, margins: Margins) -> dict[str, pl.DataFrame]:
        """The rows of every layer."""
        main, highest = self.path(self.main["bytes_per_s"], self.peak), max(self.ceilings)
        slopes, ceilings = [], []
        for slope in self.slopes:
            to = highest if slope["kind"] == "memory" else self.peak
            about = (part_name(slope["name"]), slope["bytes_per_s"], slope["ridge"])
            slopes += [(*about, *point) for point in self.path(slope["bytes_per_s"], to)[:2]]
        fastest = max(row["bytes_per_s"] for row in self.slopes if row["kind"] == "memory")
        for peak, named in self.ceilings.items():
            start = max(self.low, peak / fastest)
            ceilings += [(", ".join(named), peak, x, peak) for x in (start, self.high)]
        regions = [
            (region, x, y, self.bottom)
            for region, ends in zip(REGIONS, pairwise(main), strict=True)
            for x, y in ends
        ]
        made: dict[str, tuple[tuple[str, ...], Sequence[tuple[Any, ...]]]] = {
            "region": (("region", "x", "y", "y2"), regions),
            "ceiling": (("name", "peak", "x", "y"), ceilings),
            "slope": (("name", "bytes_per_s", "ridge", "x", "y"), slopes),
            "ridge": (("x", "y", "y2"), [(self.main["ridge"], self.bottom, self.peak)]),
            "roof": (("x", "y"), main),
        }
        drawn = {
            name: pl.DataFrame(rows, schema=list(columns), orient="row")
            for name, (columns, rows) in made.items()
        }
        points = self.rows.filter(kind="point").rename({"intensity": "x", "flops_per_s": "y"})
        drawn["point"] = points.select("x", "y", "size", "shape", *ESTIMATES)
        flat, along = [*self._labels()], [*self._along_slopes()]
        lines = [
            *(self.path(slope["bytes_per_s"], self.peak)[:2] for slope in self.slopes),
            *(self.path(self.main["bytes_per_s"], peak)[1:] for peak in self.ceilings),
            [(self.main["ridge"], self.peak), (self.main["ridge"], self.bottom)],
        ]
        dots = [((row["intensity"], row["flops_per_s"]), DOT) for row in self.points]
        labels = labelled(margins, self.plane, [*flat, *along], lines, dots)
        return {**drawn, "labels": labels[: len(flat)], "along": labels[len(flat) :]}

    def _labels(self) -> Iterator[Label]:
        """The names of regions, the ridge, ceilings and points."""
        main, bottom = self.path(self.main["bytes_per_s"], self.peak), self.bottom
        for region, (left, right) in zip(REGIONS, pairwise(x for x, _ in main), strict=True):
            middle = (math.sqrt(left * right), bottom)
            yield Label(f"{region}-bound", [middle], region, places=AT_FOOT, span=(left, right))
        ridge = f"ridge · {significant(self.main['ridge'])} FLOP/byte"
        yield Label(ridge, [(self.main["ridge"], bottom)], places=AT_RIDGE)
        for peak, names in self.ceilings.items():
            text = f"{', '.join(names)} · {si(peak, 'FLOP/s')}"
            style = "strong" if peak == self.peak else "note"
            yield Label(text, [(self.high, peak)], style, places=AT_CEILING)
        for row in self.points:
            at = (row["intensity"], row["flops_per_s"])
            yield Label(f"{row['name']} = {count(row['size'])}", [at], "label", sides=POINT_SIDES)

    def _along_slopes(self) -> Iterator[Label]:
        """The bandwidths."""
        for slope in self.slopes:
            text = f"{part_name(slope['name'])} · {si(slope['bytes_per_s'], 'B/s')}"
            style = "strong" if slope["name"] == self.main["name"] else "note"
            start, end, _ = self.path(slope["bytes_per_s"], self.peak)
            yield Label(text, [start], style, to=end)


def _view_of_one(of: Selection, roof: Roof, basis: str) -> View:
    """The roofline of one chip."""
    main, chip, dtypes = roof.main, of.chips[0], of.dtypes[0]
    level, unit = part_name(main["name"]), of.sweep.unit
    ridge = significant(main["ridge"])
    shape = next((point["shape"] for point in roof.points if point["shape"]), None)
    dots = f" Dots: {shape or 'the largest matrices'}." if roof.points else ""
    if basis == CALIBRATED:
        dots += " Pale: nominal; dark: calibrated, p10 to p90."
    rates = f"{si(roof.peak, 'FLOP/s')}, {level} at {si(main['bytes_per_s'], 'B/s')}"
    row = {"chip": chip, "dtypes": dtypes, "unit": unit, "ridge": main["ridge"]}
    text = f"{chip_label(chip)}, {dtypes} {unit} unit: {level} ridge {ridge} FLOP/byte"
    return View(
        first_true([Sentence(text=text, rows=[row], chosen=chip, ridge=True)]),
        f"{dtypes} in the {unit} unit at {rates}.{dots}",
        _layers(calibrated=basis == CALIBRATED),
        roof.data(MARGINS),
        MARGINS,
        roof.rows,
        kit.plane_params(roof.plane),
        (chip, dtypes),
    )


def _layers(*, calibrated: bool) -> list[Layer]:
    """Regions, then lines, then points and labels."""
    x = kit.quantity("x", **kit.log_axis("x", ACROSS, kit.SHORT_LABEL))
    y = kit.quantity("y", **kit.log_axis("y", "Attainable FLOP/s"))
    at: Layer = {"x": x, "y": y}
    to = {**at, "y2": {"field": "y2"}}
    colour = kit.name(
        "region", legend=None, scale={"domain": list(frames.TIMES), "range": "ordinal"}
    )
    peak = kit.tips(name="name", peak="peak FLOP/s")
    rate = kit.tips(name="name", bytes_per_s="byte/s", ridge="ridge, FLOP/byte")
    each = {"detail": kit.name("name")}
    drawn = [
        kit.layer("region", "area", "region", {**to, "color": colour}),
        kit.layer("ceiling", "line", "context", {**at, **each, "tooltip": peak}),
        kit.layer("slope", "line", "context", {**at, **each, "tooltip": rate}),
        kit.layer("ridge", "rule", "rule", to),
        kit.layer("roof", "line", "roof", at),
        *_point_layers(at, calibrated=calibrated),
    ]
    for style in ("strong", "label", "note", *REGIONS):
        drawn += kit.labels("labels", style, at, where=f"datum.style == '{style}'")
    for style in ("strong", "note"):
        where = f"datum.style == '{style}'"
        drawn += kit.labels("along", style, at, where=where, angle=kit.expr(SLOPE_ANGLE))
    return drawn


def _point_layers(at: Layer, *, calibrated: bool) -> list[Layer]:
    """Operating points; calibrated ones with their bands, the nominal pale."""
    tips = kit.tips(shape="shape", size="size", x="FLOP/byte", y="attained FLOP/s")
    if not calibrated:
        return [kit.layer("point", "point", "ink-dot", {**at, "tooltip": tips})]
    tips += kit.tips(estimate="calibrated FLOP/s", slow="at p90", fast="at p10")
    known = "datum.estimate != null"
    band = {**at, "y": {**at["y"], "field": "slow"}, "y2": {"field": "fast"}, "tooltip": tips}
    dark = {**at, "y": {**at["y"], "field": "estimate"}, "tooltip": tips}
    return [
        kit.layer("point", "point", "ink-dot", {**at, "tooltip": tips}, opacity=0.35),
        kit.layer("point", "rule", "band", band, where=known, clip=True),
        kit.layer("point", "point", "ink-dot", dark, where=known, clip=True),
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
    compares=True,
)
