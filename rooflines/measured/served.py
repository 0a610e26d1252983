"""Runs of served models beside the least time of a step, and what else takes time.

The bound holds for every split: it has the work of one chip over the number of chips, all tokens at
the same experts, caches of one byte an element, and neither networks nor activations.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypedDict

import polars as pl

from rooflines.basics.errors import Mistakes
from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.fits.judge import BINS
from rooflines.fits.layouts import chips_of_run
from rooflines.fits.timings import PARALLEL
from rooflines.measured.catalogues import check_known_values
from rooflines.measured.matmuls import NOMINAL, missing_bound_reason
from rooflines.models.footprint import cache_on_chip, weights_on_chip
from rooflines.models.library import model_entries
from rooflines.serving.one_chip import case_on, least_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rooflines.catalogue.entries import Chip
    from rooflines.serving.case import Case

SHORTEST = 4, 5
"""Prompts and answers of a run have at least 0.8 of the nominal length."""

UNQUANTIZED = "bf16"
"""The format of weights that is not stated."""

FORMATS = {None: UNQUANTIZED, "bf16": "bf16", "fp8": "fp8", "fp8_block": "fp8", "nvfp4": "nvfp4"}
"""Formats of weights by their name in the data; scales of fp8 blocks are left out."""

ONE_BYTE = "fp8"
"""The format of caches and of attention: no engine of public runs has a smaller one."""

NO_ROOM = "weights and caches that do not fit its chips"
"""Why a run has no row: the number of chips, or of sequences, is wrong."""


class ServedRun(NamedTuple):
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


class RunBounds(TypedDict):
    """What is computed for a run.

    Attributes:
        tpot_bound_s: The least time of a step [s].
        ttft_bound_s: The least time to read a prompt [s].
        experts_s: What a step takes more if tokens choose experts at random [s].
        prompts_s: The least time in which the prompts that arrive during a step are read [s].
        kernels: Kernels of a step [1].
        bound: Whether math or memory takes the least time of a step: `compute` or `memory`.
        fits: Whether weights and caches fit.
    """

    tpot_bound_s: float
    ttft_bound_s: float
    experts_s: float
    prompts_s: float
    kernels: int
    bound: str
    fits: bool


def in_decode(answer: pl.Expr) -> pl.Expr:
    """Sequences in decode, by Little's law, before rounding [1].

    Args:
        answer: Tokens of an answer [1].
    """
    decoding = answer * pl.col("tpot_s")
    return pl.col("concurrency") * decoding / (pl.col("ttft_s") + decoding)


def mean_context(prompt: pl.Expr, answer: pl.Expr) -> pl.Expr:
    """Context of the mean step, at the middle of the answer [1].

    Args:
        prompt: Tokens of a prompt [1].
        answer: Tokens of an answer [1].
    """
    return prompt + (answer + 1) // 2


def with_steps(frame: pl.DataFrame) -> pl.DataFrame:
    """Adds the steps of runs.

    Args:
        frame: Runs with the columns of `SERVED` and some of `SERVED_OPTIONAL`.

    Returns:
        Also those of `SERVED_OPTIONAL` that are missing;
        `chips`: as of `chips_of_run` [1];
        `prompt`, `answer`: tokens of the shortest prompt and answer [1];
        `B`: sequences in decode, by Little's law, rounded down [1];
        `S`: context of the mean step, of the shortest prompts and answers [1];
        `tokens_per_s_per_chip`: B before rounding / tpot_s / chips [1/s].
    """
    shorter, nominal = SHORTEST
    formats = {n: pl.lit(None, pl.String) for n in ("linear", "experts") if n not in frame.columns}
    ones = {n: pl.lit(1, pl.Int64) for n in PARALLEL if n not in frame.columns}
    frame = frame.with_columns(**formats, **ones)
    return (
        frame.with_columns(
            chips=chips_of_run(),
            prompt=pl.max_horizontal(pl.col("input_tokens") * shorter // nominal, 1),
            answer=pl.max_horizontal(pl.col("output_tokens") * shorter // nominal, 1),
        )
        .with_columns(mean_B=in_decode(pl.col("answer")))
        .with_columns(
            B=pl.max_horizontal(pl.col("mean_B").floor().cast(pl.Int64), 1),
            S=mean_context(pl.col("prompt"), pl.col("answer")),
            tokens_per_s_per_chip=pl.col("mean_B") / pl.col("tpot_s") / pl.col("chips"),
        )
    )


def with_bounds(frame: pl.DataFrame, entries: Mapping[str, Chip] | None = None) -> pl.DataFrame:
    """Adds `Bounds` to runs with their steps.

    Args:
        frame: From `with_steps`.
        entries: The chips by id; by default those of the catalogue.
    """
    runs = [ServedRun(*row) for row in frame.select(ServedRun._fields).iter_rows()]
    cases: dict[tuple[str, str, str | None, str | None], _Cases] = {}
    found = []
    for run in runs:
        system = run[:4]
        if system not in cases:
            cases[system] = _Cases.of(*system, entries)
        found.append(_bounds(run, cases[system]))
    return pl.concat([frame, pl.DataFrame(found)], how="horizontal")


class _Cases(NamedTuple):
    """A model on one of its chips: decode with one choice of experts and with any, and prefill."""

    same: Case
    uniform: Case
    prefill: Case

    @classmethod
    def of(
        cls,
        model: str,
        chip: str,
        linear: str | None,
        experts: str | None,
        entries: Mapping[str, Chip] | None,
    ) -> _Cases:
        """The cases with the formats of weights."""
        dtypes = {
            "weights": FORMATS[linear],
            "experts": FORMATS[experts],
            "cache": ONE_BYTE,
            "activations": ONE_BYTE,
            "compute": FORMATS[linear],
            "attention": ONE_BYTE,
        }
        on: Callable[..., Case] = partial(
            case_on, model, chip, dtypes, entries=entries, efficiency=NOMINAL
        )
        return cls(
            on(phase="decode", routing="same"),
            on(phase="decode", routing="uniform"),
            on(phase="prefill", routing="same"),
        )


def _bounds(run: ServedRun, cases: _Cases) -> RunBounds:
    """What is computed for a run."""
    case = cases.same
    least = least_seconds(case, run.B, run.S, run.chips)
    random = least_seconds(cases.uniform, run.B, run.S, run.chips)
    reading = least_seconds(cases.prefill, 1, run.prompt, run.chips)
    times = case.seconds(case.step(run.B, run.S))
    shape, bits, split = case.model.shape, case.sharing.bits, case.split
    held = weights_on_chip(shape, bits, split) + run.B * cache_on_chip(shape, run.S, bits, split)
    capacity = case.machine.level.capacity_bytes
    return {
        "tpot_bound_s": float(least),
        "ttft_bound_s": float(reading),
        "experts_s": float(random - least),
        "prompts_s": float(reading * run.B / run.answer),
        "kernels": sum(kernel.group.count for kernel in case.kernels),
        "bound": "compute" if times.math > times.memory else "memory",
        "fits": capacity is not None and held <= capacity * run.chips,
    }


def with_formats(frame: pl.DataFrame) -> pl.DataFrame:
    """Adds the format of the weights, `dtypes`, to runs.

    Raises:
        RooflinesError: A model or a format is unknown.
    """
    fix = "use an id of `rooflines models`, or choose other rows"
    known = [name for name in FORMATS if name is not None]
    with Mistakes() as mistakes:
        with mistakes.at():
            check_known_values(frame, "model", model_entries(), "is no model", fix)
        for column in ("linear", "experts"):
            if column in frame.columns:
                given = frame.drop_nulls(column)
                fix = f"use one of {', '.join(known)}, or choose other rows"
                with mistakes.at():
                    check_known_values(given, column, known, "is no format of weights", fix)
    if "linear" not in frame.columns:
        return frame.with_columns(dtypes=pl.lit(UNQUANTIZED))
    return frame.with_columns(dtypes=pl.col("linear").fill_null(UNQUANTIZED))


def missing_step_reason(chip: Chip, weights: str) -> str | None:
    """The reason why a chip has no bound for weights in a format; None where it has one."""
    if reason := missing_bound_reason(chip, FORMATS[weights]) or missing_bound_reason(
        chip, ONE_BYTE
    ):
        return reason
    if chip.memory[MAIN_MEMORY].capacity_bytes is None:
        return f"no published capacity of memory level {MAIN_MEMORY}"
    return None


def served_rows(frame: pl.DataFrame, entries: Mapping[str, Chip]) -> pl.DataFrame:
    """Runs with their bound, as timings have it.

    Args:
        frame: Runs with the columns of `SERVED`; their chips lack nothing.
        entries: The chips by id.

    Returns:
        Also the columns of `with_steps` and `with_bounds`; `shards`, the chips [1]; `seconds`, the
        time per output token, its bound `t_lower_s`, and `ttft_lower_s` [s]; and `region`.
    """
    region = pl.coalesce(pl.when(inside).then(pl.lit(name)) for name, inside in BINS.items())
    return with_bounds(with_steps(frame), entries).with_columns(
        shards="chips",
        seconds="tpot_s",
        t_lower_s="tpot_bound_s",
        ttft_lower_s="ttft_bound_s",
        region=region,
    )
