"""The column dictionary: name, unit and meaning of every column of every table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rooflines.model.resources import NETWORK as NETWORK_RESOURCE
from rooflines.model.resources import OTHERS, RATES, RESOURCES


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        name: The name in every file.
        unit: An SI unit without prefix; empty for names and labels.
        meaning: What the values are.
        null: What a null means; empty if the column has no nulls.
    """

    name: str
    unit: str
    meaning: str
    null: str = ""


SWEEP = Column("sweep", "", "name of the sweep")
CHIP = Column("chip", "", "id of the chip in the catalogue or the config")
NETWORK = Column(
    "network", "", "interconnect between chips", null="the chip has none (of this name)"
)
BOUND = Column(
    "bound",
    "",
    f"bottleneck, the resource with the largest time: {', '.join(r.bound for r in RESOURCES)}; "
    "those within 1e-13 of the largest are ties, which go to the first in this order",
)
"""Columns of several tables."""

KEYS = (
    Column("operation", "", "name of the operation, or its einsum"),
    CHIP,
    Column("unit", "", "compute unit: matrix or vector"),
    Column("memory", "", "memory level that feeds the unit; hbm is the main memory of every chip"),
    NETWORK,
    Column("dtypes", "", "dtype combination: storage dtypes of x, w and out, and compute dtype"),
    Column("sharding", "", "dimension split over the chips, and its collective"),
    Column("shards", "1", "number of chips N that share the operation"),
    Column("shape", "", "name of the shape that sets the sizes", null="the sweep has no shapes"),
)

AXES = "axes"
"""The key with the chips along each axis, in tables of sweeps that split over several."""

AXES_COLUMN = Column(
    AXES, "", "chips along each axis of a torus, such as 4x4; one number for one axis"
)

TEXTS = (*(column.name for column in KEYS if not column.unit), AXES)
"""Keys with text values: Categorical in every table."""

WORK_MEANING = {
    "flops": ("FLOP", "floating-point operations per chip; a multiply-add counts as two"),
    "memory_bytes": ("byte", "bytes moved between memory level and unit, per chip"),
    "network_bytes": ("byte", "bytes sent over the interconnect, per chip"),
    "network_inner_bytes": ("byte", "those sent over the inner of two networks"),
    "network_outer_bytes": ("byte", "those sent over the outer of two networks"),
    "footprint_bytes": ("byte", "bytes occupied by x, w and out, per chip"),
}

NO_CALIBRATION = (
    "no calibration for the chip, software and compute dtype; with a software also: another unit "
    "than matrix, another memory than hbm"
)

ESTIMATES = (
    Column(
        "t_estimate_s",
        "s",
        "calibrated time: the fitted overhead, plus the largest piece of the calibration that the "
        "sweep names, else of the chip's own; efficiencies are not applied",
        null=NO_CALIBRATION,
    ),
    *(
        Column(
            f"t_estimate_{name}_s",
            "s",
            f"{share} of measured times lie below this where the calibration was fitted: "
            "t_estimate_s times the band of `estimate_bound`",
            null=f"{NO_CALIBRATION}, or it has no band for the bound",
        )
        for name, share in (("p10", "10 %"), ("p90", "90 %"))
    ),
    Column(
        "estimate_bound",
        "",
        "the largest piece of t_estimate_s: compute, memory, network or mixed, which is imperfect "
        "overlap; those within 1e-13 of the largest are ties, which go to the first in this order; "
        "engine: what an engine does besides its kernels",
        null=NO_CALIBRATION,
    ),
    Column(
        "estimate_beyond",
        "",
        "what the calibration was not timed at, so that its band is wider: sizes, D or F of a chip "
        "outside those of its timings; engine, another one than the software named first",
        null=f"{NO_CALIBRATION}, or within",
    ),
)
"""The calibrated time, its band and its bound."""

OVERLAP = (
    "; collectives overlap: on every network the larger of all sends and all hops counts, of "
    "several networks the slowest"
)
"""What the meaning of the network's time adds."""

METRICS = (
    *(Column(name, unit, meaning) for name, (unit, meaning) in WORK_MEANING.items()),
    *(
        Column(
            f"t_{resource.name}_s",
            "s",
            f"{resource.name} time: {resource.work} / (rate * efficiency); 0 without work"
            f"{OVERLAP if resource is NETWORK_RESOURCE else ''}",
        )
        for resource in RESOURCES
    ),
    Column(
        "t_lower_s",
        "s",
        "time with full overlap: the largest time of a resource; lower bound of the model",
    ),
    Column(
        "t_upper_s",
        "s",
        "time without overlap: sum of the times, collectives one after another; upper bound of the "
        "model, not of a measurement",
    ),
    *ESTIMATES,
    *(
        Column(f"{r.name}_intensity", "FLOP/byte", f"flops / {r.work}", null=f"no {r.name} traffic")
        for r in OTHERS
    ),
    Column("attained_flops_per_s", "FLOP/s", "flops / t_lower_s, without padding: the roofline"),
    Column("utilization", "1", "attained_flops_per_s / nominal peak of the unit, 0..1"),
    BOUND,
    Column(
        "fits",
        "",
        "whether footprint_bytes <= capacity of the memory level",
        null="the capacity is unknown",
    ),
)
"""Columns besides the keys; `columns:` of a sweep selects from these."""

