"""Estimates of timed matmuls, by the calibration of their chip and software."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.calibration.form import bound, estimate
from rooflines.calibration.nominal import ROW
from rooflines.calibration.quantities import expressions, polynomials

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.calibration.entries import Fitted, FittedMatmul
    from rooflines.calibration.quantities import Polynomial
    from rooflines.sweep.sweep import Sweep

__all__ = ["NO_ESTIMATE", "with_band", "with_fitted"]

ESTIMATES = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s", "calibration")
"""The columns of an estimate: its time, the band of eight timings in ten, what it is by."""

NO_ESTIMATE = {
    name: pl.lit(None, pl.String if name == "calibration" else pl.Float64) for name in ESTIMATES
}


def with_fitted(
    rows: pl.LazyFrame, sweep: Sweep, key: str, fitted: Mapping[str, FittedMatmul]
) -> pl.LazyFrame:
    """Adds the columns of `ESTIMATES` to rows of one chip and software.

    Args:
        rows: Rows with sizes, `dtypes` and `t_estimate_s` by the chip's own calibration.
        sweep: Their sweep, of one chip.
        key: The chip and software.
        fitted: Their calibrations by compute dtype; the chip's own is the fallback.
    """
    chip_rows, _ = sweep.chip_variants[0]
    own = pl.when(pl.col("t_estimate_s").is_not_null()).then(pl.lit(chip_rows.chip))
    found = {**NO_ESTIMATE, "t_estimate_s": pl.col("t_estimate_s"), "calibration": own}
    for _, variant in sweep.chip_variants:
        one = fitted.get(sweep.combinations[variant.dtypes].compute)
        if one is None:
            continue
        workload, target = sweep.case(chip_rows, variant), sweep.target(chip_rows, variant)
        for name, value in _estimate(one, polynomials(workload, target), key).items():
            here = pl.col("dtypes") == variant.dtypes
            found[name] = pl.when(here).then(value).otherwise(found[name])
    return rows.with_columns(**found)


def _estimate(fitted: FittedMatmul, of: Mapping[str, Polynomial], key: str) -> dict[str, pl.Expr]:
    """The columns of `ESTIMATES` by one calibration."""
    numbers = fitted.numbers.floats
    quantities = expressions(of, ROW, numbers.tile)
    time = estimate(numbers, quantities, pl.max_horizontal)
    return with_band(time, bound(numbers, quantities), fitted, key)


def with_band(time: pl.Expr, by: pl.Expr, fitted: Fitted, key: str) -> dict[str, pl.Expr]:
    """The columns of `ESTIMATES`.

    Args:
        time: The estimate [s].
        by: What bounds it.
        fitted: The calibration, with a band for every bound.
        key: Its chip and software.
    """
    low, high = (
        by.replace_strict(
            {name: shares[end] for name, shares in fitted.bands.items()},
            default=None,
            return_dtype=pl.Float64,
        )
        for end in (0, 1)
    )
    return dict(zip(ESTIMATES, (time, time * low, time * high, pl.lit(key)), strict=True))
