"""A small site: a run of a config with hostile names, and with charts, thresholds and timings."""

from __future__ import annotations

import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import yaml

HOSTILE = (
    '</script><script>document.title="ran"</script>'
    """<img src=x onerror='document.title="ran"'>"&amp;"""
)
"""A name that runs as code wherever it is not escaped."""

SMALL_MODEL = {
    "name": "small-model",
    "layers": 4,
    "D": 512,
    "V": 1000,
    "attention": {"N": 8, "K": 8, "H": 64},
    "mlp": {"F": 2048},
}

CONFIG: dict[str, Any] = {
    "sweeps": {
        "shapes": {
            "operation": "matmul",
            "grid": {"B": [1, 256]},
            "shapes": [
                {"name": HOSTILE, "D": 4096, "F": 4096},
                {"name": "small", "D": 64, "F": 64},
            ],
            "dtypes": ["bf16", "int8", "fp8"],
            "chips": ["tpu-v5e", "h100-sxm", "mine"],
            "thresholds": ["B", "memory_rate"],
            "shares": [1, 0.9],
        },
        "long": {
            "operation": "matmul",
            "grid": {
                "B": [128],
                "D": {"from": 1024, "to": 1123, "step": 1},
                "F": {"from": 1024, "to": 1053, "step": 1},
            },
            "dtypes": ["bf16"],
            "chips": ["tpu-v5e", "h100-sxm"],
            "thresholds": ["B"],
        },
        "split": {
            "operation": "matmul",
            "grid": {"B": 8192, "D": 4096, "F": 4096},
            "dtypes": ["bf16"],
            "chips": ["tpu-v5e", "mine"],
            "sharding": "batch",
            "shards": [1],
            "thresholds": ["shards"],
        },
    },
    "model-sweeps": {
        "steps": {
            "models": [SMALL_MODEL, "gemma-3-27b", "gpt-oss-120b", "deepseek-v3"],
            "phase": ["decode", "prefill"],
            "grid": {"B": [1, 8, 64, 512], "S": [1024, 8192]},
            "dtypes": [
                "bf16",
                {
                    "name": HOSTILE,
                    "weights": "fp8",
                    "cache": "fp8",
                    "activations": "bf16",
                    "compute": "bf16",
                },
            ],
            "chips": ["h100-sxm", "tpu-v5e", "mine"],
            "splits": [{"tp": 8}, {"tp": "2x2"}, {"tp": 1}, {"dp": 8, "ep": 8}],
            "calibration": ["trtllm", "nccl"],
            "thresholds": ["B", "S"],
        },
        "drafts": {
            "models": [SMALL_MODEL, "gemma-3-27b", "gpt-oss-120b"],
            "grid": {"B": [1, 64], "S": [2000], "T": [1, 5]},
            "dtypes": ["bf16"],
            "chips": ["h100-sxm"],
            "splits": [{"tp": 4, "dp": 2}],
            "network": ["nvlink", ["nvlink", "infiniband"]],
            "cache_split": "batch",
            "routing": "same",
            "efficiency": {"math": 0.8, "network": 0.9},
        },
        "asked": {
            "models": ["llama-3.1-8b"],
            "grid": {"B": [1, 64, 4096]},
            "requests": [{"input": 1000, "output": 200}, {"input": 200, "output": 1000}],
            "dtypes": ["bf16"],
            "chips": ["h100-sxm", "tpu-v5e"],
            "splits": [{"tp": 1}, {"tp": 2}],
            "calibration": "trtllm",
        },
    },
    "measurements": {name: {"file": f"{name}.csv"} for name in ("grid", "nccl", "served")},
    "charts": [
        {"chart": "roofline", "sweep": "shapes", "view": {"shape": HOSTILE}},
        {"chart": "critical", "sweep": "long"},
        {"chart": "chips", "sweep": "shapes"},
        {"chart": "measured", "measurements": "grid"},
    ],
    "site": {
        "title": HOSTILE,
        "author": "Jane Doe",
        "url": 'https://example.org/"onclick="x',
        "date": date(2026, 11, 22),
        "tables": "https://example.org/tables/",
    },
    "chips": {
        "mine": {
            "base": "tpu-v5e",
            "name": HOSTILE,
            "note": HOSTILE,
            "memory.hbm.bytes_per_s": 8.1e11,
            "networks.ici.domain": None,
            "source": f"javascript:{HOSTILE}",
        }
    },
}
"""Tables that fit in one file of the page, and a long one; names that must stay text."""


CHARTS = ["roofline-shapes", "critical-long", "chips-shapes", "measured-grid"]
"""The charts of the site, in the order of its list."""


RUNS = 40
"""Runs of a served model [1]."""


def matmul_timings() -> pl.DataFrame:
    """Timings of matmuls on two chips, by three libraries, some below the bound, some in int4."""
    peaks = {"h100-sxm": (989e12, 3.35e12), "b200": (2.25e15, 8e12)}
    rows = []
    for software, factor in (("trtllm", 1.0), ("sglang", 1.3), (HOSTILE, 0.98)):
        for chip, (peak, rate) in peaks.items():
            for dtype, width in (("bf16", 2), ("fp8", 1), ("int4", 0.5)):
                for n, B in enumerate(2**power for power in range(14)):  # noqa: N806, the letter
                    D, F = 4096, 4096 * (1 + n % 3)  # noqa: N806, the letters
                    math = 2 * B * D * F * width / 2 / peak
                    memory = width * (B * D + D * F + B * F) / rate
                    seconds = factor * (1.0 + 0.02 * n) * max(math, memory) + 2e-6 * (n % 4)
                    stored = dict.fromkeys(("dtype_x", "dtype_w", "compute"), dtype)
                    about = {"chip": chip, "software": software, **stored, "dtype_out": "bf16"}
                    rows.append({**about, "B": B, "D": D, "F": F, "seconds": seconds})
    return pl.DataFrame(rows)


def run_small_site(folder: Path) -> None:
    """Make the site in a folder, with all that it is made from."""
    matmul_timings().write_csv(folder / "grid.csv")
    head = "chip,software,collective,shards,bytes,seconds"
    (folder / "nccl.csv").write_text(f"{head}\nh100-sxm,nccl,all-gather,8,1073741824,5e-3\n")
    head = "model,chip,software,linear,input_tokens,output_tokens,concurrency,ttft_s,tpot_s"
    same = "llama-3.1-8b,h200-sxm,vllm,fp8,1024,1024"
    runs = (f"{same},{n},0.1,{0.004 + n / 5e3}" for n in range(1, RUNS + 1))
    (folder / "served.csv").write_text("\n".join([head, *runs]) + "\n")
    (folder / "my.yaml").write_text(yaml.safe_dump(CONFIG), encoding="utf-8")
    command = [sys.executable, "-m", "rooflines", "run", "my.yaml", "--cores", "2", "--", "bundle"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
