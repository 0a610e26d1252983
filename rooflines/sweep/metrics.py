"""The formulas of a table, as expressions: works, times, intensities and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add, mul, or_
from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.costs import USEFUL
from rooflines.model.resources import MATH, RESOURCES, Resource
from rooflines.sweep.estimates import ESTIMATE_BOUNDS
from rooflines.sweep.extents import variables
from rooflines.sweep.ties import CONTENDED, contended, could_be_longest, likely_bound, times_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from rooflines.sweep.space import AxisColumns, Coefficients
    from rooflines.sweep.sweep import Sweep

ESTIMATE_BOUND = pl.Enum(ESTIMATE_BOUNDS)


def quotient(dividend: pl.Expr, divisor: pl.Expr, *, by_row: bool = False) -> pl.Expr:
    """The Float64 nearest to a dividend over its divisor, the same in every slice of a table.

    polars divides by a column of one value by multiplying with its reciprocal, which rounds twice:
    3528 / 49 is then not 72. A slice of one row, or a thread's share of one row, is divided
    instead, so the last digit would depend on how a table is cut. A divisor that is computed row by
    row avoids both.

    Args:
        dividend: The dividend.
        divisor: The divisor.
        by_row: Whether the divisor is computed row by row already.
    """
    return dividend / (divisor if by_row else divisor + dividend * 0.0)


@dataclass(frozen=True)
class Formula:
    """A formula of columns.

    Attributes:
        expr: The formula as an expression.
        by_row: Whether it is computed row by row: no constant.
    """

    expr: pl.Expr
    by_row: bool = False

    def __add__(self, other: Formula) -> Formula:
        """The sum."""
        return Formula(self.expr + other.expr)

    def __mul__(self, other: Formula) -> Formula:
        """The product."""
        return Formula(self.expr * other.expr)

    def __truediv__(self, other: Formula) -> Formula:
        """The quotient, see `quotient`."""
        return Formula(quotient(self.expr, other.expr, by_row=other.by_row))

    def where_positive(self, other: Formula) -> Formula:
        """Null where the other one is zero."""
        return Formula(pl.when(other.expr > 0).then(self.expr))

    def where_not_false(self, name: str) -> Formula:
        """Null where a column is false; not where it is null."""
        return Formula(pl.when(pl.col(name).fill_null(value=True)).then(self.expr))


def column(name: str, by_row: Container[str] = ()) -> Formula:
    """A column as a formula; `by_row` are the columns that are computed row by row."""
    return Formula(pl.col(name), name in by_row)


def computed_by_row(sweep: Sweep, coefficients: Coefficients, constants: AxisColumns) -> set[str]:
    """The columns that have a value for each row, in place of one for all.

    Args:
        sweep: The sweep.
        coefficients: For each work, the dimensions of every product and the column of its
            coefficient.
        constants: The columns of the variants.
    """
    sizes = {name for name, values in sweep.size_columns.items() if len(set(values)) > 1}
    varying = sizes | {name for name, values in constants.items() if values.n_unique() > 1}
    works = {
        work
        for work, terms in coefficients.items()
        if any(not varying.isdisjoint((*dims, name)) for dims, name in terms.items())
    }
    timed = works.intersection(resource.work for resource in RESOURCES)
    return varying | works | ({"t_lower_s"} if timed else set())


def work(
    sweep: Sweep, name: str, terms: Mapping[tuple[str, ...], str], columns: Container[str]
) -> pl.Expr:
    """A work: the sum of its products of extents, each times its coefficient [FLOP or byte].

    Exact for whole numbers below 2^53: a coefficient is a whole number times a power of two, if
    necessary after scaling by `#parts_<work>`.
    """
    extents = variables(sweep, name)
    products = [
        reduce(mul, [*(extents[dim] for dim in dims), pl.col(coefficient)])
        for dims, coefficient in terms.items()
    ]
    return unscaled(name, reduce(add, products), columns) if products else pl.lit(0.0)


def unscaled(name: str, scaled: pl.Expr, columns: Container[str]) -> pl.Expr:
    """A work from its sum with scaled coefficients: divided by `#parts_<work>` if there is one."""
    parts = f"#parts_{name}"
    return quotient(scaled, pl.col(parts)) if parts in columns else scaled


def time(resource: Resource, columns: Container[str], by_row: Container[str] = ()) -> pl.Expr:
    """Seconds that a resource needs for its work: work / rate, and at least its latency [s].

    Args:
        resource: The resource.
        columns: The columns of the variants.
        by_row: The columns that are computed row by row.

    Source: All About Rooflines, "Where does the time go?".
    """
    rate, latency = f"#rate_{resource.name}", f"#latency_{resource.name}"
    seconds = quotient(pl.col(resource.work), pl.col(rate), by_row=rate in by_row)
    return pl.max_horizontal(seconds, latency) if latency in columns else seconds


def upper(resources: Iterable[Resource]) -> Formula:
    """The time without overlap: the sum of the times [s]."""
    return reduce(add, [column(f"t_{resource.name}_s") for resource in resources])


def intensity(resource: Resource, by_row: Container[str] = (), *, always: bool) -> Formula:
    """FLOPs per unit of a resource's work [FLOP/byte]; null where it has no work.

    Args:
        resource: The resource.
        by_row: The columns that are computed row by row.
        always: Whether every row has work for it.
    """
    amount = column(resource.work, by_row)
    ratio = column(MATH.work) / amount
    return ratio if always else ratio.where_positive(amount)


def utilization(
    peak: Formula | None, by_row: Container[str] = (), useful: str = MATH.work
) -> Formula:
    """Share of the nominal peak that is attained [1].

    Args:
        peak: The nominal peak [FLOP/s]; None where useful FLOPs take `t_math_s` at it.
        by_row: The columns that are computed row by row.
        useful: The column of the FLOPs that count: in whole tiles those without padding.
    """
    at_peak = column(f"t_{MATH.name}_s") if peak is None else column(useful) / peak
    return at_peak / column("t_lower_s", by_row)


def attained(share: Formula, peak: Formula) -> Formula:
    """FLOPs per second: a share of the nominal peak [FLOP/s]."""
    return share * peak


def always_positive(terms: Mapping[tuple[str, ...], str], columns: AxisColumns) -> bool:
    """Whether a work is above zero in every variant."""
    return reduce(or_, [columns[name] > 0 for name in terms.values()]).all()


def same_terms(
    sweep: Sweep,
    name: str,
    others: Iterable[str],
    coefficients: Coefficients,
    constants: AxisColumns,
) -> str | None:
    """Another work with the same terms, so that both are computed once; None if there is none.

    Without tiles the footprint has the terms of the memory traffic.
    """

    def terms(work: str) -> list[tuple[object, ...]]:
        parts = constants[f"#parts_{work}"].to_list() if f"#parts_{work}" in constants else []
        products = coefficients[work].items()
        return [(dims, *constants[coefficient]) for dims, coefficient in products] + [tuple(parts)]

    same = [other for other in others if terms(other) == terms(name)]
    return same[0] if same and not sweep.tile else None


def with_metrics(
    frame: pl.LazyFrame,
    sweep: Sweep,
    coefficients: Coefficients,
    constants: AxisColumns,
) -> pl.LazyFrame:
    """Adds the metrics but those of estimates to keys, sizes and works.

    Ties in `bound` are not resolved yet.
    """
    used = [resource for resource in RESOURCES if coefficients[resource.work]]
    unused = [resource for resource in RESOURCES if resource not in used]
    by_row = computed_by_row(sweep, coefficients, constants)
    times, peak = times_of(used), column("#peak", by_row)
    return (
        frame.with_columns(
            **{f"t_{resource.name}_s": time(resource, constants, by_row) for resource in used},
            **{f"t_{resource.name}_s": pl.lit(0.0) for resource in unused},
        )
        .with_columns(t_lower_s=pl.max_horizontal(*times.values()), t_upper_s=upper(used).expr)
        .with_columns(
            **{
                f"{r.name}_intensity": intensity(
                    r, by_row, always=always_positive(coefficients[r.work], constants)
                ).expr
                for r in used
                if r is not MATH
            },
            **{f"{r.name}_intensity": pl.lit(None, dtype=pl.Float64) for r in unused},
            utilization=(
                utilization(peak, by_row, USEFUL)
                if sweep.tile
                else utilization(None if is_nominal(constants) else peak, by_row)
            ).expr,
            bound=likely_bound(times, pl.col("t_lower_s")),
            fits=pl.col("footprint_bytes") <= pl.col("#capacity"),
            **{CONTENDED: contended(times, pl.col("t_lower_s"))},
        )
        .with_columns(attained_flops_per_s=attained(column("utilization"), peak).expr)
    )


def is_nominal(constants: AxisColumns) -> bool:
    """Whether `t_math_s` is the time at the nominal peak: no efficiency lowers it."""
    return constants["#peak"].equals(constants[f"#rate_{MATH.name}"])


def with_estimates(frame: pl.LazyFrame, bounds: Mapping[str, str]) -> pl.LazyFrame:
    """Adds the estimate, its band and its bound; null without a calibration.

    Args:
        frame: `#common` and the pieces [s], and their bands.
        bounds: The bound of every column with a piece, in the order that decides ties.
    """
    if not bounds:
        times = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
        return frame.with_columns(
            **{name: pl.lit(None, dtype=pl.Float64) for name in times},
            estimate_bound=pl.lit(None, dtype=ESTIMATE_BOUND),
        )
    largest = pl.col("#largest")
    band: dict[str, pl.Expr] = {side: pl.lit(None, dtype=pl.Float64) for side in ("low", "high")}
    label: pl.Expr = pl.lit(None, dtype=ESTIMATE_BOUND)
    for piece, bound in reversed(list(bounds.items())):
        could = could_be_longest(pl.col(piece), largest)
        label = pl.when(could).then(pl.lit(bound, dtype=ESTIMATE_BOUND)).otherwise(label)
    for bound in dict.fromkeys(bounds.values()):
        here = pl.col("estimate_bound") == pl.lit(bound, dtype=ESTIMATE_BOUND)
        band = {
            side: pl.when(here).then(pl.col(f"#{side}_{bound}")).otherwise(otherwise)
            for side, otherwise in band.items()
        }
    return (
        frame.with_columns(**{"#largest": pl.max_horizontal(*bounds)})
        .with_columns(t_estimate_s=largest + pl.col("#common"), estimate_bound=label)
        .with_columns(
            t_estimate_p10_s=pl.col("t_estimate_s") * band["low"],
            t_estimate_p90_s=pl.col("t_estimate_s") * band["high"],
        )
    )
