"""The sheet Summary: a row per shape or model, chips across.

Critical sizes and shares of peak are computed from the recipes of the sweeps, at a few sizes, by
the functions that make the tables. So their cost does not grow with the tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.text import counted
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.model.columns import AXES, METRICS
from rooflines.model.network import parse_axes
from rooflines.model.step_columns import STEP_METRICS
from rooflines.serving.critical import step_thresholds
from rooflines.serving.recipes import model_sweep_of
from rooflines.serving.rows import whole_step_rows
from rooflines.sweep.recipes import sweep_of
from rooflines.sweep.rows import whole_rows
from rooflines.sweep.table import chosen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from rooflines.basics.yaml_file import JSON
    from rooflines.catalogue.forms import Entry
    from rooflines.serving.sweep import ModelSweep
    from rooflines.sweep.sweep import Sweep

BATCHES = (1, 32, 256)
"""Sizes of the axis at which shares of the peak are given, within the range of a sweep [1]."""

MOST_OF_SWEEP, MOST_CRITICAL, MOST_CHIPS = 15_000, 50_000, 1_000
"""Limits: critical sizes of a sweep and of all, and chips across [1]."""

ONE_PART = 20_000_000
"""Rows of a part, for sweeps that are not written: no limit of parts counts for them [1]."""

RESULT = ("chip", "outcome", "critical")


class Line(NamedTuple):
    """What a row of the sheet is about: everything but the chip."""

    sweep: str
    name: str | None
    sizes: str
    dtypes: str
    split: str
    memory: str
    axis: str


@dataclass
class Summary:
    """What the sheet shows.

    Attributes:
        chips: The chips across, in order of appearance.
        critical: The critical size of a line by chip, or the reason why there is none.
        shares: Share of the peak by chip, of a line at a size of its axis, 0..1 [1].
        notes: What is not shown, a sentence for each sweep.
    """

    chips: dict[str, None] = field(default_factory=dict)
    critical: dict[Line, dict[str, int | str]] = field(default_factory=dict)
    shares: dict[tuple[Line, int], dict[str, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def has_room(self, sweep: str, chips: Collection[str], lines: int) -> bool:
        """Whether the sheet has room for a sweep; its chips are added, or a note."""
        shown = sum(map(len, self.critical.values())) + lines * len(chips)
        every = self.chips | dict.fromkeys(chips)
        if shown > MOST_CRITICAL or lines * len(chips) > MOST_OF_SWEEP or len(every) > MOST_CHIPS:
            self.notes.append(f"{sweep} is left out ({lines:,} rows)")
            return False
        self.chips = every
        return True

    def add(self, thresholds: pl.DataFrame, shares: pl.DataFrame) -> None:
        """Add results, from `_results` or `_results_of_models`."""
        for line, chip, outcome, critical in thresholds.iter_rows():
            found = outcome if critical is None else critical
            self.critical.setdefault(Line(**line), {})[chip] = found
        for line, chip, size, share in shares.iter_rows():
            self.shares.setdefault((Line(**line), size), {})[chip] = share


def summarize(recipes: Iterable[JSON], of_models: Iterable[JSON]) -> Summary:
    """The results of all sweeps of operations and of whole models.

    Args:
        recipes: The recipes of sweeps of operations.
        of_models: Those of sweeps of whole models.
    """
    summary = Summary()
    for recipe in recipes:
        _add_sweep(summary, recipe)
    for recipe in of_models:
        _add_models(summary, recipe)
    return summary


# ---------------------------------------------------------------- operations


def _add_sweep(summary: Summary, recipe: JSON) -> None:
    """Add a sweep of operations: of a large one the first dtypes and split only."""
    sweep = sweep_of(recipe)
    axis = sweep.first_solved or sweep.op.dims[0]
    config = {**recipe["config"], "rows_per_part": ONE_PART, "calibration": None}
    config |= {"thresholds": [axis], "shares": [max(sweep.config.shares)]}
    own = sweep.size_columns[axis]
    batches = [size for size in BATCHES if min(own) <= size <= max(own)]
    if has_batches := bool(batches) and axis in (config["grid"] or {}):
        config["grid"] = {**config["grid"], axis: batches}
    shown, note = sweep_of({**recipe, "config": config}), ""
    chips = sweep.rows_by_chip()
    if _lines(shown, axis) * len(chips) > MOST_OF_SWEEP:
        first, note = _first_variant(sweep)
        shown = sweep_of({**recipe, "config": {**config, **first}})
    if summary.has_room(sweep.name, chips, _lines(shown, axis)):
        summary.notes.extend([note] if note else [])
        summary.add(*_results(shown, axis, has_batches=has_batches))


def _lines(sweep: Sweep, axis: str) -> int:
    """Rows of the sheet that a sweep has [1]."""
    several = _has_routes(sweep)
    variants = {
        (rows.memory, several and rows.network, variant) for rows, variant in sweep.chip_variants
    }
    return len(variants) * math.prod(size.count for size in sweep.sizes_without(axis))


def _has_routes(sweep: Sweep | ModelSweep) -> bool:
    """Whether rows of one chip differ in their network: each is then a line of its own."""
    return len(sweep.config.network or []) > 1


def _first_variant(sweep: Sweep) -> tuple[dict[str, object], str]:
    """The keys of the config of the first dtypes and split of a sweep, and a note."""
    config, (_, first) = sweep.config, sweep.chip_variants[0]
    keys: dict[str, object] = {
        "dtypes": [_plain(config.dtypes[list(sweep.combinations).index(first.dtypes)])],
        "sharding": [_plain(config.sharding[list(sweep.shardings).index(first.sharding)])],
        "shards": [next(form for form in config.shards if parse_axes(form) == first.axes)],
    }
    return keys, f"{sweep.name}: {first.dtypes} on {counted(first.shards, 'chip')} only"


def _plain(form: str | Entry) -> object:
    return form if isinstance(form, str) else form.model_dump()


def _results(sweep: Sweep, axis: str, *, has_batches: bool) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Critical sizes along an axis, and shares of the peak at sizes of it if these are batches."""
    several = pl.format("{} over {}", "sharding", AXES if sweep.has_axes else "shards")
    split = (
        pl.when(pl.col("shards") > 1).then(_routed(sweep, several)).otherwise(pl.lit("one chip"))
    )
    dims = [dim for dim in sweep.op.dims if dim != axis]
    line = _line(sweep.name, "shape", _sizes(dims), split, axis)
    thresholds = sweep_thresholds(sweep).select(line, *RESULT)
    if not has_batches:
        return thresholds, pl.DataFrame()
    names = [column.name for column in chosen(sweep.columns, METRICS, ["utilization"])]
    rows = whole_rows(sweep, names, 0, sweep.rows)
    return thresholds, _shares(rows, line, axis, "utilization")


