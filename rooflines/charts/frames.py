"""What the frames of several charts share: ridges, cells of maps, and selections of rows."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from rooflines.basics.lazy import alt, pl
from rooflines.basics.text import count
from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.charts.needs import has_bandwidth
from rooflines.model.network import axes_text
from rooflines.model.resources import RESOURCES, math_rate, memory_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.charts.chart import Spec
    from rooflines.charts.kit.place import Plane
    from rooflines.charts.results import Selection
    from rooflines.sweep.support import ChipRows, Variant

TIMES = {resource.bound: f"t_{resource.name}_s" for resource in RESOURCES}
"""The column of each resource's time, by the name of the bottleneck."""

CELL_COLUMNS = [f"{axis}{tail}" for axis in "xy" for tail in ("", "_low", "_high")]
"""The columns of `with_edges`."""

LEAST_STEP = 0.7
"""Sizes closer than this share of a doubling get no cells of their own in a map with numbers."""

SECONDS_PER_HOUR = 3600


def lowest(frame: pl.DataFrame, column: str, otherwise: float = 1.0) -> float:
    """The smallest value of a column, or a default if it has none."""
    value = frame.select(pl.col(column).cast(pl.Float64).min()).item()
    return otherwise if value is None else float(value)


def highest(frame: pl.DataFrame, column: str, otherwise: float = 1.0) -> float:
    """The largest value of a column, or a default if it has none."""
    value = frame.select(pl.col(column).cast(pl.Float64).max()).item()
    return otherwise if value is None else float(value)


def roof_corners(plane: Plane) -> dict[str, pl.Expr]:
    """The corners of roofs in a plot, as lists.

    Args:
        plane: The plot.

    Returns:
        `intensity` [FLOP/byte] and `flops_per_s` [FLOP/s], from columns of the same names with the
        ridge and the peak, and `bytes_per_s`.
    """
    (left, right), bottom = plane.x, plane.y[0]
    rate = pl.col("bytes_per_s")
    start = pl.max_horizontal(pl.lit(left), bottom / rate)
    return {
        "intensity": pl.concat_list(start, "intensity", pl.lit(right)),
        "flops_per_s": pl.concat_list(start * rate, "flops_per_s", "flops_per_s"),
    }


def first_shown(frame: pl.DataFrame, spec: Spec, *names: str) -> dict[str, Any]:
    """The initial choices of a chart: the first listed chip, dtypes and sharding that have rows."""
    first: dict[str, Any] = {}
    for name, listed in (
        ("sweep", (spec.sweep,)),
        ("chip", spec.chips),
        ("dtypes", spec.dtypes),
        ("sharding", (spec.sharding,)),
    ):
        if name in names:
            shown = [value for value in listed if value in frame[name]]
            first |= dict.fromkeys([name], shown[0]) if shown else {}
            frame = frame.filter(**first)
    return first


def apart(values: Sequence[int]) -> list[int]:
    """Sizes at least `LEAST_STEP` of a doubling apart; powers of two have precedence."""
    powers = [value for value in values if value & (value - 1) == 0]
    kept: list[int] = []
    for value in [*powers, *(v for v in values if v not in powers)]:
        if all(abs(math.log2(value / other)) >= LEAST_STEP for other in kept):
            kept.append(value)
    return sorted(kept)


def edges(values: Sequence[int]) -> pl.DataFrame:
    """The cell of each size on a log axis: `value`, `low` and `high`, halfway to its neighbours."""
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
    """Adds `<axis>`, `<axis>_low` and `<axis>_high`, the cells of a column, per axis: `x="D"`."""
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


def span_of(frame: pl.DataFrame) -> tuple[float, float, float, float]:
    """The edges of all cells: across from and to, up from and to."""
    across = lowest(frame, "x_low"), highest(frame, "x_high")
    return *across, lowest(frame, "y_low"), highest(frame, "y_high")


class Shares(NamedTuple):
    """The critical size for smaller shares of the peak.

    Attributes:
        near: All of them in words, such as `285 at 90 %`; empty without shares, None: not solved.
        reached: That for the largest share [1]; None: never.
        share: This share [1]; None: no shares.
    """

    near: str | None = None
    reached: int | None = None
    share: float | None = None


SHARES = Shares._fields
"""Columns of `share_values`."""

SPLIT = ("sharding", "network", "shards")
"""Columns that say how chips share the work."""


def route_name(chip_rows: ChipRows, variant: Variant) -> str | None:
    """The network of rows as charts name it, with several axes, as in `ici 4x4`."""
    along = f" {axes_text(variant.axes)}" if len(variant.axes) > 1 else ""
    return chip_rows.network and chip_rows.network + along


def unsharded(of: Selection) -> pl.LazyFrame:
    """The thresholds of a sweep's first dimension on one chip, or on the fewest."""
    return of.thresholds().filter(pl.col("axis") == of.dims[0], of.on_fewest())


