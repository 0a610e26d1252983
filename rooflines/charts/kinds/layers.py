"""The critical batch of a model's layers, a row for each chip."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import alt, pl
from rooflines.charts.basis import NOMINAL, SIZES, basis_choice, basis_names, basis_text
from rooflines.charts.cells import (
    below_text,
    cell_marks,
    cells_by_basis,
    lowest_sizes,
    number_marks,
    with_room,
)
from rooflines.charts.chart import Chart, Need
from rooflines.charts.claims import Finding, claim, ends, over, solved
from rooflines.charts.comparing import (
    ADDED,
    CHIP_MARGIN,
    EVERY,
    added_parameters,
    chip_axis,
    evenly,
    heading,
    highlight,
    row_of,
    shown_of,
)
from rooflines.charts.frames import (
    SPLIT,
    first_shown,
    reached_text,
    share_tooltip,
    unsharded,
    with_shares,
)
from rooflines.charts.kit.drawing import Choice, assemble, chosen, starting
from rooflines.charts.kit.place import LAYOUTS
from rooflines.charts.kit.text import chip_label, shorten, sizes_text, split_text
from rooflines.charts.kit.themes import Margins, plot_size
from rooflines.charts.models import layers_run
from rooflines.charts.needs import BY_SHAPE, OTHER_DIMS, SOLVED_LEAD, need
from rooflines.charts.planes import pictured

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.results import Selection

__all__ = ["critical_of_layers", "layer_frame"]

MARGINS = Margins(left=CHIP_MARGIN, right=8.6)


def layer_frame(of: Selection, shapes: Mapping[str, str]) -> pl.DataFrame:
    """The critical batch of a model's layers by chip.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep with shapes and
            thresholds of its first dimension.
        shapes: The shapes to show, by the names of their layers.

    Returns:
        `chip`, `dtypes`, `sharding`, `network` and `shards`, `layer`, the sizes as text, `critical`
        [1] (null: never), `critical_estimate` [1] (null: never, where `calibrated`), `exact`
        [1]; `near`, `reached` and `share`, from `share_values`.
    """
    need(CHART, of.sweep, shapes=list(shapes.values()))
    dims = of.dims[1:]
    layers = pl.DataFrame(
        {"shape": list(shapes.values()), "layer": list(shapes)},
        schema={"shape": pl.String, "layer": pl.String},
    )
    rows = unsharded(of).join(layers.lazy(), on="shape", maintain_order="right_left")
    sizes = pl.concat_str([pl.format(f"{dim} = {{}}", pl.col(dim)) for dim in dims], separator=", ")
    rows = rows.with_columns(calibrated=of.calibrated())
    kept = ("chip", "dtypes", *SPLIT, "shape", "layer", *SIZES)
    found = rows.select(*kept, sizes=sizes, exact="critical_exact").collect()
    return with_shares(found, of, of.dims[0], ("shape",))


def critical_of_layers(  # noqa: PLR0913, all but the first have a default
    frame: pl.DataFrame,
    *,
    model: str = "",
    size: str = "B",
    first: Mapping[str, Any] | None = None,
    title: str | None = None,
    added: Sequence[str] = (),
    added_dtypes: Sequence[str] = (),
) -> alt.LayerChart:
    """The critical batch of a model's layers, a row for each chip.

    Args:
        frame: From `layer_frame`: `critical` [1] by chip and layer, null for never.
        model: What the subtitle calls the model.
        size: What is solved for.
        first: The initial choices by parameter; the first of the frame by default.
        title: Replaces the finding.
        added: Chips that are shown below the others only where the reader chooses them.
        added_dtypes: Dtype combinations that do not count for the order of chips.

    Returns:
        A chart with the parameters `dtypes`, `chip` for the one to highlight, and `basis` where
        chips are calibrated.
    """
    compared = frame.filter(~pl.col("chip").is_in(added))
    order = compared["chip"].unique(maintain_order=True).to_list()
    layers = frame["layer"].unique(maintain_order=True).to_list()
    chips = evenly(_ranked(pictured(frame, added, added_dtypes)))
    column = pl.col("layer").replace_strict(
        {layer: column for column, layer in enumerate(layers)}, return_dtype=pl.Float64
    )
    rows = _rows(frame, chips, added).with_columns(column=column)
    combinations = rows["dtypes"].unique(maintain_order=True).to_list()
    rows = rows.with_columns(left=pl.col("column") - 0.5, right=pl.col("column") + 0.5)
    cells, numbers = cells_by_basis(rows, ["dtypes"])

    def rooms(plot: tuple[float, float]) -> list[tuple[float, float]]:
        return [(_text_room(plot, len(layers)), plot[1] / len(chips))] * numbers.height

    numbers = with_room(numbers, MARGINS, rooms)
    findings: dict[str, Finding] = {}
    for key, case in numbers.group_by("dtypes", *basis_names(rows), maintain_order=True):
        for chip, part in _shown(case, added).items():
            finding = _finding(part, key, model, size).adding(shown_of(chips, order)).titled(title)
            others = [one for one in order if one not in chips] if chip == EVERY else []
            findings |= {"|".join(map(str, (one, *key))): finding for one in (chip, *others)}
    choices = [Choice("chip", [EVERY, *order, *added]), Choice("dtypes", combinations)]
    return assemble(
        _marks((cells, numbers), chips, _layer_axis(layers, model), size),
        findings,
        starting([*choices, *basis_choice(rows)], first),
        MARGINS,
        [*lowest_sizes(numbers, ["dtypes"]), *added_parameters(added)],
    )


def _shown(case: pl.DataFrame, added: Sequence[str]) -> dict[str, pl.DataFrame]:
    """The rows of the chips compared, under `EVERY`, and those of each chip."""
    compared = case.filter(~pl.col("chip").is_in(added))
    every = {EVERY: compared} if compared.height else {}
    return every | {str(chip): part for (chip,), part in case.group_by("chip", maintain_order=True)}


def _ranked(frame: pl.DataFrame) -> list[str]:
    """The chips by their mean critical size, the smallest first."""
    means = frame.group_by("chip", maintain_order=True).agg(pl.col("critical").mean())
    return means.sort("critical", nulls_last=True)["chip"].to_list()


def _rows(frame: pl.DataFrame, chips: Sequence[str], added: Sequence[str]) -> pl.DataFrame:
    """The cells of chips, and of those `added` in a last row: `row` with its edges."""
    rows = frame.filter(pl.col("chip").is_in(chips)).with_columns(row=row_of(chips))
    if added:
        below = frame.filter(pl.col("chip").is_in(added), pl.col("dtypes").is_in(rows["dtypes"]))
        below = below.with_columns(row=float(len(chips)))
        rows = pl.concat([rows, below]).with_columns(added=pl.col("row") == len(chips))
    return rows.with_columns(low=pl.col("row") - 0.5, high=pl.col("row") + 0.5)


def _text_room(plot: tuple[float, float], layers: int) -> float:
    """Width of text that a column has room for [em]."""
    return plot[0] / layers - 0.3


def _layer_axis(layers: Sequence[str], model: str) -> dict[str, Any]:
    """Scale and axis with a column for each layer."""
    names = {
        layout: json.dumps([shorten(name, room, tail=True) for name in layers])
        for layout, size in LAYOUTS.items()
        for room in [_text_room(plot_size(size, MARGINS), len(layers))]
    }
    axis = alt.Axis(
        values=list(range(len(layers))),
        labelExpr=f"(narrow ? {names['narrow']} : {names['wide']})[datum.value]",
        title=f"Layers of {chip_label(model)}" if model else "Layers",
        grid=False,
        ticks=False,
        domain=False,
    )
    scale = alt.Scale(domain=[-0.5, len(layers) - 0.5], nice=False, zero=False)
    return {"scale": scale, "axis": axis}


def _marks(
    drawn: tuple[pl.DataFrame, pl.DataFrame],
    chips: Sequence[str],
    across: Mapping[str, Any],
    size: str,
) -> list[alt.Chart]:
    """Cells, and the numbers of those that have room."""
    cells, numbers = drawn
    of_added = ["added"] if "added" in cells.columns else []
    down = chip_axis(chips, added=bool(of_added))
    now = " && ".join([chosen("dtypes"), *([ADDED] if of_added else [])])
    position = {
        "x": alt.X("left:Q", **across),
        "x2": alt.X2("right:Q"),
        "y": alt.Y("low:Q", **down),
        "y2": alt.Y2("high:Q"),
        "tooltip": [
            alt.Tooltip("chip:N"),
            alt.Tooltip("layer:N"),
            alt.Tooltip("sizes:N"),
            alt.Tooltip("text:N", title=f"critical {size}"),
            alt.Tooltip("exact:Q", title="exactly", format=",.2f"),
            *share_tooltip(cells),
        ],
    }

    names = basis_names(cells)
    return [
        *cell_marks(cells, now, size, position, opacity=highlight()),
        heading(f"Smallest compute-bound {size}"),
        *number_marks(
            numbers,
            " && ".join([now, *map(chosen, names)]),
            ("chip", "dtypes", *names, *of_added, "row", "column"),
            alt.X("column:Q", **across),
            alt.Y("row:Q", **down),
        ),
    ]


def _finding(case: pl.DataFrame, key: Sequence[object], model: str, size: str) -> Finding:
    """Title and subtitle: what the layers need, or how many are never compute-bound."""
    combination, *basis = map(str, key)
    never, needed = case["critical"].null_count(), case["critical"].drop_nulls()
    split = split_text(case["sharding"][0], case["shards"], case["network"])
    chips = case["chip"].unique().to_list()
    on = f" on {chip_label(chips[0])}" if len(chips) == 1 else ""
    cells = case.select("critical", "reached", "share").rows()
    subtitle = (
        f"{chip_label(model) or 'Layers'} in {combination}: the smallest {size} at which each"
        f" matmul is compute-bound{split}.{reached_text(cells)}{below_text(case)}"
        f"{basis_text(case, *basis)}"
    )
    shown = over(case, "chip", "dtypes", "sharding", "shards", "shape") | solved(size)
    about = partial(claim, of="critical", rows=shown, basis=basis[0] if basis else NOMINAL)
    if never == case.height:
        title = f"No {size} makes these layers compute-bound{on}"
        return Finding(title, subtitle, about("never", value=None))
    if never:
        what = "layers" if on else "pairs of chip and layer"
        title = f"{never:,} of {case.height:,} {what} are never compute-bound{on}"
        return Finding(title, subtitle, about("nulls", value=[never, case.height]))
    by_case = ", by layer and chip" if needed.n_unique() > 1 and not on else ""
    subject = f"{chip_label(model)} needs" if model else "These layers need"
    title = f"{subject} {sizes_text(size, needed)}{on}{by_case}"
    return Finding(title, subtitle, about("range", value=ends(needed)), names=[model])


CHART = Chart(
    name="layers",
    family="compared",
    caption=(
        "The smallest compute-bound size of each layer's matmul on each chip; the smaller number "
        "is for a smaller share of the peak. Grey is never."
    ),
    order=80,
    needs=(
        OTHER_DIMS,
        SOLVED_LEAD,
        BY_SHAPE,
        Need("several shapes", lambda s: len(s.config.shapes or ()) > 1, auto=True),
    ),
    fills=frozenset({"model"}),
    frame=lambda of, spec: layer_frame(of, layers_run(of.sweep, spec.model or "")),
    draw=lambda frame, of, spec: critical_of_layers(
        frame,
        model=spec.model or "",
        size=of.dims[0],
        first=first_shown(frame, spec, "dtypes"),
        title=spec.title,
        added=spec.added,
        added_dtypes=spec.added_dtypes,
    ),
)
