"""The part of docs/served.md about estimates of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from markdown_tables import table
from served_estimates import FEWEST, FITTED, GROUP, RUN, Steps, fitted, judged, steps_of
from served_groups import groups

from rooflines.measured.served_estimates import LACKS, with_splits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TIMES = ("t_lower_s", "t_estimate_s", "t_fitted_s")
"""The bound, the estimate without and with a fit."""

PARTS = """\
A step of decode is estimated as `t_estimate_s` of the tables of models, and compared with TPOT.
Prompts and answers have the nominal length, B is rounded to the nearest, and tokens choose experts
at random. The weights and products have the format of the run, and activations and attention have
16 bit; a cache has 8 bit where the weights have fewer than 16. The prompts that are read between
the tokens are left out.

- Without a fit: the calibrations of the package, for every engine those of TensorRT-LLM and NCCL.
  They are fitted to single matmuls and collectives, and no number is of these runs. This is the
  estimate of runs under `measurements:`. There the calibration of the engine counts first, and then
  that of other software of the chip.
- With a fit: four numbers for each chip and engine, as in `calibration:` of a chip. These are the
  shares of the rates of compute, memory and network that are reached, and the overhead of a kernel.
  They are fitted to every other configuration. Runs of one configuration differ in the number of
  clients only. The numbers also stand for what the model leaves out: they are no rates of the
  hardware.
"""

FITS = """\
Errors are |time / TPOT - 1| at the runs of the other configurations, which no fit sees. The bound
is `t_lower_s` with the split of the run.
"""

RATIO = pl.col("tpot_s") / pl.col("t_estimate_s")
ERROR = (1 / RATIO - 1).abs()
BOUND_ERROR = (pl.col("tpot_bound_s") / pl.col("tpot_s") - 1).abs()


def estimates(kept: pl.DataFrame) -> str:
    """How far the estimates of runs are from TPOT, by chip and engine.

    Args:
        kept: The runs of the distribution.
    """
    steps = steps_of(kept)
    fits = list(_fits(steps))
    every = pl.concat(runs for runs, _, _ in fits)
    rows = [
        (*runs.select(GROUP).row(0), *_errors(runs), *_numbers(numbers, held))
        for runs, numbers, held in fits
    ]
    rows.append(("all", "", *_errors(every), *[""] * len(FITTED)))
    counted = (
        f"{len(every)} runs are judged: those of the other configurations, of chips and engines\n"
        f"with at least {FEWEST} runs in either half.\n"
    )
    return "\n".join(
        [
            PARTS,
            "### Without a fit\n",
            _counted(kept, steps.runs),
            _distribution(steps.runs),
            "\n### With a fit\n",
            FITS,
            counted,
            table(
                (
                    *GROUP,
                    "runs judged",
                    *("bound, median error", "estimate", "with a fit"),
                    *("TPOT / estimate, median", "with a fit"),
                    *("math", "memory", "network", "overhead [µs]"),
                ),
                rows,
            ),
            "\nA number in brackets is that from which the fit starts: the runs do not tell it.",
        ]
    )


def _counted(kept: pl.DataFrame, runs: pl.DataFrame) -> str:
    """How many runs have an estimate, why the others have none, and how often the bound is nearer.

    Args:
        kept: The runs of the distribution.
        runs: Those with an estimate.
    """
    without = with_splits(kept).filter(pl.col(LACKS).is_not_null())
    reasons = without[LACKS].value_counts().sort("count", descending=True)
    worse = runs.filter(ERROR > BOUND_ERROR).height
    said = (
        f"Of the {len(kept)} runs of the distribution, {len(runs)} have an estimate. The bound is\n"
        f"nearer to TPOT in {worse} of them.\n"
    )
    return "\n".join([said, table(("without an estimate", "runs"), reasons.rows()), ""])


def _distribution(runs: pl.DataFrame) -> str:
    """Ratios of TPOT to the estimate, and errors, by group, as a table."""
    rows = []
    for name, part in groups(runs):
        ratios = part.select(
            *(RATIO.quantile(share, "linear").alias(str(share)) for share in (0.1, 0.5, 0.9))
        )
        errors = part.select(estimate=ERROR.median(), bound=BOUND_ERROR.median())
        percents = [f"{100 * value:.0f} %" for value in errors.row(0)]
        rows.append((name, len(part), *(f"{value:.3g}" for value in ratios.row(0)), *percents))
    return table(
        (
            *("runs of", "runs", "TPOT / estimate: 10 %", "median", "90 %"),
            *("median error of the estimate", "of the bound"),
        ),
        rows,
    )


def _fits(steps: Steps) -> Iterator[tuple[pl.DataFrame, dict[str, float], tuple[str, ...]]]:
    """Of chips and engines with enough runs: the judged ones, the numbers, and those held."""
    for _, runs in steps.runs.sort(*GROUP, RUN).group_by(GROUP, maintain_order=True):
        unseen = int(runs["judged"].sum())
        if min(unseen, len(runs) - unseen) < FEWEST:
            continue
        own = Steps(runs, steps.kernels)
        numbers, held = fitted(own)
        yield judged(own, numbers), numbers, held


def _errors(runs: pl.DataFrame) -> Sequence[object]:
    """The number of runs, median errors of all times, and median ratios of the estimates."""
    tpot = pl.col("tpot_s")
    errors = [(pl.col(name) / tpot - 1).abs().median() for name in TIMES]
    ratios = [(tpot / pl.col(name)).median().alias(f"{name}_ratio") for name in TIMES[1:]]
    values = runs.select(*errors, *ratios).row(0)
    percents = [f"{100 * value:.0f} %" for value in values[: len(TIMES)]]
    return (len(runs), *percents, *(f"{value:.2f}" for value in values[len(TIMES) :]))


def _numbers(numbers: dict[str, float], held: Sequence[str]) -> Iterator[str]:
    """The numbers of a fit."""
    for name in FITTED:
        value = numbers[name] * (1e6 if name == "overhead_s" else 1)
        yield f"({value:.2g})" if name in held else f"{value:.2g}"
