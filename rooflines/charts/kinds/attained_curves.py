"""The curves of attained FLOP/s: their sizes, their points, and the critical sizes on them."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, TypeVar

from rooflines.basics.lazy import alt, pl
from rooflines.charts.basis import BAND
from rooflines.charts.comparing import ALONG
from rooflines.charts.frames import TIMES
from rooflines.charts.kit.text import named_sizes
from rooflines.charts.offers import curved_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.charts.results import Selection

__all__ = [
    "ATTAINED",
    "KEYS",
    "Point",
    "between",
    "curves_of",
    "estimates_of",
    "knees_of",
    "series_of",
    "turns_of",
]

Number = TypeVar("Number", float, "pl.Expr", "alt.OperatorMixin")

Point = tuple[float, float]
"""A size, and what it attains [FLOP/s]."""

POINTS, MOST_POINTS = 9, 41
"""Sizes of a curve beside that where it bends: where `between` is exact, and of any other [1]."""

ATTAINED = "attained_flops_per_s"
"""The column of what is attained, which does not count the padding of tiles [FLOP/s]."""

RATES = ("flops_per_s", "fast", "slow")
"""What is attained in each time of `BAND` [FLOP/s]."""

ROUNDING = 1e-9
"""Difference of numbers that are equal but for rounding [1]."""

KEYS = ["chip", "dtypes", "series", "order"]
"""What a curve is of."""


def curves_of(of: Selection, table: pl.DataFrame) -> pl.DataFrame:
    """What is attained at sizes of the table."""
    affine = not of.sweep.tile and of.sweep.flops == "leading"
    return thinned(table, POINTS if affine else MOST_POINTS).select(
        *KEYS,
        "size",
        "peak",
        kind=pl.lit("curve"),
        flops_per_s=ATTAINED,
    )


def estimates_of(table: pl.DataFrame) -> pl.DataFrame:
    """What is attained calibrated, at sizes of the table, and its band.

    Sizes are about even on a log axis; of others those that `between` their neighbours differs at.
    """
    known = thinned(table.drop_nulls(BAND[0]))
    flops = pl.col(ATTAINED) * pl.max_horizontal(*TIMES.values())
    rates = dict(zip(RATES, (flops / pl.col(time) for time in BAND), strict=True))
    rows = known.select(*KEYS, "size", "peak", kind=pl.lit("estimate"), **rates)

    def beside(name: str, step: int) -> tuple[pl.Expr, pl.Expr]:
        return pl.col("size").shift(step).over(KEYS), pl.col(name).shift(step).over(KEYS)

    given = (
        between(beside(name, 1), beside(name, -1), pl.col("size")) / pl.col(name) - 1
        for name in rates
    )
    follows = pl.all_horizontal((off.abs() < ROUNDING).fill_null(value=True) for off in given)
    inside = pl.col("size").shift(1).over(KEYS) < pl.col("size").shift(-1).over(KEYS)
    some = thinned(known, POINTS)["size"].unique().implode()
    return rows.filter(~(follows & inside.fill_null(value=False)) | pl.col("size").is_in(some))


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
    lead = curved_of(of.sweep)
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


def turns_of(curves: Mapping[str, Sequence[Point]], peak: float) -> dict[str, tuple[int, int]]:
    """The curves that are one line: by series the turn that each takes along it, and of how many.

    Args:
        curves: Points by series.
        peak: The peak [FLOP/s].
    """
    lines: list[tuple[Mapping[float, float], list[str]]] = []
    for series, points in curves.items():
        heights = dict(points)
        same = (names for line, names in lines if _one_line(line, heights, ALONG * peak))
        names = next(same, None)
        if names is None:
            lines.append((heights, names := []))
        names.append(series)
    return {
        series: (turn, len(names))
        for _, names in lines
        if len(names) > 1
        for turn, series in enumerate(names)
    }


def _one_line(one: Mapping[float, float], other: Mapping[float, float], closer_than: float) -> bool:
    """Whether two curves are as close at all sizes that both have."""
    return all(abs(one[size] - other[size]) < closer_than for size in one if size in other)


def between(low: tuple[Number, Number], high: tuple[Number, Number], size: Number) -> Number:
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


def thinned(table: pl.DataFrame, points: int = MOST_POINTS) -> pl.DataFrame:
    """As many sizes of a table as a curve needs, about even on a log axis."""
    sizes = table["size"].unique().sort().to_list()
    if len(sizes) <= points:
        return table
    low, high = sizes[0], sizes[-1]
    wanted = (low * (high / low) ** (i / (points - 1)) for i in range(points - 1))
    kept = {sizes[bisect_left(sizes, size)] for size in wanted} | {high}
    return table.filter(pl.col("size").is_in(kept))
