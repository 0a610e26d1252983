"""Quantiles of measured time over bound and over estimate: `config/measured.csv`.

`python -m benchmarks.measured` computes them from public timings, which are not in the project.
"""

from __future__ import annotations

from functools import cache

import polars as pl

from rooflines.basics.files import CONFIG_DIR, read_csv

MEASURED_FILE = CONFIG_DIR / "measured.csv"

MATMUL, STEP = "matmul", "step"
"""Kinds of timings: matmuls, or decode steps of served models."""

BOUND, ESTIMATE = "bound", "estimate"
"""Divisors of the measured time: the lower bound, or the estimate."""

SHORT, LONG = "short", "long"
"""Classes of matmuls by bound; overheads weigh more in short ones."""

MIN_LONG_BOUND_S = 20e-6
"""Minimum bound of a long matmul [s]."""

QUANTILE_TYPES = {
    **dict.fromkeys(("subject", "chip", "software", "dtypes", "length", "over"), pl.String),
    "n": pl.Int64,
    **dict.fromkeys(("p10", "p50", "p90"), pl.Float64),
    "source": pl.String,
    "date": pl.Date,
}


@cache
def measured_quantiles() -> pl.DataFrame:
    """Quantiles of measured time over the bound and over the estimate.

    Returns:
        `of` (matmul or step), `chip`, `software`, `dtypes` (null: all together), `length` (for
        matmuls: short or long), `over` (bound or estimate), `n`, the number of timings, `p10`,
        `p50`, `p90` [1], `source`, and `date` of the computation. Step estimates come from fits
        that have not seen the model.
    """
    return read_csv(MEASURED_FILE, schema=QUANTILE_TYPES)
