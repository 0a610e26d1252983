"""The config, typed: every key of `config/config.yaml`, what it means, and its default.

The JSON Schema for editors is generated from these types. Keys and types are checked here;
`rooflines.sweep` checks whether they are consistent.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from rooflines.basics.errors import RooflinesError, quote
from rooflines.config.axis_sizes import Grid  # noqa: TC001, the same
from rooflines.config.chart_fields import Charts, Formats  # noqa: TC001, pydantic reads it at run time
from rooflines.config.grid_shapes import Shapes  # noqa: TC001, pydantic reads it at run time
from rooflines.config.lists import (
    COUNT_SCHEMA,
    SHARDS_SCHEMA,
    Listed,
    numbers_of_chips,
    text_or,
)
from rooflines.config.measurement_fields import MeasurementConfig  # noqa: TC001, the same
from rooflines.config.model_fields import ModelSweepConfig  # noqa: TC001, the same
from rooflines.config.sweep_fields import SweepKeys
from rooflines.dictionary.columns import CORE_METRICS, METRICS
from rooflines.hardware.dtype_catalogue import NamedCombination
from rooflines.hardware.entry_forms import Entry, Name, Positive, Share, Text
from rooflines.theory.operation import NAMED_OPERATIONS as OPERATIONS
from rooflines.theory.operation import Flops, Unit  # pydantic reads them at run time
from rooflines.theory.resources import RATES
from rooflines.theory.sharding import FIRST_COLLECTIVES, SHARDS, THEN_COLLECTIVES
from rooflines.theory.sharding import NAMED_SHARDINGS as SHARDINGS


def _no_wildcard(path: str) -> str:
    if {"{", "}"} & set(path):
        problem = f"is {quote(path)}, which has braces: Snakemake takes them for a wildcard"
        raise RooflinesError("", problem, "give a path without braces")
    return path


class Combination(NamedCombination):
    """A dtype combination written out."""

    note: None = Field(None, exclude=True)


class LongSharding(Entry):
    """A sharding written out."""

    split: Text = Field(description="the dimension that is split")
    first: Text | None = Field(
        None, description=f"what is sent before the computation: {', '.join(FIRST_COLLECTIVES)}"
    )
    then: Text | None = Field(
        None, description=f"what happens to the result: {', '.join(THEN_COLLECTIVES)}"
    )


Dtypes = Annotated[str | Combination, text_or(Combination)]
ShardingName = Annotated[str, WithJsonSchema({"enum": list(SHARDINGS)})]
Shardings = Annotated[ShardingName | LongSharding, text_or(LongSharding)]


class OperationKeys(Entry):
    """Sizes, dtypes and shardings of an operation's sweep, and the thresholds to solve."""

    operation: Text = Field(
        description=f"{', '.join(OPERATIONS)}, or an einsum of two operands such as 'BD,DF->BF'",
        examples=[*OPERATIONS, "BD,DF->BF"],
    )
    grid: Grid | None = Field(
        None, description="the sizes of each dimension; every combination is a row"
    )
    dtypes: Annotated[list[Dtypes], Listed()] = Field(
        description=(
            "dtype combinations: names of the dtype catalogue, or {x: , w: , out: , compute: }"
        )
    )
    shapes: Shapes = Field(
        None,
        description=(
            "named sizes instead of some grid axes: {models: [llama-3.1-8b], layers: all} of the "
            "catalogue, {name: my-mlp, D: 4096, F: 14336}, or a list of these"
        ),
    )
    sharding: Annotated[list[Shardings], Listed()] = Field(
        ["none"],
        description=(
            "what is split over several chips, and the collective that follows; none means one chip"
        ),
    )
    shards: Annotated[
        list[int | str], BeforeValidator(numbers_of_chips), WithJsonSchema(SHARDS_SCHEMA)
    ] = Field(
        [1],
        description=(
            "numbers of chips, or products along the axes of a torus such as 4x4; more than one "
            "chip needs a sharding [1]"
        ),
    )
    unit: Unit | None = Field(
        None, description="the compute unit; null: the operation's, vector for dot, else matrix"
    )
    flops: Flops | None = Field(
        None,
        description=(
            "how FLOPs are counted: leading is 2 * all dimensions; null: the "
            "operation's, exact for dot, else leading"
        ),
    )
    tile: dict[str, Any] | None = Field(
        None,
        description="elements of one tile by dimension: operands are read again for every tile",
        json_schema_extra={"additionalProperties": COUNT_SCHEMA},
    )
    thresholds: Annotated[list[str] | None, Listed(may_be_empty=True)] = Field(
        None,
        description=(
            f"what to solve for: dimensions, {SHARDS}, and rates ({', '.join(RATES)}); [] for "
            "nothing; null: the operation's first dimension, B for a matmul"
        ),
    )
    shares: Annotated[list[Share], Listed()] = Field(
        [1],
        description=(
            "shares of the attainable peak to solve for; 1: compute-bound; never at 1 often is a "
            "size at 0.9 [1]"
        ),
    )


