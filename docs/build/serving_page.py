"""Numbers of docs/serve.md: a decode step by estimate and bounds, and the models to choose from."""

from __future__ import annotations

from typing import Any

from blocks import with_values
from documents import DOCS

import rooflines
from rooflines.basics.text import seconds, si, significant
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.models.hf.families import families
from rooflines.models.library import model_entries

SERVE = DOCS / "serve.md"

CALIBRATION = ["trtllm", "nccl"]
CONTEXT, SHORT_CONTEXT = 8192, 1024
"""Contexts of the step, and of the batch with 90 % of the plateau [1]."""


def serving_values() -> dict[str, str]:
    """Values of the page by their names."""
    answer, short = (
        rooflines.explain_model(
            "h100-sxm", "llama-3.1-70b", B=64, S=context, split={"tp": 8}, calibration=CALIBRATION
        )
        for context in (CONTEXT, SHORT_CONTEXT)
    )
    row, (batch, context, *_) = answer.row, short.thresholds
    entries = model_entries().values()
    times = {
        "estimate": "t_estimate_s",
        "low": "t_estimate_p10_s",
        "high": "t_estimate_p90_s",
        "lower": "t_lower_s",
        "serialized": "t_serial_s",
    }
    return {
        **{name: seconds(row[column]) for name, column in times.items()},
        "largest": f"{row['max_B']:,}",
        "context": f"{answer.thresholds[1]['critical']:,}",
        "plateauB": f"B = {batch['plateau_estimate']:,}",
        "plateauS": f"S = {context['plateau_estimate']:,}",
        "models": f"{len(entries)}",
        "exact": f"{sum(entry.published.match == 'exact' for entry in entries)}",
        "families": f"{len(families())}",
    }


def lever_values() -> dict[str, str]:
    """Thresholds of levers by their names in the page, by the bound; servers serialized."""
    eight: dict[str, Any] = {"grid": {"B": 64, "S": CONTEXT}, "splits": [{"tp": 8}]}
    draft: dict[str, Any] = {"draft": {"tokens": 3, "accepted": 1.8}}
    requests = {"requests": [{"input": CONTEXT, "output": 512}], "grid": {"B": 64}}
    targets: dict[str, Any] = {"targets": {"t_step_s": [0.02]}}
    short, pull = _lever("S_pull", levers={"pull": {"bytes_per_s": 1e10}}, **eight)
    drafted = _lever("B_draft", **draft, grid={"B": 1, "S": SHORT_CONTEXT})[0]
    accepted = _lever("accepted_draft", **draft, grid={"B": 256, "S": 2048})[0]
    pools = _lever("B_pools", "t_serial_s", **{**eight, **requests, **targets})[0]
    free, within = _lever("chunk", **eight, **targets)
    model = rooflines.models.load("llama-3.1-70b")
    math_s = 2 * (model.parameters().total - model.shape.V * model.shape.D)
    peak = 8 * chip_entries()["h100-sxm"].units["matrix"]["bf16"].flops_per_s
    rate = model.kv_cache_bytes(1, "bf16") / (math_s / peak)
    return {
        "pull": f"{pull['critical']:,}",
        "pullto": f"{short['critical']:,}",
        "pulltie": si(rate, "B/s"),
        "draft": f"{drafted['critical']:,}",
        "draftalways": f"{int(drafted['always_S']) + 1:,}",
        "accepted": significant(accepted["critical_exact"]),
        "gain": significant(pools["gain"]),
        "mixed": significant(pools["critical_exact"]),
        "apart": significant(pools["apart_B"]),
        "chunk": f"{free['critical']:,}",
        "chunkwithin": f"{within['critical']:,}",
    }


def _lever(
    axis: str,
    time: str = "t_lower_s",
    **keys: Any,  # noqa: ANN401, of a sweep
) -> list[dict[str, Any]]:
    """Threshold rows of a lever by a time, of Llama 3.1 70B on H100 in bf16."""
    sweep = {"models": ["llama-3.1-70b"], "chips": ["h100-sxm"], "dtypes": ["bf16"]}
    config = rooflines.load_config(
        {"model-sweeps": {"levers": {**sweep, **keys, "thresholds": [axis]}}}
    )
    rows = rooflines.thresholds(config, "levers")
    return rows.filter(axis=axis, time=time).to_dicts()


def with_serving_values(page: str) -> str:
    """docs/serve.md with current values."""
    return with_values(page, {**serving_values(), **lever_values()})
