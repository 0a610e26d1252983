"""All measurements, one table each: `python -m benchmarks [--rows 1e7] [--only reading ...]`.

Contenders take turns for several rounds, so that other load on the machine affects all of them. The
cheapest round of each counts. Rows are compared before the timing; a difference ends the run.
"""

# One report, section by section: long, but one thing.

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import polars as pl
import yaml

from benchmarks.contenders import FLOATS
from benchmarks.empty_jobs import run_empty_jobs
from benchmarks.grids import config, small
from benchmarks.measure import RUNTIME, Cost, run
from benchmarks.report import Goal, Lines, goals, million, table
from rooflines import load_config, scan
from rooflines.run.plan import plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "RESULTS.md"
ROUNDS = 2
PAIRS = 7
CHIPS = 40
OTHER_JOBS = 3  # thresholds, skipped, index
EXACTLY = 1e-12
FLOAT32 = 2**-24
FEW, BILLION = 1e7, 1e9
OF_ESTIMATES = ["chip", "t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s", "estimate_bound"]
"""Columns in which a table with a calibration differs from one without."""

GOALS: list[Goal] = []
"""Goals, in the order they are measured."""

WRITER = "polars' Parquet writer, see section 3"
STARTS = "starts of processes, see section 4"


def rounds(
    names: Sequence[str], once: Callable[[str], Cost], number: int = ROUNDS
) -> dict[str, Cost]:
    """The cheapest of several rounds; the contenders take turns."""
    found: dict[str, list[Cost]] = {name: [] for name in names}
    for _ in range(number):
        for name in names:
            found[name].append(once(name))
    return {name: min(costs, key=lambda cost: cost.cpu_s) for name, costs in found.items()}


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


def demand(holds: bool, what: str) -> None:  # noqa: FBT001, it is the claim
    """End the run if a claim is false."""
    if not holds:
        raise SystemExit(f"the contenders differ: {what}")


def formulas(rows: float, folder: Path) -> Lines:
    """Formulas only: every column is computed and summed, against blocked numpy."""
    names = ("rooflines-sums", "numpy-sums")
    count, found = (
        rows_of(rows),
        [
            [json.loads(contender(name, rows, folder, 1).said) for name in names]
            for _ in range(PAIRS)
        ],
    )
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
    GOALS.append(
        Goal(
            "formulas alone, speed over that of blocked numpy",
            0.95,
            median(ratios),
            limit="one pass over memory for each operator",
        )
    )
    return table("1. Formulas alone", ("who", "rows", "CPU s", "M rows per CPU s"), body, note)


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


CODECS = {"zstd(1)": ("duckdb", "rooflines", 2.8), "lz4": ("duckdb-lz4", "rooflines-lz4", 3.6)}
"""DuckDB's COPY and ours by codec, and the goal for CPU s of DuckDB over ours."""

WALL = {"core columns": ("rooflines-core", 6), "all columns, lz4": ("rooflines-lz4", 4)}
"""Goals for M rows/s wall."""

BYTES = {"all columns": ("rooflines", 18), "core columns": ("rooflines-core", 7.5)}
"""Goals for bytes per row."""


def files(rows: float, folder: Path) -> Lines:
    """Sizes to Parquet, against DuckDB, pandas, and numpy with pyarrow."""
    names = (
        "rooflines",
        "rooflines-lz4",
        "rooflines-float32",
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
        core = "core" in name
        theirs = scan(paths[name]).collect() if core else pl.read_parquet(paths[name])
        demand(
            theirs.height == ours.height,
            f"{name} has {theirs.height} rows where rooflines has {ours.height}",
        )
        left_out = OF_ESTIMATES if name == "rooflines-estimates" else ()
        most = 0.0 if core or left_out else FLOAT32 if "float32" in name else EXACTLY
        wrong = differences(ours.drop(left_out), theirs, most)
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
        GOALS.append(Goal(what, least, rows_s[theirs_is] / rows_s[ours_is], limit=WRITER))
    for what, (name, least) in WALL.items():
        speed = count / every[name].wall_s / 1e6
        GOALS.append(Goal(f"{what}, M rows/s wall with the start", least, speed, limit=WRITER))
    for what, (name, most) in BYTES.items():
        GOALS.append(Goal(f"{what}, bytes per row", most, size[name], most=True, limit=WRITER))
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
        "otherwise. 200,000 rows were compared one by one; of core columns, those that follow too."
    )
    return table("2. End to end into Parquet", head, body, note)


