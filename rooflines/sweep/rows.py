"""The rows of a sweep: work, times, bounds and intensities of every operation at every size, as a lazy frame."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import partial, reduce
from itertools import combinations
from operator import add, mul, or_
from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.columns import TEXTS, table_columns
from rooflines.model.costs import evaluate, extent
from rooflines.model.resources import MATH, RESOURCES, Resource
from rooflines.sweep.blocked import Factors, panel_start, panelled
from rooflines.sweep.quotient import quotient
from rooflines.sweep.space import (
    VARIANT,
    Coefficients,
    Columns,
    axis_columns,
    keys_of,
    scenario_columns,
    slices,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rooflines.sweep.sweep import ChipRows, Sweep, Variant

__all__ = ["BOUNDS", "exact_time", "sweep_rows", "whole_rows", "work"]

BOUNDS = pl.Enum([resource.bound for resource in RESOURCES])

Texts = Mapping[str, "pl.DataType"]
"""Types of text columns that are not Categorical."""

CONTENDED = "#contended"
"""The column that says where rounded times leave the bound open."""

CLOSE = 1e-13
"""Times that differ by a smaller part than this may be equal: each is the result of at most a few dozen roundings of 1.1e-16."""


def extents(sweep: Sweep, dims: Iterable[str]) -> dict[str, pl.Expr]:
    """The extent of every dimension: its size or, where it is tiled, the whole tiles that a chip's share of it needs."""
    return {dim: tiles(dim) if dim in sweep.tile else size(dim) for dim in dims}


def size(dim: str) -> pl.Expr:
    """The size of a dimension [1]."""
    return pl.col(dim).cast(pl.Float64)


