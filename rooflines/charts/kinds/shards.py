"""Thresholds over the number of chips that share the work: from where on splitting does not pay."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.lazy import alt, pl
from rooflines.charts.basis import SIZES, basis_choice, basis_names, critical_views, with_both
from rooflines.charts.chart import Chart, Need
from rooflines.charts.claims import held
from rooflines.charts.comparing import BESIDE, EVERY, added_parameters, beneath
from rooflines.charts.frames import SHARES, SPLIT, at_largest, first_shown, with_shares
from rooflines.charts.kinds.shards_lines import Line, Setting, finding_of, lines_of
from rooflines.charts.kinds.shards_marks import BY_BASIS, marks_of
from rooflines.charts.kinds.shards_scale import MOST_LANES, Scale
from rooflines.charts.kit.drawing import Choice, assemble, chip_scale, starting
from rooflines.charts.kit.ends import end_places
from rooflines.charts.kit.place import Place, Plane, placed
from rooflines.charts.kit.text import chip_label, over_text, part_name, shorten
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import by_shards, need
from rooflines.charts.offers import SHORT_AXIS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.chart import Spec
    from rooflines.charts.results import Selection

__all__ = ["critical_over_shards", "shards_frame"]

MARGINS = Margins(left=4.6, right=12.5)
NAME_ROOM = 11.6

NO_SPAN = "{low: 1, never: 10, high: 10, left: 1, right: 2, lanes: 1, ticks: [], across: []}"
"""The scales of a choice without data, as an expression."""


class Together(NamedTuple):
    """Lines that are drawn together for one choice.

    Attributes:
        chip: The chip that is added to those compared, the last of the lines; `EVERY` for none.
        of: What the lines have in common.
        lines: The lines.
        scale: Their scales.
    """

    chip: str
    of: Setting
    lines: Sequence[Line]
    scale: Scale


def shards_frame(of: Selection, axis: str | None = None, shape: str | None = None) -> pl.DataFrame:
    """The critical size over the number of chips that share the work.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep with several numbers of
            shards.
        axis: The size solved for; the first that the thresholds have.
        shape: Which of its shapes; without shapes the largest sizes.

    Returns:
        `chip`, `vendor`, `dtypes`, `sharding`, `network`, `shards` [1], `critical` [1] (null:
        never), `critical_estimate` [1] (null: never, where `calibrated`), `limit`, and
        `most`: the largest number of chips that is still compute-bound at some size [1], null for
        none; `setting`: what is held fixed; `near`, `reached` and `share`, from `share_values`.
    """
    need(CHART, of.sweep, axis=axis, shape=shape)
    axis = axis or _solved_axis(of)
    fixed = [dim for dim in of.dims if dim != axis]
    rows = of.thresholds().filter(pl.col("axis") == axis)
    frame = at_largest((rows.filter(shape=shape) if shape else rows).collect(), fixed)
    frame = frame.filter(pl.col("shards") > 1) if 1 not in of.sweep.counts else frame
    vendors = {chip: of.sweep.chips[chip].vendor or "" for chip in of.by_chip}
    frame = frame.with_columns(
        vendor=pl.col("chip").replace_strict(vendors, default="", return_dtype=pl.String)
    )
    frame = with_shares(frame, of, axis, ["shape", *fixed])
    frame = frame.with_columns(calibrated=of.calibrated())
    kept = (
        "chip",
        "vendor",
        "dtypes",
        *SPLIT,
        "shape",
        *fixed,
        *SIZES,
        "limit",
        "setting",
        *SHARES,
    )
    frame = frame.select(kept)
    still = (
        frame.filter(pl.col("critical").is_not_null())
        .group_by("chip", "dtypes", "sharding")
        .agg(most=pl.col("shards").max())
    )
    return frame.join(still, on=["chip", "dtypes", "sharding"], how="left").sort(
        "sharding", "dtypes", "chip", "shards"
    )


def _solved_axis(of: Selection) -> str:
    """The first dimension that the sweep has thresholds of."""
    return next(name for name in of.sweep.solved if name in of.dims)


def critical_over_shards(
    frame: pl.DataFrame,
    *,
    size: str = "B",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
    added: Sequence[str] = (),
) -> alt.LayerChart:
    """The smallest compute-bound size over the number of chips; never is an area of its own.

    Args:
        frame: From `shards_frame`: `critical` [1] over `shards` [1].
        size: What is solved for.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.
        added: Chips that are only shown where the reader chooses them.

    Returns:
        A chart with the parameters `dtypes`, `sharding`, `chip` for the one to highlight, and
        `basis` where chips are calibrated.
    """
    compared = frame.filter(~pl.col("chip").is_in(added))
    chips = compared["chip"].unique(maintain_order=True).to_list()
    points, drawn = _drawn(frame, size, added)
    names = basis_names(frame)
    findings, edges = {}, {}
    for one in drawn:
        rest = [one.of.dtypes, one.of.sharding, *(one.of.basis for _ in names)]
        edges["|".join([one.chip, *rest])] = one.scale.values()
        finding = finding_of(one.lines, one.of).titled(title)
        for chip in (EVERY, *chips) if one.chip == EVERY else (one.chip,):
            findings["|".join([chip, *rest])] = finding
    combinations, shardings = (
        frame[name].unique(maintain_order=True).to_list() for name in ("dtypes", "sharding")
    )
    choices = [
        Choice("chip", [EVERY, *chips, *added]),
        Choice("dtypes", combinations),
        Choice("sharding", shardings, "Split"),
        *basis_choice(frame),
    ]
    shown_with = BESIDE if added else f"'{EVERY}'"
    key = " + '|' + ".join([shown_with, "dtypes", "sharding", *names])
    return assemble(
        marks_of(points, _ends(drawn), size, chip_scale(frame)),
        findings,
        starting(choices, first),
        MARGINS,
        [
            *added_parameters(added),
            alt.param(name="edges", value=edges),
            alt.param(name="span", expr=f"edges[{key}] || {NO_SPAN}"),
        ],
    )


def _drawn(
    frame: pl.DataFrame, size: str, added: Sequence[str]
) -> tuple[pl.DataFrame, list[Together]]:
    """The points of all lines, and the lines that are drawn together."""
    across = _across(frame, added)
    points: list[pl.DataFrame] = []
    drawn: list[Together] = []
    for _, case in frame.group_by("dtypes", "sharding", maintain_order=True):
        views = {}
        for basis, view in critical_views(case).items():
            together = _together(view, _setting(view, size, basis), added, across)
            views[basis] = view.with_columns(beneath=_beneath(together))
            drawn += together
        points.append(_with_lanes(with_both(views, BY_BASIS), added))
    return pl.concat(points), drawn


def _across(frame: pl.DataFrame, added: Sequence[str]) -> dict[str, tuple[int, int]]:
    """The least and the largest number of chips of those compared, and with each one added [1]."""
    by_chip = frame.group_by("chip").agg(low=pl.col("shards").min(), high=pl.col("shards").max())
    found = {chip: (low, high) for chip, low, high in by_chip.iter_rows()}
    lows, highs = zip(*(found[chip] for chip in found if chip not in added), strict=True)
    low, high = min(lows), max(highs)
    beside = {
        chip: (min(low, least), max(high, most))
        for chip, (least, most) in found.items()
        if chip in added
    }
    return {EVERY: (low, high), **beside}


def _setting(view: pl.DataFrame, size: str, basis: str) -> Setting:
    """What all lines of a view have in common."""
    return Setting(
        dtypes=view["dtypes"][0],
        sharding=view["sharding"][0],
        basis=basis,
        size=size,
        held=held(view),
        text=view["setting"][0],
        batch=view["B"][0] if "B" in view.columns else None,
    )


def _together(
    view: pl.DataFrame,
    of: Setting,
    added: Sequence[str],
    across: Mapping[str, tuple[int, int]],
) -> list[Together]:
    """The lines compared, if there are any, and these with each one that is added."""
    lines = lines_of(view)
    own = [line for line in lines if line.chip not in added]
    shown = {EVERY: own} if own else {}
    shown |= {line.chip: [*own, line] for line in lines if line.chip in added}
    return [
        Together(chip, of, beside, Scale(beside, across[chip])) for chip, beside in shown.items()
    ]


def _beneath(together: Sequence[Together]) -> pl.Expr:
    """How many of the lines compared run along each; none along one that is added to them."""
    counts: dict[str, int] = {}
    if together[0].chip == EVERY:
        low, high = together[0].scale.low, together[0].scale.high
        heights = {
            line.chip: {
                point.shards: math.log(point.critical / low, high / low)
                for point in line.points
                if point.critical is not None
            }
            for line in together[0].lines
        }
        counts = beneath(heights)
    return pl.col("chip").replace_strict(counts, default=0, return_dtype=pl.Int64)


def _with_lanes(points: pl.DataFrame, added: Sequence[str]) -> pl.DataFrame:
    """With `lane`, the row of a chip's crosses, its interconnect as `link`, and `added`."""
    chips = [chip for chip in points["chip"].unique(maintain_order=True) if chip not in added]
    lanes = {chip: lane % MOST_LANES for lane, chip in enumerate(chips)}
    names = {name: part_name(name) for name in points["network"].drop_nulls().unique()}
    lane = pl.col("chip").replace_strict(
        lanes, default=len(chips) % MOST_LANES, return_dtype=pl.Int64
    )
    link = pl.col("network").replace_strict(names, default="", return_dtype=pl.String)
    points = points.with_columns(lane=lane, link=link)
    return points.with_columns(added=pl.col("chip").is_in(added)) if added else points


