"""The sheet Summary: the critical sizes of a few shapes and models, a row a chip."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.model.columns import AXES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooflines.basics.yaml_file import JSON

MOST_CASES = 29
"""Columns of the sheet besides the chip [1]."""

MOST_CHIPS = 1_000
"""Rows of the sheet [1]."""

NO_SIZE = ("share", "target_s")
"""The first column after the sizes of a threshold, of operations and of whole models."""


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


def summarize(solved: Sequence[tuple[JSON, pl.LazyFrame]]) -> Summary:
    """A few critical sizes of all sweeps, of operations and of whole models.

    Args:
        solved: The recipe of every sweep, with the thresholds that it is in.
    """
    summary = Summary()
    for index, (recipe, frame) in enumerate(solved):
        room = max((MOST_CASES - len(summary.critical)) // (len(solved) - index), 0)
        _add(summary, recipe, frame, room)
    return summary


def _add(summary: Summary, recipe: JSON, frame: pl.LazyFrame, room: int) -> None:
    """Add the first lines of a sweep along its first size, with a note if those are not all."""
    name, columns = recipe["sweep"], frame.collect_schema().names()
    of_sweep = frame.filter(pl.col("sweep").cast(pl.String) == name)
    solved = of_sweep.select(pl.col("axis").cast(pl.String).unique()).collect()["axis"].to_list()
    after = columns[columns.index("axis") + 1 :]
    sizes = after[: next(index for index, each in enumerate(after) if each in NO_SIZE)]
    axis = next((size for size in sizes if size in solved), None)
    if axis is None:
        summary.notes.append(f"{name} is solved for no size")
        return
    nominal = pl.col("target_s").is_null() if "target_s" in columns else pl.lit(value=True)
    share = pl.col("share") == pl.col("share").max() if "share" in columns else pl.lit(value=True)
    rows = of_sweep.filter(pl.col("axis").cast(pl.String) == axis, nominal, share)
    others = [size for size in sizes if size != axis]
    line = _line(recipe, columns, others, axis)
    texts = (pl.col(result).cast(pl.String) for result in ("chip", "outcome"))
    fields = (field.alias(key) for key, field in line.items())
    table = rows.select(*fields, *texts, "critical").collect()
    lines = table.select(SummaryLine._fields).unique(maintain_order=True)
    every = summary.chips | dict.fromkeys(table["chip"])
    if not room or len(every) > MOST_CHIPS:
        summary.notes.append(f"{name} is left out ({lines.height:,} cases)")
        return
    summary.chips = every
    shown = table.join(lines.head(room), on=SummaryLine._fields, how="semi", nulls_equal=True)
    for *texts_of_line, chip, outcome, critical in shown.iter_rows():
        by_chip = summary.critical.setdefault(SummaryLine(*texts_of_line), {})
        by_chip[chip] = outcome if critical is None else critical
    if lines.height > room:
        summary.notes.append(f"{name}: the first {room} of {lines.height:,} cases")


def _line(
    recipe: JSON, columns: Sequence[str], sizes: Sequence[str], axis: str
) -> dict[str, pl.Expr]:
    """The fields of `SummaryLine` as columns."""
    texts = [pl.format(f"{size}={{}}", size) for size in sizes]
    if "phase" in columns:
        name, split = "model", pl.col("split").cast(pl.String)
        texts.insert(0, pl.col("phase").cast(pl.String))
    else:
        counts = [AXES, "shards"] if AXES in columns else ["shards"]
        chips = pl.coalesce(pl.col(count).cast(pl.String) for count in counts)
        several = pl.format("{} over {}", "sharding", chips)
        name, split = (
            "shape",
            pl.when(pl.col("shards") > 1).then(several).otherwise(pl.lit("one chip")),
        )
    if len(recipe["config"]["network"] or []) > 1:  # rows of one chip differ in their network
        network = pl.col("network").cast(pl.String)
        split = pl.concat_str(split, network, separator=", ", ignore_nulls=True)
    return {
        "sweep": pl.lit(recipe["sweep"]),
        "name": pl.col(name).cast(pl.String),
        "sizes": pl.concat_str(texts, separator=" ", ignore_nulls=True) if texts else pl.lit(""),
        "dtypes": pl.col("dtypes").cast(pl.String),
        "split": split,
        "memory": pl.col("memory").cast(pl.String),
        "axis": pl.lit(axis),
    }
