"""The column dictionary of timings joined with the model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rooflines.model.columns import CHIP, SHARED, Column, dimension

if TYPE_CHECKING:
    from collections.abc import Collection

OF_COLLECTIVES = "a collective"
NOT_GIVEN = "the timings do not say it"
NO_CALIBRATION = "no calibration; of a served model also a split that sweeps of models lack"
NO_ESTIMATE = "no estimate"
NO_BAND = "no estimate, or a served model on an engine without a fit of steps"

OF_OPERATIONS = "an operation"

MODEL = Column("model", "", "id of a served model", null=OF_OPERATIONS)
SOFTWARE = Column("software", "", "library of the kernels", null=NOT_GIVEN)
DTYPES = Column(
    "dtypes",
    "",
    "dtype combination: storage dtypes of x, w and out, and compute dtype; of a served model the "
    "format of the weights",
    null=OF_COLLECTIVES,
)
COLLECTIVE = Column("collective", "", "collective", null="a matmul")
CALIBRATION = Column(
    "calibration",
    "",
    "what the estimate is by: `<chip>/<software>`, or the chip's own; of a served model all "
    "software that applies, joined by +",
    null=NO_CALIBRATION,
)

STORED = (
    ("dtype_x", "storage dtype of the activations"),
    ("dtype_w", "storage dtype of the weights"),
    ("dtype_out", "storage dtype of the result"),
    ("compute", "dtype that the unit multiplies in"),
)

RUNS = (
    ("seconds_min", "s", "shortest time"),
    ("seconds_iqr", "s", "interquartile range of the times"),
    ("runs", "1", "number of runs"),
    ("copies", "1", "copies of the operands, taken in turn"),
    ("clock_mhz", "MHz", "clock of the chip, as the table has it"),
)

MODELLED = ("flops", "memory_bytes", "memory_intensity", "footprint_bytes", "network_bytes")
"""Metrics of a sweep's table, the last one of collectives, the others of matmuls."""

SERVED = (
    Column("S", "1", "tokens of context of the mean step, at 0.8 of the nominal lengths"),
    Column("input_tokens", "1", "nominal tokens of a prompt"),
    Column("output_tokens", "1", "nominal tokens of an answer"),
    Column("concurrency", "1", "requests at the same time"),
    Column(
        "disaggregated",
        "1",
        "1: prompts are read by servers of their own; 0 or null: between the tokens",
        null=NOT_GIVEN,
    ),
    Column("ttft_s", "s", "measured time to the first token"),
    Column("ttft_lower_s", "s", "least time to read a prompt, at the nominal rates"),
    Column("tokens_per_s_per_chip", "1/s", "output tokens per second and chip"),
)
"""Of served models; B is the sequences in decode, by Little's law, and `seconds` the time per
output token."""

ESTIMATED = (
    Column("estimate_B", "1", "sequences of the estimated step", null=NO_ESTIMATE),
    Column(
        "estimate_split", "", "split of the estimated step, such as `tp2-dp4`", null=NO_ESTIMATE
    ),
    Column("ttft_estimate_s", "s", "estimated time to read a prompt", null=NO_ESTIMATE),
    Column(
        "prompts_estimate_s",
        "s",
        "what prompts that are read between tokens add to t_estimate_s",
        null=f"{NO_ESTIMATE}, or no fit of steps of the engine",
    ),
    Column("estimate_lacks", "", "why there is no estimate", null="there is one"),
)
"""Of the estimates of served models."""

MEASURED = (
    Column("source", "", "who measured", null=NOT_GIVEN),
    replace(MODEL, null=""),
    CHIP,
    SOFTWARE,
    *(Column(name, "", meaning) for name, meaning in STORED),
    *(dimension(size) for size in "BDF"),
    *SERVED,
    replace(COLLECTIVE, null=""),
    Column("batch", "1", "matmuls at once; always 1", null=NOT_GIVEN),
    Column("shards", "1", "number of chips N", null=NOT_GIVEN),
    Column("bytes", "byte", "the whole tensor, over all chips"),
    Column("seconds", "s", "measured time"),
    *(Column(name, unit, meaning, null=NOT_GIVEN) for name, unit, meaning in RUNS),
    Column("contents", "", "what a timing includes besides the operation", null=NOT_GIVEN),
    Column("note", "", "note of who measured", null=NOT_GIVEN),
    replace(DTYPES, null=""),
    *(SHARED[name] for name in MODELLED),
    Column("t_lower_s", "s", "lower bound of the model, at the nominal rates"),
    Column("bound", "", "what the lower bound is: compute, memory or network"),
    Column("t_estimate_s", "s", "estimated time, by the calibration", null=NO_CALIBRATION),
    Column("t_estimate_p10_s", "s", "time that nine timings in ten exceed", null=NO_BAND),
    Column("t_estimate_p90_s", "s", "time that one timing in ten exceeds", null=NO_BAND),
    CALIBRATION,
    *ESTIMATED,
    Column("ratio_lower", "1", "seconds / t_lower_s"),
    Column("ratio_estimate", "1", "seconds / t_estimate_s", null=NO_ESTIMATE),
    Column("region", "", "bin of B"),
    Column(
        "fits_cache",
        "",
        "whether the operands fit the last-level cache",
        null="its capacity is unknown, or a collective",
    ),
    Column(
        "reason",
        "",
        "why a time is below the bound: in cache, all operands fit the last-level cache; partly in "
        "cache, as many bytes as are missing do; boost clock, the peak is that of a clock which "
        "the chip may exceed; reduced in the switch, which adds up payloads; unexplained",
        null="it is not below",
    ),
)
"""The timings of a set, in `measured/<name>.parquet`; a table lacks those that its timings do
not have."""

