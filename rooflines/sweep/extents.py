"""The extents of a row: sizes, or whole tiles of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.costs import TILED

if TYPE_CHECKING:
    from rooflines.sweep.sweep import Sweep


def size(dim: str) -> pl.Expr:
    """The size of a dimension [1]."""
    return pl.col(dim).cast(pl.Float64)


def tiles(dim: str) -> pl.Expr:
    """The whole tiles that a chip's share of a dimension needs [1]."""
    span = pl.col(f"#span_{dim}")
    return ((pl.col(dim) + (span - 1)) // span).cast(pl.Float64)


def variables(sweep: Sweep, name: str) -> dict[str, pl.Expr]:
    """The variables of a work by dimension: its tiles where it counts tiles, else its size [1]."""
    tiled = sweep.tile if name in TILED else ()
    return {dim: tiles(dim) if dim in tiled else size(dim) for dim in sweep.op.dims}
