"""Frames over sizes, chips and layers: critical sizes, thresholds over shards, times, and what binds where."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.charts.needs import TIMES, need, sizes_of
from rooflines.critical.sizes import settle

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.frames import Selection
    from rooflines.sweep.space import Served
    from rooflines.sweep.sweep import Sweep

__all__ = [
    "apart",
    "bound_frame",
    "contour_frame",
    "critical_frame",
    "layer_frame",
    "shards_frame",
    "time_frame",
]

LEAST_STEP = 0.7
"""Sizes nearer to each other than this share of a doubling have no cells of their own in a map with numbers."""

CONTOUR_POINTS = 32
"""Points of a contour along each of its two axes; it bends once."""

HUGE = 2**200
"""A size at which one that is larger changes nothing."""

NICE = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
OVER_RULE = (1.03, 1.2, 1.6, 2.5, 5.0)
"""Levels of the contours, as multiples of the rule of thumb, before they are rounded to numbers one can say."""


def apart(values: Sequence[int]) -> list[int]:
    """Those of some sizes that are at least a good part of a doubling apart, powers of two first."""
    powers = [value for value in values if value & (value - 1) == 0]
    found: list[int] = []
    for value in [*powers, *(v for v in values if v not in powers)]:
        if all(abs(math.log2(value / other)) >= LEAST_STEP for other in found):
            found.append(value)
    return sorted(found)


def edges(values: Sequence[int]) -> pl.DataFrame:
    """The cell of every size on a logarithmic axis: `value`, `low`, `high`, halfway to its neighbours."""
    logs = [math.log2(value) for value in values]
    steps = [b - a for a, b in pairwise(logs)] or [1.0]
    cuts = [
        logs[0] - steps[0] / 2,
        *((a + b) / 2 for a, b in pairwise(logs)),
        logs[-1] + steps[-1] / 2,
    ]
    return pl.DataFrame(
        {
            "value": list(values),
            "low": [2**cut for cut in cuts[:-1]],
            "high": [2**cut for cut in cuts[1:]],
        }
    )


def with_edges(frame: pl.DataFrame, **axes: str) -> pl.DataFrame:
    """Adds `<axis>`, `<axis>_low` and `<axis>_high` of a column's cells for each axis, `x="D"`."""
    for axis, column in axes.items():
        cells = edges(sorted(frame[column].unique().to_list()))
        cells = cells.select(
            pl.col("value").alias(column),
            pl.col("low").alias(f"{axis}_low"),
            pl.col("high").alias(f"{axis}_high"),
        )
        frame = frame.join(cells, on=column, how="left", maintain_order="left").with_columns(
            pl.col(column).alias(axis)
        )
    return frame


def unsharded(of: Selection) -> pl.LazyFrame:
    """The thresholds of a sweep's first dimension on one chip, or on the fewest."""
    return of.thresholds().filter(pl.col("axis") == of.dims[0], of.on_fewest())


def critical_frame(of: Selection) -> pl.DataFrame:
    """The critical batch over the two other sizes of an operation.

    Args:
        of: The chips and combinations, from `Results.of`, of the sweep; its thresholds include its first dimension.

    Returns:
        `chip`, `dtypes`, `sharding` and `shards`, the sizes `x` and `y` with the edges of their cells (`x_low`, `x_high`, ...),
        `critical` [1] (null: never), `exact` [1], `rule` [1], and `limit_intensity` [FLOP/byte].
    """
    need("critical", of.sweep)
    _, across, up = of.dims
    found = unsharded(of).collect()
    for dim in (across, up):
        found = found.filter(pl.col(dim).is_in(apart(sorted(found[dim].unique().to_list()))))
    found = with_edges(found, x=across, y=up)
    places = [f"{axis}{tail}" for axis in "xy" for tail in ("", "_low", "_high")]
    kept = ("chip", "dtypes", "sharding", "shards", *places, "critical", "limit_intensity")
    return found.select(*kept, exact="critical_exact", rule="critical_rule")


