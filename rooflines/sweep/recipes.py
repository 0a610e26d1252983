"""Recipes: the JSON from which a job rebuilds the rows of some chips, or models, of a sweep."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any

from rooflines.config.model_fields import ModelSweepConfig
from rooflines.config.schema import sweep_config
from rooflines.fits.calibration_files import AUTO_CALIBRATION, Calibrations
from rooflines.fits.fit_keys import FitKey
from rooflines.hardware.dtype_catalogue import DtypeFile
from rooflines.hardware.entries import Chip
from rooflines.models.architecture import Shape
from rooflines.models.library import ModelEntry
from rooflines.models.model import Model
from rooflines.models.tensor_dtypes import StepDtypes
from rooflines.sweep.checks import AnySweep, checked_sweep
from rooflines.sweep.collective_sweep import CollectiveSweep
from rooflines.sweep.config_sweeps import sweep_of_config
from rooflines.sweep.kind_sweep import KindSweep
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.sweep.training_sweep import sweep_of_models

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.hardware.entry_forms import Entry


IN_CONFIG = "the config"
"""Source of a shape that a config writes out."""

RECIPE_KEYS = ("sweep", "config", "models", "chips", "dtypes", "calibrations")
"""A recipe's keys; a job's spec has further ones, such as its rows."""

SHARED_SWEEPS = 4
"""Model sweeps that jobs in one process share, the last used [1]."""

_lock = Lock()
"""Held while a shared sweep is looked up or built: jobs run on several threads."""


def recipe_of(
    sweep: AnySweep,
    *,
    models: Collection[str] | None = None,
    chips: Collection[str] | None = None,
) -> dict[str, Any]:
    """Write the recipe of some models' and chips' rows in a sweep: config and entries, as JSON.

    Args:
        sweep: The sweep.
        models: Names of models to include, of whole models only; None: all.
        chips: Ids of chips to include; None: all.
    """
    config, models_json = sweep.config, dict[str, Any]()
    if isinstance(sweep, ModelSweep):
        models_json = {
            name: shape_recipe(model.shape, _source(sweep, name), _note(sweep, model))
            for name, model in sweep.models.items()
            if models is None or name in models
        }
    used_chips = [chip for chip in config.chips if chips is None or chip in chips]
    named_forms, formats = _dtype_entries_of(sweep)
    fits = {}
    if config.calibration:
        compute = {dtype for dtypes in sweep.calibrated_computes for dtype in dtypes}
        softwares = (
            (chip, software)
            for chip in used_chips
            for software in _softwares(sweep, chip, config.calibration)
        )
        keys = [FitKey.checked(*chip_and_software) for chip_and_software in softwares]
        fits = fits_recipe(sweep.calibrations.subset(keys, compute))
    included: dict[str, object] = {"models": list(models_json)} if models_json else {}
    if models is not None or chips is not None:  # measured numbers belong to all rows
        included["measured"] = None
    all_chips = [*used_chips]
    if isinstance(sweep, ModelSweep) and sweep.config.pools is not None:
        all_chips.append(sweep.config.pools.prefill.chip)
    return {
        "sweep": sweep.name,
        "config": {**sweep.config_json, **included, "chips": used_chips},
        **({"models": models_json} if models_json else {}),
        **entries_of(sweep.chips, all_chips, sweep.dtypes, formats, named_forms),
        **fits,
    }


def _dtype_entries_of(sweep: AnySweep) -> tuple[list[str], set[str]]:
    """Named dtype combinations in a sweep's config, and the formats in all."""
    if isinstance(sweep, CollectiveSweep):
        return [], set()
    if isinstance(sweep, KindSweep):
        return [], {name for form in sweep.forms.values() for name in form.dtypes.values()}
    named = [form for form in sweep.config.dtypes if isinstance(form, str)]
    inline = [form for form in sweep.config.dtypes if not isinstance(form, str)]
    formats = {
        value
        for form in (*(sweep.dtypes.combinations[name] for name in named), *inline)
        for key, value in form
        if key not in ("name", "note") and isinstance(value, str)
    }
    for form in inline:
        mixed = form.mixed.values() if isinstance(form, StepDtypes) else ()
        formats.update(dtype for sums in mixed for dtype in sums)
    return named, formats


def _softwares(sweep: AnySweep, chip: str, named: Sequence[str]) -> Sequence[str]:
    """Software whose fits a chip's rows may take: as named, or what `auto` takes."""
    if named != [AUTO_CALIBRATION]:
        return named
    calibrations = sweep.calibrations
    taken = (calibrations.auto_softwares(chip, computes) for computes in sweep.calibrated_computes)
    return sorted({*chain(*taken), *calibrations.training_softwares(chip)})


