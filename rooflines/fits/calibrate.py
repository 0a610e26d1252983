"""Calibrations from timings: one per compute dtype or collective on a chip and software."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.errors import Mistakes, RooflinesError, at_path
from rooflines.basics.text import counted
from rooflines.fits.calibration_files import ENTRIES, RANGED_SIZES, Errors
from rooflines.fits.fit_errors import REGIONS, band, bands, errors
from rooflines.fits.fitting import (
    ATTENTION_FIT,
    COLLECTIVE_FIT,
    EXPERTS_FIT,
    kernel_fit,
    with_estimate_errors,
)
from rooflines.fits.held_out import held_out, held_out_below, quarters, sites_in
from rooflines.fits.least_squares import round_number
from rooflines.fits.nominal import with_nominal_times
from rooflines.fits.prior import prior_of
from rooflines.fits.timings import ATTENTION, COLLECTIVE, EXPERTS, MATMUL_TIMINGS, MIN_TIMINGS
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.entry_forms import MAX_MEASURED_SHARE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooflines.fits.calibration_files import Calibrations, FittedCollective, FittedMatmul
    from rooflines.fits.fitting import FormFit
    from rooflines.fits.time_form import Form, FormNumbers
    from rooflines.fits.timings import Timings
    from rooflines.hardware.entries import Chip

RELIABLE_TIMINGS = 30
"""Timings that determine a fit's numbers [1]."""

FIT, HELD_OUT = "fit", "held out"
"""Splits: timings that were fitted, and those at held-out sites."""


@dataclass(frozen=True)
class FitRequest:
    """Timings to fit, and fit options.

    Attributes:
        timings: Timings on the chip with one software.
        chip: The chip's id.
        entry: Its entry.
        source: Where the timings come from.
        date: When the fit is made.
        form: Form for matmuls, `max` or `pieces`.
        prior: Another fit to start from; None: typical numbers.
        contents: What the timings include besides the operation; None: what they say, or the
            weights' conversion in a weight-only format.
        version: Software version that was timed; None: not stated.
    """

    timings: Timings
    chip: str
    entry: Chip
    source: str
    date: str
    form: Form = "pieces"
    prior: Calibrations | None = None
    contents: str | None = None
    version: str | None = None


@dataclass(frozen=True)
class FitReport:
    """Fit with its errors and notes.

    Attributes:
        name: The compute dtype, or the collective.
        entry: Its entry in a file.
        regions: Errors by split and region, as `fit_errors.errors`.
        notes: Sentences about timings left out, merged or not held out, and about too few.
    """

    name: str
    entry: FittedMatmul | FittedCollective
    regions: pl.DataFrame
    notes: tuple[str, ...]


def calibrate(request: FitRequest, dtype: str | None = None) -> list[FitReport]:
    """Fit one chip's timings with one software.

    Args:
        request: Timings to fit, and how.
        dtype: The compute dtype; None: all. Collectives are all fitted.

    Raises:
        RooflinesError: scipy is missing, or timings cannot be fitted: too few, in one regime only,
            in another time unit, or unlikely for the chip.
    """
    timings = request.timings
    if timings.is_served:
        problem, fix = "has runs of served models, which are not fitted", "give timings of kernels"
        raise RooflinesError("", problem, fix, file=timings.file)
    column = timings.kind.fit_by
    names = timings.frame[column].unique().sort().to_list() if dtype is None else [dtype]
    results: list[FitReport] = []
    with Mistakes() as mistakes:
        for name in names:
            with mistakes.at(), at_path(name, file=timings.file):
                results.append(_fit_report(request, name))
    return results


def _fit_report(request: FitRequest, name: str) -> FitReport:
    """Fit for one compute dtype, attention phase or collective, with its errors."""
    kind, chip = request.timings.kind, request.chip
    frame, timings = with_nominal_times(request.timings, chip, request.entry, name)
    form: FormFit = COLLECTIVE_FIT
    if kind is MATMUL_TIMINGS:
        form = kernel_fit(prior_of(name, request.prior), request.form)
    elif kind is EXPERTS:
        form = EXPERTS_FIT
    elif kind is not COLLECTIVE:
        form = ATTENTION_FIT
    sizes = {size: [frame[size].min(), frame[size].max()] for size in kind.sizes}
    frame = frame.filter(~pl.col("in_cache"))
    below = 0.0 if kind is EXPERTS else held_out_below(frame)
    train, test = frame.filter(~held_out(below)), frame.filter(held_out(below))
    if train.height < MIN_TIMINGS:
        train, test, below = frame, test.clear(), 0
    result = form.fit(train)
    entry, numbers = ENTRIES[kind.fits], vars(result.numbers.floats)
    if kind is MATMUL_TIMINGS or kind is ATTENTION:
        _check_shares(result.numbers, chip)
    train_errors, test_errors = (
        with_estimate_errors(part, result.numbers) for part in (train, test)
    )
    if kind is EXPERTS and sites_in(frame) > 1:
        test_errors = test = _by_fits_to_others(frame, form, result.numbers)
    fields = {
        **{name: number for name, number in numbers.items() if name in entry.model_fields},
        "bands": bands(test_errors if kind is EXPERTS and test.height else train_errors),
        "held": list(result.at_prior),
        "fitted": errors_of(train_errors),
        "held_out": errors_of(test_errors) if test_errors.height else None,
        "held_out_below": below,
        "sizes": sizes,
        "outside": _outside_band(frame, result.numbers, form),
        "contents": request.contents
        or (_contents(timings, name) if kind is MATMUL_TIMINGS else None),
        "source": request.source,
        "version": request.version,
        "date": request.date,
    }
    regions = pl.concat(
        errors(part, REGIONS if "B" in frame.columns else ("all",)).select(
            pl.lit(split).alias("split"), pl.all()
        )
        for split, part in ((FIT, train_errors), (HELD_OUT, test_errors))
    )
    notes = (*timings.notes, *_warnings(train, test, len(form.names)))
    return FitReport(name, entry.model_validate(fields), regions, notes)


