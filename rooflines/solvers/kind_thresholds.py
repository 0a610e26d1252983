"""Kernel thresholds: sizes along a letter at which math takes as long as memory."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.dictionary.columns import ALWAYS
from rooflines.evaluation.compiler import key_columns
from rooflines.theory.resources import MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.sweep.axes import Axis
    from rooflines.sweep.kernel_sweep import KernelSweep, KindCase

Sizes = dict[str, int]

SHARE = 1.0
"""Share of the attainable peak that is solved for [1]."""


def kernel_thresholds(sweep: KernelSweep, axis: str) -> Iterator[pl.DataFrame]:
    """Yield kernel thresholds along a letter, exact: a row for each case and all other sizes.

    Args:
        sweep: The sweep.
        axis: The letter.

    Yields:
        The columns of thresholds. The letter itself is null, but where its sizes tell how many
        tokens are before it.
    """
    axes = sweep.sizes_along(axis)
    points = list(_points(axes))
    given = {name for size_axis in axes for name in size_axis.columns}
    letters = [name for name in sweep.kind.letters if name in given or _is_set(sweep, name, axis)]
    sizes = {letter: _column(sweep, letter, points, axis) for letter in letters}
    for case in sweep.cases:
        keys = key_columns([case]).items()
        constants = {name: pl.lit(values[0], dtype=values.dtype) for name, values in keys}
        frame = pl.DataFrame({**sizes, **_solutions(case, axis, points)}, schema_overrides=TYPES)
        yield frame.with_columns(**constants, axis=pl.lit(axis), share=SHARE)


TYPES: Mapping[str, Any] = {
    **dict.fromkeys(("critical_exact", "limit_intensity"), pl.Float64),
    **dict.fromkeys(("critical", f"critical_{MEMORY.name}"), pl.Int64),
}
"""Types of columns that may have nulls alone."""


def _points(axes: Sequence[Axis]) -> Iterator[Sizes]:
    """Sizes at every point in a product of axes, the last axis fastest."""
    for indices in product(*(range(axis.count) for axis in axes)):
        yield {
            name: values[index]
            for axis, index in zip(axes, indices, strict=True)
            for name, values in axis.columns.items()
        }


def _is_set(sweep: KernelSweep, letter: str, axis: str) -> bool:
    """True if a letter has a default that does not follow the one that is solved for."""
    defaults = sweep.form.defaults
    is_absent = letter in sweep.kind.optional or letter not in defaults
    return not is_absent and not sweep.form.depends_on(letter, axis)


def _column(sweep: KernelSweep, letter: str, points: Sequence[Sizes], axis: str) -> list[int]:
    """One letter's sizes at all points [1]."""
    if letter in points[0]:
        return [point[letter] for point in points]
    start = {axis: sweep.first_sizes[axis]} if axis in sweep.first_sizes else {}
    return [int(sweep.form.complete({**start, **point})[letter]) for point in points]


def _solutions(case: KindCase, axis: str, points: Sequence[Sizes]) -> dict[str, list[Any]]:
    """Solutions at all points, by column; points that differ by scale alone are solved once."""
    sweep, placed = case.sweep, case.placed
    start = {axis: sweep.first_sizes[axis]} if axis in sweep.first_sizes else {}
    alike = [name for name in points[0] if name != axis and sweep.form.scales_with(name)]
    solved: dict[tuple[int, ...], dict[str, Any]] = {}
    rows = []
    for point in points:
        key = tuple(size for name, size in point.items() if name not in alike)
        if key not in solved:
            sizes = {**start, **point}
            critical = placed.critical(axis, sizes)
            is_bound, size = critical.outcome == ALWAYS, critical.critical
            if is_bound and size is None and not critical.largest:
                size = placed.limits(axis, sizes)[0]
            solved[key] = {
                "outcome": critical.outcome,
                "critical_exact": critical.real,
                "critical": size,
                f"critical_{MEMORY.name}": size,
                "limit": None if is_bound else MEMORY.bound,
                "limit_intensity": None if is_bound else critical.limit_intensity,
            }
        rows.append(solved[key])
    return {name: [row[name] for row in rows] for name in rows[0]}
