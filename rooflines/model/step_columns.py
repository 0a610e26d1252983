"""The column dictionary of whole models: tables of steps, of kernels, and thresholds."""

from __future__ import annotations

from dataclasses import replace

from rooflines.model.columns import (
    BOUND,
    CHIP,
    ESTIMATES,
    MODEL,
    NETWORK,
    NO_CALIBRATION,
    OUTCOMES,
    SHARED,
    SPLIT,
    SWEEP,
    Column,
)
from rooflines.model.resources import OTHERS, RESOURCES

STEP_KEYS = (
    MODEL,
    Column(
        "phase",
        "",
        "decode: new tokens after a cache; prefill: the whole prompt; train: a step of training",
    ),
    CHIP,
    SHARED["memory"],
    NETWORK,
    Column("dtypes", "", "dtypes of tensors and products, by name"),
    SPLIT,
    Column("chips", "1", "number of chips, tp * dp"),
    Column("tp", "1", "chips that share every kernel"),
    Column("dp", "1", "replicas, which share the sequences"),
    Column("ep", "1", "chips that share the experts; 1: as the rest"),
)

OF_SPLIT = ("split", "chips", "tp", "dp", "ep")
"""Keys that say how chips share the model."""

KEY_TEXTS = tuple(column.name for column in STEP_KEYS if not column.unit)
PLAN_TEXTS = ("shard", "recompute")
STEP_TEXTS = (*KEY_TEXTS, *PLAN_TEXTS, "price_provider", "price_date")
LAYER_TEXTS = (*KEY_TEXTS, *PLAN_TEXTS, "group", "calibration")
"""Columns with text values, of steps and of kernels: Categorical in every table."""

SEQUENCES = Column("B", "1", "sequences, of all replicas together")
NEW = Column("T", "1", "new tokens of each sequence")
CONTEXT = Column("S", "1", "tokens of each sequence after the step; in prefill the prompt")
REQUEST = (
    Column("input", "1", "tokens of the prompt"),
    Column("output", "1", "tokens of the answer"),
)

WORKS = (
    SHARED["flops"],
    Column("weight_bytes", "byte", "weights read per chip"),
    Column("cache_bytes", "byte", "cache entries read and written per chip"),
    Column("activation_bytes", "byte", "other tensors that kernels read and write, per chip"),
    Column("memory_bytes", "byte", "weight_bytes + cache_bytes"),
    *(SHARED[each.work] for each in RESOURCES[2:]),
)

FOOTPRINT = (
    Column("weights_footprint_bytes", "byte", "all parameters on one chip"),
    Column("cache_footprint_bytes", "byte", "caches on one chip, copies counted"),
    Column("footprint_bytes", "byte", "both"),
    Column(
        "fits",
        "",
        "whether footprint_bytes <= capacity of the memory level; activations are left out",
        null="the capacity is unknown",
    ),
    Column(
        "max_B",
        "1",
        "most sequences of this context whose caches fit beside the weights",
        null="the capacity is unknown; more than 2^62",
    ),
)

TIMES = (
    *(SHARED[f"t_{each.name}_s"] for each in RESOURCES),
    Column("t_activation_s", "s", "time of activation_bytes; a fused kernel would not need it"),
)