COSTS = {
    "rooflines-sums": "every column computed and summed, nothing written",
    "plain": "every column into Parquet, not compressed",
    "lz4": "and compressed, lz4",
    "rooflines": "and compressed, zstd(1) in place of lz4: a job",
    "rooflines-float32": "a job with `floats: float32`",
    "rooflines-core": "a job with `columns: core`",
    "rooflines-estimates": "a job with calibrations",
}


def costs(rows: float, folder: Path) -> Lines:
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
    return table(
        "3. Where the time of a row goes", ("what", "CPU ns per row", "of a job's"), body, note
    )


def write(folder: Path, given: Mapping[str, Any]) -> Path:
    """Write a config into a folder, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.yaml").write_text(yaml.safe_dump(dict(given), sort_keys=False))
    return folder


def workflow(folder: Path, cores: int) -> Cost:
    """Run the workflow as a user does, without the site."""
    targets = ("results/tables/index.csv", "results/thresholds.parquet", "results/skipped.csv")
    arguments = [
        "snakemake",
        *targets,
        "--cores",
        str(cores),
        "--snakefile",
        str(ROOT / "Snakefile"),
        "--configfile",
        "bench.yaml",
    ]
    return run(arguments, cores, folder, RUNTIME)


def snakemakes_share(rows: float, folder: Path) -> Lines:
    """The workflow against one process that writes the same files with as many threads."""
    cores, body = os.cpu_count() or 1, []
    for wanted in (rows, 10 * rows):
        given = config(wanted, 4)
        count = load_config(given).sweep("bench").rows
        places = {
            name: write(folder / f"{name}-{wanted:g}", given) for name in ("process", "workflow")
        }
        one = run(["benchmarks.one_process"], cores, places["process"], RUNTIME)
        whole = workflow(places["workflow"], cores)
        tables = {
            name: sorted(path.name for path in (place / "results/tables/bench").iterdir())
            for name, place in places.items()
        }
        demand(
            tables["process"] == tables["workflow"], "the parts of the workflow and of one process"
        )
        for part in tables["process"]:
            mine, theirs = (
                pl.scan_parquet(place / "results/tables/bench" / part) for place in places.values()
            )
            sums = [
                frame.select(pl.len(), pl.col(*FLOATS).sum()).collect() for frame in (mine, theirs)
            ]
            near = all(
                abs(a - b) <= EXACTLY * abs(a)
                for a, b in zip(sums[0].row(0), sums[1].row(0), strict=True)
            )
            demand(near, f"{part} of the workflow and of one process")
        empty = run_empty_jobs(
            folder / f"empty-{wanted:g}", len(tables["workflow"]) + OTHER_JOBS, cores
        )
        more = (
            f"{whole.wall_s - one.wall_s:+.1f}",
            f"{whole.wall_s / one.wall_s:.2f}",
            f"{whole.cpu_s / one.cpu_s:.2f}",
        )
        less, limit = (
            whole.wall_s - one.wall_s,
            f"Snakemake itself: as many empty jobs take {empty.wall_s:.1f} s",
        )
        if wanted == rows:
            GOALS.append(
                Goal(f"Snakemake's share at {count:.0e} rows, s", 1.5, less, most=True, limit=limit)
            )
        else:
            GOALS.append(
                Goal(
                    f"the same at {count:.0e} rows, times",
                    1.15,
                    whole.wall_s / one.wall_s,
                    most=True,
                    limit=limit,
                )
            )
        body.append(
            (
                f"{count:,}",
                len(tables["workflow"]),
                f"{one.wall_s:.1f}",
                f"{whole.wall_s:.1f}",
                f"{empty.wall_s:.1f}",
                *more,
            )
        )
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
    return table(f"4. Snakemake's share, {cores} cores", head, body, note)


def growth(sizes: Sequence[float], folder: Path) -> Lines:
    """The workflow at growing sizes, for forty chips."""
    cores, body, per_row = os.cpu_count() or 1, [], dict[float, float]()
    stored: dict[str, dict[str, str]] = {
        "all": {},
        "all, float32": {"floats": "float32"},
        "core": {"columns": "core"},
    }
    largest = max(sizes)
    for wanted, columns in [
        *((size, "all") for size in sizes),
        *((largest, columns) for columns in list(stored)[1:]),
    ]:
        given = config(wanted, CHIPS, **stored[columns])
        count, place = (
            load_config(given).sweep("bench").rows,
            write(folder / f"growth-{wanted:g}", given),
        )
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
            GOALS.append(
                Goal(f"1e9 rows, {columns}, s", most, cost.wall_s, most=True, limit=WRITER)
            )
        if columns != "all":
            continue
        per_row[wanted] = cost.cpu_s / count
        if wanted == BILLION:
            GOALS.append(
                Goal("1e9 rows, MiB of the largest process", 2048, cost.peak_mib, most=True)
            )
        if wanted == BILLION and FEW in per_row:
            GOALS.append(
                Goal(
                    "1e9 rows, CPU s of a row over those at 1e7",
                    1.2,
                    per_row[BILLION] / per_row[FEW],
                    most=True,
                )
            )
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
    return table(f"5. Growth, `snakemake --cores {cores}`, {CHIPS} chips", head, body)


def threshold_rows(_: float, folder: Path) -> Lines:
    """Thresholds per second, with and without startup of the process."""
    sizes = {"from": 64, "to": 64 * 700, "step": 64}
    given = config(
        1,
        2,
        grid={"B": 1, "D": sizes, "F": sizes},
        thresholds=["B"],
        dtypes=["bf16", "w8a16"],
        sharding="none",
        shards=1,
    )
    place = write(folder / "thresholds", given)
    cost = rounds(
        ["thresholds"], lambda _: run(["benchmarks.one_process", "thresholds"], 1, place, RUNTIME)
    )["thresholds"]
    said = json.loads(cost.said)
    body = [
        (what, f"{cpu_s:.2f}", million(said["count"], cpu_s))
        for what, cpu_s in (("solving", said["cpu_s"]), ("with the start", cost.cpu_s))
    ]
    GOALS.append(Goal("thresholds, M per CPU s", 1, said["count"] / said["cpu_s"] / 1e6))
    return table(
        "6. Thresholds",
        ("what", "CPU s", "M per CPU s"),
        body,
        f"{said['count']:,}, exact to the last integer.",
    )


def again(rows: float, folder: Path) -> Lines:
    """A run with nothing to do, and a run after an edit of one chip of forty."""
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
    GOALS.append(
        Goal(
            f"an edit of one chip of {CHIPS}, CPU s over those of the whole",
            1 / 20,
            edit.cpu_s / whole.cpu_s,
            most=True,
            limit=limit,
        )
    )
    return table("7. Again", head, body, note) + reading(place)


def reading(place: Path) -> Lines:
    """Read the rows of one chip of forty, and sum a column."""
    pattern = place / "results/tables/bench/*.parquet"
    import duckdb  # noqa: PLC0415, needed here alone

    def by_polars() -> tuple[int, float]:
        mine = pl.scan_parquet(pattern).filter(pl.col("chip") == "chip-07")
        found: tuple[int, float] = mine.select(pl.len(), pl.col("t_lower_s").sum()).collect().row(0)
        return found

    def by_duckdb() -> tuple[int, float]:
        mine = duckdb.read_parquet(str(pattern)).filter("chip = 'chip-07'")
        ((count, total),) = mine.aggregate("count(*), sum(t_lower_s)").fetchall()
        return count, total

    body, sums = [], []
    for name, read in (("polars", by_polars), ("DuckDB", by_duckdb)):
        costs = []
        for _ in range(ROUNDS):
            cpu, wall = time.process_time(), time.monotonic()
            found = read()
            costs.append((time.process_time() - cpu, time.monotonic() - wall))
        sums.append(found)
        body.append(
            (
                name,
                f"{found[0]:,}",
                f"{min(wall for _, wall in costs):.2f}",
                f"{min(cpu for cpu, _ in costs):.2f}",
            )
        )
    demand(
        sums[0][0] == sums[1][0] and abs(sums[0][1] - sums[1][1]) <= 1e-9 * sums[0][1],
        "what polars and DuckDB read",
    )
    return table("8. Reading one chip of forty", ("by", "rows", "wall s", "CPU s"), body)


def default_config(_: float, folder: Path) -> Lines:
    """The default config with charts and site, and a second run with nothing to do."""
    cores, planned = os.cpu_count() or 1, plan(load_config())
    rows = sum(part.rows for part in planned.tables.all)
    command = ["snakemake", "--cores", str(cores), "--snakefile", str(ROOT / "Snakefile")]
    place, empty = folder / "default", folder / "empty"
    place.mkdir()
    costs = {"the whole, with charts and site": run(command, cores, place, RUNTIME)}
    costs["nothing to do"] = idle = rounds(["idle"], lambda _: run(command, cores, place, RUNTIME))[
        "idle"
    ]
    jobs = len(planned.parts) + OTHER_JOBS
    run_empty_jobs(empty, jobs, cores)
    floor = rounds(["idle"], lambda _: run_empty_jobs(empty, jobs, cores))["idle"]
    costs[f"nothing to do in a workflow of {jobs} empty jobs"] = floor
    for cost in (idle, floor):
        demand("Nothing to be done" in cost.said, "the second run has something to do")
    parts = list((place / "results/tables").glob("*/*.parquet"))
    size, site = (
        sum(file.stat().st_size for file in files if file.is_file())
        for files in (parts, (place / "results/bundle").rglob("*"))
    )
    note = (
        f"{rows:,} rows of operations, {size / rows:.1f} bytes per row, and "
        f"{sum(part.rows for part in planned.parts) - rows:,} of whole models and their kernels; "
        f"the site has {site / 1e6:.1f} MB."
    )
    limit = f"Snakemake's start: a workflow of as many empty jobs takes {floor.wall_s:.1f} s"
    whole = next(iter(costs.values()))
    GOALS.append(Goal("default config, everything, s", 30, whole.wall_s, most=True, limit=STARTS))
    GOALS.append(Goal("bytes per row, default config", 15, size / rows, most=True))
    GOALS.append(Goal("nothing to do, default config, s", 1.4, idle.wall_s, most=True, limit=limit))
    body = [(name, f"{cost.wall_s:.2f}", f"{cost.cpu_s:.2f}") for name, cost in costs.items()]
    return table(
        f"9. The default config, `snakemake --cores {cores}`",
        ("run", "wall s", "CPU s"),
        body,
        note,
    )


def small_config(_: float, folder: Path) -> Lines:
    """One small sweep with its charts and site, and without; nothing but starts and pictures."""
    cores, costs = os.cpu_count() or 1, dict[str, Cost]()
    for name, charts in {"charts and site": "auto", "`charts: []`": list[str]()}.items():
        place = write(folder / str(len(costs)), small(charts=charts))
        command = ["snakemake", "--cores", str(cores), "--snakefile", str(ROOT / "Snakefile")]
        costs[name] = run([*command, "--configfile", "bench.yaml"], cores, place, RUNTIME)
    drawn, bare = costs.values()
    GOALS.append(
        Goal("840 rows with charts and site, CPU s", 8, drawn.cpu_s, most=True, limit=STARTS)
    )
    GOALS.append(Goal("840 rows with `charts: []`, s", 2.5, bare.wall_s, most=True, limit=STARTS))
    body = [(name, f"{cost.wall_s:.2f}", f"{cost.cpu_s:.2f}") for name, cost in costs.items()]
    return table(
        f"11. One sweep of 840 rows, `snakemake --cores {cores}`", ("run", "wall s", "CPU s"), body
    )


def whole_models(rows: float, folder: Path) -> Lines:
    """Steps and kernels of whole models: computed alone, and into Parquet as in a job."""
    found = json.loads(run(["benchmarks.whole_models", str(rows), str(folder)], 1, ROOT).said)
    body = [
        (
            name,
            f"{count:,}",
            million(count, computing_s),
            million(count, writing_s),
            f"{1 - computing_s / writing_s:.0%}",
            f"{size / count:.1f}",
        )
        for name, (count, computing_s, writing_s, size) in found.items()
    ]
    count, _, writing_s, _ = found["steps"]
    goal = "steps of whole models into Parquet, M rows per CPU s"
    GOALS.append(Goal(goal, 2, count / writing_s / 1e6, limit="polars' Parquet writer"))
    head = (
        "rows",
        "number",
        "computed, M rows per CPU s",
        "into Parquet, M rows per CPU s",
        "of this the writer",
        "bytes per row",
    )
    note = "One thread, without startup, all columns, zstd(1); decode of two models on two chips."
    return table("10. Whole models", head, body, note)


def machine(load: float) -> Lines:
    """The machine and the versions."""
    if not RUNTIME.exists():
        raise SystemExit(f"{RUNTIME} is missing: `make bench` creates it")
    packages = ("polars", "snakemake", "duckdb", "pandas", "numpy", "pyarrow")
    on = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, "
    on += ", ".join(f"{name} {version(name)}" for name in packages)
    shared = (
        " Others worked on the machine: read ratios of CPU time, not seconds." if load > 1 else ""
    )
    return [
        "# Measured speed",
        "",
        f"Written by `make bench`. {on}. Load when it began: {load:.1f}.{shared}",
        "The sweep: B x 4 dtypes x 2 shardings x 4 numbers of chips x 24 D x 24 F.",
        "Snakemake runs in an environment without numpy and pandas.",
        "",
    ]


def main() -> None:
    """Measure, print, and write RESULTS.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--rows",
        type=float,
        default=1e7,
        help="rows of all but growth, and a tenth of those of share and again (1e7)",
    )
    parser.add_argument(
        "--growth",
        type=float,
        nargs="+",
        default=[1e6, 1e7, 1e8],
        help="sizes of growth (1e6 1e7 1e8)",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        help="some of formulas, files, costs, share, growth, thresholds, again, default, models, "
        "small; "
        "RESULTS.md is not written",
    )
    given = parser.parse_args()
    parts: dict[str, Callable[[Path], Lines]] = {
        "formulas": lambda folder: formulas(3 * given.rows, folder),
        "files": lambda folder: files(given.rows, folder),
        "costs": lambda folder: costs(given.rows, folder),
        "share": lambda folder: snakemakes_share(given.rows, folder),
        "growth": lambda folder: growth(given.growth, folder),
        "thresholds": lambda folder: threshold_rows(given.rows, folder),
        "again": lambda folder: again(10 * given.rows, folder),
        "default": lambda folder: default_config(given.rows, folder),
        "models": lambda folder: whole_models(given.rows, folder),
        "small": lambda folder: small_config(given.rows, folder),
    }
    unknown = set(given.only or ()) - parts.keys()
    if unknown:
        parser.error(f"{', '.join(sorted(unknown))}: known are {', '.join(parts)}")
    head, lines = machine(os.getloadavg()[0]), Lines()
    for name in given.only or parts:
        started_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="rooflines-bench-") as folder:
            lines += parts[name](Path(folder))
        print(f"{name}: {time.monotonic() - started_s:.0f} s\n", flush=True)
    lines = [*head, *goals(GOALS), *lines]
    if not given.only:
        RESULTS.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
