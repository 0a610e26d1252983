"""Errors on docs/accuracy.md: held-out errors first, then in-sample ones and published steps."""

from __future__ import annotations

import os
import re
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import polars as pl
from blocks import table, with_block, with_values
from documents import DOCS
from training_page import with_steps

from rooflines.basics.files import CONFIG_DIR
from rooflines.basics.text import significant
from rooflines.cli.main import run
from rooflines.fits.calibration_files import ALL_ENGINES, FittedTraining, shipped_calibrations
from rooflines.fits.fit_keys import FitKey
from rooflines.fits.timing_tables import read_timings
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.hardware.dtype_catalogue import dtype_entries
from rooflines.hardware.timing_errors import BOUND, LONG, MATMUL, SHORT, STEP, measured_quantiles
from rooflines.measured.catalogues import Catalogues
from rooflines.measured.join import join_timings
from rooflines.measured.served import MIN_LENGTH_SHARE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rooflines.fits.calibration_files import Errors, Fitted, FittedStep

ACCURACY = DOCS / "accuracy.md"
JUDGED_RUNS = DOCS / "judged-runs.txt"
"""Output of `rooflines measured judge` for public runs of served models."""

HELD_OUT_RUNS = DOCS / "held-out-runs.txt"

WRONG_PAIRS = re.compile(r"^wrong pairs of (\S+) .* ([\d.]+) +-$", re.MULTILINE)
"""Kind of pairs and the share that is ordered wrongly [%], in lines of `HELD_OUT_RUNS`."""

GROUPS = {"model": "model", "chip": "chip", "engine": "engine", "dtypes": "weights"}
"""Groups of runs in the same lines, with their names on the page."""

PLACE = "key"
"""Group of runs on one chip with one engine."""

NAMES = "|".join((*GROUPS, PLACE))

WITHIN = (70, 90)
"""Shares in a band of 8 in 10 runs that count as such [%]."""

LEFT_OUT = re.compile(
    rf"^({NAMES}) (\S+) +left out +([\d,]+) +- +([\d.]+) +([\d.]+), (\d+) % in band",
    re.MULTILINE,
)
"""Group, name, runs, median error, p90 and share in the band [%]."""

ENGINES = {"trtllm": "TensorRT-LLM", "vllm": "vLLM", "sglang": "SGLang"}
SOFTWARE = {**ENGINES, "torch": "torch"}
NCCL = "nccl"

NOMINAL_TOKENS = 1024
"""A nominal length of answers, with which the page shows what is counted [1]."""

MIN_SITE = 1024
"""D and F from which on fits to engines are judged at the project's own timings [1]."""


def percent(error: float) -> str:
    """An error as the page writes it."""
    return f"{100 * error:.1f} %"


def percents(errors: Iterable[float]) -> str:
    """The smallest and largest of several errors; a dash where there are none."""
    ends = sorted(errors)
    if not ends:
        return "-"
    low, high = percent(ends[0]), percent(ends[-1])
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def held_out_fits(kind: str, prefix: str = "") -> list[tuple[FitKey, Errors]]:
    """Keys and held-out errors of the fits of a kind whose names begin with a prefix."""
    fits: Mapping[FitKey, Mapping[str, Fitted]] = shipped_calibrations().by_key[kind]
    return [
        (key, fit.held_out)
        for key, by_name in fits.items()
        for name, fit in by_name.items()
        if name.startswith(prefix) and fit.held_out
    ]


def engine_steps() -> dict[tuple[str, str], FittedStep]:
    """Fits of decode steps by chip and engine."""
    return {
        (key.chip, key.engine): by_phase["decode"]
        for key, by_phase in shipped_calibrations().by_key["steps"].items()
        if key.chip is not None
    }


def all_runs() -> FittedStep:
    """The fit of decode steps to the runs of all chips and engines."""
    return shipped_calibrations().steps[ALL_ENGINES]["decode"]


def held_out_of(fit: Fitted) -> Errors:
    """Held-out errors of a fit.

    Raises:
        ValueError: It has none.
    """
    if fit.held_out is None:
        raise ValueError(fit.source)
    return fit.held_out