OPS = Column(
    "t_ops_s",
    "s",
    "kernels one after another: sum over kernels of max(t_math, t_memory + t_activation, "
    "time of its collectives one after another)",
)
LAYER_TIMES = {"t_network_s": "time of its collectives, one after another"}
LAYER_OPS = Column("t_ops_s", "s", "max(t_math, t_memory + t_activation, t_network)")
ESTIMATE = Column(
    "t_estimate_s",
    "s",
    "sum over kernels of their calibrated times, overheads included, and what an engine takes "
    "besides; of requests also the prompts that are read in between",
    null=NO_CALIBRATION,
)
STEP_BAND = tuple(
    Column(
        f"t_estimate_{name}_s",
        "s",
        f"{share} of measured times of a token, of models that a fit has not seen, lie below this",
        null=f"{NO_CALIBRATION}, or no engine's fit of steps",
    )
    for name, share in (("p10", "10 %"), ("p90", "90 %"))
)
LAYER_CALIBRATION = Column(
    "calibration",
    "",
    "the fits that the estimate is by, joined by +: software, and compute dtype, attention, "
    "collective or steps",
    null="no calibration, or the chip's own",
)
COLLECTIVES_ESTIMATE = Column(
    "collectives_estimate_s",
    "s",
    "calibrated time of its collectives, one after another; it is part of t_estimate_s, overheads "
    "aside, only where it is the largest piece",
    null=NO_CALIBRATION,
)
KERNEL_METRICS = (*ESTIMATES[1:], COLLECTIVES_ESTIMATE, LAYER_CALIBRATION)
"""Metrics of kernels only; a sum over kernels has no band, nor has a kernel that is no matmul."""
LAYER_ESTIMATE = Column(
    "t_estimate_s",
    "s",
    "calibrated time; of a kernel that is no matmul by the fitted shares and overhead alone; "
    "efficiencies are not applied",
    null=NO_CALIBRATION,
)
LAYER_BOUND = Column(
    "bound",
    "",
    "bottleneck of the kernel: the largest of t_math, t_memory + t_activation and t_network",
)

PRICE = (
    Column("price_provider", "", "provider of the price in usd_per_mtok", null="no price is known"),
    Column("price_date", "", "when it was the price", null="no price is known"),
)

FOLLOWING = (
    Column(
        "tokens_per_s",
        "1/s",
        "tokens of the step / t_lower_s: of the prompt in prefill; with a draft those added",
    ),
    Column("tokens_per_s_per_chip", "1/s", "the same per chip"),
    Column("mfu", "1", "time of the FLOPs at the nominal peaks / t_lower_s, 0..1"),
    Column("mbu", "1", "time of memory_bytes at the nominal bandwidth / t_lower_s, 0..1"),
    Column(
        "usd_per_mtok",
        "USD",
        "price of a million tokens at t_lower_s",
        null="no price is known, or it does not fit",
    ),
    Column(
        "j_per_token",
        "J",
        "energy per token at t_lower_s, all chips at their design power",
        null="no design power is known",
    ),
)

TWIN = "_ops"
"""Follows the name of what is computed from t_ops_s instead of t_lower_s."""


def twin(column: Column) -> Column:
    """The column that is computed from t_ops_s."""
    meaning = column.meaning.replace("t_lower_s", "t_ops_s")
    if meaning == column.meaning:
        meaning = f"{meaning} from t_ops_s"
    return replace(column, name=f"{column.name}{TWIN}", meaning=meaning)


STEP_METRICS = (
    *WORKS,
    *FOOTPRINT,
    *TIMES,
    SHARED["t_lower_s"],
    OPS,
    SHARED["t_upper_s"],
    ESTIMATE,
    *STEP_BAND,
    BOUND,
    *FOLLOWING,
    *map(twin, FOLLOWING),
    *PRICE,
)
"""Columns besides the keys; `columns:` of a model sweep selects from these."""

STEP_CORE = (*(column.name for column in (*WORKS, *TIMES)), "t_lower_s", "t_ops_s", "bound", "fits")
"""What `columns: core` of a model sweep selects."""

REQUEST_METRICS = (
    Column("ttft_s", "s", "time to the first token: t_lower_s of a prefill, one prompt a replica"),
    Column("tpot_s", "s", "time per output token: mean t_lower_s of the decode steps"),
    Column("ttft_ops_s", "s", "time to the first token from t_ops_s"),
    Column("tpot_ops_s", "s", "time per output token from t_ops_s"),
    Column(
        "ttft_estimate_s",
        "s",
        "calibrated time of that prefill",
        null=NO_CALIBRATION,
    ),
    Column(
        "prompts_estimate_s",
        "s",
        "what prompts that are read between tokens add to t_estimate_s",
        null=f"{NO_CALIBRATION}, no engine's fit of steps, or prompts have servers of their own",
    ),
)
"""Metrics of requests only."""

