"""Kernel sweep keys: attention, experts, norms and other kinds; chains of them; collectives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, field_validator, model_validator

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, quote
from rooflines.config.axis_sizes import SIZES_SCHEMA, Grid, checked_grid
from rooflines.config.lists import SHARDS_SCHEMA, Listed, numbers_of_chips
from rooflines.config.sweep_fields import SweepKeys
from rooflines.dictionary.columns import CORE_METRICS, KERNEL_SWEEP_METRICS
from rooflines.fits.calibration_files import AUTO_CALIBRATION
from rooflines.hardware.entry_forms import NAME_SCHEMA, Text
from rooflines.kinds.collectives import (
    COLLECTIVE_MEANINGS,
    COLLECTIVE_SYNONYMS,
    PAYLOAD,
    payload_bytes,
)
from rooflines.kinds.kernel_forms import DEFAULT_FORMAT
from rooflines.kinds.kind_names import FUSED, SEQUENCE
from rooflines.kinds.kind_table import BY_NAME, KINDS
from rooflines.kinds.placed_kernels import EXPONENTIALS
from rooflines.kinds.timed_kernels import TIMED_KINDS
from rooflines.theory.resources import RESOURCES

BOUND_RESOURCES = tuple(resource.name for resource in RESOURCES)
"""Resources in every bound."""


def _formats(value: object) -> object:
    """Format for every role, or formats by role."""
    if isinstance(value, str | Mapping):
        return value
    fix = "write a format such as bf16, or formats by role such as {x: bf16, cache: fp8}"
    raise RooflinesError("", f"is {quote(value)}, which is no dtype", fix, value=value)


KernelDtypes = Annotated[
    str | dict[str, Any],
    BeforeValidator(_formats),
    WithJsonSchema(
        {"anyOf": [NAME_SCHEMA, {"type": "object", "additionalProperties": NAME_SCHEMA}]}
    ),
]
"""Kernel dtypes: one format, or formats by role."""


class KernelKeys(SweepKeys):
    """Kernel sweep: one table with every combination.

    Attributes:
        timed: Whether calibrations cover the kernel.
        uses_network: Whether the kernel sends anything.
    """

    metrics = tuple(column.name for column in KERNEL_SWEEP_METRICS)
    core = CORE_METRICS

    @property
    def timed(self) -> bool:
        """True if calibrations time such kernels."""
        return False

    @property
    def uses_network(self) -> bool:
        """True if chips send each other anything."""
        return False

    @model_validator(mode="after")
    def _nothing_is_ignored(self) -> Self:
        """Refuse keys that have no effect."""
        with Mistakes() as mistakes:
            if self.network is not None and not self.uses_network:
                with mistakes.at("network"):
                    problem = "has no effect on kernels, whose rows are of one chip"
                    raise RooflinesError("", problem, "leave it out")
            if self.calibration not in (None, [AUTO_CALIBRATION]) and not self.timed:
                with mistakes.at("calibration"):
                    problem = "has no effect: no fit times such kernels, whose rows are bounds"
                    raise RooflinesError("", problem, "leave it out")
        return self

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The sweep as JSON, defaults filled in."""
        return self.model_dump()


class OneChipKeys(KernelKeys):
    """Kernels on one chip: sizes, dtypes, resources and thresholds."""

    grid: Grid = Field(
        description=(
            "sizes by letter of the kind; every combination is a row, letters left out have the "
            "kind's defaults"
        ),
        json_schema_extra={"additionalProperties": SIZES_SCHEMA},
    )
    dtypes: Annotated[list[KernelDtypes], Listed()] = Field(
        [DEFAULT_FORMAT],
        description=(
            "one format for all roles of the kind, or formats by role, such as {x: bf16, cache: "
            "fp8, out: bf16, compute: bf16}; one or several"
        ),
    )
    thresholds: Annotated[list[str] | None, Listed(may_be_empty=True)] = Field(
        None,
        description=(
            "letters to solve for; [] for nothing; null: the first one on which the intensity "
            "depends"
        ),
    )
    resources: list[Literal["math", "memory", "network", "exp"]] = Field(
        ["math", "memory", "network"],
        description=(
            "resources of the bound: add exp to count exponentials at the rate of the special "
            "function unit, on chips with a sourced one"
        ),
    )

    @property
    def counts_exp(self) -> bool:
        """True if exponentials enter the bound."""
        return EXPONENTIALS in self.resources

    @field_validator("resources", mode="after")
    @classmethod
    def _all_resources(cls, names: list[str]) -> list[str]:
        """Refuse to leave out a resource that every bound has."""
        if missing := [name for name in BOUND_RESOURCES if name not in names]:
            problem = f"lacks {', '.join(missing)}: without it the time is no bound of the model"
            raise RooflinesError("", problem, "write [math, memory, network], and exp if you want")
        return names


