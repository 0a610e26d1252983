"""The columns of every table: `columns.yaml` describes them, and says which ones a table has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflines.basics.yaml_file import read_yaml
from rooflines.theory.resources import MATH, MEMORY, NON_MATH, RATES, RESOURCES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

FOUND, NEVER, ALWAYS, WITHOUT_END, BEYOND_MAX_COUNT, UNKNOWN = OUTCOMES = (
    "found",
    "never",
    "always",
    "without-end",
    "beyond-2^62",
    "domain-unknown",
)
"""What a threshold is: a number, or the reason why there is none."""

CAPACITY_UNKNOWN = "capacity-unknown"
STEP_OUTCOMES = (*OUTCOMES, CAPACITY_UNKNOWN)
"""What a threshold of a whole model is."""

HEADS = "heads"
STEP_LIMITS = (*(resource.bound for resource in RESOURCES), HEADS)
"""What limits a threshold of a whole model."""


# ------------------------------------------------------------ the dictionary


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


Section = dict[str, Column]
"""Columns by name, in order."""

COLUMNS_FILE = Path(__file__).with_name("columns.yaml")

ATTRIBUTES = {"unit": "unit", "meaning": "meaning", "if-null": "null"}
"""The attributes of a column by their keys in the file."""

RESOURCE_GROUPS = {
    "resource": RESOURCES,
    "other": NON_MATH,
    "further": [each for each in RESOURCES if each not in (MATH, MEMORY)],
}
"""The resources that an entry with one of these words in its name stands for."""


NON_SECTIONS = ("words", "tables", "needs")
"""Keys of the file that are no sections."""


def _read_sections(content: dict[str, Any]) -> dict[str, Section]:
    """The sections of `columns.yaml`, which says what its entries mean."""
    words = {
        **content["words"],
        "bounds": ", ".join(resource.bound for resource in RESOURCES),
        "rates": ", ".join(RATES),
        "outcomes": ", ".join(OUTCOMES),
        "step_outcomes": ", ".join(STEP_OUTCOMES),
    }
    earlier: Section = {}
    sections: dict[str, Section] = {}
    for section, entries in content.items():
        if section not in NON_SECTIONS:
            sections[section] = dict(_columns_of(entries, words, earlier))
            earlier = sections[section] | earlier
    for section in ("step-rates", "training-rates"):
        sections[section] |= dict(map(_serial_column, sections[section].values()))
    return sections


def _columns_of(
    entries: Mapping[str, Mapping[str, object] | str | None],
    words: Mapping[str, object],
    earlier: Section,
) -> Iterator[tuple[str, Column]]:
    """The columns of the entries of a section, each with its name.

    Args:
        entries: What the file says of each name.
        words: What stands for words in braces.
        earlier: The first column of each name in the sections above.
    """
    for pattern, entry in entries.items():
        entry_texts = {"meaning": entry} if isinstance(entry, str) else entry or {}
        group = next((word for word in RESOURCE_GROUPS if f"{{{word}." in pattern), "")
        for resource in RESOURCE_GROUPS.get(group, (None,)):
            substitutions = {**words, group: resource}
            name = pattern.format_map(substitutions)
            descriptions = {
                ATTRIBUTES[key]: str(value).format_map(substitutions)
                for key, value in entry_texts.items()
            }
            yield name, replace(earlier.get(name, Column(name, "", "")), **descriptions)


SERIAL_SUFFIX = "_serial"
"""Follows the name of what is computed from t_serial_s instead of t_lower_s."""


def _serial_column(column: Column) -> tuple[str, Column]:
    """A column that is computed from t_lower_s as it is from t_serial_s, with its name."""
    meaning = column.meaning.replace("t_lower_s", "t_serial_s")
    if meaning == column.meaning:
        meaning = f"{meaning} from t_serial_s"
    name = f"{column.name}{SERIAL_SUFFIX}"
    return name, replace(column, name=name, meaning=meaning)


CONTENT = read_yaml(COLUMNS_FILE)
SECTIONS = _read_sections(CONTENT)
LABELS = ("bound", "estimate_bound", "estimate_extrapolated", "fits")
"""Columns of rows without a unit that are no names."""

DIMS = "dims"
"""What stands for the dimensions of an operation among the sections of a table."""


def _columns(*sections: str) -> tuple[Column, ...]:
    """The columns of sections, in order."""
    return tuple(column for section in sections for column in SECTIONS[section].values())


def columns_of(table: str, dims: Sequence[str] = (), /, **has: bool) -> tuple[Column, ...]:
    """The columns of a table, in order.

    Args:
        table: Its name under `tables` of the file.
        dims: The dimensions of its operation, or of several.
        has: What it has of what columns need, by the keys of `needs` of the file.
    """
    table_entry = CONTENT["tables"][table]
    nulls: dict[str, str] = table_entry.get("if-null", {})
    lacking = [names.split() for need, names in CONTENT["needs"].items() if not has.get(need)]
    absent = {*table_entry.get("without", "").split(), *chain(*lacking)}
    columns: list[Column] = []
    for section in table_entry["sections"].split():
        if section == DIMS:
            null = nulls.get(section, "")
            columns += (replace(dimension(dim), null=null.format(dim=dim)) for dim in dims)
        elif section not in absent:
            section_columns = (column for column in _columns(section) if column.name not in absent)
            columns += (
                replace(column, null=nulls.get(column.name, column.null))
                for column in section_columns
            )
    return tuple(columns)


def text_columns(columns: Iterable[Column]) -> list[str]:
    """Those with names, which are Categorical in every table; not those of a few fixed labels."""
    return [column.name for column in columns if not column.unit and column.name not in LABELS]


def dimension(dim: str) -> Column:
    """The column with the sizes of a dimension."""
    return Column(dim, "1", f"size of dimension {dim}")


# ------------------------------------------------------------ operations


AXES = "axes"
"""The key with the chips along each axis, in tables of sweeps that split over several."""

(SWEEP,), KEYS = _columns("swept"), _columns("keys")
METRICS, SOLUTION = _columns("metrics"), _columns("solution")
"""Columns besides the keys, of which `columns:` of a sweep selects; and those of thresholds."""

CORE_METRICS = (
    *(resource.work for resource in RESOURCES),
    *(f"t_{resource.name}_s" for resource in RESOURCES),
    "t_lower_s",
    "bound",
    "fits",
)
"""What `columns: core` selects."""

LEVEL_METRICS = tuple(CONTENT["needs"]["levels"].split())
"""Metrics of sweeps over two networks only."""


# ------------------------------------------------------------ steps of whole models


SPLIT_KEYS = ("split", "chips", "tp", "dp", "ep")
"""Keys that say how chips share the model."""

UNTIMED_PREFIX = "untimed"
"""Before the fits of matmuls that the estimate of a kernel takes, as no timings are of it."""

STEP_METRICS = _columns(
    "step-works", "step-footprint", "step-times", "step-totals", "step-rates", "prices"
)
"""Columns besides the keys; `columns:` of a model sweep selects from these."""

STEP_CORE_METRICS = (
    *SECTIONS["step-works"],
    *SECTIONS["step-times"],
    *("t_lower_s", "t_serial_s", "bound", "fits"),
)
"""What `columns: core` of a model sweep selects."""

KERNEL_METRICS = _columns("kernel-totals")
"""Metrics of kernels besides works and times; a sum over kernels lacks some of them."""


def step_columns(*, requests: bool = False, **has: bool) -> tuple[Column, ...]:
    """The columns of a table of steps, in order.

    Args:
        requests: Whether rows are requests.
        has: As of `columns_of`.
    """
    columns = columns_of("models", requests=requests, **has)
    return tuple(map(_request_column, columns)) if requests else columns


def _request_column(column: Column) -> Column:
    """A column of steps as that of requests."""
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
    *("training-works", "training-footprint", "training-times", "training-rates"),
    *("prices", "training-whole"),
)
"""The same of steps of training."""


# ------------------------------------------------------------ other tables


SKIPPED = (
    SWEEP,
    *(
        replace(column, null="applies to all, or the sweep has none")
        for column in (*KEYS, *(SECTIONS["step-keys"][name] for name in ("model", "split")))
        if column.name not in ("operation", "shape")
    ),
    *_columns("skipped"),
)
"""Rows that are left out of the tables."""

SUMMARY = _columns("summary")
MODEL_SHAPES = _columns("model-shapes")
MEASURED = _columns("measured")
RECORDED = _columns("recorded")
MEASURED_SUMMARY = _columns("measured-summary")
MEASURED_SKIPPED = _columns("measured-skipped")
KERNELS = _columns("kernels")


def measured_columns(names: Collection[str]) -> tuple[Column, ...]:
    """The columns of a table of timings that has these, in order."""
    return tuple(column for column in MEASURED if column.name in names)


def column_records() -> list[dict[str, str]]:
    """A row for each column of each file: `file`, `column`, `unit`, `meaning`, `null`."""
    request_columns = _columns("request-sizes", "request-metrics", "pool-metrics")
    files = {
        name: columns_of(name, ("B", "D", "F"), new_tokens=True, tokens=True, training=True)
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
