"""Frames over sizes, chips and layers: critical sizes, thresholds over shards, times, and what binds where."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.charts.frames import highest, lowest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.frames import Selection

__all__ = ["apart", "bound_frame", "contour_frame", "critical_frame", "layer_frame", "shards_frame", "time_frame"]

LEAST_STEP = 0.7
"""Sizes nearer to each other than this share of a doubling have no cells of their own in a map with numbers."""

CONTOUR_POINTS = 41
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
    cuts = [logs[0] - steps[0] / 2, *((a + b) / 2 for a, b in pairwise(logs)), logs[-1] + steps[-1] / 2]
    return pl.DataFrame({"value": list(values), "low": [2**cut for cut in cuts[:-1]], "high": [2**cut for cut in cuts[1:]]})


def with_edges(frame: pl.DataFrame, **axes: str) -> pl.DataFrame:
    """Adds `<axis>`, `<axis>_low` and `<axis>_high` of a column's cells for each axis, `x="D"`."""
    for axis, column in axes.items():
        cells = edges(sorted(frame[column].unique().to_list()))
        cells = cells.select(pl.col("value").alias(column), pl.col("low").alias(f"{axis}_low"), pl.col("high").alias(f"{axis}_high"))
        frame = frame.join(cells, on=column, how="left", maintain_order="left").with_columns(pl.col(column).alias(axis))
    return frame


def unsharded(of: Selection) -> pl.LazyFrame:
    """The thresholds of a sweep's first dimension on one chip, or on the fewest."""
    return fewest_chips(of.thresholds().filter(axis=of.dims[0]))


def fewest_chips(frame: pl.LazyFrame) -> pl.LazyFrame:
    """The rows on one chip, or on the fewest and of the first split."""
    return frame.filter(pl.col("shards") == pl.col("shards").min()).filter(pl.col("sharding") == pl.col("sharding").first())


def critical_frame(of: Selection) -> pl.DataFrame:
    """The critical batch over the two other sizes of an operation.

    Args:
        of: The chips and combinations, from `Results.of`, of the sweep; its thresholds include its first dimension.

    Returns:
        `chip`, `dtypes`, `sharding` and `shards`, the sizes `x` and `y` with the edges of their cells (`x_low`, `x_high`, ...),
        `critical` [1] (null: never), `exact` [1], `rule` [1], and `limit_intensity` [FLOP/byte].
    """
    _, across, up = of.dims[:3]
    found = unsharded(of).collect()
    for dim in (across, up):
        found = found.filter(pl.col(dim).is_in(apart(sorted(found[dim].unique().to_list()))))
    found = with_edges(found, x=across, y=up)
    places = [f"{axis}{tail}" for axis in "xy" for tail in ("", "_low", "_high")]
    kept = ("chip", "dtypes", "sharding", "shards", *places, "critical", "limit_intensity")
    return found.select(*kept, exact="critical_exact", rule="critical_rule")


