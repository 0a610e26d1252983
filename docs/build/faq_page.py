"""docs/faq.md: questions, and answers whose numbers are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from documents import DOCS

import rooflines
from rooflines.basics.text import counted, seconds, si, significant

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooflines.explanation.answer import Explanation

FAQ = DOCS / "faq.md"

CHIP, SOFTWARE, BATCH, WIDTH = "h100-sxm", "trtllm", 128, 8192
LAYER = f"B={BATCH} D={WIDTH} F={WIDTH}"
NARROW = 128
MODEL, CONTEXT, SPLIT = "llama-3.1-70b", 8192, 8

INTENSITY = "FLOP/byte"

HEAD = """\
# Frequently asked questions

`python docs/build` computes the numbers of this page, `tests/test_answers.py` checks them.
"""

SLOWER = """\
## Why is my kernel slower than the bound?

The bound counts FLOPs and bytes at the nominal rates of the chip. A kernel also starts, fills its
pipeline, and reaches a part of each rate. A calibration estimates these: `rooflines explain
{chip} {question} bf16 --calibration {software}` has a bound of {bound} and an estimate of
{estimate}, {ratio} times the bound. Its band, which holds 80% of the fitted timings, is {low} to
{high} here. At nominal rates the layer is compute-bound from B = {critical}; its estimate attains
90% of the rate that it tends to from B = {calibrated}.

If your kernel is slower than the estimate too, check

- the shape: `rooflines explain` of the sizes, dtypes and layout that ran, not of the whole layer;
- the dtypes: a kernel for `w8a16` that dequantizes to memory moves the bytes of `bf16`;
- the clock: under power limits it is below the one of the peak;
- the timing: warm-up, synchronization, and what else runs on the chip.

[Profiled kernels](kernels.md) have their share of the roofline from counters of the chip;
[Calibrate and measure](calibrate.md) puts timings beside the bound.
"""

QUICKER = """\
## Why is my kernel quicker than the bound?

For one of three reasons. The operands were in a cache: read them from more memory than it has.
The clock was above the one of the peak: chips marked `clock: boost` may do this. Or a number is
wrong: the units of the timing, the dtypes, or the entry of the chip. The column `reason` of
measured tables tells them apart.
"""

NEVER = """\
## What is "never"?

No size along this dimension makes the operation compute-bound, however large it is. Its
arithmetic intensity has a limit, and the limit is below the ridge of the chip. On {chip} with
{question} in bf16, a larger D raises the intensity to at most {limit}; the ridge is at
{ridge}. The share of the peak therefore stays below {share}. Another dimension may have a
threshold: B has {critical}.

Where no size is enough, other changes are: at least {memory} times the memory bandwidth, or fewer
bytes. The columns `limit` and `limit_intensity` of the thresholds have the bottleneck and the
limit.
"""

RULE = """\
## Why is the critical batch not peak over bandwidth?

Peak over bandwidth is a rule of thumb: {rule} on {chip} in bf16. It counts the bytes of the
weights alone. A kernel also reads its activations and writes its result, which adds to the memory
time: with D = F = {width:,} the layer is compute-bound from B = {critical}, and with D = F =
{narrow} the outcome is {never}. `critical_rule` and `critical` of the thresholds have both.
See [the model](model.md).
"""

QUANTIZED = """\
## Does quantization make it quicker?

Only where it relieves the bottleneck. {chip} with {question}:

{lines}

Weights of 4 bits take a quarter of the bytes and none of the FLOPs: a memory-bound layer gains
until it is compute-bound. A format that the chip also computes in, such as fp8, gains in both.
"""

PEAKS = """\
## Why is a peak half of the vendor's?

Vendors often print a peak with structured sparsity. The catalogue has dense peaks: {halved} of
its {peaks} of matrix units are half of a printed figure, and {printed} keep the printed one
beside it. Rates of networks are those of one link in one direction, where vendors often print the
sum of both. Units are decimal: 1 TB/s is 1e12 byte/s. `rooflines list chips {chip}` shows each
number with its source.
"""

TRUST = """\
## How far can I trust the numbers?

The arithmetic is exact, see [guarantees](guarantees.md). The numbers of the {chips} have sources,
and {estimates} of {numbers} are marked as estimates; notes in `rooflines list chips --csv` say
where sources differ. A bound is no measurement: [served](served.md) compares both.
"""

DECODE = """\
## Why does a model in decode never become compute-bound?

Each sequence has a cache of its own, so a larger batch adds bytes as well as FLOPs. `{model}` on
{split} {chip} in bf16 at a context of {context:,} tokens: each sequence adds {math} of compute
and {memory} of memory time to a step. Up to a context of {critical} tokens the first is the
larger one, and a large batch is compute-bound. [Models](models.md) has the commands.
"""

SKIPPED = """\
## Where are my rows?

