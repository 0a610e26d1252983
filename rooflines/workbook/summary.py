"""The sheet Summary: the critical sizes of a few shapes and models, a row a chip.

They are computed from the recipes of the sweeps, by the functions that make the tables, so their
cost does not grow with the tables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.critical.steps import step_thresholds
from rooflines.critical.thresholds import sweep_thresholds
from rooflines.model.columns import AXES
from rooflines.model.network import parse_axes
from rooflines.sweep.recipes import sweep_of
from rooflines.sweep.step_recipes import model_sweep_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rooflines.basics.yaml_file import JSON
    from rooflines.catalogue.forms import Entry
    from rooflines.sweep.step_sweep import ModelSweep
    from rooflines.sweep.sweep import Sweep

MOST_CASES = 29
"""Columns of the sheet besides the chip [1]."""

MOST_SOLVED, MOST_CHIPS = 15_000, 1_000
"""Limits: critical sizes of a sweep that are solved for, and chips [1]."""

ONE_PART = 20_000_000
"""Rows of a part, for sweeps that are not written: no limit of parts counts for them [1]."""

RESULT = ("chip", "outcome", "critical")


class SummaryLine(NamedTuple):
    """What a column of the sheet is about: everything but the chip."""

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
        chips: The chips, in order of appearance.
        critical: The critical size of a line by chip, or the reason why there is none.
        notes: What is not shown, a sentence for each sweep.
    """

    chips: dict[str, None] = field(default_factory=dict)
    critical: dict[SummaryLine, dict[str, int | str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def summarize(recipes: Sequence[JSON], of_models: Sequence[JSON]) -> Summary:
    """A few critical sizes of all sweeps, of operations and of whole models.

    Args:
        recipes: The recipes of sweeps of operations.
        of_models: Those of sweeps of whole models.
    """
    summary = Summary()
    left = len(recipes) + len(of_models)
    for solve, each in ((_operations, recipes), (_models, of_models)):
        for recipe in each:
            share = max((MOST_CASES - len(summary.critical)) // left, 0)
            left -= 1
            _add(summary, recipe["sweep"], solve(recipe), share)
    return summary


class Solved(NamedTuple):
    """The critical sizes of a sweep, or of a part of it.

    Attributes:
        chips: Its chips.
        cases: How many lines the whole sweep has [1].
        thresholds: Rows of a line, a chip, an outcome and a critical size; None: too many.
    """

    chips: Collection[str]
    cases: int
    thresholds: pl.DataFrame | None


def _add(summary: Summary, name: str, solved: Solved, share: int) -> None:
    """Add the first lines of a sweep, with a note if those are not all."""
    every = summary.chips | dict.fromkeys(solved.chips)
    if solved.thresholds is None or len(every) > MOST_CHIPS or not share:
        summary.notes.append(f"{name} is left out ({solved.cases:,} cases)")
        return
    found: dict[SummaryLine, dict[str, int | str]] = {}
    for line, chip, outcome, critical in solved.thresholds.iter_rows():
        found.setdefault(SummaryLine(**line), {})[chip] = outcome if critical is None else critical
    summary.critical |= dict(islice(found.items(), share))
    summary.chips = every
    shown = min(len(found), share)
    if shown < solved.cases:
        summary.notes.append(f"{name}: the first {shown} of {solved.cases:,} cases")


# ---------------------------------------------------------------- operations


def _operations(recipe: JSON) -> Solved:
    """The critical sizes of a sweep of operations: of a large one the first dtypes and split."""
    sweep = sweep_of(recipe)
    axis = sweep.first_solved or sweep.op.dims[0]
    config = {**recipe["config"], "rows_per_part": ONE_PART, "calibration": None}
    config |= {"thresholds": [axis], "shares": [max(sweep.config.shares)]}
    shown = sweep_of({**recipe, "config": config})
    chips, cases = sweep.rows_by_chip(), _cases(shown, axis)
    if reduced := cases > MOST_CASES:
        shown = sweep_of({**recipe, "config": {**config, **_first_variant(sweep)}})
    if _cases(shown, axis) * len(chips) > MOST_SOLVED:
        return Solved(chips, cases, None)
    several = pl.format("{} over {}", "sharding", AXES if sweep.has_axes else "shards")
    split = (
        pl.when(pl.col("shards") > 1).then(_routed(sweep, several)).otherwise(pl.lit("one chip"))
    )
    dims = [dim for dim in sweep.op.dims if dim != axis]
    line = _line(sweep.name, "shape", _sizes(dims), split, axis)
    thresholds = sweep_thresholds(shown).select(line, *RESULT)
    return Solved(chips, cases if reduced else thresholds["line"].n_unique(), thresholds)


def _cases(sweep: Sweep, axis: str) -> int:
    """Lines that a sweep has [1]."""
    several = _has_routes(sweep)
    variants = {
        (rows.memory, several and rows.network, variant) for rows, variant in sweep.chip_variants
    }
    return len(variants) * math.prod(size.count for size in sweep.sizes_without(axis))


def _has_routes(sweep: Sweep | ModelSweep) -> bool:
    """Whether rows of one chip differ in their network: each is then a line of its own."""
    return len(sweep.config.network or []) > 1


def _first_variant(sweep: Sweep) -> dict[str, object]:
    """The keys of the config of the first dtypes and split of a sweep."""
    config, (_, first) = sweep.config, sweep.chip_variants[0]
    return {
        "dtypes": [_plain(config.dtypes[list(sweep.combinations).index(first.dtypes)])],
        "sharding": [_plain(config.sharding[list(sweep.shardings).index(first.sharding)])],
        "shards": [next(form for form in config.shards if parse_axes(form) == first.axes)],
    }


def _plain(form: str | Entry) -> object:
    return form if isinstance(form, str) else form.model_dump()


# ---------------------------------------------------------------- whole models


def _models(recipe: JSON) -> Solved:
    """The critical batches of a sweep of models: of a large one the first dtypes and context."""
    sweep = model_sweep_of(recipe)
    config = {**recipe["config"], "rows_per_part": ONE_PART}
    config |= {"thresholds": ["B"], "targets": None, "calibration": None}
    config["grid"] = {**config["grid"], "B": max(sweep.batches)}  # replicas have one each
    shown = model_sweep_of({**recipe, "config": config})
    chips = dict.fromkeys(case.chip for block in sweep.blocks for case in block.cases)
    cases = _cases_of_models(shown)
    if cases > MOST_CASES:
        dtypes, context = sweep.blocks[0].cases[0].dtypes, sweep.contexts[0]
        config["dtypes"] = [dtypes.model_dump()]
        config["grid"] |= {} if sweep.config.requests else {"S": context}
        shown = model_sweep_of({**recipe, "config": config})
    if _cases_of_models(shown) * len(chips) > MOST_SOLVED:
        return Solved(chips, cases, None)
    sizes = ["T", "S"] if sweep.new_tokens else ["S"]
    split = _routed(sweep, pl.col("split").cast(pl.String))
    line = _line(sweep.name, "model", _sizes(sizes, pl.col("phase")), split, "B")
    return Solved(chips, cases, step_thresholds(shown).select(line, *RESULT))


def _cases_of_models(sweep: ModelSweep) -> int:
    """Lines that a sweep has [1]."""
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