def contour_frame(of: Selection, shapes: Sequence[Mapping[str, Any]] = ()) -> pl.DataFrame:
    """Lines of equal critical batch of a matmul over D and F, exactly, and named shapes at their places.

    For a matmul 1/B is linear in 1/D and 1/F at the critical batch, so that three thresholds of the sweep give every other.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep of a matmul without tiles, with thresholds for B.
        shapes: Mappings with `name`, `D` and `F`.

    Returns:
        `chip`, `dtypes`, `kind` (`level`, `never` or `shape`), `level` [1] (the critical batch along the line), `D`, `F` [1], `top` (the
        largest F) and `name`.
    """
    found = unsharded(of).drop_nulls("critical_exact").select("chip", "dtypes", "D", "F", "critical_exact").collect()
    sizes = (lowest(found, "D"), highest(found, "D"), lowest(found, "F"), highest(found, "F"))
    low_d, high_d, low_f, high_f = sizes[0], sizes[1] * 2, sizes[2], sizes[3] * 4
    pieces = []
    for (chip, combination), case in found.group_by("chip", "dtypes", maintain_order=True):
        constant, per_d, per_f = plane_of(case)
        levels = [*nice_levels(1 / constant), math.inf]
        curve = pl.concat([contour(level, constant - 1 / level, per_d, per_f, (low_d, high_d, low_f, high_f)) for level in levels])
        kind = pl.when(pl.col("level").is_infinite()).then(pl.lit("never")).otherwise(pl.lit("level")).alias("kind")
        named = pl.lit(None, dtype=pl.String).alias("name")
        pieces.append(curve.select(pl.lit(chip).alias("chip"), pl.lit(combination).alias("dtypes"), kind, "level", "D", "F", named))
        inside = [s for s in shapes if low_d <= s["D"] <= high_d and low_f <= s["F"] <= high_f]
        marks = pl.DataFrame(inside, schema={"name": pl.String, "D": pl.Float64, "F": pl.Float64}, orient="row")
        marks = marks.with_columns(level=1 / (constant - per_d / pl.col("D") - per_f / pl.col("F")))
        marks = marks.with_columns(level=pl.when(pl.col("level") > 0).then("level"))
        pieces.append(
            marks.select(
                pl.lit(chip).alias("chip"), pl.lit(combination).alias("dtypes"), pl.lit("shape").alias("kind"), "level", "D", "F", "name"
            )
        )
    return pl.concat(pieces, how="vertical_relaxed").with_columns(top=pl.lit(high_f))


def contour(level: float, left: float, per_d: float, per_f: float, span: tuple[float, float, float, float]) -> pl.DataFrame:
    """The line left = per_d / D + per_f / F within a rectangle, its points dense where it bends: `level`, `D`, `F`.

    What of `left` D takes goes from nearly nothing to nearly all of it; beyond its ends the line runs along the rectangle's edge.
    """
    low_d, high_d, low_f, high_f = span
    least = per_d / high_d / left
    most = 1 - per_f / high_f / left
    if left <= 0 or least >= most:
        return pl.DataFrame({"level": [level, level], "D": [low_d, high_d], "F": [high_f, high_f]})
    start, end = math.log(least / (1 - least)), math.log(most / (1 - most))
    shares = [1 / (1 + math.exp(-(start + (end - start) * i / (CONTOUR_POINTS - 1)))) for i in range(CONTOUR_POINTS)]
    points = [(per_d / (left * share), per_f / (left * (1 - share))) for share in shares]
    inside = [(d, max(f, low_f)) for d, f in points if d >= low_d]
    if len(inside) < len(points) and left > per_d / low_d:
        inside.append((low_d, max(per_f / (left - per_d / low_d), low_f)))
    ends = [(low_d, high_f), (inside[-1][0], high_f)] if inside and inside[-1][0] > low_d * 1.0001 else []
    corners = sorted({*ends, *inside})
    corners.sort(key=lambda point: (point[0], -point[1]))
    return pl.DataFrame(
        {"level": [level] * len(corners), "D": [c[0] for c in corners], "F": [c[1] for c in corners]},
        schema={"level": pl.Float64, "D": pl.Float64, "F": pl.Float64},
    )


def plane_of(case: pl.DataFrame) -> tuple[float, float, float]:
    """The three numbers of 1/B = constant - per_d / D - per_f / F at the critical batch, from a chip's thresholds."""
    most_d, most_f = case["D"].max(), case["F"].max()
    corner = case.filter(D=most_d, F=most_f)["critical_exact"].item()
    along_d = case.filter(F=most_f).sort("D").row(0, named=True)
    along_f = case.filter(D=most_d).sort("F").row(0, named=True)
    per_d = (1 / corner - 1 / along_d["critical_exact"]) / (1 / along_d["D"] - 1 / float(most_d))  # type: ignore[arg-type]
    per_f = (1 / corner - 1 / along_f["critical_exact"]) / (1 / along_f["F"] - 1 / float(most_f))  # type: ignore[arg-type]
    return 1 / corner + per_d / float(most_d) + per_f / float(most_f), per_d, per_f  # type: ignore[arg-type]


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
    recipe = of.recipe
    dims = of.dims
    axis = axis or next(name for name in recipe["config"]["thresholds"] or dims[:1] if name in dims)
    found = of.thresholds().filter(pl.col("axis") == axis)
    frame = at_largest((found.filter(shape=shape) if shape else found).collect(), [dim for dim in dims if dim != axis])
    frame = frame.filter(pl.col("shards") > 1) if 1 not in recipe["config"]["shards"] else frame
    vendors = {chip: entry.get("vendor") or "" for chip, entry in recipe["chips"].items()}
    frame = frame.with_columns(vendor=pl.col("chip").replace_strict(vendors, default="", return_dtype=pl.String))
    frame = frame.select("chip", "vendor", "dtypes", "sharding", "network", "shards", "critical", "limit", "setting")
    still = frame.filter(pl.col("critical").is_not_null()).group_by("chip", "dtypes", "sharding").agg(most=pl.col("shards").max())
    return frame.join(still, on=["chip", "dtypes", "sharding"], how="left").sort("sharding", "dtypes", "chip", "shards")


