"""Recipes: the JSON from which a job rebuilds the rows of some chips, or models, of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

from rooflines.config.model_fields import ModelSweepConfig
from rooflines.config.schema import SweepConfig
from rooflines.fits.calibration_files import Calibrations, key_of
from rooflines.hardware.dtype_catalogue import DtypeFile
from rooflines.hardware.entries import Chip
from rooflines.models.architecture import Shape
from rooflines.models.library import ModelEntry
from rooflines.models.model import Model
from rooflines.models.tensor_dtypes import StepDtypes
from rooflines.sweep.checks import AnySweep, checked_sweep
from rooflines.sweep.operation_sweep import Sweep
from rooflines.sweep.step_sweep import ModelSweep
from rooflines.sweep.training_sweep import sweep_of_models

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rooflines.basics.yaml_file import JSON
    from rooflines.hardware.entry_forms import Entry


IN_CONFIG = "the config"
"""The source of a shape that a config writes out."""


def recipe_of(
    sweep: AnySweep,
    *,
    models: Collection[str] | None = None,
    chips: Collection[str] | None = None,
) -> dict[str, Any]:
    """The recipe of some models' and chips' rows of a sweep: its config and entries, as JSON.

    Args:
        sweep: The sweep.
        models: Names of models to include, of whole models only; None: all.
        chips: Ids of chips to include; None: all.
    """
    config, own = sweep.config, dict[str, Any]()
    if isinstance(sweep, ModelSweep):
        own = {
            name: shape_recipe(model.shape, _source(sweep, name), _note(sweep, model))
            for name, model in sweep.models.items()
            if models is None or name in models
        }
    used = [chip for chip in config.chips if chips is None or chip in chips]
    named = [form for form in config.dtypes if isinstance(form, str)]
    written_out = [form for form in config.dtypes if not isinstance(form, str)]
    formats = {
        value
        for form in (*(sweep.dtypes.combinations[name] for name in named), *written_out)
        for key, value in form
        if key not in ("name", "note") and isinstance(value, str)
    }
    for form in written_out:
        mixed = form.mixed.values() if isinstance(form, StepDtypes) else ()
        formats.update(dtype for sums in mixed for dtype in sums)
    fits = {}
    if config.calibration:
        compute = {dtype for dtypes in sweep.computes.values() for dtype in dtypes}
        keys = [key_of(*each) for each in product(used, config.calibration)]
        fits = fits_recipe(sweep.calibrations.used(keys, compute))
    of_models = {"models": list(own)} if own else {}
    beside = [*used]
    if isinstance(sweep, ModelSweep) and sweep.config.pools is not None:
        beside.append(sweep.config.pools.prefill.chip)
    return {
        "sweep": sweep.name,
        "config": {**sweep.config_json, **of_models, "chips": used},
        **({"models": own} if own else {}),
        **entries_of(sweep.chips, beside, sweep.dtypes, formats, named),
        **fits,
    }


def shape_recipe(shape: Shape, source: str, note: str | None = None) -> dict[str, Any]:
    """A shape as JSON, the document that it is from, and what it leaves out or assumes."""
    plain = shape.model_dump(include=set(Shape.model_fields), exclude_none=True)
    return {"shape": plain, "source": source, **({"note": note} if note else {})}


def _note(sweep: ModelSweep, model: Model) -> str | None:
    """What numbers of a model leave out or assume; None: nothing."""
    return "; ".join(model.notes(drafts=sweep.config.draft is not None)) or None


def _source(sweep: ModelSweep, name: str) -> str:
    """The document that a shape is read from."""
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
    """Catalogue entries as JSON.

    Args:
        catalogue: The chips by id.
        chips: Ids of the chips to include.
        dtypes: The dtype catalogue.
        formats: Names of the formats to include.
        combinations: Names of the combinations to include.
    """
    listed = [name for name in dtypes.formats if name in formats]
    grouped = sorted(name for name in {*formats} - {*listed} if name in dtypes.formats)
    used: dict[str, dict[str, Entry]] = {
        "formats": {name: dtypes.formats[name] for name in [*listed, *grouped]},
        "combinations": {name: dtypes.combinations[name] for name in combinations},
    }
    return {
        "chips": {chip: catalogue[chip].plain for chip in chips},
        "dtypes": {
            kind: {name: entry.model_dump(exclude_none=True) for name, entry in entries.items()}
            for kind, entries in used.items()
        },
    }


def beside(recipe: JSON) -> list[str]:
    """The chips that rows of all chips depend on: what computes prompts for them."""
    pools = recipe["config"].get("pools")
    return [pools["prefill"]["chip"]] if pools else []


def without_chips(recipe: JSON) -> JSON:
    """A recipe without the chips that its rows are of."""
    chips = {chip: recipe["chips"][chip] for chip in beside(recipe)}
    return {**recipe, "chips": chips, "config": {**recipe["config"], "chips": None}}


def fits_recipe(fits: Calibrations) -> dict[str, Any]:
    """Calibrations as JSON, by their key in a recipe."""
    return {"calibrations": fits.model_dump(mode="json", exclude_defaults=True)}


def fits_of(recipe: JSON) -> Calibrations:
    """The calibrations of a recipe."""
    return Calibrations.model_validate(recipe.get("calibrations", {}))


def chips_of(recipe: JSON) -> dict[str, Chip]:
    """The chips of a recipe."""
    return {chip: Chip.model_validate(entry) for chip, entry in recipe["chips"].items()}


def sweep_of(recipe: JSON) -> Any:  # noqa: ANN401, the kind of sweep that it is of
    """The sweep that a recipe describes: a `ModelSweep` if it has models, else a `Sweep`."""
    name, chips, fits = recipe["sweep"], chips_of(recipe), fits_of(recipe)
    dtypes = DtypeFile.model_validate(recipe["dtypes"])
    if "models" not in recipe:
        config = SweepConfig.model_validate(recipe["config"])
        return checked_sweep(Sweep(name, config, chips, dtypes, fits))
    of_models = ModelSweepConfig.model_validate(recipe["config"])
    models = {
        model: Model(model, Shape.model_validate(each["shape"]), note=each.get("note"))
        for model, each in recipe["models"].items()
    }
    return checked_sweep(sweep_of_models(name, of_models, chips, dtypes, fits, models))


def skipped_records(sweeps: Iterable[AnySweep]) -> list[dict[str, Any]]:
    """Skipped rows of sweeps: a record of the columns of `SKIPPED` for each reason."""
    return [
        {"sweep": sweep.name, "unit": sweep.unit, **vars(skipped)}
        for sweep in sweeps
        for skipped in sweep.skipped
    ]
