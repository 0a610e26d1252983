"""The default config as plain YAML, assembled without the package, to check tables against."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from oracle import as_list
from test_chips import _Loader as Loader
from whole import Whole
from yaml import load

CONFIG = Path(__file__).parents[2] / "config"


@cache
def plain(name: str) -> Any:  # noqa: ANN401, any YAML
    """Return one of the data files."""
    return load((CONFIG / name).read_text(encoding="utf-8"), Loader)  # noqa: S506, plain data


@cache
def sweeps() -> dict[str, Whole]:
    """Return the sweeps of the default config."""
    config, catalogue, dtypes = (
        plain("config.yaml"),
        plain("chips.yaml")["chips"],
        plain("dtypes.yaml"),
    )
    every = [chip for chip, entry in catalogue.items() if "base" not in entry]
    chips = {**catalogue, **config["chips"]}
    found = {}
    for name, given in config["sweeps"].items():
        sweep = {
            **given,
            "dtypes": as_list(given["dtypes"]),
            "chips": every if given["chips"] == "all" else as_list(given["chips"]),
        }
        found[name] = Whole(sweep, chips, dtypes, plain("calibrations.yaml"))
    return found
