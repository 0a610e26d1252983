"""Whole models in one process: steps and kernels, computed alone and into Parquet; prints JSON."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from rooflines.catalogue.chips import chip_entries, dtype_entries
from rooflines.fits.entries import shipped_calibrations
from rooflines.model.step_columns import LAYER_TEXTS, STEP_TEXTS
from rooflines.models.resolve import models_of
from rooflines.results.tables import write_parquet
from rooflines.run.jobs import ROWS_AT_ONCE
from rooflines.settings.model_sweeps import ModelSweepConfig
from rooflines.sweep.rows import KernelTable, StepTable
from rooflines.sweep.step_sweep import checked_model_sweep

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooflines.sweep.step_sweep import ModelSweep

CONTEXTS = 512
CASES = 16  # 2 models, 2 chips, 2 dtypes, 2 splits


def sweep_of(rows: float) -> ModelSweep:
    """A sweep of about this number of rows, as a user would write it."""
    batches = max(round(rows / CONTEXTS / CASES), 1)
    config = ModelSweepConfig.model_validate(
        {
            "models": ["llama-3.1-70b", "gpt-oss-120b"],
            "grid": {
                "B": {"from": 4, "to": 4 * batches, "step": 4},
                "S": {"from": 64, "to": 64 * CONTEXTS, "step": 64},
            },
            "dtypes": ["bf16", "fp8"],
            "chips": ["h100-sxm", "h200-sxm"],
            "splits": [{"tp": 8}, {"tp": 2, "dp": 4}],
        }
    )
    models = models_of(config.models)
    catalogues = chip_entries(), dtype_entries(), shipped_calibrations()
    return checked_model_sweep("bench", config, models, *catalogues)


def measured(frame: Callable[[], pl.LazyFrame], texts: tuple[str, ...], path: Path) -> list[float]:
    """CPU time of computing every column, and of a job that writes them [s]."""
    started_s = time.process_time()
    numbers, coded = pl.col(pl.Float64, pl.Int64).sum(), pl.col(pl.Enum).to_physical().max()
    frame().select(numbers, coded).collect(engine="streaming")
    computed_s = time.process_time()
    write_parquet(frame(), path, {}, texts, "lz4", wide=True)
    return [computed_s - started_s, time.process_time() - computed_s]


def main(rows: str, folder: str) -> None:
    """Measure both tables; the first run of each warms up."""
    sweep = sweep_of(float(rows))
    names = [column.name for column in sweep.columns]
    kernels = len(sweep.blocks[0].cases[0].kernels)
    stop = sweep.rows // kernels  # for about as many kernels as steps
    tables: dict[str, tuple[Callable[[], pl.LazyFrame], tuple[str, ...]]] = {
        "steps": (
            lambda: StepTable(sweep).frame(0, sweep.rows, columns=names, enums=True),
            STEP_TEXTS,
        ),
        "kernels": (lambda: KernelTable(sweep).frame(0, stop, enums=True), LAYER_TEXTS),
    }
    found = {}
    with pl.Config(streaming_chunk_size=ROWS_AT_ONCE):
        for name, (frame, texts) in tables.items():
            path = Path(folder) / f"{name}.parquet"
            times = [measured(frame, texts, path) for _ in range(3)]
            count = pl.scan_parquet(path).select(pl.len()).collect().item()
            computing_s, writing_s = (min(each) for each in zip(*times, strict=True))
            found[name] = [count, computing_s, writing_s, path.stat().st_size]
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
