"""Public measurements of serving against the least time of a step: see docs/served.md.

The measurements are not part of this repository: `ROOFLINES_PUBLIC_DATA` names the folder that has
them.
"""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from rooflines.fits.layouts import RECORDED_CHIPS, SAME_RUN, with_requests
from rooflines.measured.served import with_bounds, with_steps

DATA = "ROOFLINES_PUBLIC_DATA"
"""The environment variable with the folder of public data."""


def served_csv() -> Path | None:
    """The file with the measurements; None where the environment does not name its folder."""
    folder = os.environ.get(DATA)
    return Path(folder) / "models" / "served.csv" if folder else None


def compared(path: Path) -> pl.DataFrame:
    """Measurements with their bounds.

    Args:
        path: A CSV file: a row for each run.

    Returns:
        The columns of the file, those of `with_steps` and `with_bounds`, and
        `left_out`: why the run is not in the distribution; null where it is.
    """
    frame = with_requests(pl.read_csv(path, infer_schema_length=None))
    frame = with_bounds(with_steps(frame)).sort("chips", maintain_order=True)
    return frame.with_columns(
        left_out=pl.when(~pl.col("fits"))
        .then(pl.lit("weights and caches do not fit the recorded chips"))
        .when(pl.col("chips") > RECORDED_CHIPS)
        .then(pl.lit(f"more than {RECORDED_CHIPS} chips: the split is not fully recorded"))
        .when(~pl.struct(SAME_RUN).is_first_distinct())
        .then(pl.lit("the same measurement as another row"))
    )
