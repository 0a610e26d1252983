"""README's answers: critical batches of a layer, and a step of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from blocks import table, with_block

import rooflines
from rooflines.answers.claims import Sentence, first_true
from rooflines.basics.text import seconds, significant
from rooflines.dictionary.columns import FOUND

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.answers.answer import Explanation

CHIPS = ("tpu-v5e", "tpu-v6e", "h100-sxm", "b200", "mi300x")
DTYPES = ("bf16", "w8a16", "w4a16", "fp8-out-bf16")
WIDTH = 8192
TOKENS, DTYPE = 128, "bf16"

CHIP, MODEL, BATCH, CONTEXT, SPLIT = "h100-sxm", "llama-3.1-70b", 64, 8192, 8


def critical_batches() -> dict[tuple[str, str], str]:
    """The smallest compute-bound batch of a square layer, or the outcome, by chip and dtypes."""
    sweep = {
        "operation": "matmul",
        "grid": {"B": 1, "D": WIDTH, "F": WIDTH},
        "dtypes": list(DTYPES),
        "chips": list(CHIPS),
    }
    found = rooflines.thresholds(rooflines.load_config({"sweeps": {"layer": sweep}}))
    return {
        (row["chip"], row["dtypes"]): str(
            row["critical"] if row["outcome"] == FOUND else row["outcome"]
        )
        for row in found.iter_rows(named=True)
    }


def threshold(answer: Explanation, axis: str) -> Mapping[str, Any]:
    """The threshold of an answer along a size."""
    return next(row for row in answer.thresholds if row["axis"] == axis and row["share"] == 1)


def answers() -> str:
    """The answers, in Markdown; each sentence keeps the rules of all sentences."""
    one = rooflines.explain(CHIP, f"{TOKENS}x{WIDTH}x{WIDTH}", DTYPE)
    critical = threshold(one, "B")["critical"]
    share = f"{one.row['utilization']:.0%}"
    batches = critical_batches()
    rows = (
        (f"`{chip}`", *(batches.get((chip, dtypes), "no peak") for dtypes in DTYPES))
        for chip in CHIPS
    )
    step = rooflines.explain_model(CHIP, MODEL, B=BATCH, S=CONTEXT, split={"tp": SPLIT})
    row, context = step.row, step.thresholds[1]
    of_layer = f"""\
A layer of {WIDTH:,} × {WIDTH:,} with {TOKENS} tokens in {DTYPE} is {one.row["bound"]}-bound on
`{CHIP}`: at most {share} of peak. From {critical} tokens on it is compute-bound. On other chips
and in other dtypes (weights and activations of 16, 8 or 4 bit) it is from"""
    of_step = f"""\
A step of `{MODEL}` on {SPLIT} `{CHIP}` with {BATCH} sequences of {CONTEXT:,} tokens in bf16 takes
{seconds(row["t_ops_s"])} kernel after kernel, {seconds(row["t_lower_s"])} at least, and is
{row["bound"]}-bound: {significant(row["tokens_per_s_per_chip_ops"])} tokens a second per chip;
{row["max_B"]} sequences fit. Up to a context of {context["critical"]:,} tokens, a large batch is
compute-bound."""
    return "\n\n".join(
        [
            _said(of_layer, one.row),
            table(("chip", *(f"`{dtypes}`" for dtypes in DTYPES)), rows),
            _said(of_step, row, moves="network"),
        ]
    )


def _said(text: str, row: Mapping[str, Any], moves: str | None = None) -> str:
    """A sentence about a row of the chip that names its bottleneck, if it keeps the rules."""
    sentence = Sentence(text, rows=[row], chosen=CHIP, blames=row["bound"], moves=moves)
    return first_true([sentence]).text


def with_answers(readme: str) -> str:
    """README with the current answers between its markers."""
    return with_block(readme, "answers", answers())
