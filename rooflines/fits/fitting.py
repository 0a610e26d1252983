"""Fits of a time form to timings with nominal times, and times by fitted numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl

from rooflines.fits.fit_errors import with_errors
from rooflines.fits.held_out import held_out, held_out_below
from rooflines.fits.least_squares import Problem
from rooflines.fits.nominal import TILES, math_column
from rooflines.fits.time_form import (
    QUANTITIES,
    AttentionNumbers,
    CollectiveNumbers,
    ExpertsNumbers,
    Extremes,
    FormNumbers,
    Numbers,
    bound,
    estimate,
    piece_values,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.fits.least_squares import Array, Named
    from rooflines.fits.time_form import Form

SHARES = ("math", "memory", "overhead_s")
MIXED = ("activation_passes", "mixed_math", "mixed_memory", "mixed_depth_s")
PARAMETERS: Mapping[Form, tuple[str, ...]] = {"max": SHARES, "pieces": (*SHARES, *MIXED)}
"""Numbers fitted to kernels, by form."""

EXTENSIONS = (("sustained",), ("mixed_activations",))
"""Numbers for matmuls to try where there are many timings, those that are tried together."""

ATTENTION_EXTENSIONS = (("mixed_head_s",), ("bulk_overhead_s", "bulk"))
"""The same for attention."""

POOR = 0.1
"""Median error at its own timings from which an attention fit tries them [1]."""

MIN_EXTENSION_TIMINGS = 300
"""Timings from which extensions are tried [1]."""

MIN_GAIN = 0.003
"""Least gain from an extension in the median error at inner held-out sites [1]."""

STARTS: tuple[Named, ...] = (
    {},
    dict(zip(PARAMETERS["pieces"], (1.1, 1.1, 0.7, 0.3, 0.5, 0.5, 0.5), strict=True)),
    dict(zip(PARAMETERS["pieces"], (0.9, 0.9, 1.3, 3.0, 1.5, 1.5, 2.0), strict=True)),
)
"""Starts for kernel fits, as factors on the prior."""

NO_FIT = Numbers(Fraction(1), Fraction(1), Fraction(0))
"""Nothing fitted: the bound itself."""

EXPRESSIONS: Extremes[pl.Expr] = Extremes(pl.max_horizontal, pl.min_horizontal)


@dataclass(frozen=True)
class FitResult:
    """Fitted numbers.

    Attributes:
        numbers: Exact decimals.
        at_prior: Names that the timings do not identify, kept at the prior.
    """

    numbers: FormNumbers
    at_prior: tuple[str, ...]


@dataclass(frozen=True)
class FormFit:
    """Time form to fit: its parameters, prior and starts.

    Attributes:
        prior: Where a fit starts; it pulls weakly.
        names: The numbers that are fitted.
        starts: The starts, as factors on the prior.
        base: Numbers that are not fitted, at their defaults.
        extensions: Further numbers, and those that are tried together. With
            `MIN_EXTENSION_TIMINGS` timings or more, those that gain `MIN_GAIN` at inner held-out
            sites are kept.
        tiles: Row tiles that are tried likewise.
        poor: Median error at its own timings from which a fit tries them [1].
    """

    prior: FormNumbers
    names: tuple[str, ...]
    starts: tuple[Named, ...]
    base: FormNumbers
    extensions: tuple[tuple[str, ...], ...] = ()
    tiles: tuple[int, ...] = ()
    poor: float = 0

    def fit(self, frame: pl.DataFrame) -> FitResult:
        """Fit the numbers to timings.

        Args:
            frame: Timings from `nominal_times`, none in a cache and none held out.

        Raises:
            RooflinesError: scipy is missing.
        """
        many = bool(self.extensions) and frame.height >= MIN_EXTENSION_TIMINGS
        if not many or self.poor:
            plain = _fitted(self, frame)
            if not many or median_error(frame, plain.numbers) <= self.poor:
                return plain
        return _fitted(self._extend(frame), frame)

    def refit(self, frame: pl.DataFrame, numbers: FormNumbers) -> FormNumbers:
        """Refit the same numbers as another fit, to other timings."""
        candidates = dict.fromkeys((*self.names, *chain(*self.extensions)))
        names = tuple(name for name in candidates if getattr(numbers, name))
        base = self.base.with_numbers({"tile": numbers.tile} if self.tiles else {})
        return replace(self, names=names, base=base).solve(frame)

    def solve(self, frame: pl.DataFrame) -> FormNumbers:
        """Best numbers, none held at the prior, as Float64."""
        numbers, _ = self.problem(frame).solve(self.names)
        return self.base.floats.with_numbers(numbers)

    def _extend(self, frame: pl.DataFrame) -> FormFit:
        """Fit with the extensions and tile that gain enough, the best one first."""
        is_inner = held_out(held_out_below(frame, inner=True), inner=True)
        inner, outer = frame.filter(is_inner), frame.filter(~is_inner)
        if inner.is_empty() or outer.is_empty():
            return self

        def error(option: FormFit) -> float:
            return median_error(inner, option.solve(outer))

        chosen: FormFit = self
        min_error = error(self)
        while True:
            extensions = (names for names in self.extensions if names[0] not in chosen.names)
            options = [replace(chosen, names=(*chosen.names, *names)) for names in extensions]
            if chosen.base.tile == 1:
                bases = (chosen.base.with_numbers({"tile": tile}) for tile in self.tiles)
                options += [replace(chosen, base=base) for base in bases]
            errors = [error(option) for option in options]
            if not errors or min(errors) > min_error - MIN_GAIN:
                return chosen
            min_error = min(errors)
            chosen = options[errors.index(min_error)]

    def problem(self, frame: pl.DataFrame) -> Problem:
        """Least-squares problem with timings and the form."""
        base = self.base.floats
        quantities = {
            name: frame[column].to_numpy() for name, column in columns_in(frame, base).items()
        }

        def times(numbers: Named) -> Array:
            import numpy as np  # noqa: PLC0415, an extra

            arrays = Extremes(np.maximum.reduce, np.minimum.reduce)
            return estimate(base.with_numbers(numbers), quantities, arrays)

        return Problem(frame["seconds"].to_numpy(), times, vars(self.prior), self.starts)


def _fitted(form: FormFit, frame: pl.DataFrame) -> FitResult:
    """Fit a form's numbers, without its extensions."""
    numbers, at_prior = form.problem(frame).fit(form.names)
    return FitResult(form.base.with_numbers(numbers), at_prior)


