"""What an engine adds to the kernels of decode, fitted to runs of served models.

A token takes the kernels of a step, prompts that are read in between, and a time of each layer,
each layer with experts and each sequence. A fit starts from that of the same engine on all chips,
and this from that of all engines, which pull strongly: one model alone does not tell the numbers
apart.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.fits.calibrate import RELIABLE_TIMINGS, errors_of
from rooflines.fits.calibration_files import ALL_ENGINES, STEP_NUMBERS, FittedStep
from rooflines.fits.fit_errors import band, with_errors
from rooflines.fits.least_squares import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.fits.least_squares import Array
    from rooflines.fits.time_form import Number

PRIOR = dict(
    zip(STEP_NUMBERS, map(Fraction, ("1.5", "3e-5", "1e-5", "4e-5")), strict=True),
)
"""Where the fit to all engines starts."""

PULLS = {**dict.fromkeys(STEP_NUMBERS, 3.0), "experts_layer_s": 5.0}
"""Residual of a number a factor of e from that of the engine, or of all engines [1]: of 0.03 to 10
what estimates models best that a fit has not seen. One or two models of an engine have experts."""

AMOUNTS = ("prompts_s", "layers", "expert_layers", "sequences")
"""What each of `STEP_NUMBERS` is a factor of: a column of runs."""


class StepFit(NamedTuple):
    """Numbers by name, exact, and the names of those that are kept where the fit started."""

    numbers: Mapping[str, Fraction]
    at_prior: tuple[str, ...]


class StepFits:
    """The fits to some runs: of all engines, of each engine, and of each chip and engine.

    Args:
        runs: With `kernels_s` and `seconds` [s], `AMOUNTS`, `engine`, and `key`, chip and engine.
    """

    def __init__(self, runs: pl.DataFrame) -> None:
        self.all_engines = _fit(runs, PRIOR)
        self.by_key: dict[str, StepFit] = {}
        for name in ("engine", "key"):
            for (key,), part in runs.group_by(name, maintain_order=True):
                if part.height >= RELIABLE_TIMINGS:
                    prior = self.fit_for(str(key)).numbers
                    self.by_key[str(key)] = _fit(part, prior, PULLS)

    def fit_for(self, key: str) -> StepFit:
        """The fit of a chip and engine, else of the engine, else of all."""
        return self.by_key.get(key) or self.by_key.get(key.rpartition("/")[2]) or self.all_engines


def step_fits(
    runs: pl.DataFrame, source: str, date: str
) -> tuple[dict[str, dict[str, FittedStep]], pl.DataFrame]:
    """The fits to runs, as entries of a file.

    Args:
        runs: As of `StepFits`, with `model`.
        source: Where they come from.
        date: The day of the fit.

    Returns:
        By engine, by chip and engine, and for `ALL_ENGINES`, then by phase: `held_out` and bands
        are of each model by the most specific fits of its engine that have not seen it. And the
        runs with these errors.
    """
    tested = pl.concat(
        _with_fit_errors(test, StepFits(runs.filter(pl.col("model") != model)))
        for (model,), test in runs.group_by("model", maintain_order=True)
    )
    fits = StepFits(runs)
    fitted = _with_fit_errors(runs, fits)
    entries = {}
    for key, fit in sorted({ALL_ENGINES: fits.all_engines, **fits.by_key}.items()):
        in_fit = pl.col("key" if "/" in key else "engine") == key
        in_fit = pl.lit(value=True) if key == ALL_ENGINES else in_fit
        about: dict[str, object] = {
            "bands": {"step": band(tested.filter(in_fit))},
            "held": list(fit.at_prior),
            "fitted": errors_of(fitted.filter(in_fit)),
            "held_out": errors_of(tested.filter(in_fit)),
            "source": source,
            "date": date,
        }
        numbers = {name: float(number) for name, number in fit.numbers.items()}
        entries[key] = {"decode": FittedStep.model_validate({**numbers, **about})}
    return entries, tested


def step_seconds(numbers: Mapping[str, Number]) -> pl.Expr:
    """The times of runs by the numbers of a fit [s]."""
    added = zip(STEP_NUMBERS, AMOUNTS, strict=True)
    terms = (float(numbers[name]) * pl.col(amount) for name, amount in added)
    return pl.sum_horizontal("kernels_s", *terms)


def _fit(
    runs: pl.DataFrame, prior: Mapping[str, Fraction], pulls: Mapping[str, float] | None = None
) -> StepFit:
    """The fit to runs, from a prior."""

    def times(numbers: Mapping[str, float]) -> Array:
        seconds: Array = runs.select(step_seconds(numbers)).to_series().to_numpy()
        return seconds

    problem = Problem(runs["seconds"].to_numpy(), times, prior, ({},), pulls or {})
    return StepFit(*problem.fit(STEP_NUMBERS))


def _with_fit_errors(runs: pl.DataFrame, fits: StepFits) -> pl.DataFrame:
    """Runs with their estimates by fits, and the errors of these."""
    return pl.concat(
        with_errors(part.with_columns(t_estimate_s=step_seconds(fits.fit_for(str(key)).numbers)))
        for (key,), part in runs.group_by("key", maintain_order=True)
    )
