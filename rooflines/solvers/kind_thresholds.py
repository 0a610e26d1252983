"""Kernel thresholds: sizes along a letter from which math takes the longest, and payloads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.dictionary.columns import ALWAYS, FOUND
from rooflines.evaluation.compiler import key_columns
from rooflines.kinds.collectives import PAYLOAD
from rooflines.kinds.placed_kernels import LIMIT_SIZE
from rooflines.sweep.kernel_sweep import grid_points
from rooflines.theory.resources import MATH, MEMORY, NETWORK

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.kinds.placed_kernels import Critical, PlacedKernel
    from rooflines.sweep.collective_sweep import CollectiveSweep
    from rooflines.sweep.kind_sweep import KindCase, KindSweep

Sizes = dict[str, int]

SHARE = 1.0
"""Share of the attainable peak that is solved for [1]."""


def kernel_thresholds(sweep: KindSweep, axis: str) -> Iterator[pl.DataFrame]:
    """Yield kernel thresholds along a letter, exact: a row for each case and all other sizes.

    Args:
        sweep: The sweep.
        axis: The letter.

    Yields:
        The columns of thresholds. The letter itself is null, but where its sizes tell how many
        tokens are before it.
    """
    axes = sweep.sizes_along(axis)
    points = list(grid_points(axes))
    given = {name for size_axis in axes for name in size_axis.columns}
    letters = [name for name in sweep.letters if name in given or _is_set(sweep, name, axis)]
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


def _is_set(sweep: KindSweep, letter: str, axis: str) -> bool:
    """True if a letter has a default that does not follow the one that is solved for."""
    defaults = sweep.form.defaults
    is_absent = letter in sweep.kind.optional or letter not in defaults
    return not is_absent and not sweep.form.depends_on(letter, axis)


def _column(sweep: KindSweep, letter: str, points: Sequence[Sizes], axis: str) -> list[int]:
    """One letter's sizes at all points [1]."""
    if letter in points[0]:
        return [point[letter] for point in points]
    start = {axis: sweep.first_sizes[axis]} if axis in sweep.first_sizes else {}
    return [int(sweep.form.complete({**start, **point})[letter]) for point in points]


def _against_memory(
    placed: PlacedKernel, axis: str, sizes: Sizes, critical: int | None
) -> int | None:
    """Critical size against memory alone [1].

    Args:
        placed: The kernel.
        axis: The letter.
        sizes: Sizes that are given [1].
        critical: Critical size against all resources [1].
    """
    alone = placed.memory_alone
    return critical if alone is placed else alone.critical(axis, sizes).critical


def _limit(placed: PlacedKernel, axis: str, sizes: Sizes, critical: Critical) -> str:
    """Bottleneck where the kernel is not compute-bound, beside the crossing."""
    size = critical.critical
    if size is None:
        low, high = placed.limits(axis, sizes)
        near = low if critical.largest else high or LIMIT_SIZE
    else:
        near = size + 1 if critical.largest else size - 1
    times = placed.by_bound(placed.times(placed.along(axis, sizes, near)))
    return max((bound for bound in times if bound != MATH.bound), key=lambda bound: times[bound])


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
                f"critical_{MEMORY.name}": _against_memory(placed, axis, sizes, size),
                "limit": None if is_bound else _limit(placed, axis, sizes, critical),
                "limit_intensity": None if is_bound else critical.limit_intensity,
            }
        rows.append(solved[key])
    return {name: [row[name] for row in rows] for name in rows[0]}


def collective_thresholds(sweep: CollectiveSweep) -> Iterator[pl.DataFrame]:
    """Yield payloads of a collective from which its bytes take as long as its hops, exact.

    Args:
        sweep: The sweep.

    Yields:
        The columns of thresholds, a row for each case.
    """
    payloads = [case.placed.bandwidth_bound_from() for case in sweep.cases]
    real = [float(case.placed.exact_payload()) for case in sweep.cases]
    size = pl.Series([payload or None for payload in payloads], dtype=pl.Int64)
    keys = key_columns(sweep.cases)
    if sweep.cases:
        yield pl.DataFrame(
            {
                **keys,
                "critical_exact": pl.Series([value or None for value in real], dtype=pl.Float64),
                "critical": size,
                f"critical_{NETWORK.name}": size,
            }
        ).with_columns(
            axis=pl.lit(PAYLOAD),
            share=SHARE,
            outcome=pl.when(pl.col("critical").is_null())
            .then(pl.lit(ALWAYS))
            .otherwise(pl.lit(FOUND)),
            limit=pl.when(pl.col("critical").is_not_null()).then(pl.lit(NETWORK.bound)),
        )
