"""Profiled kernels on a chip's roofline: their share of it, and their bound."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.errors import RooflinesError, at_path, check_choice
from rooflines.dictionary.columns import KERNELS
from rooflines.hardware.entries import MAIN_MEMORY
from rooflines.hardware.support import missing_level_reason, missing_peak_reason
from rooflines.theory.operation import MATRIX
from rooflines.theory.resources import MATH, MEMORY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rooflines.fits.nsight import Launch
    from rooflines.hardware.entries import Chip
    from rooflines.theory.operation import Unit

KINDS = {"": pl.String, "1": pl.Float64}
TYPES = {column.name: KINDS.get(column.unit, pl.Float64) for column in KERNELS}
TYPES["launches"] = pl.Int64


def kernel_frame(launches: Iterable[Launch], chip: Chip, dtype: str | None = None) -> pl.DataFrame:
    """Kernels in launches, by total time from the longest.

    Args:
        launches: From `read_launches`.
        chip: The chip that ran them.
        dtype: The dtype that tensor cores compute in; by default their counters' dtype.

    Returns:
        A row for each kernel with the columns in `KERNELS`, sums over its launches.

    Raises:
        RooflinesError: The chip lacks the dtype, or its main memory's bandwidth.
    """
    with at_path("chip"):
        if reason := missing_level_reason(chip, MAIN_MEMORY):
            raise RooflinesError("", f"has {reason}", "use a chip whose bandwidth is published")
    if dtype is not None:
        with at_path("dtype"):
            check_choice(dtype, chip.units.get(MATRIX, {}), f"no dtype of its {MATRIX} unit")
    sums: dict[str, Launch] = {}
    for launch in launches:
        before = sums.get(launch.kernel)
        sums[launch.kernel] = launch if before is None else before + launch
    rows = [_row(kernel, chip, dtype) for kernel in sums.values()]
    return pl.DataFrame(rows, schema=TYPES, orient="row").sort(
        "seconds", descending=True, maintain_order=True
    )


def _row(sums: Launch, chip: Chip, dtype: str | None) -> dict[str, object]:
    """Sums over launches, and the lower bound on their time."""
    kernel, flops, memory_bytes, seconds = sums.kernel, sums.flops, sums.memory_bytes, sums.seconds
    total = sum(flops.values(), Fraction(0))
    is_counted = bool(flops)
    unit, computed = max(flops, key=lambda key: flops[key]) if total else (None, None)
    if unit == MATRIX:
        computed = dtype or computed
    times = {
        MATH: total / _peak(chip, kernel, unit, computed) if unit and computed else Fraction(0),
        MEMORY: memory_bytes / chip.memory[MAIN_MEMORY].exact.bytes_per_s,
    }
    bound = max(times, key=lambda resource: times[resource])
    return {
        "kernel": kernel,
        "launches": sums.count,
        "flops": float(total) if is_counted else None,
        "memory_bytes": float(memory_bytes),
        "seconds": float(seconds),
        "memory_intensity": float(total / memory_bytes) if memory_bytes and is_counted else None,
        "flops_per_s": float(total / seconds) if is_counted else None,
        "unit": unit,
        "compute": computed,
        "bound": bound.bound if is_counted else None,
        "t_lower_s": float(times[bound]),
        "roof_share": float(times[bound] / seconds),
    }


def _peak(chip: Chip, kernel: str, unit: Unit, dtype: str) -> Fraction:
    """Peak that a kernel is compared with [FLOP/s]."""
    if reason := missing_peak_reason(chip, unit, dtype):
        dtypes = ", ".join(chip.units.get(unit, {}))
        fix = f"name the dtype of its peak with --dtype: one of {dtypes}"
        raise RooflinesError(kernel, f"computes in {dtype}, and the chip has {reason}", fix)
    return chip.units[unit][dtype].exact