def tiles(dim: str) -> pl.Expr:
    """The whole tiles that a chip's share of a dimension needs [1]."""
    span = pl.col(f"#span_{dim}")
    return ((pl.col(dim) + (span - 1)) // span).cast(pl.Float64)


def variables(sweep: Sweep, name: str, dims: Iterable[str]) -> dict[str, pl.Expr]:
    """What a work is a polynomial of: extents, but for the footprint sizes."""
    return {dim: size(dim) for dim in dims} if name == "footprint_bytes" else extents(sweep, dims)


def work(
    sweep: Sweep, name: str, terms: Mapping[tuple[str, ...], str], columns: Iterable[str]
) -> pl.Expr:
    """A work: the sum of its products of extents, each times its coefficient [FLOP or byte].

    Whole numbers below 2^53 are exact: a coefficient is one too, but for powers of two, or is made one by `#parts_<work>`.
    """
    of = variables(sweep, name, sweep.op.dims)
    products = [
        reduce(mul, [*(of[dim] for dim in dims), pl.col(coefficient)])
        for dims, coefficient in terms.items()
    ]
    return whole(name, reduce(add, products), columns) if products else pl.lit(0.0)


def whole(name: str, parts: pl.Expr, columns: Iterable[str]) -> pl.Expr:
    """A work, of the parts of it that its coefficients count."""
    divisor = f"#parts_{name}"
    return quotient(parts, pl.col(divisor)) if divisor in columns else parts


def time(resource: Resource, columns: Iterable[str], of: str = "") -> pl.Expr:
    """Seconds that a resource needs for its work: work / rate, and its latency at least [s].

    Args:
        resource: The resource.
        columns: The columns of the scenarios.
        of: `estimate_` for the calibrated rates.

    Source: All About Rooflines, "Where does the time go?".
    """
    served = quotient(pl.col(resource.work), pl.col(f"#{of}rate_{resource.name}"))
    latency = f"#{of}latency_{resource.name}"
    return pl.max_horizontal(served, latency) if latency in columns else served


def intensity(resource: Resource, *, always: bool) -> pl.Expr:
    """FLOPs per unit of a resource's work [FLOP/byte]; null where there is none.

    Args:
        resource: The resource.
        always: Whether every row has some of its work.
    """
    ratio = quotient(pl.col(MATH.work), pl.col(resource.work))
    return ratio if always else pl.when(pl.col(resource.work) > 0).then(ratio)


def longest(resource: Resource) -> pl.Expr:
    """Whether a resource could have the largest time, as far as rounded times can tell."""
    return pl.col(f"t_{resource.name}_s") >= pl.col("t_lower_s") * (1.0 - CLOSE)


def likely_bound(resources: Sequence[Resource]) -> pl.Expr:
    """The first resource that could have the largest time; where no other could, it is the bound."""
    label: pl.Expr = pl.lit(resources[-1].bound, dtype=BOUNDS)
    for resource in reversed(resources[:-1]):
        label = (
            pl.when(longest(resource)).then(pl.lit(resource.bound, dtype=BOUNDS)).otherwise(label)
        )
    return label


def contended(resources: Sequence[Resource]) -> pl.Expr:
    """Whether more than one resource could have the largest time."""
    return reduce(or_, [longest(one) & longest(other) for one, other in combinations(resources, 2)])


def exact_time(
    sweep: Sweep,
    chip_rows: ChipRows,
    variant: Variant,
    resource: Resource,
    sizes: Mapping[str, int],
) -> Fraction:
    """Seconds that a resource needs for one row, as an exact rational [s]."""
    case = sweep.case(variant)
    rate = resource.rate(sweep.target(chip_rows, variant))
    if rate is None:
        return Fraction(0)
    spans = {dim: extent(case, dim, size) for dim, size in sizes.items()}
    return max(evaluate(case.costs[resource.work], spans) / rate.per_s, rate.latency_s)


def settle(columns: Sequence[pl.Series], sweep: Sweep, chip_rows: ChipRows) -> pl.Series:
    """The bound of every row: the likely one, and in the few rows where times are too close to tell the exact one.

    Args:
        columns: The columns that `judged_by` names, in its order.
        sweep: The sweep.
        chip_rows: Which of its blocks.
    """
    label, close, *deciding = columns
    if not close.any():
        return label
    settled = []
    for place, *values in zip(*(column.filter(close) for column in deciding), strict=True):
        at = dict(zip(sweep.op.dims, values, strict=True))
        times = [
            exact_time(sweep, chip_rows, chip_rows.variants[place], resource, at)
            for resource in RESOURCES
        ]
        settled.append(RESOURCES[times.index(max(times))].bound)
    return label.scatter(list(places(close)), pl.Series(settled, dtype=BOUNDS))


def places(mask: pl.Series) -> Iterator[int]:
    """Where a mask is true, by what Series do themselves: a query within a running query makes the rest of that one twice as slow."""
    passed, rest = 0, mask
    while rest.any():
        place = rest.arg_max() or 0
        yield passed + place
        passed, rest = passed + place + 1, rest.slice(place + 1)


def judged_by(sweep: Sweep) -> list[str]:
    """What decides the bound of a row: the likely one, whether it is contended, the scenario, and the sizes of all dimensions."""
    return ["bound", CONTENDED, VARIANT, *sweep.op.dims]


def settled(frame: pl.LazyFrame, sweep: Sweep, chip_rows: ChipRows) -> pl.LazyFrame:
    """A frame with its bounds settled, in a form that the caller's filters and selections pass."""
    bound = pl.map_batches(
        judged_by(sweep),
        partial(settle, sweep=sweep, chip_rows=chip_rows),
        return_dtype=BOUNDS,
        is_elementwise=True,
    )
    return frame.with_columns(bound=bound)


def settled_whole(frame: pl.LazyFrame, sweep: Sweep, chip_rows: ChipRows) -> pl.LazyFrame:
    """The same, at a tenth of the cost per batch of rows, but nothing passes it: all columns of the frame are computed."""

    def settle_batch(batch: pl.DataFrame) -> pl.DataFrame:
        bound = settle([batch[name] for name in judged_by(sweep)], sweep, chip_rows)
        return batch.clone().replace_column(batch.get_column_index("bound"), bound)

    return frame.map_batches(
        settle_batch,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
        streamable=True,
    )


def busy(terms: Mapping[tuple[str, ...], str], columns: Columns) -> bool:
    """Whether a work is above zero in every scenario."""
    return reduce(or_, [columns[name] > 0 for name in terms.values()]).all()


def block_rows(
    sweep: Sweep, chip_rows: ChipRows, start: int, stop: int, texts: Texts
) -> pl.LazyFrame:
    """Rows `start` to `stop` of a block, with every column of a table, and what settles its bounds.

    Args:
        sweep: The sweep.
        chip_rows: Which of its blocks.
        start: The first of the block's rows [1].
        stop: The row after the last [1].
        texts: The types of text columns, for those that are not Categorical.
    """
    coefficients, constants = scenario_columns(
        sweep, [(chip_rows, variant) for variant in chip_rows.variants]
    )
    plain = [*map(axis_columns, sweep.leading), constants, *map(axis_columns, sweep.inner)]
    axes = [
        {name: values.cast(texts.get(name, values.dtype)) for name, values in axis.items()}
        for axis in plain
    ]
    place = (
        panel_start(axes)
        if all(constants[f"#span_{dim}"].n_unique() == 1 for dim in sweep.tile)
        else 0
    )
    slow = {name for axis in axes[:place] for name in axis}
    factors = Factors(slow, VARIANT)
    totals: dict[str, pl.Expr] = {}
    for name, terms in coefficients.items():
        same = twin(sweep, name, totals, coefficients, constants)
        total = factors.total(name, terms, variables(sweep, name, sweep.op.dims))
        totals[name] = totals[same] if same else whole(name, total, constants)
    shape = (
        {}
        if any("shape" in axis for axis in axes)
        else {"shape": pl.lit(None, dtype=texts.get("shape", pl.Categorical))}
    )
    frame = panelled(axes, place, start, stop, factors).with_columns(**totals, **shape)
    return metrics(frame, sweep, chip_rows, coefficients, constants)


def enums(sweep: Sweep, by_chip: Sequence[ChipRows]) -> Texts:
    """The text columns of some blocks' rows, each as the Enum of what occurs in it."""
    of_scenarios = keys_of(
        sweep, [(chip_rows, variant) for chip_rows in by_chip for variant in chip_rows.variants]
    )
    of_axes = (axis_columns(axis) for axis in (*sweep.leading, *sweep.inner))
    values = {
        name: of_name.cast(pl.String)
        for columns in (of_scenarios, *of_axes)
        for name, of_name in columns.items()
        if name in TEXTS
    }
    return {
        name: pl.Enum(values[name].drop_nulls().unique().sort() if name in values else [])
        for name in TEXTS
    }


def twin(
    sweep: Sweep, name: str, others: Iterable[str], coefficients: Coefficients, constants: Columns
) -> str | None:
    """Another work that is the same sum, as the footprint is that of the traffic where nothing is tiled: it is computed once for both."""

    def products(work: str) -> list[tuple[object, ...]]:
        parts = constants[f"#parts_{work}"].to_list() if f"#parts_{work}" in constants else []
        return [
            (dims, *constants[coefficient]) for dims, coefficient in coefficients[work].items()
        ] + [tuple(parts)]

    same = [other for other in others if products(other) == products(name)]
    return same[0] if same and not sweep.tile else None


def metrics(
    frame: pl.LazyFrame,
    sweep: Sweep,
    chip_rows: ChipRows,
    coefficients: Coefficients,
    constants: Columns,
) -> pl.LazyFrame:
    """Adds to keys, sizes and works all that follows from them; the bound is the likely one."""
    asked = [resource for resource in RESOURCES if coefficients[resource.work]]
    idle = [resource for resource in RESOURCES if resource not in asked]
    always = {resource for resource in asked if busy(coefficients[resource.work], constants)}
    times = [pl.col(f"t_{resource.name}_s") for resource in asked]
    capacity = sweep.level(chip_rows).capacity_bytes
    fits = (
        pl.lit(None, dtype=pl.Boolean)
        if capacity is None
        else pl.col("footprint_bytes") <= float(capacity)
    )
    estimate = pl.lit(None, dtype=pl.Float64)
    if "#overhead" in constants:
        estimate = pl.max_horizontal(
            [time(resource, constants, "estimate_") for resource in asked]
        ) + pl.col("#overhead")
    nominal = constants["#peak"].equals(constants[f"#rate_{MATH.name}"])
    at_peak = (
        pl.col(f"t_{MATH.name}_s") if nominal else quotient(pl.col(MATH.work), pl.col("#peak"))
    )
    return (
        frame.with_columns(
            **{f"t_{resource.name}_s": time(resource, constants) for resource in asked},
            **{f"t_{resource.name}_s": pl.lit(0.0) for resource in idle},
        )
        .with_columns(t_lower_s=pl.max_horizontal(times), t_upper_s=reduce(add, times))
        .with_columns(
            **{
                f"{r.name}_intensity": intensity(r, always=r in always)
                for r in asked
                if r is not MATH
            },
            **{f"{r.name}_intensity": pl.lit(None, dtype=pl.Float64) for r in idle},
            t_estimate_s=estimate,
            utilization=quotient(at_peak, pl.col("t_lower_s")),
            bound=likely_bound(asked),
            fits=fits,
            **{CONTENDED: contended(asked)},
        )
        .with_columns(attained_flops_per_s=pl.col("utilization") * pl.col("#peak"))
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
    pieces = [
        settled(block_rows(sweep, chip_rows, low, high, {}), sweep, chip_rows)
        for chip_rows, low, high in slices(sweep, start, sweep.rows if stop is None else stop)
    ]
    return pl.concat(
        [piece.select(column.name for column in table_columns(sweep.op.dims)) for piece in pieces]
    )


def whole_rows(sweep: Sweep, columns: Sequence[str], start: int, stop: int) -> pl.LazyFrame:
    """The same rows, for one who wants all of them and chooses the columns beforehand: faster, but not spared by a later filter.

    Args:
        sweep: The sweep.
        columns: The columns, in order.
        start: The first row [1].
        stop: The row after the last [1].

    Returns:
        The columns; text is Enum, of what occurs in these rows, which costs a fifth to write of what Categorical does.
    """
    wanted, pieces = list(slices(sweep, start, stop)), []
    texts = enums(sweep, [chip_rows for chip_rows, *_ in wanted])
    for chip_rows, low, high in wanted:
        frame = block_rows(sweep, chip_rows, low, high, texts)
        if "bound" in columns:
            frame = settled_whole(
                frame.select(*dict.fromkeys([*columns, *judged_by(sweep)])), sweep, chip_rows
            )
        pieces.append(frame.select(columns))
    return pl.concat(pieces)
