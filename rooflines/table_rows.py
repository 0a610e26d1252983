"""The rows of a sweep: work, times, bounds and intensities of every operation at every size, as a lazy frame."""

from __future__ import annotations

from fractions import Fraction
from functools import partial, reduce
from itertools import combinations
from operator import add, mul, or_
from typing import TYPE_CHECKING

import polars as pl

from rooflines.dictionary import table_columns
from rooflines.numbers import exact
from rooflines.resources import MATH, RESOURCES, Resource
from rooflines.space import SCENARIO, Columns, axis_columns, decode, scenario_columns, slices, works
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


def intensity(resource: Resource, *, always: bool) -> pl.Expr:
    """FLOPs per unit of a resource's work [FLOP/byte]; null where there is none.

    Args:
        resource: The resource.
        always: Whether every row has some of its work.
    """
    ratio = pl.col(MATH.work) / pl.col(resource.work)
    return ratio if always else pl.when(pl.col(resource.work) > 0).then(ratio)


def rounded_bound(resources: Sequence[Resource]) -> pl.Expr:
    """The resource with the largest of the rounded times; at a tie the earlier in the list."""
    label: pl.Expr = pl.lit(resources[-1].bound, dtype=BOUNDS)
    for resource in reversed(resources[:-1]):
        longest = pl.col(f"t_{resource.name}_s") >= pl.col("t_lower_s")
        label = pl.when(longest).then(pl.lit(resource.bound, dtype=BOUNDS)).otherwise(label)
    return label


def contended(resources: Sequence[Resource]) -> pl.Expr:
    """Whether more than one resource could have the largest time, as far as rounded times can tell."""
    close = pl.col("t_lower_s") * (1.0 - CLOSE)
    pairs = combinations([pl.col(f"t_{resource.name}_s") >= close for resource in resources], 2)
    return reduce(or_, [one & other for one, other in pairs])


def exact_time(sweep: Sweep, block: Block, scenario: Scenario, resource: Resource, sizes: Mapping[str, int]) -> Fraction:
    """Seconds that a resource needs for one row, as an exact rational [s]."""
    case = sweep.case(scenario)
    rate = resource.rate(sweep.service(block, scenario))
    if rate is None:
        return Fraction(0)
    spans = {dim: extent(case, dim, size) for dim, size in sizes.items()}
    return max(evaluate(works(case)[resource.work], spans) / rate.per_s, rate.latency_s)


def settle(columns: Sequence[pl.Series], sweep: Sweep, block: Block) -> pl.Series:
    """The bound of every row: the rounded one, and in the few rows where that is too close to tell the exact one.

    Args:
        columns: The rounded bound, whether it is contended, the scenario, and the sizes of all dimensions.
        sweep: The sweep.
        block: Which of its blocks.
    """
    label, close, scenario, *sizes = columns
    rare = close.arg_true()
    if rare.is_empty():
        return label
    settled = []
    for place, *values in zip(scenario.gather(rare), *(size.gather(rare) for size in sizes), strict=True):
        at = dict(zip(sweep.op.dims, values, strict=True))
        times = [exact_time(sweep, block, block.scenarios[place], resource, at) for resource in RESOURCES]
        settled.append(RESOURCES[times.index(max(times))].bound)
    return label.scatter(rare, pl.Series(settled, dtype=BOUNDS))


def busy(terms: Mapping[tuple[str, ...], str], columns: Columns) -> bool:
    """Whether a work is above zero in every scenario."""
    return reduce(or_, [columns[name] > 0 for name in terms.values()]).all()


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
    asked = [resource for resource in RESOURCES if coefficients[resource.work]]
    idle = [resource for resource in RESOURCES if resource not in asked]
    always = {resource for resource in asked if busy(coefficients[resource.work], constants)}
    times = [pl.col(f"t_{resource.name}_s") for resource in asked]
    capacity = sweep.chips[block.chip]["memory"][block.memory].get("capacity_bytes")
    fits = pl.lit(None, dtype=pl.Boolean) if capacity is None else pl.col("footprint_bytes") <= float(exact(capacity))
    candidates = [pl.col("bound"), pl.col("#contended"), pl.col(SCENARIO), *(pl.col(dim) for dim in sweep.op.dims)]
    absent = {} if any("shape" in axis.columns for axis in sweep.inner) else {"shape": pl.lit(None, dtype=pl.Categorical)}
    return (
        decode(axes, start, stop)
        .with_columns(**extents(sweep, sweep.op.dims))
        .with_columns(**{name: work(sweep, name, terms) for name, terms in coefficients.items()})
        .with_columns(
            **{f"t_{resource.name}_s": time(resource, constants) for resource in asked},
            **{f"t_{resource.name}_s": pl.lit(0.0) for resource in idle},
        )
        .with_columns(t_lower_s=pl.max_horizontal(times), t_upper_s=reduce(add, times))
        .with_columns(
            **absent,
            **{f"{r.name}_intensity": intensity(r, always=r in always) for r in asked if r is not MATH},
            **{f"{r.name}_intensity": pl.lit(None, dtype=pl.Float64) for r in idle},
            t_estimate_s=pl.col("t_lower_s") + pl.col("#overhead"),
            utilization=pl.col(MATH.work) / pl.col("#peak") / pl.col("t_lower_s"),
            bound=rounded_bound(asked),
            fits=fits,
            **{"#contended": contended(asked)},
        )
        .with_columns(
            attained_flops_per_s=pl.col("utilization") * pl.col("#peak"),
            bound=pl.map_batches(candidates, partial(settle, sweep=sweep, block=block), return_dtype=BOUNDS, is_elementwise=True),
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
