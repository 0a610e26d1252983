"""Fit every chip and software of public timings: `python -m benchmarks.calibration --write`.

Without tables it reads those of `TABLES` in `measured` of the folder `ROOFLINES_PUBLIC_DATA`, and
the project's own. It prints the median errors at held-out sites of the bound and of the fit.
`--write` writes the fits to config/calibrations.yaml, which comes with the package. The column
`source` of a public table is `<collection>/<software>/<version>`; of several versions the newest is
fitted. Clones of ROCm/aiter and casys-kaist/LLMServingSim in `measured` are read too.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from threadpoolctl import threadpool_limits

from benchmarks.training_steps import training_fits
from rooflines.basics.files import CONFIG_DIR
from rooflines.cli.output import as_table
from rooflines.fits.calibrate import RELIABLE_TIMINGS, FitReport, FitRequest, calibrate
from rooflines.fits.calibration_files import (
    CALIBRATIONS_FILE,
    EXPERTS_BAND,
    STEP_BAND,
    Calibrations,
    Errors,
    FittedTraining,
    calibrations_yaml,
    numbers_in,
    shipped_calibrations,
)
from rooflines.fits.engine_overhead import step_bands, step_fits
from rooflines.fits.fit_errors import band
from rooflines.fits.fit_errors import errors as regions_of
from rooflines.fits.fit_keys import FitKey, Software
from rooflines.fits.fitting import kernel_fit, with_estimate_errors
from rooflines.fits.held_out import FOLDS, quarters
from rooflines.fits.nominal import launched_in_graphs, with_nominal_times
from rooflines.fits.prior import prior_of
from rooflines.fits.repeats import check_repeats
from rooflines.fits.timing_tables import read_timings
from rooflines.fits.timings import ATTENTION, EXPERTS, MATMUL_TIMINGS
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.measured.catalogues import Catalogues
from rooflines.measured.join import join_timings
from rooflines.measured.judgement import ordering, pairs_of, wrong_pairs
from rooflines.measured.machine import timings_source
from rooflines.measured.unseen_models import fitted_runs
from rooflines.results.tables import metadata_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rooflines.fits.calibration_files import FittedCollective, FittedMatmul

DATA = "ai-dynamo/aiconfigurator at 095f58a5, Apache-2.0, (c) NVIDIA"

COLLECTION = ("aiconfigurator/", "custom/")
"""Starts of the sources of rows in that collection, the second of engines' own all-reduces."""

FURTHER = ("aiter/**/*tuned_gemm*.csv", "LLMServingSim/**/TPU*/**/layers.csv")
"""Patterns for tables in clones of further collections, beside `TABLES`, where there are some:
tuned matmuls on AMD's chips, and layers on a TPU."""

TABLES: Mapping[str, Mapping[str, str]] = {
    "aic-llm-grid-9-chips.parquet": {},
    "aic-engines-half.parquet": {},
    "nccl-half.parquet": {},
    "engine-all-reduce-launch-half.parquet": {},
    "engine-all-reduce-half.parquet": {"software": "trtllm"},
    "attention-half.parquet": {},
    "experts-half.parquet": {},
}
"""The public tables, those with more sizes of one thing first, with the rows that are chosen by
column. The second table of all-reduces does not tell graphs from eager launches of other engines.
"""

OWN = tuple(sorted((CONFIG_DIR / "timings").glob("*.parquet")))
"""The project's own tables, made by `rooflines measured measure`."""

DYNAMIC, BLOCK, STATIC = "dynamic scaling of x", "block scales", "static scales"
"""Further contents of matmul timings."""

HEADS = "heads of 128, no window"
"""Contents of attention timings."""

GRAPHS = "launched in CUDA graphs"
"""Contents of collective timings, where their table tells."""

PREFERRED = "min_latency"
"""Word in the names of kernels that engines take before others where they have them."""

VARIANTS = {DYNAMIC: "dynamic", BLOCK: "block"}
"""Ends of the names of software with fits of a kind of their own, by what their timings include."""

WHOLE = "one scale for a tensor"
"""Contents of expert timings in fp8 without block scales."""

EXPERTS_VARIANTS = {WHOLE: "static"}
"""The same for experts: published checkpoints with experts in fp8 have a scale for each block."""

KIN = {"h800": "h100-sxm", "mi325x": "mi300x"}
"""Chips without timings, by the chip of the same design whose fits they take where it has some."""

LIBRARY = "nccl"
"""A library of collectives, which is no engine."""

UNSTATED = {("trtllm", "fp8"): DYNAMIC}
"""Contents of timings whose table does not state them, by software and compute dtype."""

HELD_OUT_RUNS = CONFIG_DIR.parent / "docs" / "held-out-runs.txt"
"""Errors and order of served runs at models left out, which docs/accuracy.md shows."""

