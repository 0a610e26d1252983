"""Engine overhead in decode steps, fitted to runs with served models.

Time per token = kernels_s + prompts * prompts_s + layer_s * layers + sequence_s * sequences [s]:
kernels, prompts read in between, and overhead per layer and sequence. A chip's fit starts from the
engine's fit on all chips, and this one from the fit to all engines. What hardly differs between
them is pulled strongly, as a few models alone do not tell the numbers apart.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.fits.calibrate import RELIABLE_TIMINGS, errors_of
from rooflines.fits.calibration_files import (
    ALL_ENGINES,
    EXPERTS_BAND,
    STEP_BAND,
    STEP_NUMBERS,
    FittedStep,
)
from rooflines.fits.estimate_band import IN_FLIGHT
from rooflines.fits.fit_errors import band, with_errors
from rooflines.fits.fit_keys import FitKey
from rooflines.fits.least_squares import Problem, round_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.fits.least_squares import Array
    from rooflines.fits.time_form import Number

PRIOR = dict(
    zip(STEP_NUMBERS, map(Fraction, ("1.5", "3e-5", "4e-5")), strict=True),
)
"""Prior for the fit to all engines."""

ENGINE_PULLS = dict(zip(STEP_NUMBERS, (30.0, 3.0, 3.0), strict=True))
CHIP_PULLS = dict(zip(STEP_NUMBERS, (30.0, 1.0, 30.0), strict=True))
"""Residuals for a number a factor e from its prior, the fit to all engines or to the engine [1]:
values, tried from 0.03 to 100, that best estimate models left out. Engines hardly differ in
prompts, and chips hardly in anything but layers."""

TAILS = {STEP_BAND: 0.12, EXPERTS_BAND: 0.07}
"""Share of runs at models left out below a band, and above it [1]: such that bands from other
models hold 70 to 90 % of a model's runs. Those with routed experts differ more among each other."""

ELSEWHERE = "ratio_elsewhere"
"""Column with `ratio` by fits that have seen neither the run's model nor its chip."""

AMOUNTS = ("prompts_s", "layers", "sequences")
"""Columns in runs that `STEP_NUMBERS` multiply, in order."""


class StepFit(NamedTuple):
    """Step fit: exact numbers by name, and the names that stayed at the prior."""

    numbers: Mapping[str, Fraction]
    at_prior: tuple[str, ...]


class StepFits:
    """Step fits: to all engines, to each engine, and to each chip and engine.

    Args:
        runs: With `kernels_s` and `seconds` [s], `AMOUNTS`, `engine`, and `key`, chip and engine.
    """

    def __init__(self, runs: pl.DataFrame) -> None:
        self.all_engines = _fit(runs, PRIOR)
        self.by_key: dict[str, StepFit] = {}
        for name, pulls in (("engine", ENGINE_PULLS), ("key", CHIP_PULLS)):
            for (key,), part in runs.group_by(name, maintain_order=True):
                if part.height >= RELIABLE_TIMINGS:
                    prior = self.fit_for(str(key)).numbers
                    self.by_key[str(key)] = _fit(part, prior, pulls)

    def fit_for(self, key: str) -> StepFit:
        """Most specific fit: to the chip and engine, else the engine, else all engines."""
        engine = str(FitKey.parse(key).software)
        return self.by_key.get(key) or self.by_key.get(engine) or self.all_engines


def step_fits(
    runs: pl.DataFrame, source: str, date: str
) -> tuple[dict[str, dict[str, FittedStep]], pl.DataFrame]:
    """Fit runs, as entries in a calibration file.

    Args:
        runs: Runs as in `StepFits`, with `model`, and `routed`, whether it has routed experts.
        source: Where they come from.
        date: The day on which they are fitted.

    Returns:
        Entries by engine, by chip and engine, and for `ALL_ENGINES`, then by phase. For `held_out`
        and bands each model is left out in turn, and estimated by its engine's most specific fits
        without it. And the runs with these errors, and `ELSEWHERE`.
    """
    fits = StepFits(runs)
    held_out_runs = _without_models(runs)
    fitted_runs = _with_fit_errors(runs, fits)
    entries = {}
    for key, fit in sorted({ALL_ENGINES: fits.all_engines, **fits.by_key}.items()):
        in_fit = pl.col("engine" if FitKey.parse(key).chip is None else "key") == key
        in_fit = pl.lit(value=True) if key == ALL_ENGINES else in_fit
        fields: dict[str, object] = {
            "bands": step_bands(held_out_runs, key),
            "held": list(fit.at_prior),
            "fitted": errors_of(fitted_runs.filter(in_fit)),
            "held_out": errors_of(held_out_runs.filter(in_fit)),
            "models": runs.filter(in_fit)["model"].unique().sort().to_list(),
            "waiting": waiting(runs.filter(in_fit)),
            "source": source,
            "date": date,
        }
        numbers = {name: float(number) for name, number in fit.numbers.items()}
        entries[key] = {"decode": FittedStep.model_validate({**numbers, **fields})}
    return entries, held_out_runs


