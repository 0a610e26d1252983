"""Public measurements of serving against the least time of a step: docs/served.md.

The measurements are not part of this repository: `ROOFLINES_PUBLIC_DATA` names the folder that has
them.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import polars as pl
from one_chip import case_on, least_seconds

from rooflines.models.footprint import cache_on_chip, weights_on_chip

if TYPE_CHECKING:
    from rooflines.serving.case import Case

__all__ = ["DATA", "FORMATS", "RECORDED_CHIPS", "SAME_RUN", "SHORTEST", "compared", "served_csv"]

DATA = "ROOFLINES_PUBLIC_DATA"
"""The environment variable with the folder of public data."""

SHORTEST = 4, 5
"""Prompts and answers of a run have at least 0.8 of the nominal length."""

FORMATS = {None: "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4"}
"""Formats of weights by their name in the data; scales of fp8 blocks are left out."""

ONE_BYTE = "fp8"
"""The format of caches and of attention: no engine of the data has a smaller one."""

RECORDED_CHIPS = 8
"""The most chips of a run whose split the data records [1]."""

SAME_RUN = ("model", "chip", "engine", "input_tokens", "output_tokens", "ttft_s", "tpot_s")
"""Rows that agree in these, times to the last digit, are one measurement."""


class Run(NamedTuple):
    """What the bounds of a run depend on.

    Attributes:
        model, chip: Ids.
        linear, experts: Formats of weights in the data; None: not quantized.
        B: Sequences in decode [1].
        S: Context of the mean step [1].
        chips: Chips [1].
        prompt, answer: Tokens of the shortest prompt and answer [1].
    """

    model: str
    chip: str
    linear: str | None
    experts: str | None
    B: int
    S: int
    chips: int
    prompt: int
    answer: int


class Bounds(TypedDict):
    """What is computed for a run.

    Attributes:
        tpot_bound_s: The least time of a step [s].
        ttft_bound_s: The least time to read a prompt [s].
        experts_s: What a step takes more if tokens choose experts at random [s].
        prompts_s: The least time in which the prompts that arrive during a step are read [s].
        kernels: Kernels of a step [1].
        fits: Whether weights and caches fit.
    """

    tpot_bound_s: float
    ttft_bound_s: float
    experts_s: float
    prompts_s: float
    kernels: int
    fits: bool


def served_csv() -> Path | None:
    """The file with the measurements; None where the environment does not name its folder."""
    folder = os.environ.get(DATA)
    return Path(folder) / "models" / "served.csv" if folder else None


def compared(path: Path) -> pl.DataFrame:
    """Measurements with their bounds.

    Args:
        path: A CSV file: a row for each run.

    Returns:
        The columns of the file, those of `Bounds`, and
        `chips`: the larger of tp * attention_dp and moe_tp * moe_ep [1];
        `B`: sequences in decode, by Little's law, rounded down [1];
        `S`: context of the mean step, of the shortest prompts and answers [1];
        `tokens_per_s_per_chip`: B before rounding / tpot_s / chips [1/s];
        `left_out`: why the run is not in the distribution; null where it is.
    """
    frame = running(pl.read_csv(path, infer_schema_length=None))
    found = pl.DataFrame([bounds(Run(*row)) for row in frame.select(Run._fields).iter_rows()])
    frame = pl.concat([frame, found], how="horizontal").sort("chips", maintain_order=True)
    return frame.with_columns(
        left_out=pl.when(~pl.col("fits"))
        .then(pl.lit("weights and caches do not fit the recorded chips"))
        .when(pl.col("chips") > RECORDED_CHIPS)
        .then(pl.lit(f"more than {RECORDED_CHIPS} chips: the split is not fully recorded"))
        .when(~pl.struct(SAME_RUN).is_first_distinct())
        .then(pl.lit("the same measurement as another row"))
    )


def running(frame: pl.DataFrame) -> pl.DataFrame:
    """Adds chips, tokens and the sequences in decode."""
    replicas = pl.max_horizontal(pl.col("attention_dp").fill_null(1), 1)
    shorter, nominal = SHORTEST
    return (
        frame.with_columns(
            chips=pl.max_horizontal(pl.col("tp") * replicas, pl.col("moe_tp") * pl.col("moe_ep")),
            concurrency=pl.col("concurrency").fill_null(pl.col("batch") * replicas),
            prompt=pl.col("input_tokens") * shorter // nominal,
            answer=pl.col("output_tokens") * shorter // nominal,
        )
        .with_columns(decoding=pl.col("answer") * pl.col("tpot_s"))
        .with_columns(
            mean_B=pl.col("concurrency")
            * pl.col("decoding")
            / (pl.col("ttft_s") + pl.col("decoding"))
        )
        .with_columns(
            B=pl.max_horizontal(pl.col("mean_B").floor().cast(pl.Int64), 1),
            S=pl.col("prompt") + (pl.col("answer") + 1) // 2,
            tokens_per_s_per_chip=pl.col("mean_B") / pl.col("tpot_s") / pl.col("chips"),
        )
    )


@cache
def case_on_one(
    model: str, chip: str, formats: tuple[str | None, str | None], phase: str, routing: str
) -> Case:
    """A model on one of its chips, with the formats of `linear` and `experts`."""
    compute, experts = (FORMATS[name] for name in formats)
    dtypes = {
        "weights": compute,
        "experts": experts,
        "cache": ONE_BYTE,
        "activations": ONE_BYTE,
        "compute": compute,
        "attention": ONE_BYTE,
    }
    return case_on(model, chip, dtypes, phase=phase, routing=routing)


def bounds(run: Run) -> Bounds:
    """What is computed for a run."""
    system = run.model, run.chip, (run.linear, run.experts)
    case = case_on_one(*system, "decode", "same")
    least = least_seconds(case, run.B, run.S, run.chips)
    random = least_seconds(case_on_one(*system, "decode", "uniform"), run.B, run.S, run.chips)
    reading = least_seconds(case_on_one(*system, "prefill", "same"), 1, run.prompt, run.chips)
    shape, bits, split = case.model.shape, case.sharing.bits, case.split
    held = weights_on_chip(shape, bits, split) + run.B * cache_on_chip(shape, run.S, bits, split)
    capacity = case.machine.level.capacity_bytes
    return {
        "tpot_bound_s": float(least),
        "ttft_bound_s": float(reading),
        "experts_s": float(random - least),
        "prompts_s": float(reading * run.B / run.answer),
        "kernels": sum(kernel.group.count for kernel in case.kernels),
        "fits": capacity is not None and held <= capacity * run.chips,
    }