def kinds_of_estimates() -> Iterator[Sequence[str]]:
    """Cells of each kind of estimate: what is held out, fits, and their median errors."""
    for label, unseen, kind, prefix in (
        ("one matmul", "a quarter of the sites (D, F)", "calibrations", ""),
        ("attention in decode", "a quarter of the head counts (N, K)", "attention", "decode"),
        ("attention in prefill", "a quarter of the head counts (N, K)", "attention", "prefill"),
        ("routed experts", "each quarter of the shapes in turn", "experts", ""),
        ("one collective", "a quarter of the payloads", "collectives", ""),
    ):
        medians = [errors.median for _, errors in held_out_fits(kind, prefix)]
        yield label, unseen, f"{len(medians)}", percent(median(medians)), percents(medians)
    by_engine = [held_out_of(fit).median for fit in engine_steps().values()]
    served = held_out_of(all_runs())
    yield (
        "**TPOT of a served model**",
        "the model",
        f"{len(by_engine)}",
        f"**{percent(served.median)}**",
        percents(by_engine),
    )
    training = [held_out_of(fit).median for _, _, _, fit in trained_fits()]
    middle, by_fit = percent(median(training)), percents(training)
    yield "a training step", "the model", f"{len(training)}", middle, by_fit


def trained_fits() -> list[tuple[list[str], str, str, FittedTraining]]:
    """Chips, stack, kind and fit of training: one for all chips that share it."""
    fits = dict[tuple[str, str, str], tuple[list[str], str, str, FittedTraining]]()
    for key, by_name in shipped_calibrations().by_key["training"].items():
        for name, fit in by_name.items():
            chips, *_ = fits.setdefault(
                (str(key.software), name, str(fit.times)), ([], str(key.software), name, fit)
            )
            chips.append(str(key.chip))
    return [*fits.values()]


def trained_errors() -> Iterator[Sequence[str]]:
    """Cells of each training fit: chips, stack, dtypes, steps, models, errors, band."""
    for chips, stack, name, fit in trained_fits():
        errors, (low, high) = held_out_of(fit), fit.bands["step"]
        timed = ", ".join(chip for chip in fit.chips if chip not in chips or len(chips) > 1)
        kind = name.removeprefix("train").removeprefix("-").replace("-experts", ", MoE")
        yield (
            ", ".join(chips),
            stack,
            kind or "bf16",
            _slowdown(fit),
            f"{errors.n}{f' on {timed}' if timed else ''}",
            f"{len(fit.models) or '-'}",
            percent(errors.median),
            percent(errors.p90),
            f"{significant(float(low))} to {significant(float(high))}",
        )


def _slowdown(fit: FittedTraining) -> str:
    """Slowdown in words, such as `5.09 (D/8192)^-0.327 x math`."""
    base = "math" if fit.base == "math" else "no overlap"
    width = f" (D/8192)^{fit.width_power:.3g}" if fit.width_power else ""
    return f"{significant(float(fit.times))}{width} x {base}"


def served_errors() -> Iterator[Sequence[str]]:
    """Cells of each chip and engine at models left out: runs, errors, and the band."""
    rows = {("all", "all"): all_runs(), **engine_steps()}
    for (chip, engine), fit in rows.items():
        errors, name = held_out_of(fit), ENGINES.get(engine, engine)
        ends = [
            "{} to {}".format(*map(significant, fit.band_of(experts=experts) or ()))
            for experts in (False, True)
        ]
        yield chip, name, f"{errors.n:,}", percent(errors.median), percent(errors.p90), *ends


def by_software(kind: str, names: Sequence[str], prefix: str = "") -> Iterator[Sequence[str]]:
    """Cells of each chip: the median held-out errors of its fits by software, variants included."""
    cells: dict[str, dict[str, list[float]]] = {}
    for key, errors in held_out_fits(kind, prefix):
        by_name = cells.setdefault(str(key.chip), {})
        by_name.setdefault(key.engine, []).append(errors.median)
    for chip, by_name in cells.items():
        yield chip, *(percents(by_name.get(name, ())) for name in names)


def over_bound() -> Iterator[Sequence[str]]:
    """Cells of each chip: median measured time over the bound, by software and dtypes."""
    frame = measured_quantiles().filter(pl.col("over") == BOUND)
    kinds = [
        pl.col("length").eq_missing(length) & pl.col("subject").eq(kind)
        for kind, length in ((MATMUL, LONG), (MATMUL, SHORT), (STEP, None))
    ]
    for chip in frame["chip"].drop_nulls().unique(maintain_order=True):
        parts = [frame.filter(kind, pl.col("chip") == chip)["p50"].to_list() for kind in kinds]
        yield chip, *(_factors(part) for part in parts)


