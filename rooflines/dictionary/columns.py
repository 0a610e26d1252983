"""Columns in every table: `columns.yaml` describes them, and lists those in each table."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.basics.yaml_file import read_package_yaml
from rooflines.theory.resources import MEMORY, NON_MATH, RATES, RESOURCES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

FOUND, NEVER, ALWAYS, WITHOUT_END, BEYOND_MAX_COUNT, UNKNOWN = OUTCOMES = (
    "found",
    "never",
    "always",
    "without-end",
    "beyond-2^62",
    "domain-unknown",
)
"""Outcomes of a threshold: a number, or the reason why there is none."""

CAPACITY_UNKNOWN = "capacity-unknown"
STEP_OUTCOMES = (*OUTCOMES, CAPACITY_UNKNOWN)
"""Outcomes of a model's threshold."""

FROM, TO = SIDES = ("from", "to")
"""Sides of a lever's threshold: it pays from this size on, or up to it."""

HEADS, CONTEXT = "heads", "context"
STEP_LIMITS = (*(resource.bound for resource in RESOURCES), HEADS, CONTEXT)
"""Limits of a model's threshold."""


# ------------------------------------------------------------ the dictionary


@dataclass(frozen=True)
class Column:
    """A table column.

    Attributes:
        name: The name in every file.
        unit: An SI unit without prefix; empty for names and labels.
        meaning: The quantity.
        null: The meaning of null; empty if the column has no nulls.
    """

    name: str
    unit: str
    meaning: str
    null: str = ""


Section = dict[str, Column]
"""Columns by name, in order."""

COLUMNS_FILE = Path(__file__).with_name("columns.yaml")

ATTRIBUTES = {"unit": "unit", "meaning": "meaning", "if-null": "null"}
"""Attributes of `Column` by key in the file."""

RESOURCE_GROUPS = {
    "resource": RESOURCES,
    "other": NON_MATH,
    "further": [resource for resource in NON_MATH if resource is not MEMORY],
}
"""Resources for which an entry with this word in its name gives one column each."""


EXACT_BATCH = "max_B_exact"
"""Column with the largest batch by the exact need, beside that of an engine's pool."""

NON_SECTIONS = ("words", "tables", "needs")
"""Keys in the file that are no sections."""


def _read_sections(content: dict[str, Any]) -> dict[str, Section]:
    """Read the sections of `columns.yaml`; the file explains its entries."""
    words = {
        **content["words"],
        "bounds": ", ".join(resource.bound for resource in RESOURCES),
        "rates": ", ".join(RATES),
        "outcomes": ", ".join(OUTCOMES),
        "step_outcomes": ", ".join(STEP_OUTCOMES),
    }
    sections: dict[str, Section] = {}
    for section, entries in content.items():
        if section not in NON_SECTIONS:
            sections[section] = dict(_columns_of(entries, words, sections))
    for section, totals in (("step-rates", "step-totals"), ("training-rates", "training-times")):
        rates = [*sections[section].values()]
        sections[section] |= dict(map(_serial_column, rates))
        estimate = sections[totals]["t_estimate_s"]
        sections[section] |= dict(_estimate_column(column, estimate) for column in rates)
    return sections


def _columns_of(
    entries: Mapping[str, Mapping[str, str] | str],
    words: Mapping[str, object],
    sections: Mapping[str, Section],
) -> Iterator[tuple[str, Column]]:
    """Columns from a section's entries, by name.

    Args:
        entries: The file's entries by name.
        words: Replacements for words in braces.
        sections: The sections above, which entries refer to.
    """
    for pattern, entry in entries.items():
        entry_texts = {"meaning": entry} if isinstance(entry, str) else dict(entry)
        alike = sections[entry_texts.pop("as")] if "as" in entry_texts else {}
        group = next((word for word in RESOURCE_GROUPS if f"{{{word}." in pattern), "")
        for resource in RESOURCE_GROUPS.get(group, (None,)):
            substitutions = {**words, group: resource}
            name = pattern.format_map(substitutions)
            descriptions = {
                ATTRIBUTES[key]: str(value).format_map(substitutions)
                for key, value in entry_texts.items()
            }
            yield name, replace(alike[name] if alike else Column(name, "", ""), **descriptions)


SERIAL_SUFFIX = "_serial"
"""Suffix of columns computed from t_serial_s instead of t_lower_s."""


def _serial_column(column: Column) -> tuple[str, Column]:
    """The serialized counterpart of a column, with its name: t_serial_s in place of t_lower_s."""
    meaning = column.meaning.replace("t_lower_s", "t_serial_s")
    if meaning == column.meaning:
        meaning = f"{meaning} from t_serial_s"
    name = f"{column.name}{SERIAL_SUFFIX}"
    return name, replace(column, name=name, meaning=meaning)


