"""The axes of a sweep's sizes: its grid and its shapes, combined."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rooflines.basics.errors import (
    Mistakes,
    RooflinesError,
    at_path,
    circle,
    close_to,
    one_of,
)
from rooflines.basics.numbers import whole
from rooflines.settings.sizes import LONGEST_AXIS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooflines.model.operation import Operation
    from rooflines.settings.schema import SweepConfig
    from rooflines.settings.shapes import NamedShape
    from rooflines.settings.sizes import Sizes

MOST_PARTS = 100_000
"""Parts of one sweep: their files are numbered with five digits."""


@dataclass(frozen=True)
class Axis:
    """One dimension of the index space: columns that change together.

    Attributes:
        columns: The values of each column, all of one length.
    """

    columns: Mapping[str, Sequence[Any]]

    @cached_property
    def count(self) -> int:
        """Points on the axis [1]."""
        return len(next(iter(self.columns.values())))

    def without(self, column: str) -> Axis | None:
        """The axis without a column that is solved for; None where no column is left."""
        rest = {name: values for name, values in self.columns.items() if name != column}
        if not rest:
            return None
        points = list(dict.fromkeys(zip(*rest.values(), strict=True)))
        return Axis(dict(zip(rest, zip(*points, strict=True), strict=True)))


def axes_of(config: SweepConfig, op: Operation) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
    """The axes of sizes: before the cases, and after them.

    Before them is the operation's first dimension, if it has an axis of its own; after them come
    shapes, then the other dimensions.
    """
    grid: Mapping[str, Sizes] = config.grid or {}
    roots: dict[str, str] = {}
    with Mistakes() as mistakes:
        with mistakes.at():
            _check_dims(config, op)
        with mistakes.at():
            shaped = _shape_columns(config.shapes or [], op)
        for dim in op.dims:
            with mistakes.at("grid"):
                roots[dim] = _root(dim, grid, op)
    shapes = config.shapes or []
    own = [dim for dim in op.dims if roots[dim] == dim and dim in grid]
    lengths = {dim: grid[dim] for dim in own}
    check_length(lengths, config.rows_per_part, max(len(shapes), 1))
    axes = {}
    for dim in own:
        values = grid[dim].values()
        axes[dim] = Axis({other: values for other in op.dims if roots[other] == dim})
    first = axes.pop(op.dims[0], None)
    before = (first,) if first else ()
    if shaped:
        tied = {dim: shaped[roots[dim]] for dim in op.dims if roots[dim] in shaped}
        names = {"shape": tuple(shape.name for shape in shapes)}
        return before, (Axis({**names, **tied}), *axes.values())
    return before, tuple(axes.values())


def _check_dims(config: SweepConfig, op: Operation) -> None:
    """Check that grid or shapes give sizes to each dimension of the operation once, to no other."""
    grid = config.grid or {}
    shaped = {dim for shape in config.shapes or [] for dim in shape.sizes}
    with Mistakes() as mistakes:
        for dim in grid:
            with mistakes.at(f"grid.{dim}"):
                if dim not in op.dims:
                    raise RooflinesError(
                        "",
                        f"is no dimension of {op.name}",
                        of_dims(op),
                        close=close_to(dim, op.dims),
                    )
                if dim in shaped:
                    raise RooflinesError(
                        "",
                        f"gives sizes to {dim}, which `shapes` gives too",
                        f"leave {dim} out of one of them",
                    )
    missing = [dim for dim in op.dims if dim not in grid and dim not in shaped]
    if missing and shaped <= {*op.dims}:
        fix = (
            f"add {', '.join(f'{dim}:' for dim in missing)} to the grid, or to every one of "
            "the shapes"
        )
        raise RooflinesError("grid", f"gives no sizes to {', '.join(missing)}", fix)


def of_dims(op: Operation) -> str:
    """The fix for a dimension that an operation does not have."""
    return f"use the dimensions of {op.name}: {', '.join(op.dims)}"


def check_length(grid: Mapping[str, Sizes], rows_per_part: int, shapes: int = 1) -> None:
    """Refuse a grid too large for a table, before its sizes are enumerated.

    Args:
        grid: The sizes of each dimension.
        rows_per_part: Rows of one part at most [1].
        shapes: Shapes that each point of the grid is combined with [1].

    Raises:
        RooflinesError: It is too large.
    """
    rows = math.prod(sizes.count for sizes in grid.values()) * shapes
    with Mistakes() as mistakes:
        for dim, sizes in grid.items():
            with mistakes.at(f"grid.{dim}"):
                if sizes.count > LONGEST_AXIS:
                    problem = (
                        f"has {sizes.count:,} sizes, which makes a table of at least {rows:,} rows"
                    )
                    raise RooflinesError(
                        "", problem, f"let one dimension take at most {LONGEST_AXIS:,} sizes"
                    )
    if rows > MOST_PARTS * rows_per_part:
        problem = (
            f"makes at least {rows:,} rows, in more than {MOST_PARTS:,} parts of {rows_per_part:,}"
        )
        raise RooflinesError("grid", problem, "choose fewer sizes, or raise `rows_per_part`")


def _root(dim: str, grid: Mapping[str, Sizes], op: Operation) -> str:
    """The dimension whose sizes a dimension finally repeats: itself, if it has sizes."""
    seen = [dim]
    while seen[-1] in grid and (same := grid[seen[-1]].same_as):
        with at_path(seen[-1]):
            one_of(same, op.dims, f"no dimension of {op.name}")
        if same in seen:
            names = circle(seen[seen.index(same) :], op.dims)
            raise RooflinesError(
                names[0],
                f"goes in a circle: {' = '.join(names)}",
                "give one of them sizes of its own",
            )
        seen.append(same)
    return seen[-1]


def _shape_columns(shapes: Sequence[NamedShape], op: Operation) -> dict[str, tuple[int, ...]]:
    """The sizes that named shapes give to dimensions, as columns."""
    if not shapes:
        return {}
    dims = [dim for dim in op.dims if dim in shapes[0].sizes]
    with at_path("shapes"), Mistakes() as mistakes:
        for index, shape in enumerate(shapes):
            with mistakes.at(f"[{index}]" if shape.place is None else shape.place):
                _check_shape(shape, dims, op)
        if not dims:
            raise RooflinesError("[0]", "gives no sizes", f"add some of {', '.join(op.dims)}")
    return {dim: tuple(whole(shape.sizes[dim]) for shape in shapes) for dim in dims}


def _check_shape(shape: NamedShape, dims: Sequence[str], op: Operation) -> None:
    """Refuse a shape with dimensions that the operation lacks, or other ones than the first."""
    with Mistakes() as mistakes:
        unknown = [key for key in shape.sizes if key not in op.dims]
        if unknown and shape.place is not None:
            problem = f"gives sizes to {' and '.join(unknown)}, no dimension of {op.name}"
            raise RooflinesError("models", problem, "use matmul, or another operation of D and F")
        for key in unknown:
            mistakes.add(
                RooflinesError(
                    str(key),
                    f"is no dimension of {op.name}",
                    of_dims(op),
                    close=close_to(key, op.dims),
                )
            )
        if not unknown and [dim for dim in op.dims if dim in shape.sizes] != dims:
            problem = f"does not give the same dimensions as shapes[0], {', '.join(dims)}"
            mistakes.add(RooflinesError("", problem, "let all shapes give the same dimensions"))
        for dim in op.dims:
            with mistakes.at(dim):
                if dim in shape.sizes:
                    whole(shape.sizes[dim])
