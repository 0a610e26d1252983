"""The numbers in the sentences of docs/faq.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from answers import threshold
from blocks import with_block, with_values
from documents import DOCS

import rooflines
from rooflines.basics.text import counted, seconds, si, significant

if TYPE_CHECKING:
    from rooflines.explanation.answer import Explanation

FAQ = DOCS / "faq.md"

CHIP, SOFTWARE, BATCH, WIDTH, NARROW = "h100-sxm", "trtllm", 128, 8192, 128
MODEL, CONTEXT, SPLIT = "llama-3.1-70b", 8192, 8
INTENSITY = "FLOP/byte"


def explained(dtypes: str, width: int = WIDTH, calibration: str | None = None) -> Explanation:
    """The layer that the page asks about."""
    sizes = f"{BATCH}x{width}x{width}"
    return rooflines.explain(CHIP, sizes, dtypes, calibration=calibration)


def of_layer() -> dict[str, str]:
    """The numbers of the layer: its bound, its estimate, its thresholds, and what limits them."""
    plain, calibrated = explained("bf16"), explained("bf16", calibration=SOFTWARE)
    row, batch, wide = calibrated.row, threshold(calibrated, "B"), threshold(plain, "B")
    along, memory = threshold(plain, "D"), plain.uses[1]
    (change,) = (change for change in plain.changes if change.rate == "memory_rate")
    return {
        "bound": seconds(row["t_lower_s"]),
        "estimate": seconds(row["t_estimate_s"]),
        "low": seconds(row["t_estimate_p10_s"]),
        "high": seconds(row["t_estimate_p90_s"]),
        "ratio": significant(row["t_estimate_s"] / row["t_lower_s"]),
        "calibrated": str(batch["saturates_estimate"]),
        "critical": str(batch["critical"]),
        "rule": significant(wide["critical_rule"]),
        "narrow": threshold(explained("bf16", NARROW), "B")["outcome"],
        "limit": f"{significant(along['limit_intensity'])} {INTENSITY}",
        "ridge": f"{significant(memory.needed_intensity or 0)} {INTENSITY}",
        "share": f"{plain.limit_shares['D']:.1%}",
        "memory": significant(change.factor or 0),
    }


def of_catalogue() -> dict[str, str]:
    """Chips, their numbers, estimates and dense peaks, without variants."""
    numbers = rooflines.chips().filter(pl.col("base").is_null())
    peaks = numbers.filter(pl.col("path").str.starts_with("units.matrix."))
    return {
        "chips": counted(numbers["chip"].n_unique(), "chip"),
        "numbers": f"{len(numbers):,}",
        "estimates": f"{numbers['estimate'].sum():,}",
        "peaks": str(len(peaks)),
        "halved": str(peaks.filter("halved").height),
        "printed": str(peaks.drop_nulls("printed_with_sparsity").height),
    }


def of_decode() -> dict[str, str]:
    """What a sequence adds to a step, and the longest context with a compute-bound batch."""
    answer = rooflines.explain_model(CHIP, MODEL, B=1, S=CONTEXT, split={"tp": SPLIT})
    (context,) = (row for row in answer.thresholds if row["axis"] == "S")
    return {
        "math": seconds(answer.per_sequence_s["compute"]),
        "cache": seconds(answer.per_sequence_s["memory"]),
        "context": f"{context['critical']:,}",
    }


def with_faq(page: str) -> str:
    """The page with its current numbers."""
    rows = {dtypes: explained(dtypes).row for dtypes in ("bf16", "w8a16", "w4a16", "fp8-out-bf16")}
    quantized = "\n".join(
        f"- `{dtypes}`: {seconds(row['t_lower_s'])}, {row['bound']}-bound, "
        f"{si(row['memory_bytes'], 'B')} of traffic"
        for dtypes, row in rows.items()
    )
    page = with_block(page, "quantized", quantized)
    return with_values(page, of_layer() | of_catalogue() | of_decode())