def _ends(drawn: Sequence[Together]) -> pl.DataFrame:
    """The chips' names at the ends of their lines."""
    records: list[tuple[str | float, ...]] = []
    heights: list[tuple[Plane, list[float]]] = []
    for chip, of, lines, scale in drawn:
        at = sorted(
            ((scale.end(line, lane), line) for lane, line in enumerate(lines)),
            key=lambda end: -end[0],
        )
        mixed = not over_text(network for line in lines for network in line.networks)
        for y, line in at:
            network = line.points[-1].network if mixed else None
            text = _name(line.chip, network)
            records.append((chip, of.dtypes, of.sharding, of.basis, line.chip, y, text))
        # only heights are needed
        heights.append((Plane((1, 2), (scale.low, scale.high)), [y for y, _ in at]))

    def places(plot: tuple[float, float]) -> list[Place | None]:
        return [
            place
            for plane, ys in heights
            for place in end_places([plane.at(plot, 2, y)[1] for y in ys], plot[1])
        ]

    columns = ("chip", "dtypes", "sharding", "basis", "line", "y", "text")
    schema = {name: pl.Float64 if name == "y" else pl.String for name in columns}
    return pl.DataFrame(records, schema=schema, orient="row").hstack(placed(MARGINS, places))


@cache
def _name(chip: str, network: str | None) -> str:
    """What a line is called, with its interconnect if there is one to name."""
    link = f" · {part_name(network)}" if network else ""
    return shorten(f"{chip_label(chip)}{link}", NAME_ROOM, bold=True, tail=True)


