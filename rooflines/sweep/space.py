"""A sweep as an index space: row i is decoded from i alone, so slices are computed in any order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.numbers import LARGEST_COUNT
from rooflines.model.columns import AXES
from rooflines.model.costs import COSTS, USEFUL
from rooflines.model.network import axes_text
from rooflines.model.poly import WINDOWED
from rooflines.model.resources import RESOURCES
from rooflines.model.sharding import SHARDS

if TYPE_CHECKING:
    from rooflines.model.costs import Workload
    from rooflines.model.resources import Rate
    from rooflines.sweep.axes import Axis
    from rooflines.sweep.operations import OperationBlock, Variant
    from rooflines.sweep.sweep import Sweep

VARIANT = "#variant"
"""The column with the index of a row's variant. Names with # never leave the package."""

SMALL_INDEX = 2**32

Coefficients = Mapping[str, Mapping[tuple[str, ...], str]]
"""For each work: the dimensions of every product, and the column of its coefficient."""

AxisColumns = Mapping[str, pl.Series]
"""Columns that change together along one axis, all of one length."""


MOST = 2**126
"""More elements than the caches of all sequences ever have [1]."""


def axis_columns(axis: Axis) -> AxisColumns:
    """The columns of an axis: sizes are whole numbers, extents by window Float64."""
    return {name: _axis_column(name, values) for name, values in axis.columns.items()}


def _axis_column(name: str, values: Sequence[Any]) -> pl.Series:
    if name == "shape":
        return pl.Series(values, dtype=pl.Categorical)
    if name.partition(":")[0] in WINDOWED:
        return pl.Series([float(value) for value in values], dtype=pl.Float64)
    return whole_numbers(values)


def whole_numbers(values: Sequence[int | None]) -> pl.Series:
    """Whole numbers of any size as a column; of more than 64 bits only where it takes them."""
    clipped = [None if value is None else max(min(value, MOST), -MOST) for value in values]
    largest = max((abs(value) for value in clipped if value is not None), default=0)
    return pl.Series(clipped, dtype=pl.Int64 if largest <= LARGEST_COUNT else pl.Int128)


def length(columns: AxisColumns) -> int:
    """Points on an axis [1]."""
    return len(next(iter(columns.values())))


def decode(axes: Sequence[AxisColumns], start: int, stop: int) -> pl.LazyFrame:
    """Rows `start` to `stop` of the product of axes, the last axis fastest.

    Args:
        axes: The columns of each axis, slowest first.
        start: The first row [1].
        stop: The row after the last [1].

    Returns:
        One column for each of the axes' columns.
    """
    row = pl.col("#row")
    dtype = pl.UInt32 if stop < SMALL_INDEX else pl.Int64
    columns, stride = {}, math.prod(length(axis) for axis in axes)
    total = stride
    for axis in axes:
        count = length(axis)
        stride //= count
        code = row if stride == 1 else row // stride
        if stride * count != total:
            code = code % count
        for name, values in axis.items():
            columns[name] = (
                pl.lit(values[0], dtype=values.dtype)
                if values.n_unique() == 1
                else pl.lit(values).gather(code)
            )
    return (
        pl.LazyFrame()
        .select(pl.int_range(start, stop, dtype=dtype).alias("#row"))
        .with_columns(**columns)
        .drop("#row")
    )


def variants_of(group: Sequence[OperationBlock]) -> list[ChipVariant]:
    """The variants of several chips, in order."""
    return [(chip_rows, variant) for chip_rows in group for variant in chip_rows.variants]


ChipVariant = tuple["OperationBlock", "Variant"]
"""A variant on a chip that supports it."""


