"""Timings of matmuls with their nominal times, the fit of a chip's numbers to them, and its times.

A fit is of one chip, compute dtype and software.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import reduce
from operator import add, mul
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, one_of, quote
from rooflines.basics.text import counted
from rooflines.catalogue.dtypes import (
    NamedCombination,
    StoredDtypes,
    combinations_of,
    dtype_entries,
)
from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.fits.folds import held_out, held_out_below, with_folds
from rooflines.fits.form import Numbers, bound, estimate, nominal_quantities
from rooflines.fits.judge import with_errors
from rooflines.fits.solving import FitResult, Problem
from rooflines.fits.timings import DTYPES, ROW, SIZES, medians
from rooflines.fits.units import check_units
from rooflines.model.costs import Workload
from rooflines.model.kernel import operation_kernel
from rooflines.model.operation import NAMED as OPERATIONS
from rooflines.model.operation import OPERANDS
from rooflines.model.resources import MATH
from rooflines.model.sharding import sharding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.catalogue.entries import Chip
    from rooflines.fits.form import Form
    from rooflines.fits.solving import Array
    from rooflines.fits.timings import Timings
    from rooflines.model.kernel import Kernel
    from rooflines.model.poly import Poly
    from rooflines.model.resources import Machine

MATMUL = OPERATIONS["matmul"]

TILES = (64, 128)
"""Tiles of rows that a fit tries [1]."""

SHARES = ("math", "memory", "overhead_s")
MIXED = ("activation_passes", "mixed_math", "mixed_memory", "mixed_depth_s")
PARAMETERS: Mapping[Form, tuple[str, ...]] = {"max": SHARES, "pieces": (*SHARES, *MIXED)}
"""The numbers that are fitted, by form."""

EXTENSIONS = ("sustained", "mixed_activations")
"""Numbers that are tried with many timings."""

MANY = 300
"""Timings from which on extensions are tried [1]."""

LEAST_GAIN = 0.003
"""Least gain of an extension in the median error at inner held-out sites [1]."""

STARTS: tuple[Mapping[str, float], ...] = (
    {},
    dict(zip(PARAMETERS["pieces"], (1.1, 1.1, 0.7, 0.3, 0.5, 0.5, 0.5), strict=True)),
    dict(zip(PARAMETERS["pieces"], (0.9, 0.9, 1.3, 3.0, 1.5, 1.5, 2.0), strict=True)),
)
"""The starts, as factors of the prior."""

QUANTITIES = ("memory", "x", "out", "depth")
"""The quantities of a timing besides the math."""


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
    with at_path("compute"):
        one_of(compute, dtype_entries().formats, "no dtype")
        one_of(compute, peaks, f"no dtype that {chip} has a peak for")
    chosen = medians(timings.where("compute", compute), (*DTYPES, *SIZES))
    chosen.enough()
    machine = entry.machine(MATMUL.unit, MAIN_MEMORY)
    parts = [
        _nominal(part, operation_kernel(_workload(part.row(0, named=True)), compute), machine)
        for part in chosen.frame.partition_by(DTYPES, maintain_order=True)
    ]
    frame, chosen = with_bounds(with_folds(pl.concat(parts)), chosen, entry)
    _check_regimes(frame)
    return frame, chosen


def with_bounds(frame: pl.DataFrame, timings: Timings, entry: Chip) -> tuple[pl.DataFrame, Timings]:
    """Adds `t_lower_s`, `bound` and `in_cache` to the nominal times of timings, which get notes.

    Args:
        frame: `seconds`, `math`, `memory` [s] and `bytes` of timings of one kind.
        timings: What they are of.
        entry: The chip's entry.

    Raises:
        RooflinesError: The unit of time is off.
    """
    of_math = pl.col("math") >= pl.col("memory")
    frame = frame.with_columns(
        t_lower_s=pl.max_horizontal("math", "memory"),
        bound=pl.when(of_math).then(pl.lit("compute")).otherwise(pl.lit("memory")),
    )
    check_units(frame)
    frame = frame.with_columns(in_cache=_in_cache(entry))
    if cached := frame.filter("in_cache").height:
        note = f"{counted(cached, 'timing')} left out: faster than memory, they fit a cache"
        timings = replace(timings, notes=(*timings.notes, note))
    return frame, timings


def plain_matmul(stored: StoredDtypes) -> Workload:
    """A matmul of any size, on one chip."""
    return Workload(MATMUL, stored.bits, sharding("none", MATMUL), 1, (), {}, MATMUL.flops)


def _workload(row: dict[str, str]) -> Workload:
    """The workload of the dtypes of a row."""
    names = {operand: row[f"dtype_{operand}"] for operand in OPERANDS}
    formats = dtype_entries().formats
    with Mistakes() as mistakes:
        for operand, name in names.items():
            with mistakes.at(f"dtype_{operand}"):
                one_of(name, formats, "no dtype")
    wanted = NamedCombination(**names, compute=row["compute"])
    return plain_matmul(*combinations_of([wanted], dtype_entries()).values())


def _nominal(part: pl.DataFrame, kernel: Kernel, machine: Machine) -> pl.DataFrame:
    """The quantities of timings that share a kernel."""
    of = nominal_quantities(kernel, machine)
    for tile in TILES:
        of[math_column(tile)] = nominal_quantities(kernel, machine, tile)[MATH.name]
    bytes_moved = pl.col("memory") * float(machine.level.bytes_per_s)
    found = part.select(*SIZES, "seconds", f"^{ROW}$", **_expressions(of))
    return found.with_columns(bytes=bytes_moved)


def _expressions(of: Mapping[str, Poly]) -> dict[str, pl.Expr]:
    """Polynomials of sizes as expressions of their columns, Float64."""

    def extent(name: str) -> pl.Expr:
        size, _, span = name.partition("/")
        counted = (pl.col(size) + (int(span) - 1)) // int(span) if span else pl.col(size)
        return counted.cast(pl.Float64)

    def summed(poly: Poly) -> pl.Expr:
        products = [
            reduce(mul, [pl.lit(float(per)), *map(extent, product)])
            for product, per in poly.coefficients.items()
        ]
        return reduce(add, products)

    return {name: summed(poly) for name, poly in of.items()}


def _in_cache(entry: Chip) -> pl.Expr:
    """Whether a timing beats the bound, and its operands fit the last-level cache."""
    cache = entry.last_level_cache
    fits = pl.col("bytes") < (cache.capacity_bytes if cache else 0)
    return (pl.col("seconds") < pl.col("t_lower_s")) & fits


def _check_regimes(frame: pl.DataFrame) -> None:
    """Refuse timings that are all bound by one resource."""
    bounds = frame["bound"].unique().to_list()
    if len(bounds) == 1:
        other = {"compute": "smaller", "memory": "larger"}[bounds[0]]
        problem = f"has no timings but {quote(bounds[0])}-bound ones: they tell one rate of two"
        raise RooflinesError("B", problem, f"add timings with {other} B")


# ---------------------------------------------------------------- the fit


def quantity_columns(tile: int) -> dict[str, str]:
    """The columns of the quantities, with rows in whole tiles."""
    return {"math": math_column(tile), **{name: name for name in QUANTITIES}}


def estimated(frame: pl.DataFrame, numbers: Numbers) -> pl.Series:
    """The calibrated times of joined timings [s]."""
    quantities = {name: pl.col(column) for name, column in quantity_columns(numbers.tile).items()}
    times = estimate(numbers.floats, quantities, pl.max_horizontal)
    return frame.select(times.alias("t_estimate_s")).to_series()


def fit(frame: pl.DataFrame, prior: Numbers, form: Form = "pieces") -> FitResult[Numbers]:
    """The numbers that fit timings best.

    Args:
        frame: Joined timings, none in a cache and none of a held-out site.
        prior: Where the fit starts; it pulls weakly.
        form: `max`, or `pieces`; with `MANY` timings this tries the extensions and tiles, and keeps
            what gains `LEAST_GAIN` at inner held-out sites.

    Raises:
        RooflinesError: scipy is missing.
    """
    names, tile = PARAMETERS[form], 1
    if form == "pieces" and frame.height >= MANY:
        names, tile = _extended(frame, prior, names)
    found, held = _problem(frame, prior, tile).fit(names)
    return FitResult(replace(NONE, tile=tile).replaced(found), held)


def fit_like(frame: pl.DataFrame, prior: Numbers, numbers: Numbers) -> Numbers:
    """The numbers that fit other timings best, the same ones as of another fit.

    Args:
        frame: Joined timings, none in a cache.
        prior: Where the fit starts.
        numbers: The other fit: what is zero there stays so.
    """
    names = [name for name in (*PARAMETERS["pieces"], *EXTENSIONS) if getattr(numbers, name)]
    found, _ = _problem(frame, prior, numbers.tile).solve(names)
    return replace(NONE.floats, tile=numbers.tile).replaced(found)


NONE = Numbers(Fraction(1), Fraction(1), Fraction(0))
"""Nothing fitted: the bound itself."""


def _extended(
    frame: pl.DataFrame, prior: Numbers, names: Sequence[str]
) -> tuple[tuple[str, ...], int]:
    """The names and the tile with the extensions that gain enough, the best one first."""
    kept = held_out(held_out_below(frame, inner=True), inner=True)
    inner, rest = frame.filter(kept), frame.filter(~kept)
    chosen: tuple[tuple[str, ...], int] = tuple(names), 1
    if inner.is_empty() or rest.is_empty():
        return chosen

    def error(names: tuple[str, ...], tile: int) -> float:
        found, _ = _problem(rest, prior, tile).solve(names)
        times = estimated(inner, replace(NONE, tile=tile).replaced(found))
        return float((times / inner["seconds"] - 1).abs().quantile(0.5, "linear") or 0)

    least = error(*chosen)
    while True:
        names, tile = chosen
        options = [((*names, name), tile) for name in EXTENSIONS if name not in names]
        options += [(names, other) for other in TILES if tile == 1]
        errors = {option: error(*option) for option in options}
        if not errors or min(errors.values()) > least - LEAST_GAIN:
            return chosen
        chosen = min(errors, key=errors.__getitem__)
        least = errors[chosen]


def _problem(frame: pl.DataFrame, prior: Numbers, tile: int) -> Problem:
    """Timings and the form, with rows in whole tiles."""
    quantities = {name: frame[column].to_numpy() for name, column in quantity_columns(tile).items()}
    base = replace(NONE.floats, tile=tile)

    def times(numbers: Mapping[str, float]) -> Array:
        import numpy as np  # noqa: PLC0415, an extra

        return estimate(base.replaced(numbers), quantities, np.maximum.reduce)

    return Problem(frame["seconds"].to_numpy(), times, vars(prior), STARTS)


def judged(frame: pl.DataFrame, numbers: Numbers) -> pl.DataFrame:
    """Joined timings with their estimate.

    Returns:
        Also `t_estimate_s`, `estimate_bound`, `ratio` (measured over estimated) and the errors
        `bare` and `error`, |time / measured - 1| of the bound and of the estimate [1].
    """
    quantities = {name: pl.col(column) for name, column in quantity_columns(numbers.tile).items()}
    return with_errors(
        frame.with_columns(
            estimated(frame, numbers).alias("t_estimate_s"),
            estimate_bound=bound(numbers.floats, quantities),
        )
    )
