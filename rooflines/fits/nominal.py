"""Timings joined with their nominal quantities on a chip, and split by site."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.errors import Mistakes, RooflinesError, one_of, placed, quote
from rooflines.basics.text import counted
from rooflines.catalogue.chips import dtype_entries
from rooflines.catalogue.dtypes import Combination, combinations_of
from rooflines.catalogue.entries import MAIN_MEMORY, NamedCombination
from rooflines.fits.quantities import expressions, polynomials
from rooflines.fits.solving import with_folds
from rooflines.fits.timings import SIZES, medians
from rooflines.fits.units import check_units
from rooflines.model.costs import Workload
from rooflines.model.operation import NAMED as OPERATIONS
from rooflines.model.operation import OPERANDS
from rooflines.model.resources import MATH, RESOURCES
from rooflines.model.sharding import sharding
from rooflines.model.target import Target

if TYPE_CHECKING:
    from rooflines.catalogue.entries import Chip
    from rooflines.fits.timings import Timings

MATMUL = OPERATIONS["matmul"]

ROW = "B"
"""The dimension whose size counts in whole tiles."""

TILES = (64, 128)
"""Tiles of rows that a fit tries [1]."""

STORED = ("dtype_x", "dtype_w", "dtype_out")
"""The columns of the dtypes of `x`, `w` and `out`."""


def math_column(tile: int) -> str:
    """The column of the nominal time of the math with rows in whole tiles."""
    return "math" if tile == 1 else f"math_{tile}"


def with_nominal_times(
    timings: Timings, chip: str, entry: Chip, compute: str
) -> tuple[pl.DataFrame, Timings]:
    """Timings in one compute dtype with what a fit reads of them.

    Args:
        timings: Of one chip and software.
        chip: The chip's id.
        entry: Its entry.
        compute: The compute dtype.

    Returns:
        The sizes, `seconds`, the quantities of `form.Affine` by name, `math_<tile>` for each of
        `TILES`, `t_lower_s`, `bound` (compute or memory), `in_cache` (faster than the bound, and
        small enough for a cache), `fold` (the hash of its site); and the timings, with notes.

    Raises:
        RooflinesError: The chip has no peak in the compute dtype, a dtype is unknown, the unit of
            time is off, or there are too few timings or kinds of them.
    """
    peaks = entry.units.get(MATMUL.unit, {})
    with placed("compute"):
        one_of(compute, dtype_entries().formats, "no dtype")
        one_of(compute, peaks, f"no dtype that {chip} has a peak for")
    chosen = medians(timings.where("compute", compute), (*STORED, "compute", *SIZES))
    chosen.enough()
    target = nominal_target(entry, compute)
    parts = [
        _nominal(part, _workload(part.row(0, named=True)), target)
        for part in chosen.frame.partition_by(STORED, maintain_order=True)
    ]
    frame = pl.concat(parts)
    check_units(frame)
    _check_regimes(frame)
    frame = with_folds(frame.with_columns(in_cache=_in_cache(entry)))
    if cached := frame.filter("in_cache").height:
        reason = "faster than memory, they fit a cache"
        note = f"{counted(cached, 'timing')} left out: {reason}"
        chosen = replace(chosen, notes=(*chosen.notes, note))
    return frame, chosen


def nominal_target(entry: Chip, compute: str) -> Target:
    """One chip and its main memory, in a compute dtype that it has a peak for; no efficiencies."""
    return Target(
        entry.units[MATMUL.unit][compute].exact,
        entry.memory[MAIN_MEMORY].exact,
        None,
        sharding("none", MATMUL),
        {resource.name: Fraction(1) for resource in RESOURCES},
    )


def _workload(row: dict[str, str]) -> Workload:
    """The workload of the dtypes of a row."""
    names = dict(zip(OPERANDS, (row[name] for name in STORED), strict=True))
    formats = dtype_entries().formats
    with Mistakes() as mistakes:
        for operand, name in names.items():
            with mistakes.at(f"dtype_{operand}"):
                one_of(name, formats, "no dtype")
    stored: Combination
    (stored,) = combinations_of(
        [NamedCombination(**names, compute=row["compute"])], dtype_entries()
    ).values()
    return Workload(MATMUL, stored.bits, sharding("none", MATMUL), 1, (), {}, MATMUL.flops)


def _nominal(part: pl.DataFrame, workload: Workload, target: Target) -> pl.DataFrame:
    """The quantities of timings that share a workload."""
    of = polynomials(workload, target)
    tiled = {math_column(tile): expressions(of, ROW, tile)[MATH.name] for tile in TILES}
    return (
        part.select(*SIZES, "seconds", **expressions(of, ROW), **tiled)
        .with_columns(
            t_lower_s=pl.max_horizontal("math", "memory"),
            bound=pl.when(pl.col("math") >= pl.col("memory"))
            .then(pl.lit("compute"))
            .otherwise(pl.lit("memory")),
        )
        .with_columns(bytes=pl.col("memory") * float(target.level.bytes_per_s))
    )


def _in_cache(entry: Chip) -> pl.Expr:
    """Whether a timing beats the bound, and its operands fit the last-level cache."""
    cache = entry.last_level_cache
    fits = pl.col("bytes") < (cache.capacity_bytes if cache else 0)
    return (pl.col("seconds") < pl.col("t_lower_s")) & fits


def _check_regimes(frame: pl.DataFrame) -> None:
    """Refuse timings of which one resource bounds all."""
    bounds = frame["bound"].unique().to_list()
    if len(bounds) == 1:
        other = {"compute": "smaller", "memory": "larger"}[bounds[0]]
        problem = f"has no timings but {quote(bounds[0])}-bound ones: they tell one rate of two"
        raise RooflinesError(ROW, problem, f"add timings with {other} B")