SHARED = {column.name: column for column in (*KEYS, *METRICS)}
"""Columns of operations that tables of steps and of timings have, too."""

CORE_METRICS = (
    *(resource.work for resource in RESOURCES),
    *(f"t_{resource.name}_s" for resource in RESOURCES),
    "t_lower_s",
    "bound",
    "fits",
)
"""What `columns: core` selects."""

OF_LEVELS = ("network_inner_bytes", "network_outer_bytes")
"""Metrics of sweeps over two networks only."""

MODEL = Column("model", "", "id of the model in the catalogue, or its name in the config")
SPLIT = Column("split", "", "how chips share a model, such as tp8 or tp2-dp4")
"""Keys of tables of whole models that skipped rows have, too."""

SKIPPED = (
    SWEEP,
    *(
        Column(c.name, c.unit, c.meaning, null="applies to all, or the sweep has none")
        for c in (*KEYS, AXES_COLUMN, MODEL, SPLIT)
        if c.name not in ("operation", "shape")
    ),
    Column("rows", "1", "number of rows left out of the table"),
    Column("reason", "", "why: what the chip lacks"),
)


FOUND, NEVER, ALWAYS, ENDLESS, BEYOND, UNKNOWN = OUTCOMES = (
    "found",
    "never",
    "always",
    "without-end",
    "beyond-2^62",
    "domain-unknown",
)
"""What a threshold is: a number, or the reason why there is none."""


OPERATION = "an operation, no whole model"

SUMMARY = (
    SWEEP,
    replace(MODEL, null=OPERATION),
    Column("phase", "", "decode, prefill or train", null=OPERATION),
    CHIP,
    Column("dtypes", "", "dtype combination, or dtypes of a model's tensors, by name"),
    Column(
        "sharding",
        "",
        "dimension split over the chips, and its collective",
        null="one chip, or whole models",
    ),
    Column("shards", "1", "number of chips N that share the operation", null="whole models"),
    replace(SPLIT, null=OPERATION),
    Column("rows", "1", "number of rows in the tables"),
    Column(
        "compute_bound",
        "1",
        "share of the rows whose bottleneck is compute",
        null="the table has no column `bound`",
    ),
    Column(
        "bottleneck",
        "",
        "most frequent bottleneck of the rows; ties as for `bound`",
        null="the table has no column `bound`",
    ),
    Column(
        "axis",
        "",
        "variable of the thresholds that follow: the operation's first dimension, or the first one "
        "that the sweep solves for; of whole models B, S or chips, the first of these",
        null="the sweep solves for no dimension",
    ),
    *(
        Column(
            f"critical_{name}",
            "1",
            f"{meaning} `critical` of the thresholds",
            null="no threshold has a number",
        )
        for name, meaning in (
            ("least", "least"),
            ("median", "median, the lower one of two,"),
            ("largest", "largest"),
        )
    ),
    Column("never", "1", "share of the thresholds with the outcome never", null="no thresholds"),
    Column(
        "critical_rule",
        "1",
        "least `critical_rule` of the thresholds",
        null="no threshold has one",
    ),
)
"""The summary, a row per sweep, chip, dtypes, sharding and shards, over all sizes, memory levels
and networks; of whole models per sweep, model, phase, chip, dtypes and split."""


MODEL_SHAPES = (
    Column("model", "", "id of the model in the catalogue"),
    Column("name", "", "its name"),
    Column("family", "", "`model_type` of its config.json", null="not stated"),
    Column("layers", "1", "layers"),
    Column("context", "1", "tokens of the longest sequence that it is trained for", null="unknown"),
    Column("parameters", "1", "all parameters; embeddings once where they are tied"),
    Column("active", "1", "parameters that a token uses, the unembedding included"),
    Column("active_with_embedding", "1", "the same with both token tables, once where tied"),
    Column("active_without_tables", "1", "the same without token tables"),
    Column("published_total", "", "the publisher's count of all parameters, as printed"),
    Column("published_active", "", "the publisher's active count, as printed", null="none"),
    Column(
        "convention",
        "",
        "which of the three active counts the published one is",
        null="no published active count, or it agrees with none of them",
    ),
    Column(
        "match",
        "",
        "how `parameters` agrees with `published_total`: exact, to the last parameter; surplus, "
        "with the parameters named in `note`; rounded, to the printed digits; near, within one "
        "per cent, with the reason in `note`",
    ),
    Column("cache_elements_per_token", "1", "cache elements of a token in all layers"),
    Column("window", "1", "tokens that layers with a window attend to", null="no such layers"),
    Column(
        "windowed_elements_per_token",
        "1",
        "the part of cache_elements_per_token in layers with a window, which keep the last "
        "`window` tokens only",
    ),
    *(
        Column(f"cache_bytes_per_token_{dtype}", "byte", f"cache of a token in {dtype}")
        for dtype in ("bf16", "fp8")
    ),
    Column("source", "", "the document that the shape is read from"),
    Column("note", "", "what the shape leaves out, and what the counts differ in", null="nothing"),
)
"""The models of the catalogue."""


