"""The workflow on large sweeps: Snakemake's share, growth, runs again, and reading a part."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.contenders.panel import FLOATS
from benchmarks.empty_jobs import run_empty_jobs
from benchmarks.grids import config
from benchmarks.measure import RUNTIME, run
from benchmarks.report import Goal, Lines, Section, million, table
from benchmarks.sections.common import (
    CHIPS,
    EXACTLY,
    OTHER_JOBS,
    ROUNDS,
    WRITER,
    demand,
    rounds,
    workflow,
    write,
)
from rooflines import load_config
from rooflines.results.tables import PAGE_BYTES, ROW_GROUP_ROWS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FEW, BILLION = 1e7, 1e9
"""Sizes whose growth has goals [1]."""


def share(rows: float, folder: Path) -> Section:
    """The workflow against one process that writes the same files with as many threads."""
    goals = list[Goal]()
    cores, body = os.cpu_count() or 1, []
    for wanted in (rows, 10 * rows):
        given = config(wanted, 4)
        count = load_config(given).sweep("bench").rows
        places = {
            name: write(folder / f"{name}-{wanted:g}", given) for name in ("process", "workflow")
        }
        one = run(["benchmarks.one_process"], cores, places["process"], RUNTIME)
        whole = workflow(places["workflow"], cores)
        parts = equal_parts(places["process"], places["workflow"])
        empty = run_empty_jobs(folder / f"empty-{wanted:g}", parts + OTHER_JOBS, cores)
        more_s, ratio = whole.wall_s - one.wall_s, whole.wall_s / one.wall_s
        limit = f"Snakemake itself: as many empty jobs take {empty.wall_s:.1f} s"
        if wanted == rows:
            what = f"Snakemake's share at {count:.0e} rows, s"
            goals.append(Goal(what, 1.5, more_s, most=True, limit=limit))
        else:
            what = f"the same at {count:.0e} rows, times"
            goals.append(Goal(what, 1.15, ratio, most=True, limit=limit))
        seconds = (f"{cost.wall_s:.1f}" for cost in (one, whole, empty))
        cpu_ratio = f"{whole.cpu_s / one.cpu_s:.2f}"
        body.append((f"{count:,}", parts, *seconds, f"{more_s:+.1f}", f"{ratio:.2f}", cpu_ratio))
    head = (
        "rows",
        "parts",
        "one process, wall s",
        "snakemake, wall s",
        "as many empty jobs, wall s",
        "difference, s",
        "ratio, wall",
        "ratio, CPU",
    )
    note = "An empty job loads polars and does nothing."
    return Section(table(f"4. Snakemake's share, {cores} cores", head, body, note), goals)


def equal_parts(one: Path, other: Path) -> int:
    """The number of parts in each of two folders; their sums must be equal."""
    tables = [place / "results/tables/bench" for place in (one, other)]
    parts, others = (sorted(path.name for path in table.iterdir()) for table in tables)
    demand(parts == others, f"the parts in {one} and {other}")
    for part in parts:
        mine, theirs = (
            pl.scan_parquet(table / part).select(pl.len(), pl.col(*FLOATS).sum()).collect().row(0)
            for table in tables
        )
        near = all(abs(a - b) <= EXACTLY * abs(a) for a, b in zip(mine, theirs, strict=True))
        demand(near, f"{part} in {one} and {other}")
    return len(parts)


def growth(sizes: Sequence[float], folder: Path) -> Section:
    """The workflow at growing sizes, for forty chips."""
    goals = list[Goal]()
    cores, body, per_row = os.cpu_count() or 1, [], dict[float, float]()
    stored: dict[str, dict[str, str]] = {
        "all": {},
        "core": {"columns": "core"},
    }
    largest = max(sizes)
    for wanted, columns in [
        *((size, "all") for size in sizes),
        *((largest, columns) for columns in list(stored)[1:]),
    ]:
        given = config(wanted, CHIPS, **stored[columns])
        count = load_config(given).sweep("bench").rows
        place = write(folder / f"growth-{wanted:g}", given)
        cost = workflow(place, cores)
        parts = list((place / "results/tables/bench").iterdir())
        made = (
            pl.scan_parquet(place / "results/tables/bench/*.parquet")
            .select(pl.len())
            .collect()
            .item()
        )
        demand(made == count, f"{made} rows on disk where the sweep has {count}")
        size = sum(part.stat().st_size for part in parts) / count
        seconds = (
            f"{cost.wall_s:.1f}",
            f"{cost.cpu_s:.1f}",
            million(count, cost.wall_s),
            million(count, cost.cpu_s),
        )
        body.append(
            (f"{count:,}", columns, len(parts), *seconds, f"{cost.peak_mib:.0f}", f"{size:.1f}")
        )
        shutil.rmtree(place)
        if wanted == BILLION:
            most = 220 if columns == "all" else 160
            goals.append(
                Goal(f"1e9 rows, {columns}, s", most, cost.wall_s, most=True, limit=WRITER)
            )
        if columns != "all":
            continue
        per_row[wanted] = cost.cpu_s / count
        if wanted == BILLION:
            what = "1e9 rows, MiB of the largest process"
            goals.append(Goal(what, 2048, cost.peak_mib, most=True))
        if wanted == BILLION and FEW in per_row:
            what = "1e9 rows, CPU s of a row over those at 1e7"
            goals.append(Goal(what, 1.2, per_row[BILLION] / per_row[FEW], most=True))
    head = (
        "rows",
        "columns",
        "parts",
        "wall s",
        "CPU s",
        "M rows/s wall",
        "M rows per CPU s",
        "peak MiB of a process",
        "bytes per row",
    )
    return Section(
        table(f"5. Growth, `snakemake --cores {cores}`, {CHIPS} chips", head, body), goals
    )


def again(rows: float, folder: Path) -> Section:
    """A run with nothing to do, and a run after an edit of one chip of forty."""
    goals = list[Goal]()
    cores = os.cpu_count() or 1
    given = config(rows, CHIPS)
    place = write(folder / "again", given)
    whole = workflow(place, cores)
    before = {path: path.stat().st_mtime_ns for path in (place / "results/tables/bench").iterdir()}
    idle = rounds(["idle"], lambda _: workflow(place, cores))["idle"]
    demand("Nothing to be done" in idle.said, "the second run has something to do")
    given["chips"]["chip-20"] = {
        **given["chips"]["chip-20"],
        "memory.hbm.bytes_per_s": 4e12,
        "source": "an edit",
    }
    write(place, given)
    edit = workflow(place, cores)
    remade = sum(path.stat().st_mtime_ns != made for path, made in before.items())
    demand(remade == 1, f"an edit of one chip remade {remade} parts")
    body = [
        (
            name,
            f"{cost.wall_s:.2f}",
            f"{cost.cpu_s:.2f}",
            f"1/{whole.wall_s / cost.wall_s:.0f}",
            f"1/{whole.cpu_s / cost.cpu_s:.0f}",
        )
        for name, cost in (
            ("the whole", whole),
            ("nothing to do", idle),
            ("an edit of one chip", edit),
        )
    ]
    head = ("run", "wall s", "CPU s", "of the whole, wall", "of the whole, CPU")
    note = (
        f"{load_config(given).sweep('bench').rows:,} rows of {CHIPS} chips in {len(before)} parts."
    )
    limit = f"Snakemake's start: nothing to do takes 1/{whole.cpu_s / idle.cpu_s:.0f}"
    goals.append(
        Goal(
            f"an edit of one chip of {CHIPS}, CPU s over those of the whole",
            1 / 20,
            edit.cpu_s / whole.cpu_s,
            most=True,
            limit=limit,
        )
    )
    return Section(table("7. Again", head, body, note) + reading(place), goals)


Filter = tuple[pl.Expr, str]
"""A filter for polars, and the same as SQL."""

FILTERS: dict[str, Filter] = {
    "one chip": (pl.col("chip") == "chip-07", "chip = 'chip-07'"),
    "a B that no file has": (pl.col("B") == 1, "B = 1"),
}


def reading(place: Path) -> Lines:
    """Read what a filter leaves of the files of forty chips, and sum a column.

    The files are as a job writes them, without statistics, and with the smallest and the largest
    value of each column chunk.
    """
    parts = sorted((place / "results/tables/bench").glob("*.parquet"))
    folders = {"without": parts[0].parent, "with": place / "with-statistics"}
    folders["with"].mkdir()
    for part in parts:
        pl.scan_parquet(part).sink_parquet(
            folders["with"] / part.name,
            compression_level=1,
            row_group_size=ROW_GROUP_ROWS,
            data_page_size=PAGE_BYTES,
        )
    body = []
    for what, kept in FILTERS.items():
        found = []
        for statistics, folder in folders.items():
            for name, read in (("polars", by_polars), ("DuckDB", by_duckdb)):
                costs = []
                for _ in range(ROUNDS):
                    cpu, wall = time.process_time(), time.monotonic()
                    found.append(read(folder / "*.parquet", kept))
                    costs.append((time.monotonic() - wall, time.process_time() - cpu))
                seconds = (f"{min(times):.3f}" for times in zip(*costs, strict=True))
                body.append((what, statistics, name, f"{found[-1][0]:,}", *seconds))
        (count, total), others = found[0], found[1:]
        near = all(n == count and abs(s - total) <= EXACTLY * 1e3 * total for n, s in others)
        demand(near, f"what polars and DuckDB read: {what}")
    head = ("filter", "statistics", "by", "rows", "wall s", "CPU s")
    return table(f"8. Reading a column of {len(parts)} files", head, body)


def by_polars(files: Path, kept: Filter) -> tuple[int, float]:
    """The rows that a filter leaves, and the sum of a column."""
    rows = pl.scan_parquet(files).filter(kept[0])
    found = rows.select(pl.len(), pl.col("t_lower_s").sum()).collect()
    return found.item(0, 0), found.item(0, 1)


def by_duckdb(files: Path, kept: Filter) -> tuple[int, float]:
    """The same."""
    import duckdb  # noqa: PLC0415, needed here alone

    rows = duckdb.read_parquet(str(files)).filter(kept[1])
    ((count, total),) = rows.aggregate("count(*), sum(t_lower_s)").fetchall()
    return count, total or 0.0
