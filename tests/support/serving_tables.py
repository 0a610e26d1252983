"""Tables of a config's one model sweep, and their comparison with those of `oracle`."""

import re
from fractions import Fraction

from comparison import same
from oracle import step_table
from random_sweeps import BITS
from serving_sweeps import model_sweep

from rooflines.fits.entries import Calibrations

KINDS = {
    "compute dtype": "^no .* peak of its",
    "memory": "memory level",
    "heads": "(query|key-value) heads|heads of states",
    "dense": "has no experts",
    "experts": "does not divide the .* experts",
    "network": "^no interconnect",
    "inner torus": "cannot be the inner of two networks",
    "axes": "^no axes on|too few for",
    "domain": "^no published number of chips|chips at most on one",
    "groups": "^groups of",
    "B": "^fewer sequences than",
}
"""What the text of a reason has, by the oracle's name of the reason."""


def sweep_of(config):
    """The one model sweep of a config."""
    (sweep,) = config["model-sweeps"].values()
    fits = Calibrations.model_validate(config["fits"]) if "fits" in config else None
    return model_sweep(sweep, config["chips"], fits)


def kind_of(reason):
    """The oracle's name of a reason why rows are skipped."""
    (kind,) = [kind for kind, text in KINDS.items() if re.search(text, reason)]
    return kind


def expected_rows(config):
    """Every requested row of a config's one model sweep, in the order of its table."""
    (sweep,) = config["model-sweeps"].values()
    names = [step_table.split_name(split) for split in sweep["splits"]]
    models = [model["name"] for model in sweep["models"]]

    def place(row):
        keys = row.keys
        phase = sweep["phase"].index(keys["phase"])
        return models.index(keys["model"]), phase, names.index(keys["split"])

    parts = config["chips"], BITS, config.get("fits")
    return sorted(step_table.model_rows(sweep, {}, *parts), key=place)


def differences(found, exact):
    """Columns in which a row differs: times and amounts by a relative 1e-12, others at all."""
    return [
        f"{name}: {found[name]!r} where {value!r} is exact"
        for name, value in exact.items()
        if name in found and not equal(found[name], value)
    ]


def equal(found, exact):
    """Whether a value is the exact one; of floats to a relative 1e-12."""
    return same(found, exact) if isinstance(exact, Fraction) else found == exact
