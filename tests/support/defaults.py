"""The default config as plain YAML, but for shapes by model, to check tables against."""

import random
from functools import cache

from oracle import as_list, sizes_of
from plain_files import plain_file

import rooflines


@cache
def sweeps():
    """Return the sweeps of the default config, with shapes and chips written out."""
    config, catalogue = plain_file("config.yaml"), plain_file("chips.yaml")["chips"]
    loaded = rooflines.load_config()
    every = [chip for chip, entry in catalogue.items() if "base" not in entry]
    return {
        name: {
            **given,
            **({"shapes": loaded.sweep(name).config_json["shapes"]} if "shapes" in given else {}),
            "dtypes": as_list(given["dtypes"]),
            "chips": every if given["chips"] == "all" else as_list(given["chips"]),
        }
        for name, given in config["sweeps"].items()
    }


def drawn(name):
    """Return a config of one default sweep, cut to one chip, size, shape and dtype."""
    sweep, sizes = sweeps()[name], {}
    for dim, written in sweep["grid"].items():
        sizes[dim] = written if isinstance(written, str) else one(written)
    (chip,) = one(sweep["chips"])
    own = {name: form for name, form in plain_file("config.yaml")["chips"].items() if name == chip}
    cut = {**sweep, "grid": sizes, "chips": [chip]}
    for key in ("shapes", "dtypes"):
        if key in cut:
            cut[key] = one(cut[key])
    return {"sweeps": {name: cut}, "chips": own, "charts": []}


def one(written):
    """Return one of some sizes, or of other alternatives."""
    found = sizes_of(written) if isinstance(written, dict) else as_list(written)
    return [random.choice(found)]