HELD_OUT_HEAD = (
    "Decode steps of served models, each model by fits that have not seen it, in percent"
)

STEP_SUBJECTS = ("steps", "left out")
"""Subjects of lines of the table about decode steps."""

LARGEST_ERROR = 0.25
"""Largest median error at held-out sites of a fit that is written [1]."""

ABOUT = f"""\
Fitted numbers of chips by software, for estimates. Written by `python -m benchmarks.calibration`.

The timings are from {DATA}:
selected, renamed and in SI units. Only what follows from them is here. Timings of torch are the
project's own, in timings/.
Matmuls: B from 1 to 16,384, D and F from 1,024 to 16,384. Collectives: 2 to 8 chips, half
precision, payloads from 256 bytes to 1 GiB. Attention: heads of 128, no window, contexts up to
131,072. Fits with a median error above {LARGEST_ERROR:.0%} at held-out sites are left out.

fp8 of trtllm has static scales; trtllm-dynamic includes the scaling of x, and -block is fp8 with a
scale for each block. Of vllm and sglang it is what the engine calls.

Errors are |estimated / measured - 1|; bands are the p10 and p90 of measured over estimated time.
config/README.md explains the numbers."""


def groups(path: str | Path, date: str) -> Iterator[tuple[FitKey, str, FitRequest]]:
    """The timings of each fit of a table, by chip and software, and compute dtype or collective."""
    timings = read_timings(path, TABLES.get(Path(path).name))
    name, frame = timings.kind.fit_by, timings.frame
    if "kernel" in frame.columns:
        is_fast = pl.col("kernel").str.contains(PREFERRED).fill_null(value=False)
        frame = frame.filter(is_fast | ~is_fast.any().over("chip", "software", name))
    if "contents" not in frame.columns:
        frame = frame.with_columns(contents=pl.lit(None, pl.String))
    keys = ("chip", "software", "contents", name)
    for (chip, software, stated, of), part in frame.group_by(keys, maintain_order=True):
        newest = max(part["source"].unique(), key=lambda name: numbers_in(version(name)))
        one = launched_in_graphs(replace(timings, frame=part.filter(pl.col("source") == newest)))
        if note := check_repeats(one, path):
            print(note, file=sys.stderr)
        known = (each for each in (DYNAMIC, BLOCK, STATIC) if each in str(stated or ""))
        unstated = (
            UNSTATED.get((str(software), str(of))) if timings.kind is MATMUL_TIMINGS else None
        )
        contents = next(known, unstated)
        contents = HEADS if timings.kind is ATTENTION else contents
        contents = GRAPHS if "launch" in frame.columns else contents
        variants = VARIANTS
        if timings.kind is EXPERTS:
            variants = EXPERTS_VARIANTS
            contents = contents or (WHOLE if of == "fp8" else None)
        library = str(Software(str(software), variants.get(contents or "")))
        collected = f"{newest.partition('/')[2]}, timed by {DATA}"
        if not newest.startswith(COLLECTION):
            collected = newest
        source = timings_source(metadata_of(Path(path))) if path in OWN else collected
        entry = chip_entries()[str(chip)]
        timed = version(newest) if newest.startswith(COLLECTION) else None
        request = FitRequest(one, str(chip), entry, source, date, contents=contents, version=timed)
        yield FitKey.checked(str(chip), library), str(of), request


def fitted(tables: Sequence[str | Path], date: str) -> tuple[Calibrations, list[tuple[str, ...]]]:
    """The fits of tables, and a row of errors for each; of two of one thing the first counts."""
    content: dict[str, dict[str, dict[str, Any]]] = {}
    rows: list[tuple[str, ...]] = []
    seen: dict[tuple[str, FitKey, str], FitRequest] = {}
    for key, name, request in (one for path in tables for one in groups(path, date)):
        kind = request.timings.kind.fits
        if (kind, key, name) in seen:
            continue
        seen[kind, key, name] = request
        (result,) = calibrate(request, name)
        rows.append(row(key, result))
        if error_of(result) <= LARGEST_ERROR:
            by_key = content.setdefault(result.entry.KIND, {})
            by_key.setdefault(str(key), {})[name] = result.entry
    engines = {
        (key, name, kind): request
        for (kind, key, name), request in seen.items()
        if request.source.endswith(DATA) and str(key.software) != LIBRARY
    }
    for kind, by_key in content.items():
        for text, entries in by_key.items():
            for name, entry in entries.items():
                wider = elsewhere(FitKey.parse(text), name, entry, engines)
                content[kind][text][name] = entry.model_copy(update={"elsewhere": wider})
    matmuls = content.get("calibrations", {})
    for text, entries in [*matmuls.items()]:  # where all timings include it, it is the plain fit
        chip, software = FitKey.parse(text)
        if software.variant == VARIANTS[DYNAMIC]:
            plain = matmuls.setdefault(str(FitKey(chip, Software(software.engine))), {})
            for name, entry in entries.items():
                plain.setdefault(name, entry)
    ordered = {kind: dict(sorted(by_key.items())) for kind, by_key in content.items()}
    return Calibrations.model_validate(ordered), rows


