"""The `charts:` of a config, typed: which charts there are, and what a user may say of each."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from rooflines.basics.errors import Mistakes, RooflinesError, one_of, quote
from rooflines.catalogue.forms import Count, Entry, Name, Text, understood

__all__ = ["KINDS", "MODULES", "OF_ROWS", "ChartConfig", "Charts", "understood_chart"]

KINDS = {
    "roofline": "roofline",
    "chips": "chips",
    "attained": "attained",
    "critical": "critical",
    "critical-map": "critical",
    "shards": "shards",
    "ridges": "compared",
    "layers": "compared",
    "per-dollar": "compared",
    "per-watt": "compared",
    "time": "time",
    "bounds": "bounds",
}
"""Every chart and the family it belongs to; a family is drawn by one job."""

OF_ROWS = frozenset({"roofline", "attained", "time", "bounds"})
"""The charts that read rows of tables; the others need thresholds alone."""

MODULES = {
    "roofline": ("charts/roofs.py", "charts/frames.py"),
    "chips": ("charts/chips.py", "charts/frames.py"),
    "attained": ("charts/curves.py", "charts/frames.py"),
    "critical": ("charts/maps.py", "charts/frames_sizes.py"),
    "shards": ("charts/shards.py", "charts/frames_sizes.py"),
    "compared": ("charts/compared.py", "charts/frames.py", "charts/frames_sizes.py"),
    "time": ("charts/times.py", "charts/frames_sizes.py"),
    "bounds": ("charts/bounds.py", "charts/frames_sizes.py"),
}
"""The modules that draw each family: it is drawn again when one of them changes, or what they
import."""


def _kind(value: object) -> object:
    one_of(value, KINDS, "no chart")
    return value


def _names(value: object) -> object:
    return value if isinstance(value, list) or value is None else [value]


Names = Annotated[list[str] | None, BeforeValidator(_names)]


class ChartConfig(Entry):
    """One chart."""

    chart: Annotated[
        Literal[
            "roofline",
            "chips",
            "attained",
            "critical",
            "critical-map",
            "shards",
            "ridges",
            "layers",
            "per-dollar",
            "per-watt",
            "time",
            "bounds",
        ],
        BeforeValidator(_kind),
    ] = Field(description="which chart")
    sweep: Name = Field(description="the sweep that its numbers come from")
    id: Name | None = Field(
        None, description="the name of its files; null: made of the chart and the sweep"
    )
    title: Text | None = Field(None, description="in place of the finding")
    chips: Names = Field(
        None,
        description=(
            "which of the sweep's chips, the first one shown first; null: those the "
            "config names most often"
        ),
    )
    dtypes: Names = Field(
        None,
        description=(
            "which of the sweep's dtype combinations; null: those the config names most often"
        ),
    )
    shape: Text | None = Field(
        None, description="which of the sweep's shapes, for charts of one shape"
    )
    model: Text | None = Field(
        None,
        description="what the names of a model's shapes begin with, for charts of a model's layers",
    )
    sharding: Text | None = Field(None, description="which of the sweep's shardings is shown first")
    up: Text | None = Field(None, description="bounds: what goes up, shards or a dimension")
    sizes: list[Count] | None = Field(
        None, description="roofline, time: sizes of the operation's first dimension"
    )
    shards: list[Count] | None = Field(None, description="time: numbers of chips")


def _charts(value: object) -> object:
    if value != "auto" and not isinstance(value, list):
        raise RooflinesError(
            "", f"is {quote(value)}", "write auto, a list of charts, or [] for none"
        )
    return value


def understood_chart(given: object, mistakes: Mistakes) -> ChartConfig | None:
    """A chart with what is right of it; None where it cannot be checked any further.

    Args:
        given: What the config says.
        mistakes: Collects what is wrong with it; key paths start at the chart.
    """
    chart = understood(ChartConfig, given, mistakes)
    if chart.refused & {"chart", "sweep", "id"}:
        return None
    return ChartConfig.model_construct(**chart.__dict__)


CHARTS_SCHEMA: Any = {
    "anyOf": [{"const": "auto"}, {"type": "array", "items": ChartConfig.model_json_schema()}]
}
Charts = Annotated[Any, BeforeValidator(_charts), WithJsonSchema(CHARTS_SCHEMA)]
"""`auto`, or a list of charts, not yet understood."""
