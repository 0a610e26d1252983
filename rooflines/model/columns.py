"""The column dictionary: name, unit and meaning of every column of every table, in one place."""

from __future__ import annotations

from dataclasses import dataclass

from rooflines.model.resources import MATH, RESOURCES

__all__ = ["METRICS", "SKIPPED", "TEXTS", "Column", "table_columns", "threshold_columns"]


@dataclass(frozen=True)
class Column:
    """A column.

    Attributes:
        name: Its name in every file.
        unit: Its unit, an SI unit without prefix; empty for names and labels.
        meaning: What it holds.
        null: What a null in it means; empty where it never is null.
    """

    name: str
    unit: str
    meaning: str
    null: str = ""


OTHERS = [resource for resource in RESOURCES if resource is not MATH]

KEYS = (
    Column("operation", "", "the operation: its name, or its einsum"),
    Column("chip", "", "the chip, by its id in the catalogue or in the config"),
    Column("unit", "", "the compute unit: matrix or vector"),
    Column(
        "memory", "", "the memory level that feeds the unit; hbm is the main memory of every chip"
    ),
    Column(
        "network", "", "the interconnect between chips", null="the chip has none (of that name)"
    ),
    Column(
        "dtypes",
        "",
        "the dtype combination: what x, w and out are stored in, and what the unit computes in",
    ),
    Column("sharding", "", "what is split over the chips, and the collective that goes with it"),
    Column("shards", "1", "N, the chips that split it"),
    Column(
        "shape", "", "the name of the shape that gives the sizes", null="the sweep has no shapes"
    ),
)

TEXTS = tuple(column.name for column in KEYS if not column.unit)
"""The keys that hold text: Categorical in every table."""

WORK_MEANING = {
    "flops": ("FLOP", "floating-point operations of one chip, a multiply-add counted as two"),
    "memory_bytes": ("byte", "bytes moved between the memory level and the unit of one chip"),
    "network_bytes": ("byte", "bytes that one chip sends over the interconnect"),
    "footprint_bytes": ("byte", "bytes that x, w and out occupy on one chip"),
}

METRICS = (
    *(Column(name, unit, meaning) for name, (unit, meaning) in WORK_MEANING.items()),
    *(
        Column(
            f"t_{resource.name}_s",
            "s",
            f"time that {resource.name} takes: {resource.work} / (rate * efficiency); 0 "
            "without work",
        )
        for resource in RESOURCES
    ),
    Column(
        "t_lower_s",
        "s",
        "time if everything overlaps: the largest of the times; the model's lower bound",
    ),
    Column(
        "t_upper_s",
        "s",
        "time if nothing overlaps: the sum of the times; the model's, not a bound on a measurement",
    ),
    Column(
        "t_estimate_s",
        "s",
        "calibrated time: the largest of the nominal times over their fitted shares, plus the "
        "fitted overhead; no efficiency enters",
        null="the chip has no calibration for the compute dtype",
    ),
    *(
        Column(f"{r.name}_intensity", "FLOP/byte", f"flops / {r.work}", null=f"no {r.name} traffic")
        for r in OTHERS
    ),
    Column("attained_flops_per_s", "FLOP/s", "flops / t_lower_s: the roofline itself"),
    Column("utilization", "1", "attained_flops_per_s over the unit's nominal peak, 0..1"),
    Column(
        "bound",
        "",
        f"the resource that takes longest: {', '.join(r.bound for r in RESOURCES)}; a tie goes "
        "to the earlier of these",
    ),
    Column(
        "fits",
        "",
        "whether footprint_bytes is at most the memory level's capacity",
        null="the capacity is not known",
    ),
)
"""What a table stores beside its keys; `columns:` of a sweep chooses among these."""

SKIPPED = (
    Column("sweep", "", "the sweep that asked"),
    *(
        Column(c.name, c.unit, c.meaning, null="whatever its value")
        for c in KEYS
        if c.name not in ("operation", "shape")
    ),
    Column("rows", "1", "rows that are not in the table for this reason"),
    Column("reason", "", "what the chip lacks"),
)


def dimension(dim: str) -> Column:
    """The column of a dimension's sizes."""
    return Column(dim, "1", f"size of the dimension {dim}")


def table_columns(dims: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns of a table of an operation over `dims`, in order."""
    return (*KEYS, *(dimension(dim) for dim in dims), *METRICS)


def threshold_columns(dims: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns of the thresholds of operations over `dims`, in order."""
    solved = "it is the one solved for, or the operation lacks it"
    return (
        Column("sweep", "", "the sweep it belongs to"),
        *(
            Column(
                c.name,
                c.unit,
                c.meaning,
                null="it is the one solved for" if c.name == "shards" else c.null,
            )
            for c in KEYS
        ),
        Column("axis", "", "what is solved for: a dimension, or shards"),
        *(Column(dim, "1", f"size of the dimension {dim}", null=solved) for dim in dims),
        Column(
            "critical_exact",
            "1",
            "the real size at which t_math equals the largest other time (for shards: the real "
            "number of chips)",
            null="never (for shards: not even on one chip, or without end)",
        ),
        Column(
            "critical",
            "1",
            "the smallest whole size at which t_math is at least every other time; for shards "
            "the largest number of chips, of those the interconnect joins, at which it still is",
            null="never, or not below 2^62 where critical_exact is given (for shards: not even "
            "on one chip, or without end where limit is null too)",
        ),
        *(
            Column(
                f"critical_{r.name}",
                "1",
                f"the same against t_{r.name} alone",
                null="the same: never, not below 2^62, or without end",
            )
            for r in OTHERS
        ),
        Column(
            "critical_rule",
            "1",
            "the rule of thumb: the size against memory with all other dimensions taken as "
            "infinite",
            null="no operand lacks the dimension, never, or it is shards that is solved for",
        ),
        Column(
            "limit",
            "",
            "the resource that binds below critical (for shards: on one chip more), or for "
            "ever where that is null",
            null="nothing but compute ever binds",
        ),
        Column(
            "limit_intensity",
            "FLOP/byte",
            "what that resource's intensity tends to as the dimension grows",
            null="it grows without bound, or there is no limit",
        ),
    )
