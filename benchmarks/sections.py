"""Sections of `make bench`; each returns numbers for benchmarks/results.json."""

from __future__ import annotations

import json
import os
import shutil
import time
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import polars as pl
from polars.testing import assert_frame_equal

from benchmarks.contenders import CONTENDERS, ESTIMATES
from benchmarks.measure import RUNTIME, Cost, cheapest, demand, run, workflow
from benchmarks.sweeps import config
from rooflines import load_config, thresholds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

CHIPS = 40
"""Chips of a large sweep [1]."""

COMPARED = 2e5
"""Rows that are compared one by one [1]."""

EXACTLY = 1e-12
"""Largest relative difference of values that count as equal [1]."""

TABLES = ("results/parts.csv", "results/thresholds.parquet", "results/skipped.csv")
"""Outputs of a large run: everything but charts and site."""

QUESTION = "explain h100 llama-3.1-70b B=64 S=8k --split tp=8"

ANSWER_ROUNDS = 7
"""Rounds of an answer, which takes under a second [1]."""

Numbers = dict[str, Any]


def answering(folder: Path) -> Numbers:
    """An answer on the command line, with catalogues from the cache and without a cache."""
    caches = {"cache": str(folder / "cache"), "no cache": ""}

    def answer(name: str) -> Cost:
        with patch.dict(os.environ, ROOFLINES_CACHE=caches[name]):
            return run(["rooflines", *QUESTION.split()], python=RUNTIME)

    demand(answer("cache").said == answer("no cache").said, "the answers differ")
    costs = cheapest([*caches], answer, ANSWER_ROUNDS)
    return {name: cost.numbers for name, cost in costs.items()}


def rows_into_parquet(rows: float, folder: Path) -> Numbers:
    """Sizes to Parquet on one thread, by this package and by numpy."""
    paths = {name: folder / f"{name}.parquet" for name in CONTENDERS}

    def contender(name: str, count: float = rows) -> Cost:
        return run(["benchmarks.contenders", name, str(count), str(paths[name])])

    for name in CONTENDERS:
        contender(name, COMPARED)
    ours = _texts(pl.read_parquet(paths["rooflines"]))
    for name in CONTENDERS.keys() - {"rooflines", "unwritten"}:
        _demand_equal(name, ours, _texts(pl.read_parquet(paths[name])))
    count = load_config(config(rows)).sweep("bench").rows
    found = {}
    for name, cost in cheapest([*CONTENDERS], contender).items():
        rows_s = json.loads(cost.said.splitlines()[-1])["cpu_s"]
        size = 0 if name == "unwritten" else paths[name].stat().st_size
        found[name] = {
            "start_s": round(cost.cpu_s - rows_s, 2),
            "rows_s": round(rows_s, 2),
            "row_bytes": round(size / count, 2),
        }
    return {"rows": count, "by": found}


def _texts(frame: pl.DataFrame) -> pl.DataFrame:
    """A table with its keys as text, in one order."""
    texts = pl.col(pl.Categorical, pl.Enum).cast(pl.String)
    return frame.with_columns(texts).sort("dtypes", "sharding", "shards", "B", "D", "F")


def _demand_equal(name: str, ours: pl.DataFrame, theirs: pl.DataFrame) -> None:
    """End the run if a contender has other values than this package."""
    own = name != "numpy"
    left_out = ("chip", *ESTIMATES, "estimate_bound") if name == "estimates" else ()
    columns = [column for column in theirs.columns if column not in left_out]
    expected, found = ours.select(columns), theirs.select(columns)
    try:
        assert_frame_equal(expected, found.cast(expected.schema), check_exact=own, rel_tol=EXACTLY)
    except AssertionError as difference:
        demand(holds=False, what=f"{name} differs: {difference}")


def growth(sizes: Sequence[float], folder: Path) -> list[Numbers]:
    """The workflow at growing sizes, for forty chips; the largest with core columns too."""
    found = []
    for wanted, columns in (*((size, "all") for size in sizes), (max(sizes), "core")):
        given = config(wanted, CHIPS, **({} if columns == "all" else {"columns": columns}))
        count = load_config(given).sweep("bench").rows
        cost = workflow(folder, given, TABLES)
        parts = [*(folder / "results/tables/bench").iterdir()]
        made = pl.scan_parquet(parts).select(pl.len()).collect().item()
        demand(made == count, f"{made} rows on disk where the sweep has {count}")
        size = sum(part.stat().st_size for part in parts) / count
        found.append(
            {"rows": count, "columns": columns, "row_bytes": round(size, 2), **cost.numbers}
        )
        shutil.rmtree(folder)
    return found


def again(rows: float, folder: Path) -> Numbers:
    """A run with nothing to do, and a run after an edit of one chip of forty."""
    given = config(rows, CHIPS)
    whole = workflow(folder, given, TABLES)
    parts = folder / "results/tables/bench"
    before = {path: path.stat().st_mtime_ns for path in parts.iterdir()}
    idle = cheapest(["idle"], lambda _: workflow(folder, given, TABLES))["idle"]
    demand("Nothing to be done" in idle.said, "the second run has something to do")
    edit = {"memory.hbm.bytes_per_s": 4e12, "source": "an edit"}
    chip = given["chips"]["chip-20"]
    changed = {**given, "chips": {**given["chips"], "chip-20": {**chip, **edit}}}
    edited = workflow(folder, changed, TABLES)
    remade = sum(path.stat().st_mtime_ns != made for path, made in before.items())
    demand(remade == 1, f"an edit of one chip remade {remade} parts")
    runs = {"whole": whole, "nothing to do": idle, "edit": edited}
    count = load_config(given).sweep("bench").rows
    return {"rows": count, **{name: cost.numbers for name, cost in runs.items()}}


def solving() -> Numbers:
    """Thresholds along B in one process."""
    sizes = {"from": 64, "to": 64 * 700, "step": 64}
    grid = {"B": 1, "D": sizes, "F": sizes}
    alone = {"sharding": "none", "shards": 1, "dtypes": ["bf16", "w8a16"]}
    given = load_config(config(1, 2, grid=grid, thresholds=["B"], **alone))
    started_s = time.process_time()
    count = thresholds(given).height
    return {"thresholds": count, "cpu_s": round(time.process_time() - started_s, 2)}


def default_config(folder: Path) -> Numbers:
    """The default config with charts and site, again with nothing to do, and without charts."""
    whole = workflow(folder / "default")
    idle = cheapest(["idle"], lambda _: workflow(folder / "default"))["idle"]
    demand("Nothing to be done" in idle.said, "the second run has something to do")
    bare = workflow(folder / "bare", {**load_config().plain, "charts": []})
    runs = {"whole": whole, "nothing to do": idle, "without charts": bare}
    return {name: cost.numbers for name, cost in runs.items()}
