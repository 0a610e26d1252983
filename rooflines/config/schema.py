"""The config, typed: every key of `config/config.yaml`, what it means, and its default.

The JSON Schema for editors is generated from these types. Keys and types are checked here;
`rooflines.sweep` checks whether they are consistent.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema

from rooflines.basics.errors import RooflinesError, at_path, close_to, quote
from rooflines.config.axis_sizes import Grid  # noqa: TC001, the same
from rooflines.config.chart_fields import Charts, Formats  # noqa: TC001, pydantic reads it at run time
from rooflines.config.grid_shapes import Shapes  # noqa: TC001, pydantic reads it at run time
from rooflines.config.kernel_fields import (
    ChainSweepConfig,
    CollectiveSweepConfig,
    KernelKeys,
    KernelSweepConfig,
)
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
from rooflines.config.trace_fields import TraceConfig  # noqa: TC001, the same
from rooflines.dictionary.columns import CORE_METRICS, METRICS
from rooflines.hardware.dtype_catalogue import NamedCombination
from rooflines.hardware.entry_forms import Entry, Name, Positive, Share, Text
from rooflines.kinds.collectives import COLLECTIVE_MEANINGS, find_collective
from rooflines.kinds.kind_names import SEQUENCE, chain_sign, find_kind
from rooflines.kinds.kind_table import BY_NAME
from rooflines.theory.operation import (  # pydantic reads the types at run time
    NAMED_OPERATIONS,
    Flops,
    Unit,
    parse_operation,
)
from rooflines.theory.resources import RATES
from rooflines.theory.sharding import FIRST_COLLECTIVES, NAMED_SHARDINGS, SHARDS, THEN_COLLECTIVES


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

    split: Text = Field(description="split dimension")
    first: Text | None = Field(
        None, description=f"collective before the computation: {', '.join(FIRST_COLLECTIVES)}"
    )
    then: Text | None = Field(
        None, description=f"collective after the computation: {', '.join(THEN_COLLECTIVES)}"
    )


Dtypes = Annotated[str | Combination, text_or(Combination)]
ShardingName = Annotated[str, WithJsonSchema({"enum": list(NAMED_SHARDINGS)})]
Shardings = Annotated[ShardingName | LongSharding, text_or(LongSharding)]


EINSUMS = ", ".join(f"{name} ({op.x},{op.w}->{op.out})" for name, op in NAMED_OPERATIONS.items())
"""Named operations with their einsums."""


class OperationKeys(Entry):
    """Sizes, dtypes and shardings of an operation's sweep, and the thresholds to solve."""

    operation: Text = Field(
        description=f"{EINSUMS}, or any einsum with two operands and one letter per dimension",
        examples=[*NAMED_OPERATIONS, "BD,DF->BF"],
    )
    grid: Grid | None = Field(None, description="sizes by dimension; every combination is a row")
    dtypes: Annotated[list[Dtypes], Listed()] = Field(
        description=(
            "dtype combinations: names in the dtype catalogue, or {x: , w: , out: , compute: }"
        )
    )
    shapes: Shapes = Field(
        None,
        description=(
            "named sizes in place of grid axes: {models: [llama-3.1-8b], layers: all} from the "
            "catalogue, {name: my-mlp, D: 4096, F: 14336}, or a list with both"
        ),
    )
    sharding: Annotated[list[Shardings], Listed()] = Field(
        ["none"],
        description=(
            "split dimension and collective, by name or as {split: , first: , then: }; none: one "
            "chip"
        ),
    )
    shards: Annotated[
        list[int | str], BeforeValidator(numbers_of_chips), WithJsonSchema(SHARDS_SCHEMA)
    ] = Field(
        [1],
        description=(
            "numbers of chips, or products along torus axes such as 4x4; more than one chip needs "
            "a sharding [1]"
        ),
    )
    unit: Unit | None = Field(
        None, description="compute unit; null: the operation's, vector for dot, else matrix"
    )
    flops: Flops | None = Field(
        None,
        description=(
            "FLOP count: leading is 2 * all dimensions; null: the operation's, exact for dot, "
            "else leading"
        ),
    )
    tile: dict[str, Any] | None = Field(
        None,
        description="elements of one tile by dimension: operands are read again for every tile, "
        "and edge tiles are padded",
        json_schema_extra={"additionalProperties": COUNT_SCHEMA},
    )
    thresholds: Annotated[list[str] | None, Listed(may_be_empty=True)] = Field(
        None,
        description=(
            f"axes to solve for: dimensions, {SHARDS}, and rates ({', '.join(RATES)}); [] for "
            "nothing; null: the operation's first dimension, B for a matmul"
        ),
    )
    shares: Annotated[list[Share], Listed()] = Field(
        [1],
        description=(
            "shares of attainable peak to solve for; 1: compute-bound; where 1 is never attained, "
            "0.9 often is [1]"
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


def sweep_config(value: object) -> object:
    """Sweep config by its operation: a kind, a chain of kinds, a collective, else an einsum."""
    if isinstance(value, SweepConfig | KernelKeys):
        return value
    if not isinstance(value, Mapping):
        return SweepConfig.model_validate(value)
    operation = value.get("operation")
    if isinstance(operation, str) and chain_sign(operation) == SEQUENCE:
        value = {("sequence" if key == "operation" else key): value[key] for key in value}
        operation = None
    return _config_type(operation, value).model_validate(value)


def _config_type(operation: object, value: Mapping[str, object]) -> type[SweepConfig | KernelKeys]:
    """Config type for a sweep.

    Args:
        operation: Its operation.
        value: All its keys.
    """
    is_chain = isinstance(operation, list) and not {"sharding", "shapes"} & {*value}
    if "sequence" in value or is_chain:
        return ChainSweepConfig
    if not isinstance(operation, str):
        return SweepConfig
    if chain_sign(operation):
        return ChainSweepConfig
    if find_collective(operation) is not None:
        return CollectiveSweepConfig
    if find_kind(operation) is not None:
        return KernelSweepConfig
    kinds = [*BY_NAME, *COLLECTIVE_MEANINGS]
    if close_to(operation, kinds) and not close_to(operation, NAMED_OPERATIONS):
        with at_path("operation"):  # a kind misspelt: other keys are no mistakes
            parse_operation(operation, kinds)
    return SweepConfig


AnySweepConfig = Annotated[
    SweepConfig | KernelSweepConfig | ChainSweepConfig | CollectiveSweepConfig,
    BeforeValidator(sweep_config),
]
"""Sweep config: an operation, a kernel, a chain of kernels, or a collective."""


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

    title: Text | None = Field(None, description="title, at the top of every page")
    author: Text | None = Field(None, description="author, at the end of every page")
    url: Address | None = Field(
        None, description="address of its source or home, a link at the end of every page"
    )
    date: Text | None = Field(None, description="date, at the end of every page")
    address: Address | None = Field(
        None,
        description=(
            "address at which the bundle is published; chats show its picture only with this"
        ),
    )
    tables: Address | None = Field(
        None, description="address of a published copy of results/tables; the site lists its files"
    )


WITH_SWEEPS: Any = {
    "anyOf": [
        {"required": [key], "properties": {key: {"minProperties": 1}}}
        for key in ("sweeps", "model-sweeps", "measurements", "traces")
    ]
}
"""A config has a sweep of either kind, timings, or traces."""


class PathVars(Entry):
    """Folders that Snakemake puts files in."""

    results: Annotated[str, AfterValidator(_no_wildcard)] = Field(
        "results", description="folder for all outputs"
    )


class ConfigFile(Entry):
    """A config: sweeps, charts, and the user's own chips."""

    model_config = ConfigDict(title="rooflines config", json_schema_extra=WITH_SWEEPS)

    sweeps: dict[Name, AnySweepConfig] = Field(
        {}, description="sweeps of operations and kernels by name; each makes a table"
    )
    model_sweeps: dict[Name, ModelSweepConfig] = Field(
        {},
        alias="model-sweeps",
        description="model sweeps by name; each makes a table, and one with its kernels",
    )
    scenarios: dict[Name, dict[str, Any]] = Field(
        {},
        description=(
            "named overrides by dotted path, such as {chips.h100-sxm.memory.hbm.bytes_per_s: "
            "4e12} or {model-sweeps.serving.dtypes: fp8}; the sweeps that one changes are computed "
            "with it, too, and compared"
        ),
    )
    charts: Charts = Field(
        None,
        description="auto: at most one of each kind, each with a finding; or a list; [] for none",
    )
    formats: Formats = Field(
        ["png", "svg"],
        description="picture formats of charts; `rooflines draw` makes others later",
    )
    measurements: dict[Name, MeasurementConfig] = Field(
        {}, description="sets of timings by name; each is compared with the model"
    )
    traces: dict[Name, TraceConfig] = Field(
        {}, description="profilers' traces by name; each is laid on its bound"
    )
    calibrations: list[Text] = Field(
        [],
        description=(
            "files from `rooflines measured calibrate`; of two fits for a chip, software and dtype "
            "the later file's is used, and any file's before the package's"
        ),
    )
    site: SiteConfig | None = Field(
        None,
        description="title, author, address and date on the site, and the address of its tables",
    )
    pathvars: PathVars = Field(
        default_factory=lambda: PathVars.model_validate({}),
        description="folders for Snakemake's files",
    )
    chips: dict[Any, Any] = Field(
        {},
        description=(
            "your own chips, or variants with a base and dotted paths to the numbers that differ"
        ),
    )
    engines: dict[Any, Any] = Field(
        {},
        description=(
            "your own serving engines, or other rules of one, in the form of config/engines.yaml"
        ),
    )
    prices: dict[str, Positive] = Field(
        {}, description="hourly price per chip by chip id, in place of the catalogue's [USD/h]"
    )
