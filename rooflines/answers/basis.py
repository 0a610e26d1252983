"""Answer basis: the time behind its headline, rates, cost and rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooflines.dictionary.columns import ESTIMATE_SUFFIX, SERIAL_SUFFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
