"""The default config as plain YAML, assembled without the package, to check tables against."""

from __future__ import annotations

from functools import cache

from model_matrices import written_out
from oracle import as_list
from plain_files import plain_file
from whole import Whole


@cache
def sweeps() -> dict[str, Whole]:
    """Return the sweeps of the default config."""
    config, catalogue, dtypes = (
        plain_file("config.yaml"),
        plain_file("chips.yaml")["chips"],
        plain_file("dtypes.yaml"),
    )
    every = [chip for chip, entry in catalogue.items() if "base" not in entry]
    chips = {**catalogue, **config["chips"]}
    found = {}
    for name, given in config["sweeps"].items():
        sweep = {
            **given,
            **({"shapes": written_out(given["shapes"])} if "shapes" in given else {}),
            "dtypes": as_list(given["dtypes"]),
            "chips": every if given["chips"] == "all" else as_list(given["chips"]),
        }
        found[name] = Whole(sweep, chips, dtypes, plain_file("calibrations.yaml"))
    return found
