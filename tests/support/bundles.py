"""A small site for tests: two families of charts, thresholds of a small config, hostile names."""

from __future__ import annotations

import io
import json
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
from PIL import Image

from rooflines import load_config
from rooflines.results.folders import MEASURED_SUMMARIES, MODEL_THRESHOLDS
from rooflines.run.measured_jobs import write_measured, write_measured_summary
from rooflines.run.plan import plan
from rooflines.run.solving import write_model_thresholds, write_thresholds
from rooflines.site.site import write_bundle

HOSTILE = (
    '</script><script>document.title="ran"</script>'
    """<img src=x onerror='document.title="ran"'>"&amp;"""
)
"""A name that runs as code wherever it is not escaped."""

CHIPS = {
    "tpu-v5e": {"bf16": (1.97e14, 8.19e11), "int8": (3.94e14, 8.19e11)},
    "h100-sxm": {"bf16": (9.89e14, 3.35e12), "fp8": (1.979e15, 3.35e12)},
}
DTYPES = ["bf16", "int8", "fp8"]
CHARTS = [f"{family}-{number}" for family in ("roofline", "compared") for number in range(2)]

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
            "dtypes": ["bf16", "int8"],
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
"""Tables of the page that fit in one file, and a long one that is split by chip."""


def made_bundle(folder: Path) -> Path:
    """Write charts, thresholds, and the site of both.

    Args:
        folder: The folder to write them to.

    Returns:
        The folder to publish.
    """
    for family in ("roofline", "compared"):
        write_family(folder / "charts" / family)
    parquet = folder / "thresholds.parquet"
    planned = plan(load_config(CONFIG))
    write_thresholds(planned.spec("thresholds.parquet"), parquet)
    models = folder / MODEL_THRESHOLDS
    write_model_thresholds(planned.spec("model-thresholds.parquet"), models)
    write_bundle(
        folder / "bundle",
        [folder / "charts" / family for family in ("roofline", "compared")],
        parquet,
        [models],
        spec=planned.spec("bundle"),
        measured=write_errors(folder),
        timings=sorted((folder / "measured").glob("*.parquet")),
    )
    return folder / "bundle"


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


def write_errors(folder: Path) -> list[Path]:
    """Write the errors at timings, collectives and runs, and the timings without a row."""
    matmul_timings().write_csv(folder / "timings.csv")
    head = "chip,software,collective,shards,bytes,seconds"
    (folder / "collectives.csv").write_text(f"{head}\nh100-sxm,nccl,all-gather,8,1073741824,5e-3\n")
    head = "model,chip,software,linear,input_tokens,output_tokens,concurrency,ttft_s,tpot_s"
    same = "llama-3.1-8b,h200-sxm,vllm,fp8,1024,1024"
    runs = (f"{same},{n},0.1,{0.004 + n / 5e3}" for n in range(1, RUNS + 1))
    (folder / "served.csv").write_text("\n".join([head, *runs]) + "\n")
    files = {"grid": "timings.csv", "nccl": "collectives.csv", "served": "served.csv"}
    config = {"measurements": {name: {"file": str(folder / file)} for name, file in files.items()}}
    planned = plan(load_config(config))
    tables = [str(folder / path) for path in planned.paths("measured")]
    (folder / "measured").mkdir(exist_ok=True)
    for name, table in zip(files, tables, strict=True):
        write_measured(planned.spec(f"measured/{name}.parquet"), table)
    written = [folder / name for name in MEASURED_SUMMARIES]
    write_measured_summary(planned.spec("measured.csv"), tables, *written)
    return written