def _factors(values: Sequence[float]) -> str:
    if not values:
        return "-"
    low, high = significant(min(values), 3), significant(max(values), 3)
    return low if low == high else f"{low} to {high}"


def own_timings() -> dict[str, str]:
    """The project's own timings, and the errors of fits to engines at them in bf16."""
    files = sorted((CONFIG_DIR / "timings").glob("*.parquet"))
    shipped = Catalogues(chip_entries(), dtype_entries(), shipped_calibrations())
    errors, count = [], 0
    for file in files:
        timings = read_timings(file)
        count += timings.frame.height
        inside = pl.col("D").ge(MIN_SITE) & pl.col("F").ge(MIN_SITE) & pl.col("compute").eq("bf16")
        for engine in ENGINES:
            frame = timings.frame.filter(inside).with_columns(software=pl.lit(engine))
            rows = join_timings(replace(timings, frame=frame), shipped).frame
            errors.append(median(abs(1 / ratio - 1) for ratio in rows["ratio_estimate"]))
    return {"timed": f"{count:,}", "engines": percents(errors)}


def judged_text(text: str) -> str:
    """The current judgement of public runs, where `ROOFLINES_PUBLIC_DATA` names their folder."""
    folder = os.environ.get("ROOFLINES_PUBLIC_DATA")
    if folder is None:
        return text
    parts = []
    for name in ("served.csv", "served-pools-half.csv"):
        runs = Path(folder) / "models" / name
        with redirect_stdout(StringIO()) as printed:
            run(["measured", "judge", str(runs)])
        parts.append(printed.getvalue().replace(str(runs), runs.name).rstrip() + "\n")
    return "\n".join(parts)


CHOICES = re.compile(
    r"^(mixed|pools) +(\S.*?) {2,}([\d,]+) +([\d.]+) +([\d.]+%) +([\d.]+|-) +([\d.]+%|-) +"
    r"([\d.]+%|-) +([\d.]+%|-) +([\d.]+%|-) +([\d.]+%|-)$",
    re.MULTILINE,
)
"""A line of choices in the judgement: kind, basis or rule, choices, reach, and errors."""

MODEL_CHOICES = re.compile(
    r"^(mixed|pools) +(\S+) +([\d,]+) +([\d.]+) +([\d.]+) +([\d.]+%)$", re.MULTILINE
)
"""A line of choices by model in the judgement."""

SERVER_KINDS = {"mixed": "mixed servers", "pools": "two pools"}


def chosen_deployments(text: str) -> Iterator[Sequence[str]]:
    """Cells of choices by each basis and rule: reach, ties, limits kept, errors at the choice."""
    for kind, by, n, reach, _, ties, kept, tpot, tpot_p90, out, out_p90 in CHOICES.findall(text):
        errors = [f"{middle}, p90 {worst}" for middle, worst in ((tpot, tpot_p90), (out, out_p90))]
        cells = [
            reach,
            ties,
            kept,
            *(
                error if middle != "-" else "-"
                for error, middle in zip(errors, (tpot, out), strict=True)
            ),
        ]
        yield SERVER_KINDS[kind], by, n, *cells


def chosen_by_model(text: str) -> Iterator[Sequence[str]]:
    """Cells of choices by the estimate, for each model."""
    for kind, model, *cells in MODEL_CHOICES.findall(text):
        yield SERVER_KINDS[kind], model, *cells


PAIRS = re.compile(
    r"^(\w+) +([\d,]+) +([\d,]+) +([\d.]+%) +([\d.]+%) +([\d.]+) +([\d.]+)$", re.MULTILINE
)
"""A line of the judgement: pairs that differ in one thing, and how many are in the right order."""


def ordered_pairs(text: str) -> Iterator[Sequence[str]]:
    """Cells of each kind of pairs in the judgement, and by fits that have not seen the model."""
    wrong = dict(WRONG_PAIRS.findall(HELD_OUT_RUNS.read_text(encoding="utf-8")))
    mixed, _, _ = text.partition("served-pools-half.csv")
    for name, _, apart, bound, estimate, _, tau in PAIRS.findall(mixed):
        yield name, apart, bound, f"{100 - float(wrong[name]):.1f}%", estimate, tau


def left_out_groups() -> Iterator[Sequence[str]]:
    """Cells of each model and each format of weights at models left out: errors and coverage."""
    for kind, name, n, middle, worst, inside in LEFT_OUT.findall(
        HELD_OUT_RUNS.read_text(encoding="utf-8")
    ):
        if kind != PLACE:
            yield GROUPS[kind], name, n, f"{middle} %", f"{worst} %", f"{inside} %"


