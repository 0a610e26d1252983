"""Runs with served models beside the least time for a step, and their decode batch.

The bound holds for every split: one-chip work / chips, with all tokens at the same experts, one
byte per cache element, and neither networks nor activations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.fits.fit_errors import BIN
from rooflines.fits.layouts import chips_of_run
from rooflines.fits.timings import PARALLEL
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.measured.catalogues import UNQUANTIZED, WEIGHT_FORMATS, compute_of
from rooflines.measured.kernel_rows import NOMINAL_SHARES, missing_bound_reason
from rooflines.models.memory import cache_on_chip, weights_on_chip
from rooflines.sweep.one_chip import sweep_on

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rooflines.basics.yaml_file import JSON
    from rooflines.hardware.entries import Chip
    from rooflines.sweep.step_sweep import StepCase

MIN_LENGTH_SHARE = 4, 5
"""Least share of the nominal length in a run's prompts and answers, 4 / 5 [1]."""

ONE_BYTE = "fp8"
"""Format for caches and attention: no engine in public runs has a smaller one."""

NO_ROOM = "weights and caches that do not fit its chips"
"""Reason why a run has no row: the number of chips, or of sequences, is wrong."""


SYSTEM = ("model", "chip", "linear", "experts")
"""Keys for a case: model, chip, and weight formats."""


def in_decode(answer: pl.Expr, columns: Collection[str]) -> pl.Expr:
    """Sequences in decode on a server, by Little's law, before rounding [1].

    Args:
        answer: Tokens per answer [1].
        columns: The runs' columns; without `servers`, a run has one.
    """
    decoding = answer * pl.col("tpot_s")
    servers = pl.max_horizontal("servers", 1) if "servers" in columns else 1
    return pl.col("concurrency") / servers * decoding / (pl.col("ttft_s") + decoding)


def with_steps(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the decode steps to runs: chips, shortest prompt and answer, B, S.

    Args:
        frame: Runs with the columns of `SERVED` and some of `SERVED.optional`.

    Returns:
        Also those of `SERVED.optional` that are missing; `chips`: from `chips_of_run` [1];
        `prompt`, `answer`: tokens in the shortest prompt and answer [1]; `B`: sequences in decode,
        by Little's law, rounded down [1]; `S`: context in the mean step, with the shortest prompts
        and answers [1]; `tokens_per_s_per_chip`: B before rounding / tpot_s / chips [1/s].
    """
    shorter, nominal = MIN_LENGTH_SHARE
    formats = {n: pl.lit(None, pl.String) for n in ("linear", "experts") if n not in frame.columns}
    ones = {n: pl.lit(1, pl.Int64) for n in PARALLEL if n not in frame.columns}
    frame = frame.with_columns(**formats, **ones)
    return (
        frame.with_columns(
            chips=chips_of_run(),
            prompt=pl.max_horizontal(pl.col("input_tokens") * shorter // nominal, 1),
            answer=pl.max_horizontal(pl.col("output_tokens") * shorter // nominal, 1),
        )
        .with_columns(mean_B=in_decode(pl.col("answer"), frame.columns))
        .with_columns(
            B=pl.max_horizontal(pl.col("mean_B").floor().cast(pl.Int64), 1),
            S=pl.col("prompt") + (pl.col("answer") + 1) // 2,
            tokens_per_s_per_chip=pl.col("mean_B") / pl.col("tpot_s") / pl.col("chips"),
        )
    )


def served_rows(frame: pl.DataFrame, entries: Mapping[str, Chip]) -> pl.DataFrame:
    """Runs with their bound.

    Args:
        frame: Runs with the columns in `SERVED`; their chips lack nothing.
        entries: The chips by id.

    Returns:
        Also the columns from `with_steps`; `shards`, the chips [1]; `seconds`, the time per output
        token, and its bound `t_lower_s`, the least time for a step [s]; `ttft_lower_s`, the least
        time to read a prompt [s]; `bound`, the resource with that least step time: `compute` or
        `memory`; `fits`, true if weights and caches fit; and `region`.
    """
    index = "#run"
    parts = with_steps(frame).with_row_index(index).partition_by(SYSTEM, maintain_order=True)
    runs = pl.concat(_with_bounds(part, entries) for part in parts)
    rows = runs.with_columns(shards="chips", seconds="tpot_s", region=BIN)
    return rows.sort(index).drop(index)


def _with_bounds(part: pl.DataFrame, entries: Mapping[str, Chip]) -> pl.DataFrame:
    """Runs on one system with their bounds."""
    model, chip, linear, experts = part.select(SYSTEM).row(0)
    dtypes = {
        "weights": WEIGHT_FORMATS[linear],
        "experts": WEIGHT_FORMATS[experts],
        "cache": ONE_BYTE,
        "activations": ONE_BYTE,
        "compute": compute_of(WEIGHT_FORMATS[linear], entries[chip]),
        "attention": ONE_BYTE,
    }

    options = {"routing": "same", "efficiency": NOMINAL_SHARES}
    (case,) = sweep_on(model, chip, dtypes, entries=entries, phase="decode", **options).cases
    runs = part.select("B", "S", "chips", "prompt").iter_rows(named=True)
    rows = [_bounds(run, case) for run in runs]
    return pl.concat([part, pl.DataFrame(rows)], how="horizontal")


def _bounds(run: JSON, case: StepCase) -> dict[str, object]:
    """Bounds for a run, in decode and prefill.

    The bound is the unsplit model's least time / chips: a split adds copies and transfers, and its
    busiest chip has at least the mean share.
    """
    B, S, chips = run["B"], run["S"], run["chips"]  # noqa: N806, letters of sizes
    times, prefill = case.seconds(case.step(B, S)), case.prefill
    prefill_times = prefill.seconds(prefill.step(1, run["prompt"]))
    shape, bits, split = case.model.shape, case.sharing.bits, case.split
    resident_bytes = weights_on_chip(shape, bits, split) + B * cache_on_chip(shape, S, bits, split)
    capacity = case.machine.level.capacity_bytes
    return {
        "t_lower_s": float(times.lower / chips),
        "ttft_lower_s": float(prefill_times.lower / chips),
        "bound": "compute" if times["compute"] > times["memory"] else "memory",
        "fits": capacity is not None and resident_bytes <= capacity * chips,
    }


def with_formats(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the weight format, `dtypes`, to runs with known formats."""
    weights = pl.col("linear") if "linear" in frame.columns else pl.lit(None, pl.String)
    return frame.with_columns(dtypes=weights.fill_null(UNQUANTIZED))


def missing_step_reason(chip: Chip, weights: str) -> str | None:
    """Reason why a chip has no bound for weights in a format; None where it has one."""
    if reason := missing_bound_reason(
        chip, compute_of(WEIGHT_FORMATS[weights], chip)
    ) or missing_bound_reason(chip, ONE_BYTE):
        return reason
    if chip.memory[MAIN_MEMORY].capacity_bytes is None:
        return f"no published capacity of memory level {MAIN_MEMORY}"
    return None
