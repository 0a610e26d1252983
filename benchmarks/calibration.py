"""Fit every chip and software of public timings: `python -m benchmarks.calibration --write`.

Without tables it reads those of `TABLES` in `measured` of the folder `ROOFLINES_PUBLIC_DATA`. It
prints the median errors at held-out sites of the bound and of the fit. `--write` writes the fits to
config/calibrations.yaml, which comes with the package. The column `source` of a table is
`<collection>/<software>/<version>`; of several versions the newest is fitted.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from rooflines.catalogue.chips import chip_entries, dtype_entries
from rooflines.cli.output import as_table
from rooflines.fits.calibrate import ENOUGH, FitReport, FitRequest, calibrate, errors_of
from rooflines.fits.entries import (
    CALIBRATIONS_FILE,
    Calibrations,
    FittedStep,
    key_of,
    kind_of,
    text_of,
)
from rooflines.fits.judge import BAND, with_errors
from rooflines.fits.read import read_timings
from rooflines.fits.solving import Problem, rounded
from rooflines.fits.timings import FIT_BY
from rooflines.measured.catalogues import Catalogues
from rooflines.measured.join import joined
from rooflines.models.library import model_entries

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

DATA = "ai-dynamo/aiconfigurator at 095f58a5, Apache-2.0, (c) NVIDIA"

TABLES = (
    "aic-llm-grid-9-chips.parquet",
    "aic-engines-half.parquet",
    "nccl-half.parquet",
    "engine-all-reduce-half.parquet",
    "attention-half.parquet",
)
"""The public tables, those with more sizes of one thing first."""

DYNAMIC, BLOCK, STATIC = "dynamic scaling of x", "block scales", "static scales"
"""What timings of matmuls include besides."""

HEADS = "heads of 128, no window"
"""What timings of attention are of."""

VARIANTS = {DYNAMIC: "-dynamic", BLOCK: "-block"}
"""Ends of the names of software with fits of a kind of their own, by what their timings include."""

UNSTATED = {("trtllm", "fp8"): DYNAMIC}
"""What timings include where their table does not say it, by software and compute dtype."""

LARGEST_ERROR = 0.25
"""Largest median error at held-out sites of a fit that is written [1]."""

ABOUT = f"""\
Fitted numbers of chips by software, for estimates. Written by `python -m benchmarks.calibration`.

The timings are from {DATA}:
selected, renamed and in SI units. Only what follows from them is here.
Matmuls: B from 1 to 16,384, D and F from 1,024 to 16,384. Collectives: 2 to 8 chips, half
precision, payloads from 256 bytes to 1 GiB. Attention: heads of 128, no window, contexts up to
131,072. Fits with a median error above {LARGEST_ERROR:.0%} at held-out sites are left out.

fp8 of trtllm has static scales; trtllm-dynamic includes the scaling of x, and -block is fp8 with a
scale for each block. Of vllm and sglang it is what the engine calls.

