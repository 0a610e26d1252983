"""Timings over the bound: `python -m benchmarks.measured TABLE... --write`.

The tables are Parquet files of timed matmuls, and CSV files of served runs, whose estimates are by
fits of steps that have not seen their model. Only quantiles of measured time over the bound, and
over the estimate, enter the project: `config/measured.csv`, which
the site and the commands show beside times. Chip, software and dtypes that an earlier table has are
not taken from a later one. Without tables it reads the public ones.
"""

from __future__ import annotations

import argparse
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl

from benchmarks.calibration import DATA, DYNAMIC, OWN, public_tables, served_runs
from rooflines import load_config, measurements
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.fits.engine_overhead import step_fits
from rooflines.fits.fit_keys import FitKey
from rooflines.hardware.timing_errors import (
    BOUND,
    ESTIMATE,
    LONG,
    MATMUL,
    MEASURED_FILE,
    MIN_LONG_BOUND_S,
    SHORT,
    STEP,
)
from rooflines.measured.machine import timings_source
from rooflines.results.tables import metadata_of

KEYS = ("chip", "software", "dtypes")

FEWEST = 30
"""Timings that quantiles are taken of, at least [1]."""

DIGITS = 3
"""Significant digits of a quantile [1]."""

SHARES = {"p10": 0.1, "p50": 0.5, "p90": 0.9}


def joined(table: Path) -> pl.DataFrame:
    """The timings of a table joined with the model; `software` is that of the fit.

    Args:
        table: A table of matmuls, whose fp8 is taken as with dynamic scaling where it has no column
            `contents`, or of served runs.
    """
    config: dict[str, object] = {"file": str(table)}
    named = pl.read_parquet_schema(table) if table.suffix == ".parquet" else {}
    if "D" in named and "contents" not in named:
        config["where"] = {"contents": DYNAMIC}
    source = timings_source(metadata_of(table)) if table in OWN else DATA
    frame = measurements(load_config({"measurements": {"timings": config}}), "timings")
    frame = frame.with_columns(of_source=pl.lit(source))
    if "D" not in frame.columns:
        return _held_out(frame, table)
    fit = pl.col("calibration").map_elements(_fitted_software, pl.String)
    return frame.with_columns(software=pl.coalesce(fit, "software"))


def _fitted_software(label: str) -> str | None:
    """The software of a calibration by its label; None where that names a chip alone."""
    key = FitKey.parse(label)
    return None if key.chip is None else str(key.software)


def _held_out(frame: pl.DataFrame, table: Path) -> pl.DataFrame:
    """Runs with the bound, and with estimates by fits of steps that have not seen their model.

    Args:
        frame: The runs of the table joined with the model.
        table: The table of served runs.
    """
    fits = shipped_calibrations().model_copy(update={"steps": {}})
    _, tested = step_fits(served_runs(table, fits), "", "")
    names = [*KEYS, "of_source", "model", "ratio_lower", "ratio_estimate"]
    source = frame["of_source"][0]
    tested = tested.with_columns(of_source=pl.lit(source), ratio_lower=None, ratio_estimate="ratio")
    bound = frame.with_columns(ratio_estimate=None)
    return pl.concat([bound.select(names), tested.select(names)], how="vertical_relaxed")


def quantiles(tables: list[Path], of_date: date) -> pl.DataFrame:
    """The rows of `config/measured.csv`: matmuls first, then served runs, by chip and software.

    Args:
        tables: The tables, those that count first before others.
        of_date: The day that is written beside every row.
    """
    frames = [joined(table) for table in tables]
    matmuls = [frame for frame in frames if "model" not in frame.columns]
    served = [frame for frame in frames if "model" in frame.columns]
    parts = [pl.DataFrame(schema={"length": pl.String})]  # also where all tables are served runs
    seen = pl.DataFrame(schema=dict.fromkeys(KEYS, pl.String))
    long = (
        pl.when(pl.col("t_lower_s") < MIN_LONG_BOUND_S).then(pl.lit(SHORT)).otherwise(pl.lit(LONG))
    )
    for frame in matmuls:
        new = frame.join(seen, on=KEYS, how="anti").with_columns(length=long)
        parts.append(_spread(new, MATMUL, (*KEYS, "length", "of_source")))
        seen = pl.concat([seen, new.select(KEYS).unique()])
    for frame in served:
        parts += [_spread(frame, STEP, keys) for keys in ((*KEYS, "of_source"), ("of_source",))]
    order = [*KEYS, "length", "over"]
    found = pl.concat(parts, how="diagonal_relaxed").with_columns(
        source="of_source", date=pl.lit(of_date.isoformat())
    )
    numbers = ("n", *SHARES)
    return found.select("subject", *order, *numbers, "source", "date").sort("subject", *order)


def _spread(frame: pl.DataFrame, of: str, keys: tuple[str, ...]) -> pl.DataFrame:
    """Quantiles of measured time over the bound, and over the estimate where there is one."""
    over = {BOUND: "ratio_lower", ESTIMATE: "ratio_estimate"}
    return pl.concat(
        [
            frame.drop_nulls(ratio)
            .with_columns(subject=pl.lit(of), over=pl.lit(name))
            .group_by("subject", *keys, "over")
            .agg(
                n=pl.len(),
                **{
                    quantile: pl.col(ratio).quantile(share, "linear").round_sig_figs(DIGITS)
                    for quantile, share in SHARES.items()
                },
            )
            .filter(pl.col("n") >= FEWEST)
            for name, ratio in over.items()
        ]
    )


def public_timings() -> list[Path]:
    """The public tables of matmuls and of served runs, and the project's own."""
    grid, engines, *_ = public_tables()
    return [grid, engines, *OWN, grid.parents[1] / "models" / "served.csv"]


def main() -> None:
    """Print the quantiles, or write them to the file that comes with the package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", type=Path)
    parser.add_argument("--date", type=date.fromisoformat, default=datetime.now(UTC).date())
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    found = quantiles(given.tables or public_timings(), given.date)
    if given.write:
        found.write_csv(MEASURED_FILE)
    else:
        print(found.write_csv())


if __name__ == "__main__":
    main()
