"""Recipes: all that decides some rows of a sweep, as plain data that a job is handed and builds the sweep from."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rooflines.model.operation import OPERANDS
from rooflines.sweep.sweep import Sweep

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.model.resources import JSON

__all__ = ["recipe_of", "skipped_records", "sweep_of"]


def recipe_of(sweep: Sweep, chips: Sequence[str]) -> dict[str, Any]:
    """All that decides some chips' rows of a sweep, as plain data."""
    combinations = {
        name: sweep.dtypes["combinations"][name]
        for name in sweep.config["dtypes"]
        if isinstance(name, str)
    }
    written_out = [given for given in sweep.config["dtypes"] if not isinstance(given, str)]
    used = {
        parts[key]
        for parts in (*combinations.values(), *written_out)
        for key in (*OPERANDS, "compute")
    }
    formats = {name: form for name, form in sweep.dtypes["formats"].items() if name in used}
    return {
        "sweep": sweep.name,
        "config": {**sweep.config, "chips": list(chips)},
        "chips": {chip: sweep.chips[chip] for chip in chips},
        "dtypes": {"formats": formats, "combinations": combinations},
    }


def sweep_of(recipe: JSON) -> Sweep:
    """The sweep that a recipe describes."""
    return Sweep.of(recipe["sweep"], recipe["config"], recipe["chips"], recipe["dtypes"])


def skipped_records(sweeps: Iterable[Sweep]) -> list[dict[str, Any]]:
    """What sweeps ask for and no chip can do: a record of the columns of `dictionary.SKIPPED` for each chip and reason."""
    return [
        {"sweep": sweep.name, "unit": sweep.unit, **asdict(skipped)}
        for sweep in sweeps
        for skipped in sweep.skipped
    ]
