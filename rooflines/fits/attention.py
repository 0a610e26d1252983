"""Timings of attention with their nominal times: the cache's bytes in decode, FLOPs in prefill.

A fit has form `max`, of a chip and a software: one of decode, where the compute dtype decides
little, and one of prefill for each compute dtype. It holds for grouped-query attention to all
tokens; latent attention has other kernels.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.errors import at_path, one_of
from rooflines.catalogue.dtypes import dtype_entries, stored_bits
from rooflines.catalogue.entries import MAIN_MEMORY
from rooflines.fits.folds import with_folds
from rooflines.fits.form import Numbers
from rooflines.fits.matmuls import with_bounds
from rooflines.fits.timings import ATTENTION_SIZES, medians
from rooflines.model.costs import BITS_PER_BYTE
from rooflines.model.operation import MATRIX
from rooflines.models.shape import DECODE

if TYPE_CHECKING:
    from rooflines.catalogue.entries import Chip
    from rooflines.fits.timings import Timings

PRIOR = Numbers(math=Fraction("0.4"), memory=Fraction("0.7"), overhead_s=Fraction("1.1e-5"))
"""Where a fit starts: typical numbers of data-center GPUs."""

OUTPUT_BITS = 16
"""Bits of an element of queries and outputs, which kernels of attention keep in half precision."""


def fit_names() -> pl.Expr:
    """The name of the fit of each timing, as of `entries.attention_name`."""
    phase = pl.col("phase")
    return pl.when(phase == DECODE).then(phase).otherwise(pl.format("{}-{}", phase, "compute"))


def with_attention_times(
    timings: Timings, chip: str, entry: Chip, name: str
) -> tuple[pl.DataFrame, Timings]:
    """Timings of attention with what a fit reads of them.

    Args:
        timings: Of one chip and software.
        chip: The chip's id.
        entry: Its entry, with a main memory.
        name: The name of the fit.

    Returns:
        The columns of `matmuls.with_nominal_times`; a site is a number of query and of key-value
        heads, (N, K). And the timings, with notes.

    Raises:
        RooflinesError: The chip has no peak in a compute dtype, a dtype is unknown, the unit of
            time is off, or there are too few timings.
    """
    chosen = medians(timings.where("attention", name), (*ATTENTION_SIZES, "compute", "cache"))
    chosen.enough()
    peaks, formats = entry.units.get(MATRIX, {}), dtype_entries().formats
    for column, known in (("compute", peaks), ("cache", formats)):
        with at_path(column):
            for dtype in chosen.frame[column].unique().sort():
                one_of(dtype, known, f"no dtype that {chip} has a peak for")
    level = entry.memory[MAIN_MEMORY].exact
    per_s = {dtype: float(peak.exact) for dtype, peak in peaks.items()}
    byte = {name: float(stored_bits(each) / BITS_PER_BYTE) for name, each in formats.items()}
    B, S, T, N, K, H = (pl.col(size).cast(pl.Float64) for size in ATTENTION_SIZES)  # noqa: N806
    pairs = T * S - T * (T - 1) / 2
    cached = 2 * K * H * S * pl.col("cache").replace_strict(byte, return_dtype=pl.Float64)
    moved = B * (cached + 2 * N * H * T * (OUTPUT_BITS / BITS_PER_BYTE))
    peak = pl.col("compute").replace_strict(per_s, return_dtype=pl.Float64)
    frame = chosen.frame.with_columns(
        math=4 * N * H * B * pairs / peak,
        memory=moved / float(level.bytes_per_s),
        bytes=moved,
        **dict.fromkeys(("x", "out", "depth"), pl.lit(0.0)),
    )
    return with_bounds(with_folds(frame), chosen, entry)
