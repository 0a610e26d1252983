"""Estimates of the steps of public measurements of serving, without and with a fit to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.calibration.form import Numbers, estimate
from rooflines.calibration.solving import Problem, rounded
from rooflines.measured.served import FORMATS
from rooflines.models.library import model_entries
from rooflines.serving.layers import kernel_rows
from rooflines.serving.one_chip import sweep_on
from rooflines.serving.rows import step_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rooflines.calibration.solving import Array
    from rooflines.serving.sweep import ModelSweep

__all__ = ["FEWEST", "FITTED", "GROUP", "RUN", "SOFTWARE", "Steps", "fitted", "judged", "steps_of"]

SOFTWARE = ("trtllm", "nccl")
"""The software whose calibrations the package has for these chips."""

GROUP = ("chip", "engine")
"""What one fit is of."""

SYSTEM = ("model", "chip", "linear", "experts", "tp", "dp", "ep")
CONFIGURATION = (*SYSTEM, "checkpoint", "engine", "engine_version", "input_tokens", "output_tokens")
"""What runs of one configuration agree in; they differ in the number of clients."""

PRIOR: Mapping[str, float] = {"math": 0.7, "memory": 0.8, "network": 0.6, "overhead_s": 5e-6}
"""Where a fit starts; it pulls weakly."""

FITTED = tuple(PRIOR)
"""The numbers of a fit: shares of the rates, and the overhead of a kernel."""

FEWEST = 10
"""The fewest runs in either half of a group with a fit [1]."""

RUN = "run"
"""The column with the index of a run."""


class Steps(NamedTuple):
    """Decode steps of runs.

    Attributes:
        runs: The runs with `t_lower_s`, `t_estimate_s` by the calibrations of `SOFTWARE`, and
            `judged`: whether the configuration is in the half that no fit sees.
        kernels: The kernels of every run: its `run`, `count`, and the nominal times `math`,
            `memory` and `network` [s].
    """

    runs: pl.DataFrame
    kernels: pl.DataFrame


def steps_of(frame: pl.DataFrame) -> Steps:
    """The steps of runs whose split is one of sweeps.

    Args:
        frame: Runs that are recorded as a whole, with `chips`.
    """
    runs, kernels = [], []
    systems = _running(frame).partition_by(SYSTEM, maintain_order=True)
    for part in systems:
        sweep = _sweep(part)
        rows = step_rows(sweep).select("B", "S", "t_lower_s", "t_estimate_s").collect()
        times = kernel_rows(sweep).select(
            "B",
            "S",
            "count",
            math="t_math_s",
            memory=pl.col("t_memory_s") + pl.col("t_activation_s"),
            network="t_network_s",
        )
        runs.append(part.join(rows, on=["B", "S"], maintain_order="left"))
        kernels.append(part.select(RUN, "B", "S").join(times.collect(), on=["B", "S"]))
    return Steps(_halved(pl.concat(runs)), pl.concat(kernels))


def _running(frame: pl.DataFrame) -> pl.DataFrame:
    """Runs whose split is one of sweeps, with `dp`, `ep`, B and S of the mean step."""
    dense = [name for name, model in model_entries().items() if model.moe is None]
    replicas = pl.max_horizontal(pl.col("attention_dp").fill_null(1), 1)
    joined = pl.col("tp") * replicas
    by_experts = (pl.col("moe_tp") == 1) & (pl.col("moe_ep") == joined)
    by_width = (replicas == 1) & (pl.col("moe_tp") == pl.col("tp")) & (pl.col("moe_ep") == 1)
    decoding = pl.col("output_tokens") * pl.col("tpot_s")
    running = pl.col("concurrency") * decoding / (pl.col("ttft_s") + decoding)
    return (
        frame.with_row_index(RUN)
        .filter(
            pl.col("chips") == joined,
            pl.col("model").is_in(dense) | by_experts | by_width,
        )
        .with_columns(
            dp=replicas,
            ep=pl.when(pl.col("model").is_in(dense) | by_width).then(1).otherwise(joined),
            B=pl.max_horizontal(running.round().cast(pl.Int64), replicas),
            S=pl.col("input_tokens") + (pl.col("output_tokens") + 1) // 2,
        )
    )


def _sweep(part: pl.DataFrame) -> ModelSweep:
    """The sweep with the steps of the runs of one system, and others."""
    system = part.row(0, named=True)
    compute = FORMATS[system["linear"]]
    dtypes = {
        "weights": compute,
        "experts": FORMATS[system["experts"]],
        "cache": "bf16" if compute == "bf16" else "fp8",
        "activations": "bf16",
        "compute": compute,
        "attention": "bf16",
    }
    return sweep_on(
        system["model"],
        system["chip"],
        dtypes,
        splits=[{name: system[name] for name in ("tp", "dp", "ep")}],
        grid={name: part[name].unique().sort().to_list() for name in ("B", "S")},
        calibration=list(SOFTWARE),
    )


def _halved(runs: pl.DataFrame) -> pl.DataFrame:
    """Adds `judged`: every other configuration of a chip and engine, in their order."""
    configurations = runs.select(CONFIGURATION).unique().sort(CONFIGURATION)
    judged = pl.int_range(pl.len()).over(GROUP) % 2 == 1
    return runs.join(
        configurations.with_columns(judged=judged),
        on=CONFIGURATION,
        nulls_equal=True,
        maintain_order="left",
    )


def fitted(steps: Steps) -> tuple[dict[str, float], tuple[str, ...]]:
    """The numbers that fit the half that is not judged best, and the names of those it cannot tell.

    Raises:
        RooflinesError: scipy is missing.
    """
    runs = steps.runs.filter(~pl.col("judged"))
    times = _times(runs, steps.kernels)
    found, held = Problem(runs["tpot_s"].to_numpy(), times, PRIOR, ({},)).fit(FITTED)
    return {name: float(rounded(found[name])) for name in FITTED}, held


def judged(steps: Steps, numbers: Mapping[str, float]) -> pl.DataFrame:
    """The runs of the judged half with `t_fitted_s`, by fitted numbers."""
    runs = steps.runs.filter("judged")
    return runs.with_columns(t_fitted_s=pl.Series(_times(runs, steps.kernels)(numbers)))


def _times(runs: pl.DataFrame, kernels: pl.DataFrame) -> Callable[[Mapping[str, float]], Array]:
    """The times of the steps of runs by numbers: the sum over kernels of the calibrated times."""
    parts = kernels.join(runs.select(RUN).with_row_index("row"), on=RUN)
    quantities = {name: parts[name].to_numpy() for name in ("math", "memory", "network")}
    rows, counts = parts["row"].to_numpy(), parts["count"].to_numpy()

    def times(numbers: Mapping[str, float]) -> Array:
        import numpy as np  # noqa: PLC0415, an extra

        form = Numbers(1.0, 1.0, 0.0).replaced(numbers)
        total = np.zeros(len(runs))
        np.add.at(total, rows, counts * estimate(form, quantities, np.maximum.reduce))
        return total

    return times
