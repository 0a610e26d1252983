"""Judgement of the model: errors, band coverage, and the order within pairs of timings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.fits.calibration_files import ALL_ENGINES, Calibrations
from rooflines.fits.fit_errors import BAND_QUANTILES, with_errors
from rooflines.fits.fit_keys import FitKey
from rooflines.fits.timings import ATTENTION_SIZES, DTYPES, MATMUL_SIZES, PARALLEL, POOL_COLUMNS
from rooflines.measured.judged_plans import (
    above_bound,
    choice_errors,
    measured_deployments,
    plan_choices,
)
from rooflines.measured.timing_summary import error_columns, summaries

if TYPE_CHECKING:
    from rooflines.measured.join import JoinedTimings
    from rooflines.measured.timing_sets import MeasuredSet

MIN_RATIO = 1.25
"""Smallest ratio between measured times at which a pair counts as right or wrong [1]."""

VARIED = {
    "chips": ("chip",),
    "engines": ("software",),
    "splits": PARALLEL,
    "concurrency": ("concurrency",),
    "dtypes": ("dtypes", *DTYPES, "cache"),
    "number of chips": ("shards",),
}
"""Columns in which the timings of a pair differ, all else equal, by kind of pair."""

SAME = (
    *("model", "linear", "experts", "input_tokens", "output_tokens", "collective", "bytes"),
    *POOL_COLUMNS,
)
"""Columns besides `VARIED` and the sizes in which the timings of a pair agree."""

COUNTED = ("seconds", "t_lower_s", "t_estimate_s")
"""Times that are compared [s]."""


@dataclass(frozen=True)
class Judgement:
    """Judgement of bound and estimate by timings.

    Attributes:
        whole: Errors over all timings, in the numeric columns of `errors`.
        errors: Errors by chip, software and region, with the columns in `MEASURED_SUMMARY`.
        held_out: For served models, estimates' errors at models left out of fits, from
            `held_out_errors`; empty where no step fit estimates the runs.
        grouped: For served models, errors by model, chip, engine and source, from `group_errors`.
        pairs: Shares of pairs ordered right, from `ordering`.
        wrong: The pairs that the estimate orders wrongly, from `wrong_pairs`.
        choices: For served models, choices among deployments, from `plan_choices`.
        planned: Runs beside which a plan was made [1].
        above_bound: Those of them with more output than the bound [1].
        skipped: Timings without a row or an estimate, counted, from `MeasuredSet.skipped`.
    """

    whole: dict[str, Any]
    errors: pl.DataFrame
    held_out: pl.DataFrame
    grouped: pl.DataFrame
    pairs: pl.DataFrame
    wrong: pl.DataFrame
    choices: pl.DataFrame
    planned: int
    above_bound: int
    skipped: list[dict[str, Any]]

    @property
    def plain(self) -> dict[str, Any]:
        """Judgement as JSON."""
        frames = {
            "held_out": self.held_out,
            "grouped": self.grouped,
            "errors": self.errors,
            "pairs": self.pairs,
            "wrong": self.wrong,
            "choices": choice_errors(self.choices),
            "choices_by_model": choice_errors(self.choices, ["model"]),
            "choices_by_limit": choice_errors(self.choices, ["tpot_limit_s"]),
        }
        tables = {name: frame.to_dicts() for name, frame in frames.items()}
        counts = {"planned": self.planned, "above_bound": self.above_bound}
        return {"whole": self.whole, **tables, **counts, "skipped": self.skipped}


def judge_set(timing_set: MeasuredSet, joined: JoinedTimings) -> Judgement:
    """Judge bound and estimate by a set of timings.

    Args:
        timing_set: The set.
        joined: Its timings joined with the model.
    """
    pairs = pairs_of(joined.frame)
    errors = summaries(
        [(timing_set.name, joined.frame, timing_set.config.held_out, timing_set.catalogues.fits)]
    )
    (whole,) = with_errors(joined.frame).select(**error_columns()).to_dicts()
    fits = Calibrations() if timing_set.config.held_out else timing_set.catalogues.fits
    held_out = held_out_errors(joined.frame, fits)
    grouped = group_errors(joined.frame, timing_set.catalogues.fits)
    ordered, wrong = ordering(pairs), wrong_pairs(pairs)
    skipped = timing_set.skipped(joined)
    runs = measured_deployments(joined.frame, timing_set.catalogues)
    return Judgement(
        whole,
        errors,
        held_out,
        grouped,
        ordered,
        wrong,
        plan_choices(runs),
        len(runs),
        above_bound(runs),
        skipped,
    )


HELD_OUT_TYPES = {
    "subject": pl.String,
    "n": pl.Int64,
    **dict.fromkeys(
        ("median", "p90", "low", "high", "low_experts", "high_experts"),
        pl.Float64,
    ),
}
"""Columns in `held_out_errors` with their types."""


def held_out_errors(frame: pl.DataFrame, fits: Calibrations) -> pl.DataFrame:
    """Errors of decode estimates at models that no fit has seen, from the fits' file.

    Runs that a fit has seen say little about others: their errors are in-sample.

    Args:
        frame: Timings joined with the model.
        fits: The calibrations by which they were joined.

    Returns:
        A row for all engines, then one for each chip and engine in the runs that has a fit, or else
        for the engine, named in `of`: `n`, the runs [1]; `median` and `p90` over |estimated /
        measured - 1| [1]; `low` and `high`, the band of measured / estimated time for models
        without routed experts, `low_experts` and `high_experts` for those with [1]. Empty for
        other timings.
    """
    rows = []
    if "tpot_s" in frame.columns:
        systems = frame.select("chip", "software").unique().drop_nulls().sort("chip", "software")
        step_fits = fits.by_key["steps"]
        systems_fitted = (FitKey.named(chip, str(engine)) for chip, engine in systems.iter_rows())
        keys = [key if key in step_fits else key._replace(chip=None) for key in systems_fitted]
        for key in dict.fromkeys((FitKey.named(None, ALL_ENGINES), *keys)):
            fit = step_fits.get(key, {}).get("decode")
            if fit is not None and fit.held_out is not None:
                errors = fit.held_out
                ends = [fit.band_of(experts=routed) or (None, None) for routed in (False, True)]
                name = " ".join(filter(None, (key.chip, str(key.software))))
                rows.append((name, errors.n, errors.median, errors.p90, *ends[0], *ends[1]))
    if len(rows) == 1:  # of all engines alone
        rows = []
    return pl.DataFrame(rows, schema=HELD_OUT_TYPES, orient="row")


GROUPS = {"model": "model", "chip": "chip", "software": "engine", "source": "source"}
"""Columns by which errors are grouped, with their names on a screen."""

IN_FIT, OUTSIDE_FIT = "in the fit", "outside the fit"
"""Runs whose model the step fit for their chip and engine has seen, and all others."""

GROUPED_TYPES = {
    "subject": pl.String,
    "name": pl.String,
    "n": pl.Int64,
    "outside": pl.Int64,
    **dict.fromkeys(("median", "p90", "ratio", "coverage"), pl.Float64),
}
"""Columns in `group_errors` with their types."""


def group_errors(frame: pl.DataFrame, fits: Calibrations) -> pl.DataFrame:
    """Group estimates' errors on served runs by what these share.

    Args:
        frame: Timings joined with the model.
        fits: The calibrations by which they were joined.

    Returns:
        A row for each value, `name`, in a column from `GROUPS`, `of`, and for runs in and outside
        the fit: `n`, the runs with an estimate, and `outside`, those whose model the step fit for
        their chip and engine has not seen [1]; `median` and `p90` over |estimated / measured - 1|;
        `ratio`, median measured / estimated time; `coverage`, the share in the band [1].
        Empty for other timings.
    """
    if "tpot_s" not in frame.columns:
        return pl.DataFrame(schema=GROUPED_TYPES)
    systems = frame.select("chip", "software", "model").unique()
    step_fits = fits.by_key["steps"]
    seen = [
        (key := FitKey.named(chip, str(engine))) in step_fits
        and model in step_fits[key]["decode"].models
        for chip, engine, model in systems.iter_rows()
    ]
    runs = with_errors(
        frame.join(
            systems.with_columns(is_seen=pl.Series(seen, dtype=pl.Boolean)),
            on=["chip", "software", "model"],
            nulls_equal=True,
        )
    ).drop_nulls("t_estimate_s")
    runs = runs.with_columns(
        fit=pl.when("is_seen").then(pl.lit(IN_FIT)).otherwise(pl.lit(OUTSIDE_FIT))
    )
    in_band = pl.col("seconds").is_between("t_estimate_p10_s", "t_estimate_p90_s")
    parts = [
        runs.drop_nulls(column)
        .group_by(name=pl.col(column).cast(pl.String))
        .agg(
            n=pl.len().cast(pl.Int64),
            outside=pl.col("is_seen").not_().sum().cast(pl.Int64),
            median=pl.col("error").median(),
            p90=pl.col("error").quantile(BAND_QUANTILES[1], "linear"),
            ratio=pl.col("ratio").median(),
            coverage=in_band.mean(),
        )
        .sort("name")
        .select(pl.lit(label).alias("subject"), "name", pl.exclude("name"))
        for column, label in {**GROUPS, "fit": "fit"}.items()
    ]
    return pl.concat([pl.DataFrame(schema=GROUPED_TYPES), *parts])


def per_token_and_chip(frame: pl.DataFrame) -> pl.DataFrame:
    """Served runs with times per token on one chip, time * chips / batch: compares splits [s]."""
    batches = dict(zip(COUNTED, ("mean_B", "B", "estimate_B"), strict=True))
    return frame.with_columns(
        pl.col(time) * pl.col("chips") / pl.col(batch) for time, batch in batches.items()
    )


def pairs_of(frame: pl.DataFrame) -> pl.DataFrame:
    """Pairs of timings that differ in one thing, all else equal.

    Args:
        frame: Timings joined with the model; those without an estimate are left out. Served models
            are compared by time per token times chips, so that a split over more chips is no faster
            for its chips alone.

    Returns:
        A row for each pair: `of`, a key of `VARIED`; the values that differ, `one` and `other`; the
        columns that agree; `measured`, `bound` and `estimate`, the ratios between their times [1].
    """
    served = "tpot_s" in frame.columns
    frame = frame.drop_nulls("t_estimate_s").with_row_index("#")
    if served:
        frame = per_token_and_chip(frame).drop("shards")  # those of the split
    sizes = () if served else (*ATTENTION_SIZES, *MATMUL_SIZES, "phase")
    available = [
        name
        for name in dict.fromkeys((*sum(VARIED.values(), ()), *SAME, *sizes))
        if name in frame.columns
    ]
    parts = []
    for kind, columns in VARIED.items():
        differ = [name for name in columns if name in available]
        keys = [name for name in available if name not in columns]
        if not differ:
            continue
        text = pl.concat_str(
            [pl.col(name).cast(pl.String).fill_null("-") for name in differ], separator="/"
        )
        half = frame.select("#", *keys, *COUNTED, text.alias("one"))
        paired = half.join(half, on=keys, nulls_equal=True, suffix=" 2").filter(
            pl.col("#") < pl.col("# 2"), pl.col("one") != pl.col("one 2")
        )
        ratios = {
            name: pl.col(time) / pl.col(f"{time} 2")
            for name, time in zip(("measured", "bound", "estimate"), COUNTED, strict=True)
        }
        parts.append(
            paired.select(
                pl.lit(kind).alias("subject"), "one", pl.col("one 2").alias("other"), *keys
            )
            .with_columns(paired.select(**ratios))
            .with_columns(pl.col("bound", "estimate").round_sig_figs(SAME_TO))
        )
    return pl.concat(parts, how="diagonal")


SAME_TO = 9
"""Significant digits to which two times are the same: rounding alone orders no pair [1]."""


def ordering(pairs: pl.DataFrame) -> pl.DataFrame:
    """Share of pairs that the bound and the estimate order right, and Kendall's tau-a.

    Args:
        pairs: From `pairs_of`.

    Returns:
        A row for each `subject`, the kind of pairs: `pairs` [1]; `apart`, pairs whose measured
        times differ by more than `MIN_RATIO` [1]; `bound_right` and `estimate_right`, the share
        ordered right among these, where a tie is wrong [1]; `bound_tau` and `estimate_tau`,
        Kendall's tau-a over all pairs: right share less wrong share [1].
    """

    def agrees(name: str) -> pl.Expr:
        return pl.col("measured").log().sign() * pl.col(name).log().sign()

    names = ("bound", "estimate")
    return pairs.group_by("subject", maintain_order=True).agg(
        pairs=pl.len(),
        apart=_is_apart().sum(),
        **{f"{name}_right": (agrees(name) > 0).filter(_is_apart()).mean() for name in names},
        **{f"{name}_tau": agrees(name).mean() for name in names},
    )


TIE = 0.15
"""Largest difference by estimate at which two times are called a tie [1]."""

BY_WIDTH_OR_EXPERT = "experts split by width or by expert do similar work"
DISPATCHED = "one by dp and by expert: dispatch and combine have no timings"
RISING = "measured, more requests make a token slower; by estimate never"
TIED = f"a tie by estimate, within {100 * TIE:.0f} %"
APART = f"more than {100 * TIE:.0f} % apart by estimate too"
"""Reasons why a pair is ordered wrongly."""


def wrong_pairs(pairs: pl.DataFrame) -> pl.DataFrame:
    """Pairs that are apart and that the estimate orders wrongly, farthest apart first.

    Returns:
        The pairs with `reason`: what makes their order hard to tell, if it is known.
    """
    is_opposite = (pl.col("measured") > 1) != (pl.col("estimate") > 1)
    misordered = pairs.filter(_is_apart() & (is_opposite | (pl.col("estimate") == 1)))
    is_split, ends = pl.col("subject") == "splits", ("one", "other")
    widths, other_widths = (pl.col(name).str.split("/").list.head(2) for name in ends)
    is_dispatched, is_other = (
        pl.col(name).str.contains(r"^\d+/([2-9]|\d\d+)/\d+/([2-9]|\d\d+)$") for name in ends
    )
    misordered = misordered.with_columns(
        reason=pl.when(is_split & (widths == other_widths))
        .then(pl.lit(BY_WIDTH_OR_EXPERT))
        .when(is_split & (is_dispatched != is_other))
        .then(pl.lit(DISPATCHED))
        .when(pl.col("subject") == "concurrency")
        .then(pl.lit(RISING))
        .when(pl.col("estimate").log().abs() <= math.log1p(TIE))
        .then(pl.lit(TIED))
        .otherwise(pl.lit(APART))
    )
    return misordered.sort(pl.col("measured").log().abs(), descending=True, maintain_order=True)


def _is_apart() -> pl.Expr:
    """True if the measured times in a pair differ by more than `MIN_RATIO`."""
    return (pl.col("measured") > MIN_RATIO) | (pl.col("measured") < 1 / MIN_RATIO)
