"""Measurements as a config has them: every key, what it means, and its default."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from rooflines.hardware.entry_forms import Entry, Text


def _as_text(value: object) -> object:
    """A whole number as text; a column of numbers is compared as text too."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


Wanted = Annotated[Text, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "integer"]})]
"""A value of a column."""


class MeasurementConfig(Entry):
    """One set of timings."""

    file: Text = Field(
        description="table, relative to the config: Parquet, CSV, or text from nccl-tests"
    )
    where: dict[str, Wanted] = Field(
        {},
        description=(
            "rows to use, by column value; a column that the table lacks, such as the chip in a "
            "public layout, gets its value"
        ),
    )
    held_out: bool = Field(
        default=False,
        description="whether no fit uses the set: `split` in measured.csv is then `held_out`",
    )
    on_unexplained: Literal["list", "error"] = Field(
        "list",
        description=(
            "timings below the bound that neither a cache nor a clock explains: list them, or stop"
        ),
    )


class AboutTimings(Entry):
    """Origin of timings: the YAML file beside a table, all keys optional."""

    licence: Text | None = None
    citation: Text | None = None
    commit: Text | None = None
    date: Text | None = None
    timer: Literal["graph", "event", "kernel", "wall"] | None = None
    operands: Text | None = None
    data: Text | None = None
    driver: Text | None = None
    versions: dict[str, Text] | None = None
    command: Text | None = None
    note: Text | None = None