class KernelSweepConfig(OneChipKeys):
    """Kernel sweep over one kind: one table with every combination."""

    operation: Annotated[Text, WithJsonSchema({"enum": [*BY_NAME]})] = Field(
        description=f"kind of kernel: {', '.join(KINDS)}; see `rooflines list kernels`"
    )
    options: dict[str, Any] = Field(
        {},
        description=(
            "options of the kind, such as {phase: decode, mask: causal} or {backward: true}; "
            "without one the kind's first"
        ),
    )

    @property
    def timed(self) -> bool:
        """True if calibrations time such kernels."""
        return BY_NAME[self.operation.lower().replace("_", "-")].name in TIMED_KINDS


def _links(value: object) -> object:
    """Chain kinds as a list."""
    if value is None or (isinstance(value, list) and all(isinstance(v, str) for v in value)):
        return value
    if isinstance(value, str):
        sign = SEQUENCE if SEQUENCE in value else FUSED
        return [part.strip() for part in value.split(sign)]
    fix = "write a list of kinds, such as [add, rmsnorm residual, quantise]"
    raise RooflinesError("", f"is {quote(value)}, which is no list of kinds", fix, value=value)


Links = Annotated[list[str] | None, BeforeValidator(_links)]
"""Chain kinds, each with its flags."""


class ChainSweepConfig(OneChipKeys):
    """Kernel sweep over a chain: kinds that run as one fused kernel, or one after another."""

    operation: Links = Field(
        None,
        description=(
            "kinds that run as one fused kernel, such as [add, rmsnorm, quantise] or "
            "[matmul, bias, swiglu]; each reads the result before it"
        ),
    )
    sequence: Links = Field(
        None,
        description=(
            "kinds that run one after another, such as [rmsnorm, matmul, swiglu, matmul]; in "
            "place of operation"
        ),
    )

    @model_validator(mode="after")
    def _one_chain(self) -> Self:
        """Refuse a fused kernel beside a sequence, and a chain without kinds."""
        if self.operation and self.sequence:
            problem = "is given beside operation, a fused kernel"
            raise RooflinesError("sequence", problem, "leave one of them out")
        if not (self.operation or self.sequence):
            key = "sequence" if self.sequence is not None else "operation"
            raise RooflinesError(key, "has no kinds", "write such as [rmsnorm, matmul]")
        return self

    @property
    def fused(self) -> bool:
        """True for one fused kernel."""
        return bool(self.operation)

    @property
    def links(self) -> list[str]:
        """Kinds with their flags, in order."""
        return self.operation or self.sequence or []


def _payloads(value: object) -> object:
    """Grid with payloads in bytes: 64MiB, 64MB or 64M may be written."""
    grid = checked_grid(value)
    if not isinstance(grid, Mapping) or PAYLOAD not in grid:
        return grid

    def number(written: object) -> object:
        if isinstance(written, list):
            return [*map(number, written)]
        if isinstance(written, Mapping):
            return {key: number(part) for key, part in written.items()}
        return payload_bytes(written) if isinstance(written, str) else written

    with at_path(PAYLOAD):
        return {**grid, PAYLOAD: number(grid[PAYLOAD])}


class CollectiveSweepConfig(KernelKeys):
    """Kernel sweep over a collective between chips: payloads, chip counts and networks."""

    operation: Annotated[
        Text, WithJsonSchema({"enum": [*COLLECTIVE_MEANINGS, *COLLECTIVE_SYNONYMS]})
    ] = Field(description=f"collective: {', '.join(COLLECTIVE_MEANINGS)}")
    grid: Annotated[Grid, BeforeValidator(_payloads)] = Field(
        description=(
            "payload as {bytes: }: the whole tensor, in an all-to-all what one chip holds; a "
            "number, 64M or 64MiB (67,108,864), or 64MB (64,000,000) [byte]"
        ),
        json_schema_extra={
            "additionalProperties": {
                "anyOf": [SIZES_SCHEMA, {"type": ["string", "array", "object"]}]
            }
        },
    )
    shards: Annotated[
        list[int | str], BeforeValidator(numbers_of_chips), WithJsonSchema(SHARDS_SCHEMA)
    ] = Field(
        description=(
            "numbers of chips, each at least 2, or products along torus axes such as 4x4; a plain "
            "number is one axis [1]"
        ),
    )
    thresholds: Annotated[list[str] | None, Listed(may_be_empty=True)] = Field(
        None,
        description=(
            "bytes, null: solve for the smallest payload whose bytes take as long as the hops; [] "
            "for nothing"
        ),
    )

    @property
    def timed(self) -> bool:
        """True: calibrations time collectives."""
        return True

    @property
    def uses_network(self) -> bool:
        """True: chips send each other the payload."""
        return True
