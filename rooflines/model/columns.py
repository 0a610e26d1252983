"""The columns of every table: `columns.yaml` describes them, functions here join them to tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from rooflines.basics.yaml_file import read_yaml
from rooflines.model.resources import MATH, MEMORY, OTHERS, RATES, RESOURCES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

FOUND, NEVER, ALWAYS, ENDLESS, BEYOND, UNKNOWN = OUTCOMES = (
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

FILE = Path(__file__).with_name("columns.yaml")

FIELDS = {"unit": "unit", "meaning": "meaning", "if-null": "null"}
"""The attributes of a column by their keys in the file."""

GROUPS = {
    "resource": RESOURCES,
    "other": OTHERS,
    "further": [each for each in RESOURCES if each not in (MATH, MEMORY)],
}
"""The resources that an entry with one of these words in its name stands for."""


def _read_sections() -> dict[str, Section]:
    """The sections of `columns.yaml`, which says what its entries mean."""
    content = read_yaml(FILE)
    words = {
        **content.pop("words"),
        "bounds": ", ".join(each.bound for each in RESOURCES),
        "rates": ", ".join(RATES),
        "outcomes": ", ".join(OUTCOMES),
        "step_outcomes": ", ".join(STEP_OUTCOMES),
    }
    first: Section = {}
    found: dict[str, Section] = {}
    for section, entries in content.items():
        found[section] = dict(_columns_of(entries, words, first))
        first = found[section] | first
    return found


def _columns_of(
    entries: Mapping[str, Mapping[str, object] | str | None],
    words: Mapping[str, object],
    first: Section,
) -> Iterator[tuple[str, Column]]:
    """The columns of the entries of a section, each with its name.

    Args:
        entries: What the file says of each name.
        words: What stands for words in braces.
        first: The first column of each name in the sections above.
    """
    for pattern, entry in entries.items():
        said = {"meaning": entry} if isinstance(entry, str) else entry or {}
        group = next((word for word in GROUPS if f"{{{word}." in pattern), "")
        for each in GROUPS.get(group, (None,)):
            known = {**words, group: each}
            name = pattern.format_map(known)
            texts = {FIELDS[key]: str(value).format_map(known) for key, value in said.items()}
            yield name, replace(first.get(name, Column(name, "", "")), **texts)


SECTIONS = _read_sections()


def _columns(*sections: str) -> tuple[Column, ...]:
    """The columns of sections, in order."""
    return tuple(column for section in sections for column in SECTIONS[section].values())


def _with_null(columns: Iterable[Column], names: Collection[str], null: str) -> Iterator[Column]:
    """Columns, of which those with one of the names are null for a reason."""
    for column in columns:
        yield replace(column, null=null) if column.name in names else column


# ------------------------------------------------------------ operations


AXES = "axes"
"""The key with the chips along each axis, in tables of sweeps that split over several."""

SWEEP, *KEYS = _columns("keys")
TEXTS = tuple(column.name for column in KEYS if not column.unit)
"""Keys with text values: Categorical in every table."""

METRICS = _columns("metrics")
"""Columns besides the keys; `columns:` of a sweep selects from these."""

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

AXIS, *SOLUTION = _columns("solution")
"""The variable of a threshold; what is solved for, and the solution."""


def keys(*, axes: bool) -> Iterator[Column]:
    """The keys of a table, with the chips along each axis or without."""
    return (column for column in KEYS if axes or column.name != AXES)


def dimension(dim: str) -> Column:
    """The column with the sizes of a dimension."""
    return Column(dim, "1", f"size of dimension {dim}")


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
    return (*keys(axes=axes), *map(dimension, dims), *metrics)


def threshold_columns(dims: tuple[str, ...], *, axes: bool = False) -> tuple[Column, ...]:
    """The columns of the thresholds of operations over `dims`, in order.

    Args:
        dims: The dimensions.
        axes: Whether any sweep splits over several axes of a torus.
    """
    return (
        SWEEP,
        *_with_null(keys(axes=axes), ("shards", AXES), "axis is shards"),
        AXIS,
        *(
            replace(dimension(dim), null=f"axis is {dim}, or the operation has no {dim}")
            for dim in dims
        ),
        *SOLUTION,
    )


# ------------------------------------------------------------ steps of whole models


STEP_KEYS = _columns("step-keys")
OF_SPLIT = ("split", "chips", "tp", "dp", "ep")
"""Keys that say how chips share the model."""

KEY_TEXTS = tuple(column.name for column in STEP_KEYS if not column.unit)
PLAN_TEXTS = ("shard", "recompute")
STEP_TEXTS = (*KEY_TEXTS, *PLAN_TEXTS, "price_provider", "price_date")
UNTIMED = "untimed"
"""Before the fits of matmuls that the estimate of a kernel takes, as no timings are of it."""

LAYER_TEXTS = (*KEY_TEXTS, *PLAN_TEXTS, "group", "calibration")
"""Columns with text values, of steps and of kernels: Categorical in every table."""

OPS_SUFFIX = "_ops"
"""Follows the name of what is computed from t_ops_s instead of t_lower_s."""


def _from_both_times(section: str) -> Iterator[Column]:
    """Columns that are computed from t_lower_s, then each as it is computed from t_ops_s."""
    columns = _columns(section)
    yield from columns
    for column in columns:
        meaning = column.meaning.replace("t_lower_s", "t_ops_s")
        if meaning == column.meaning:
            meaning = f"{meaning} from t_ops_s"
        yield replace(column, name=f"{column.name}{OPS_SUFFIX}", meaning=meaning)


STEP_METRICS = (
    *_columns("step-works", "step-footprint", "step-times", "step-totals"),
    *_from_both_times("step-rates"),
    *_columns("prices"),
)
"""Columns besides the keys; `columns:` of a model sweep selects from these."""

STEP_CORE = (
    *SECTIONS["step-works"],
    *SECTIONS["step-times"],
    *("t_lower_s", "t_ops_s", "bound", "fits"),
)
"""What `columns: core` of a model sweep selects."""

KERNEL_METRICS = _columns("kernel-totals")
"""Metrics of kernels besides works and times; a sum over kernels lacks some of them."""


def _sizes(*, new_tokens: bool, requests: bool = False) -> Iterator[Column]:
    """The sizes of a step, and of requests."""
    absent = "a row of requests" if requests else ""
    sizes = _with_null(_columns("step-sizes"), ("S",), absent)
    yield from (column for column in sizes if new_tokens or column.name != "T")
    yield from _columns("request-sizes") if requests else ()


def _of_request(column: Column) -> Column:
    """A metric of a step as that of a request."""
    if column.name in SECTIONS["step-works"] or column.name.startswith("t_"):
        return replace(column, meaning=f"mean over the decode steps: {column.meaning}")
    if column.name in SECTIONS["step-footprint"]:
        return replace(column, meaning=f"after the last token: {column.meaning}")
    if column.name == "bound":
        return replace(column, meaning=f"of the mean times: {column.meaning}")
    return column


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
    of_requests = ("request-metrics", "pool-metrics") if pools else ("request-metrics",)
    return (*STEP_KEYS, *sizes, *_columns(*of_requests), *map(_of_request, STEP_METRICS))


def layer_columns(*, new_tokens: bool = False) -> tuple[Column, ...]:
    """The columns of a table of kernels, in order.

    Args:
        new_tokens: Whether the grid has T.
    """
    rest = _columns("kernel-keys", "step-works", "kernel-times", "kernel-totals")
    return (*STEP_KEYS, *_sizes(new_tokens=new_tokens), *rest)


def step_threshold_columns(
    *, new_tokens: bool = False, training: bool = False
) -> tuple[Column, ...]:
    """The columns of thresholds of whole models, in order.

    Args:
        new_tokens: Whether the grid of any sweep has T.
        training: Whether any sweep trains.
    """
    axis, *solution = _columns("step-solution")
    sizes: Iterable[Column] = _sizes(new_tokens=new_tokens)
    for name, null in (
        ("B", "axis is B or S"),
        ("T", "axis is chips, or the grid has no T"),
        ("S", "axis is S"),
    ):
        sizes = _with_null(sizes, {name}, null)
    return (
        SWEEP,
        *_with_null(STEP_KEYS, OF_SPLIT, "axis is chips"),
        axis,
        *sizes,
        *solution,
        *(_columns("training-solution") if training else ()),
    )


# ------------------------------------------------------------ training


TRAINING_METRICS = (
    *_columns("training-works", "training-footprint", "training-times"),
    *_from_both_times("training-rates"),
    *_columns("prices", "training-whole"),
)
"""Columns besides keys and sizes."""


def training_columns(*, tokens: bool = True) -> tuple[Column, ...]:
    """The columns of a table of steps of training, in order.

    Args:
        tokens: Whether the sweep says how many tokens are trained on.
    """
    whole = SECTIONS["training-whole"]
    metrics = (each for each in TRAINING_METRICS if tokens or each.name not in whole)
    return (*STEP_KEYS, *_columns("training-keys"), *_sizes(new_tokens=False), *metrics)


def training_layer_columns() -> tuple[Column, ...]:
    """The columns of a table of kernels of training, in order."""
    works = (each for each in _columns("training-works") if each.name != "micro_batches")
    return (
        *STEP_KEYS,
        *_columns("training-keys"),
        *_sizes(new_tokens=False),
        *_columns("training-kernel-keys"),
        *works,
        *_columns("kernel-times"),
        *(SECTIONS["kernel-totals"][name] for name in ("t_ops_s", "t_upper_s", "bound")),
    )


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
    dims = ("B", "D", "F")
    of_requests = _columns("request-sizes", "request-metrics", "pool-metrics")
    files = {
        "table": table_columns(dims),
        "thresholds": threshold_columns(dims),
        "models": (*step_columns(new_tokens=True), *of_requests),
        "layers": layer_columns(new_tokens=True),
        "training": training_columns(),
        "training-layers": training_layer_columns(),
        "model-thresholds": step_threshold_columns(new_tokens=True, training=True),
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
