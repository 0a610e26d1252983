"""A sweep as an index space: row i is decoded from i alone, so any slice of it can be made anywhere, in any order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.model.costs import COSTS
from rooflines.model.resources import RESOURCES, estimate_rate
from rooflines.model.sharding import SHARDS

if TYPE_CHECKING:
    from rooflines.model.costs import Workload
    from rooflines.model.resources import Rate
    from rooflines.model.target import Target
    from rooflines.sweep.axes import Axis
    from rooflines.sweep.sweep import ChipRows, Sweep, Variant

__all__ = [
    "VARIANT",
    "Coefficients",
    "Columns",
    "Served",
    "axis_columns",
    "decode",
    "keys_of",
    "length",
    "scenario_columns",
    "slices",
]

VARIANT = "#scenario"
"""The column that says which scenario of its block a row belongs to. Names with # never leave the package."""

SMALL_INDEX = 2**32

Coefficients = Mapping[str, Mapping[tuple[str, ...], str]]
"""For each work: the dimensions of every product in it, and the column that holds the product's coefficient."""


Columns = Mapping[str, pl.Series]
"""Columns that change together along one axis, all of one length."""


def axis_columns(axis: Axis) -> Columns:
    """The columns of an axis of sizes."""
    return {
        name: pl.Series(values, dtype=pl.Categorical if name == "shape" else pl.Int64)
        for name, values in axis.columns.items()
    }


def length(columns: Columns) -> int:
    """Points on an axis [1]."""
    return len(next(iter(columns.values())))


def decode(axes: Sequence[Columns], start: int, stop: int) -> pl.LazyFrame:
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


def slices(sweep: Sweep, start: int, stop: int) -> Iterator[tuple[ChipRows, int, int]]:
    """The pieces of a slice of a sweep's rows: a block each, with the rows of the block that are meant."""
    offset = 0
    for chip_rows in sweep.by_chip:
        rows = sweep.rows_of(chip_rows)
        low, high = max(start - offset, 0), min(stop - offset, rows)
        if low < high:
            yield chip_rows, low, high
        offset += rows


Served = tuple["ChipRows", "Variant"]
"""A scenario on the chip that serves it."""


def coefficient_columns(cases: Sequence[Workload]) -> tuple[Coefficients, dict[str, list[float]]]:
    """The coefficients of every work as columns, a value for each case; products that never occur have none.

    A coefficient whose denominator is not a power of two has no exact Float64: where a case has one, all coefficients of that work are
    multiplied by what makes them exact, and `#parts_<work>` says by what, to divide their sum by. So whole numbers come out whole.
    """
    names: dict[str, dict[tuple[str, ...], str]] = {work: {} for work in COSTS}
    columns: dict[str, list[float]] = {}
    for index, case in enumerate(cases):
        for work, coefficients in case.costs.items():
            parts = math.lcm(
                *(odd(coefficient.denominator) for coefficient in coefficients.values())
            )
            if parts > 1:
                columns.setdefault(f"#parts_{work}", [1.0] * len(cases))[index] = float(parts)
            for dims, coefficient in coefficients.items():
                name = names[work].setdefault(dims, f"#{work}:{','.join(dims)}")
                columns.setdefault(name, [0.0] * len(cases))[index] = float(coefficient * parts)
    return names, columns


def odd(number: int) -> int:
    """A number without its factors of two."""
    return number // (number & -number)


def scenario_columns(
    sweep: Sweep, served: Sequence[Served]
) -> tuple[Coefficients, dict[str, pl.Series]]:
    """What is the same for all sizes of a scenario: its keys, the coefficients of its works, and what serves it.

    Returns:
        Where to find the coefficients, and columns with one value for each scenario: the keys, `#<work>:<dims>` [work per extents],
        `#parts_<work>` [1] where its coefficients are multiplied by that, `#rate_<resource>` [work/s], `#latency_<resource>` [s],
        `#peak` [FLOP/s], `#span_<dim>` [elements per extent]; where a chip is calibrated `#estimate_rate_<resource>`,
        `#estimate_latency_<resource>` and `#overhead` [s], null in scenarios without a calibration.
    """
    cases = [sweep.case(variant) for _, variant in served]
    targets = [sweep.target(chip_rows, variant) for chip_rows, variant in served]
    coefficients, columns = coefficient_columns(cases)
    for resource in RESOURCES:
        columns |= rate_columns(resource.name, [resource.rate(target) for target in targets])
    columns["#peak"] = [float(target.peak) for target in targets]
    series = {name: pl.Series(values, dtype=pl.Float64) for name, values in columns.items()}
    series |= estimate_columns(sweep, served, targets)
    for dim, tile in sweep.tile.items():
        series[f"#span_{dim}"] = pl.Series(
            [tile * case.share(dim) for case in cases], dtype=pl.Int64
        )
    return coefficients, {**series, **keys_of(sweep, served)}


def rate_columns(
    resource: str, rates: Sequence[Rate | None], of: str = ""
) -> dict[str, list[float]]:
    """`#<of>rate_<resource>` [work/s] and, where there is any, `#<of>latency_<resource>` [s]; no work asks for a rate that is None."""
    columns = {f"#{of}rate_{resource}": [float(rate.per_s) if rate else 1.0 for rate in rates]}
    latencies = [float(rate.latency_s) if rate else 0.0 for rate in rates]
    return columns | ({f"#{of}latency_{resource}": latencies} if any(latencies) else {})


def estimate_columns(
    sweep: Sweep, served: Sequence[Served], targets: Sequence[Target]
) -> dict[str, pl.Series]:
    """The calibrated rates, latencies and overheads of scenarios; nothing where no chip is calibrated, null where one is not."""
    fitted = [sweep.calibration(*each) for each in served]
    if not any(fitted):
        return {}
    columns: dict[str, Sequence[float | None]] = {
        "#overhead": [float(known.overhead_s) if known else None for known in fitted]
    }
    for resource in RESOURCES:
        rates = [
            estimate_rate(resource, target, known) if known else None
            for target, known in zip(targets, fitted, strict=True)
        ]
        columns |= rate_columns(resource.name, rates, "estimate_")
    return {name: pl.Series(values, dtype=pl.Float64) for name, values in columns.items()}


def keys_of(sweep: Sweep, served: Sequence[Served]) -> dict[str, pl.Series]:
    """The keys of every scenario, and its place in the list: a value for each."""
    keys: dict[str, list[Any]] = {
        "operation": [sweep.op.name] * len(served),
        "chip": [chip_rows.chip for chip_rows, _ in served],
        "unit": [sweep.unit] * len(served),
        "memory": [chip_rows.memory for chip_rows, _ in served],
        "network": [chip_rows.network for chip_rows, _ in served],
        "dtypes": [variant.dtypes for _, variant in served],
        "sharding": [variant.sharding for _, variant in served],
        SHARDS: [variant.shards for _, variant in served],
    }
    series = {
        key: pl.Series(list(values), dtype=pl.Int64 if key == SHARDS else pl.Categorical)
        for key, values in keys.items()
    }
    return {**series, VARIANT: pl.Series(range(len(served)), dtype=pl.UInt32)}