Errors are |estimated / measured - 1|; bands are the p10 and p90 of measured over estimated time.
config/README.md explains the numbers."""


def groups(path: str | Path, date: str) -> Iterator[tuple[str, str, FitRequest]]:
    """The timings of each fit of a table, by chip and software, and compute dtype or collective."""
    timings = read_timings(path)
    name, frame = FIT_BY[timings.kind], timings.frame
    if "contents" not in frame.columns:
        frame = frame.with_columns(contents=pl.lit(None, pl.String))
    keys = ("chip", "software", "contents", name)
    for (chip, software, stated, of), part in frame.group_by(keys, maintain_order=True):
        newest = max(part["source"].unique(), key=version)
        one = replace(timings, frame=part.filter(pl.col("source") == newest))
        known = (each for each in (DYNAMIC, BLOCK, STATIC) if each in str(stated or ""))
        contents = next(known, UNSTATED.get((str(software), str(of))))
        contents = HEADS if timings.kind == "attention" else contents
        library = f"{software}{VARIANTS.get(contents or '', '')}"
        source = f"{newest.partition('/')[2]}, timed by {DATA}"
        entry = chip_entries()[str(chip)]
        request = FitRequest(one, str(chip), entry, source, date, contents=contents)
        yield key_of(str(chip), library), str(of), request


def fitted(tables: Sequence[str | Path], date: str) -> tuple[Calibrations, list[tuple[str, ...]]]:
    """The fits of tables, and a row of errors for each; of two of one thing the first counts."""
    content: dict[str, dict[str, dict[str, object]]] = {}
    rows: list[tuple[str, ...]] = []
    seen: set[tuple[str, str]] = set()
    for key, name, request in (one for path in tables for one in groups(path, date)):
        if (key, name) in seen:
            continue
        seen.add((key, name))
        (result,) = calibrate(request, name)
        rows.append(row(key, result))
        if error_of(result) <= LARGEST_ERROR:
            by_key = content.setdefault(kind_of(result.entry), {})
            by_key.setdefault(key, {})[name] = result.entry
    matmuls = content.get("calibrations", {})
    for key, entries in [*matmuls.items()]:  # where all timings include it, it is the plain fit
        if key.endswith(VARIANTS[DYNAMIC]):
            plain = matmuls.setdefault(key.removesuffix(VARIANTS[DYNAMIC]), {})
            for name, entry in entries.items():
                plain.setdefault(name, entry)
    ordered = {kind: dict(sorted(by_key.items())) for kind, by_key in content.items()}
    return Calibrations.model_validate(ordered), rows


def version(source: str) -> tuple[int, ...]:
    """The numbers in a version, to compare it with others."""
    return tuple(map(int, re.findall(r"\d+", source.rpartition("/")[2])))


STEP_PRIOR = {
    "prompts": Fraction(2),
    "layer_s": Fraction("3e-5"),
    "experts_layer_s": Fraction("1e-5"),
    "sequence_s": Fraction("4e-5"),
}
"""Where the fit of what an engine adds to the kernels of a step starts."""


def step_fits(table: Path, fits: Calibrations, date: str) -> dict[str, dict[str, FittedStep]]:
    """What engines add to the kernels of a step, fitted to runs of served models.

    Args:
        table: The runs.
        fits: Of matmuls and collectives, without those of steps.
        date: The day of the fit.

    Returns:
        By engine, and by chip and engine where there are `ENOUGH` runs, then by phase; `held_out`
        is of each model by a fit to the others, of the engine on all chips where these are few.
    """
    catalogues = Catalogues(chip_entries(), dtype_entries(), fits)
    runs = joined(read_timings(table), catalogues).frame.drop_nulls("t_kernels_s")
    shapes = {name: model_entries()[name] for name in runs["model"].unique()}
    counts = {"layers": "layers", "expert_layers": "moe_layers"}
    runs = runs.with_columns(
        key=pl.format("{}/{}", "chip", "software"),
        sequences=pl.col("estimate_B") / pl.col("dp"),
        **{
            column: pl.col("model").replace_strict(
                {name: getattr(shape, count) for name, shape in shapes.items()},
                return_dtype=pl.Float64,
            )
            for column, count in counts.items()
        },
    )
    groups_of_runs = [
        *runs.group_by("software", maintain_order=True),
        *runs.group_by("key", maintain_order=True),
    ]
    found = {}
    for (key,), part in groups_of_runs:
        if part.height < ENOUGH:
            continue
        numbers, held = step_problem(part).fit(list(STEP_PRIOR))
        engine = runs.filter(pl.col("software") == str(key).rpartition("/")[2])
        of_others = []
        for (model,), rows in part.group_by("model", maintain_order=True):
            other = pl.col("model") != model
            others = part.filter(other)
            others = others if others.height >= ENOUGH else engine.filter(other)
            fit_of_others, _ = step_problem(others).fit(list(STEP_PRIOR))
            of_others.append(judged_steps(rows, fit_of_others))
        fitted_runs, tested = judged_steps(part, numbers), pl.concat(of_others)
        ends = [tested["ratio"].quantile(share, "linear") for share in BAND]
        about = {
            "bands": {"step": [float(rounded(float(end or 1))) for end in ends]},
            "held": list(held),
            "fitted": errors_of(fitted_runs),
            "held_out": errors_of(tested),
            "source": f"runs of InferenceX, collected by {DATA}",
            "date": date,
        }
        entry = FittedStep.model_validate({**{k: float(v) for k, v in numbers.items()}, **about})
        found[str(key)] = {"decode": entry}
    return dict(sorted(found.items()))


def step_times(numbers: Mapping[str, float], runs: pl.DataFrame) -> pl.Series:
    """The times of steps with what an engine adds to their kernels [s]."""
    columns = ("prompts_s", "layers", "expert_layers", "sequences")
    added = zip(STEP_PRIOR, columns, strict=True)
    terms = (float(numbers[name]) * pl.col(column) for name, column in added)
    return runs.select(pl.sum_horizontal("t_kernels_s", *terms)).to_series()


def step_problem(runs: pl.DataFrame) -> Problem:
    """The fit of what an engine adds to the kernels of a step."""
    seconds = runs["seconds"].to_numpy()
    return Problem(seconds, lambda n: step_times(n, runs).to_numpy(), STEP_PRIOR, ({},))


def judged_steps(runs: pl.DataFrame, numbers: Mapping[str, Fraction]) -> pl.DataFrame:
    """Runs with their estimate by fitted numbers, and its errors."""
    times = step_times({name: float(number) for name, number in numbers.items()}, runs)
    return with_errors(runs.with_columns(t_estimate_s=times))


def public_tables() -> list[Path]:
    """The public tables in the folder that the environment names."""
    folder = os.environ.get("ROOFLINES_PUBLIC_DATA")
    if folder is None:
        sys.exit("name tables, or the folder of public data in ROOFLINES_PUBLIC_DATA")
    return [Path(folder) / "measured" / name for name in TABLES]


def main(arguments: Sequence[str]) -> int:
    """Print the errors of the fits of tables; write the fits if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    date = datetime.now(tz=UTC).date().isoformat()
    tables = options.tables or public_tables()
    found, rows = fitted(tables, date)
    if not options.tables:
        served = public_tables()[0].parents[1] / "models" / "served.csv"
        found = found.model_copy(update={"steps": step_fits(served, found, date)})
        rows += [step_row(engine, fit["decode"]) for engine, fit in found.steps.items()]
    names = ("chip and software", "of", "timings", "bound", "estimate", "p90")
    print("Median errors at held-out sites in percent", as_table(names, rows, None), sep="\n")
    if options.write:
        CALIBRATIONS_FILE.write_text(text_of(found, ABOUT), encoding="utf-8")
    return 0


def error_of(result: FitReport) -> float:
    """The median error at held-out sites [1]; infinite where none is held out."""
    return result.entry.held_out.median if result.entry.held_out else inf


def step_row(engine: str, fit: FittedStep) -> tuple[str, ...]:
    """A line of the table: errors of steps of models that a fit has not seen, in percent."""
    errors = fit.held_out or fit.fitted
    shown = (f"{100 * error:.1f}" for error in (errors.median, errors.p90))
    return engine, "steps", f"{errors.n:,}", "-", *shown


def row(key: str, result: FitReport) -> tuple[str, ...]:
    """A line of the table: median errors at held-out sites in percent."""
    found = result.regions.filter(split="held out", region="all").to_dicts()
    errors = [100 * one[name] for one in found for name in ("bare_median", "median", "p90")]
    number = f"{found[0]['n']:,}" if found else "0"
    return key, result.name, number, *(f"{error:.1f}" for error in errors or [inf] * 3)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
