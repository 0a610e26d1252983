"""Estimates for served runs: a row in a sweep over requests, with the run's split.

Prompts and answers have the nominal length, B is rounded to the nearest, and tokens choose experts
at random. Where an engine has a step fit, its overhead is part of the estimate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.config.model_fields import ModelSweepConfig
from rooflines.evaluation.operation_rows import ESTIMATES
from rooflines.evaluation.row_frames import StepTable
from rooflines.fits.calibration_files import AUTO_CALIBRATION
from rooflines.fits.fit_keys import Software
from rooflines.fits.timings import PARALLEL
from rooflines.hardware.support import default_route
from rooflines.measured.catalogues import UNQUANTIZED, WEIGHT_FORMATS, compute_of
from rooflines.measured.served import ONE_BYTE, in_decode
from rooflines.models.library import model_entries, models_of
from rooflines.sweep.step_sweep import ModelSweep

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.measured.catalogues import Catalogues
    from rooflines.sweep.step_sweep import StepCase

SYSTEM = ("model", "chip", "software", "linear", "experts", "tp", "dp", "ep")
"""Keys for a sweep over runs, which differ in B and in their requests."""

STEP = {"estimate_B": "B", "input_tokens": "input", "output_tokens": "output"}
"""Columns in a run that choose its row in the sweep, and the sweep's columns."""

ESTIMATED = (*ESTIMATES, "prefill_estimate_s", "prompts_estimate_s")
"""Columns in the sweep that a run is joined with [s]."""

LACKS = "estimate_lacks"
"""Column with the reason why a run has no estimate."""

NOT_RECORDED = "a split that is not recorded"
NOT_MODELLED = "a split of experts that sweeps of models do not have"


def with_estimates(frame: pl.DataFrame, catalogues: Catalogues) -> pl.DataFrame:
    """Add estimates to runs.

    Args:
        frame: From `served_rows`, with `software`.
        catalogues: Chips, dtypes and calibrations.

    Returns:
        Also `t_estimate_s` [s], by the engine's calibrations or else those for other software on
        the chip, and the other `ESTIMATED`; its row: `estimate_B` [1] and `estimate_split`, from
        `tp`, `dp` and `ep`; `estimate_lacks`, the reason for none.
    """
    index = "#run"
    parts = with_splits(frame.with_row_index(index)).partition_by(
        *SYSTEM, LACKS, maintain_order=True
    )
    runs = pl.concat(_with_estimate(part, catalogues) for part in parts)
    return runs.sort(index).drop(index)


def with_splits(frame: pl.DataFrame) -> pl.DataFrame:
    """Add the estimate's batch and split to runs.

    Args:
        frame: Runs with the columns from `with_steps`.

    Returns:
        Also `estimate_B`, at least one sequence for each replica [1]; `tp`, `dp` and `ep` as in a
        model sweep [1]; `estimate_lacks`, null where a sweep has the split.
    """
    dense = pl.col("model").is_in(
        [name for name, model in model_entries().items() if model.moe is None]
    )
    tp, replicas, by_width, by_expert = (pl.max_horizontal(name, 1) for name in PARALLEL)
    chips, experts = tp * replicas, by_width * by_expert
    over_all = ~dense & (by_width == 1)
    lacks = (
        pl.when((experts > chips) | (~dense & (experts < chips)))
        .then(pl.lit(NOT_RECORDED))
        .when(~dense & (by_width > 1) & ((by_expert > 1) | (replicas > 1)))
        .then(pl.lit(NOT_MODELLED))
    )
    nearest = in_decode(pl.col("output_tokens"), frame.columns).round().cast(pl.Int64)
    return frame.with_columns(
        tp=tp,
        dp=replicas,
        ep=pl.when(over_all).then(chips).otherwise(1),
        estimate_B=pl.max_horizontal(nearest, replicas),
        **{LACKS: lacks},
    )


