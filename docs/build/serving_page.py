"""Numbers of docs/serve.md: a decode step by estimate and bounds, and the models to choose from."""

from __future__ import annotations

from blocks import with_values
from documents import DOCS

import rooflines
from rooflines.basics.text import seconds
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


def with_serving_values(page: str) -> str:
    """docs/serve.md with current values."""
    return with_values(page, serving_values())
