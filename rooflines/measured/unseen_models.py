"""Served runs as fits of engine overhead read them, and step fits that have not seen a model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from rooflines.fits.calibrate import RELIABLE_TIMINGS
from rooflines.fits.calibration_files import FittedStep
from rooflines.fits.engine_overhead import StepFits
from rooflines.fits.fit_keys import FitKey
from rooflines.measured.served_estimates import ESTIMATED, LACKS, with_estimates
from rooflines.models.library import model_entries

if TYPE_CHECKING:
    from rooflines.measured.catalogues import Catalogues


def fitted_runs(runs: pl.DataFrame) -> pl.DataFrame:
    """Add what `engine_overhead.StepFits` reads to served runs.

    Args:
        runs: Joined by calibrations without steps; those without an estimate, and two pools, are
            left out.
    """
    runs = runs.drop_nulls("t_estimate_s")
    if "disaggregated" in runs.columns:
        runs = runs.filter(pl.col("disaggregated").fill_null(0) == 0)
    shapes = {name: model_entries()[name] for name in runs["model"].unique()}
    layers = {name: float(shape.layers) for name, shape in shapes.items()}
    return runs.with_columns(
        engine="software",
        key=pl.format("{}/{}", "chip", "software"),
        kernels_s="t_estimate_s",
        layers=pl.col("model").replace_strict(layers, return_dtype=pl.Float64),
        routed=pl.col("model").is_in([n for n, shape in shapes.items() if shape.moe is not None]),
        sequences=pl.col("estimate_B") / pl.col("dp"),
    ).with_columns(
        prompts_s=pl.col("prefill_estimate_s") * pl.col("sequences") / pl.col("output_tokens")
    )


def is_seen(catalogues: Catalogues, chip: str, engine: str | None, model: str) -> bool:
    """True if the step fit to a chip and engine has seen a model.

    Args:
        catalogues: With the calibrations.
        chip: Chip id.
        engine: The engine; None: not stated.
        model: Model id.
    """
    fit = catalogues.fits.by_key["steps"].get(FitKey.named(chip, str(engine)))
    return fit is not None and model in fit["decode"].models


class LeftOut:
    """Catalogues whose step fits have not seen a model, fitted to the other models in the runs.

    Args:
        runs: Joined served runs.
        catalogues: With the calibrations that they were joined by.
    """

    def __init__(self, runs: pl.DataFrame, catalogues: Catalogues) -> None:
        self.catalogues = catalogues
        systems = runs.select("chip", "software", "model").unique().sort(pl.all())
        self.seen = {
            model
            for chip, engine, model in systems.iter_rows()
            if is_seen(catalogues, chip, engine, model)
        }
        self._runs = runs
        self._fitted: pl.DataFrame | None = None
        self._by_model: dict[str, Catalogues | None] = {}

    def without(self, model: str) -> Catalogues | None:
        """Catalogues for a model; None: the runs of other models are too few for a fit.

        A model that the fits have not seen keeps the given catalogues.
        """
        if model not in self.seen:
            return self.catalogues
        if model not in self._by_model:
            self._by_model[model] = self._refitted(model)
        return self._by_model[model]

    def _refitted(self, model: str) -> Catalogues | None:
        if self._fitted is None:
            bare = self.catalogues.fits.model_copy(update={"steps": {}})
            columns = (*ESTIMATED, "calibration", "estimate_split", LACKS)
            runs = self._runs.drop(columns, strict=False)
            self._fitted = fitted_runs(with_estimates(runs, replace(self.catalogues, fits=bare)))
        remaining = self._fitted.filter(pl.col("model") != model)
        if remaining.height < RELIABLE_TIMINGS:
            return None
        fits, steps = StepFits(remaining), {}
        for key, by_phase in self.catalogues.fits.steps.items():
            numbers = {n: float(value) for n, value in fits.fit_for(key).numbers.items()}
            step = {**by_phase["decode"].model_dump(), **numbers}
            steps[key] = {"decode": FittedStep.model_validate(step)}
        left_out = self.catalogues.fits.model_copy(update={"steps": steps})
        return replace(self.catalogues, fits=left_out)
