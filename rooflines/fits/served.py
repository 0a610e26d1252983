"""Runs of served models as public collections have them."""

from __future__ import annotations

import polars as pl

from rooflines.fits.timings import PARALLEL

RECORDED_CHIPS = 8
"""The most chips of a run of InferenceX whose split is recorded [1]."""

SAME_RUN = ("model", "chip", "engine", "input_tokens", "output_tokens", "ttft_s", "tpot_s")
"""Rows that agree in these, times to the last digit, are one measurement."""


def chips_of_run() -> pl.Expr:
    """The chips of a run [1]: the larger of tp * attention_dp and moe_tp * moe_ep."""
    tp, replicas, by_width, by_expert = (pl.max_horizontal(name, 1) for name in PARALLEL)
    return pl.max_horizontal(tp * replicas, by_width * by_expert)


def with_requests(frame: pl.DataFrame) -> pl.DataFrame:
    """Runs of InferenceX with `software`, and with the requests at the same time where missing.

    Those are then the batch of all replicas.
    """
    every = pl.col("batch") * pl.max_horizontal("attention_dp", 1)
    return frame.with_columns(software="engine", concurrency=pl.col("concurrency").fill_null(every))


def inferencex(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Runs of InferenceX as aiconfigurator collects them, with times in seconds.

    Source: ai-dynamo/aiconfigurator, `systems/silicon_sample.csv`, columns renamed.
    """
    few = frame.filter(chips_of_run() <= RECORDED_CHIPS)
    first = few.sort(chips_of_run(), maintain_order=True).unique(
        SAME_RUN, keep="first", maintain_order=True
    )
    left_out = {
        f"are of more than {RECORDED_CHIPS} chips, whose split is not fully recorded": (
            frame.height - few.height
        ),
        "are the same measurement as another row": few.height - first.height,
    }
    return with_requests(first), {reason: count for reason, count in left_out.items() if count}