COLLECTIVE_PRIOR = CollectiveNumbers(
    overhead_s=Fraction("7e-6"),
    low_latency=Fraction("0.25"),
    bulk_overhead_s=Fraction("15e-6"),
    bulk=Fraction("0.65"),
    hop_s=Fraction("1e-6"),
)
"""Prior for collectives: typical numbers on data-center GPUs."""

COLLECTIVE_FIT = FormFit(
    COLLECTIVE_PRIOR,
    tuple(vars(COLLECTIVE_PRIOR)),
    (
        {},
        {"overhead_s": 0.5, "low_latency": 0.3, "bulk_overhead_s": 2.0, "hop_s": 3.0},
        {"low_latency": 2.0, "bulk_overhead_s": 0.3, "bulk": 0.8, "hop_s": 0.2},
    ),
    COLLECTIVE_PRIOR,
)
"""Fit for a collective."""

ATTENTION_PRIOR = AttentionNumbers(
    Fraction("0.4"),
    Fraction("0.7"),
    Fraction("9e-6"),
    activation_passes=Fraction("0.3"),
    mixed_math=Fraction(2),
    mixed_memory=Fraction("1.3"),
    mixed_activations=Fraction("0.3"),
    mixed_depth_s=Fraction("1e-9"),
    mixed_head_s=Fraction("2e-8"),
    bulk_overhead_s=Fraction("2e-5"),
    bulk=Fraction("0.9"),
)
"""Prior for attention: typical numbers on data-center GPUs."""

ATTENTION_FIT = FormFit(
    ATTENTION_PRIOR,
    (*SHARES, *MIXED, "mixed_activations"),
    ({}, {"mixed_depth_s": 0.2, "mixed_activations": 5.0, "mixed_math": 0.6}),
    AttentionNumbers(Fraction(1), Fraction(1), Fraction(0)),
    ATTENTION_EXTENSIONS,
    poor=POOR,
)
"""Fit for attention: all pieces, with the context as depth."""


EXPERTS_PRIOR = ExpertsNumbers(
    Fraction("0.25"),
    Fraction("0.83"),
    Fraction("2e-5"),
    mixed_math=Fraction(2),
    mixed_memory=Fraction(1),
    mixed_activations=Fraction("0.5"),
    token_passes=Fraction("0.5"),
    expert_s=Fraction("5e-8"),
)
"""Prior for experts: typical numbers on data-center GPUs."""

EXPERTS_FIT = FormFit(
    EXPERTS_PRIOR,
    (*SHARES, "mixed_math", "mixed_memory", "mixed_activations", "token_passes", "expert_s"),
    ({}, {"math": 2.0, "mixed_memory": 0.5, "token_passes": 3.0, "expert_s": 4.0}),
    ExpertsNumbers(Fraction(1), Fraction(1), Fraction(0)),
)
"""Fit for routed experts."""


def kernel_fit(prior: Numbers, form: Form) -> FormFit:
    """Fit for kernels, from a prior."""
    further = (EXTENSIONS, TILES) if form == "pieces" else ((), ())
    return FormFit(prior, PARAMETERS[form], STARTS, NO_FIT, *further)


def columns_in(frame: pl.DataFrame, numbers: FormNumbers) -> dict[str, str]:
    """Columns with nominal quantities in timings; `math` has rows in whole tiles."""
    columns = {name: name for name in QUANTITIES if name in frame.columns}
    return {**columns, "math": math_column(numbers.tile)} if numbers.tile > 1 else columns


def median_error(frame: pl.DataFrame, numbers: FormNumbers) -> float:
    """Median error at timings with nominal times [1]."""
    errors = with_estimate_errors(frame, numbers)["error"]
    return float(errors.quantile(0.5, "linear") or 0)


def with_estimate_errors(frame: pl.DataFrame, numbers: FormNumbers) -> pl.DataFrame:
    """Add estimates and their errors to timings with nominal times.

    Returns:
        Also `t_estimate_s`, `estimate_bound`, `ratio` (measured over estimated) and the errors
        `bare` and `error`, |time / measured - 1| for the bound and the estimate [1].
    """
    numbers = numbers.floats
    quantities = {name: pl.col(column) for name, column in columns_in(frame, numbers).items()}
    return with_errors(
        frame.with_columns(
            t_estimate_s=estimate(numbers, quantities, EXPRESSIONS),
            estimate_bound=bound(piece_values(numbers, quantities, EXPRESSIONS)),
        )
    )
