"""Tables of core columns: what they leave out, and how it follows from what they store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.columns import Column
from rooflines.model.resources import MATH, RESOURCES
from rooflines.sweep.metrics import Formula, attained, column, intensity, upper, utilization

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.sweep.sweep import Sweep

__all__ = ["DerivedColumn", "derived"]


@dataclass(frozen=True)
class DerivedColumn(Column):
    """A column that the files of a table leave out.

    Attributes:
        sql: How it follows from the stored columns, as SQL.
    """

    sql: str = ""


def derived(sweep: Sweep) -> dict[str, str]:
    """The columns that follow from others of their row.

    Args:
        sweep: The sweep; the formulas hold for its chips.

    Returns:
        SQL by column, of core columns only.
    """
    variants = [
        (chip_rows.chip, variant.dtypes, sweep.target(chip_rows, variant))
        for chip_rows, variant in sweep.chip_variants
    ]
    peak = _peak({(chip, dtypes): float(target.peak) for chip, dtypes, target in variants})
    nominal = all(target.efficiency[MATH.name] == 1 for *_, target in variants)
    share = utilization(None if nominal else peak)
    formulas = {
        **({} if sweep.tile else {"footprint_bytes": column("memory_bytes")}),
        "t_upper_s": upper(RESOURCES),
        **{f"{r.name}_intensity": intensity(r, always=False) for r in RESOURCES if r is not MATH},
        "attained_flops_per_s": attained(share, peak),
        "utilization": share,
    }
    return {name: formula.sql for name, formula in formulas.items()}


def _peak(peaks: Mapping[tuple[str, str], float]) -> Formula:
    """The nominal peak of a row [FLOP/s], from those by chip and dtypes."""
    by_chip: dict[str, dict[str, str]] = {}
    for (chip, dtypes), peak in peaks.items():
        number = repr(peak)  # without an exponent, SQL reads it as a decimal number
        by_chip.setdefault(chip, {})[dtypes] = number if "e" in number else f"{number}e0"
    sql = _case("chip", {chip: _case("dtypes", each) for chip, each in by_chip.items()})
    return Formula(pl.sql_expr(sql), sql)


def _case(key: str, values: Mapping[str, str]) -> str:
    """SQL of a value by the value of a key; one that is the same for all needs no key."""
    keys: dict[str, list[str]] = {}
    for name, value in values.items():
        keys.setdefault(value, []).append(_quoted(name))
    if len(keys) == 1:
        return next(iter(keys))
    whens = (f"WHEN {key} IN ({', '.join(names)}) THEN {value}" for value, names in keys.items())
    return f"CASE {' '.join(whens)} END"


def _quoted(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"