def _by_fits_to_others(frame: pl.DataFrame, form: FormFit, numbers: FormNumbers) -> pl.DataFrame:
    """Errors where a fit to all other sites estimates each quarter."""
    folds = frame.with_columns(quarter=quarters())
    parts = []
    for at in folds["quarter"].unique().sort():
        rest, chosen = folds.filter(pl.col("quarter") != at), folds.filter(quarter=at)
        parts.append(with_estimate_errors(chosen, form.refit(rest, numbers)))
    return pl.concat(parts).drop("quarter")


def _contents(timings: Timings, compute: str) -> str | None:
    """Work that timings include besides the matmul; None: not stated, or mixed.

    In weight-only formats that is the weights' conversion.
    """
    contents = timings.frame.get_column("contents", default=pl.Series([None])).unique()
    if len(contents) == 1 and contents[0]:
        return str(contents[0])
    formats = dtype_entries().formats
    weights = timings.frame["dtype_w"].unique().sort()
    narrow = [dtype for dtype in weights if formats[dtype].bits < formats[compute].bits]
    return f"the conversion of {' and '.join(narrow)} weights" if narrow else None


def _outside_band(
    frame: pl.DataFrame, numbers: FormNumbers, form: FormFit
) -> tuple[float, float] | None:
    """Band at sites with the smallest and largest sizes, from a fit to the other sites.

    Returns:
        p10 and p90 over measured / estimated time [1]; None: too few are left to fit.
    """
    ends, min_timings = [], RELIABLE_TIMINGS
    for name in (size for size in RANGED_SIZES if size in frame.columns):
        min_size, max_size = frame[name].min(), frame[name].max()
        if min_size == max_size:
            continue
        if name == "shards":  # no fewer than two chips send
            min_size, min_timings = max_size, MIN_TIMINGS
        ends.append(pl.col(name).is_in([min_size, max_size]))
    if not ends:
        return None
    outside = pl.any_horizontal(ends)
    inner, outer = frame.filter(~outside), frame.filter(outside)
    one_bound = form is not COLLECTIVE_FIT and inner["bound"].n_unique() == 1
    if min(inner.height, outer.height) < min_timings or one_bound:
        return None
    return band(with_estimate_errors(outer, form.refit(inner, numbers)))


def _warnings(train: pl.DataFrame, test: pl.DataFrame, numbers: int) -> Iterator[str]:
    """Warnings about a fit to few timings, or without held-out ones."""
    if test.is_empty():
        yield "no site is held out, and nothing judges the fit: there are too few of them"
    if train.height < RELIABLE_TIMINGS or sites_in(train) < numbers:
        data_size = f"{counted(train.height, 'timing')} of {counted(sites_in(train), 'site')}"
        yield (
            f"{data_size} hardly determine {numbers} numbers: trust the estimate near these sizes "
            f"alone, or time at least {RELIABLE_TIMINGS} of {numbers} sites"
        )


def _check_shares(numbers: FormNumbers, chip: str) -> None:
    """Refuse shares that no chip reaches."""
    with Mistakes() as mistakes:
        for name, rate in (("math", "peak"), ("memory", "memory rate")):
            share = float(getattr(numbers, name))
            with mistakes.at(name):
                if share > MAX_MEASURED_SHARE:
                    problem = f"comes out as {share:.3g} times the {rate} of {chip}"
                    fix = "compare the chip, its entry and the dtypes with what was measured"
                    raise RooflinesError("", problem, fix)


def errors_of(frame: pl.DataFrame) -> Errors:
    """Errors over all timings, rounded like fitted numbers."""
    row = errors(frame, ("all",)).row(0, named=True)
    shares = {name: float(round_number(row[name])) for name in ("median", "mean", "p90")}
    return Errors(n=row["n"], **shares)
