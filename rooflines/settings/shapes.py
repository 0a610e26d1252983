"""Shapes: named points of a grid, such as the layers of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from rooflines.basics.errors import RooflinesError, quote
from rooflines.basics.spreadsheet import is_formula
from rooflines.catalogue.forms import Entry, Text

if TYPE_CHECKING:
    from rooflines.basics.yaml_file import JSON

__all__ = ["Shape"]


def _shape_name(value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= 200 or not value.isprintable():  # noqa: PLR2004, a line of text
        raise RooflinesError(
            "",
            f"is {quote(value)}, which is no name of a shape",
            "write a line of text of at most 200 characters",
        )
    if is_formula(value):
        raise RooflinesError(
            "",
            f"is {quote(value)}, which a spreadsheet would run as a formula",
            "begin it with another character",
        )
    return value


def _is_none(value: object) -> bool:
    return value is None


class Shape(Entry):
    """A named point: sizes for some of the dimensions."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Annotated[
        str,
        BeforeValidator(_shape_name),
        WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 200}),
    ]
    model: Text | None = Field(
        None, description="the model that it is a layer of, for charts", exclude_if=_is_none
    )
    layer: Text | None = Field(
        None, description="the layer of that model, for charts", exclude_if=_is_none
    )

    @property
    def sizes(self) -> JSON:
        """Sizes by dimension, as they are written."""
        return self.model_extra or {}