def contour_frame(of: Selection, shapes: Sequence[Mapping[str, Any]] = ()) -> pl.DataFrame:
    """Lines of equal critical batch of a matmul over D and F, exactly, and named shapes at their places.

    Every point is solved for by the model, as a threshold along D or F at the level's batch.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep of a matmul without tiles.
        shapes: Mappings with `name`, `D` and `F`.

    Returns:
        `chip`, `dtypes`, `kind` (`level`, `never` or `shape`), `level` [1] (the critical batch along the line; of a shape its own, null for
        never), `D`, `F` [1], `name`, and the map's edges: `left` and `right` (D), `bottom` and `top` (F) [1].
    """
    need("critical-map", of.sweep)
    sizes = {dim: sizes_of(of.sweep, dim) for dim in of.dims}
    span = (sizes["D"][0], sizes["D"][-1] * 2, sizes["F"][0], sizes["F"][-1] * 4)
    inside = [
        shape
        for shape in shapes
        if span[0] <= shape["D"] <= span[1] and span[2] <= shape["F"] <= span[3]
    ]
    edge = [(float(span[0]), float(span[3])), (float(span[1]), float(span[3]))]
    records: list[dict[str, Any]] = []
    for served in of.served():
        key = {"chip": served[0].chip, "dtypes": served[1].dtypes}
        least = solved(of.sweep, served, "B", D=HUGE, F=HUGE)
        for level in nice_levels(max(least, 1.0)) if least is not None else []:
            line = contour(of.sweep, served, Fraction(level), span)
            records += [{**key, "kind": "level", "level": level, "D": d, "F": f} for d, f in line]
        line = contour(of.sweep, served, HUGE, span) or edge
        records += [{**key, "kind": "never", "level": math.inf, "D": d, "F": f} for d, f in line]
        records += [
            {
                **key,
                "kind": "shape",
                "level": solved(of.sweep, served, "B", D=s["D"], F=s["F"]),
                **s,
            }
            for s in inside
        ]
    schema = {
        "chip": pl.String,
        "dtypes": pl.String,
        "kind": pl.String,
        "level": pl.Float64,
        "D": pl.Float64,
        "F": pl.Float64,
    }
    frame = pl.DataFrame(records, schema={**schema, "name": pl.String}, orient="row")
    edges_of = dict(zip(("left", "right", "bottom", "top"), map(float, span), strict=True))
    return frame.with_columns(**{name: pl.lit(at) for name, at in edges_of.items()})


def contour(
    sweep: Sweep, served: Served, level: int | Fraction, span: tuple[int, int, int, int]
) -> list[tuple[float, float]]:
    """The line from which on a batch is compute-bound, as D and F, within a rectangle; where it leaves that, along the rectangle's edge.

    F is solved for at some D, and D at some F, so that points are dense where the line is flat and where it is steep.
    """
    low_d, high_d, low_f, high_f = span
    points: list[tuple[Fraction | float | None, Fraction | float | None]]
    points = [(d, solved(sweep, served, "F", B=level, D=d)) for d in spaced(low_d, high_d)]
    points += [(solved(sweep, served, "D", B=level, F=f), f) for f in spaced(low_f, high_f)]
    kept = {
        (float(d), float(max(f, low_f)))
        for d, f in points
        if d is not None and f is not None and low_d <= d <= high_d and f <= high_f
    }
    return sorted(kept, key=lambda point: (point[0], -point[1]))


def spaced(low: int, high: int) -> list[Fraction]:
    """Sizes from one to another, evenly on a logarithmic axis."""
    between = (
        Fraction(low * (high / low) ** (i / (CONTOUR_POINTS - 1)))
        for i in range(1, CONTOUR_POINTS - 1)
    )
    return [Fraction(low), *between, Fraction(high)]


def solved(sweep: Sweep, served: Served, axis: str, **sizes: int | Fraction) -> float | None:
    """The exact size along an axis from which on one case is compute-bound [1]; None for never."""
    found: float | None = settle(sweep, served, axis, sizes)["critical_exact"]
    return found


def nice_levels(rule: float) -> list[float]:
    """Levels one can say, above the rule of thumb."""
    levels = []
    for factor in OVER_RULE:
        power = 10.0 ** math.floor(math.log10(rule * factor))
        levels.append(next(step * power for step in (*NICE, 10.0) if step * power >= rule * factor))
    return sorted(set(levels))