def layer_frame(of: Selection, shapes: Mapping[str, str]) -> pl.DataFrame:
    """The critical batch of a model's layers by chip.

    Args:
        of: The chips and combinations, from `Results.of`, of a sweep with shapes and thresholds of its first dimension.
        shapes: The shapes to show, by the names of their layers.

    Returns:
        `chip`, `dtypes`, `sharding` and `shards`, `layer`, the sizes as text, `critical` [1] (null: never), `exact` [1].
    """
    dims = of.dims[1:]
    layers = pl.DataFrame({"shape": list(shapes.values()), "layer": list(shapes)}, schema={"shape": pl.String, "layer": pl.String})
    found = unsharded(of).join(layers.lazy(), on="shape", maintain_order="right")
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
    lead = of.dims[0]
    layers = pl.DataFrame({"shape": list(shapes.values()), "layer": list(shapes)}, schema={"shape": pl.String, "layer": pl.String})
    rows = of.rows()
    rows = rows.filter(pl.col("shards").is_in(list(shards)), pl.col(lead).is_in(list(sizes)))
    rows = rows.filter(pl.col("sharding") == (pl.lit(sharding) if sharding else pl.col("sharding").first()))
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
        compute="t_math_s",
        memory="t_memory_s",
        network="t_network_s",
    )
    index = ["chip", "dtypes", "sharding", "link", "B", "shards", "layer", "bound", "t_lower_s", *fits]
    tall = rows.unpivot(["compute", "memory", "network"], index=index, variable_name="resource", value_name="seconds").collect()
    order = {chip: place for place, chip in enumerate(of.chips)}
    tall = tall.with_columns(bound=pl.col("bound") == pl.col("resource"), place=pl.col("chip").replace_strict(order))
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
    dims = of.dims
    rows = of.rows()
    rows = rows.filter(shape=shape) if shape else rows
    others = [dim for dim in dims[1:] if dim != up]
    if up != "shards":
        rows = fewest_chips(rows)
    case = ["chip", "dtypes", "sharding", "network", "shards", "shape", *dims[1:]]
    frame = rows.select(*case, dims[0], "bound", "utilization").collect()
    frame = at_largest(frame, others)
    frame = frame.filter(pl.col(up).is_in(apart(sorted(frame[up].unique().to_list()))))
    frame = frame.filter(pl.col(dims[0]).is_in(apart(sorted(frame[dims[0]].unique().to_list()))))
    frame = with_edges(frame, x=dims[0], y=up).unique(["chip", "dtypes", "sharding", "x", "y"], keep="first", maintain_order=True)
    thresholds = of.thresholds().filter(axis=dims[0]).select(*case, "critical", solved=pl.lit(value=True)).collect()
    frame = frame.join(thresholds, on=case, how="left", nulls_equal=True, maintain_order="left").with_columns(
        pl.col("solved").fill_null(value=False)
    )
    places = [f"{axis}{tail}" for axis in "xy" for tail in ("", "_low", "_high")]
    return frame.select("chip", "dtypes", "sharding", "network", "shards", *places, "bound", "utilization", "setting", "solved", "critical")
