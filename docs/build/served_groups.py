"""Groups of public measurements of serving, as the tables of docs/served.md have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Iterator

BATCHES = (4, 16, 64)
"""The largest batches of all groups but the last [1]."""


def groups(frame: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """All runs, and those of each model, chip, engine, format of weights, chips and batch.

    Args:
        frame: Runs with `weights`, `chips` and `B`.

    Yields:
        The name of a group, and its runs.
    """
    yield "all", frame
    for source in ("model", "chip", "engine", "weights", "chips", "B"):
        value = _batches() if source == "B" else pl.col(source)
        ordered = frame.sort(source).with_columns(group=value.cast(pl.String))
        parts = ordered.partition_by("group", maintain_order=True, as_dict=True)
        for (key,), part in parts.items():
            yield f"{source}: {key}", part


def _batches() -> pl.Expr:
    """The name of the group that a batch is in."""
    starts = [1, *(most + 1 for most in BATCHES)]
    name = pl.lit(f"{starts[-1]} and more")
    for start, most in zip(reversed(starts[:-1]), reversed(BATCHES), strict=True):
        name = pl.when(pl.col("B") <= most).then(pl.lit(f"{start} to {most}")).otherwise(name)
    return name