def at_largest(frame: pl.DataFrame, dims: Sequence[str]) -> pl.DataFrame:
    """The rows at the largest of each size that is held fixed; `setting` says which these are, by the shape's name where it has one."""
    shape = frame["shape"].drop_nulls().unique(maintain_order=True)
    for dim in dims:
        if frame[dim].n_unique() > 1:
            frame = frame.filter(pl.col(dim) == frame[dim].max())
    names = [str(shape[0])] if len(shape) == 1 else []
    sizes = [f"{dim} = {frame[dim][0]:,}" for dim in dims if frame.height]
    return frame.with_columns(setting=pl.lit(", ".join([*names, *sizes])))


def shards_frame(of: Selection, axis: str | None = None, shape: str | None = None) -> pl.DataFrame:
    """The critical size over the number of chips that share the work.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep with several numbers of shards.
        axis: The size solved for; the first that the thresholds have.
        shape: Which of its shapes; without shapes the largest sizes.

    Returns:
        `chip`, `vendor`, `dtypes`, `sharding`, `network`, `shards` [1], `critical` [1] (null: never), `limit`, and `most`: the largest
        number of chips that is still compute-bound at some size [1], null for none; `setting`: what is held fixed.
    """
    need("shards", of.sweep, axis=axis, shape=shape)
    dims = of.dims
    axis = axis or next(name for name in of.sweep.solved if name in dims)
    found = of.thresholds().filter(pl.col("axis") == axis)
    frame = at_largest(
        (found.filter(shape=shape) if shape else found).collect(),
        [dim for dim in dims if dim != axis],
    )
    frame = frame.filter(pl.col("shards") > 1) if 1 not in of.sweep.config.shards else frame
    vendors = {chip: of.sweep.chips[chip].vendor or "" for chip in of.by_chip}
    frame = frame.with_columns(
        vendor=pl.col("chip").replace_strict(vendors, default="", return_dtype=pl.String)
    )
    frame = frame.select(
        "chip", "vendor", "dtypes", "sharding", "network", "shards", "critical", "limit", "setting"
    )
    still = (
        frame.filter(pl.col("critical").is_not_null())
        .group_by("chip", "dtypes", "sharding")
        .agg(most=pl.col("shards").max())
    )
    return frame.join(still, on=["chip", "dtypes", "sharding"], how="left").sort(
        "sharding", "dtypes", "chip", "shards"
    )


def layer_frame(of: Selection, shapes: Mapping[str, str]) -> pl.DataFrame:
    """The critical batch of a model's layers by chip.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep with shapes and thresholds of its first dimension.
        shapes: The shapes to show, by the names of their layers.

    Returns:
        `chip`, `dtypes`, `sharding` and `shards`, `layer`, the sizes as text, `critical` [1] (null: never), `exact` [1].
    """
    need("layers", of.sweep, shapes=list(shapes.values()))
    dims = of.dims[1:]
    layers = pl.DataFrame(
        {"shape": list(shapes.values()), "layer": list(shapes)},
        schema={"shape": pl.String, "layer": pl.String},
    )
    found = unsharded(of).join(layers.lazy(), on="shape", maintain_order="right_left")
    sizes = pl.concat_str([pl.format(f"{dim} = {{}}", pl.col(dim)) for dim in dims], separator=", ")
    kept = ("chip", "dtypes", "sharding", "shards", "layer", "critical")
    return found.select(*kept, sizes=sizes, exact="critical_exact").collect()


