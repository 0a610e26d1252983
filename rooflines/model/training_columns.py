"""The column dictionary of training: tables of its steps, of their kernels, and thresholds."""

from __future__ import annotations

from dataclasses import replace

from rooflines.model.columns import BOUND, SHARED, Column
from rooflines.model.resources import RESOURCES
from rooflines.model.step_columns import (
    CONTEXT,
    FOLLOWING,
    LAYER_BOUND,
    LAYER_OPS,
    LAYER_TIMES,
    LAYERS,
    PRICE,
    SEQUENCES,
    STEP_BAND,
    STEP_KEYS,
    TIMES,
    twin,
)

PLAN = (
    Column("pp", "1", "stages of the pipeline"),
    Column("cp", "1", "chips that share a sequence"),
    Column("interleave", "1", "runs of layers that each stage has"),
    Column("micro_batch", "1", "sequences that a replica computes at once"),
    Column("shard", "", "what replicas share of the states: none, optimizer, gradients or weights"),
    Column("recompute", "", "what is computed again: none, selective or full"),
)
"""Keys of steps of training besides those of serving."""

MICRO_BATCHES = Column(
    "micro_batches", "1", "micro-batches of a replica in a step, B / (dp * micro_batch)"
)

NO_TRAINING = "no calibration of training of the chip and software"

UNKNOWN = "the capacity is unknown"

WORKS = (
    replace(SHARED["flops"], meaning="floating-point operations per chip, repeated ones included"),
    Column(
        "weight_bytes", "byte", "weights, gradients and states of the optimizer moved, per chip"
    ),
    Column("activation_bytes", "byte", "other tensors that kernels read and write, per chip"),
    Column("memory_bytes", "byte", "weight_bytes, and saved tensors written and read once"),
    *(SHARED[each.work] for each in RESOURCES[2:]),
)

FOOTPRINT = (
    Column("state_bytes", "byte", "weights, gradients and optimizer on the fullest chip"),
    Column("saved_bytes", "byte", "tensors that it saves for backward passes"),
    Column("footprint_bytes", "byte", "both; working memory is left out"),
    Column("fits", "", "whether footprint_bytes <= capacity of the memory level", null=UNKNOWN),
    Column("max_micro_batch", "1", "largest micro-batch that fits, with as many", null=UNKNOWN),
    Column("max_S", "1", "longest context that fits, a multiple of cp; 0: none", null=UNKNOWN),
)

STEP_TIMES = (
    *TIMES,
    replace(SHARED["t_lower_s"], meaning="all overlapped, layers dealt evenly, without a bubble"),
    Column(
        "t_ops_s",
        "s",
        "kernels one after another on the busiest stage, bubble included, then what waits for the "
        "last micro-batch",
    ),
    replace(SHARED["t_upper_s"], meaning="as t_ops_s without any overlap"),
    Column(
        "t_estimate_s",
        "s",
        "t_upper_s times the number of the calibration that the sweep names",
        null=NO_TRAINING,
    ),
    *(
        replace(each, meaning=each.meaning.replace("times of a token", "times"), null=NO_TRAINING)
        for each in STEP_BAND
    ),
    BOUND,
    Column("bubble", "1", "share of a step in which a stage waits for others"),
)

PEAK = (
    Column("mfu_full", "1", "mfu with all pairs of tokens counted in attention, at t_lower_s"),
    Column("hfu", "1", "mfu with what is computed again, at t_lower_s"),
)
WITHOUT_REPEATS = "time of the FLOPs that are not repeated at the nominal peaks / t_lower_s, 0..1"
RATES = tuple(
    replace(each, meaning=WITHOUT_REPEATS) if each.name == "mfu" else each
    for each in (*FOLLOWING, *PEAK)
)

WHOLE = (
    Column("days", "d", "days of the whole training at t_ops_s"),
    Column("usd", "USD", "price of the whole training at t_ops_s", null="no price is known"),
)
"""Columns of sweeps with `tokens:`."""

TRAINING_METRICS = (
    MICRO_BATCHES,
    *WORKS,
    *FOOTPRINT,
    *STEP_TIMES,
    *RATES,
    *map(twin, RATES),
    *PRICE,
    *WHOLE,
)
"""Columns besides keys and sizes."""

KEYS = (*STEP_KEYS, *PLAN)
SIZES = (SEQUENCES, CONTEXT)


def training_columns(*, tokens: bool = True) -> tuple[Column, ...]:
    """The columns of a table of steps of training, in order.

    Args:
        tokens: Whether the sweep says how many tokens are trained on.
    """
    metrics = (each for each in TRAINING_METRICS if tokens or each not in WHOLE)
    return (*KEYS, *SIZES, *metrics)


def training_layer_columns() -> tuple[Column, ...]:
    """The columns of a table of kernels of training, in order."""
    group, count = LAYERS
    of_all = "layers of all stages with it; the values are those of one layer and one run"
    return (
        *KEYS,
        *SIZES,
        replace(group, meaning="what runs as one kernel: qkv-fwd, qkv-dgrad, optimizer, ..."),
        replace(count, meaning=of_all),
        Column("runs", "1", "how often a layer runs it in a step; sums over kernels are / pp"),
        *WORKS,
        *(replace(each, meaning=LAYER_TIMES.get(each.name, each.meaning)) for each in TIMES),
        LAYER_OPS,
        SHARED["t_upper_s"],
        LAYER_BOUND,
    )
