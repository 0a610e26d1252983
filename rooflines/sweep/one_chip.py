"""Sweeps over one model on one kind of chip, from Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.config.model_fields import ModelSweepConfig
from rooflines.fits.calibration_files import shipped_calibrations
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.models.library import models_of
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.training_sweep import sweep_of_models

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.hardware.entries import Chip
    from rooflines.sweep.step_sweep import ModelSweep


def sweep_on(
    model: str | Mapping[str, object],
    chip: str,
    dtypes: str | Mapping[str, str],
    *,
    entries: Mapping[str, Chip] | None = None,
    **more: object,
) -> ModelSweep:
    """Build the sweep of a model on a chip; by default a step of one sequence, one token.

    Args:
        model: An id, or `{name: , layers: , ...}` as in a config.
        chip: An id.
        dtypes: As in a config.
        entries: The chips by id; by default the catalogue's.
        more: Other keys of a sweep of models, or replacements for these.
    """
    form = {"models": [model], "chips": [chip], "dtypes": [dtypes], "grid": {"B": 1, "S": 1}}
    config = ModelSweepConfig.model_validate({**form, **more})
    chips = chip_entries() if entries is None else entries
    models, fits = models_of(config.models), shipped_calibrations()
    return checked_sweep(sweep_of_models("one", config, chips, dtype_entries(), fits, models))
