"""This machine as a chip: a config with its entry and a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from rooflines.catalogue.entries import MAIN_MEMORY, Chip
from rooflines.model.operation import MATRIX

if TYPE_CHECKING:
    from collections.abc import Mapping

ABOUT = """\
# {name}, measured by `rooflines measured measure`: the machine as a chip, and a sweep of it.
#
# flops_per_s is the fastest run of any matmul, bytes_per_s the fastest of adding two arrays into a
# third and of reading two: bounds of what this machine did, not of what its data sheet promises.
"""

DIGITS = 4
"""Significant digits of a measured rate [1]."""

GRID = {"B": {"from": 1, "to": 8192, "factor": 2}, "D": [4096], "F": "D"}
"""The sizes of the sweep."""


def _entry(about: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a machine as YAML data, of the metadata of its timings."""
    machine = about["machine"]
    peaks = {dtype: {"flops_per_s": rounded(rate)} for dtype, rate in about["flops_per_s"].items()}
    memory: dict[str, dict[str, Any]] = {
        MAIN_MEMORY: {
            "bytes_per_s": rounded(about["bytes_per_s"]),
            "capacity_bytes": machine["memory_bytes"],
        }
    }
    if machine["cache_bytes"]:
        memory["last-level"] = {"capacity_bytes": machine["cache_bytes"]}
    return {
        "name": machine["name"],
        "units": {MATRIX: peaks},
        "memory": memory,
        "source": f"rooflines measured measure, {machine['version']}, {machine['threads']} threads",
        "confidence": "measured",
    }


def rounded(rate: float) -> float:
    """A measured rate to a few significant digits."""
    return float(f"{rate:.{DIGITS}g}")


def chip_of(about: Mapping[str, Any]) -> Chip:
    """The machine as a chip."""
    return Chip.model_validate(_entry(about))


def config_text(about: Mapping[str, Any]) -> str:
    """A config with the machine as a chip, and a sweep of it."""
    sweep = {
        "operation": "matmul",
        "grid": GRID,
        "dtypes": list(about["flops_per_s"]),
        "chips": [about["chip"]],
    }
    content = {"sweeps": {"matmul": sweep}, "chips": {about["chip"]: _entry(about)}}
    body = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, default_flow_style=None)
    return ABOUT.format(name=about["machine"]["name"]) + body
