"""Output from hipblaslt-bench: a line for each matmul, below a line with names.

Matrices are column-major: in a linear layer a is the weights, b the activations, n its rows.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.errors import RooflinesError

if TYPE_CHECKING:
    from collections.abc import Iterator

PER_US = 1e-6
"""Seconds per microsecond [s]."""

LAST = "us"
"""Name of the time column [us]."""

FORMATS = {
    "f64_r": "fp64",
    "f32_r": "fp32",
    "f16_r": "fp16",
    "bf16_r": "bf16",
    "i8_r": "int8",
    **dict.fromkeys(("f8_r", "bf8_r", "f8_fnuz_r", "bf8_fnuz_r"), "fp8"),
}
"""Dtypes by hipblaslt-bench's names; others are left out."""

REDUCED = {"xf32_r": "tf32", "c_xf32_r": "tf32", "f32_f16_r": "fp16", "f32_bf16_r": "bf16"}
"""Compute dtypes by compute type, where it is not the dtype of a; the sum is always wider."""

Left = dict[str, int]


def read_hipblaslt(text: str) -> tuple[pl.DataFrame, Left]:
    """Timings from one or several runs, and counts by reason for those left out [1].

    Where a matmul has several solutions, the fastest counts.

    Raises:
        RooflinesError: It has no timings.
    """
    rows, left_out = [], Left()
    for cells in _lines(text):
        try:
            sizes = {"B": int(cells["n"]), "D": int(cells["k"]), "F": int(cells["m"])}
            seconds = float(cells[LAST]) * PER_US
            batch = int(cells.get("batch_count", "1"))
        except (KeyError, ValueError):
            continue
        x, w, out = (FORMATS.get(cells.get(f"{matrix}_type", "")) for matrix in "bad")
        if cells.get("grouped_gemm", "0") != "0" or None in (x, w, out):
            grouped = cells.get("grouped_gemm", "0") != "0"
            why = "are grouped" if grouped else "have a dtype that is not modelled"
            left_out[why] = left_out.get(why, 0) + 1
            continue
        compute = REDUCED.get(cells.get("compute_type", ""), x)
        dtypes = {"dtype_x": x, "dtype_w": w, "dtype_out": out, "compute": compute}
        rows.append({**dtypes, **sizes, "batch": batch, "seconds": seconds})
    if not rows:
        raise RooflinesError("", "is output of hipblaslt-bench without timings", "run it again")
    frame = pl.DataFrame(rows)
    keys = [name for name in frame.columns if name != "seconds"]
    best = frame.group_by(keys, maintain_order=True).agg(pl.col("seconds").min())
    if slower := frame.height - best.height:
        left_out["are slower solutions of the same matmul"] = slower
    return best.with_columns(source=pl.lit("hipblaslt-bench")), left_out


def _lines(text: str) -> Iterator[dict[str, str]]:
    """Matmul lines as cells by column."""
    names: list[str] = []
    for line in text.splitlines():
        cells = next(csv.reader([line.strip()]), [])
        if "hipblaslt-Gflops" in line:
            names = [cell.strip() for cell in cells]
            names[0] = names[0].rpartition(":")[2]
        elif names and len(cells) == len(names):
            yield dict(zip(names, (cell.strip() for cell in cells), strict=True))
