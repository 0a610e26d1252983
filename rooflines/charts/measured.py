"""What charts of timings share: samples, medians, and choices of a reader."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from rooflines.basics.lazy import pl
from rooflines.charts.kit.drawing import Choice, starting
from rooflines.charts.kit.text import chip_label
from rooflines.charts.planes import pictured

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

CASE = ("chip", "software", "dtypes")
"""What a reader chooses."""

NO_SOFTWARE = "software not stated"
"""The software of timings that do not state it."""

MOST_DOTS, FEWEST_DOTS = 1_800, 40
"""Timings drawn as dots in all cases of a picture together, and in a case of many [1]."""

FINEST = 256
"""Cells along each side of the finest grid that timings are sampled by [1]."""

BINS_PER_DECADE = 6
"""Bins of timings per factor of ten [1]."""


def sampled(
    part: pl.DataFrame, x: str, y: str, most: int, apart: Sequence[str] = ()
) -> pl.DataFrame:
    """The first timing of every cell of a grid over two columns on logarithmic axes.

    Args:
        part: Timings.
        x: A column with positive values.
        y: Another one.
        most: The largest number of timings kept, at least 2 for each value of `apart`; of the
            grids that keep no more, one of the finest is taken.
        apart: Columns whose values have timings of their own in a cell.

    Returns:
        All timings where they are no more than `most`.
    """
    if part.height <= most:
        return part
    places = part.select(*map(_share, (x, y)), *apart)

    def first(cells: int) -> pl.Series:
        cell = ((pl.col(column) * cells).floor().clip(0, cells - 1) for column in (x, y))
        return places.select(pl.struct(*cell, *apart).is_first_distinct()).to_series()

    cells = bisect_right(range(2, FINEST), most, key=lambda cells: len(first(cells).arg_true())) + 1
    return part.filter(first(cells))


def _share(column: str) -> pl.Expr:
    """The place of a value on a logarithmic axis from the least to the largest, 0 to 1."""
    log = pl.col(column).log()
    return ((log - log.min()) / (log.max() - log.min())).fill_nan(0.0)


def dots_each(cases: int) -> int:
    """Timings drawn as dots in each of a number of cases [1]."""
    return max(MOST_DOTS // max(cases, 1), FEWEST_DOTS)


def frame_of_cases(
    cases: Iterable[tuple[Mapping[str, str], pl.DataFrame]],
    schema: Mapping[str, type],
    rows: Callable[[Mapping[str, str], pl.DataFrame, int], Mapping[str, pl.DataFrame]],
    added: Collection[str] = (),
    added_dtypes: Collection[str] = (),
) -> pl.DataFrame:
    """A frame with the rows of every case.

    Args:
        cases: Chip, software and dtypes, and their timings.
        schema: Its columns, those of `CASE` and `kind` first.
        rows: Gives the rows of a case by their kind, from the case, its timings, and the number of
            timings to draw as dots [1].
        added: The chips that only the site has. The cases of all others share the dots of a
            picture; an added one has as many as if all cases were in it.
        added_dtypes: The dtype combinations that only the site has.
    """
    every = list(cases)
    own = [case["chip"] not in added and case["dtypes"] not in added_dtypes for case, _ in every]
    dots = {True: dots_each(sum(own)), False: dots_each(len(every))}
    frames = [
        part.with_columns(
            **{name: pl.lit(value) for name, value in case.items()}, kind=pl.lit(kind)
        )
        for (case, timings), shown in zip(every, own, strict=True)
        for kind, part in rows(case, timings, dots[shown]).items()
    ]
    empty = pl.DataFrame(schema=schema)
    return pl.concat([empty, *frames], how="diagonal_relaxed").select(*schema)


def in_bins(x: str) -> pl.Expr:
    """The number of the bin of a value on a logarithmic axis."""
    return (pl.col(x).log(10) * BINS_PER_DECADE).floor()


def medians(part: pl.DataFrame, x: str, **values: pl.Expr) -> pl.DataFrame:
    """Medians of timings in bins along a logarithmic axis.

    Args:
        part: Timings.
        x: The column of the axis.
        values: What the medians are of, by name.

    Returns:
        The median `x` of each bin, the medians, and `timings`, their number [1].
    """
    return (
        part.group_by(in_bins(x).alias("#bin"))
        .agg(
            pl.col(x).median(),
            *(value.median().alias(name) for name, value in values.items()),
            timings=pl.len(),
        )
        .sort("#bin")
        .drop("#bin")
    )


def named(case: Mapping[str, Any]) -> str:
    """A case in a title: `bf16 on H100 SXM`."""
    return f"{case['dtypes']} on {chip_label(case['chip'])}"


def dots_text(drawn: int, every: int) -> str:
    """What a subtitle says of the dots: how many timings they are, and how these are chosen."""
    chosen = ", one per cell of a grid" if drawn < every else ""
    return f"Dots: {drawn:,} of {every:,} timings{chosen}"


def first_case(
    frame: pl.DataFrame, added: Collection[str], added_dtypes: Collection[str], *more: str
) -> dict[str, str]:
    """What a chart shows first: the first case of its picture.

    Args:
        frame: The rows of all cases.
        added: The chips that only the site has.
        added_dtypes: The dtype combinations that only the site has.
        more: Further columns of a case.
    """
    return pictured(frame, added, added_dtypes).select(*CASE, *more).row(0, named=True)


def case_choices(
    frame: pl.DataFrame, first: Mapping[str, Any] | None, *more: Choice
) -> list[Choice]:
    """The choices of chip, software and dtypes, with those of the first row shown first."""
    titles = {"software": "Software"}
    choices = [
        Choice(name, frame[name].unique(maintain_order=True).to_list(), titles.get(name, ""))
        for name in CASE
    ]
    return starting([*choices, *more], first)