def with_shares(
    frame: pl.DataFrame, of: Selection, axis: str, sizes: Sequence[str]
) -> pl.DataFrame:
    """Adds the thresholds for other shares of the peak.

    Args:
        frame: Thresholds, with `chip`, `dtypes`, `SPLIT` and the sizes.
        of: The chips and combinations.
        axis: The dimension solved for.
        sizes: The columns that determine the sizes held fixed.

    Returns:
        The frame with the columns of `share_values`.
    """
    keys = ("chip", "dtypes", *SPLIT, *sizes)
    shares = shares_below_peak(of)
    names = [f"#{share}" for share in shares]
    for share, name in zip(shares, names, strict=True):
        known = of.thresholds(share).filter(axis=axis).select(*keys, pl.col("critical").alias(name))
        frame = frame.join(
            known.collect(), on=keys, how="left", nulls_equal=True, maintain_order="left"
        )
    rows = frame.select(names).rows() if names else [()] * frame.height
    values = [share_values(dict(zip(shares, row, strict=True))) for row in rows]
    types = dict(zip(SHARES, (pl.String, pl.Int64, pl.Float64), strict=True))
    found = pl.DataFrame(values, schema=types, orient="row")
    return frame.drop(names).with_columns(found.get_columns())


def shares_below_peak(of: Selection) -> list[float]:
    """The shares of the peak that a sweep solves for besides 1, the largest first [1]."""
    return sorted((share for share in of.sweep.config.shares if share < 1), reverse=True)


def share_values(sizes: Mapping[float, int | None]) -> Shares:
    """The sizes for smaller shares of the peak, as charts name them.

    Args:
        sizes: The critical size by share, the largest share first [1]; None: never.
    """
    share, reached = next(iter(sizes.items()), (None, None))
    texts = (
        f"{'never' if size is None else count(size)} at {100 * each:g} %"
        for each, size in sizes.items()
    )
    return Shares(", ".join(texts), reached, share)


def share_tooltip(frame: pl.DataFrame) -> list[alt.Tooltip]:
    """The line of a tooltip with the sizes for smaller shares; none if none was solved for."""
    asked = frame["share"].count() > 0
    return [alt.Tooltip("near:N", title="for less of the peak")] if asked else []


def reached_text(cells: Iterable[tuple[float | None, int | None, float | None]]) -> str:
    """How many of the cells that are never compute-bound come near it; "" if none does.

    Args:
        cells: The critical size of each [1], `reached` and `share`.
    """
    never = [
        (reached, share) for size, reached, share in cells if size is None and share is not None
    ]
    some = sum(reached is not None for reached, _ in never)
    if not some:
        return ""
    reach = "reaches" if some == 1 else "reach"
    return (
        f" Of {len(never):,} never compute-bound, {some:,} {reach} {100 * never[0][1]:g} %"
        " of the peak."
    )


def at_largest(frame: pl.DataFrame, dims: Sequence[str]) -> pl.DataFrame:
    """The rows at the largest of each size held fixed; `setting` names shape and sizes."""
    shape = frame["shape"].drop_nulls().unique(maintain_order=True)
    for dim in dims:
        if frame[dim].n_unique() > 1:
            frame = frame.filter(pl.col(dim) == frame[dim].max())
    names = [str(shape[0])] if len(shape) == 1 else []
    sizes = [f"{dim} = {frame[dim][0]:,}" for dim in dims if frame.height]
    return frame.with_columns(setting=pl.lit(", ".join([*names, *sizes])))


def ridge_frame(of: Selection, provider: str | None = None) -> pl.DataFrame:
    """Ridge points of chips in dtype combinations, from main memory.

    Args:
        of: The chips and combinations, from `Results.of`.
        provider: Whose prices; None: the lowest of all.

    Returns:
        `chip`, `vendor`, `dtypes`, `compute`, `flops_per_s` [FLOP/s], `bytes_per_s` of main memory
        [byte/s], `ridge` [FLOP/byte], `watts` [W], and the lowest listed price: `usd_per_hour`
        [USD/h], `provider`, `sku`, `date`; `flops_per_usd` [FLOP/USD] and `flops_per_joule`
        [FLOP/J]. No row if a chip does not support the combination; null if it has no price or
        power.
    """
    records = []
    for chip, combination, target in of.targets():
        entry = of.sweep.chips[chip]
        price = entry.lowest_price(provider)
        if has_bandwidth(entry):
            records.append(
                {
                    "chip": chip,
                    "vendor": entry.vendor or "",
                    "dtypes": combination,
                    "compute": of.sweep.combinations[combination].compute,
                    "flops_per_s": float(math_rate(target).per_s),
                    "bytes_per_s": float(
                        memory_rate(replace(target, level=entry.memory[MAIN_MEMORY].exact)).per_s
                    ),
                    "watts": entry.power and entry.power.watts,
                    "usd_per_hour": price and price.usd_per_hour,
                    "provider": price and price.provider,
                    "sku": price and price.sku,
                    "date": price and price.date,
                }
            )
    texts = ("chip", "vendor", "dtypes", "compute", "provider", "sku", "date")
    order = (
        "chip",
        "vendor",
        "dtypes",
        "compute",
        "flops_per_s",
        "bytes_per_s",
        "watts",
        "usd_per_hour",
        "provider",
        "sku",
        "date",
    )
    frame = pl.DataFrame(
        records,
        schema={name: pl.String if name in texts else pl.Float64 for name in order},
        orient="row",
    )
    return frame.with_columns(
        ridge=pl.col("flops_per_s") / pl.col("bytes_per_s"),
        flops_per_usd=pl.col("flops_per_s") * SECONDS_PER_HOUR / pl.col("usd_per_hour"),
        flops_per_joule=pl.col("flops_per_s") / pl.col("watts"),
    )
