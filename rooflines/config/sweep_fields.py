"""Keys shared by operation sweeps and model sweeps, typed and described once."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    field_validator,
)

from rooflines.basics.errors import RooflinesError, check_choices, close_to, quote
from rooflines.basics.numbers import whole
from rooflines.basics.quantities import measured_value
from rooflines.config.lists import (
    COUNT_SCHEMA,
    NETWORK_SCHEMA,
    Listed,
    as_list,
    networks,
    one_or_many,
    unique,
)
from rooflines.fits.calibration_files import AUTO_CALIBRATION, AUTO_ENGINES
from rooflines.hardware.chip_catalogue import base_chips
from rooflines.hardware.entries import MAIN_MEMORY, Efficiency
from rooflines.hardware.entry_forms import Entry, Name

MAX_PART_ROWS = 2**31

ALL_COLUMNS, CORE = COLUMN_SETS = ("all", "core")
"""Metrics of a table: all, or a list with a name."""


NO_FLOATS = {
    "floats": "is gone: tables store Float64; fewer metrics, such as `columns: core`, save bytes"
}
"""Keys of a sweep that earlier versions had, and what a message says of them."""

Compression = Annotated[
    Literal["zstd", "lz4"],
    Field(description="compression of the table's files; lz4 is faster to write, and larger"),
]


def _chips(value: object) -> object:
    return base_chips() if value == "all" else as_list(value)


def _auto_alone(names: list[str] | None) -> list[str] | None:
    """Software of a calibration; `auto` has no other beside it."""
    if names and AUTO_CALIBRATION in names and len(names) > 1:
        named = ", ".join(name for name in names if name != AUTO_CALIBRATION)
        problem = f"has {AUTO_CALIBRATION} beside {named}"
        raise RooflinesError("", problem, f"write {AUTO_CALIBRATION} alone, or {named}")
    return names


def _measured_number(text: object) -> object:
    """Measured number as typed, with a known unit."""
    measured_value(text)
    return text


def _list_metrics(schema: dict[str, Any], sweep: type[SweepKeys]) -> None:
    """Put the names of the metrics that a table can have into the JSON Schema."""
    metrics = {"type": "array", "items": {"enum": sweep.metrics}, "uniqueItems": True}
    schema["properties"]["columns"]["anyOf"] = [{"enum": list(COLUMN_SETS)}, metrics]


MeasuredNumbers = Annotated[
    str, BeforeValidator(_measured_number), WithJsonSchema({"type": "string"})
]


class SweepKeys(Entry):
    """Chips of a sweep, and the storage of its table.

    Attributes:
        metrics: What `columns` can name.
        core: What `core` stands for there.
    """

    model_config = ConfigDict(json_schema_extra=_list_metrics)

    removed_keys = NO_FLOATS

    metrics: ClassVar[tuple[str, ...]]
    core: ClassVar[tuple[str, ...]]

    chips: Annotated[
        list[str],
        BeforeValidator(_chips),
        WithJsonSchema({"anyOf": [{"const": "all"}, one_or_many({"type": "string"})]}),
    ] = Field(
        description=(
            "chips in the catalogue or in `chips:`; all = every chip in the catalogue "
            "that is no variant"
        )
    )
    memory: Annotated[list[Name], Listed()] = Field(
        [MAIN_MEMORY], description="memory levels that feed the unit, one or several"
    )
    network: Annotated[
        list[list[Name]] | None, BeforeValidator(networks), WithJsonSchema(NETWORK_SCHEMA)
    ] = Field(
        None,
        description=(
            "interconnect, or two: [inner, outer]; a list of such lists for several; null: "
            "each chip's first"
        ),
    )
    efficiency: Efficiency | None = Field(
        None,
        description=(
            "shares of the nominal rates that are reached; a missing one is the chip's, else 1"
        ),
    )
    calibration: Annotated[list[Name] | None, Listed(), AfterValidator(_auto_alone)] = Field(
        [AUTO_CALIBRATION],
        validate_default=True,
        description=(
            "software whose calibration gives the estimates, one or several: the first that has "
            "one for the chip and compute dtype, or collective; auto: the chip's own calibration, "
            f"else the first of {', '.join(AUTO_ENGINES)} with a fit for the chip and all compute "
            "dtypes, with its all-reduce, other collectives by NCCL; null: no estimates"
        ),
    )
    measured: Annotated[list[MeasuredNumbers] | None, Listed()] = Field(
        None,
        description=(
            "measured numbers to judge, one for each row, in the order of rows: 250us, 1397tok/s, "
            "9500tok/s/gpu, 41%mfu; the table then has them as times, over the bound and the "
            "estimate, and the MFU"
        ),
    )
    on_unsupported: Literal["skip", "error"] = Field(
        "skip",
        description=(
            "response to a chip without the dtype, memory level or network: list it in "
            "skipped.csv, or refuse the run"
        ),
    )
    columns: list[str] | Literal["all"] = Field(
        "all",
        description="metrics to store: all, a list, or core, which is work, times, t_lower_s, "
        "bound and fits; keys are always stored",
    )
    rows_per_part: Annotated[
        int,
        BeforeValidator(lambda value: whole(value, maximum=MAX_PART_ROWS)),
        WithJsonSchema({**COUNT_SCHEMA, "maximum": MAX_PART_ROWS}),
    ] = Field(
        5_000_000,
        description=(
            "most rows in one part; a larger sweep is cut into parts, each with its own job [1]"
        ),
    )
    compression: Compression = "zstd"

    @field_validator("columns", mode="before")
    @classmethod
    def _known_metrics(cls, value: object) -> object:
        """Metrics in the table: all, or a list."""
        if value in COLUMN_SETS:
            return value if value == ALL_COLUMNS else list(cls.core)
        fix = f"use some of {', '.join(cls.metrics)}"
        if not isinstance(value, list):
            close = close_to(value, [*COLUMN_SETS, *cls.metrics]) if isinstance(value, str) else ()
            fix = f"write all, core, or a list: {fix}"
            raise RooflinesError("", f"is {quote(value)}", fix, value=value, close=close)
        check_choices(value, cls.metrics, "no metric of the table", fix)
        return unique(value)