ESTIMATE_SUFFIX = "_estimate"
"""Suffix for columns computed from t_estimate_s instead of t_lower_s."""


def _estimate_column(column: Column, estimate: Column) -> tuple[str, Column]:
    """Estimated counterpart with its name: t_estimate_s in place of t_lower_s.

    Args:
        column: Column at the bound.
        estimate: Column with the estimate, whose reason to be null holds, too.
    """
    bound = column.meaning.replace(", not t_estimate_s", "")
    meaning = bound.replace("t_lower_s", "t_estimate_s")
    if meaning == bound:
        meaning = f"{meaning} from t_estimate_s"
    name = f"{column.name}{ESTIMATE_SUFFIX}"
    null = "; ".join(filter(None, [column.null, estimate.null]))
    return name, replace(column, name=name, meaning=meaning, null=null)


CONTENT = read_package_yaml(COLUMNS_FILE)
SECTIONS = _read_sections(CONTENT)
LOWER_BOUND, LOWER_MEAN, LOWER_RING = LOWER_NAMES = ("bound", "mean", "ring")
"""Kinds of a kernel's t_lower_s: a bound, a mean over routings, or a ring beside switches."""

LABELS = ("bound", "estimate_bound", "estimate_extrapolated", "t_lower_is", "fits", "fits_by")
"""Columns without unit that hold labels, not names."""

OPERATION_TABLE = "table"
"""Operation table, without what kernels alone have."""

DIMS = "dims"
"""Placeholder for an operation's dimensions among a table's sections."""


def _columns(*sections: str) -> tuple[Column, ...]:
    """Columns in sections, in order."""
    return tuple(column for section in sections for column in SECTIONS[section].values())


@cache
def columns_of(table: str, dims: tuple[str, ...] = (), /, **has: bool) -> tuple[Column, ...]:
    """Columns in a table, in order.

    Args:
        table: The table's name under `tables` in the file.
        dims: Dimensions of the table's operations.
        has: Prerequisites of columns that the table meets, by key under `needs` in the file.
    """
    table_entry = CONTENT["tables"][table]
    nulls: dict[str, str] = table_entry.get("if-null", {})
    meanings: dict[str, str] = table_entry.get("meanings", {})
    met = {*table_entry.get("meets", "").split(), *(need for need in has if has[need])}
    lacking = [names.split() for need, names in CONTENT["needs"].items() if need not in met]
    absent = {*table_entry.get("without", "").split(), *chain(*lacking)}
    columns: list[Column] = []
    for section in table_entry["sections"].split():
        if section == DIMS:
            null = nulls.get(section, "")
            columns += (replace(dimension(dim), null=null.format(dim=dim)) for dim in dims)
        elif section not in absent:
            section_columns = (column for column in _columns(section) if column.name not in absent)
            columns += (
                replace(
                    column,
                    null=nulls.get(column.name, column.null),
                    meaning=meanings.get(column.name, column.meaning),
                )
                for column in section_columns
            )
    return tuple(columns)


def text_columns(columns: Iterable[Column]) -> list[str]:
    """Columns with names, Categorical in every table; columns with fixed labels are left out."""
    return [column.name for column in columns if not column.unit and column.name not in LABELS]


def dimension(dim: str) -> Column:
    """Column with a dimension's sizes."""
    return Column(dim, "1", f"size of dimension {dim}")


# ------------------------------------------------------------ operations


AXES = "axes"
"""Key with the chips along each axis, in tables of sweeps that split over several axes."""

(SWEEP,), KEYS = _columns("swept"), _columns("keys")
KERNEL_SWEEP_METRICS, SOLUTION = _columns("metrics"), _columns("solution")
"""Columns besides the keys, from which `columns:` in a sweep selects; and threshold columns."""

KERNEL_NEEDS = ("kernels", "kinds", "sequences", "collectives")
"""Prerequisites that tables of kernels meet: kinds, sequences of them, and collectives."""

KERNEL_COLUMNS = tuple(" ".join(CONTENT["needs"][need] for need in KERNEL_NEEDS).split())
"""Columns only in tables of kernels."""

METRICS = tuple(column for column in KERNEL_SWEEP_METRICS if column.name not in KERNEL_COLUMNS)
"""Columns besides the keys in a sweep of an operation."""

CORE_METRICS = (
    *(resource.work for resource in RESOURCES),
    *(f"t_{resource.name}_s" for resource in RESOURCES),
    "t_lower_s",
    "bound",
    "fits",
)
"""Columns that `columns: core` selects."""