NO_POOL = "no chip of the pool computes in these dtypes"

POOL_METRICS = (
    Column(
        "ttft_pool_s",
        "s",
        "time of a prompt on a server that prefills, one a replica, kernel after kernel",
        null=NO_POOL,
    ),
    Column(
        "prefill_servers",
        "1",
        "servers that prefill for each that decodes: prompts of one are answers of the other",
        null=NO_POOL,
    ),
    Column(
        "tokens_per_s_per_chip_pools",
        "1/s",
        "output tokens per second and chip of both pools, from t_ops_s",
        null=NO_POOL,
    ),
    Column(
        "usd_per_mtok_input",
        "USD",
        "price of the servers that prefill, per million tokens of prompts",
        null=f"{NO_POOL}, or no price is known",
    ),
    Column("handover_bytes", "byte", "caches of a prompt that change chips", null=NO_POOL),
    Column(
        "handover_s",
        "s",
        "their time over the interconnect around the first; it overlaps and is in no other time",
        null=f"{NO_POOL}, or a chip has no interconnect",
    ),
)
"""Metrics of requests with `pools:`."""

REQUEST_COLUMNS = (*REQUEST, *REQUEST_METRICS, *POOL_METRICS)
"""Columns of requests only."""

LAYERS = (
    Column(
        "group",
        "",
        "what runs as one kernel: embed, qkv, attention, o, ...; engine-layers, engine-experts and "
        "engine-sequences: what an engine does besides, in estimates alone",
    ),
    Column("count", "1", "layers with it; the values are those of one layer"),
)


def _sizes(*, new_tokens: bool, requests: bool) -> tuple[Column, ...]:
    context = replace(CONTEXT, null="a row of requests") if requests else CONTEXT
    return (
        SEQUENCES,
        *((NEW,) if new_tokens else ()),
        context,
        *(REQUEST if requests else ()),
    )


def step_columns(
    *, new_tokens: bool = False, requests: bool = False, pools: bool = False
) -> tuple[Column, ...]:
    """The columns of a table of steps, in order.

    Args:
        new_tokens: Whether the grid has T.
        requests: Whether rows are requests.
        pools: Whether these are prefilled by servers of their own.
    """
    sizes = _sizes(new_tokens=new_tokens, requests=requests)
    if not requests:
        return (*STEP_KEYS, *sizes, *STEP_METRICS)
    metrics = (_of_request(column) for column in STEP_METRICS)
    return (*STEP_KEYS, *sizes, *REQUEST_METRICS, *(POOL_METRICS if pools else ()), *metrics)


def _of_request(column: Column) -> Column:
    """A metric of a step as that of a request."""
    if column in (*WORKS, ESTIMATE) or column.name.startswith("t_"):
        return replace(column, meaning=f"mean over the decode steps: {column.meaning}")
    if column in FOOTPRINT:
        return replace(column, meaning=f"after the last token: {column.meaning}")
    if column is BOUND:
        return replace(column, meaning=f"of the mean times: {column.meaning}")
    return column


def layer_columns(*, new_tokens: bool = False) -> tuple[Column, ...]:
    """The columns of a table of kernels, in order.

    Args:
        new_tokens: Whether the grid has T.
    """
    sizes = _sizes(new_tokens=new_tokens, requests=False)
    return (
        *STEP_KEYS,
        *sizes,
        *LAYERS,
        *WORKS,
        *(replace(each, meaning=LAYER_TIMES.get(each.name, each.meaning)) for each in TIMES),
        LAYER_OPS,
        SHARED["t_upper_s"],
        LAYER_ESTIMATE,
        *KERNEL_METRICS,
        LAYER_BOUND,
    )


CAPACITY_UNKNOWN = "capacity-unknown"
STEP_OUTCOMES = (*OUTCOMES, CAPACITY_UNKNOWN)
"""What a threshold of a whole model is."""

