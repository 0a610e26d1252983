"""The rows of one chip by this package and other tools: formulas, files, the cost of a row."""

from __future__ import annotations

import json
import os
from statistics import median
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.contenders.panel import FLOATS
from benchmarks.grids import config
from benchmarks.measure import Cost, run
from benchmarks.report import Goal, Section, million, table
from benchmarks.sections.common import EXACTLY, ROOT, ROUNDS, WRITER, demand, rounds
from rooflines import load_config

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = 7
"""Pairs of runs whose ratios are taken [1]."""

OF_ESTIMATES = ["chip", "t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s", "estimate_bound"]
"""Columns in which a table with a calibration differs from one without."""

CODECS = {"zstd(1)": ("duckdb", "rooflines", 2.8), "lz4": ("duckdb-lz4", "rooflines-lz4", 3.6)}
"""DuckDB's COPY and ours by codec, and the goal for CPU s of DuckDB over ours."""

WALL = {"core columns": ("rooflines-core", 6), "all columns, lz4": ("rooflines-lz4", 4)}
"""Goals for M rows/s wall."""

BYTES = {"all columns": ("rooflines", 18), "core columns": ("rooflines-core", 7.5)}
"""Goals for bytes per row."""

COSTS = {
    "rooflines-sums": "every column computed and summed, nothing written",
    "plain": "every column into Parquet, not compressed",
    "lz4": "and compressed, lz4",
    "rooflines": "and compressed, zstd(1) in place of lz4: a job",
    "rooflines-core": "a job with `columns: core`",
    "rooflines-estimates": "a job with calibrations",
}


def rows_of(rows: float) -> int:
    """Actual number of rows of the one-chip sweep."""
    return load_config(config(rows)).sweep("bench").rows


def contender(name: str, rows: float, path: Path, threads: int) -> Cost:
    """Run one contender in a process of its own."""
    return run(["benchmarks.contenders", name, str(rows), str(path)], threads, ROOT)


def rows_cpu_s(cost: Cost) -> float:
    """CPU time of a contender without its start, from the last line that it prints [s]."""
    said: dict[str, float] = json.loads(cost.said.splitlines()[-1])
    return said["cpu_s"]


def formulas(rows: float, folder: Path) -> Section:
    """Formulas only: every column is computed and summed, against blocked numpy."""
    goals = list[Goal]()
    names = ("rooflines-sums", "numpy-sums")
    count = rows_of(rows)
    found = [
        [json.loads(contender(name, rows, folder, 1).said) for name in names] for _ in range(PAIRS)
    ]
    for ours, theirs in found:
        for column, total in theirs["sums"].items():
            mine = ours["sums"][column]
            demand(abs(mine - total) <= 1e-9 * abs(total), f"sum of {column}: {mine} and {total}")
    ratios = [theirs["cpu_s"] / ours["cpu_s"] for ours, theirs in found]
    cpu_s = [median(run["cpu_s"] for run in runs) for runs in zip(*found, strict=True)]
    body = [
        (name, f"{count:,}", f"{cpu:.2f}", million(count, cpu))
        for name, cpu in zip(names, cpu_s, strict=True)
    ]
    note = (
        f"One thread, without startup, median of {PAIRS} pairs. "
        "rooflines resolves ties exactly, numpy does not. "
        f"rooflines / numpy: {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})."
    )
    goals.append(
        Goal(
            "formulas alone, speed over that of blocked numpy",
            0.95,
            median(ratios),
            limit="one pass over memory for each operator",
        )
    )
    return Section(
        table("1. Formulas alone", ("who", "rows", "CPU s", "M rows per CPU s"), body, note), goals
    )


def differences(one: pl.DataFrame, other: pl.DataFrame, most: float) -> list[str]:
    """Columns in which two sorted tables differ: metrics by a relative `most`, others at all."""
    order = ["dtypes", "sharding", "shards", "B", "D", "F"]
    texts = pl.col(pl.Categorical, pl.Enum).cast(pl.String)
    mine, theirs = (
        frame.with_columns(texts).select(one.columns).sort(order) for frame in (one, other)
    )
    wrong = []
    for name in mine.columns:
        a, b = mine[name], theirs[name].cast(mine.schema[name], strict=False)
        near = (a - b).abs() <= most * a.abs() if name in FLOATS else a.eq_missing(b)
        if not (near.fill_null(value=False) | (a.is_null() & b.is_null())).all():
            wrong.append(name)
    return wrong


