"""docs/served.md: how far public measurements of serving are from the bound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from markdown_tables import table
from served import DATA
from served_estimates_page import estimates
from served_groups import groups

from rooflines.fits.layouts import RECORDED_CHIPS, SAME_RUN
from rooflines.measured.served import SHORTEST, UNQUANTIZED

if TYPE_CHECKING:
    from collections.abc import Sequence

SERVED = Path(__file__).parents[1] / "served.md"

SMALL = 8
"""A deployment with a run of so few sequences shows what a step costs without a batch [1]."""

LASTING = 0.5
"""A share of the rest that is there at the smallest batch too makes it a fixed cost [1]."""

MICRO = 1e6
"""Microseconds of a second."""

CLOSEST = 5
"""Rows of the table of the closest runs [1]."""

EXPERTS = "experts: tokens choose more than the k of the bound"
PROMPTS = "prompts: they are read between the tokens"
FIXED = f"fixed: at least half of the rest is there with {SMALL} sequences or fewer"
GROWING = "rest: it grows with the batch, or no small batch was measured"

DEPLOYMENT = (
    *("model", "checkpoint", "chip", "engine", "engine_version", "linear", "experts"),
    *("tp", "attention_dp", "moe_tp", "moe_ep", "input_tokens", "output_tokens"),
)

RATIO = pl.col("tpot_s") / pl.col("tpot_bound_s")
RANDOM_RATIO = pl.col("tpot_s") / (pl.col("tpot_bound_s") + pl.col("experts_s"))
TTFT_RATIO = pl.col("ttft_s") / pl.col("ttft_bound_s")
PER_KERNEL = pl.col("rest_s") / pl.col("kernels")

HEAD = f"""\
# Served: measurements against the bound

Public measurements of serving, each compared with the least time of a step, and with estimates.

`python docs/build` writes this page if the environment variable `{DATA}` names a
folder with `models/served.csv`. `tests/test_served.py` then checks every run of the file.

The measurements are those of aiconfigurator's collection of InferenceX runs (repository
ai-dynamo/aiconfigurator at 095f58a5, `systems/silicon_sample.csv`, Apache-2.0, copyright NVIDIA),
with columns renamed and times in seconds. They are not part of this repository.

