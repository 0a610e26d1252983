"""Rows of the critical map by what they are: lines and shapes of each of the reader's choices."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl


class Line(NamedTuple):
    """An arc of a line of equal critical batch, from its upper left to its lower right end.

    Attributes:
        kind: `level`, `never`, or `share` for a line of a smaller share of the peak.
        level: The critical batch [1]; infinite for the border of never.
        share: The share of the peak [1].
        D, F, D_end, F_end: The two ends [1].
        D_limit, F_limit: The asymptotes [1]; None: it is straight.
    """

    kind: str
    level: float
    share: float
    D: float
    F: float
    D_end: float
    F_end: float
    D_limit: float | None
    F_limit: float | None


class Shape(NamedTuple):
    """A named shape.

    Attributes:
        name: Its name.
        D, F: Its sizes [1].
        level: Its critical batch [1]; None: never.
        reached, share: As of `frames.share_values`.
    """

    name: str
    D: float
    F: float
    level: float | None
    reached: int | None
    share: float | None


class Case(NamedTuple):
    """What a map shows at one choice of the reader.

    Attributes:
        chip, dtypes, basis, sharding, network, shards, calibrated: Columns of `contour_frame`.
        lines: The arcs of all lines.
        shapes: The named shapes.
    """

    chip: str
    dtypes: str
    basis: str
    sharding: str
    network: str | None
    shards: int
    calibrated: bool
    lines: Sequence[Line]
    shapes: Sequence[Shape]


def cases_of(frame: pl.DataFrame, names: Sequence[str]) -> dict[tuple[str, ...], Case]:
    """The cases of a frame by the values of the reader's choices, in its order.

    Args:
        frame: From `contour_frame`.
        names: The parameters of the choices.
    """
    cases = {}
    for key, part in frame.partition_by(names, as_dict=True, maintain_order=True).items():
        is_shape = part["kind"] == "shape"
        lines = part.filter(~is_shape).select(Line._fields).iter_rows()
        shapes = part.filter(is_shape).select(Shape._fields).iter_rows()
        about = part.select(Case._fields[:-2]).row(0, named=True)
        cases[key] = Case(
            **about, lines=[Line(*row) for row in lines], shapes=[Shape(*row) for row in shapes]
        )
    return cases
