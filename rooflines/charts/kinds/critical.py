"""The critical size over two others: a map with numbers."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import count
from rooflines.charts.basis import NOMINAL, SIZES, basis_choice, basis_names, basis_text
from rooflines.charts.cells import (
    below_text,
    cell_marks,
    cells_by_basis,
    lowest_sizes,
    middles,
    number_marks,
    size_axes,
    with_room,
)
from rooflines.charts.chart import Chart
from rooflines.charts.claims import Finding, claim, ends, over, solved
from rooflines.charts.frames import (
    CELL_COLUMNS,
    SHARES,
    SPLIT,
    apart,
    first_shown,
    reached_text,
    share_tooltip,
    span_of,
    unsharded,
    with_edges,
    with_shares,
)
from rooflines.charts.kit.drawing import Choice, assemble, chosen, starting
from rooflines.charts.kit.place import Plane
from rooflines.charts.kit.text import on_chips, sizes_text, split_text
from rooflines.charts.kit.themes import Margins
from rooflines.charts.needs import BOTH_FREE, SOLVED_LEAD, TWO_OTHERS, need
from rooflines.charts.offers import pair_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.results import Selection

__all__ = ["critical", "critical_frame"]

MARGINS = Margins(left=4.2, right=8.6)

BY = ("chip", "dtypes")
"""What a reader chooses."""


def critical_frame(of: Selection) -> pl.DataFrame:
    """The critical batch over two other sizes of an operation, the others having one value each.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep with thresholds of its first
            dimension.

    Returns:
        `chip`, `dtypes`, `sharding`, `network` and `shards`, the sizes `x` and `y` with the edges
        of their cells (`x_low`, `x_high`, ...), `critical` [1] (null: never), `critical_estimate`
        [1] (null: never, where `calibrated`), `exact` [1], `rule` [1], `limit_intensity`
        [FLOP/byte]; `near`, `reached` and `share`, from `share_values`; `setting`, the
        further sizes.
    """
    need(CHART, of.sweep)
    across, up = pair = pair_of(of.sweep)
    frame = unsharded(of).collect()
    for dim in (across, up):
        frame = frame.filter(pl.col(dim).is_in(apart(sorted(frame[dim].unique().to_list()))))
    frame = with_shares(frame, of, of.dims[0], (across, up))
    frame = with_edges(frame, x=across, y=up)
    held = {dim: frame[dim][0] for dim in of.dims[1:] if dim not in pair and frame.height}
    setting = "".join(f", {dim} = {size:,}" for dim, size in held.items())
    kept = ("chip", "dtypes", *SPLIT, *CELL_COLUMNS, *SIZES, "limit_intensity", *SHARES)
    frame = frame.with_columns(calibrated=of.calibrated())
    return frame.select(
        *kept, exact="critical_exact", rule="critical_rule", setting=pl.lit(setting)
    )


def critical(
    frame: pl.DataFrame,
    *,
    dims: Sequence[str] = ("D", "F"),
    size: str = "B",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
) -> alt.LayerChart:
    """The smallest compute-bound batch over two sizes, with numbers; never is an area of its own.

    Args:
        frame: From `critical_frame`: `critical` [1] for every pair of sizes, null for never.
        dims: The names of the sizes across and up.
        size: What is solved for.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.

    Returns:
        A chart with the parameters `chip`, `dtypes`, and `basis` where chips are calibrated.
    """
    chips, combinations = (frame[name].unique(maintain_order=True).to_list() for name in BY)
    span = span_of(frame)
    cells, numbers = cells_by_basis(frame, BY)
    cells = cells.drop("setting")
    names = (*BY, *basis_names(frame))
    plane = Plane(span[:2], span[2:])
    numbers = with_room(numbers, MARGINS, partial(_rooms, numbers, plane))
    findings = {
        "|".join(map(str, key)): _finding(case, key, (dims, size), title)
        for key, case in numbers.group_by(names, maintain_order=True)
    }
    xs, ys = sorted(frame["x"].unique().to_list()), sorted(frame["y"].unique().to_list())
    across, up = size_axes(span, (dims[0], dims[1]), (xs, ys))
    now = chosen(*BY)
    position = {
        "x": alt.X("x_low:Q", **across),
        "x2": alt.X2("x_high:Q"),
        "y": alt.Y("y_low:Q", **up),
        "y2": alt.Y2("y_high:Q"),
        "tooltip": _about(cells, dims, size),
    }
    texts = number_marks(
        numbers.with_columns(**middles()),
        chosen(*names),
        (*names, "middle_x", "middle_y"),
        alt.X("middle_x:Q"),
        alt.Y("middle_y:Q"),
    )
    choices = [Choice("chip", chips), Choice("dtypes", combinations), *basis_choice(frame)]
    return assemble(
        [*cell_marks(cells, now, size, position), *texts],
        findings,
        starting(choices, first),
        MARGINS,
        lowest_sizes(numbers, BY),
    )


def _about(cells: pl.DataFrame, dims: Sequence[str], size: str) -> list[Any]:
    """The tooltip of a cell."""
    return [
        "chip:N",
        "dtypes:N",
        alt.Tooltip("x:Q", title=dims[0], format=",d"),
        alt.Tooltip("y:Q", title=dims[1], format=",d"),
        alt.Tooltip("text:N", title=f"critical {size}"),
        alt.Tooltip("exact:Q", title="exactly", format=",.2f"),
        *share_tooltip(cells),
        alt.Tooltip("rule:Q", title="rule of thumb", format=",.1f"),
    ]


def _rooms(
    cells: pl.DataFrame, plane: Plane, plot: tuple[float, float]
) -> list[tuple[float, float]]:
    """Width and height that the text of each cell may have [em]."""
    across = {x: plane.at(plot, x, plane.y[0])[0] for x in _edges(cells, "x")}
    down = {y: plane.at(plot, plane.x[0], y)[1] for y in _edges(cells, "y")}
    edges = cells.select("x_low", "x_high", "y_low", "y_high").iter_rows()
    return [
        (across[right] - across[left] - 0.25, down[bottom] - down[top])
        for left, right, bottom, top in edges
    ]


def _edges(cells: pl.DataFrame, axis: str) -> set[float]:
    """The edges of all cells along an axis."""
    return {*cells[f"{axis}_low"], *cells[f"{axis}_high"]}


def _finding(
    case: pl.DataFrame,
    key: Sequence[object],
    sizes: tuple[Sequence[str], str],
    title: str | None,
) -> Finding:
    """Title and subtitle: what the sizes shown need, or which of them are never compute-bound."""
    (dims, size), (chip, combination, *basis) = sizes, map(str, key)
    rule = case["rule"].drop_nulls()
    limit = f" Large matrices: {count(math.ceil(rule[0]))}." if len(rule) else ""
    shards = case["shards"].unique().to_list()
    split = split_text(str(case["sharding"][0]), shards, case["network"])
    name = on_chips(chip, shards)
    cells = case.select("critical", "reached", "share").rows()
    setting = f"{split}{case['setting'][0]}"
    subtitle = (
        f"Smallest compute-bound {size} for {combination} on {name}{setting}, every byte counted."
        f"{limit}{reached_text(cells)}{below_text(case)}{basis_text(case, *basis)}"
    )
    never = case.filter(pl.col("critical").is_null())
    if title:
        return Finding(title, subtitle)
    shown = over(case, *BY, "sharding", "shards") | solved(size)
    shown |= {dim: sorted(case[axis].unique()) for dim, axis in zip(dims, "xy", strict=True)}
    about = partial(claim, of="critical", basis=basis[0] if basis else NOMINAL)
    if never.height == case.height:
        title = f"None of these sizes is ever compute-bound on {name}"
        return Finding(title, subtitle, about("never", rows=shown, value=None))
    if not never.height:
        by_size = ", by size" if case["critical"].n_unique() > 1 else ""
        title = f"{name} needs {sizes_text(size, case['critical'])}{by_size}"
        return Finding(title, subtitle, about("range", rows=shown, value=ends(case["critical"])))
    square = never.filter(pl.col("x") == pl.col("y"))
    if square.height:
        largest = max(square["x"])
        title = f"{dims[0]} = {dims[1]} = {largest:,} is never compute-bound on {name}"
        shown |= {dim: [largest] for dim in dims}
        return Finding(title, subtitle, about("never", rows=shown, value=None))
    title = f"{never.height:,} of {case.height:,} sizes are never compute-bound on {name}"
    found = about("nulls", rows=shown, value=[never.height, case.height])
    return Finding(title, subtitle, found)


CHART = Chart(
    name="critical",
    family="critical",
    heading="Critical batch size",
    caption=(
        "The smallest compute-bound size for every pair of the other two, exact to the last "
        "integer; the smaller number is for a smaller share of the peak. Grey is never. "
        "Calibrated, the numbers are by the calibration of each chip, where it has one."
    ),
    order=40,
    needs=(TWO_OTHERS, SOLVED_LEAD, BOTH_FREE),
    most_chips=4,
    frame=lambda of, _: critical_frame(of),
    draw=lambda frame, of, spec: critical(
        frame,
        dims=pair_of(of.sweep),
        size=of.dims[0],
        first=first_shown(frame, spec, "chip", "dtypes"),
        title=spec.title,
    ),
)
