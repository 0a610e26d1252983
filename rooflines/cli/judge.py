"""`rooflines measured judge`: how well the bound and the estimate decide, by timings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import polars as pl

from rooflines.answers.training_runs import is_training_table, run_errors, training_runs
from rooflines.basics.errors import RooflinesError, check_choice
from rooflines.basics.files import read_csv
from rooflines.basics.text import counted, significant
from rooflines.cli.join import counts, joined_table, timings_options
from rooflines.cli.output import WithExamples, catalogues_of, prints_frame, table
from rooflines.fits.calibration_files import (
    merge_calibrations,
    read_calibrations,
    shipped_calibrations,
)
from rooflines.measured.judged_plans import LIMITS_S, choice_errors
from rooflines.measured.judgement import judge_set
from rooflines.serving.servers import ESTIMATE_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.cli.output import Printed
    from rooflines.measured.judgement import Judgement

MAX_WRONG_PAIRS = 20
"""Pairs that are shown [1]; CSV has all."""

HELD_OUT = {
    "subject": "of",
    "n": "runs",
    "median": "estimate: median error",
    "p90": "p90",
    "spread": "measured / estimate, 8 of 10",
    "experts": "with routed experts",
}
GROUPED = {
    "subject": "by",
    "name": "",
    "n": "runs",
    "outside": "outside the fit",
    "median": "estimate: median error",
    "p90": "p90",
    "ratio": "measured / estimate",
    "coverage": "in band",
}
ERRORS = {
    "subject": "of",
    "split": "split",
    "n": "timings",
    "bare_median": "bound: median error",
    "estimate_median": "estimate: median error",
    "estimate_p90": "p90",
    "band_coverage": "in band",
}
PAIRS = {
    "subject": "pairs of",
    "pairs": "all",
    "apart": ">25% apart",
    "bound_right": "bound right",
    "estimate_right": "estimate right",
    "bound_tau": "bound tau",
    "estimate_tau": "estimate tau",
}
WRONG = {
    "subject": "pairs of",
    **{name: name for name in ("one", "other", "measured", "bound", "estimate")},
    "reason": "reason",
    "same": "the same",
}
CHOICES = {
    "kind": "servers",
    "by": "chosen by",
    "choices": "choices",
    "reach": "reach",
    "nearly_best_share": "0.95 or more",
    "reach_ties": "ties tried",
    "kept_share": "TPOT kept",
    "tpot_median": "TPOT: median error",
    "tpot_p90": "p90",
    "output_median": "output/chip: median error",
    "output_p90": "its p90",
}
MODELS = {
    "kind": "servers",
    "model": "model",
    **{name: CHOICES[name] for name in ("choices", "reach", "reach_ties", "kept_share")},
}
"""Column titles on a screen: errors, order of pairs, single pairs, choices of deployments."""

STEPS = {
    "stack": "stack",
    "chip": "chip",
    "steps": "steps",
    "answered": "answered",
    "below": "below the bound",
    "estimated": "estimated",
    "median": "median error",
    "p90": "p90",
    "ratio": "measured/estimate",
    "coverage": "in band",
    "pairs": "pairs",
    "right_share": "ordered right",
}
"""Column titles on a screen for training steps."""

CHOICE = {
    "model": "model",
    "chip": "chip",
    "software": "engine",
    "dtypes": "weights",
    "lengths": "in, out",
    "tpot_limit_s": "TPOT within",
    "chosen": "chosen",
    "best": "best",
    "reach": "reach",
    "kept": "kept",
}
"""Column titles on a screen for single choices."""


@click.command("judge", cls=WithExamples)
@click.argument("table")
@timings_options
@click.option("--wrong", is_flag=True, help="List the pairs that the estimate orders wrongly.")
@click.option("--choices", is_flag=True, help="List the deployments that the estimate chooses.")
@prints_frame
def command(  # noqa: PLR0913, the options
    *,
    table: str,
    where: Sequence[str],
    calibrations: Sequence[str],
    config: str | None,
    wrong: bool,
    choices: bool,
) -> Printed:
    """Judge the bound and the estimate by the timings of TABLE: errors, bands, order of pairs.

    Errors are |estimated / measured - 1|. Of served models those at models that no fit of steps has
    seen stand first: they are what to expect of another model, errors in sample are not.
    `in band` is the share of timings between p10 and p90 of the estimate. A pair differs in one
    thing, such as the chip; it counts as ordered right where the faster one is also estimated to be
    faster, of pairs whose measured times differ by more than 25 %. Kendall's tau is of all pairs.
    Runs of served models are compared by the time of a token on one chip.

    Where runs of a model, chip, engine, formats and lengths have several splits, each basis chooses
    among them within TPOT of 20, 30, 50 and 100 ms, as `rooflines serve` would with the requests in
    flight of each run. Reach is the best measured output tokens/s/chip of the chosen deployment
    over the best of all; a choice keeps TPOT where the chosen run does, within 5 %. CSV has the
    errors by region, or the pairs of --wrong, or the choices of --choices; JSON has all.

    A table of training steps has model, chip, chips, global_batch (or B), sequence_length (or S)
    and seconds, and where known tp, pp, cp, ep, vpp, micro_batch, shard, recompute, precision,
    stack and stack_version. Its pairs are of one model and stack; a stack without a fit has the
    bound alone.

    Examples:
        rooflines measured judge served.csv
        rooflines measured judge timings.parquet --where chip=h100-sxm --where software=trtllm
        rooflines measured judge timings.csv --calibrations mine.yaml --json
        rooflines measured judge served.csv --wrong --csv > wrong.csv
        rooflines measured judge served.csv --choices
    """
    if (steps := _training_steps(table, where)) is not None:
        if wrong or choices:
            problem = "lists served runs, and the table has training steps"
            raise RooflinesError("--wrong" if wrong else "--choices", problem, "leave it out")
        return _training(steps, calibrations, config)
    timing_set, joined = joined_table(table, where, calibrations, config)
    judgement = judge_set(timing_set, joined)
    if wrong and choices:
        raise RooflinesError("--choices", "and --wrong are two lists", "ask for one of them")
    shown, frame = _text(judgement), judgement.errors
    if wrong:
        shown, frame = _wrong(judgement.wrong), judgement.wrong
    elif choices:
        shown, frame = _choices(judgement.choices), judgement.choices
    text = "\n".join([*counts(timing_set, joined), "", *shown])
    return frame, text, judgement.plain


def _training_steps(path: str, where: Sequence[str]) -> pl.DataFrame | None:
    """Training steps in a CSV file, those that are asked for; None: it has no such columns."""
    if Path(path).suffix != ".csv" or not Path(path).is_file():
        return None
    frame = read_csv(path, infer_schema_length=None)
    if not is_training_table(frame.columns):
        return None
    for column, value in (word.split("=", 1) for word in where if "=" in word):
        check_choice(column, frame.columns, "no column of the table")
        frame = frame.filter(pl.col(column).cast(pl.String) == value)
    return frame


def _training(steps: pl.DataFrame, calibrations: Sequence[str], config: str | None) -> Printed:
    """Errors of training steps by stack and chip, and what has no answer."""
    entries = catalogues_of(config)
    shipped = entries.calibrations or shipped_calibrations()
    fits = merge_calibrations([shipped, *map(read_calibrations, calibrations)])
    runs = training_runs(steps, entries._replace(calibrations=fits))
    errors = [*run_errors(runs)]
    lines = [table(STEPS, errors)]
    below = runs.filter(pl.col("below_bound")).to_dicts()
    named = [f"below its bound: {_step_label(row)}" for row in below]
    lines += ["", *named[:MAX_WRONG_PAIRS]] if named else []
    reasons = runs["reason"].drop_nulls().value_counts(sort=True).rows()
    lines += ["", *(f"no answer: {count} {reason}" for reason, count in reasons[:MAX_WRONG_PAIRS])]
    return runs, "\n".join(lines).rstrip(), {"errors": errors, "steps": runs.to_dicts()}


def _step_label(row: Mapping[str, object]) -> str:
    """Step in a sentence."""
    names = ("model", "chips", "chip", "precision", "split", "release")
    return " ".join(str(row[name]) for name in names if row[name] is not None)


def _text(judgement: Judgement) -> list[str]:
    """Errors by chip and software and over all timings, and the order of pairs."""
    whole = judgement.errors.filter(pl.col("region") == "all", pl.col("shards").is_null())
    splits = whole["split"].unique()
    rows = [
        *whole.to_dicts(),
        {**judgement.whole, "split": splits[0] if len(splits) == 1 else None},
    ]
    errors = table(ERRORS, ({**row, "subject": _case_label(row)} for row in rows))
    lines = [*_held_out(judgement.held_out), errors, "", *_ratios(judgement.whole)]
    if not judgement.grouped.is_empty():
        head = "By what runs share; outside the fit: models that their step fit has not seen"
        lines += ["", head, table(GROUPED, judgement.grouped.to_dicts())]
    if not judgement.pairs.is_empty():
        lines += ["", table(PAIRS, judgement.pairs.to_dicts())]
    return [*lines, *_choice_summary(judgement)]


def _choice_summary(judgement: Judgement) -> list[str]:
    """Reach and errors of choices among deployments, by basis and by model."""
    lines = []
    if not judgement.choices.is_empty():
        limits = ", ".join(f"{limit * 1e3:g}" for limit in LIMITS_S)
        head = f"Choices of a deployment within TPOT of {limits} ms; estimates by step fits that "
        head += "have not seen the model" if _is_held_out(judgement) else "have seen the model"
        errors = choice_errors(judgement.choices).to_dicts()
        models = choice_errors(judgement.choices.filter(by=ESTIMATE_KEY), ["model"]).to_dicts()
        lines += ["", head, table(CHOICES, errors), "", "By the estimate", table(MODELS, models)]
    if judgement.planned:
        text = f"{judgement.above_bound:,} of {counted(judgement.planned, 'run')} above the bound"
        lines += ["", f"{text} in output tokens/s/chip, with the requests in flight of the run"]
    return lines


def _is_held_out(judgement: Judgement) -> bool:
    """True if no step fit behind a choice has seen the model in runs of its kind."""
    return not bool(judgement.choices["in_sample"].any())


def _choices(choices: pl.DataFrame) -> list[str]:
    """Choices by the estimate, the smallest reach first."""
    rows = [
        {
            **row,
            "dtypes": "/".join(dict.fromkeys(filter(None, (row["linear"], row["experts"])))),
            "lengths": f"{row['input_tokens']:,}, {row['output_tokens']:,}",
        }
        for row in choices.filter(by=ESTIMATE_KEY).sort("reach", maintain_order=True).to_dicts()
    ]
    more = [f"... {len(rows) - MAX_WRONG_PAIRS:,} more: --csv"] * (len(rows) > MAX_WRONG_PAIRS)
    none = "no runs of one model, chip, engine and lengths leave a choice between splits"
    return [table(CHOICE, rows[:MAX_WRONG_PAIRS]), *more] if rows else [none]


def _held_out(errors: pl.DataFrame) -> list[str]:
    """Held-out errors, above in-sample errors."""
    if errors.is_empty():
        return []
    rows = [
        {
            **row,
            "spread": f"{significant(row['low'])} to {significant(row['high'])}",
            "experts": f"{significant(row['low_experts'])} to {significant(row['high_experts'])}",
        }
        for row in errors.to_dicts()
    ]
    head = "Held out: each model by step fits that have not seen it"
    seen = "In-sample (split fit): by step fits that have seen these runs"
    return [head, table(HELD_OUT, rows), "", seen]


def _ratios(whole: dict[str, float | None]) -> list[str]:
    """Measured over bound and measured over estimate, over all timings [1]."""
    lines = []
    for column in ("lower", "estimate"):
        low, half, high = (whole[f"ratio_{column}_{share}"] for share in ("p10", "median", "p90"))
        if low is not None and half is not None and high is not None:
            reference = "bound" if column == "lower" else "estimate"
            spread = f"{significant(low)} to {significant(high)}"
            lines.append(
                f"measured / {reference}: median {significant(half)}, 8 of 10 within {spread}"
            )
    return lines


def _case_label(row: dict[str, object]) -> str:
    """Model, chip, software and dtypes in a row; "all" without any."""
    keys = ("model", "chip", "software", "dtypes", "collective")
    return " ".join(str(row[name]) for name in keys if row.get(name)) or "all"


def _wrong(pairs: pl.DataFrame) -> list[str]:
    """Wrongly ranked pairs, farthest apart first."""
    keys = [name for name in pairs.columns if name not in WRONG]
    rows = [
        row | {"same": " ".join(f"{key}={row[key]}" for key in keys if row[key] is not None)}
        for row in pairs.head(MAX_WRONG_PAIRS).to_dicts()
    ]
    more = (
        [f"... {len(pairs) - MAX_WRONG_PAIRS:,} more: --csv"]
        if len(pairs) > MAX_WRONG_PAIRS
        else []
    )
    return [table(WRONG, rows), *more] if rows else ["no pair is ranked wrongly"]
