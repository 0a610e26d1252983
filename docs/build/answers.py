"""Critical batches of a layer, by chip and dtypes."""

from __future__ import annotations

from blocks import table, with_block

import rooflines
from rooflines.dictionary.columns import FOUND

CHIPS = ("tpu-v5e", "tpu-v6e", "h100-sxm", "b200", "mi300x")
DTYPES = ("bf16", "w8a16", "w4a16", "fp8-out-bf16")
WIDTH = 8192


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


def with_answers(page: str) -> str:
    """docs/tutorial.md with the critical batches of a layer, by chip and dtypes."""
    batches = critical_batches()
    rows = (
        (f"`{chip}`", *(batches.get((chip, dtypes), "no peak") for dtypes in DTYPES))
        for chip in CHIPS
    )
    head = ("chip", *(f"`{dtypes}`" for dtypes in DTYPES))
    return with_block(page, "answers", table(head, rows))
