"""A config of chips unlike each other, whose charts have every kind; and its views."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import timed

import rooflines
from rooflines import charts
from rooflines.charts.files import views_of
from rooflines.charts.options import Option
from rooflines.charts.views import Spec, View

SHAPES = [
    {"name": f"m-{layer}", "model": "m", "layer": layer, "D": width, "F": output}
    for layer, width, output in (
        ("q", 4096, 4096),
        ("k", 4096, 1024),
        ("qkv", 4096, 6144),
        ("o", 4096, 4096),
        ("up", 4096, 14336),
        ("gate-up", 4096, 28672),
        ("expert-up", 4096, 768),
        ("expert-gate-up", 4096, 1536),
        ("down", 14336, 4096),
    )
]

COMMON: dict[str, Any] = {
    "operation": "matmul",
    "dtypes": ["bf16", "w8a16", "fp8-out-bf16", "w8a8", "mxfp4"],
    "chips": [
        *("tpu-v5e", "tpu-v6e", "h100-sxm", "h200-sxm", "b200", "mi300x", "a100-sxm-80gb"),
        *("t4", "l4", "gb200", "b300", "rubin-cpx", "mi355x", "ascend-950dt"),
    ],
    "shares": [1, 0.9],
}
SERVED: dict[str, Any] = {
    "models": [
        *("llama-3.1-8b", "gpt-oss-120b", "llama-3.1-70b", "gemma-3-27b", "deepseek-v3"),
    ],
    "grid": {"B": {"from": 1, "to": 1024, "factor": 4}, "S": [8192, 1024, 32768]},
    "splits": [{"tp": 1}, {"tp": 8}],
    "dtypes": ["bf16", "fp8", "int8", "mxfp4"],
    "chips": COMMON["chips"][:8],
    "calibration": ["trtllm", "nccl"],
}
SIZES_OF_B = {"from": 1, "to": 16384, "factor": 4}
EVIL = "</script><script>alert(1)</script>"
LONG = "a-very-long-name-of-a-shape-that-somebody-thought-would-say-everything-there-is-to-say"


def config() -> dict[str, Any]:
    """Sweeps of operations and of whole models, and timings."""
    split = {"sharding": "contracting/all-reduce", "shards": [1, 2, 8, 16, 64]}
    table = Path(tempfile.mkdtemp()) / "timed.csv"
    atexit.register(shutil.rmtree, table.parent)
    timed.of_many(COMMON["chips"], ["mine", "theirs"], 8).write_csv(table)
    return {
        "sweeps": {
            "free": {
                **COMMON,
                "grid": {"B": SIZES_OF_B, "D": [128, 1024, 8192], "F": [128, 1024, 8192]},
                "calibration": "trtllm",
            },
            "split": {**COMMON, "grid": {"B": SIZES_OF_B}, "shapes": SHAPES, **split},
        },
        "model-sweeps": {"served": SERVED},
        "measurements": {"timed": {"file": str(table)}},
    }


@cache
def loaded() -> rooflines.Config:
    """The config."""
    return rooflines.load_config(config())


@cache
def results() -> charts.Results:
    """What it computes."""
    return charts.of_config(loaded())


@cache
def views(chart: Spec) -> list[tuple[dict[str, Option], View]]:
    """The choices and views of one of its charts."""
    return views_of(results(), chart)


def hostile() -> dict[str, Any]:
    """A config with long names, and one that would run as code."""
    own = {
        f"h100-{'very-long-variant-name-' * 3}{i}": {
            "base": "h100-sxm",
            "memory.hbm.bytes_per_s": 3e12 + i * 1e11,
            "source": "a test",
        }
        for i in range(5)
    }
    shapes = [
        {"name": EVIL, "D": 4096, "F": 14336},
        {"name": LONG, "D": 8192, "F": 28672},
        {"name": "x", "D": 512, "F": 512},
    ]
    sweep = {
        "operation": "matmul",
        "dtypes": ["bf16", "w8a16"],
        "chips": [*own],
        "grid": {"B": SIZES_OF_B},
        "shapes": shapes,
        "sharding": ["column/gather-x"],
        "shards": [1, 2, 4, 8],
    }
    return {"sweeps": {"hostile": sweep}, "chips": own}
