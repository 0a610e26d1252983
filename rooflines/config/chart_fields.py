"""The `charts:` of a config, typed: the choices that a user has for each chart."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from rooflines.basics.errors import RooflinesError, quote
from rooflines.config.lists import Listed, as_list, one_or_many
from rooflines.hardware.entry_forms import Entry, Name, PositiveInt, Text

FORMATS = {"png": "slide", "svg": "slide", "pdf": "paper", "html": "web"}
"""The formats of pictures, and the size of each in a run."""


Names = Annotated[list[str] | None, Listed()]

ChartName = Annotated[str, PlainValidator(lambda value: value), WithJsonSchema({"type": "string"})]
"""The name of a chart as written; `charts.chart_choice` checks it against the charts there are."""


Options = Annotated[
    list[Text | PositiveInt],
    BeforeValidator(as_list),
    WithJsonSchema(one_or_many({"type": ["string", "integer"]})),
]
"""Options of a menu, the first one shown first."""


class ChartConfig(Entry):
    """One chart."""

    chart: ChartName = Field(description="kind of chart")
    sweep: Name | None = Field(
        None, description="sweep with its numbers; required, except for charts of timings"
    )
    measurements: Name | None = Field(
        None, description="set of timings; required for charts of timings"
    )
    id: Name | None = Field(
        None, description="file name; null: from the chart and its sweep or set"
    )
    title: Text | None = Field(None, description="title in place of the finding")
    chips: Names = Field(
        None,
        description="chips in the sweep, the first one shown first; "
        "null: those the config names most often, or with most timings",
    )
    dtypes: Names = Field(
        None,
        description="dtype combinations in the sweep; "
        "null: those the config names most often, or with most timings",
    )
    view: dict[str, Options] | None = Field(
        None,
        description="options by menu, such as {by: watt, model: [one, other]}; "
        "null: the first in each menu",
    )


AUTO = "auto"
"""In place of a list: the charts that fit the sweeps."""


def _charts(value: object) -> object:
    if value != AUTO and not isinstance(value, list):
        fix = "write auto, a list of charts, or [] for none"
        raise RooflinesError("", f"is {quote(value)}", fix, value=value)
    return None if value == AUTO else value


def _auto(schema: dict[str, Any]) -> None:
    schema["anyOf"][-1] = {"const": AUTO}
    schema["default"] = AUTO


Charts = Annotated[
    list[ChartConfig] | None, BeforeValidator(_charts), Field(json_schema_extra=_auto)
]
"""A list of charts; None: `auto`."""


Formats = Annotated[list[Literal["png", "svg", "pdf", "html"]], Listed()]
"""The formats of the pictures of a run."""