def system_sweep(part: pl.DataFrame, catalogues: Catalogues) -> ModelSweep:
    """Sweep over every B with every request in one system's runs.

    Args:
        part: From `with_splits`: runs that agree in `SYSTEM`.
        catalogues: Chips, dtypes and calibrations.
    """
    system = part.row(0, named=True)
    chip, weights = system["chip"], WEIGHT_FORMATS[system["linear"]]
    compute = compute_of(weights, catalogues.chips[chip])
    computed = {compute, UNQUANTIZED}
    dtypes = {
        "weights": weights,
        "experts": WEIGHT_FORMATS[system["experts"]],
        "cache": UNQUANTIZED if compute == UNQUANTIZED else ONE_BYTE,
        "activations": UNQUANTIZED,
        "compute": compute,
        "attention": UNQUANTIZED,
    }
    fits, chip_calibration = catalogues.fits, catalogues.chips[chip].calibration or {}
    softwares = _softwares(fits.softwares_of(chip), system["software"], system["linear"])
    unfitted = {dtype for dtype in computed if fits.matmul(chip, softwares, dtype) is None}
    if unfitted and chip_calibration.keys() >= computed:
        softwares = []
    chips = system["tp"] * system["dp"]
    route = default_route(catalogues.chips[chip], chips)
    config = ModelSweepConfig.model_validate(
        {
            "models": [system["model"]],
            "chips": [chip],
            "dtypes": [dtypes],
            "splits": [{name: system[name] for name in ("tp", "dp", "ep")}],
            "grid": {"B": part["estimate_B"].unique().sort().to_list()},
            "requests": part.select(input="input_tokens", output="output_tokens")
            .unique(maintain_order=True)
            .to_dicts(),
            "calibration": softwares or [AUTO_CALIBRATION],
            "network": [list(route)] if chips > 1 else None,
        }
    )
    models = models_of(config.models)
    return ModelSweep("served", config, catalogues.chips, catalogues.dtypes, fits, models)


def _softwares(fitted: Sequence[str], engine: str | None, linear: str | None) -> list[str]:
    """Software whose fits estimate a run: the engine's first, then NCCL, then other engines'.

    Args:
        fitted: Software with a fit on the chip.
        engine: The run's engine.
        linear: Its weight format; fp8 in blocks has separate fits.
    """
    variants = ("block", None) if linear == "fp8_block" else (None,)
    plain = [software for name in fitted if (software := Software.parse(name)).variant is None]
    engine_fits = [str(Software(str(engine), variant)) for variant in variants]
    other_engines = [
        str(software._replace(variant=variant)) for software in plain for variant in variants
    ]
    return [
        name for name in dict.fromkeys([*engine_fits, "nccl", *other_engines]) if name in fitted
    ]


def _with_estimate(part: pl.DataFrame, catalogues: Catalogues) -> pl.DataFrame:
    """Add an estimate's columns to one system's runs."""
    (lacks,) = part[LACKS].unique()
    sweep = None if lacks else system_sweep(part, catalogues)
    if sweep is not None:
        lacks = _missing_reason(sweep)
    if sweep is None or lacks:
        none = dict.fromkeys(ESTIMATED, pl.lit(None, pl.Float64))
        none |= dict.fromkeys(("calibration", "estimate_split"), pl.lit(None, pl.String))
        none["estimate_B"] = pl.lit(None, part.schema["estimate_B"])
        return part.with_columns(**none, **{LACKS: pl.lit(lacks)})
    (case,) = sweep.blocks[0].cases
    rows = StepTable(sweep).frame().select(*STEP.values(), *ESTIMATED).collect()
    runs = part.join(
        rows, left_on=[*STEP], right_on=[*STEP.values()], how="left", maintain_order="left"
    )
    return _without_prompts(runs).with_columns(
        calibration=pl.lit(_label(case)), estimate_split=pl.lit(case.split.name)
    )


def _without_prompts(runs: pl.DataFrame) -> pl.DataFrame:
    """Take prompts out of estimates where other servers read them."""
    if "disaggregated" not in runs.columns:
        return runs
    is_disaggregated = (pl.col("disaggregated") == 1) & pl.col("prompts_estimate_s").is_not_null()
    decode_share = 1 - pl.col("prompts_estimate_s") / pl.col("t_estimate_s")
    scaled = {
        name: pl.when(is_disaggregated).then(pl.col(name) * decode_share).otherwise(name)
        for name in ESTIMATES
    }
    prefill_s = pl.when(~is_disaggregated).then("prompts_estimate_s")
    return runs.with_columns(**scaled, prompts_estimate_s=prefill_s)


def _missing_reason(sweep: ModelSweep) -> str | None:
    """Reason why one system's sweep has no estimates; None where it has some."""
    if not sweep.blocks:
        return sweep.skipped[0].reason
    (case,) = sweep.blocks[0].cases
    for kernel, estimate in zip(case.kernels, case.kernel_estimates, strict=True):
        if estimate is None:
            return f"no calibration in {kernel.compute}"
    return None


def _label(case: StepCase) -> str:
    """Chip and software whose fits apply; else the chip."""
    fits = (name for kernel in case.kernels for name in case.choice.fits_of_kernel(kernel))
    softwares = "+".join(dict.fromkeys(name.partition(" ")[0] for name in fits))
    return f"{case.chip}/{softwares}" if softwares else case.chip
