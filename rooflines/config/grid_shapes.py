"""Shapes: named grid points, typed in a config or taken from matrices in catalogue models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PrivateAttr, WithJsonSchema

from rooflines.basics.errors import (
    KeyPath,
    Mistakes,
    RooflinesError,
    check_choices,
    close_to,
    quote,
)
from rooflines.basics.text import is_formula
from rooflines.config.lists import Listed, as_list, one_or_many
from rooflines.hardware.entry_forms import Entry, Text, validate_entry
from rooflines.models.layer_matrices import LAYERS, layers_of
from rooflines.models.library import catalogue_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.basics.yaml_file import JSON
    from rooflines.models.model import Model

ALL: Literal["all"] = "all"


def _shape_name(value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= 200 or not value.isprintable():  # noqa: PLR2004, a line of text
        problem = f"is {quote(value)}, which is no name of a shape"
        raise RooflinesError("", problem, "write a line of text of at most 200 characters")
    if is_formula(value):
        problem = f"is {quote(value)}, which a spreadsheet would run as a formula"
        raise RooflinesError("", problem, "begin it with another character")
    return value


def _is_none(value: object) -> bool:
    return value is None


class NamedShape(Entry):
    """A named point: sizes for some of the dimensions."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Annotated[
        str,
        BeforeValidator(_shape_name),
        WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 200}),
    ] = Field(description="name in the column `shape`, with sizes by letter beside it")
    model: Text | None = Field(
        None, description="model with this layer, for charts", exclude_if=_is_none
    )
    layer: Text | None = Field(
        None, description="layer in that model, for charts", exclude_if=_is_none
    )
    _path: KeyPath | None = PrivateAttr(None)

    @property
    def sizes(self) -> JSON:
        """Sizes by dimension, as they are written."""
        return self.model_extra or {}

    @property
    def path(self) -> KeyPath | None:
        """Key path below `shapes` to its models; None for a typed shape."""
        return self._path


def _layers(value: object) -> object:
    layers = value if value == ALL else as_list(value)
    if isinstance(layers, list):
        check_choices(layers, LAYERS, "no layer of a model", f"use all, or {', '.join(LAYERS)}")
    return layers


class ModelLayers(Entry):
    """Matrices in catalogue models, as shapes with D and F."""

    models: Annotated[list[Text], Listed()] = Field(description="model ids, or published names")
    layers: Annotated[
        list[str] | Literal["all"],
        BeforeValidator(_layers),
        WithJsonSchema({"anyOf": [{"const": ALL}, one_or_many({"enum": list(LAYERS)})]}),
    ] = Field(ALL, description="layers that all these models have, or all: every layer")

    def shapes(self) -> Iterator[NamedShape]:
        """The shapes, model by model.

        Raises:
            RooflinesError: A model is unknown, or lacks a layer.
        """
        models: list[Model] = []
        with Mistakes() as mistakes:
            for index, name in enumerate(self.models):
                with mistakes.at("models", index):
                    models.append(catalogue_model(name, "type its matrices: {name: , D: , F: }"))
        for model in models:
            sizes = layers_of(model.shape)
            for index, layer in enumerate(sizes if self.layers == ALL else self.layers):
                if layer not in sizes:
                    problem = f"is {quote(layer)}, which {model.name} does not have"
                    fix = f"leave one of them out; its layers are {', '.join(sizes)}"
                    close = close_to(layer, sizes)
                    raise RooflinesError(("layers", index), problem, fix, close=close)
                labels = {"name": f"{model.name}-{layer}", "model": model.name, "layer": layer}
                yield validate_entry(
                    NamedShape, {**labels, **dict(zip("DF", sizes[layer], strict=True))}
                )


def _shapes(value: object) -> object:
    """Shapes as a list, those of models written out."""
    if value is None:
        return None
    shapes: dict[str, NamedShape] = {}
    forms = as_list(value)
    with Mistakes() as mistakes:
        for index, form in enumerate(forms if isinstance(forms, list) else ()):
            path = (index,) if isinstance(value, list) else ()
            with mistakes.at(*path):
                for shape in _written_out(form, path):
                    if shape.name in shapes:
                        problem = f"{quote(shape.name)}, which is listed twice"
                        if shape.path is None:
                            fix = "give every shape a name of its own"
                            raise RooflinesError("name", f"is {problem}", fix)
                        raise RooflinesError("models", f"gives {problem}", "name it once")
                    shapes[shape.name] = shape
    return list(shapes.values())


def _written_out(form: object, path: KeyPath) -> Iterator[NamedShape]:
    if not (isinstance(form, Mapping) and "models" in form):
        yield validate_entry(NamedShape, form)
        return
    for shape in validate_entry(ModelLayers, form).shapes():
        shape._path = path  # noqa: SLF001, set once, here
        yield shape


Forms = Annotated[list[NamedShape | ModelLayers] | None, Listed()]
Shapes = Annotated[list[NamedShape] | None, BeforeValidator(_shapes, json_schema_input_type=Forms)]
"""Named points of a grid."""