Under `measurements:` of a config, such a file is compared with the same bound and estimate, and the
site shows the ratios by model, chip, engine, format of the weights, chips and B
([config/README.md](../config/README.md#timings-compared-with-the-model)).

## The bound

TPOT is the time per output token, TTFT the time to the first.

- Prompts and answers have {SHORTEST[0] / SHORTEST[1]} of the nominal length: the shortest of a run.
- B, the sequences in decode, is concurrency * d / (TTFT + d), with d = TPOT * tokens of an
  answer (Little's law), rounded down, at least 1.
- The least TPOT is max(t_math, t_memory) of a step of B sequences at the middle of the answer, of
  one chip, over the number of chips: no split does less work. All tokens choose the same experts,
  a cache element has one byte, weights have the format of the run, and attention is computed in
  8 bit. Networks and activations take no time.
- The least TTFT is that of a step that reads one prompt; the measured one includes the wait for it.
- Chips are the larger of tp * attention_dp and moe_tp * moe_ep.

Tokens per second and chip are B before rounding / TPOT / chips. Their ratio to the bound is the
inverse of that of TPOT.
"""

PARTS = """\
The time between two tokens is divided into four parts: the bound; what more experts would take
if tokens chose them at random; the least time in which the prompts that arrive meanwhile are read;
and the rest. The rest has collectives, rates below the nominal ones, the launch of kernels, and the
engine's scheduling. The reason is the largest part besides the bound.
"""


def explained(frame: pl.DataFrame) -> pl.DataFrame:
    """Adds the rest of the time between two tokens [s], the reason, and the format of weights."""
    parts = ("tpot_bound_s", "experts_s", "prompts_s")
    frame = frame.with_columns(rest_s=pl.col("tpot_s") - pl.sum_horizontal(parts))
    by_batch = pl.col("rest_s").sort_by("B").first().over(DEPLOYMENT)
    fixed = (by_batch >= LASTING * pl.col("rest_s")) & (pl.col("B").min().over(DEPLOYMENT) <= SMALL)
    largest = pl.max_horizontal("experts_s", "prompts_s", "rest_s")
    return frame.with_columns(
        weights=pl.col("linear").fill_null(UNQUANTIZED),
        reason=pl.when(pl.col("experts_s") == largest)
        .then(pl.lit(EXPERTS))
        .when(pl.col("prompts_s") == largest)
        .then(pl.lit(PROMPTS))
        .when(fixed)
        .then(pl.lit(FIXED))
        .otherwise(pl.lit(GROWING)),
    )


def distribution(frame: pl.DataFrame) -> str:
    """Ratios by model, chip, engine, format of the weights, chips and batch, as a table."""
    rows = [summary(name, part) for name, part in groups(frame)]
    return table(
        (
            "runs of",
            "runs",
            "TPOT / bound: least",
            "10 %",
            "median",
            "90 %",
            "median, experts at random",
            "TTFT / bound: least",
            "median",
            "rest per kernel, median [µs]",
            "tokens/s per chip, most",
        ),
        rows,
    )


def summary(name: str, frame: pl.DataFrame) -> Sequence[object]:
    """A row of the distribution."""
    values = frame.select(
        RATIO.min().alias("least"),
        *(RATIO.quantile(share, "linear").alias(str(share)) for share in (0.1, 0.5, 0.9)),
        RANDOM_RATIO.median().alias("random"),
        TTFT_RATIO.min().alias("least_ttft"),
        TTFT_RATIO.median().alias("ttft"),
        (PER_KERNEL.median() * MICRO).alias("per_kernel"),
        pl.col("tokens_per_s_per_chip").max(),
    ).row(0)
    return (name, len(frame), *(f"{value:.3g}" for value in values[:-1]), f"{values[-1]:.0f}")


def runs(frame: pl.DataFrame) -> str:
    """Runs as a table, with the parts of the time between two tokens."""
    share = {
        name: pl.col(f"{name}_s") / pl.col("tpot_s") for name in ("experts", "prompts", "rest")
    }
    rows = frame.with_columns(
        ratio=RATIO,
        per_kernel=PER_KERNEL * MICRO,
        **{f"{name}_share": value * 100 for name, value in share.items()},
    )
    return table(
        (
            *("model", "chip", "engine", "weights", "chips", "B", "tokens in, out"),
            *("TPOT [ms]", "bound [ms]", "ratio", "experts", "prompts", "rest"),
            *("rest per kernel [µs]", "reason"),
        ),
        (
            (
                *(row[name] for name in ("model", "chip", "engine", "weights", "chips", "B")),
                f"{row['input_tokens']}, {row['output_tokens']}",
                *(f"{row[name] * 1e3:.3g}" for name in ("tpot_s", "tpot_bound_s")),
                f"{row['ratio']:.3g}",
                *(f"{row[f'{name}_share']:.0f} %" for name in share),
                f"{row['per_kernel']:.0f}",
                row["reason"].partition(":")[0],
            )
            for row in rows.iter_rows(named=True)
        ),
    )


def reasons(frame: pl.DataFrame) -> str:
    """Runs and ratios by reason, as a table."""
    counted = frame.group_by("reason").agg(
        runs=pl.len(), ratio=RATIO.median(), per_kernel=PER_KERNEL.median() * MICRO
    )
    return table(
        ("reason", "runs", "TPOT / bound, median", "rest per kernel, median [µs]"),
        (
            (reason, count, f"{ratio:.3g}", f"{per_kernel:.3g}")
            for reason, count, ratio, per_kernel in counted.sort("runs", descending=True).rows()
        ),
    )


def checked_runs(frame: pl.DataFrame) -> str:
    """How many runs are below the bounds, of those that fit; what is known of the others."""
    fit, others = frame.filter("fits"), frame.filter(~pl.col("fits"))
    below = fit.filter((RATIO < 1) | (TTFT_RATIO < 1))
    engines = others.select(pl.col("concurrency") // pl.col("batch")).to_series().unique().sort()
    many = pl.col("chips") > RECORDED_CHIPS
    again = frame.filter(many).join(frame.filter(~many), on=SAME_RUN, how="semi")
    return (
        f"Of the {len(frame)} runs, {len(fit)} fit the recorded chips, and {len(below)} of these "
        f"are below a bound.\nThe other {len(others)} have a concurrency of "
        f"{', '.join(map(str, engines))} times their batch.\n"
        f"Of the {len(frame.filter(many))} runs with more than {RECORDED_CHIPS} chips, "
        f"{len(again)} are in the data a second time with at most {RECORDED_CHIPS}."
    )


def served_page(frame: pl.DataFrame) -> str:
    """The text of the page.

    Args:
        frame: As of `served.compared`.
    """
    frame = explained(frame)
    kept = frame.filter(pl.col("left_out").is_null())
    left_out = frame["left_out"].drop_nulls().value_counts().sort("count", descending=True)
    closest = kept.sort(RATIO).head(CLOSEST)
    farthest = kept.sort(RATIO, descending=True).unique(
        ("model", "engine"), keep="first", maintain_order=True
    )
    return "\n".join(
        [
            HEAD,
            checked_runs(frame),
            "\n## Runs left out of the distribution\n",
            table(("reason", "runs"), left_out.rows()),
            "\n## Distribution\n",
            distribution(kept),
            "\n## What takes the time\n",
            PARTS,
            reasons(kept),
            f"\nThe {CLOSEST} runs closest to the bound:\n",
            runs(closest),
            "\nThe run farthest from it, of each model and engine:\n",
            runs(farthest),
            "\n## Estimates\n",
            estimates(kept),
            "",
        ]
    )
