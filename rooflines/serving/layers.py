"""The kernels of the rows of a sweep of models, as a lazy frame: works and times of one layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.serving.formulas import KERNEL_TIMES, KERNEL_UPPER, MEMORY
from rooflines.serving.kernels import WORKS
from rooflines.serving.rows import block_slices, enums, key_columns
from rooflines.serving.stages import CASE, ESTIMATED, Stages, named
from rooflines.serving.times import seconds_of
from rooflines.sweep.estimates import band_columns
from rooflines.sweep.metrics import with_estimates
from rooflines.sweep.ties import (
    CONTENDED,
    Ties,
    contended,
    likely_bound,
    with_exact_bounds,
    with_exact_bounds_by_batch,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from fractions import Fraction

    from rooflines.serving.case import Case
    from rooflines.serving.kernels import Kernel
    from rooflines.serving.support import Block
    from rooflines.serving.sweep import ModelSweep

KernelOf = tuple["Case", "Kernel", int]
"""A case, one of its kernels, and the position of the kernel."""


def kernels_of(block: Block) -> list[KernelOf]:
    """The kernels of all cases of a block, in order."""
    return [
        (case, kernel, index) for case in block.cases for index, kernel in enumerate(case.kernels)
    ]


def layers_frame(
    sweep: ModelSweep,
    block: Block,
    pieces: Sequence[tuple[int, int]],
    texts: Mapping[str, pl.DataType],
) -> pl.LazyFrame:
    """Kernels of a block, before ties in `bound` are resolved.

    Args:
        sweep: The sweep.
        block: The block.
        pieces: The rows wanted, of those of `kernels_of`, batches and contexts: half-open ranges.
        texts: The types of text columns that are not Categorical.
    """
    entries = kernels_of(block)
    kernels = [kernel for _, kernel, _ in entries]
    stages = Stages(sweep, block, [kernel.token_share for kernel in kernels])
    works = {
        work: stages.add(work, [named(kernel, kernel.works.get(work, {})) for kernel in kernels])
        for work in WORKS
    }
    works["network_bytes"] = stages.add("network_bytes", [k.sent_bytes for k in kernels])
    times = stages.kernel_times("kernel", kernels, [case.times[i] for case, _, i in entries])
    sums = {
        f"t_{name}_s": stages.total(f"t_{name}", [getattr(times, name)])
        for name in ("math", "memory", "activation", "network")
    }
    estimates = [case.estimates[index] for case, _, index in entries]
    bounds: dict[str, str] = {}
    if any(estimates):
        common, estimate_parts = stages.estimate_pieces("estimate", kernels, estimates)
        stages.constant(ESTIMATED, [None if each is None else 0.0 for each in estimates])
        sums["#common"] = stages.total("common", [common])
        for index, (bound, piece) in enumerate(estimate_parts):
            name = f"#piece_{index}"
            bounds[name] = bound
            sums[name] = stages.total(f"piece_{index}", [piece]) + pl.col(ESTIMATED)
    columns = {**entry_columns(entries), **band_columns(estimates)}
    cast = {name: values.cast(texts.get(name, values.dtype)) for name, values in columns.items()}
    frame = pl.concat(stages.frame(cast, low, high) for low, high in pieces)
    parts = {bound: formula.expr for bound, formula in KERNEL_TIMES.items()}
    return (
        with_estimates(frame.with_columns(**works, **sums), bounds)
        .with_columns(
            memory_bytes=MEMORY.expr,
            t_ops_s=pl.max_horizontal(parts.values()),
            t_upper_s=KERNEL_UPPER.expr,
        )
        .with_columns(
            bound=likely_bound(parts, pl.col("t_ops_s")),
            **{CONTENDED: contended(parts, pl.col("t_ops_s"))},
        )
    )


def entry_columns(entries: Sequence[KernelOf]) -> dict[str, pl.Series]:
    """The keys of kernels."""
    return {
        **key_columns([case for case, _, _ in entries]),
        "group": pl.Series([kernel.group.name for _, kernel, _ in entries], dtype=pl.Categorical),
        "count": pl.Series([kernel.group.count for _, kernel, _ in entries], dtype=pl.Int64),
    }


def ties_of(block: Block) -> Ties:
    """What resolves the bounds of a block's kernels."""
    entries = kernels_of(block)

    def times(index: int, batch: int, new: int, context: int) -> list[Fraction]:
        case, kernel, position = entries[index]
        extents = kernel.extents(case.step(batch, context, new))
        seconds = seconds_of(case.times[position], extents)
        return [seconds.math, seconds.memory + seconds.activation, seconds.network]

    return Ties((CASE, "B", "T", "S"), times)


def slices_of(
    sweep: ModelSweep, start: int, stop: int
) -> Iterator[tuple[Block, list[tuple[int, int]]]]:
    """The kernels of a slice of rows: of each block, ranges of its `kernels_of` times its sizes.

    The kernels of a case that is there as a whole follow one another.
    """
    for block, low, high in block_slices(sweep, start, stop):
        number = len(block.cases[0].kernels)
        rows = sweep.rows_of(block) // len(block.cases)
        pieces: list[tuple[int, int]] = []
        for case in range(low // rows, -(-high // rows)):
            first, last = max(low - case * rows, 0), min(high - case * rows, rows)
            offset = case * number * rows
            if (first, last) == (0, rows) and pieces and pieces[-1][1] == offset:
                pieces[-1] = pieces[-1][0], offset + number * rows
            elif (first, last) == (0, rows):
                pieces.append((offset, offset + number * rows))
            else:
                starts = (offset + kernel * rows for kernel in range(number))
                pieces += [(each + first, each + last) for each in starts]
        yield block, pieces


def kernel_rows(sweep: ModelSweep, start: int = 0, stop: int | None = None) -> pl.LazyFrame:
    """The kernels of rows `start` to `stop` of a sweep of models.

    Args:
        sweep: The sweep.
        start: The first row of the sweep [1].
        stop: The row after the last; the end by default [1].

    Returns:
        The columns of `layer_columns`, in their order: values of one layer. A value of the sweep's
        row is the sum over its kernels of `count` times that of the kernel.
    """
    names = [column.name for column in sweep.layer_columns]
    return pl.concat(
        with_exact_bounds(layers_frame(sweep, block, pieces, {}), ties_of(block)).select(names)
        for block, pieces in slices_of(sweep, start, sweep.rows if stop is None else stop)
    )


def whole_kernel_rows(sweep: ModelSweep, start: int, stop: int) -> pl.LazyFrame:
    """The kernels to write: fixed columns, no pushdown, faster; text is Enum.

    Args:
        sweep: The sweep.
        start: The first row of the sweep [1].
        stop: The row after the last [1].
    """
    names = [column.name for column in sweep.layer_columns]
    slices = list(slices_of(sweep, start, stop))
    texts = enums(entry_columns(kernels_of(block)) for block, _ in slices)
    frames = []
    for block, pieces in slices:
        ties = ties_of(block)
        frame = layers_frame(sweep, block, pieces, texts)
        frame = frame.select(*dict.fromkeys([*names, *ties.columns]))
        frames.append(with_exact_bounds_by_batch(frame, ties).select(names))
    return pl.concat(frames)