def _without_models(runs: pl.DataFrame) -> pl.DataFrame:
    """Runs with errors by fits that have not seen their model; `ELSEWHERE` has not the chip."""
    parts = []
    for (model,), test in runs.group_by("model", maintain_order=True):
        rest = runs.filter(pl.col("model") != model)
        fits = StepFits(rest)
        for (key,), part in test.group_by("key", maintain_order=True):
            chip = FitKey.parse(str(key)).chip
            same_chip = [text for text in rest["key"] if FitKey.parse(text).chip == chip]
            without_chip = rest.filter(~pl.col("key").is_in(same_chip))
            elsewhere = StepFits(without_chip) if without_chip.height >= RELIABLE_TIMINGS else fits
            ratio = _with_fit_errors(part, elsewhere)["ratio"].alias(ELSEWHERE)
            parts.append(_with_fit_errors(part, fits).with_columns(ratio))
    return pl.concat(parts)


def step_bands(runs: pl.DataFrame, key: str) -> dict[str, tuple[float, float]]:
    """Bands: measured over estimated time at models left out.

    Args:
        runs: From `step_fits`.
        key: A chip and engine, an engine, or `ALL_ENGINES`.

    Returns:
        By the names in `TAILS`: the runs of all chips and engines that have a fit, or of models
        with routed experts alone. No narrower than p10 to p90 at the key's runs with that kind,
        of models with enough there. Without enough runs on the chip also no narrower than where
        the chip is left out.
    """
    fitted = runs.filter(pl.len().over("key") >= RELIABLE_TIMINGS)
    fitted = runs if fitted.is_empty() else fitted
    bands = {}
    for name, tail in TAILS.items():
        routed = pl.col("routed") == (name == EXPERTS_BAND)
        kind = fitted.filter(routed)
        pool = kind if name == EXPERTS_BAND and not kind.is_empty() else fitted
        ends = band(pool, tail)
        same = kind.filter(pl.col("key") == key, pl.len().over("key", "model") >= RELIABLE_TIMINGS)
        if not same.is_empty():
            ends = wider(ends, band(same))
        if key not in fitted["key"]:
            ends = wider(ends, band(pool.with_columns(ratio=ELSEWHERE)))
        bands[name] = ends
    return bands


def waiting(runs: pl.DataFrame) -> dict[str, tuple[float, float, float]]:
    """Measured TTFT over the estimated prefill, by requests in flight: p10, median, p90 [1].

    Args:
        runs: With `ttft_s`, `prefill_estimate_s` [s], `concurrency` and `dp` [1]; else none.
    """
    if not {"ttft_s", "prefill_estimate_s", "concurrency", "dp"} <= {*runs.columns}:
        return {}
    ratio = pl.col("ttft_s") / pl.col("prefill_estimate_s")
    in_flight = pl.col("concurrency") / pl.col("dp")
    ranges = {}
    for name, (above, to) in IN_FLIGHT.items():
        chosen = runs.filter(in_flight > above, in_flight <= to).select(ratio=ratio).drop_nulls()
        if chosen.height >= RELIABLE_TIMINGS:
            low, high = band(chosen)
            middle = chosen["ratio"].quantile(0.5, "linear") or 1
            ranges[name] = (low, float(round_number(middle)), high)
    return ranges


def wider(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Band that holds both: one chip and engine has few models, and covers others too rarely."""
    return min(first[0], second[0]), max(first[1], second[1])


def step_seconds(numbers: Mapping[str, Number]) -> pl.Expr:
    """Time per token from fitted numbers: kernels_s + sum over numbers * amounts [s]."""
    added = zip(STEP_NUMBERS, AMOUNTS, strict=True)
    terms = (float(numbers[name]) * pl.col(amount) for name, amount in added)
    return pl.sum_horizontal("kernels_s", *terms)


def _fit(
    runs: pl.DataFrame, prior: Mapping[str, Fraction], pulls: Mapping[str, float] | None = None
) -> StepFit:
    """Fit runs from a prior."""

    def times(numbers: Mapping[str, float]) -> Array:
        seconds: Array = runs.select(step_seconds(numbers)).to_series().to_numpy()
        return seconds

    problem = Problem(runs["seconds"].to_numpy(), times, prior, ({},), pulls or {})
    return StepFit(*problem.fit(STEP_NUMBERS))


def _with_fit_errors(runs: pl.DataFrame, fits: StepFits) -> pl.DataFrame:
    """Add estimates by fits, and their errors, to runs."""
    return pl.concat(
        with_errors(part.with_columns(t_estimate_s=step_seconds(fits.fit_for(str(key)).numbers)))
        for (key,), part in runs.group_by("key", maintain_order=True)
    )
