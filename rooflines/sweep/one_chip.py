"""Sweeps of one model on one kind of chip, and the bound of a step for every split."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooflines.catalogue.chips import chip_entries
from rooflines.catalogue.dtypes import dtype_entries
from rooflines.fits.entries import shipped_calibrations
from rooflines.models.library import models_of
from rooflines.settings.model_sweeps import ModelSweepConfig
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.training import sweep_of_models

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from rooflines.catalogue.entries import Chip
    from rooflines.sweep.steps import ModelSweep, StepCase


def sweep_on(
    model: str | Mapping[str, object],
    chip: str,
    dtypes: str | Mapping[str, str],
    *,
    entries: Mapping[str, Chip] | None = None,
    **more: object,
) -> ModelSweep:
    """The sweep of a model on a chip; a step of one sequence of one token.

    Args:
        model: An id, or `{name: , layers: , ...}` as in a config.
        chip: An id.
        dtypes: As in a config.
        entries: The chips by id; by default those of the catalogue.
        more: Other keys of a sweep of models, or these.
    """
    form = {"models": [model], "chips": [chip], "dtypes": [dtypes], "grid": {"B": 1, "S": 1}}
    config = ModelSweepConfig.model_validate({**form, **more})
    chips = chip_entries() if entries is None else entries
    models, fits = models_of(config.models), shipped_calibrations()
    return checked_sweep(sweep_of_models("one", config, chips, dtype_entries(), fits, models))


def case_on(
    model: str | Mapping[str, object],
    chip: str,
    dtypes: str | Mapping[str, str],
    *,
    entries: Mapping[str, Chip] | None = None,
    **more: object,
) -> StepCase:
    """The case of `sweep_on`, unsplit unless `splits` says otherwise."""
    return sweep_on(model, chip, dtypes, entries=entries, **more).blocks[0].cases[0]


def least_seconds(case: StepCase, batch: int, context: int, chips: int = 1) -> Fraction:
    """The least time of a step on several chips [s], exact: a lower bound for every split.

    Args:
        case: The model on one chip of that kind.
        batch: B, sequences [1].
        context: S, tokens of each after the step; in prefill, of its prompt [1].
        chips: Chips [1].

    Returns:
        max(t_math, t_memory) of the unsplit model, over the number of chips. A split adds copies
        and transfers, and its busiest chip has at least the mean share.
    """
    return case.seconds(case.step(batch, context)).lower / chips
