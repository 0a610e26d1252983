"""Timings: measured times in the tidy form, a row each, in SI units.

`KINDS` lists the kinds, each with the columns that it has or may have.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.basics.errors import RooflinesError, at_path, close_to, quote
from rooflines.basics.text import MAX_ITEMS_SHOWN, counted
from rooflines.dictionary.columns import MEASURED, RECORDED
from rooflines.models.architecture import DECODE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ROW = "#"
"""Column with a row's number in its file; with a name behind it, a column as given."""

MATMUL_SIZES = ("B", "D", "F")
"""Sizes in a matmul, B x D times D x F."""

DTYPES = ("dtype_x", "dtype_w", "dtype_out", "compute")
"""Dtypes of operands and result, and the compute dtype."""

TYPES: Mapping[str, pl.DataType] = {
    "": pl.String(),
    **dict.fromkeys(("1", "byte"), pl.Int64()),
    **dict.fromkeys(("s", "MHz"), pl.Float64()),
}
"""Types of timing columns by unit."""


def _types(*names: str) -> dict[str, pl.DataType]:
    """Dictionary columns with their types."""
    units = {column.name: column.unit for column in (*MEASURED, *RECORDED)}
    return {name: TYPES[units[name]] for name in names}


ATTENTION_SIZES = ("B", "S", "T", "N", "K", "H")
"""Sizes in attention: sequences, context and new tokens per sequence, heads and their size."""

EXPERTS_SIZES = ("tokens", "D", "Fe", "k", "E", "tp", "ep", "matrices")
"""Sizes in a layer with routed experts: tokens, widths, experts per token and in all, chips."""

PARALLEL = ("tp", "attention_dp", "moe_tp", "moe_ep")
"""Parallelism in a run: chips that share its model [1]."""

OPTIONAL = _types(
    "software",
    "source",
    "batch",
    "shards",
    "seconds_min",
    "seconds_iqr",
    "runs",
    "copies",
    "clock_mhz",
    "contents",
    "launch",
    "note",
)
"""Columns that may be left out: one software, no source, one matmul on one chip, one run."""


class TimedKind(NamedTuple):
    """Kind of timings: columns and fits.

    Attributes:
        columns: The columns that they have, with their types.
        telling: Columns that tell the kind, each alone; matmuls have none.
        optional: The columns that may be left out.
        stored: Columns with catalogue dtypes.
        fits: Key for their fits in a calibration file; empty where no fit is to them alone.
        fit_by: The column that says which fit a timing belongs to.
    """

    columns: Mapping[str, pl.DataType]
    telling: tuple[str, ...] = ()
    optional: Mapping[str, pl.DataType] = OPTIONAL
    stored: tuple[str, ...] = ()
    fits: str = ""
    fit_by: str = ""

    @property
    def identity(self) -> list[str]:
        """Columns that tell a chip's timings apart."""
        return [name for name in self.columns if name not in ("chip", "seconds")]

    @property
    def sizes(self) -> list[str]:
        """Sizes for which a fit states its range."""
        return [name for name in self.identity if self.columns[name].is_integer()]


MATMUL_TIMINGS = TimedKind(
    _types("chip", *DTYPES, *MATMUL_SIZES, "seconds"),
    stored=DTYPES,
    fits="calibrations",
    fit_by="compute",
)

ATTENTION = TimedKind(
    _types("chip", "phase", "compute", "cache", *ATTENTION_SIZES, "seconds"),
    ("phase",),
    stored=("compute", "cache"),
    fits="attention",
    fit_by="attention",
)
"""Attention: `phase` is decode or prefill, `cache` a storage dtype."""

EXPERTS = TimedKind(
    _types("chip", "experts", "compute", *EXPERTS_SIZES, "seconds"),
    ("Fe",),
    {**OPTIONAL, **_types("kernel", "distribution")},
    stored=("experts", "compute"),
    fits="experts",
    fit_by="experts_fit",
)
"""Routed experts as one fused kernel on one chip; `experts` is their storage dtype."""

COLLECTIVE = TimedKind(
    _types("chip", "collective", "shards", "bytes", "seconds"),
    ("collective",),
    fits="collectives",
    fit_by="collective",
)
"""Collectives; `bytes` is the whole tensor, over all chips."""

POOL_COLUMNS = ("servers", "prefill_servers", *(f"prefill_{name}" for name in PARALLEL))
"""Two pools in a run: decode servers, prefill servers, and parallelism in one of these [1]."""

SERVED = TimedKind(
    _types("model", "chip", "input_tokens", "output_tokens", "concurrency", "ttft_s", "tpot_s"),
    ("tpot_s", "concurrency"),
    _types(
        "software", "source", "linear", "experts", "note", *PARALLEL, "disaggregated", *POOL_COLUMNS
    ),
)
"""Served models, a row per run. Optional: weight formats, else bf16; chips, else one;
`disaggregated`, else the same servers read prompts; `POOL_COLUMNS`, where `PARALLEL` is of one
decode server, and `concurrency` of all."""

