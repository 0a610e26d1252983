"""Sweeps of whole models from the plain form of a config, checked as a user's are."""

from rooflines.catalogue.chips import chip_entries, dtype_entries, resolve_chips
from rooflines.fits.entries import shipped_calibrations
from rooflines.models.resolve import models_of
from rooflines.settings.model_sweeps import ModelSweepConfig
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.training import sweep_of_models


def model_sweep(sweep, chips=None, fits=None):
    """A sweep on chips of the catalogue and on others, by id.

    Args:
        sweep: Its keys.
        chips: Chips that are not of the catalogue.
        fits: Calibrations; None: those of the package.

    Raises:
        RooflinesError: It has mistakes.
    """
    config = ModelSweepConfig.model_validate(dict(sweep))
    catalogue = chip_entries()
    given = chips or {}
    names = {*config.chips, *(given[name].get("base") for name in config.chips if name in given)}
    wanted = {name: form for name, form in given.items() if name in names}
    own = resolve_chips(wanted, catalogue)
    models = models_of(config.models)
    entries, calibrations = {**catalogue, **own}, fits or shipped_calibrations()
    return checked_sweep(
        sweep_of_models("sweep", config, entries, dtype_entries(), calibrations, models)
    )
