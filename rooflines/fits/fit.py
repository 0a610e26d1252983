"""The fit of the numbers of a chip, a compute dtype and a software to timings of matmuls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from rooflines.fits.form import Numbers, estimate
from rooflines.fits.nominal import TILES, math_column
from rooflines.fits.solving import Problem, held_out, held_out_below, rounded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.fits.form import Form
    from rooflines.fits.solving import Array

PARAMETERS: Mapping[Form, tuple[str, ...]] = {
    "max": ("math", "memory", "overhead_s"),
    "pieces": (
        "math",
        "memory",
        "overhead_s",
        "activation_passes",
        "mixed_math",
        "mixed_memory",
        "mixed_depth_s",
    ),
}
"""The numbers that are fitted, by form."""

EXTENSIONS = ("sustained", "mixed_activations")
"""Numbers that are tried with many timings."""

MANY = 300
"""Timings from which on extensions are tried [1]."""

LEAST_GAIN = 0.003
"""What an extension has to gain in the median error at inner held-out sites [1]."""

STARTS: tuple[Mapping[str, float], ...] = (
    {},
    {
        "math": 1.1,
        "memory": 1.1,
        "overhead_s": 0.7,
        "activation_passes": 0.3,
        "mixed_math": 0.5,
        "mixed_memory": 0.5,
        "mixed_depth_s": 0.5,
    },
    {
        "math": 0.9,
        "memory": 0.9,
        "overhead_s": 1.3,
        "activation_passes": 3.0,
        "mixed_math": 1.5,
        "mixed_memory": 1.5,
        "mixed_depth_s": 2.0,
    },
)
"""The starts, as factors of the prior."""

QUANTITIES = ("memory", "x", "out", "depth")
"""The quantities of a timing besides the math."""


@dataclass(frozen=True)
class FitResult:
    """Fitted numbers.

    Attributes:
        numbers: Exact decimals.
        held: The numbers that the timings do not tell, which stay at the prior.
    """

    numbers: Numbers
    held: tuple[str, ...]


def columns(tile: int) -> dict[str, str]:
    """The columns of the quantities, with rows in whole tiles."""
    return {"math": math_column(tile), **{name: name for name in QUANTITIES}}


def estimated(frame: pl.DataFrame, numbers: Numbers) -> pl.Series:
    """The calibrated times of joined timings [s]."""
    quantities = {name: pl.col(column) for name, column in columns(numbers.tile).items()}
    times = estimate(numbers.floats, quantities, pl.max_horizontal)
    return frame.select(times.alias("t_estimate_s")).to_series()


def fit(
    frame: pl.DataFrame, prior: Numbers, form: Form = "pieces", *, extend: bool = True
) -> FitResult:
    """The numbers that fit timings best.

    Args:
        frame: Joined timings, none in a cache and none of a held-out site.
        prior: Where the fit starts; it pulls weakly.
        form: `max`, or `pieces`; with `MANY` timings this tries the extensions and tiles, and keeps
            what gains `LEAST_GAIN` at inner held-out sites.
        extend: Whether to try them.

    Raises:
        RooflinesError: scipy is missing.
    """
    names, tile = PARAMETERS[form], 1
    if extend and form == "pieces" and frame.height >= MANY:
        names, tile = _extended(frame, prior, names)
    found, held = _problem(frame, prior, tile).fit(names)
    decimals = {
        name: getattr(prior, name) if name in held else rounded(number)
        for name, number in found.items()
    }
    return FitResult(replace(NONE, tile=tile).replaced(decimals), held)


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
    quantities = {name: frame[column].to_numpy() for name, column in columns(tile).items()}
    base = replace(NONE.floats, tile=tile)

    def times(numbers: Mapping[str, float]) -> Array:
        import numpy as np  # noqa: PLC0415, an extra

        return estimate(base.replaced(numbers), quantities, np.maximum.reduce)

    return Problem(frame["seconds"].to_numpy(), times, vars(prior.floats), STARTS)
