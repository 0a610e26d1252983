"""The curves of attained FLOP/s: their sizes, their points, and the critical sizes on them."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Literal

from rooflines.basics.lazy import pl
from rooflines.charts.basis import BAND
from rooflines.charts.comparing import ALONG
from rooflines.charts.frames import TIMES, highest, lowest
from rooflines.charts.kit.text import named_sizes
from rooflines.charts.offers import lead_of
from rooflines.model.resources import MATH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.charts.results import Selection

__all__ = ["KEYS", "densified", "estimates_of", "knees_of", "series_of", "thinned", "turns_of"]

CURVE_POINTS = 41
"""Points of a curve. Times are affine between the sizes of the table, so interpolation is exact."""

KEYS = ["chip", "dtypes", "series", "order"]
"""What a curve is of."""


def estimates_of(table: pl.DataFrame) -> pl.DataFrame:
    """What is attained calibrated, at sizes of the table: estimates are not affine between them."""
    time, fast, slow = (pl.col(MATH.work) / pl.col(name) for name in BAND)
    return thinned(table.drop_nulls(BAND[0])).select(
        *KEYS, "size", "peak", kind=pl.lit("estimate"), flops_per_s=time, fast=fast, slow=slow
    )


def knees_of(
    of: Selection, sizes: pl.DataFrame, peaks: pl.DataFrame, share: float = 1
) -> pl.DataFrame:
    """The critical sizes of every series for a share of the peak: `knee`, below the peak `share`.

    Args:
        of: The chips and combinations.
        sizes: From `series_of`.
        peaks: By chip and combination [FLOP/s].
        share: The share [1].
    """
    lead = lead_of(of.sweep)
    others = [dim for dim in of.dims if dim != lead]
    return (
        of.thresholds(share)
        .filter(pl.col("axis") == lead, of.on_fewest())
        .join(sizes.lazy(), on=["shape", *others], nulls_equal=True)
        .join(peaks.lazy(), on=["chip", "dtypes"])
        .select(
            *KEYS,
            "setting",
            pl.lit("knee" if share == 1 else "share").alias("kind"),
            size=pl.col("critical").cast(pl.Float64),
            exact="critical_exact",
            limit="limit",
            critical_estimate=pl.col("critical_estimate").cast(pl.Float64),
            flops_per_s=pl.col("peak") * share,
            peak="peak",
            shape="shape",
            **{dim: dim for dim in others},
        )
        .unique(KEYS, keep="first", maintain_order=True)
        .collect()
    )


def series_of(
    rows: pl.LazyFrame, dims: Sequence[str], shape: str | None, most: int
) -> pl.DataFrame:
    """The sizes that get a curve each: named shapes, or sizes of the dimensions.

    Returns:
        `shape` and the sizes, `order`, `series`: the shape, or the sizes of which there are
        several, and `setting`: the other sizes.
    """
    shaped = rows.select("shape", *dims).unique().sort(*dims, descending=True).collect()
    if shape is not None:
        shaped = shaped.filter(pl.col("shape").str.starts_with(shape))
    elif shaped.height > most and len(dims) > 1:
        square = shaped.filter(pl.all_horizontal(pl.col(d) == pl.col(dims[0]) for d in dims))
        shaped = square if square.height > 1 else shaped
    several = [dim for dim in dims if shaped[dim].n_unique() > 1] or list(dims)
    picks = sorted(
        {
            round(i * (shaped.height - 1) / max(min(most, shaped.height) - 1, 1))
            for i in range(min(most, shaped.height))
        }
    )
    shaped = shaped[picks]
    names, settings = [], []
    for row in shaped.to_dicts():
        names.append(row["shape"] or named_sizes({dim: row[dim] for dim in several}))
        fixed = [] if row["shape"] else [dim for dim in dims if dim not in several]
        settings.append(", ".join(f"{dim} = {row[dim]:,}" for dim in fixed))
    columns = {"series": names, "setting": settings}
    return shaped.with_columns(
        pl.Series(name, texts, dtype=pl.String) for name, texts in columns.items()
    ).with_row_index("order")


def turns_of(case: pl.DataFrame) -> dict[str, tuple[int, int]]:
    """The curves that are one line: by series the turn that each takes along it, and of how many.

    Args:
        case: The rows of one choice of a reader.
    """
    peak = highest(case, "peak")
    lines: list[tuple[list[float], list[str]]] = []
    for (series,), part in case.filter(kind="curve").group_by("series", maintain_order=True):
        heights = part.sort("size")["flops_per_s"].to_list()
        same = (names for line, names in lines if _one_line(line, heights, ALONG * peak))
        names = next(same, None)
        if names is None:
            lines.append((heights, names := []))
        names.append(str(series))
    return {
        series: (turn, len(names))
        for _, names in lines
        if len(names) > 1
        for turn, series in enumerate(names)
    }


def _one_line(one: Sequence[float], other: Sequence[float], closer_than: float) -> bool:
    """Whether two curves are as close everywhere."""
    return len(one) == len(other) and all(
        abs(a - b) < closer_than for a, b in zip(one, other, strict=True)
    )


def thinned(table: pl.DataFrame) -> pl.DataFrame:
    """As many sizes as a curve needs, about even on a log axis: times of tiles are not affine."""
    sizes = table["size"].unique().sort().to_list()
    if len(sizes) <= CURVE_POINTS:
        return table
    low, high = sizes[0], sizes[-1]
    wanted = (low * (high / low) ** (i / (CURVE_POINTS - 1)) for i in range(CURVE_POINTS - 1))
    kept = {sizes[bisect_left(sizes, size)] for size in wanted} | {high}
    return table.filter(pl.col("size").is_in(kept))


def densified(table: pl.DataFrame) -> pl.DataFrame:
    """More sizes between those of a table, interpolated: times and costs are affine in one size."""
    low, high = lowest(table, "size", 1), highest(table, "size", 1)
    steps = CURVE_POINTS - 1
    grid = pl.DataFrame({"size": [low * (high / low) ** (i / steps) for i in range(CURVE_POINTS)]})
    cases = table.select(*KEYS, "peak").unique(maintain_order=True)
    wanted = cases.join(grid, how="cross").sort("size")
    ways: list[tuple[Literal["backward", "forward"], str]] = [("backward", "_a"), ("forward", "_b")]
    before, after = (
        wanted.join_asof(
            table.sort("size").drop("peak"),
            on="size",
            by=KEYS,
            strategy=strategy,
            coalesce=False,
            suffix=suffix,
            check_sortedness=False,
        )
        for strategy, suffix in ways
    )
    affine = (MATH.work, *TIMES.values())
    both = before.hstack(
        after.select(pl.col("size_b"), *(pl.col(c).alias(f"{c}_b") for c in affine))
    )
    share = (
        pl.when(pl.col("size_b") > pl.col("size_a"))
        .then((pl.col("size") - pl.col("size_a")) / (pl.col("size_b") - pl.col("size_a")))
        .otherwise(0.0)
    )
    return both.select(
        *KEYS,
        "size",
        "peak",
        *((pl.col(c) + share * (pl.col(f"{c}_b") - pl.col(c))).alias(c) for c in affine),
    ).sort(*KEYS, "size")