RECORDED = (
    Column("phase", "", "of attention: decode or prefill"),
    Column("T", "1", "new tokens of each sequence"),
    Column("N", "1", "query heads"),
    Column("K", "1", "key-value heads"),
    Column("H", "1", "size of a head"),
    Column("cache", "", "storage dtype of the cache"),
    Column("tpot_s", "s", "measured time per output token"),
    Column("linear", "", "format of the weights", null="bf16"),
    Column("experts", "", "format of the experts' weights", null="bf16"),
    Column("tp", "1", "chips that share layers"),
    Column("attention_dp", "1", "replicas of attention"),
    Column("moe_tp", "1", "chips that share experts by width"),
    Column("moe_ep", "1", "chips that share experts by expert"),
)
"""Columns of runs of served models that are read, and take other names when they are joined."""

SET = Column("set", "", "name of the set in the config")

MEASURED_SUMMARY = (
    SET,
    MODEL,
    CHIP,
    SOFTWARE,
    DTYPES,
    COLLECTIVE,
    Column(
        "shards",
        "1",
        "number of chips of collectives and served models",
        null="all of them together",
    ),
    CALIBRATION,
    Column(
        "split",
        "",
        "fit: timings that a fit of the set uses; sites: those of sites (D, F), or sizes of a "
        "collective, that a fit keeps back; held_out: a set that is never fitted",
    ),
    Column("region", "", "all, compute-bound or memory-bound timings, or a bin of B"),
    Column("n", "1", "number of timings"),
    Column("n_estimate", "1", "those of them that have an estimate"),
    Column("below_percent", "%", "timings below the bound, of n"),
    Column("below_in_cache_percent", "%", "those of them at least partly in cache, of n"),
    Column("bare_median", "1", "median of abs(t_lower_s / seconds - 1)"),
    Column("bare_mean", "1", "mean of the same"),
    Column("estimate_median", "1", "median of abs(t_estimate_s / seconds - 1)", null=NO_ESTIMATE),
    Column("estimate_mean", "1", "mean of the same", null=NO_ESTIMATE),
    Column("estimate_p90", "1", "90th percentile of the same", null=NO_ESTIMATE),
    Column(
        "band_coverage",
        "1",
        "share of the timings between t_estimate_p10_s and t_estimate_p90_s",
        null=NO_BAND,
    ),
    Column("ratio_lower_p10", "1", "10th percentile of seconds / t_lower_s"),
    Column("ratio_lower_median", "1", "median of the same"),
    Column("ratio_lower_p90", "1", "90th percentile of the same"),
    Column(
        "ratio_estimate_p10", "1", "10th percentile of seconds / t_estimate_s", null=NO_ESTIMATE
    ),
    Column("ratio_estimate_median", "1", "median of the same", null=NO_ESTIMATE),
    Column("ratio_estimate_p90", "1", "90th percentile of the same", null=NO_ESTIMATE),
)
"""Errors of the bound and of the estimate, in `measured.csv`."""

MEASURED_SKIPPED = (
    SET,
    replace(CHIP, null="rows of a file that are not read"),
    SOFTWARE,
    DTYPES,
    COLLECTIVE,
    Column("lacks", "", "what they have none of: row, a row of the model, or estimate"),
    Column("reason", "", "why: what the chip lacks, or what the rows are"),
    Column("timings", "1", "number of timings"),
)
"""Timings without a row or an estimate, in `measured-skipped.csv`."""


KERNELS = (
    Column("kernel", "", "name of the function"),
    Column("launches", "1", "number of launches; the other values are sums over them"),
    Column("flops", "FLOP", "counted operations; a multiply-add counts as two"),
    Column("memory_bytes", "byte", "bytes read from and written to the main memory"),
    Column("seconds", "s", "measured time"),
    Column("memory_intensity", "FLOP/byte", "flops / memory_bytes", null="no memory traffic"),
    Column("flops_per_s", "FLOP/s", "flops / seconds"),
    Column("unit", "", "unit of most operations: matrix or vector", null="no operations"),
    Column("compute", "", "dtype of the peak: that of most operations", null="no operations"),
    Column("bound", "", "larger one of the times at the peak and at the bandwidth"),
    Column("t_lower_s", "s", "that time: the least one on the chip"),
    Column("roof_share", "1", "t_lower_s / seconds: share of the roofline that is reached"),
)
"""Profiled kernels, from `rooflines measured kernels`."""


def measured_columns(names: Collection[str]) -> tuple[Column, ...]:
    """The columns of a table that has these, in order."""
    return tuple(column for column in MEASURED if column.name in names)
