"""The rows of a sweep as a lazy frame: keys, sizes, works, times, bounds and intensities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import polars as pl

from rooflines.model.columns import TEXTS
from rooflines.sweep.blocked import FactoredSums, block_start, blocked_product
from rooflines.sweep.estimates import estimate_columns
from rooflines.sweep.extents import variables
from rooflines.sweep.fits import fit_of
from rooflines.sweep.metrics import same_terms, unscaled, with_estimates, with_metrics
from rooflines.sweep.space import (
    VARIANT,
    axis_columns,
    keys_of,
    split_by_chip,
    variant_columns,
    variants_of,
)
from rooflines.sweep.ties import ties_of, with_exact_bounds, with_exact_bounds_by_batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooflines.sweep.space import AxisColumns
    from rooflines.sweep.support import ChipRows
    from rooflines.sweep.sweep import Sweep

TextTypes = Mapping[str, "pl.DataType"]
"""Types of text columns that are not Categorical."""


GROUP_ROWS = 2**16
"""Most rows of several chips that are computed at once [1]."""


def chip_groups(sweep: Sweep) -> list[list[ChipRows]]:
    """The chips whose rows are computed at once, since a frame for each takes long.

    Neighbours with the same works and without calibration, of at most `GROUP_ROWS` rows.
    """
    found: list[list[ChipRows]] = []
    before: object = None
    for chip_rows in sweep.by_chip:
        own, alike = variants_of([chip_rows]), None
        if not any(fit_of(sweep, each) for each in own):
            alike = chip_rows.variants, [id(sweep.case(*each)) for each in own]
        room = GROUP_ROWS // max(sweep.rows_of(chip_rows), 1)
        if alike is not None and alike == before and len(found[-1]) < room:
            found[-1].append(chip_rows)
        else:
            found.append([chip_rows])
        before = alike
    return found


def slices(sweep: Sweep, start: int, stop: int) -> Iterator[tuple[Sequence[ChipRows], int, int]]:
    """The pieces of a slice of rows, one per group of chips: (start, stop) of its rows."""
    offset = 0
    for group in chip_groups(sweep):
        rows = sum(map(sweep.rows_of, group))
        low, high = max(start - offset, 0), min(stop - offset, rows)
        if low < high:
            yield group, low, high
        offset += rows


def chip_frame(
    sweep: Sweep, group: Sequence[ChipRows], start: int, stop: int, texts: TextTypes
) -> pl.LazyFrame:
    """Rows `start` to `stop` of a group of chips, before ties in `bound` are resolved.

    Args:
        sweep: The sweep.
        group: The chips, of `chip_groups`.
        start: The first of their rows [1].
        stop: The row after the last [1].
        texts: The types of text columns that are not Categorical.
    """
    variants = variants_of(group)
    coefficients, constants = variant_columns(sweep, variants)
    estimate = estimate_columns(sweep, variants)
    constants |= estimate.columns if estimate else {}
    constants = in_types(constants, texts)
    by_chip, of_variants, gathered = (
        split_by_chip(constants, coefficients, len(group))
        if len(group) > 1
        else ({}, constants, {})
    )
    axes = [
        *(in_types(axis_columns(axis), texts) for axis in sweep.leading),
        of_variants,
        *(in_types(axis_columns(axis), texts) for axis in sweep.inner),
    ]
    one_span = all(constants[f"#span_{dim}"].n_unique() == 1 for dim in sweep.tile)
    split = block_start(axes) if one_span else 0
    if by_chip:  # the slowest axis: rows are rounded as those of a chip by itself
        axes, split = [by_chip, *axes], split + 1
    sums = FactoredSums({name for axis in axes[:split] for name in axis}, VARIANT)
    works: dict[str, pl.Expr] = {}
    for name, terms in coefficients.items():
        same = same_terms(sweep, name, works, coefficients, constants)
        total = sums.add(name, terms, variables(sweep, name))
        works[name] = works[same] if same else unscaled(name, total, constants)
    pieces = estimate.expressions(sweep, sums) if estimate else {}
    frame = blocked_product(axes, split, start, stop, sums).with_columns(
        **works, **pieces, **gathered
    )
    if not any("shape" in axis for axis in axes):
        frame = frame.with_columns(shape=pl.lit(None, dtype=texts.get("shape", pl.Categorical)))
    frame = with_estimates(frame, estimate.bounds if estimate else {})
    return with_metrics(frame, sweep, coefficients, constants)


def in_types(columns: AxisColumns, texts: TextTypes) -> dict[str, pl.Series]:
    """Columns with the types of text columns that are not Categorical."""
    return {name: values.cast(texts.get(name, values.dtype)) for name, values in columns.items()}


def enums(sweep: Sweep, by_chip: Sequence[ChipRows]) -> TextTypes:
    """The Enum of every text column: the values that occur in these rows."""
    keys = keys_of(sweep, variants_of(by_chip))
    axes = (axis_columns(axis) for axis in (*sweep.leading, *sweep.inner))
    values = {
        name: column.cast(pl.String)
        for columns in (keys, *axes)
        for name, column in columns.items()
        if name in TEXTS
    }
    return {
        name: pl.Enum(values[name].drop_nulls().unique().sort() if name in values else [])
        for name in TEXTS
    }


def sweep_rows(sweep: Sweep, start: int = 0, stop: int | None = None) -> pl.LazyFrame:
    """Rows `start` to `stop` of a sweep; concatenated in order, slices equal the whole table.

    Args:
        sweep: The sweep.
        start: The first row [1].
        stop: The row after the last; the end by default [1].

    Returns:
        The columns of `columns.table_columns`, in their order. Times, intensities and works are
        Float64, exact to a few roundings; `bound` is exact.
    """
    names = [column.name for column in sweep.columns]
    return pl.concat(
        with_exact_bounds(
            chip_frame(sweep, group, low, high, {}), ties_of(sweep, variants_of(group))
        ).select(names)
        for group, low, high in slices(sweep, start, sweep.rows if stop is None else stop)
    )


def whole_rows(sweep: Sweep, columns: Sequence[str], start: int, stop: int) -> pl.LazyFrame:
    """The rows to write: fixed columns, no pushdown, faster.

    Args:
        sweep: The sweep.
        columns: The columns, in order.
        start: The first row [1].
        stop: The row after the last [1].

    Returns:
        The columns; text is Enum, which costs a fifth of Categorical to write.
    """
    pieces = list(slices(sweep, start, stop))
    texts = enums(sweep, [chip_rows for group, *_ in pieces for chip_rows in group])
    frames = []
    for group, low, high in pieces:
        frame = chip_frame(sweep, group, low, high, texts)
        if "bound" in columns:
            ties = ties_of(sweep, variants_of(group))
            frame = frame.select(*dict.fromkeys([*columns, *ties.columns]))
            frame = with_exact_bounds_by_batch(frame, ties)
        frames.append(frame.select(columns))
    return pl.concat(frames)
