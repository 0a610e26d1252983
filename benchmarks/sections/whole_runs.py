"""Runs with charts and site: of the default config, and of one small sweep."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from benchmarks.empty_jobs import run_empty_jobs
from benchmarks.grids import small
from benchmarks.measure import RUNTIME, Cost, run
from benchmarks.report import Goal, Section, table
from benchmarks.sections.common import OTHER_JOBS, ROOT, STARTS, demand, rounds, write
from rooflines import load_config
from rooflines.run.plan import plan

if TYPE_CHECKING:
    from pathlib import Path


def default_config(folder: Path) -> Section:
    """The default config with charts and site, and a second run with nothing to do."""
    goals = list[Goal]()
    cores, planned = os.cpu_count() or 1, plan(load_config())
    rows = sum(part.rows for part in planned.parts_in("tables"))
    command = ["snakemake", "--cores", str(cores), "--snakefile", str(ROOT / "Snakefile")]
    place, empty = folder / "default", folder / "empty"
    place.mkdir()
    costs = {"the whole, with charts and site": run(command, cores, place, RUNTIME)}
    bare = write(folder / "bare", {**load_config().plain, "charts": []})
    undrawn = run([*command, "--configfile", "bench.yaml"], cores, bare, RUNTIME)
    costs["the whole, without charts"] = undrawn
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
    whole = next(iter(costs.values()))
    drawing = f"charts: without them the run takes {undrawn.wall_s:.1f} s"
    goals.append(Goal("default config, everything, s", 30, whole.wall_s, most=True, limit=drawing))
    limit = f"Snakemake's start: a workflow of as many empty jobs takes {floor.wall_s:.1f} s"
    goals.append(Goal("bytes per row, default config", 15, size / rows, most=True))
    goals.append(Goal("nothing to do, default config, s", 1.4, idle.wall_s, most=True, limit=limit))
    body = [(name, f"{cost.wall_s:.2f}", f"{cost.cpu_s:.2f}") for name, cost in costs.items()]
    return Section(
        table(
            f"9. The default config, `snakemake --cores {cores}`",
            ("run", "wall s", "CPU s"),
            body,
            note,
        ),
        goals,
    )


def small_config(folder: Path) -> Section:
    """One small sweep with its charts and site, and without; nothing but starts and pictures."""
    goals = list[Goal]()
    cores, costs = os.cpu_count() or 1, dict[str, Cost]()
    for name, charts in {"charts and site": "auto", "`charts: []`": list[str]()}.items():
        place = write(folder / str(len(costs)), small(charts=charts))
        command = ["snakemake", "--cores", str(cores), "--snakefile", str(ROOT / "Snakefile")]
        costs[name] = run([*command, "--configfile", "bench.yaml"], cores, place, RUNTIME)
    drawn, bare = costs.values()
    goals.append(
        Goal("840 rows with charts and site, CPU s", 8, drawn.cpu_s, most=True, limit=STARTS)
    )
    goals.append(Goal("840 rows with `charts: []`, s", 2.5, bare.wall_s, most=True, limit=STARTS))
    body = [(name, f"{cost.wall_s:.2f}", f"{cost.cpu_s:.2f}") for name, cost in costs.items()]
    return Section(
        table(
            f"11. One sweep of 840 rows, `snakemake --cores {cores}`",
            ("run", "wall s", "CPU s"),
            body,
        ),
        goals,
    )
