"""Calibrations from timings: each compute dtype, or collective, of a chip and a software."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.errors import Mistakes, RooflinesError, at_path
from rooflines.basics.text import counted
from rooflines.catalogue.dtypes import dtype_entries
from rooflines.catalogue.forms import MOST_REACHED
from rooflines.fits.attention import PRIOR, with_attention_times
from rooflines.fits.collectives import (
    fit_collective,
    judged_collectives,
    with_network_times,
)
from rooflines.fits.entries import Errors, FittedAttention, FittedCollective, FittedMatmul
from rooflines.fits.folds import held_out, held_out_below, sites_in
from rooflines.fits.judge import REGIONS, band, bands, errors
from rooflines.fits.matmuls import PARAMETERS, fit, fit_like, judged, with_nominal_times
from rooflines.fits.prior import prior_of
from rooflines.fits.solving import rounded
from rooflines.fits.timings import ATTENTION_SIZES, FEWEST, FIT_BY, SIZES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rooflines.catalogue.entries import Chip
    from rooflines.fits.entries import Calibrations
    from rooflines.fits.form import Form, Numbers
    from rooflines.fits.timings import Kind, Timings

ENOUGH = 30
"""Timings that determine the numbers of a fit [1]."""

SIZED: Mapping[Kind, tuple[str, ...]] = {
    "matmul": SIZES,
    "attention": ATTENTION_SIZES,
    "collective": ("shards", "bytes"),
}
"""The sizes of which a fit says how far they reach."""

SITES = ("D", "F", "S")
"""Sizes whose ends show how far an estimate is off beyond the timings."""

FIT, HELD_OUT = "fit", "held out"
"""The splits: timings that were fitted, and those of sites that were not."""


@dataclass(frozen=True)
class FitRequest:
    """Timings to fit, and how.

    Attributes:
        timings: Of the chip and the software.
        chip: The chip's id.
        entry: Its entry.
        source: Where the timings come from.
        date: When the fit is made.
        form: `max` or `pieces`, of matmuls.
        prior: Another fit to start from; None: typical numbers.
        contents: What the timings include besides the operation; None: what they say,
            or the conversion of the weights of a weight-only format.
    """

    timings: Timings
    chip: str
    entry: Chip
    source: str
    date: str
    form: Form = "pieces"
    prior: Calibrations | None = None
    contents: str | None = None


@dataclass(frozen=True)
class FitReport:
    """A fit.

    Attributes:
        name: The compute dtype, or the collective.
        entry: Its entry in a file.
        regions: Errors by split and region, as `judge.errors`.
        notes: What was left out, merged or not held out, and what is little, a sentence each.
    """

    name: str
    entry: FittedMatmul | FittedCollective
    regions: pl.DataFrame
    notes: tuple[str, ...]


def calibrate(request: FitRequest, dtype: str | None = None) -> list[FitReport]:
    """Fit timings of a chip and a software.

    Args:
        request: Timings to fit, and how.
        dtype: The compute dtype; None: all. Of collectives all are fitted.

    Raises:
        RooflinesError: scipy is missing, or timings cannot be fitted: too few, of one regime, in
            another unit of time, or unlikely for the chip.
    """
    timings = request.timings
    if timings.served:
        problem, fix = "has runs of served models, which are not fitted", "give timings of kernels"
        raise RooflinesError("", problem, fix, file=timings.file)
    column = FIT_BY[timings.kind]
    names = timings.frame[column].unique().sort().to_list() if dtype is None else [dtype]
    fit_one = {"compute": _matmul, "attention": _attention, "collective": _collective}[column]
    results: list[FitReport] = []
    with Mistakes() as mistakes:
        for name in names:
            with mistakes.at(), at_path(name, file=timings.file):
                results.append(fit_one(request, name))
    return results


def _matmul(request: FitRequest, compute: str) -> FitReport:
    """The fit of a compute dtype."""
    frame, timings = with_nominal_times(request.timings, request.chip, request.entry, compute)
    if request.contents is None:
        contents = _stated(timings) or _converted(timings, compute)
        request = replace(request, contents=contents)
    prior = prior_of(compute, request.prior)
    return _fitted(request, compute, frame, timings, (prior, request.form, FittedMatmul))


def _stated(timings: Timings) -> str | None:
    """What all timings say that they include besides the matmul; None: they do not, or differ."""
    stated = timings.frame.get_column("contents", default=pl.Series([None])).unique()
    return stated[0] if len(stated) == 1 else None


def _converted(timings: Timings, compute: str) -> str | None:
    """What timings of weight-only formats include besides the matmul; None: they are of none."""
    formats = dtype_entries().formats
    weights = timings.frame["dtype_w"].unique().sort()
    narrow = [each for each in weights if formats[each].bits < formats[compute].bits]
    return f"the conversion of {' and '.join(narrow)} weights" if narrow else None


def _attention(request: FitRequest, name: str) -> FitReport:
    """The fit of attention in a phase."""
    frame, timings = with_attention_times(request.timings, request.chip, request.entry, name)
    return _fitted(request, name, frame, timings, (PRIOR, "max", FittedAttention))


def _fitted(
    request: FitRequest,
    name: str,
    frame: pl.DataFrame,
    timings: Timings,
    how: tuple[Numbers, Form, type[FittedMatmul]],
) -> FitReport:
    """The fit of a kernel to its timings with nominal times: `how` is prior, form and entry."""
    prior, form, kind = how
    train, test, below = _split(frame.filter(~pl.col("in_cache")))
    found = fit(train, prior, form)
    notes = timings.notes + tuple(_little(train, test, len(PARAMETERS[form])))
    _check_reached(found.numbers, request.chip)
    fitted, tested = (judged(part, found.numbers) for part in (train, test))
    numbers = {
        name: float(number)
        for name, number in vars(found.numbers).items()
        if name in FittedMatmul.model_fields
    }
    about = {**numbers, **_about(request, fitted, tested, found.held), "held_out_below": below}
    about |= {
        "sizes": _sizes(frame, request.timings.kind),
        "outside": _outside(frame, found.numbers, prior),
    }
    return FitReport(name, kind.model_validate(about), _regions(fitted, tested, REGIONS), notes)


def _collective(request: FitRequest, collective: str) -> FitReport:
    """The fit of a collective."""
    frame, timings = with_network_times(request.timings, request.entry, collective)
    train, test, below = _split(frame)
    found = fit_collective(train)
    numbers = vars(found.numbers.floats)
    notes = timings.notes + tuple(_little(train, test, len(numbers)))
    fitted, tested = (judged_collectives(part, found.numbers) for part in (train, test))
    about = {**numbers, **_about(request, fitted, tested, found.held), "held_out_below": below}
    about["sizes"] = _sizes(frame, request.timings.kind)
    entry = FittedCollective.model_validate(about)
    return FitReport(collective, entry, _regions(fitted, tested, ("all",)), notes)


def _sizes(frame: pl.DataFrame, kind: Kind) -> dict[str, list[object]]:
    """The smallest and largest sizes of timings [1]."""
    return {name: [frame[name].min(), frame[name].max()] for name in SIZED[kind]}


def _outside(frame: pl.DataFrame, numbers: Numbers, prior: Numbers) -> list[float] | None:
    """The band of sites with the smallest and largest sizes, by a fit to the others.

    Returns:
        p10 and p90 of measured over estimated time [1]; None: too few are left to fit.
    """
    frame = frame.filter(~pl.col("in_cache"))
    sites = [name for name in SITES if name in frame.columns]
    ends = pl.any_horizontal(
        pl.col(name).is_in([frame[name].min(), frame[name].max()]) for name in sites
    )
    inner, outer = frame.filter(~ends), frame.filter(ends)
    if min(inner.height, outer.height) < ENOUGH or inner["bound"].n_unique() == 1:
        return None
    return [float(rounded(end)) for end in band(judged(outer, fit_like(inner, prior, numbers)))]


def _split(frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, float]:
    """Timings to fit, timings held out, and the place below which sites are held out."""
    below = held_out_below(frame)
    train, test = frame.filter(~held_out(below)), frame.filter(held_out(below))
    return (train, test, below) if train.height >= FEWEST else (frame, test.clear(), 0)


def _little(train: pl.DataFrame, test: pl.DataFrame, numbers: int) -> Iterator[str]:
    """Warnings about a fit to few timings, or one that no timing judges."""
    if test.is_empty():
        yield "no site is held out, and nothing judges the fit: there are too few of them"
    if train.height < ENOUGH or sites_in(train) < numbers:
        few = f"{counted(train.height, 'timing')} of {counted(sites_in(train), 'site')}"
        yield (
            f"{few} hardly determine {numbers} numbers: trust the estimate near these sizes alone, "
            f"or time at least {ENOUGH} of {numbers} sites"
        )


def _check_reached(numbers: Numbers, chip: str) -> None:
    """Refuse shares that no chip reaches."""
    with Mistakes() as mistakes:
        for name, rate in (("math", "peak"), ("memory", "memory rate")):
            share = float(getattr(numbers, name))
            with mistakes.at(name):
                if share > MOST_REACHED:
                    problem = f"comes out as {share:.3g} times the {rate} of {chip}"
                    fix = "compare the chip, its entry and the dtypes with what was measured"
                    raise RooflinesError("", problem, fix)


def _about(
    request: FitRequest, fitted: pl.DataFrame, tested: pl.DataFrame, held: tuple[str, ...]
) -> dict[str, object]:
    """The errors, bands and origin of an entry."""
    return {
        "bands": {
            bound: [float(rounded(share)) for share in ends]
            for bound, ends in bands(fitted).items()
        },
        "held": list(held),
        "fitted": errors_of(fitted),
        "held_out": errors_of(tested) if tested.height else None,
        "contents": request.contents,
        "source": request.source,
        "date": request.date,
    }


def errors_of(frame: pl.DataFrame) -> Errors:
    """The errors of all timings, to the digits of a fit."""
    row = errors(frame, ("all",)).row(0, named=True)
    shares = {name: float(rounded(row[name])) for name in ("median", "mean", "p90")}
    return Errors(n=row["n"], **shares)


def _regions(fitted: pl.DataFrame, tested: pl.DataFrame, regions: Iterable[str]) -> pl.DataFrame:
    """The errors by split and region."""
    parts = {FIT: fitted, HELD_OUT: tested}
    return pl.concat(
        errors(part, regions).select(pl.lit(split).alias("split"), pl.all())
        for split, part in parts.items()
    )
