"""Recipes: the JSON from which a job rebuilds some chips' rows of a sweep."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from rooflines.catalogue.entries import Chip, DtypeFile
from rooflines.fits.entries import Calibrations, key_of
from rooflines.model.operation import OPERANDS
from rooflines.settings.schema import SweepConfig
from rooflines.sweep.checks import checked_sweep

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.catalogue.forms import Entry
    from rooflines.sweep.step_sweep import ModelSweep
    from rooflines.sweep.sweep import Sweep


def recipe_of(sweep: Sweep, chips: Sequence[str]) -> dict[str, Any]:
    """The recipe of some chips' rows of a sweep: config, chips and dtypes as JSON."""
    named = [form for form in sweep.config.dtypes if isinstance(form, str)]
    written_out = [form for form in sweep.config.dtypes if not isinstance(form, str)]
    used = {
        getattr(form, key)
        for form in (*(sweep.dtypes.combinations[name] for name in named), *written_out)
        for key in (*OPERANDS, "compute")
    }
    compute = {combination.compute for combination in sweep.combinations.values()}
    return {
        "sweep": sweep.name,
        "config": {**sweep.config_json, "chips": list(chips)},
        **entries_of(sweep.chips, chips, sweep.dtypes, used, named),
        **calibrations_of(sweep.calibrations, chips, sweep.config.calibration, compute),
    }


def entries_of(
    catalogue: Mapping[str, Chip],
    chips: Iterable[str],
    dtypes: DtypeFile,
    formats: Collection[str],
    combinations: Collection[str] = (),
) -> dict[str, Any]:
    """Catalogue entries as JSON.

    Args:
        catalogue: The chips by id.
        chips: Ids of the chips to include.
        dtypes: The dtype catalogue.
        formats: Names of the formats to include.
        combinations: Names of the combinations to include.
    """
    used: dict[str, dict[str, Entry]] = {
        "formats": {name: form for name, form in dtypes.formats.items() if name in formats},
        "combinations": {name: dtypes.combinations[name] for name in combinations},
    }
    return {
        "chips": {chip: catalogue[chip].plain for chip in chips},
        "dtypes": {
            kind: {name: entry.model_dump(exclude_none=True) for name, entry in entries.items()}
            for kind, entries in used.items()
        },
    }


def calibrations_of(
    calibrations: Calibrations,
    chips: Sequence[str],
    softwares: Sequence[str] | None,
    dtypes: Collection[str],
) -> dict[str, Any]:
    """The calibrations that rows read as JSON, by their key in a recipe; nothing without software.

    Args:
        calibrations: By chip and software.
        chips: The chips of the rows.
        softwares: The software that the sweep names.
        dtypes: The compute dtypes.
    """
    if not softwares:
        return {}
    used = calibrations.used([key_of(*each) for each in product(chips, softwares)], dtypes)
    return {"calibrations": used.model_dump(mode="json", exclude_defaults=True)}


def fits_of(recipe: JSON) -> Calibrations:
    """The calibrations of a recipe."""
    return Calibrations.model_validate(recipe.get("calibrations", {}))


def chips_of(recipe: JSON) -> dict[str, Chip]:
    """The chips of a recipe."""
    return {chip: Chip.model_validate(entry) for chip, entry in recipe["chips"].items()}


def sweep_of(recipe: JSON) -> Sweep:
    """The sweep that a recipe describes."""
    return checked_sweep(
        recipe["sweep"],
        SweepConfig.model_validate(recipe["config"]),
        chips_of(recipe),
        DtypeFile.model_validate(recipe["dtypes"]),
        fits_of(recipe),
    )


def skipped_records(sweeps: Iterable[Sweep | ModelSweep]) -> list[dict[str, Any]]:
    """Skipped rows of sweeps: a record of the columns of `SKIPPED` for each reason."""
    return [
        {"sweep": sweep.name, "unit": sweep.unit, **vars(skipped)}
        for sweep in sweeps
        for skipped in sweep.skipped
    ]
