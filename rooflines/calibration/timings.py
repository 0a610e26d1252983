"""Tables of timings: read, checked, and the rows of one chip and software chosen.

A row is a timing, in SI units. Matmuls have the columns of `MATMUL`, collectives those of
`COLLECTIVE`; `OPTIONAL` may be left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from polars.exceptions import PolarsError

from rooflines.basics.errors import Mistakes, RooflinesError, close_to, one_of, placed, quote
from rooflines.basics.text import counted
from rooflines.model.network import PASSES

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

__all__ = ["COLLECTIVE", "FEWEST", "MATMUL", "Timings", "medians", "read_timings"]

SIZES = ("B", "D", "F")
"""The sizes of a matmul, B x D times D x F."""

MATMUL: Mapping[str, pl.DataType] = {
    "chip": pl.String(),
    "dtype_x": pl.String(),
    "dtype_w": pl.String(),
    "dtype_out": pl.String(),
    "compute": pl.String(),
    **dict.fromkeys(SIZES, pl.Int64()),
    "seconds": pl.Float64(),
}
"""The columns of timings of matmuls."""

COLLECTIVE: Mapping[str, pl.DataType] = {
    "chip": pl.String(),
    "collective": pl.String(),
    "shards": pl.Int64(),
    "bytes": pl.Int64(),
    "seconds": pl.Float64(),
}
"""The columns of timings of collectives; `bytes` is the whole tensor, over all chips."""

OPTIONAL: Mapping[str, pl.DataType] = {
    "software": pl.String(),
    "source": pl.String(),
    "batch": pl.Int64(),
    "shards": pl.Int64(),
}
"""Columns that may be left out: one software, no source, one matmul on one chip."""

FEWEST = 10
"""Fewest timings of a fit [1]."""


@dataclass(frozen=True)
class Timings:
    """Timings of one table, checked.

    Attributes:
        file: Where they come from.
        frame: The columns of `MATMUL` or `COLLECTIVE`, and `OPTIONAL` ones.
        notes: What was left out or merged, a sentence each.
    """

    file: str
    frame: pl.DataFrame
    notes: tuple[str, ...] = ()

    @property
    def collectives(self) -> bool:
        """Whether the rows are collectives instead of matmuls."""
        return "collective" in self.frame.columns

    @property
    def sources(self) -> list[str]:
        """The values of the column `source`, sorted."""
        if "source" not in self.frame.columns:
            return []
        return self.frame["source"].drop_nulls().unique().sort().to_list()

    def where(self, column: str, wanted: str, hint: str = "") -> Timings:
        """The timings with one value in a column.

        Raises:
            RooflinesError: There are none.
        """
        known = self.frame[column].unique().sort().to_list()
        with placed(column, file=self.file):
            if wanted not in known:
                problem = f"has no {quote(wanted)}"
                fix = f"use one of {', '.join(map(str, known))}{hint}"
                raise RooflinesError("", problem, fix, close=close_to(wanted, known))
        return replace(self, frame=self.frame.filter(pl.col(column) == wanted))

    def of(self, chip: str, software: str) -> Timings:
        """The timings of a chip with a software.

        A table without a column `software` has one software for each chip.

        Raises:
            RooflinesError: There are none, or they are of several sources and it is not said which
                software these are.
        """
        chosen = self.where("chip", chip)
        if "software" in self.frame.columns:
            return chosen.where("software", software)
        if len(chosen.sources) > 1:
            problem = (
                f"is missing, and the timings of {chip} are mixed: {', '.join(chosen.sources)}"
            )
            raise RooflinesError(
                "software", problem, "add the column, or choose one source", file=self.file
            )
        return chosen

    def enough(self) -> None:
        """Refuse fewer timings than a fit needs."""
        if self.frame.height < FEWEST:
            problem = f"has {counted(self.frame.height, 'timing')} to fit, of {FEWEST} needed"
            raise RooflinesError("", problem, "measure more sizes", file=self.file)


def read_timings(path: str | Path) -> Timings:
    """Timings from a table in Parquet or, with another suffix, CSV.

    Args:
        path: The file.

    Returns:
        All its timings; rows with B = 0, several matmuls in a batch or several chips are left out.

    Raises:
        RooflinesError: It cannot be read, lacks columns, or has values that are none.
    """
    with placed(file=str(path)):
        frame = _read(Path(path))
        schema = COLLECTIVE if "collective" in frame.columns else MATMUL
        frame = _typed(frame, schema).with_row_index("#", offset=1)
        notes: list[str] = []
        if schema is MATMUL:
            frame, notes = _usable(frame)
        if frame.is_empty():
            raise RooflinesError("", "has no timings", "give a table with a row for each timing")
        _check_values(frame, schema)
    return Timings(str(path), frame.drop("#"), tuple(notes))


def _read(path: Path) -> pl.DataFrame:
    parquet = path.suffix == ".parquet"
    try:
        return pl.read_parquet(path) if parquet else pl.read_csv(path, infer_schema_length=None)
    except FileNotFoundError:
        raise RooflinesError("", "does not exist", "give the path of a table") from None
    except IsADirectoryError:
        raise RooflinesError("", "is a directory", "give the path of a table") from None
    except (PolarsError, OSError, UnicodeDecodeError) as error:
        kind, other = ("Parquet", "CSV") if parquet else ("CSV", "Parquet")
        reason = " ".join(str(error).split())
        problem = f"is no {kind} file: {reason[:200]}"
        fix = f"write it again; {other} has the suffix .{other.lower()}"
        raise RooflinesError("", problem, fix) from None


def _typed(frame: pl.DataFrame, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The known columns with their types; a value of another type is null."""
    missing = [name for name in schema if name not in frame.columns]
    if missing:
        raise RooflinesError(
            "",
            f"lacks the columns {', '.join(missing)}",
            f"add them; timings have {', '.join(schema)}",
            close=[near for name in missing for near in close_to(name, frame.columns)],
        )
    known = {**{n: t for n, t in OPTIONAL.items() if n in frame.columns}, **schema}
    return frame.select(pl.col(name).cast(kind, strict=False) for name, kind in known.items())


