"""Sweeps of whole models from the plain form of a config, and their rows by `oracle`."""

import comparison
from oracle import step_table
from random_sweeps import BITS

from rooflines.config.model_fields import ModelSweepConfig
from rooflines.fits.calibration_files import Calibrations, shipped_calibrations
from rooflines.hardware.chip_catalogue import chip_entries, resolve_chips
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.models.library import models_of
from rooflines.sweep.checks import checked_sweep
from rooflines.sweep.every_split import with_every_split
from rooflines.sweep.training_sweep import sweep_of_models

KINDS = {
    **comparison.KINDS,
    "heads": "^tp .*(query|KV) heads|heads of states",
    "dense": "has no experts",
    "experts": "(does not divide|more than) the .* experts",
    "B": "^fewer sequences than|^B is no multiple",
    "S": "^S is no multiple",
    "cp": "^cp is .* (query heads|a state|sparse attention)",
    "stages": "^pp is",
    "interleave": "^interleave is",
    "family": "whose training is not modelled",
}
"""Words in the text of a reason, by the oracle's name of the reason."""


OF_PLAN = ("model", "split")

NAMED = {
    **dict.fromkeys(("heads", "dense", "experts", "cp", "stages", "interleave", "family"), OF_PLAN),
    **dict.fromkeys(("B", "S"), OF_PLAN),
    **dict.fromkeys(("network", "inner torus", "axes", "domain"), ("chip", "split")),
    "groups": ("chip", "split"),
    "compute dtype": ("chip", "dtypes"),
    "memory": ("chip", "memory"),
}
"""The keys that decide whether a reason holds."""


def model_sweep(sweep, chips=None, fits=None):
    """A sweep on chips of the catalogue and on others, by id, checked as a user's is.

    It has the name of the sweep of a question.

    Args:
        sweep: Its keys.
        chips: Chips that are not of the catalogue.
        fits: Calibrations; None: those of the package.

    Raises:
        RooflinesError: It has mistakes.
    """
    config = ModelSweepConfig.model_validate(dict(sweep))
    entries = {**chip_entries(), **resolve_chips(chips or {}, chip_entries())}
    catalogues = entries, dtype_entries(), fits or shipped_calibrations()
    models = models_of(config.models)
    config = with_every_split(config, models, entries)
    return checked_sweep(sweep_of_models("explain", config, *catalogues, models))


def sweep_of(config):
    """The one model sweep of a config."""
    (sweep,) = config["model-sweeps"].values()
    fits = Calibrations.model_validate(config["fits"]) if "fits" in config else None
    return model_sweep(sweep, config["chips"], fits)


def expected_rows(config):
    """Every requested row of a config's one model sweep, in the order of its table."""
    (sweep,) = config["model-sweeps"].values()
    names = [step_table.split_name(split) for split in sweep["splits"]]
    models = [model["name"] for model in sweep["models"]]
    chips = step_table.as_list(sweep["chips"])

    def place(row):
        keys = row.keys
        phase = sweep["phase"].index(keys["phase"])
        model, split = models.index(keys["model"]), names.index(keys["split"])
        return chips.index(keys["chip"]), model, phase, split

    parts = config["chips"], BITS, config.get("fits")
    return sorted(step_table.model_rows(sweep, {}, *parts), key=place)
