"""Thresholds, and the rows of whole models."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from benchmarks.grids import config
from benchmarks.measure import RUNTIME, run
from benchmarks.report import Goal, Section, million, table
from benchmarks.sections.common import ROOT, rounds, write

if TYPE_CHECKING:
    from pathlib import Path


def thresholds(folder: Path) -> Section:
    """Thresholds per second, with and without startup of the process."""
    goals = list[Goal]()
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
    goals.append(Goal("thresholds, M per CPU s", 1, said["count"] / said["cpu_s"] / 1e6))
    return Section(
        table(
            "6. Thresholds",
            ("what", "CPU s", "M per CPU s"),
            body,
            f"{said['count']:,}, exact to the last integer.",
        ),
        goals,
    )


def whole_models(rows: float, folder: Path) -> Section:
    """Steps and kernels of whole models: computed alone, and into Parquet as in a job."""
    goals = list[Goal]()
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
    goals.append(Goal(goal, 2, count / writing_s / 1e6, limit="polars' Parquet writer"))
    head = (
        "rows",
        "number",
        "computed, M rows per CPU s",
        "into Parquet, M rows per CPU s",
        "of this the writer",
        "bytes per row",
    )
    note = "One thread, without startup, all columns, lz4; decode of two models on two chips."
    return Section(table("10. Whole models", head, body, note), goals)
