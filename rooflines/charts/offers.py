"""What a sweep offers to charts: sizes, shapes, and what else a reader can choose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, check_known

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.sweep.step_sweep import ModelSweep
    from rooflines.sweep.sweep import Sweep

TWO = 2

CASE = ("chip", "software", "dtypes")
"""What timings in one picture have in common."""

NO_SOFTWARE = "software not stated"
"""The software of timings that do not state it."""

LONG_AXIS, SHORT_AXIS = 8, 3
"""Fewest sizes of an axis for a curve, and for the side of a table [1]."""


def sizes_of(sweep: Sweep, dim: str) -> list[int]:
    """The sizes that a dimension takes."""
    return sorted(
        {value for axis in (*sweep.leading, *sweep.inner) for value in axis.columns.get(dim, ())}
    )


def has_axis(sweep: Sweep, dim: str) -> bool:
    """Whether a dimension has an axis of its own."""
    return any(set(axis.columns) == {dim} for axis in (*sweep.leading, *sweep.inner))


def lead_of(sweep: Sweep) -> str:
    """The dimension that tables of bottlenecks run over.

    The first one that has an axis of its own, a long one, and thresholds; where none has, of these
    the one with most of the three, in this order.
    """

    def suits(dim: str) -> tuple[bool, ...]:
        long = len(sizes_of(sweep, dim)) >= LONG_AXIS
        return has_axis(sweep, dim), long, dim in sweep.solved

    return max(sweep.op.dims, key=suits)


def curved_of(sweep: Sweep) -> str:
    """The dimension that curves with critical sizes run over: as `lead_of`, thresholds first."""

    def suits(dim: str) -> tuple[bool, ...]:
        return has_axis(sweep, dim), dim in sweep.solved, len(sizes_of(sweep, dim)) >= LONG_AXIS

    return max(sweep.op.dims, key=suits)


def pair_of(sweep: Sweep) -> list[str]:
    """The dimensions beside the first that have several sizes; all where these are two."""
    others = sweep.op.dims[1:]
    return [dim for dim in others if len(others) == TWO or len(sizes_of(sweep, dim)) > 1]


def shape_names(sweep: Sweep) -> list[str]:
    """The names of a sweep's shapes."""
    return [shape.name for shape in sweep.config.shapes or []]


def check_asked(sweep: Sweep, **asked: str | Sequence[Any] | None) -> None:
    """Refuse choices of a chart that its sweep does not offer.

    Args:
        sweep: The sweep.
        asked: A name, or a list of names or numbers; None is no choice.

    Raises:
        RooflinesError: The sweep does not offer one; key paths are the names of the arguments.
    """
    offered: Mapping[str, tuple[Sequence[Any], str]] = {
        "chips": (list(sweep.rows_by_chip()), "no chip of"),
        "dtypes": (list(sweep.combinations), "no dtype combination of"),
    }
    _check_offered(asked, offered, sweep.name)


def dtypes_by_chip(sweep: ModelSweep) -> dict[str, set[str]]:
    """The dtypes of each chip of a sweep of whole models that has a known memory capacity."""
    by_chip: dict[str, set[str]] = {}
    for case in (case for block in sweep.blocks for case in block.cases):
        if case.machine.level.capacity_bytes is not None:
            by_chip.setdefault(case.chip, set()).add(case.dtypes.label)
    return {chip: by_chip[chip] for chip in sweep.config.chips if chip in by_chip}


def check_asked_of_models(sweep: ModelSweep, **asked: str | Sequence[Any] | None) -> None:
    """Refuse choices of a chart that its sweep of whole models does not offer.

    Args:
        sweep: The sweep.
        asked: A name, or a list of names or numbers; None is no choice.

    Raises:
        RooflinesError: The sweep does not offer one; key paths are the names of the arguments.
    """
    by_chip = dtypes_by_chip(sweep)
    every = set().union(*by_chip.values())
    offered: Mapping[str, tuple[Sequence[Any], str]] = {
        "chips": (list(by_chip), "no chip with a known memory capacity of"),
        "dtypes": ([name for name in sweep.combinations if name in every], "no dtypes of"),
        "model": (list(sweep.models), "no model of"),
        "sizes": (sweep.contexts, "no context of"),
    }
    _check_offered(asked, offered, sweep.name)


def _check_offered(
    asked: Mapping[str, str | Sequence[Any] | None],
    offered: Mapping[str, tuple[Sequence[Any], str]],
    sweep: str,
) -> None:
    with Mistakes() as mistakes:
        for name, values in asked.items():
            with mistakes.at(name):
                known, what = offered[name]
                check_known(values, known, f"{what} sweep {sweep}")


def unsupported(chips: Sequence[str], dtypes: Sequence[str]) -> RooflinesError:
    """The error for dtypes that none of the chips supports."""
    names, asked = ", ".join(chips) or "no chip", ", ".join(dtypes) or "none"
    problem = f"are {asked}, of which {names} can do none"
    return RooflinesError(
        "dtypes", problem, "name a dtype combination that one of the chips can do"
    )