def time_frame(
    of: Selection,
    shapes: Mapping[str, str],
    sizes: Sequence[int],
    shards: Sequence[int],
    sharding: str | None = None,
) -> pl.DataFrame:
    """Where the time of a model's layers goes.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep with shapes.
        shapes: The shapes to show, by the names of their layers.
        sizes: Of the operation's first dimension.
        shards: Numbers of chips.
        sharding: What is split; the sweep's first by default.

    Returns:
        `chip`, `dtypes`, `sharding`, `link` (the interconnect), `B` (the first dimension's size), `shards`, `layer`, `resource`
        (compute, memory or network), `seconds` [s], `bound` (whether it is the one that binds), `t_lower_s` [s], and `fits` where the
        sweep stores it.
    """
    need(
        "time",
        of.sweep,
        shapes=list(shapes.values()),
        sizes=sizes,
        shards=shards,
        sharding=sharding,
    )
    lead = of.dims[0]
    layers = pl.DataFrame(
        {"shape": list(shapes.values()), "layer": list(shapes)},
        schema={"shape": pl.String, "layer": pl.String},
    )
    rows = of.rows()
    rows = rows.filter(pl.col("shards").is_in(list(shards)), pl.col(lead).is_in(list(sizes)))
    rows = rows.filter(
        pl.col("sharding") == (pl.lit(sharding) if sharding else pl.col("sharding").first())
    )
    fits = ["fits"] if "fits" in rows.collect_schema() else []
    rows = rows.join(layers.lazy(), on="shape", maintain_order="right").select(
        "chip",
        "dtypes",
        "sharding",
        pl.col("network").alias("link"),
        pl.col(lead).alias("B"),
        "shards",
        "layer",
        "bound",
        "t_lower_s",
        *fits,
        **TIMES,
    )
    index = [
        "chip",
        "dtypes",
        "sharding",
        "link",
        "B",
        "shards",
        "layer",
        "bound",
        "t_lower_s",
        *fits,
    ]
    tall = rows.unpivot(
        list(TIMES), index=index, variable_name="resource", value_name="seconds"
    ).collect()
    order = {chip: place for place, chip in enumerate(of.chips)}
    tall = tall.with_columns(
        bound=pl.col("bound") == pl.col("resource"), place=pl.col("chip").replace_strict(order)
    )
    return tall.sort("place", "dtypes", "B", "shards", maintain_order=True).drop("place")


def bound_frame(of: Selection, up: str = "shards", shape: str | None = None) -> pl.DataFrame:
    """Which resource binds over the first dimension and the shards, or another dimension.

    Args:
        of: The chips and combinations, from `Results.of`, of the sweep.
        up: The column over which beside the first dimension: `shards` or a dimension.
        shape: Which of its shapes; else the largest of the other sizes.

    Returns:
        `chip`, `dtypes`, `sharding`, `network`, `shards`, the sizes `x` and `y` with the edges of their cells, `bound`, `utilization`
        [1], `setting`: what is held fixed, and from the thresholds of the first dimension, if the sweep has them, `solved` (whether it
        has) and `critical` (null: never) [1].
    """
    need("bounds", of.sweep, up=up, shape=shape)
    dims = of.dims
    rows = of.rows()
    rows = rows.filter(shape=shape) if shape else rows
    others = [dim for dim in dims[1:] if dim != up]
    if up != "shards":
        rows = rows.filter(of.on_fewest())
    case = ["chip", "dtypes", "sharding", "network", "shards", "shape", *dims[1:]]
    frame = rows.select(*case, dims[0], "bound", "utilization").collect()
    frame = at_largest(frame, others)
    frame = frame.filter(pl.col(up).is_in(apart(sorted(frame[up].unique().to_list()))))
    frame = frame.filter(pl.col(dims[0]).is_in(apart(sorted(frame[dims[0]].unique().to_list()))))
    frame = with_edges(frame, x=dims[0], y=up).unique(
        ["chip", "dtypes", "sharding", "x", "y"], keep="first", maintain_order=True
    )
    thresholds = (
        of.thresholds()
        .filter(axis=dims[0])
        .select(*case, "critical", solved=pl.lit(value=True))
        .collect()
    )
    frame = frame.join(
        thresholds, on=case, how="left", nulls_equal=True, maintain_order="left"
    ).with_columns(pl.col("solved").fill_null(value=False))
    places = [f"{axis}{tail}" for axis in "xy" for tail in ("", "_low", "_high")]
    return frame.select(
        "chip",
        "dtypes",
        "sharding",
        "network",
        "shards",
        *places,
        "bound",
        "utilization",
        "setting",
        "solved",
        "critical",
    )
