"""How far timings are from the bound and from estimates: quantiles, `config/measured.csv`.

`python -m benchmarks.measured` computes them from public timings, which are not in the project.
"""

from __future__ import annotations

from functools import cache

import polars as pl

from rooflines.basics.files import CONFIG_DIR, read_csv

MEASURED_FILE = CONFIG_DIR / "measured.csv"

MATMUL, STEP = "matmul", "step"
"""What was timed: matmuls, or decode steps of served models."""

BOUND, ESTIMATE = "bound", "estimate"
"""What the measured time is divided by: the least time, or the calibrated one."""

SHORT, LONG = "short", "long"
"""Classes of matmuls by the length of their bound; overheads count more in short ones."""

MIN_LONG_BOUND_S = 20e-6
"""The least bound of a long matmul [s]."""

QUANTILE_TYPES = {
    **dict.fromkeys(("of", "chip", "software", "dtypes", "length", "over"), pl.String),
    "n": pl.Int64,
    **dict.fromkeys(("p10", "p50", "p90"), pl.Float64),
    "source": pl.String,
    "date": pl.Date,
}


@cache
def measured_quantiles() -> pl.DataFrame:
    """Quantiles of measured time over the bound and over the estimate.

    Returns:
        `of` (what was timed: matmul or step), `chip`, `software`, `dtypes` (null: all of them
        together), `length` (of matmuls: short or long), `over` (bound or estimate), `n`, the number
        of timings, `p10`, `p50`, `p90` [1], `source`, and `date`, when they were computed.
        Estimates of steps are by fits that have not seen the model.
    """
    return read_csv(MEASURED_FILE, schema=QUANTILE_TYPES)
