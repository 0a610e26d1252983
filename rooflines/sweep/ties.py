"""The bound of every row: from rounded times where they suffice, from exact ones at a tie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from itertools import combinations
from operator import or_
from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.costs import exact_cost
from rooflines.model.resources import RESOURCES, Resource
from rooflines.sweep.space import VARIANT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rooflines.sweep.operations import OperationBlock, Variant
    from rooflines.sweep.space import ChipVariant
    from rooflines.sweep.sweep import Sweep

BOUNDS = pl.Enum([resource.bound for resource in RESOURCES])

CONTENDED = "#contended"
"""The column that says where rounded times leave the bound open."""

CLOSE = 1e-13
"""Times that differ by a smaller share may be equal: each has at most a few dozen roundings of
1.1e-16."""


Times = Mapping[str, pl.Expr]
"""The times of resources by their name as a bottleneck, in the order that decides ties [s]."""


def times_of(resources: Iterable[Resource]) -> Times:
    """The columns with the times of resources."""
    return {resource.bound: pl.col(f"t_{resource.name}_s") for resource in resources}


def could_be_longest(time: pl.Expr, largest: pl.Expr) -> pl.Expr:
    """Whether a time could be the largest, as far as rounded times show."""
    return time >= largest * (1.0 - CLOSE)


def likely_bound(times: Times, largest: pl.Expr) -> pl.Expr:
    """The first resource that could have the largest time; the bound if no other could."""
    *others, last = times
    label: pl.Expr = pl.lit(last, dtype=BOUNDS)
    for bound in reversed(others):
        could = could_be_longest(times[bound], largest)
        label = pl.when(could).then(pl.lit(bound, dtype=BOUNDS)).otherwise(label)
    return label


def contended(times: Times, largest: pl.Expr) -> pl.Expr:
    """Whether more than one resource could have the largest time."""
    could = [could_be_longest(time, largest) for time in times.values()]
    return reduce(or_, [one & other for one, other in combinations(could, 2)])


def exact_parts(
    sweep: Sweep,
    chip_rows: OperationBlock,
    variant: Variant,
    resource: Resource,
    sizes: Mapping[str, int],
) -> tuple[Fraction, Fraction]:
    """Seconds that a resource needs for its work, and its latency, as exact rationals [s].

    Returns:
        The two terms whose larger one is the time of one row.
    """
    workload = sweep.case(chip_rows, variant)
    rate = resource.rate(sweep.target(chip_rows, variant))
    if rate is None:
        return Fraction(0), Fraction(0)
    return exact_cost(workload, resource.work, sizes) / rate.per_s, rate.latency_s


def exact_time(
    sweep: Sweep,
    chip_rows: OperationBlock,
    variant: Variant,
    resource: Resource,
    sizes: Mapping[str, int],
) -> Fraction:
    """Seconds that a resource needs for one row, as an exact rational [s]."""
    return max(exact_parts(sweep, chip_rows, variant, resource, sizes))


@dataclass(frozen=True)
class Ties:
    """What resolves the bounds that rounded times leave open.

    Attributes:
        deciding: Columns that determine the exact times of a row.
        times: Those times by resource, from the values of these columns [s].
    """

    deciding: tuple[str, ...]
    times: Callable[..., Sequence[Fraction]]

    @property
    def columns(self) -> list[str]:
        """What decides the bound of a row: the likely one, if it is contended, and the rest."""
        return ["bound", CONTENDED, *self.deciding]

    def resolve(self, columns: Sequence[pl.Series]) -> pl.Series:
        """The bound of every row: the likely one, or the exact one where times are too close.

        Args:
            columns: Those of `columns`, in its order.
        """
        label, close, *deciding = columns
        if not close.any():
            return label
        resolved = []
        for values in zip(*(column.filter(close) for column in deciding), strict=True):
            times = self.times(*values)
            resolved.append(RESOURCES[times.index(max(times))].bound)
        return label.scatter(list(true_indices(close)), pl.Series(resolved, dtype=BOUNDS))


def ties_of(sweep: Sweep, variants: Sequence[ChipVariant]) -> Ties:
    """What resolves the bounds of the rows of variants of a sweep."""

    def times(variant: int, *sizes: int) -> list[Fraction]:
        by_dim = dict(zip(sweep.op.dims, sizes, strict=True))
        return [exact_time(sweep, *variants[variant], resource, by_dim) for resource in RESOURCES]

    return Ties((VARIANT, *sweep.op.dims), times)


def true_indices(mask: pl.Series) -> Iterator[int]:
    """Indices of True without starting a nested polars query, which slows the outer one twofold."""
    passed, rest = 0, mask
    while rest.any():
        index = rest.arg_max() or 0
        yield passed + index
        passed, rest = passed + index + 1, rest.slice(index + 1)


def with_exact_bounds(frame: pl.LazyFrame, ties: Ties) -> pl.LazyFrame:
    """Resolves ties in `bound` exactly; predicates and projections still push down."""
    bound = pl.map_batches(ties.columns, ties.resolve, return_dtype=BOUNDS, is_elementwise=True)
    return frame.with_columns(bound=bound)


def with_exact_bounds_by_batch(frame: pl.LazyFrame, ties: Ties) -> pl.LazyFrame:
    """Resolves ties at a tenth of the cost per batch, but nothing pushes down."""

    def resolve_batch(batch: pl.DataFrame) -> pl.DataFrame:
        if not batch[CONTENDED].any():
            return batch
        bound = ties.resolve([batch[name] for name in ties.columns])
        return batch.clone().replace_column(batch.get_column_index("bound"), bound)

    return frame.map_batches(
        resolve_batch,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
        streamable=True,
    )