def files(rows: float, folder: Path) -> Section:
    """Sizes to Parquet, against DuckDB, pandas, and numpy with pyarrow."""
    goals = list[Goal]()
    names = (
        "rooflines",
        "rooflines-lz4",
        "rooflines-core",
        "rooflines-core-lz4",
        "rooflines-estimates",
        "duckdb",
        "duckdb-lz4",
        "pandas",
        "numpy-pyarrow",
    )
    paths = {name: folder / f"{name}.parquet" for name in names}
    for name in names:
        contender(name, 2e5, paths[name], 1)
    ours = pl.read_parquet(paths["rooflines"])
    for name in names[1:]:
        theirs = pl.read_parquet(paths[name])
        demand(
            theirs.height == ours.height,
            f"{name} has {theirs.height} rows where rooflines has {ours.height}",
        )
        own = name.startswith("rooflines-")
        left_out = OF_ESTIMATES if name == "rooflines-estimates" else ()
        kept = ours.select(theirs.columns) if "core" in name else ours.drop(left_out)
        wrong = differences(kept, theirs, 0.0 if own else EXACTLY)
        demand(not wrong, f"{name} in {', '.join(wrong)}")
    count, threads, body = rows_of(rows), os.cpu_count() or 1, []
    alone = rounds(names, lambda name: contender(name, rows, paths[name], 1))
    every = rounds(names, lambda name: contender(name, rows, paths[name], threads), 1)
    rows_s = {name: rows_cpu_s(cost) for name, cost in alone.items()}
    size = {name: paths[name].stat().st_size / count for name in names}
    for name in names:
        speeds = (
            f"{alone[name].cpu_s - rows_s[name]:.2f}",
            f"{rows_s[name]:.2f}",
            million(count, rows_s[name]),
            f"{rows_s[name] / rows_s['rooflines']:.2f}",
            million(count, every[name].wall_s),
        )
        body.append((name, *speeds, f"{size[name]:.1f}", f"{alone[name].peak_mib:.0f}"))
    for codec, (theirs_is, ours_is, least) in CODECS.items():
        what = f"CPU s of rows, DuckDB's COPY over ours, {codec}"
        goals.append(Goal(what, least, rows_s[theirs_is] / rows_s[ours_is], limit=WRITER))
    for what, (name, least) in WALL.items():
        speed = count / every[name].wall_s / 1e6
        goals.append(Goal(f"{what}, M rows/s wall with the start", least, speed, limit=WRITER))
    for what, (name, most) in BYTES.items():
        goals.append(Goal(f"{what}, bytes per row", most, size[name], most=True, limit=WRITER))
    head = (
        "who",
        "start, CPU s",
        "rows, CPU s",
        "M rows per CPU s",
        "of ours",
        f"M rows/s wall with the start, {threads} threads",
        "bytes per row",
        "peak MiB",
    )
    note = (
        f"{count:,} rows, one thread unless said; all columns and zstd(1) unless the name says "
        "otherwise. 200,000 rows were compared one by one."
    )
    return Section(table("2. End to end into Parquet", head, body, note), goals)


def costs(rows: float, folder: Path) -> Section:
    """Breakdown of the time per row: the cost of each step to the file."""
    count, path = rows_of(rows), folder / "costs.parquet"
    found = [
        {name: rows_cpu_s(contender(name, rows, path, 1)) / count * 1e9 for name in COSTS}
        for _ in range(ROUNDS + 1)
    ]
    ns = {name: median(run[name] for run in found) for name in COSTS}
    body = [
        (what, f"{ns[name]:.0f}", f"{ns[name] / ns['rooflines']:.0%}")
        for name, what in COSTS.items()
    ]
    note = (
        "One thread, without startup. The rest besides computing is polars' Parquet writer, which "
        "encodes and compresses every column."
    )
    return Section(
        table(
            "3. Where the time of a row goes", ("what", "CPU ns per row", "of a job's"), body, note
        )
    )
