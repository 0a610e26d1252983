"""Axes of a sweep's sizes: grid and shapes, combined."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import Mistakes, RooflinesError, at_path, check_choice, close_to
from rooflines.basics.numbers import whole
from rooflines.config.axis_sizes import MAX_AXIS_SIZES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.config.axis_sizes import Sizes
    from rooflines.config.grid_shapes import NamedShape
    from rooflines.config.schema import SweepConfig
    from rooflines.theory.operation import Operation


MAX_PARTS = 100_000
"""Limit on parts of one sweep: their files are numbered with five digits [1]."""


AxisPoints = tuple[tuple[str, tuple[Any, ...]], ...]
"""Values of an axis by column."""


@dataclass(frozen=True)
class Axis:
    """Axis of the index space: columns that change together.

    Attributes:
        columns: Values by column, all with the same length.
    """

    columns: Mapping[str, Sequence[Any]]

    @cached_property
    def count(self) -> int:
        """Number of points on the axis [1]."""
        return len(next(iter(self.columns.values())))

    @property
    def points(self) -> AxisPoints:
        """All that makes the axis, as a key of memos."""
        return tuple((name, tuple(values)) for name, values in self.columns.items())


def axes_of(config: SweepConfig, op: Operation) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """Build the size axes: before the cases, and after them.

    Before them is the operation's first dimension, if it has a separate axis; after them come
    shapes, then the other dimensions.
    """
    grid, shapes = config.grid or {}, config.shapes or []
    roots: dict[str, str] = {}
    with Mistakes() as mistakes:
        for dim in grid:
            with mistakes.at("grid", dim):
                check_dim(dim, op)
        with mistakes.at("shapes"):
            shaped = _shape_columns(shapes, op)
        for dim in op.dims:
            with mistakes.at("grid"):
                roots[dim] = _root(dim, grid, shapes, op)
    own_dims = [dim for dim in op.dims if roots[dim] == dim and dim in grid]
    check_length({dim: grid[dim].count for dim in own_dims}, config.rows_per_part)
    axes = {}
    for dim in own_dims:
        values = grid[dim].values()
        axes[dim] = Axis({tied_dim: values for tied_dim in op.dims if roots[tied_dim] == dim})
    first = axes.pop(op.dims[0], None)
    before = (first,) if first else ()
    if shaped:
        tied = {dim: shaped[roots[dim]] for dim in op.dims if roots[dim] in shaped}
        names = {"shape": tuple(shape.name for shape in shapes)}
        return before, (Axis({**names, **tied}), *axes.values())
    return before, tuple(axes.values())


def check_dim(dim: object, op: Operation) -> None:
    """Refuse a dimension that an operation does not have."""
    if dim not in op.dims:
        fix = f"use the dimensions of {op.name}: {', '.join(op.dims)}"
        close = close_to(dim, op.dims)
        raise RooflinesError("", f"is no dimension of {op.name}", fix, close=close)


def check_length(counts: Mapping[str, int], rows_per_part: int) -> None:
    """Refuse a grid that is too large to enumerate.

    Args:
        counts: Number of sizes, by dimension [1].
        rows_per_part: Largest number of rows in a part [1].
    """
    with at_path("grid"), Mistakes() as mistakes:
        for dim, count in counts.items():
            if count > MAX_AXIS_SIZES:
                fix = f"let one dimension take at most {MAX_AXIS_SIZES:,} sizes"
                mistakes.add(RooflinesError(dim, f"has {count:,} sizes, a row each", fix))
        mistakes.check()
        rows = math.prod(counts.values())
        if rows > MAX_PARTS * rows_per_part:
            parts = f"more than {MAX_PARTS:,} parts of {rows_per_part:,}"
            fix = "choose fewer sizes, or raise `rows_per_part`"
            raise RooflinesError("", f"makes at least {rows:,} rows, in {parts}", fix)


def _root(dim: str, grid: Mapping[str, Sizes], shapes: Sequence[NamedShape], op: Operation) -> str:
    """Dimension whose sizes a dimension has: itself, or the dimension that it repeats."""
    shaped = {shape_dim for shape in shapes for shape_dim in shape.sizes}
    if dim in grid and dim in shaped:
        fix = f"leave {dim} out of one of them"
        raise RooflinesError(dim, "has sizes in `shapes`, too", fix)
    if dim not in grid and dim not in shaped:
        fix = f"add {dim} to the grid, or to every one of the shapes"
        raise RooflinesError(dim, "has no sizes", fix)
    same = grid[dim].same_as if dim in grid else None
    if same is None:
        return dim
    with at_path(dim):
        check_choice(same, op.dims, f"no dimension of {op.name}")
    if same not in shaped and (same not in grid or grid[same].same_as):
        problem = f"repeats {same}, which has no sizes of its own"
        raise RooflinesError(dim, problem, "write sizes, or name a dimension that has some")
    return same


def _shape_columns(shapes: Sequence[NamedShape], op: Operation) -> dict[str, tuple[int, ...]]:
    """Columns with the sizes that named shapes give to dimensions."""
    dims = [dim for dim in op.dims if shapes and dim in shapes[0].sizes]
    rows: list[list[int]] = []
    with Mistakes() as mistakes:
        for index, shape in enumerate(shapes):
            path = (index,) if shape.path is None else shape.path
            with mistakes.at(*path) as shape_mistakes:
                for dim in shape.sizes:
                    with shape_mistakes.at(dim):
                        check_dim(dim, op)
                shape_mistakes.check()
                if set(shape.sizes) != set(dims) or not dims:
                    problem = f"gives other dimensions than shapes[0], {', '.join(dims)}"
                    raise RooflinesError("", problem, "let all shapes give the same, at least one")
                row = []
                for dim in dims:
                    with shape_mistakes.at(dim):
                        row.append(whole(shape.sizes[dim]))
                rows.append(row)
    return dict(zip(dims, zip(*rows, strict=True), strict=True))
