"""Keys that sweeps of operations and of models share, typed and described once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from rooflines.basics.errors import RooflinesError, check_known, close_to, quote
from rooflines.basics.numbers import whole
from rooflines.catalogue.chips import base_chips
from rooflines.catalogue.entries import Efficiency
from rooflines.catalogue.forms import Name
from rooflines.settings.lists import (
    COUNT_SCHEMA,
    NETWORK_SCHEMA,
    Listed,
    as_list,
    names,
    networks,
    one_or_many,
    unique,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

LARGEST_PART = 2**31

ALL, CORE = COLUMN_SETS = ("all", "core")
"""Metrics of a table: all, or a list with a name."""

NO_FLOATS = {
    "floats": "is gone: tables store Float64; fewer metrics, such as `columns: core`, save bytes"
}
"""Keys of a sweep that earlier versions had, and what a message says of them."""


STORED_METRICS = (
    "metrics to store: all, a list, or core, a list of works, times, bound and fits; keys are "
    "always stored"
)
"""What the key `columns` of a sweep says."""


def metrics_in(known: Sequence[str], core: Sequence[str]) -> Callable[[object], object]:
    """A validator of the metrics that a table stores: `all`, or a list, which `core` names.

    Args:
        known: The metrics of the table. The validator raises a `RooflinesError` for others.
        core: The metrics that `core` stands for.
    """
    fix = f"use some of {', '.join(known)}"

    def checked(value: object) -> object:
        if value in COLUMN_SETS:
            return value if value == ALL else list(core)
        if not isinstance(value, list):
            close = close_to(value, [*COLUMN_SETS, *known]) if isinstance(value, str) else ()
            problem = f"is {quote(value)}"
            raise RooflinesError("", problem, f"write all, core, or a list: {fix}", close=close)
        check_known(value, known, "no metric of the table", fix)
        return unique(value)

    return checked


def metrics_schema(known: Sequence[str]) -> dict[str, Any]:
    """The JSON Schema of the metrics that a table stores."""
    some = {"type": "array", "items": {"enum": list(known)}, "uniqueItems": True}
    return {"anyOf": [{"enum": list(COLUMN_SETS)}, some]}


def _chips(value: object) -> object:
    return base_chips() if value == "all" else names(as_list(value))


Chips = Annotated[
    list[str],
    BeforeValidator(_chips),
    WithJsonSchema({"anyOf": [{"const": "all"}, one_or_many({"type": "string"})]}),
    Field(
        description=(
            "chips of the catalogue or of `chips:`; all = every chip of the catalogue "
            "that is no variant"
        )
    ),
]
MemoryLevels = Annotated[
    list[Name],
    Listed(),
    Field(description="the memory level that feeds the unit, one or several"),
]
Calibrated = Annotated[
    list[Name] | None,
    Listed(),
    Field(
        description=(
            "software whose calibration gives the estimates, one or several: the first that has "
            "one for the chip and compute dtype, or collective; null: the chip's own calibration"
        )
    ),
]
Routes = Annotated[
    list[list[Name]] | None,
    BeforeValidator(networks),
    WithJsonSchema(NETWORK_SCHEMA),
    Field(
        description=(
            "the interconnect, or two: [inner, outer]; a list of such lists for several; null: "
            "each chip's first"
        )
    ),
]
Reached = Annotated[
    Efficiency | None,
    Field(
        description=(
            "shares of the nominal rates that are reached; what is left out is the "
            "chip's own, else 1"
        )
    ),
]
OnUnsupported = Annotated[
    Literal["skip", "error"],
    Field(
        description=(
            "what happens where a chip lacks the dtype, level or link: rows are listed "
            "in skipped.csv, or the run is refused"
        )
    ),
]
RowsPerPart = Annotated[
    int,
    BeforeValidator(lambda value: whole(value, largest=LARGEST_PART)),
    WithJsonSchema({**COUNT_SCHEMA, "maximum": LARGEST_PART}),
    Field(
        description=(
            "rows of one part at most; a larger sweep is cut into parts, each a job of its own [1]"
        )
    ),
]
Compression = Annotated[
    Literal["zstd", "lz4"],
    Field(description="of the table's files; lz4 takes less time to write and more bytes"),
]