HEADS = "heads"
STEP_LIMITS = (*(resource.bound for resource in RESOURCES), HEADS)
"""What limits a threshold of a whole model."""

SOLUTION = (
    Column(
        "target_s",
        "s",
        "time of a step for `max_B_latency`; a row for every target",
        null="no target, or axis is S or chips",
    ),
    Column("time", "", "which time of a step must keep the target", null="as for `target_s`"),
    Column(
        "outcome",
        "",
        f"what the solution is: {', '.join(STEP_OUTCOMES)}; always: every batch is compute-bound; "
        "without-end: every long context has a compute-bound batch",
    ),
    Column(
        "critical_exact",
        "1",
        "axis B: real batch at which t_math overtakes t_memory and t_network; axis S: real context "
        "at which a sequence more adds as much t_memory as t_math",
        null="see outcome: never or without-end; or axis is chips",
    ),
    Column(
        "critical",
        "1",
        "axis B: smallest batch that is compute-bound, from dp on; axis S: largest context at "
        "which some batch is; axis chips: fewest of 1, 2, 4, ... chips in tensor parallelism "
        "whose memory holds weights and caches; in training, axes B, S and micro_batch: smallest "
        "compute-bound size; axis tp: most chips that gather for no longer than they compute; axis "
        "chips: fewest with 1, 2, 4, ... replicas",
        null="see outcome: all but found and always",
    ),
    Column(
        "saturates_estimate",
        "1",
        "axis B: smallest batch, from dp on, whose estimate attains 90 % of its own plateau, the "
        "rate that it tends to as the batch grows; axis S: smallest context at which a sequence "
        "more of a large batch does, along S; efficiencies are not applied",
        null="a kernel has no calibration; axis is chips; axis S: the estimate does not grow with "
        "S; or 2^62 or more",
    ),
    Column(
        "limit",
        "",
        "axis B: bottleneck of a sequence less than `critical`; axis S: bottleneck of longer "
        "contexts; outcome never: what rules it out; axis chips: what forbids more chips, heads "
        "or the network",
        null="outcome always or without-end; axis chips: outcome found or capacity-unknown",
    ),
    Column(
        "max_B_fit",
        "1",
        "most sequences whose caches fit beside the weights; axis chips: on `critical` chips",
        null="the capacity is unknown; more than 2^62; axis is S; axis chips: outcome is not found",
    ),
    Column(
        "max_B_latency",
        "1",
        "most sequences whose step takes at most `target_s`, from dp on; 0: none",
        null="no target; 2^62 or more",
    ),
)


OF_TRAINING = (
    *(
        Column(
            f"critical_{each.name}",
            "1",
            f"in training, smallest size that is compute-bound against {each.bound} alone",
            null="serving; or no size is",
        )
        for each in OTHERS
    ),
    Column(
        "max_fit",
        "1",
        "in training, largest size along the axis that fits; axis S: longest context; 0: none",
        null="serving; axis B; or the capacity is unknown",
    ),
    Column(
        "hides_bubble",
        "1",
        "in training, smallest batch with which stages wait for at most 10 % of a step",
        null="serving; or another axis than B",
    ),
)
"""Columns of thresholds where a sweep trains."""


def step_threshold_columns(
    *, new_tokens: bool = False, training: bool = False
) -> tuple[Column, ...]:
    """The columns of thresholds of whole models, in order.

    Args:
        new_tokens: Whether the grid of any sweep has T.
        training: Whether any sweep trains.
    """
    return (
        SWEEP,
        *(replace(key, null="axis is chips") if key.name in OF_SPLIT else key for key in STEP_KEYS),
        Column("axis", "", "what is solved for: B, S, chips; in training also micro_batch, tp"),
        replace(SEQUENCES, null="axis is B or S"),
        *((replace(NEW, null="axis is chips, or the grid has no T"),) if new_tokens else ()),
        replace(CONTEXT, null="axis is S"),
        *SOLUTION,
        *(OF_TRAINING if training else ()),
    )
