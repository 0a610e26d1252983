"""Kernel timings that AMD's aiter and LLMServingSim publish, in the tidy form.

Both name sizes in their way: aiter has m, n and k of tuned matmuls, LLMServingSim the
layers in a model, whose sizes follow from the model.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.models.architecture import Gqa
from rooflines.models.library import models_of

if TYPE_CHECKING:
    from pathlib import Path

    from rooflines.models.architecture import Shape

AITER_COLUMNS = frozenset(("cu_num", "M", "N", "K", "us"))
"""Columns in a table of tuned matmuls: compute units, sizes, and the kernel's time [us]."""

CHIPS_OF_AITER = {304: "mi300x", 256: "mi355x"}
"""Chips by their compute units: others of the same number need a column `chip`."""

DTYPES_OF_AITER = {
    "torch.bfloat16": "bf16",
    "torch.float16": "fp16",
    "torch.float8_e4m3fnuz": "fp8",
    "torch.float8_e4m3fn": "fp8",
    "torch.int8": "int8",
    "torch.float32": "fp32",
}

PER_US, PER_NS = 1e-6, 1e-9
"""Seconds per microsecond and per nanosecond [s]."""

BLOCK_KERNELS = "blockscale"
"""Word in the names of kernels in fp8 with block scales, whose tables have no dtype."""


def aiter_tuned(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Tuned aiter matmuls: the fastest kernel for each size, weights shuffled before.

    Source: ROCm/aiter, `aiter/configs/*_tuned_gemm.csv` and `model_configs/`.
    """
    named = next((name for name in ("q_dtype_w", "dtype") if name in frame.columns), None)
    is_block = pl.lit(value=False)
    if "kernelName" in frame.columns:
        is_block = pl.col("kernelName").cast(pl.String).str.contains(BLOCK_KERNELS)
        is_block = is_block.fill_null(value=False)
    block = pl.when(is_block).then(pl.lit("fp8"))
    compute: pl.Expr = block
    if named is not None:
        word = pl.col(named).cast(pl.String)
        compute = pl.coalesce(
            word.replace_strict(DTYPES_OF_AITER, default=None, return_dtype=pl.String), block
        )
    out = pl.lit(None, pl.String)
    if "outdtype" in frame.columns:
        word = pl.col("outdtype").cast(pl.String)
        out = word.replace_strict(DTYPES_OF_AITER, default=None, return_dtype=pl.String)
    units = pl.col("cu_num").cast(pl.Int64, strict=False)
    chip = pl.col("chip")
    if "chip" not in frame.columns:
        chip = units.replace_strict(CHIPS_OF_AITER, default=None, return_dtype=pl.String)
    frame = frame.with_columns(
        B="M",
        D="K",
        F="N",
        seconds=pl.col("us").cast(pl.Float64, strict=False) * PER_US,
        compute=compute,
        dtype_out=pl.coalesce(out, pl.lit("bf16")),
        contents=pl.when(is_block).then(pl.lit("matmul, block scales")),
        chip=chip,
    )
    is_tuned = pl.col("seconds").is_finite() & (pl.col("seconds") > 0)
    tuned = frame.filter(is_tuned.fill_null(value=False))
    typed = tuned.drop_nulls("compute")
    placed = typed.drop_nulls("chip")
    left_out = {
        "have no time: no kernel was tuned": frame.height - tuned.height,
        "do not tell their dtype": tuned.height - typed.height,
        "are of a chip that its compute units do not tell": typed.height - placed.height,
    }
    return placed.with_columns(
        dtype_x="compute",
        dtype_w="compute",
        software=pl.lit("aiter"),
        source=pl.lit("ROCm/aiter/tuned"),
    ), {reason: count for reason, count in left_out.items() if count}


LAYER_COLUMNS = frozenset(("layer_name", "input", "tp_size", "latency(ns)"))
"""Columns in a table of a model's layers: name, tokens, chips that share it, and time [ns]."""

HARDWARE = {"TPU-v6e-1": "tpu-v6e", "H100": "h100-sxm"}
"""Chips by LLMServingSim's names; those of other names need a column `chip`."""

PROFILE = re.compile(r"/([^/]+)/([^/]+/[^/]+)/tp\d+/(?:archive/)?[^/]+$")
"""Hardware and model in the path of such a table."""


def with_model_of_path(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Table with `hardware` and `model` from its path, if it has layers and lacks them."""
    match = PROFILE.search(path.absolute().as_posix())
    if not {*frame.columns} >= LAYER_COLUMNS or match is None:
        return frame
    named = zip(("hardware", "model"), match.groups(), strict=True)
    return frame.with_columns(
        pl.lit(value).alias(name) for name, value in named if name not in frame.columns
    )


def llmservingsim(frame: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, int]]:
    """Matmuls among the layers of LLMServingSim's profiles, in bf16.

    Source: casys-kaist/LLMServingSim, `perf_models/<hardware>/<model>/tp<chips>/layers.csv`.

    Raises:
        RooflinesError: The table does not tell its model.
    """
    if "model" not in frame.columns:
        fix = "keep its path, <hardware>/<model>/tp1/layers.csv, or add a column model"
        raise RooflinesError("", "has layers, and does not say of which model", fix)
    parts, matmuls = [], 0
    for (name,), part in frame.group_by("model", maintain_order=True):
        (model,) = models_of([str(name)]).values()
        for layer, (depth, columns, by_depth) in _layers(model.shape).items():
            rows = part.filter(pl.col("layer_name") == layer)
            matmuls += rows.height
            chips = pl.col("tp_size").cast(pl.Int64)
            depth_of, columns_of = pl.lit(depth, pl.Int64), pl.lit(columns, pl.Int64)
            parts.append(
                rows.with_columns(
                    B=pl.col("input").cast(pl.Int64),
                    D=depth_of // chips if by_depth else depth_of,
                    F=columns_of if by_depth else columns_of // chips,
                    seconds=pl.col("latency(ns)").cast(pl.Float64) * PER_NS,
                    note=pl.lit(layer),
                )
            )
    tidy = pl.concat(parts).with_columns(
        compute=pl.lit("bf16"),
        software=pl.lit("llmservingsim"),
        source=pl.lit("casys-kaist/llmservingsim/profile"),
    )
    if "hardware" in tidy.columns and "chip" not in tidy.columns:
        chip = (
            pl.col("hardware")
            .cast(pl.String)
            .replace_strict(HARDWARE, default=None, return_dtype=pl.String)
        )
        tidy = tidy.with_columns(chip=chip)
    left_out = {"are of layers that are no matmuls": frame.height - matmuls}
    if "chip" in tidy.columns:
        left_out["are of hardware that is no chip here"] = tidy["chip"].null_count()
        tidy = tidy.drop_nulls("chip")
    return tidy, {reason: count for reason, count in left_out.items() if count}


def _layers(shape: Shape) -> dict[str, tuple[int, int, bool]]:
    """Matmuls by layer: contracted size, columns, and whether chips share the first [1]."""
    attention = shape.attention
    layers = {}
    if isinstance(attention, Gqa):
        heads, kv = attention.N * attention.H, attention.K * attention.H
        layers["q_proj"] = (shape.D, heads, False)
        layers |= dict.fromkeys(("k_proj", "v_proj"), (shape.D, kv, False))
        layers["o_proj"] = (heads, shape.D, True)
    if shape.mlp is not None:
        width = shape.mlp.F
        layers |= dict.fromkeys(("gate_proj", "up_proj"), (shape.D, width, False))
        layers["down_proj"] = (width, shape.D, True)
    return {**layers, "lm_head": (shape.D, shape.V, False)}