def outside_bands(text: str) -> str:
    """Models, chips and engines with fewer or more runs in their bands than `WITHIN`, by share.

    Args:
        text: Lines of `HELD_OUT_RUNS`.
    """
    low, high = WITHIN
    shares = {name: int(inside) for _, name, _, _, _, inside in LEFT_OUT.findall(text)}
    outside = {name: share for name, share in shares.items() if not low <= share <= high}
    told = [
        (share, name)
        for name, share in outside.items()
        if outside.get(FitKey.parse(name).chip or "") != share  # its only engine
    ]
    return ", ".join(f"{name} ({share} %)" for share, name in sorted(told))


def values_of(text: str) -> dict[str, str]:
    """Values of sentences about served models, by their names."""
    shorter, nominal = MIN_LENGTH_SHARE
    counts = re.search(
        r"([\d,]+) timings with a bound, ([\d,]+) with an estimate, (\d+) below", text
    )
    if counts is None:
        raise ValueError(JUDGED_RUNS)
    errors = [held_out_of(fit).median for fit in engine_steps().values()]
    return {
        "unseen": percent(held_out_of(all_runs()).median),
        "worst": percent(held_out_of(all_runs()).p90),
        "spread": f"{100 * min(errors):.0f} to {100 * max(errors):.0f} %",
        "seen": percent(all_runs().fitted.median),
        "beyond": outside_bands(HELD_OUT_RUNS.read_text(encoding="utf-8")),
        "bounded": counts[1],
        "estimated": counts[2],
        "below": counts[3],
        **dict(zip(("above", "planned"), _runs_above(text), strict=True)),
        "nominal": f"{NOMINAL_TOKENS:,}",
        "cut": f"{NOMINAL_TOKENS * shorter // nominal:,}",
        **own_timings(),
    }


def _runs_above(text: str) -> tuple[str, str]:
    """Runs above the bound in output tokens/s/chip, and all, over both tables."""
    counts = re.findall(r"([\d,]+) of ([\d,]+) runs above the bound", text)
    above, planned = (
        sum(int(number.replace(",", "")) for number in numbers)
        for numbers in zip(*counts, strict=True)
    )
    return f"{above:,}", f"{planned:,}"


def with_errors(page: str) -> str:
    """docs/accuracy.md with current errors."""
    page, training = with_steps(page)
    text = JUDGED_RUNS.read_text(encoding="utf-8")
    all_reduces = [f"{name} all-reduce" for name in ENGINES.values()]
    blocks: Mapping[str, tuple[Sequence[str], Iterable[Sequence[str]]]] = {
        "held_out": (
            ("estimate", "held out", "fits", "median error", "by fit"),
            kinds_of_estimates(),
        ),
        "served": (
            ("chip", "engine", "runs", "median error", "p90", "dense, 8 of 10", "MoE, 8 of 10"),
            served_errors(),
        ),
        "left_out": (
            ("by", "", "runs", "median error", "p90", "in band"),
            left_out_groups(),
        ),
        "trained": (
            (
                *("chips", "stack", "dtypes", "step", "steps", "models"),
                *("median error", "p90", "8 of 10"),
            ),
            trained_errors(),
        ),
        "matmuls": (("chip", *SOFTWARE.values()), by_software("calibrations", [*SOFTWARE])),
        "collectives": (
            ("chip", "NCCL", *all_reduces),
            by_software("collectives", [NCCL, *ENGINES]),
        ),
        "pairs": (
            (
                *("pairs of", "counted", "right by bound"),
                *("right by estimate, model left out", "model fitted", "tau, model fitted"),
            ),
            ordered_pairs(text),
        ),
        "choices": (
            (
                *("servers", "chosen by", "choices", "reach", "ties tried", "TPOT kept"),
                *("TPOT error", "output/chip error"),
            ),
            chosen_deployments(text),
        ),
        "choices_by_model": (
            ("servers", "model", "choices", "reach", "ties tried", "TPOT kept"),
            chosen_by_model(text),
        ),
        "bounds": (("chip", "matmuls", "short matmuls", "decode steps"), over_bound()),
    }
    for name, (head, rows) in blocks.items():
        page = with_block(page, name, table(head, rows))
    return with_values(page, values_of(text) | training)