RATE_AXES = ", ".join(RATES)

SOLUTION = (
    Column("share", "1", "share of the attainable peak solved for; 1: compute-bound"),
    Column(
        "outcome",
        "",
        f"what the solution is: {', '.join(OUTCOMES)}; always: on the whole axis, on all chips "
        "that the interconnect joins, or at the chip's own rates",
    ),
    Column(
        "critical_exact",
        "1",
        "real size (axis `shards`: real number of chips) at which t_math equals the largest "
        f"other time; axes {RATE_AXES}: the factor on the chip's own rate from which on the row is "
        "compute-bound, all else equal: the largest one <= 1 of `peak`, else the smallest one >= 1",
        null="never compute-bound; axis `shards`: not even on one chip, or no upper limit",
    ),
    Column(
        "critical",
        "1",
        "smallest integer size that is compute-bound (share < 1: that attains the share); axis "
        "`shards`: most chips (within the interconnect) that still are",
        null="see outcome: never, beyond-2^62, without-end or domain-unknown; or axis is a rate",
    ),
    *(
        Column(
            f"critical_{r.name}",
            "1",
            f"`critical` against t_{r.name} alone",
            null="as for `critical`",
        )
        for r in OTHERS
    ),
    Column(
        "critical_rule",
        "1",
        "rule of thumb: `critical_exact` against memory for infinite other dimensions",
        null="all operands have the dimension, never compute-bound, or axis is no dimension",
    ),
    Column(
        "saturates_estimate",
        "1",
        "smallest integer size at which t_estimate attains 90 % of its own plateau, the rate that "
        "it tends to as the size grows; efficiencies are not applied",
        null="no calibration, or axis is no dimension; or 2^62 or more",
    ),
    Column(
        "limit",
        "",
        "bottleneck below `critical` (axis `shards`: on one chip more); always, if `critical` "
        "is null; axis a rate: bottleneck on the other side of the factor or, where it is never "
        "enough, what rules it out: another resource, or the network's own latency",
        null="always compute-bound",
    ),
    Column(
        "limit_intensity",
        "FLOP/byte",
        "intensity of the `limit` resource as the dimension tends to infinity",
        null="infinite, or no limit; or axis is a rate",
    ),
)
"""What is solved for, and the solution."""


def dimension(dim: str) -> Column:
    """The column with the sizes of a dimension."""
    return Column(dim, "1", f"size of dimension {dim}")


def keys(*, axes: bool) -> tuple[Column, ...]:
    """The keys of a table, with the chips along each axis or without."""
    *others, shape = KEYS
    return (*others, AXES_COLUMN, shape) if axes else KEYS


def table_columns(
    dims: tuple[str, ...], *, axes: bool = False, levels: bool = False
) -> tuple[Column, ...]:
    """The columns of a table, in order.

    Args:
        dims: The dimensions of its operation.
        axes: Whether the sweep splits over several axes of a torus.
        levels: Whether the sweep has routes over two networks.
    """
    metrics = (metric for metric in METRICS if levels or metric.name not in OF_LEVELS)
    return (*keys(axes=axes), *(dimension(dim) for dim in dims), *metrics)


def threshold_columns(dims: tuple[str, ...], *, axes: bool = False) -> tuple[Column, ...]:
    """The columns of the thresholds of operations over `dims`, in order.

    Args:
        dims: The dimensions.
        axes: Whether any sweep splits over several axes of a torus.
    """
    return (
        SWEEP,
        *(
            replace(key, null="axis is shards") if key.name in ("shards", AXES) else key
            for key in keys(axes=axes)
        ),
        Column(
            "axis",
            "",
            f"variable of the threshold: a dimension, shards, or a rate: {RATE_AXES}",
        ),
        *(
            replace(dimension(dim), null=f"axis is {dim}, or the operation has no {dim}")
            for dim in dims
        ),
        *SOLUTION,
    )