LEVEL_METRICS = tuple(CONTENT["needs"]["levels"].split())
"""Metrics only in sweeps over two networks."""


# ------------------------------------------------------------ steps of whole models


SPLIT_KEYS = ("split", "chips", "tp", "dp", "ep")
"""Keys that tell how chips share the model."""

UNTIMED_PREFIX = "untimed"
"""Prefix to the matmul fits that estimate a kernel without timings."""

STEP_METRICS = _columns(
    "step-works",
    "step-footprint",
    "engine-pool",
    "step-times",
    "step-totals",
    "step-rates",
    "prices",
)
"""Columns besides the keys; `columns:` in a model sweep selects from these."""

STEP_CORE_METRICS = (
    *SECTIONS["step-works"],
    *SECTIONS["step-times"],
    "t_lower_s",
    "t_serial_s",
    "bound",
    "fits",
)
"""Columns that `columns: core` selects in a model sweep."""

KERNEL_METRICS = _columns("kernel-totals")
"""Kernel metrics besides works and times; a sum over kernels lacks some of them."""


def step_columns(*, requests: bool = False, **has: bool) -> tuple[Column, ...]:
    """Columns in a step table, in order.

    Args:
        requests: Whether rows are requests.
        has: Prerequisites met, as in `columns_of`.
    """
    columns = columns_of("models", requests=requests, **has)
    return tuple(map(_request_column, columns)) if requests else columns


def _request_column(column: Column) -> Column:
    """A step column as it reads in a request table."""
    if column.name == "S":
        return replace(column, null="a row of requests")
    if column.name in SECTIONS["step-works"] or column.name.startswith("t_"):
        return replace(column, meaning=f"mean over the decode steps: {column.meaning}")
    if column.name in SECTIONS["step-footprint"]:
        return replace(column, meaning=f"after the last token: {column.meaning}")
    if column.name == "bound":
        return replace(column, meaning=f"of the mean times: {column.meaning}")
    return column


TRAINING_METRICS = _columns(
    "training-works",
    "training-footprint",
    "training-times",
    "training-rates",
    "prices",
    "training-whole",
)
"""Columns besides the keys in training sweeps."""


# ------------------------------------------------------------ other tables


SKIPPED = (
    SWEEP,
    *(
        replace(column, null="applies to all, or the sweep has none")
        for column in (*KEYS, *(SECTIONS["step-keys"][name] for name in ("model", "split")))
        if column.name not in ("operation", "shape", *KERNEL_COLUMNS)
    ),
    *_columns("skipped"),
)
"""Columns of `skipped.csv`: rows left out of the tables."""

SUMMARY = _columns("summary")
MODEL_SHAPES = _columns("model-shapes")
MEASURED = _columns("measured")
RECORDED = _columns("recorded")
MEASURED_SUMMARY = _columns("measured-summary")
MEASURED_SKIPPED = _columns("measured-skipped")
KERNELS = _columns("kernels")
TRACE_CALLS = _columns("trace-calls")
TRACE_CHANGES = _columns("trace-changes")
CHANGES = _columns("changes")


def measured_columns(names: Collection[str]) -> tuple[Column, ...]:
    """Timing columns with these names, in order."""
    return tuple(column for column in MEASURED if column.name in names)


def column_records() -> list[dict[str, str]]:
    """One row per file and column: `file`, `column`, `unit`, `meaning`, `null`."""
    request_columns = _columns(
        "request-sizes", "request-metrics", "mixed-metrics", "pool-metrics", "pool-rates"
    )
    files = {
        name: columns_of(
            name,
            ("B", "D", "F"),
            new_tokens=True,
            tokens=True,
            training=True,
            levers=True,
            engine=True,
            **dict.fromkeys(KERNEL_NEEDS, name != OPERATION_TABLE),
        )
        for name in CONTENT["tables"]
    }
    files["models"] += request_columns
    files |= {
        "skipped": SKIPPED,
        "summary": SUMMARY,
        "model-shapes": MODEL_SHAPES,
        "measured": MEASURED,
        "measured-summary": MEASURED_SUMMARY,
        "measured-skipped": MEASURED_SKIPPED,
        "kernels": KERNELS,
        "trace-calls": TRACE_CALLS,
        "trace-changes": TRACE_CHANGES,
        "changes": CHANGES,
    }
    return [
        {
            "file": file,
            "column": column.name,
            "unit": column.unit,
            "meaning": column.meaning,
            "null": column.null,
        }
        for file, columns in files.items()
        for column in columns
    ]