def elsewhere(
    key: FitKey,
    name: str,
    entry: FittedMatmul | FittedCollective,
    requests: Mapping[tuple[FitKey, str, str], FitRequest],
) -> tuple[float, float] | None:
    """The band of a fit at other engines' timings of the chip; None without any."""
    parts = []
    for (other, dtype, fits), request in requests.items():
        same = (other.chip, dtype, fits) == (key.chip, name, entry.KIND)
        if same and other.engine != key.engine:
            frame, _ = with_nominal_times(request.timings, request.chip, request.entry, name)
            parts.append(
                with_estimate_errors(frame.filter(~pl.col("in_cache")), entry.numbers).select(
                    "ratio"
                )
            )
    return band(pl.concat(parts)) if parts else None


def version(source: str) -> str:
    """The version in the column `source` of a public table."""
    return source.rpartition("/")[2]


def served_runs(table: Path, fits: Calibrations) -> pl.DataFrame:
    """Runs of served models with what `engine_overhead.StepFits` reads.

    Args:
        table: The runs.
        fits: Of matmuls, attention and collectives, without those of steps.
    """
    catalogues = Catalogues(chip_entries(), dtype_entries(), fits)
    return fitted_runs(join_timings(read_timings(table), catalogues).frame)


def public_tables() -> list[Path]:
    """The public tables in the folder that the environment names."""
    folder = os.environ.get("ROOFLINES_PUBLIC_DATA")
    if folder is None:
        sys.exit("name tables, or the folder of public data in ROOFLINES_PUBLIC_DATA")
    measured = Path(folder) / "measured"
    further = (path for pattern in FURTHER for path in sorted(measured.glob(pattern)))
    is_tuned = (path for path in further if "untuned" not in path.name)
    return [*(measured / name for name in TABLES), *is_tuned]


