"""Estimates of the steps of public measurements of serving, without and with a fit to them."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.catalogue.chips import chip_entries, dtype_entries
from rooflines.fits.entries import shipped_calibrations
from rooflines.fits.form import Numbers, estimate
from rooflines.fits.solving import Problem
from rooflines.measured.catalogues import Catalogues
from rooflines.measured.served_estimates import LACKS, STEP, SYSTEM, sweep_of, with_estimates
from rooflines.sweep.rows import KernelTable, StepTable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rooflines.fits.solving import Array

GROUP = ("chip", "engine")
"""What one fit is of."""

CONFIGURATION = (*SYSTEM, "checkpoint", "engine", "engine_version", "input_tokens", "output_tokens")
"""What runs of one configuration agree in; they differ in the number of clients."""

PRIOR: Mapping[str, Fraction] = {
    name: Fraction(number)
    for name, number in (
        ("math", "0.7"),
        ("memory", "0.8"),
        ("network", "0.6"),
        ("overhead_s", "5e-6"),
    )
}
"""Where a fit starts; it pulls weakly."""

FITTED = tuple(PRIOR)
"""The numbers of a fit: shares of the rates, and the overhead of a kernel."""

FEWEST = 10
"""The fewest runs in either half of a group with a fit [1]."""

SIZES = ("B", "S")
"""The sizes of a step in tables of models; here those of the estimate."""

RUN = "run"
"""The column with the index of a run."""


class Steps(NamedTuple):
    """Decode steps of runs.

    Attributes:
        runs: The runs with their estimate, `t_lower_s` of its step, and `judged`: whether the
            configuration is in the half that no fit sees.
        kernels: The kernels of every run: its `run`, `count`, and the nominal times `math`,
            `memory` and `network` [s].
    """

    runs: pl.DataFrame
    kernels: pl.DataFrame


def steps_of(frame: pl.DataFrame) -> Steps:
    """The steps of runs that have an estimate.

    Args:
        frame: Runs that are recorded as a whole, from `with_steps`.
    """
    runs, kernels = [], []
    catalogues = Catalogues(chip_entries(), dtype_entries(), shipped_calibrations())
    estimated = with_estimates(frame, catalogues).filter(pl.col(LACKS).is_null())
    for part in estimated.with_row_index(RUN).partition_by(SYSTEM, maintain_order=True):
        sweep = sweep_of(part, catalogues)
        rows = StepTable(sweep).frame().select(*SIZES, "t_lower_s").collect()
        times = (
            KernelTable(sweep)
            .frame()
            .select(
                *SIZES,
                "count",
                math="t_math_s",
                memory=pl.col("t_memory_s") + pl.col("t_activation_s"),
                network="t_network_s",
            )
        )
        sizes = part.with_columns(**dict(zip(SIZES, map(pl.col, STEP), strict=True)))
        runs.append(sizes.join(rows, on=SIZES, maintain_order="left"))
        kernels.append(sizes.select(RUN, *SIZES).join(times.collect(), on=SIZES))
    return Steps(_halved(pl.concat(runs)), pl.concat(kernels))


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
    return {name: float(found[name]) for name in FITTED}, held


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
