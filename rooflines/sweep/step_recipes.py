"""Recipes: the JSON from which a job rebuilds the rows of some models and chips of a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rooflines.catalogue.entries import DtypeFile
from rooflines.models.library import ModelEntry
from rooflines.models.model import Model
from rooflines.models.shape import Shape
from rooflines.settings.model_sweeps import ModelSweepConfig
from rooflines.sweep.recipes import calibrations_of, chips_of, entries_of, fits_of
from rooflines.sweep.step_sweep import checked_model_sweep

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.sweep.step_sweep import ModelSweep

IN_CONFIG = "the config"
"""The source of a shape that a config writes out."""


def model_recipe(sweep: ModelSweep, models: Iterable[str], chips: Sequence[str]) -> dict[str, Any]:
    """The recipe of some models and chips of a sweep: config, shapes, chips and dtypes as JSON.

    Args:
        sweep: The sweep.
        models: Names of its models.
        chips: Ids of its chips.
    """
    shapes = {name: _model(sweep, name) for name in models}
    used = {
        value
        for dtypes in sweep.config.dtypes
        for key, value in dtypes
        if key != "name" and value is not None
    }
    compute = {dtype for dtypes in sweep.config.dtypes for dtype in dtypes.computed}
    return {
        "sweep": sweep.name,
        "config": {**sweep.config.model_dump(), "models": list(shapes), "chips": list(chips)},
        "models": shapes,
        **entries_of(sweep.chips, chips, sweep.dtypes, used),
        **calibrations_of(sweep.calibrations, chips, sweep.config.calibration, compute),
    }


def shape_recipe(shape: Shape, source: str) -> dict[str, Any]:
    """A shape as JSON, and the document that it is from."""
    plain = shape.model_dump(include=set(Shape.model_fields), exclude_none=True)
    return {"shape": plain, "source": source}


def model_sweep_of(recipe: JSON) -> ModelSweep:
    """The sweep that a recipe describes."""
    return checked_model_sweep(
        recipe["sweep"],
        ModelSweepConfig.model_validate(recipe["config"]),
        {
            name: Model(name, Shape.model_validate(model["shape"]))
            for name, model in recipe["models"].items()
        },
        chips_of(recipe),
        DtypeFile.model_validate(recipe["dtypes"]),
        fits_of(recipe),
    )


def _model(sweep: ModelSweep, name: str) -> dict[str, Any]:
    """The shape of a model as JSON, and where it is from."""
    return shape_recipe(sweep.models[name].shape, _source(sweep, name))


def _source(sweep: ModelSweep, name: str) -> str:
    """The document that a shape is read from."""
    shape = sweep.models[name].shape
    if isinstance(shape, ModelEntry):
        return shape.source
    form = next(
        form for form in sweep.config.models if isinstance(form, Mapping) and form["name"] == name
    )
    return str(form["hf"]) if isinstance(form.get("hf"), str) else IN_CONFIG
