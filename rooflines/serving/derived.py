"""Tables of core columns of whole models: the columns left out, as SQL of those stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.models.shape import DECODE, PREFILL
from rooflines.serving.formulas import (
    FOOTPRINT,
    KERNEL_UPPER,
    MEMORY,
    REQUEST_TIMES,
    StepInputs,
    per_token,
)
from rooflines.serving.rows import cost_columns, reached_columns
from rooflines.sweep.derived import by_keys, from_sql
from rooflines.sweep.metrics import Formula

if TYPE_CHECKING:
    from rooflines.serving.sweep import ModelSweep

OF_CHIPS = ("chip", "chips")
"""The keys that prices, powers and efficiencies depend on."""


def derived_of_steps(sweep: ModelSweep) -> dict[str, str]:
    """The columns of steps or requests that follow from others of their row.

    Args:
        sweep: The sweep; the formulas hold for its chips and splits.

    Returns:
        SQL by column.
    """
    formulas = {
        **(REQUEST_TIMES if sweep.config.requests else {}),
        "memory_bytes": MEMORY,
        "footprint_bytes": FOOTPRINT,
        **per_token(_inputs(sweep)),
    }
    return {name: formula.sql for name, formula in formulas.items()}


def derived_of_kernels() -> dict[str, str]:
    """The columns of kernels that follow from others of their row, as SQL by column."""
    return {"memory_bytes": MEMORY.sql, "t_upper_s": KERNEL_UPPER.sql}


def _inputs(sweep: ModelSweep) -> StepInputs:
    """What metrics per token read, from the keys of a row."""
    cases = [case for block in sweep.blocks for case in block.cases]
    keys = [(case.chip, case.split.chips) for case in cases]
    values = {**cost_columns(sweep, cases), **reached_columns(cases)}

    def constant(name: str) -> Formula:
        return from_sql(by_keys(OF_CHIPS, dict(zip(keys, values[name], strict=True))))

    return StepInputs(
        tokens=_tokens(sweep),
        usd_per_s=constant("#usd_per_s"),
        watts=constant("#watts"),
        math_reached=constant("#reached_math"),
        memory_reached=constant("#reached_memory"),
    )


def _tokens(sweep: ModelSweep) -> Formula:
    """Tokens of a step [1]."""
    decode = _real("B") * _real("T") if sweep.new_tokens else _real("B")
    prefill = _real("B") * _real("S")
    if PREFILL not in sweep.config.phase:
        return decode
    if DECODE not in sweep.config.phase:
        return prefill
    sql = f"CASE WHEN phase = '{PREFILL}' THEN {prefill.sql} ELSE {decode.sql} END"
    return from_sql(sql)


def _real(name: str) -> Formula:
    """A column of whole numbers as Float64."""
    return Formula(pl.col(name).cast(pl.Float64), f"CAST({name} AS DOUBLE)")
