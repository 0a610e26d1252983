"""Answer basis: the time behind its headline, rates, cost and rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rooflines.dictionary.columns import ESTIMATE_SUFFIX, SERIAL_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, MutableMapping

    from rooflines.sweep.exact_times import StepSeconds


@dataclass(frozen=True)
class Basis:
    """Time that an answer leads with.

    Attributes:
        key: Value of `basis` in JSON.
        column: Column with the time [s].
        suffix: Suffix for columns with rates at this time.
        title: Column title in a table.
        noun: Name in a sentence.
    """

    key: str
    column: str
    suffix: str
    title: str
    noun: str


ESTIMATE_BASIS = Basis("estimate", "t_estimate_s", ESTIMATE_SUFFIX, "estimate", "estimate")
SERIALIZED_BASIS = Basis("serialized", "t_serial_s", SERIAL_SUFFIX, "serialized", "serialized time")
BOUND_BASIS = Basis("bound", "t_lower_s", "", "at least", "bound")
MIXED_BASIS = Basis("mixed", "t_basis_s", "_basis", "time", "time on its basis")
"""Estimates beside serialized times, in a table with a column of the basis."""

BASIS, BASIS_RATES = "basis", ("tokens_per_s", "tokens_per_s_per_chip", "mfu", "usd_per_mtok")
"""Column with the basis of a row, and rates that each row has on its own."""


def time_on(basis: Basis, times: StepSeconds) -> float | None:
    """Step time on a basis [s]; None: the step has no estimate."""
    if basis is BOUND_BASIS:
        return times.lower
    return times.estimate if basis is ESTIMATE_BASIS else times.serial


def basis_of(rows: Iterable[Mapping[str, object]], *, bound: bool = False) -> Basis:
    """Basis for rows that are compared: the estimate where all have one.

    Args:
        rows: Rows in one table.
        bound: True to lead with the bound.

    Returns:
        Without an estimate for every row, steps lead with their serialized time and operations,
        which are one kernel, with their bound.
    """
    listed = [*rows]
    if bound:
        return BOUND_BASIS
    if all(row.get(ESTIMATE_BASIS.column) is not None for row in listed):
        return ESTIMATE_BASIS
    return (
        SERIALIZED_BASIS if all(SERIALIZED_BASIS.column in row for row in listed) else BOUND_BASIS
    )


def row_basis(row: Mapping[str, object], basis: Basis) -> Basis:
    """Basis of one row: in a mixed table, that in its column.

    Args:
        row: Row with `basis`, where the table is mixed.
        basis: The table's basis.
    """
    if basis is not MIXED_BASIS:
        return basis
    return ESTIMATE_BASIS if row[BASIS] == ESTIMATE_BASIS.key else SERIALIZED_BASIS


def table_basis(rows: Iterable[MutableMapping[str, Any]], *, bound: bool = False) -> Basis:
    """Basis for rows of a table of steps; `MIXED_BASIS` where some have no estimate.

    Then each row gets its basis, the time and the rates on it.

    Args:
        rows: Rows in one table.
        bound: True to lead with the bound.
    """
    listed = [*rows]
    basis = basis_of(listed, bound=bound)
    estimated = [row.get(ESTIMATE_BASIS.column) is not None for row in listed]
    if basis is not SERIALIZED_BASIS or not any(estimated):
        return basis
    for row, is_estimated in zip(listed, estimated, strict=True):
        own_basis = ESTIMATE_BASIS if is_estimated else SERIALIZED_BASIS
        row[BASIS] = own_basis.key
        row[MIXED_BASIS.column] = row[own_basis.column]
        for name in BASIS_RATES:
            if f"{name}{own_basis.suffix}" in row:
                row[f"{name}{MIXED_BASIS.suffix}"] = row[f"{name}{own_basis.suffix}"]
    return MIXED_BASIS
