"""Recipes: the JSON from which a job rebuilds some chips' rows of a sweep."""

from __future__ import annotations

from dataclasses import asdict
from itertools import product
from typing import TYPE_CHECKING, Any

from rooflines.calibration.entries import Calibrations, key_of
from rooflines.catalogue.entries import Chip, DtypeFile
from rooflines.model.operation import OPERANDS
from rooflines.settings.schema import SweepConfig
from rooflines.sweep.checks import checked_sweep

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.sweep.sweep import Sweep

__all__ = ["recipe_of", "skipped_records", "sweep_of"]


def recipe_of(sweep: Sweep, chips: Sequence[str]) -> dict[str, Any]:
    """The recipe of some chips' rows of a sweep: config, chips and dtypes as JSON."""
    named = {
        form: sweep.dtypes.combinations[form]
        for form in sweep.config.dtypes
        if isinstance(form, str)
    }
    written_out = [form for form in sweep.config.dtypes if not isinstance(form, str)]
    used = {
        getattr(form, key)
        for form in (*named.values(), *written_out)
        for key in (*OPERANDS, "compute")
    }
    formats = {name: form for name, form in sweep.dtypes.formats.items() if name in used}
    return {
        "sweep": sweep.name,
        "config": {**sweep.config_json, "chips": list(chips)},
        "chips": {chip: sweep.chips[chip].plain for chip in chips},
        "dtypes": {
            kind: {name: entry.model_dump(exclude_none=True) for name, entry in entries.items()}
            for kind, entries in (("formats", formats), ("combinations", named))
        },
        **_calibrations_of(sweep, chips),
    }


def _calibrations_of(sweep: Sweep, chips: Sequence[str]) -> dict[str, Any]:
    """The calibrations that some chips' rows read; nothing without a software."""
    softwares = sweep.config.calibration
    if not softwares:
        return {}
    dtypes = {combination.compute for combination in sweep.combinations.values()}
    used = sweep.calibrations.used([key_of(*each) for each in product(chips, softwares)], dtypes)
    return {"calibrations": used.model_dump(mode="json", exclude_defaults=True)}


def sweep_of(recipe: JSON) -> Sweep:
    """The sweep that a recipe describes."""
    return checked_sweep(
        recipe["sweep"],
        SweepConfig.model_validate(recipe["config"]),
        {chip: Chip.model_validate(entry) for chip, entry in recipe["chips"].items()},
        DtypeFile.model_validate(recipe["dtypes"]),
        Calibrations.model_validate(recipe.get("calibrations", {})),
    )


def skipped_records(sweeps: Iterable[Sweep]) -> list[dict[str, Any]]:
    """Skipped rows of sweeps: a record of the columns of `SKIPPED` for each chip and reason."""
    return [
        {"sweep": sweep.name, "unit": sweep.unit, **asdict(skipped)}
        for sweep in sweeps
        for skipped in sweep.skipped
    ]
