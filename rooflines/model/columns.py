"""The column dictionary: name, unit and meaning of every column of every table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rooflines.model.resources import MATH, RESOURCES

__all__ = ["METRICS", "SKIPPED", "TEXTS", "Column", "table_columns", "threshold_columns"]


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


OTHERS = [resource for resource in RESOURCES if resource is not MATH]

KEYS = (
    Column("operation", "", "name of the operation, or its einsum"),
    Column("chip", "", "id of the chip in the catalogue or the config"),
    Column("unit", "", "compute unit: matrix or vector"),
    Column("memory", "", "memory level that feeds the unit; hbm is the main memory of every chip"),
    Column("network", "", "interconnect between chips", null="the chip has none (of this name)"),
    Column("dtypes", "", "dtype combination: storage dtypes of x, w and out, and compute dtype"),
    Column("sharding", "", "dimension split over the chips, and its collective"),
    Column("shards", "1", "number of chips N that share the operation"),
    Column("shape", "", "name of the shape that sets the sizes", null="the sweep has no shapes"),
)

TEXTS = tuple(column.name for column in KEYS if not column.unit)
"""Keys with text values: Categorical in every table."""

WORK_MEANING = {
    "flops": ("FLOP", "floating-point operations per chip; a multiply-add counts as two"),
    "memory_bytes": ("byte", "bytes moved between memory level and unit, per chip"),
    "network_bytes": ("byte", "bytes sent over the interconnect, per chip"),
    "footprint_bytes": ("byte", "bytes occupied by x, w and out, per chip"),
}

METRICS = (
    *(Column(name, unit, meaning) for name, (unit, meaning) in WORK_MEANING.items()),
    *(
        Column(
            f"t_{resource.name}_s",
            "s",
            f"{resource.name} time: {resource.work} / (rate * efficiency); 0 without work",
        )
        for resource in RESOURCES
    ),
    Column(
        "t_lower_s", "s", "time with full overlap: maximum of the times; lower bound of the model"
    ),
    Column(
        "t_upper_s",
        "s",
        "time without overlap: sum of the times; upper bound of the model, not of a measurement",
    ),
    Column(
        "t_estimate_s",
        "s",
        "calibrated time: maximum of nominal time / fitted fraction, plus the fitted overhead; "
        "efficiencies are not applied",
        null="the chip has no calibration for the compute dtype",
    ),
    *(
        Column(f"{r.name}_intensity", "FLOP/byte", f"flops / {r.work}", null=f"no {r.name} traffic")
        for r in OTHERS
    ),
    Column("attained_flops_per_s", "FLOP/s", "flops / t_lower_s: the roofline"),
    Column("utilization", "1", "attained_flops_per_s / nominal peak of the unit, 0..1"),
    Column(
        "bound",
        "",
        f"bottleneck, the resource with the largest time: {', '.join(r.bound for r in RESOURCES)}; "
        "ties go to the first in this order",
    ),
    Column(
        "fits",
        "",
        "whether footprint_bytes <= capacity of the memory level",
        null="the capacity is unknown",
    ),
)
"""Columns besides the keys; `columns:` of a sweep selects from these."""

SKIPPED = (
    Column("sweep", "", "name of the sweep"),
    *(
        Column(c.name, c.unit, c.meaning, null="applies to all")
        for c in KEYS
        if c.name not in ("operation", "shape")
    ),
    Column("rows", "1", "number of rows left out of the table"),
    Column("reason", "", "why: what the chip lacks"),
)


def dimension(dim: str) -> Column:
    """The column with the sizes of a dimension."""
    return Column(dim, "1", f"size of dimension {dim}")


def table_columns(dims: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns of a table of an operation over `dims`, in order."""
    return (*KEYS, *(dimension(dim) for dim in dims), *METRICS)


def threshold_columns(dims: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns of the thresholds of operations over `dims`, in order."""
    return (
        Column("sweep", "", "name of the sweep"),
        *(replace(key, null="axis is shards") if key.name == "shards" else key for key in KEYS),
        Column("axis", "", "variable of the threshold: a dimension, or shards"),
        *(
            replace(dimension(dim), null=f"axis is {dim}, or the operation has no {dim}")
            for dim in dims
        ),
        Column(
            "critical_exact",
            "1",
            "real size (axis `shards`: real number of chips) at which t_math equals the largest "
            "other time",
            null="never compute-bound; axis `shards`: not even on one chip, or no upper limit",
        ),
        Column(
            "critical",
            "1",
            "smallest integer size that is compute-bound; axis `shards`: most chips (within the "
            "interconnect) that still are",
            null="never compute-bound, or critical_exact is 2^62 or more; axis `shards`: not even "
            "on one chip, or no upper limit (then limit is null too)",
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
            null="all operands have the dimension, never compute-bound, or axis is shards",
        ),
        Column(
            "limit",
            "",
            "bottleneck below `critical` (axis `shards`: on one chip more); always, if `critical` "
            "is null",
            null="always compute-bound",
        ),
        Column(
            "limit_intensity",
            "FLOP/byte",
            "intensity of the `limit` resource as the dimension tends to infinity",
            null="infinite, or no limit",
        ),
    )
