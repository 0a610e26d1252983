"""The rows of a sweep: work, times, bounds and intensities of every operation at every size, as a lazy frame."""

from __future__ import annotations

from fractions import Fraction
from functools import partial, reduce
from operator import add, mul
from typing import TYPE_CHECKING

import polars as pl

from rooflines.dictionary import table_columns
from rooflines.numbers import exact
from rooflines.resources import MATH, RESOURCES, Resource
from rooflines.space import SCENARIO, axis_columns, decode, scenario_columns, slices, works
from rooflines.work import evaluate, extent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rooflines.sweep import Block, Scenario, Sweep

__all__ = ["BOUNDS", "extents", "sweep_rows", "work"]

BOUNDS = pl.Enum([resource.bound for resource in RESOURCES])

CLOSE = 1e-13
"""Times that differ by a smaller part than this may be equal: each is the result of at most a few dozen roundings of 1.1e-16."""


def extents(sweep: Sweep, dims: Sequence[str]) -> dict[str, pl.Expr]:
    """The size of every dimension, and its extent where it is tiled: the whole tiles that a chip's share of it needs."""
    columns = {}
    for dim in dims:
        columns[f"#size_{dim}"] = pl.col(dim).cast(pl.Float64)
        if dim in sweep.tile:
            span = pl.col(f"#span_{dim}")
            columns[f"#tiles_{dim}"] = ((pl.col(dim) + (span - 1)) // span).cast(pl.Float64)
    return columns


def work(sweep: Sweep, name: str, terms: Mapping[tuple[str, ...], str]) -> pl.Expr:
    """A work: the sum of its products of extents, each times its coefficient [FLOP or byte].

    The product comes before the coefficient: below 2^53 it is exact, and so is a work of one product up to one rounding.
    """
    tiled = () if name == "footprint_bytes" else sweep.tile
    parts = []
    for dims, coefficient in terms.items():
        variables = [pl.col(f"#tiles_{dim}" if dim in tiled else f"#size_{dim}") for dim in dims]
        parts.append(reduce(mul, [*variables, pl.col(coefficient)]))
    return reduce(add, parts) if parts else pl.lit(0.0)


def time(resource: Resource, columns: Iterable[str]) -> pl.Expr:
    """Seconds that a resource needs for its work: work / rate, and its latency at least [s].

    Source: All About Rooflines, "Where does the time go?".
    """
    served = pl.col(resource.work) / pl.col(f"#rate_{resource.name}")
    latency = f"#latency_{resource.name}"
    return pl.max_horizontal(served, latency) if latency in columns else served


def intensity(resource: Resource) -> pl.Expr:
    """FLOPs per unit of a resource's work [FLOP/byte]; null where there is none."""
    return pl.when(pl.col(resource.work) > 0).then(pl.col(MATH.work) / pl.col(resource.work))


def rounded_bound() -> pl.Expr:
    """The resource with the largest of the rounded times; at a tie the earlier in the list."""
    label: pl.Expr = pl.lit(RESOURCES[-1].bound, dtype=BOUNDS)
    for resource in reversed(RESOURCES[:-1]):
        longest = pl.col(f"t_{resource.name}_s") >= pl.col("t_lower_s")
        label = pl.when(longest).then(pl.lit(resource.bound, dtype=BOUNDS)).otherwise(label)
    return label


def contended() -> pl.Expr:
    """Whether more than one resource could have the largest time, as far as rounded times can tell."""
    close = pl.col("t_lower_s") * (1.0 - CLOSE)
    return pl.sum_horizontal((pl.col(f"t_{resource.name}_s") >= close).cast(pl.UInt8) for resource in RESOURCES) > 1


def exact_time(sweep: Sweep, block: Block, scenario: Scenario, resource: Resource, sizes: Mapping[str, int]) -> Fraction:
    """Seconds that a resource needs for one row, as an exact rational [s]."""
    case = sweep.case(scenario)
    rate = resource.rate(sweep.service(block, scenario))
    if rate is None:
        return Fraction(0)
    spans = {dim: extent(case, dim, size) for dim, size in sizes.items()}
    return max(evaluate(works(case)[resource.work], spans) / rate.per_s, rate.latency_s)


def settle(candidates: pl.Series, sweep: Sweep, block: Block) -> pl.Series:
    """The bound of every row: the rounded one, and in the few rows where that is too close to tell the exact one.

    Args:
        candidates: A struct of the scenario, the sizes, `#contended` and `bound`.
        sweep: The sweep.
        block: Which of its blocks.
    """
    frame = candidates.struct.unnest()
    label, rare = frame["bound"], frame["#contended"].arg_true()
    if rare.is_empty():
        return label
    settled = []
    for row in frame[rare].iter_rows(named=True):
        sizes = {dim: row[dim] for dim in sweep.op.dims}
        times = [exact_time(sweep, block, block.scenarios[row[SCENARIO]], resource, sizes) for resource in RESOURCES]
        settled.append(RESOURCES[times.index(max(times))].bound)
    return label.scatter(rare, pl.Series(settled, dtype=BOUNDS))


def block_rows(sweep: Sweep, block: Block, start: int, stop: int) -> pl.LazyFrame:
    """Rows `start` to `stop` of a block, with every column of a table.

    Args:
        sweep: The sweep.
        block: Which of its blocks.
        start: The first of the block's rows [1].
        stop: The row after the last [1].
    """
    coefficients, constants = scenario_columns(sweep, [(block, scenario) for scenario in block.scenarios])
    axes = [*map(axis_columns, sweep.leading), constants, *map(axis_columns, sweep.inner)]
    times = [pl.col(f"t_{resource.name}_s") for resource in RESOURCES]
    capacity = sweep.chips[block.chip]["memory"][block.memory].get("capacity_bytes")
    fits = pl.lit(None, dtype=pl.Boolean) if capacity is None else pl.col("footprint_bytes") <= float(exact(capacity))
    candidates = pl.struct(SCENARIO, *sweep.op.dims, "#contended", "bound")
    absent = {} if any("shape" in axis.columns for axis in sweep.inner) else {"shape": pl.lit(None, dtype=pl.Categorical)}
    return (
        decode(axes, start, stop)
        .with_columns(**extents(sweep, sweep.op.dims))
        .with_columns(**{name: work(sweep, name, terms) for name, terms in coefficients.items()})
        .with_columns(**{f"t_{resource.name}_s": time(resource, constants) for resource in RESOURCES})
        .with_columns(t_lower_s=pl.max_horizontal(times), t_upper_s=reduce(add, times))
        .with_columns(
            **absent,
            **{f"{r.name}_intensity": intensity(r) for r in RESOURCES if r is not MATH},
            t_estimate_s=pl.col("t_lower_s") + pl.col("#overhead"),
            utilization=pl.col(MATH.work) / pl.col("#peak") / pl.col("t_lower_s"),
            bound=rounded_bound(),
            fits=fits,
            **{"#contended": contended()},
        )
        .with_columns(
            attained_flops_per_s=pl.col("utilization") * pl.col("#peak"),
            bound=candidates.map_batches(partial(settle, sweep=sweep, block=block), return_dtype=BOUNDS, is_elementwise=True),
        )
        .select(column.name for column in table_columns(sweep.op.dims))
    )


def sweep_rows(sweep: Sweep, start: int = 0, stop: int | None = None) -> pl.LazyFrame:
    """Rows `start` to `stop` of a sweep; put together in order, slices are the whole table, row for row.

    Args:
        sweep: The sweep.
        start: The first row [1].
        stop: The row after the last; the end by default [1].

    Returns:
        The columns of `dictionary.table_columns`, in their order. Times, intensities and works are Float64, exact to a few roundings;
        `bound` is exact.
    """
    pieces = [block_rows(sweep, *piece) for piece in slices(sweep, start, sweep.rows if stop is None else stop)]
    return pl.concat(pieces)