def _usable(frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The rows of single matmuls on one chip, and a note on each kind that is left out."""
    reasons = {"B": "have B = 0", "batch": "are batches", "shards": "are of several chips"}
    left_out = {"B": pl.col("B") == 0, "batch": pl.col("batch") > 1, "shards": pl.col("shards") > 1}
    notes = []
    for column, unusable in left_out.items():
        if column not in frame.columns:
            continue
        rest = frame.filter(~unusable.fill_null(value=False))
        if less := frame.height - rest.height:
            notes.append(f"{counted(less, 'timing')} left out: they {reasons[column]}")
        frame = rest
    return frame, notes


def _check_values(frame: pl.DataFrame, columns: Collection[str]) -> None:
    """Refuse missing values, sizes and times that are not above zero, and unknown collectives."""
    with Mistakes() as mistakes:
        for column in columns:
            values = frame[column]
            right = values.is_not_null()
            if values.dtype.is_numeric():
                right &= values.is_finite() & (values > 0)
            wrong = frame.filter(~right.fill_null(value=False))
            with mistakes.at(column):
                if not wrong.is_empty():
                    what = "a number above zero" if values.dtype.is_numeric() else "text"
                    problem = (
                        f"has {counted(wrong.height, 'value')} that should be {what}, the first in "
                        f"row {wrong['#'][0]}: {quote(wrong[column][0])}"
                    )
                    raise RooflinesError("", problem, "correct the rows, or take them out")
                if column == "collective":
                    for name in values.unique().sort():
                        one_of(name, PASSES, "no collective")


def medians(timings: Timings, keys: Collection[str]) -> Timings:
    """Repeated timings as one row with their median.

    Args:
        timings: The timings.
        keys: The columns that tell a timing from another.
    """
    frame = timings.frame
    once = frame.group_by(keys, maintain_order=True).agg(pl.col("seconds").median())
    repeats = frame.height - once.height
    note = (f"{counted(repeats, 'repeated timing')}: their median is taken",) if repeats else ()
    return replace(timings, frame=once, notes=timings.notes + note)
