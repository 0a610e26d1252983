"""Fit every chip and software of tables of timings: `python -m benchmarks.calibration TABLE...`.

Prints the median errors at held-out sites of the bound and of both forms. `--write` writes the fits
to config/calibrations.yaml, which comes with the package. The column `source` of the tables is
`<collection>/<software>/<version>`; of several versions the newest is fitted.

`--splits N` shows how far the errors of matmuls depend on the sites that are held out: the mean and
the standard deviation over N random quarters of the sites, for three sets of numbers.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import polars as pl

from benchmarks.report import table
from rooflines.catalogue.chips import chip_entries
from rooflines.fits.calibrate import FitReport, FitRequest, calibrate
from rooflines.fits.entries import CALIBRATIONS_FILE, Calibrations, key_of, kind_of, text_of
from rooflines.fits.folds import FOLD, held_out
from rooflines.fits.matmuls import fit, judged, with_nominal_times
from rooflines.fits.prior import prior_of
from rooflines.fits.read import read_timings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.fits.form import Form

DATA = "ai-dynamo/aiconfigurator at 095f58a5, Apache-2.0, (c) NVIDIA"

CONTENTS = {("trtllm", "fp8"): "dynamic scaling of x"}
"""What timings include besides the matmul, by software and compute dtype."""

LARGEST_ERROR = 0.25
"""Largest median error at held-out sites of a fit that is written [1]."""

ABOUT = f"""\
Fitted numbers of chips by software, for estimates. Written by `python -m benchmarks.calibration`.

The timings are from {DATA}:
selected, renamed and in SI units. Only what follows from them is here.
Matmuls: B from 1 to 16,384, D and F from 1,024 to 16,384. Collectives: 2 to 8 chips, half
precision, payloads from 512 bytes to 512 MiB; those with a median error above
{LARGEST_ERROR:.0%} at held-out payloads are left out.

Errors are |estimated / measured - 1|; bands are the p10 and p90 of measured over estimated time.
config/README.md explains the numbers."""


FORMS: tuple[tuple[Form, bool], ...] = (("max", False), ("pieces", False), ("pieces", True))
"""The sets of numbers: form max, the seven of form pieces, and all that gain."""


def fits(path: str, form: Form, date: str) -> Iterator[tuple[str, list[FitReport]]]:
    """The fits of a table, by chip and software."""
    for key, request in requests(path, form, date):
        software = key.partition("/")[2]
        yield key, [stated(one, CONTENTS.get((software, one.name))) for one in calibrate(request)]


def stated(result: FitReport, contents: str | None) -> FitReport:
    """A fit that states what its timings include besides the operation."""
    return replace(result, entry=result.entry.model_copy(update={"contents": contents}))


def requests(path: str, form: Form, date: str) -> Iterator[tuple[str, FitRequest]]:
    """What is fitted of a table, by chip and software."""
    timings = read_timings(path)
    software = pl.col("source").str.split("/").list.get(1)
    frame = timings.frame.with_columns(software=software)
    for (chip, library), part in frame.group_by("chip", "software", maintain_order=True):
        newest = max(part["source"].unique(), key=version)
        one = replace(timings, frame=part.filter(pl.col("source") == newest))
        source = f"{newest.partition('/')[2]}, timed by {DATA}"
        request = FitRequest(one, str(chip), chip_entries()[str(chip)], source, date, form)
        yield key_of(str(chip), str(library)), request


def spread(request: FitRequest, compute: str, splits: int) -> tuple[str, ...]:
    """Median errors at random quarters of the sites, by `FORMS`: mean and deviation in percent."""
    frame, _ = with_nominal_times(request.timings, request.chip, request.entry, compute)
    frame = frame.filter(~pl.col("in_cache"))
    prior = prior_of(compute, None)
    found: dict[tuple[Form, bool], list[float]] = {form: [] for form in FORMS}
    for split in range(splits):
        shuffled = with_random_folds(frame, split)
        train, test = shuffled.filter(~held_out()), shuffled.filter(held_out())
        for (form, extend), medians in found.items():
            numbers = fit(train, prior, form, extend=extend).numbers
            medians.append(100 * float(judged(test, numbers)["error"].quantile(0.5) or 0))
    return tuple(f"{fmean(one):.1f} ± {stdev(one):.1f}" for one in found.values())


def with_random_folds(frame: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The same timings with random sites held out, a quarter of them; so are the inner ones."""
    sites = frame.select("D", "F").unique().sort("D", "F")
    return frame.drop(FOLD).join(
        sites.sample(fraction=1, shuffle=True, seed=seed).with_row_index(FOLD), on=["D", "F"]
    )


def version(source: str) -> tuple[int, ...]:
    """The numbers in a version, to compare it with others."""
    return tuple(map(int, re.findall(r"\d+", source.rpartition("/")[2])))


def main(arguments: Sequence[str]) -> int:
    """Print the errors of the fits of tables; write the fits if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="+", metavar="TABLE")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--splits", type=int, metavar="N")
    options = parser.parse_args(arguments)
    date = datetime.now(tz=UTC).date().isoformat()
    if options.splits:
        headers = ("chip and software", "of", "max", "pieces, seven numbers", "pieces, all")
        spreads = [
            (key, compute, *spread(request, compute, options.splits))
            for path in options.tables
            for key, request in requests(path, "pieces", date)
            if not request.timings.collectives
            for compute in request.timings.frame["compute"].unique().sort()
        ]
        table("Median errors at random held-out sites in percent", headers, spreads)
        return 0
    content: dict[str, dict[str, object]] = {}
    rows: list[tuple[str, ...]] = []
    for path in options.tables:
        plain = dict(fits(path, "max", date))
        for key, results in fits(path, "pieces", date):
            kind = kind_of(results[0].entry)
            good = {one.name: one.entry for one in results if error_of(one) <= LARGEST_ERROR}
            content.setdefault(kind, {}).update({key: good} if good else {})
            rows += [row(key, one, other) for one, other in zip(results, plain[key], strict=True)]
    names = ("chip and software", "of", "timings", "bound", "max", "pieces", "pieces, p90")
    table("Median errors at held-out sites in percent", names, rows)
    if options.write:
        text = text_of(Calibrations.model_validate(content), ABOUT)
        CALIBRATIONS_FILE.write_text(text, encoding="utf-8")
    return 0


def error_of(result: FitReport) -> float:
    """The median error at held-out sites [1]; infinite where none is held out."""
    return result.entry.held_out.median if result.entry.held_out else inf


def row(key: str, pieces: FitReport, plain: FitReport) -> tuple[str, ...]:
    """A line of the table: median errors at held-out sites in percent."""
    (at,) = pieces.regions.filter(split="held out", region="all").to_dicts()
    (plainly,) = plain.regions.filter(split="held out", region="all").to_dicts()
    errors = (at["bare_median"], plainly["median"], at["median"], at["p90"])
    return key, pieces.name, f"{at['n']:,}", *(f"{100 * error:.1f}" for error in errors)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