# ---------------------------------------------------------------- whole models


def _add_models(summary: Summary, recipe: JSON) -> None:
    """Add a sweep of whole models: of a large one the first dtypes and context only."""
    sweep = model_sweep_of(recipe)
    config = {**recipe["config"], "rows_per_part": ONE_PART}
    config |= {"thresholds": ["B"], "targets": None, "calibration": None}
    batches = sorted({*BATCHES, max(sweep.batches)})  # a split with more replicas needs the largest
    config["grid"] = {**config["grid"], "B": batches}
    shown, note = model_sweep_of({**recipe, "config": config}), ""
    chips = dict.fromkeys(case.chip for block in sweep.blocks for case in block.cases)
    if _lines_of_models(shown) * len(chips) > MOST_OF_SWEEP:
        dtypes, context = sweep.blocks[0].cases[0].dtypes, sweep.contexts[0]
        config["dtypes"] = [dtypes.model_dump()]
        config["grid"] |= {} if sweep.config.requests else {"S": context}
        shown = model_sweep_of({**recipe, "config": config})
        note = f"{sweep.name}: {dtypes.label} and S={context} only"
    if summary.has_room(sweep.name, chips, _lines_of_models(shown)):
        summary.notes.extend([note] if note else [])
        summary.add(*_results_of_models(shown))


def _lines_of_models(sweep: ModelSweep) -> int:
    """Rows of the sheet that a sweep has [1]."""
    several = _has_routes(sweep)
    cases = {
        (
            case.name,
            case.phase,
            case.memory,
            several and case.network,
            case.dtypes.label,
            case.split,
        )
        for block in sweep.blocks
        for case in block.cases
    }
    return len(cases) * len(sweep.contexts) * len(sweep.new_tokens or (1,))


def _results_of_models(sweep: ModelSweep) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Critical batches of a sweep, and shares of the peak at `BATCHES`."""
    sizes = ["T", "S"] if sweep.new_tokens else ["S"]
    split = _routed(sweep, pl.col("split").cast(pl.String))
    line = _line(sweep.name, "model", _sizes(sizes, pl.col("phase")), split, "B")
    thresholds = step_thresholds(sweep).select(line, *RESULT)
    names = [column.name for column in chosen(sweep.columns, STEP_METRICS, ["mfu"])]
    rows = whole_step_rows(sweep, names, 0, sweep.rows)
    return thresholds, _shares(rows, line, "B", "mfu")


def _shares(rows: pl.LazyFrame, line: pl.Expr, axis: str, share: str) -> pl.DataFrame:
    """The shares of rows at `BATCHES`: `line`, `chip`, the size of the axis and the share."""
    return rows.filter(pl.col(axis).is_in(BATCHES)).select(line, "chip", axis, share).collect()


def _line(sweep: str, name: str, sizes: pl.Expr, split: pl.Expr, axis: str) -> pl.Expr:
    """The fields of `Line`, as a column `line`."""
    fields = {
        "sweep": pl.lit(sweep),
        "name": pl.col(name).cast(pl.String),
        "sizes": sizes,
        "dtypes": pl.col("dtypes").cast(pl.String),
        "split": split,
        "memory": pl.col("memory").cast(pl.String),
        "axis": pl.lit(axis),
    }
    return pl.struct(value.alias(key) for key, value in fields.items()).alias("line")


def _routed(sweep: Sweep | ModelSweep, split: pl.Expr) -> pl.Expr:
    """A split, with its network where rows of one chip differ in it."""
    if not _has_routes(sweep):
        return split
    return pl.concat_str(
        split, pl.col("network").cast(pl.String), separator=", ", ignore_nulls=True
    )


def _sizes(names: Iterable[str], *first: pl.Expr) -> pl.Expr:
    """Sizes as text, such as `D=4096 F=14336`."""
    sizes = [pl.format(f"{name}={{}}", name) for name in names]
    texts = [*(text.cast(pl.String) for text in first), *sizes]
    return pl.concat_str(texts, separator=" ", ignore_nulls=True) if texts else pl.lit("")
