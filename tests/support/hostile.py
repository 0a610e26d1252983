"""A run of a config whose texts are special in Snakemake, a shell, YAML, HTML or a script."""

import shutil
from pathlib import Path
from typing import Any

from bundles import HOSTILE
from fuzzing import config_of_texts
from run_folder import RunFolder

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("roofline", "who-binds")
"""Charts with the name of a shape: in a menu or a title."""

MEASURED_KINDS = ("measured",)
"""Charts with the name of a software: in a menu and a subtitle."""

TIMINGS = ROOT / "tests" / "cases" / "one-software.csv"
"""Timings without a column for their software."""

RESULTS = "results [1]*?"
"""A folder whose name is a pattern of other paths."""

DECODE: dict[str, Any] = {
    "operation": "matmul",
    "grid": {"B": {"from": 1, "to": 4096, "factor": 2}},
    "shapes": [
        {"name": HOSTILE, "D": 4096, "F": 14336},
        {"name": "llama-3-8b-down", "D": 14336, "F": 4096},
    ],
    "dtypes": ["bf16", "fp8"],
    "chips": ["h100-sxm", "tpu-v5e"],
    "sharding": ["none", "column/gather-x"],
    "shards": [1, 2, 4, 8],
    "thresholds": ["B", "shards"],
}


def hostile_config():
    """The config: all of `fuzzing.TEXTS`, and a name that would run as a script."""
    texts = config_of_texts()
    charts = [{"chart": kind, "sweep": "decode"} for kind in KINDS]
    timed = [{"chart": kind, "measurements": "timed"} for kind in MEASURED_KINDS]
    return {
        **texts,
        "sweeps": {**texts["sweeps"], "decode": DECODE},
        "measurements": {"timed": {"file": "t[1]*.csv", "where": {"software": HOSTILE}}},
        "charts": [*texts["charts"], *charts, *timed],
        "pathvars": {"results": RESULTS},
    }


def run_hostile(folder):
    """Run the workflow in a folder."""
    shutil.copy(TIMINGS, folder / "t[1]*.csv")
    (folder / "t1.csv").write_text("of another set\n", encoding="utf-8")
    RunFolder(folder, hostile_config()).finish()
