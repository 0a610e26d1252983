"""Tables of core columns: what they leave out, and how it follows from what they store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.columns import Column
from rooflines.model.resources import MATH, OTHERS, RESOURCES
from rooflines.sweep.metrics import Formula, attained, column, intensity, upper, utilization

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.sweep.sweep import Sweep

Numbers = Mapping[tuple[str | int, ...], float | None]
"""A number by the values of key columns; None is null."""

ZERO = Formula(pl.lit(0.0), "0e0")


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
    peaks: Numbers = {(chip, dtypes): float(target.peak) for chip, dtypes, target in variants}
    peak = from_sql(by_keys(("chip", "dtypes"), peaks))
    nominal = all(target.efficiency[MATH.name] == 1 for *_, target in variants)
    # Computed row by row: polars divides by a constant inexactly, see `quotient`.
    by_row = peak + column(MATH.work) * ZERO
    share = utilization(None if nominal else by_row)
    by_sizes = {  # those of tiles are stored
        "footprint_bytes": column("memory_bytes"),
        "attained_flops_per_s": attained(share, peak),
        "utilization": share,
    }
    formulas = {
        "t_upper_s": upper(RESOURCES),
        **{f"{r.name}_intensity": intensity(r, always=False) for r in OTHERS},
        **({} if sweep.tile else by_sizes),
    }
    return {name: formula.sql for name, formula in formulas.items()}


def from_sql(sql: str) -> Formula:
    """A formula from its SQL."""
    return Formula(pl.sql_expr(sql), sql)


def by_keys(keys: Sequence[str], values: Numbers) -> str:
    """SQL of a number that depends on keys of a row; the number alone if it is the same for all.

    Args:
        keys: The columns.
        values: The number by the values of these columns.
    """
    if not keys:
        return _number(values[()])
    groups: dict[str | int, dict[tuple[str | int, ...], float | None]] = {}
    for (first, *others), value in values.items():
        groups.setdefault(first, {})[tuple(others)] = value
    sql = {first: by_keys(keys[1:], group) for first, group in groups.items()}
    return next(iter(sql.values())) if len(set(sql.values())) == 1 else _case(keys[0], sql)


def _case(key: str, values: Mapping[str | int, str]) -> str:
    """SQL of a value by the value of a key."""
    keys: dict[str, list[str]] = {}
    for name, value in values.items():
        keys.setdefault(value, []).append(_quoted(name) if isinstance(name, str) else str(name))
    whens = (f"WHEN {key} IN ({', '.join(names)}) THEN {value}" for value, names in keys.items())
    return f"CASE {' '.join(whens)} END"


def _number(value: float | None) -> str:
    """A number as SQL: with an exponent, without which it would be a decimal number."""
    if value is None:
        return "NULL"
    text = repr(value)
    return text if "e" in text else f"{text}e0"


def _quoted(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"