def shape_recipe(shape: Shape, source: str, note: str | None = None) -> dict[str, Any]:
    """Write a shape as JSON, with its source document, and a note on omissions or assumptions."""
    plain = shape.model_dump(include=set(Shape.model_fields), exclude_none=True)
    return {"shape": plain, "source": source, **({"note": note} if note else {})}


def _note(sweep: ModelSweep, model: Model) -> str | None:
    """Note on omissions or assumptions in a model's numbers; None without any."""
    return "; ".join(model.notes(drafts=sweep.config.draft is not None)) or None


def _source(sweep: ModelSweep, name: str) -> str:
    """Document from which a shape is read."""
    shape = sweep.models[name].shape
    if isinstance(shape, ModelEntry):
        return shape.source
    form = next(
        form for form in sweep.config.models if isinstance(form, Mapping) and form["name"] == name
    )
    return str(form["hf"]) if isinstance(form.get("hf"), str) else IN_CONFIG


def entries_of(
    catalogue: Mapping[str, Chip],
    chips: Iterable[str],
    dtypes: DtypeFile,
    formats: Collection[str],
    combinations: Collection[str] = (),
) -> dict[str, Any]:
    """Write catalogue entries as JSON.

    Args:
        catalogue: The chips by id.
        chips: Ids of the chips to include.
        dtypes: The dtype catalogue.
        formats: Names of the formats to include.
        combinations: Names of the combinations to include.
    """
    in_order = [name for name in dtypes.formats if name in formats]
    grouped = sorted(name for name in {*formats} - {*in_order} if name in dtypes.formats)
    entries_by_kind: dict[str, dict[str, Entry]] = {
        "formats": {name: dtypes.formats[name] for name in [*in_order, *grouped]},
        "combinations": {name: dtypes.combinations[name] for name in combinations},
    }
    return {
        "chips": {chip: catalogue[chip].plain for chip in chips},
        "dtypes": {
            kind: {name: entry.model_dump(exclude_none=True) for name, entry in entries.items()}
            for kind, entries in entries_by_kind.items()
        },
    }


def fits_recipe(fits: Calibrations) -> dict[str, Any]:
    """Write calibrations as JSON, under their key in a recipe."""
    return {"calibrations": fits.model_dump(mode="json", exclude_defaults=True)}


def fits_of(recipe: JSON) -> Calibrations:
    """Read the calibrations in a recipe."""
    return Calibrations.model_validate(recipe.get("calibrations", {}))


def chips_of(recipe: JSON) -> dict[str, Chip]:
    """Read the chips in a recipe."""
    return {chip: Chip.model_validate(entry) for chip, entry in recipe["chips"].items()}


def sweep_of(recipe: JSON) -> Any:  # noqa: ANN401, the kind of sweep that it is of
    """Rebuild the sweep from a recipe: a `ModelSweep` if it has models, else by its operation."""
    name, chips, fits = recipe["sweep"], chips_of(recipe), fits_of(recipe)
    dtypes = DtypeFile.model_validate(recipe["dtypes"])
    if "models" not in recipe:
        config: Any = sweep_config(recipe["config"])
        return checked_sweep(sweep_of_config(name, config, chips, dtypes, fits))
    model_config = ModelSweepConfig.model_validate(recipe["config"])
    models = {
        model: Model(model, Shape.model_validate(entry["shape"]), note=entry.get("note"))
        for model, entry in recipe["models"].items()
    }
    return checked_sweep(sweep_of_models(name, model_config, chips, dtypes, fits, models))


def shared_sweep_of(recipe: JSON) -> Any:  # noqa: ANN401, as `sweep_of`
    """Rebuild the sweep from a recipe; jobs with the same models and chips share it.

    Steps, kernels and thresholds need the same works, times and estimates. A model sweep computes
    them when they are first read, which is most that these jobs do.
    """
    if "models" not in recipe:
        return sweep_of(recipe)
    text = json.dumps({key: recipe[key] for key in RECIPE_KEYS if key in recipe})
    with _lock:
        return _shared_sweep(text)


@lru_cache(maxsize=SHARED_SWEEPS)
def _shared_sweep(recipe: str) -> Any:  # noqa: ANN401, as `sweep_of`
    return sweep_of(json.loads(recipe))


def skipped_records(sweeps: Iterable[AnySweep]) -> list[dict[str, Any]]:
    """Records for skipped rows, with `SKIPPED` columns, one for each reason."""
    return [
        {"sweep": sweep.name, "unit": sweep.unit, **vars(skipped)}
        for sweep in sweeps
        for skipped in sweep.skipped
    ]
