"""Kernel sweep keys: attention, experts, norms and the other kinds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from rooflines.basics.errors import Mistakes, RooflinesError, quote
from rooflines.config.axis_sizes import SIZES_SCHEMA, Grid
from rooflines.config.lists import Listed
from rooflines.config.sweep_fields import SweepKeys
from rooflines.dictionary.columns import CORE_METRICS, KERNEL_SWEEP_METRICS
from rooflines.fits.calibration_files import AUTO_CALIBRATION
from rooflines.hardware.entry_forms import NAME_SCHEMA, Text
from rooflines.kinds.kernel_forms import DEFAULT_FORMAT
from rooflines.kinds.kind_table import BY_NAME, KINDS


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


class KernelSweepConfig(SweepKeys):
    """Kernel sweep: one table with every combination."""

    metrics = tuple(column.name for column in KERNEL_SWEEP_METRICS)
    core = CORE_METRICS

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

    @model_validator(mode="after")
    def _nothing_is_ignored(self) -> Self:
        """Refuse keys that have no effect on one chip's kernels, which no estimate covers here."""
        with Mistakes() as mistakes:
            for key, default in (("network", None), ("calibration", [AUTO_CALIBRATION])):
                if getattr(self, key) not in (None, default):
                    with mistakes.at(key):
                        problem = "has no effect on kernels, whose rows are bounds on one chip"
                        raise RooflinesError("", problem, "leave it out")
        return self

    @cached_property
    def plain(self) -> dict[str, Any]:
        """The sweep as JSON, defaults filled in."""
        return self.model_dump()