class SweepConfig(SweepKeys, OperationKeys):
    """Operation sweep: one table with every combination of the listed values."""

    metrics = tuple(column.name for column in METRICS)
    core = CORE_METRICS

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The sweep as JSON, defaults filled in."""
        return self.model_dump()


SCHEMES = ("https://", "http://")
"""Beginnings of the addresses that a page links to."""


def _address(value: object) -> object:
    if not isinstance(value, str) or not value.startswith(SCHEMES):
        problem = f"is {quote(value)}, which is no address of the web"
        raise RooflinesError("", problem, f"begin it with {SCHEMES[0]}")
    return value


Address = Annotated[
    str,
    BeforeValidator(_address),
    WithJsonSchema({"type": "string", "pattern": "^https?://"}),
]


class SiteConfig(Entry):
    """Texts and links of the site; an empty one is not shown."""

    title: Text | None = Field(None, description="its title, at the top of every page")
    author: Text | None = Field(None, description="who made it, at the end of every page")
    url: Address | None = Field(
        None, description="where its source or its home is, a link at the end of every page"
    )
    date: Text | None = Field(None, description="when it was made, at the end of every page")
    tables: Address | None = Field(
        None, description="where a copy of results/tables is published; the site lists its files"
    )


WITH_SWEEPS: Any = {
    "anyOf": [
        {"required": [key], "properties": {key: {"minProperties": 1}}}
        for key in ("sweeps", "model-sweeps", "measurements")
    ]
}
"""A config has a sweep of either kind, or timings."""


class PathVars(Entry):
    """Folders that Snakemake puts files in."""

    results: Annotated[str, AfterValidator(_no_wildcard)] = Field(
        "results", description="the folder of what is made"
    )


class ConfigFile(Entry):
    """A config: sweeps, charts, and the user's own chips."""

    model_config = ConfigDict(title="rooflines config", json_schema_extra=WITH_SWEEPS)

    sweeps: dict[Name, SweepConfig] = Field(
        {}, description="sweeps of operations by name; each makes a table"
    )
    model_sweeps: dict[Name, ModelSweepConfig] = Field(
        {},
        alias="model-sweeps",
        description="sweeps of whole models by name; each makes a table, and one of its kernels",
    )
    charts: Charts = Field(
        None, description="auto: those that fit the sweeps; or a list of charts; [] for none"
    )
    formats: Formats = Field(
        ["png", "svg"],
        description="formats of the pictures of charts; `rooflines draw` makes others later",
    )
    measurements: dict[Name, MeasurementConfig] = Field(
        {}, description="sets of timings by name; each is compared with the model"
    )
    calibrations: list[Text] = Field(
        [],
        description=(
            "files that `rooflines measured calibrate` wrote; of two fits of one chip, software "
            "and dtype the later file's counts, and any file's before the package's own"
        ),
    )
    site: SiteConfig | None = Field(
        None,
        description="title, author, address, date and address of the tables that the site shows",
    )
    pathvars: PathVars = Field(
        default_factory=lambda: PathVars.model_validate({}),
        description="where Snakemake puts files",
    )
    chips: dict[Any, Any] = Field(
        {},
        description=(
            "the user's own chips, or variants with a base and dotted paths to the "
            "numbers that differ"
        ),
    )
    prices: dict[str, Positive] = Field(
        {}, description="dollars an hour of one chip by its id, instead of the catalogue's [USD/h]"
    )