def coefficient_columns(
    workloads: Sequence[Workload],
) -> tuple[Coefficients, dict[str, list[float]]]:
    """The coefficients of every work as columns, one value per workload.

    A product that occurs in no workload has no column.

    1/3 is not exact in Float64: coefficients are scaled by the lcm of their odd denominators, and
    the sum is divided once (`#parts_<work>`). So whole numbers stay whole.
    """
    names: dict[str, dict[tuple[str, ...], str]] = {work: {} for work in (*COSTS, USEFUL)}
    columns: dict[str, list[float]] = {}
    for index, workload in enumerate(workloads):
        for work, coefficients in workload.costs.items():
            parts = math.lcm(
                *(odd_part(coefficient.denominator) for coefficient in coefficients.values())
            )
            if parts > 1:
                columns.setdefault(f"#parts_{work}", [1.0] * len(workloads))[index] = float(parts)
            for dims, coefficient in coefficients.items():
                name = names[work].setdefault(dims, f"#{work}:{','.join(dims)}")
                values = columns.setdefault(name, [0.0] * len(workloads))
                values[index] = float(coefficient * parts)
    return names, columns


def odd_part(number: int) -> int:
    """A number without its factors of two."""
    return number // (number & -number)


def variant_columns(
    sweep: Sweep, variants: Sequence[ChipVariant]
) -> tuple[Coefficients, dict[str, pl.Series]]:
    """What is the same for all sizes of a variant: keys, coefficients of works, and rates.

    Returns:
        Where to find the coefficients, and columns with one value for each variant: the keys,
        `#<work>:<dims>` [work per extents], `#parts_<work>` [1] if its coefficients are scaled by
        it, `#rate_<resource>` [work/s], `#latency_<resource>` [s], `#peak` [FLOP/s], `#capacity`
        [byte], null where it is not published, `#span_<dim>` [elements per extent].
    """
    workloads = [sweep.case(*each) for each in variants]
    targets = [sweep.target(chip_rows, variant) for chip_rows, variant in variants]
    coefficients, columns = coefficient_columns(workloads)
    for resource in RESOURCES:
        columns |= rate_columns(resource.name, [resource.rate(target) for target in targets])
    columns["#peak"] = [float(target.peak) for target in targets]
    series = {name: pl.Series(values, dtype=pl.Float64) for name, values in columns.items()}
    room = [target.level.capacity_bytes for target in targets]
    capacities = [None if capacity is None else float(capacity) for capacity in room]
    series["#capacity"] = pl.Series(capacities, dtype=pl.Float64)
    for dim, tile in sweep.tile.items():
        spans = [tile * workload.share(dim) for workload in workloads]
        series[f"#span_{dim}"] = pl.Series(spans, dtype=pl.Int64)
    return coefficients, {**series, **keys_of(sweep, variants)}


def rate_columns(resource: str, rates: Sequence[Rate | None]) -> dict[str, list[float]]:
    """`#rate_<resource>` [work/s] and, if any, `#latency_<resource>` [s].

    A rate of None is never used: no work asks for it.
    """
    columns = {f"#rate_{resource}": [float(rate.per_s) if rate else 1.0 for rate in rates]}
    latencies = [float(rate.latency_s) if rate else 0.0 for rate in rates]
    return columns | ({f"#latency_{resource}": latencies} if any(latencies) else {})


def keys_of(sweep: Sweep, variants: Sequence[ChipVariant]) -> dict[str, pl.Series]:
    """The keys of every variant, and its index in the list."""
    keys: dict[str, Sequence[str | None]] = {
        "operation": [sweep.op.name] * len(variants),
        "chip": [chip_rows.chip for chip_rows, _ in variants],
        "unit": [sweep.unit] * len(variants),
        "memory": [chip_rows.memory for chip_rows, _ in variants],
        "network": [chip_rows.network for chip_rows, _ in variants],
        "dtypes": [variant.dtypes for _, variant in variants],
        "sharding": [variant.sharding for _, variant in variants],
    }
    if sweep.has_axes:
        keys[AXES] = [axes_text(variant.axes) for _, variant in variants]
    return {
        **{key: pl.Series(values, dtype=pl.Categorical) for key, values in keys.items()},
        SHARDS: pl.Series([variant.shards for _, variant in variants], dtype=pl.Int64),
        VARIANT: pl.Series(range(len(variants)), dtype=pl.UInt32),
    }