def write_family(folder: Path) -> None:
    """Write two charts of a family and their list."""
    folder.mkdir(parents=True, exist_ok=True)
    filtered = folder.name == "roofline"
    listed = []
    for number in range(2):
        name = f"{folder.name}-{number}"
        spec, views, frame = filtered_chart() if filtered else plain_chart()
        (folder / f"{name}.vl.json").write_text(json.dumps(spec))
        (folder / f"{name}-views.json").write_text(json.dumps(views))
        written = io.BytesIO()
        Image.new("RGB", (640, 360), "white").save(written, "PNG")
        for size in ("", "-small"):
            (folder / f"{name}{size}.png").write_bytes(written.getvalue())
        (folder / f"{name}.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
        (folder / f"{name}.pdf").write_bytes(b"%PDF-1.4")
        (folder / f"{name}.html").write_text("<!doctype html>")
        frame.write_csv(folder / f"{name}.csv")
        frame.write_parquet(folder / f"{name}.parquet")
        params = [
            {
                "name": "chip",
                "title": "Chip",
                "options": list(CHIPS),
                "labels": ["TPU v5e", "H100 SXM"],
                "value": "tpu-v5e",
            },
            {
                "name": "dtypes",
                "title": "Data types",
                "options": DTYPES,
                "labels": DTYPES,
                "value": "bf16",
            },
        ]
        listed.append(
            {
                "id": name,
                "family": folder.name,
                "heading": folder.name.capitalize(),
                "title": f"{name} finds {HOSTILE}",
                "subtitle": f"setting {HOSTILE}",
                "caption": f"caption {HOSTILE}",
                "params": params if filtered else [],
                "rows": frame.height,
            }
        )
    (folder / "index.json").write_text(json.dumps(listed))


def layouts() -> dict[str, Any]:
    """Sizes of a chart by layout."""
    padding = {"left": 60, "right": 20, "top": 80, "bottom": 50}
    return {
        "web": {
            "width": 800,
            "height": 340,
            "padding": padding,
            "em": 14,
            "narrow": False,
            "titled": True,
        },
        "paper": {
            "width": 380,
            "height": 220,
            "padding": {**padding, "left": 45, "top": 26},
            "em": 10,
            "narrow": True,
            "titled": False,
        },
    }


def spec_of(view: dict[str, Any], layer: list[dict[str, Any]]) -> dict[str, Any]:
    """The specification of a view."""
    params = {"em": 14, "narrow": False, **view["params"]}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "datasets": view["datasets"],
        "params": [{"name": name, "value": value} for name, value in params.items()],
        "title": {"text": {"expr": "headline"}},
        "layer": layer,
        "autosize": {"type": "none", "contains": "padding"},
        "usermeta": {"looks": layouts()},
        "config": {},
    }


def said(title: str, subtitle: list[str]) -> dict[str, Any]:
    """What a view says."""
    params = {"headline": title, "subline": subtitle}
    return {"layer": 0, "title": title, "subtitle": subtitle, "params": params}


def filtered_chart() -> tuple[dict[str, Any], dict[str, Any], pl.DataFrame]:
    """A line for each chip and dtype; menus choose the one that is shown."""
    frame = pl.DataFrame(
        [
            {
                "chip": chip,
                "dtypes": dtypes,
                "shape": HOSTILE,
                "intensity": intensity,
                "attained": min(peak, intensity * bandwidth),
            }
            for chip, peaks in CHIPS.items()
            for dtypes, (peak, bandwidth) in peaks.items()
            for intensity in (1.0, peak / bandwidth, 10_000.0)
        ]
    )
    views = [
        {
            "values": [chip, dtypes],
            **said(
                f"{chip} in {dtypes} has its ridge at {peak / bandwidth:.0f}",
                ["Over main memory,", HOSTILE],
            ),
            "datasets": {"lines": frame.filter(chip=chip, dtypes=dtypes).to_dicts()},
        }
        for chip, peaks in CHIPS.items()
        for dtypes, (peak, bandwidth) in peaks.items()
    ]
    layer = {
        "data": {"name": "lines"},
        "mark": {"type": "line", "point": {"size": 400}},
        "encoding": {
            "x": {"field": "intensity", "type": "quantitative", "scale": {"type": "log"}},
            "y": {"field": "attained", "type": "quantitative", "scale": {"type": "log"}},
            "detail": {"field": "shape", "type": "nominal"},
            "tooltip": [
                {"field": "shape", "type": "nominal"},
                {"field": "attained", "type": "quantitative", "format": ".3s", "title": "FLOP/s"},
            ],
        },
    }
    file = {"menus": ["chip", "dtypes"], "layers": [[layer]], "views": views}
    return spec_of(views[0], [layer]), file, frame


def plain_chart() -> tuple[dict[str, Any], dict[str, Any], pl.DataFrame]:
    """Bars, without menus."""
    frame = pl.DataFrame(
        [
            {"name": chip, "ridge": peaks["bf16"][0] / peaks["bf16"][1]}
            for chip, peaks in CHIPS.items()
        ]
        + [{"name": HOSTILE, "ridge": 100.0}]
    )
    layer = {
        "data": {"name": "bars"},
        "mark": "bar",
        "encoding": {
            "x": {"field": "ridge", "type": "quantitative"},
            "y": {"field": "name", "type": "nominal"},
        },
    }
    said_of = said(f"Bars of {HOSTILE}", [f"setting {HOSTILE}"])
    views = [{"values": [], **said_of, "datasets": {"bars": frame.to_dicts()}}]
    return spec_of(views[0], [layer]), {"menus": [], "layers": [[layer]], "views": views}, frame