A combination that a chip does not support has no row: no peak for the compute dtype, no such
network, or too many chips. `skipped.csv` lists each with its reason, and `rooflines check` before
a run. A missing rate is never guessed; `on_unsupported: error` stops instead.
"""


def faq_page() -> str:
    """The text of the page."""
    plain, calibrated = _explained("bf16"), _explained("bf16", calibration=SOFTWARE)
    parts = (
        HEAD,
        SLOWER.format(chip=CHIP, software=SOFTWARE, question=LAYER, **_slower(calibrated)),
        QUICKER,
        NEVER.format(chip=CHIP, question=LAYER, **_never(plain)),
        RULE.format(chip=CHIP, width=WIDTH, narrow=NARROW, **_rule(plain)),
        QUANTIZED.format(chip=CHIP, question=LAYER, lines=_quantized()),
        PEAKS.format(chip=CHIP, **_peaks()),
        TRUST.format(**_trust()),
        DECODE.format(model=MODEL, split=SPLIT, chip=CHIP, context=CONTEXT, **_decode()),
        SKIPPED,
    )
    return "\n".join(parts)


def _explained(dtypes: str, width: int = WIDTH, calibration: str | None = None) -> Explanation:
    """The layer on the chip."""
    sizes = f"{BATCH}x{width}x{width}"
    return rooflines.explain(CHIP, sizes, dtypes, calibration=calibration)


def _threshold(explained: Explanation, axis: str) -> Mapping[str, Any]:
    """Its threshold along a size."""
    return next(row for row in explained.thresholds if row["axis"] == axis and row["share"] == 1)


def _slower(calibrated: Explanation) -> dict[str, str]:
    """The bound and the estimate."""
    row, batch = calibrated.row, _threshold(calibrated, "B")
    return {
        "bound": seconds(row["t_lower_s"]),
        "estimate": seconds(row["t_estimate_s"]),
        "low": seconds(row["t_estimate_p10_s"]),
        "high": seconds(row["t_estimate_p90_s"]),
        "ratio": significant(row["t_estimate_s"] / row["t_lower_s"]),
        "calibrated": str(batch["saturates_estimate"]),
        "critical": str(batch["critical"]),
    }


def _never(plain: Explanation) -> dict[str, str]:
    """The limit of the intensity along D."""
    along, memory = _threshold(plain, "D"), plain.uses[1]
    (change,) = (change for change in plain.changes if change.rate == "memory_rate")
    return {
        "limit": f"{significant(along['limit_intensity'])} {INTENSITY}",
        "ridge": f"{significant(memory.needed_intensity or 0)} {INTENSITY}",
        "share": f"{plain.limit_shares['D']:.1%}",
        "critical": str(_threshold(plain, "B")["critical"]),
        "memory": significant(change.factor or 0),
    }


def _rule(plain: Explanation) -> dict[str, str]:
    """The rule of thumb, and two widths."""
    wide, narrow = _threshold(plain, "B"), _threshold(_explained("bf16", NARROW), "B")
    return {
        "rule": significant(wide["critical_rule"]),
        "critical": str(wide["critical"]),
        "never": narrow["outcome"],
    }


def _quantized() -> str:
    """The times of the layer in several combinations, as a list."""
    rows = {dtypes: _explained(dtypes).row for dtypes in ("bf16", "w8a16", "w4a16", "fp8-out-bf16")}
    return "\n".join(
        f"- `{dtypes}`: {seconds(row['t_lower_s'])}, {row['bound']}-bound, "
        f"{si(row['memory_bytes'], 'B')} of traffic"
        for dtypes, row in rows.items()
    )


def _peaks() -> dict[str, int]:
    """Peaks of matrix units in the catalogue, without variants."""
    peaks = _numbers().filter(pl.col("path").str.starts_with("units.matrix."))
    return {
        "peaks": len(peaks),
        "halved": peaks.filter("halved").height,
        "printed": peaks.drop_nulls("printed_with_sparsity").height,
    }


def _numbers() -> pl.DataFrame:
    """The numbers of the catalogue's chips, without variants."""
    return rooflines.chips().filter(pl.col("base").is_null())


def _trust() -> dict[str, str]:
    """Chips, numbers and estimates of the catalogue."""
    numbers = _numbers()
    return {
        "chips": counted(numbers["chip"].n_unique(), "chip"),
        "numbers": f"{len(numbers):,}",
        "estimates": f"{numbers['estimate'].sum():,}",
    }


def _decode() -> dict[str, str]:
    """What a sequence adds to a step, and the longest context with a compute-bound batch."""
    explained = rooflines.explain_model(CHIP, MODEL, B=1, S=CONTEXT, split={"tp": SPLIT})
    adds = explained.per_sequence_s
    (context,) = (row for row in explained.thresholds if row["axis"] == "S")
    return {
        "math": seconds(adds["compute"]),
        "memory": seconds(adds["memory"]),
        "critical": f"{context['critical']:,}",
    }