def _draw(frame: pl.DataFrame, of: Selection, spec: Spec) -> alt.LayerChart:
    """The chart of a spec."""
    return critical_over_shards(
        frame,
        size=_solved_axis(of),
        first=first_shown(frame, spec, "dtypes", "sharding"),
        title=spec.title,
        added=spec.added,
    )


CHART = Chart(
    name="shards",
    family="shards",
    heading="Splitting over chips",
    caption=(
        "The smallest compute-bound size over the number of chips, against memory and network. "
        "Crosses are never compute-bound, hollow dots are for a smaller share of the peak."
    ),
    order=60,
    needs=(
        Need(
            "`thresholds` of a dimension, with 1 among its `shares`",
            lambda s: any(axis in s.op.dims for axis in s.solved) and 1 in s.config.shares,
        ),
        Need("several numbers of chips in `shards`", lambda s: len(s.counts) > 1),
        Need(
            f"{SHORT_AXIS} numbers of chips in `shards`",
            lambda s: len(s.counts) >= SHORT_AXIS,
            auto=True,
        ),
    ),
    preferred=by_shards,
    fills=frozenset({"shape", "sharding"}),
    most=3,
    frame=lambda of, spec: shards_frame(of, _solved_axis(of), spec.shape),
    draw=_draw,
)
