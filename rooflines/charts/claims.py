"""Claims: what titles say, as data from which anyone can work it out again.

A claim has plain values alone, for JSON:

- `says`: how its value follows from the rows, one of `Says`;
- `of`: the quantity, mostly a column of the table;
- `over`: the rows it speaks of, by the values that columns have in them. Of several memory levels
  and networks of a chip, the first;
- `basis`: `nominal`, or `calibrated`: by the calibration where chip and dtypes have one;
- `value`: what the title says, exact where the title rounds.

Some have more: `at` narrows the rows down to these sizes, a set for each row; `most` to rows whose
columns are at most these values. `where` is the value that counted rows have, or the time that an
error is of; `by` is the column whose values are listed; `to` is the column that `of` is divided by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import polars as pl

Plain: TypeAlias = "str | float | bool | Sequence[Plain] | Mapping[str, Plain] | None"
"""A value of JSON."""

Claim: TypeAlias = "dict[str, Plain]"
"""A claim, as JSON has it."""

Says = Literal[
    "value",
    "values",
    "range",
    "never",
    "nulls",
    "count",
    "times",
    "largest",
    "tie",
    "maximum",
    "sums",
    "none",
    "median",
]
"""What `says` can be, and how the value follows from the rows.

- `value`: the one value of all rows;
- `values`: the value of each row of `at`, null for never;
- `range`: the smallest and the largest value, of which none is null;
- `never`: all values are null; with `by`, all at these values of that column and at no others;
- `nulls`: how many values are null, and how many there are;
- `count`: how many rows have the value `where`, and how many there are;
- `times`: the largest value over the smallest, and the chips that have them;
- `largest`: the chip that has the largest value; no other has as much;
- `tie`: how many chips have the largest value;
- `maximum`: the largest value;
- `sums`: the sum of `of` over the sum of `to`;
- `none`: there is no such row;
- `median`: the median; of an error also the largest median of a cell, of several times each.
"""


class Finding(NamedTuple):
    """What a chart says for one choice of its reader.

    Attributes:
        title, subtitle: The words.
        claim: What the title claims; None if it claims nothing.
        drawn: Further values that marks read, by name.
        names: Names in the title besides those of the claim; a title too long has them shortened.
    """

    title: str
    subtitle: str
    claim: Claim | None = None
    drawn: Mapping[str, Plain] = {}
    names: Sequence[str] = ()

    def titled(self, title: str | None) -> Finding:
        """With a title of the config's own, which claims nothing; unchanged for None."""
        return self if title is None else Finding(title, self.subtitle)

    def adding(self, text: str) -> Finding:
        """With more words in the subtitle."""
        return self._replace(subtitle=self.subtitle + text)


def claim(
    says: Says,
    of: str,
    rows: Mapping[str, Sequence[Plain]],
    value: Plain,
    basis: str = "nominal",
    **more: Plain,
) -> Claim:
    """A claim.

    Args:
        says: How the value follows from the rows.
        of: The quantity.
        rows: The rows it speaks of, as `over`.
        value: What it says of them.
        basis: What the numbers are by.
        more: What only some claims have, such as `at`.
    """
    return {"says": says, "of": of, "over": dict(rows), "basis": basis, "value": value, **more}


def over(frame: pl.DataFrame, *columns: str) -> dict[str, list[Plain]]:
    """The values that columns have in a frame."""
    return {name: list(dict.fromkeys(frame[name])) for name in columns}


def solved(size: str) -> dict[str, list[Plain]]:
    """The thresholds of a size at which rows are compute-bound."""
    return {"axis": [size], "share": [1.0]}


def held(frame: pl.DataFrame) -> dict[str, list[Plain]]:
    """The shapes of a frame's rows, if they have any, and the values of the dimensions."""
    shapes = ["shape"] if frame["shape"].null_count() < frame.height else []
    return over(frame, *shapes, *_dims(frame.columns))


def size_of(row: Mapping[str, Plain]) -> dict[str, Plain]:
    """The shape of a row, if it has one, and its sizes."""
    return {name: row[name] for name in (*(["shape"] if row["shape"] else []), *_dims(row))}


def _dims(columns: Iterable[str]) -> list[str]:
    """The columns that are dimensions, whose names are single capital letters."""
    return [name for name in columns if len(name) == 1 and name.isupper()]


def ends(values: Iterable[float]) -> list[float]:
    """The smallest and the largest of some values."""
    every = list(values)
    return [min(every), max(every)]