GRAPH, EAGER = "graph", "eager"
"""Values in the column `launch`: a decode step takes collectives from CUDA graphs."""

KINDS = (SERVED, COLLECTIVE, ATTENTION, EXPERTS, MATMUL_TIMINGS)
"""Kinds, in the order in which columns tell them."""


def attention_names() -> pl.Expr:
    """Fit name for each attention timing, as in `calibration_files.attention_name`."""
    phase, cache = pl.col("phase"), pl.col("cache")
    multi_head = pl.when(pl.col("N") == pl.col("K")).then(pl.lit("-mha")).otherwise(pl.lit(""))
    decode = pl.format("{}-{}{}", phase, cache, multi_head)
    return (
        pl.when(phase == DECODE)
        .then(decode)
        .otherwise(pl.format("{}-{}-{}", phase, "compute", cache))
    )


def experts_names() -> pl.Expr:
    """Fit name for each timing with experts, as in `calibration_files.experts_name`."""
    stored = pl.col("experts").str.split("-").list.first()
    same = stored == pl.col("compute")
    return pl.when(same).then(stored).otherwise(pl.format("{}-{}", stored, "compute"))


def timed_kind(columns: Collection[str]) -> TimedKind:
    """Kind of timings with these columns."""
    kinds = (kind for kind in KINDS if any(name in columns for name in kind.telling))
    return next(kinds, MATMUL_TIMINGS)


MIN_TIMINGS = 10
"""Fewest timings in a fit [1]."""


@dataclass(frozen=True)
class Timings:
    """Timings in one table, checked.

    Attributes:
        file: Where they come from.
        frame: Their kind's columns, optional ones, and `ROW`.
        notes: Sentences about timings left out or merged.
        left_out: Counts by reason for timings left out [1].
        unread: Columns in the table that are not read; none for a public layout.
        assumed: Assumptions about the timings where their file does not say.
        device_notes: Sentences about devices that the file names, and that are not the chip.
    """

    file: str
    frame: pl.DataFrame
    notes: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    device_notes: tuple[str, ...] = ()

    @property
    def kind(self) -> TimedKind:
        """Kind of timings."""
        return timed_kind(self.frame.columns)

    @property
    def is_served(self) -> bool:
        """True if the rows are runs with served models."""
        return self.kind is SERVED

    @property
    def copies(self) -> int:
        """Timings that equal another one in all columns [1]."""
        return self.frame.height - self.frame.drop(ROW, strict=False).n_unique()

    @property
    def sources(self) -> list[str]:
        """Values in the column `source`, sorted."""
        if "source" not in self.frame.columns:
            return []
        return self.frame["source"].drop_nulls().unique().sort().to_list()

    def where(self, column: str, value: str) -> Timings:
        """Timings with one value in a column; numbers as text.

        Raises:
            RooflinesError: There are none.
        """
        values = self.frame[column].drop_nulls().unique().sort().cast(pl.String).to_list()
        with at_path(column, file=self.file):
            if value not in values:
                problem = f"has no {quote(value)}"
                more = (
                    f" and {len(values) - MAX_ITEMS_SHOWN:,} more"
                    if len(values) > MAX_ITEMS_SHOWN
                    else ""
                )
                fix = f"use one of {', '.join(values[:MAX_ITEMS_SHOWN])}{more}"
                raise RooflinesError("", problem, fix, close=close_to(value, values))
        return replace(self, frame=self.frame.filter(pl.col(column).cast(pl.String) == value))

    def of_system(self, chip: str, software: str) -> Timings:
        """Timings on a chip with one software.

        A table without a column `software` has one software for each chip.

        Raises:
            RooflinesError: There are none, or they have several sources and no software is stated.
        """
        selected = self.where("chip", chip)
        if "software" in self.frame.columns:
            return selected.where("software", software)
        if len(selected.sources) > 1:
            problem = (
                f"is missing, and the timings of {chip} are mixed: {', '.join(selected.sources)}"
            )
            raise RooflinesError(
                "software", problem, "add the column, or choose one source", file=self.file
            )
        return selected

    def check_enough(self) -> None:
        """Refuse fewer timings than a fit needs."""
        if self.frame.height < MIN_TIMINGS:
            why = f"; {'; '.join(self.notes)}" if self.notes else ""
            problem = (
                f"has {counted(self.frame.height, 'timing')} to fit, of {MIN_TIMINGS} needed{why}"
            )
            raise RooflinesError("", problem, "measure more sizes")


def medians(timings: Timings, keys: Collection[str]) -> Timings:
    """Merge repeated timings into one row with their median.

    Args:
        timings: The timings.
        keys: The columns that tell a timing from another.
    """
    frame = timings.frame
    row = [pl.col(ROW).first()] if ROW in frame.columns else []
    merged = frame.group_by(keys, maintain_order=True).agg(pl.col("seconds").median(), *row)
    repeats = frame.height - merged.height
    note = (f"{counted(repeats, 'repeated timing')}: their median is taken",) if repeats else ()
    return replace(timings, frame=merged, notes=timings.notes + note)