def main(arguments: Sequence[str]) -> int:
    """Print the errors of the fits of tables; write the fits if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--steps", action="store_true", help="keep the fits of kernels")
    parser.add_argument("--training", action="store_true", help="keep all fits but of training")
    parser.add_argument(
        "--every-site",
        action="store_true",
        help="hold out each quarter of sites of matmuls in turn",
    )
    options = parser.parse_args(arguments)
    threadpool_limits(1)  # small arrays: threads only wait for each other
    date = datetime.now(tz=UTC).date().isoformat()
    if options.training:
        return write_training(date)
    shipped = shipped_calibrations().model_copy(update={"steps": {}})
    tables = options.tables or [*public_tables(), *OWN]
    found, rows = shipped, list[tuple[str, ...]]()
    if options.every_site:
        rows = list(every_site(tables))
    elif not options.steps:
        found, rows = fitted(tables, date)
    if not (options.tables or options.every_site):
        served = public_tables()[0].parents[1] / "models" / "served.csv"
        source = f"runs of InferenceX, collected by {DATA}"
        steps, tested = step_fits(served_runs(served, found), source, date)
        fits = {"steps": steps, "training": training_with(shipped, date), "kin": KIN}
        found = found.model_copy(update=fits)
        rows += [step_row(key, fit["decode"].held_out) for key, fit in steps.items()]
        rows += left_out_rows(tested)
        pairs = pairs_of(tested)
        rows += [pair_row(each) for each in ordering(pairs).to_dicts()]
        rows += wrong_rows(wrong_pairs(pairs))
    names = ("chip and software", "subject", "timings", "bound", "estimate", "p90")
    print("Median errors at held-out sites in percent", as_table(names, rows, None), sep="\n")
    if options.write and not options.every_site:
        CALIBRATIONS_FILE.write_text(calibrations_yaml(found, ABOUT), encoding="utf-8")
        if not options.tables:
            steps_alone = [line for line in rows if line[1] in STEP_SUBJECTS]
            text = as_table(names, steps_alone, None)
            HELD_OUT_RUNS.write_text(f"{HELD_OUT_HEAD}\n{text}\n", encoding="utf-8")
    return 0


def training_with(shipped: Calibrations, date: str) -> dict[str, dict[str, FittedTraining]]:
    """Fits of training steps, with those that are shipped for other stacks."""
    published = public_tables()[0].parents[1] / "training" / "published-steps.csv"
    return dict(sorted({**shipped.training, **training_fits(published, date)}.items()))


def write_training(date: str) -> int:
    """Write the fits of training steps alone."""
    shipped = shipped_calibrations()
    found = shipped.model_copy(update={"training": training_with(shipped, date)})
    CALIBRATIONS_FILE.write_text(calibrations_yaml(found, ABOUT), encoding="utf-8")
    return 0


def every_site(tables: Sequence[str | Path]) -> Iterator[tuple[str, ...]]:
    """A line of the table for each fit of matmuls: each quarter of its sites held out in turn."""
    for key, name, request in (one for path in tables for one in groups(path, "")):
        if request.timings.kind is not MATMUL_TIMINGS:
            continue
        frame, _ = with_nominal_times(request.timings, request.chip, request.entry, name)
        frame = frame.filter(~pl.col("in_cache")).with_columns(quarter=quarters())
        parts = []
        for at in range(FOLDS):
            rest, kept = frame.filter(pl.col("quarter") != at), frame.filter(quarter=at)
            parts.append(
                with_estimate_errors(kept, kernel_fit(prior_of(name), "pieces").fit(rest).numbers)
            )
        (errors,) = regions_of(pl.concat(parts), ("all",)).to_dicts()
        shown = (f"{100 * errors[each]:.1f}" for each in ("bare_median", "median", "p90"))
        yield str(key), name, f"{errors['n']:,}", *shown


def error_of(result: FitReport) -> float:
    """The median error at held-out sites [1]; infinite where none is held out."""
    return result.entry.held_out.median if result.entry.held_out else inf


def step_row(key: str, errors: Errors | None) -> tuple[str, ...]:
    """A line of the table: errors of steps of models that a fit has not seen, in percent."""
    if errors is None:
        return key, "steps", "0", "-", "-", "-"
    shown = (f"{100 * error:.1f}" for error in (errors.median, errors.p90))
    return key, "steps", f"{errors.n:,}", "-", *shown


def left_out_rows(runs: pl.DataFrame) -> Iterator[tuple[str, ...]]:
    """Errors by model, chip, engine and weight format where the run's model was left out.

    Args:
        runs: From `step_fits`, with errors.

    Yields:
        A line of the table; behind the p90 the share of runs within a band from other models, and
        a mark where no chip and engine of the runs has a fit: such an estimate says so.
    """
    parts = []
    for (key, model), part in runs.group_by("key", "model", maintain_order=True):
        bands = step_bands(runs.filter(pl.col("model") != model), str(key))
        low, high = bands[EXPERTS_BAND if part["routed"].any() else STEP_BAND]
        parts.append(part.with_columns(covered=pl.col("ratio").is_between(low, high)))
    judged = pl.concat(parts).with_columns(in_key=pl.len().over("key"))
    for column in ("model", "chip", "engine", "key", "dtypes", "source"):
        shares = judged.group_by(column).agg(
            n=pl.len(),
            median=100 * pl.col("error").median(),
            p90=100 * pl.col("error").quantile(0.9, "linear"),
            covered=100 * pl.col("covered").mean(),
            beyond=(pl.col("in_key") < RELIABLE_TIMINGS).all(),
        )
        named = shares.drop_nulls(column).sort(column)
        for name, n, middle, worst, covered, beyond in named.iter_rows():
            mark = ", no fit there" if beyond else ""
            errors = (f"{middle:.1f}", f"{worst:.1f}, {covered:.0f} % in band{mark}")
            yield f"{column} {name}", "left out", f"{n:,}", "-", *errors


def pair_row(pairs: Mapping[str, Any]) -> tuple[str, ...]:
    """A line of the table: pairs of such steps that are ordered wrongly, in percent."""
    wrong = (f"{100 * (1 - pairs[name]):.1f}" for name in ("bound_right", "estimate_right"))
    return f"wrong pairs of {pairs['subject']}", "steps", f"{pairs['apart']:,}", *wrong, "-"


def wrong_rows(pairs: pl.DataFrame) -> Iterator[tuple[str, ...]]:
    """Lines of the table: wrong pairs of steps by model and reason, with their number."""
    names = ("subject", "model", "reason")
    counts = pairs.group_by(names, maintain_order=True).agg(n=pl.len()).sort(*names)
    for subject, model, reason, n in counts.iter_rows():
        yield f"wrong {subject} of {model}", "steps", f"{n}", "-", "-", reason


def row(key: FitKey, result: FitReport) -> tuple[str, ...]:
    """A line of the table: median errors at held-out sites in percent."""
    found = result.regions.filter(split="held out", region="all").to_dicts()
    errors = [100 * one[name] for one in found for name in ("bare_median", "median", "p90")]
    number = f"{found[0]['n']:,}" if found else "0"
    return str(key), result.name, number, *(f"{error:.1f}" for error in errors or [inf] * 3)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
