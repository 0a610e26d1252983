"""Public layouts of timings, known by their columns, as the tidy form."""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003, a named tuple reads it
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from rooflines.timings.served import SAME_RUN, inferencex
from rooflines.timings.timings import PARALLEL

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["tidy"]

PER_MS = 1e-3
"""Seconds of a millisecond [s]."""

Tidy = tuple[pl.DataFrame, dict[str, int]]
"""Timings in the tidy form, and the numbers of those left out by reason [1]."""


class Stored(NamedTuple):
    """The dtypes of a matmul."""

    dtype_x: str
    dtype_w: str
    dtype_out: str
    compute: str


AICONFIGURATOR_DTYPES: Mapping[str, Stored] = {
    "bfloat16": Stored("bf16", "bf16", "bf16", "bf16"),
    "float16": Stored("fp16", "fp16", "fp16", "fp16"),
    "fp8": Stored("fp8", "fp8", "bf16", "fp8"),
    "nvfp4": Stored("nvfp4", "nvfp4", "bf16", "nvfp4"),
    "int8_wo": Stored("bf16", "int8", "bf16", "bf16"),
}
"""The dtypes of aiconfigurator's `gemm_dtype`; of others the storage is not certain."""


def aiconfigurator(frame: pl.DataFrame) -> Tidy:
    """Timings of aiconfigurator's collector: a row for each m, n, k, in milliseconds.

    Source: ai-dynamo/aiconfigurator, `gemm_perf.parquet` of its systems.
    """
    known = pl.col("gemm_dtype").is_in(list(AICONFIGURATOR_DTYPES))
    left_out = {
        f"are in {name}, whose storage is not certain": count
        for name, count in frame.filter(~known)["gemm_dtype"].value_counts(sort=True).iter_rows()
    }
    frame = frame.filter(known)
    dtypes = {
        column: pl.col("gemm_dtype").replace_strict(
            {name: getattr(stored, column) for name, stored in AICONFIGURATOR_DTYPES.items()},
            return_dtype=pl.String,
        )
        for column in Stored._fields
    }
    frame = frame.with_columns(**dtypes, B="m", D="k", F="n", seconds=pl.col("latency") * PER_MS)
    if {"framework", "version"} <= set(frame.columns):
        software = pl.col("framework").str.to_lowercase()
        source = pl.format("aiconfigurator/{}/{}", software, "version")
        frame = frame.with_columns(software=software, source=source)
    return frame, left_out


class Projection(NamedTuple):
    """A matmul of a layer in vidur's table.

    Attributes:
        D: The contracted size on one chip [1].
        F: The output size on one chip [1].
    """

    D: pl.Expr
    F: pl.Expr


def _projections() -> dict[str, Projection]:
    """The matmuls of a layer by name; sizes are split over the chips of tensor parallelism."""
    chips, width = pl.col("num_tensor_parallel_workers"), pl.col("n_embd")
    hidden = pl.col("n_expanded_embd") // chips
    heads = pl.col("n_head") + 2 * pl.col("n_kv_head")
    up = pl.when(pl.col("use_gated_mlp")).then(2).otherwise(1) * hidden
    return {
        "attn_pre_proj": Projection(width, heads * (width // pl.col("n_head")) // chips),
        "attn_post_proj": Projection(width // chips, width),
        "mlp_up_proj": Projection(width, up),
        "mlp_down_proj": Projection(hidden, width),
    }


def vidur(frame: pl.DataFrame) -> Tidy:
    """Timings of vidur's profiler, in fp16: a row for each number of tokens, in milliseconds.

    A row has the four matmuls of a layer, by `median` and `min`.

    Source: microsoft/vidur, `data/profiling/compute/<chip>/<model>/mlp.csv`.
    """
    parts = []
    for name, projection in _projections().items():
        median = f"time_stats.{name}.median"
        if median in frame.columns:
            part = frame.select(
                "#",
                pl.lit("vidur").alias("source"),
                *(pl.lit("fp16").alias(column) for column in Stored._fields),
                B="num_tokens",
                D=projection.D,
                F=projection.F,
                seconds=pl.col(median) * PER_MS,
                seconds_min=pl.col(f"time_stats.{name}.min") * PER_MS,
                note=pl.lit(name),
            )
            parts.append(part.drop_nulls("seconds"))
    return pl.concat(parts), {}


class Layout(NamedTuple):
    """A public layout.

    Attributes:
        columns: The columns that tell it from others.
        tidy: Its timings in the tidy form.
    """

    columns: frozenset[str]
    tidy: Callable[[pl.DataFrame], Tidy]


LAYOUTS = (
    Layout(frozenset({*SAME_RUN, *PARALLEL, "concurrency", "batch"}), inferencex),
    Layout(frozenset({"gemm_dtype", "m", "n", "k", "latency"}), aiconfigurator),
    Layout(
        frozenset(
            {
                "time_stats.mlp_up_proj.median",
                "num_tokens",
                "num_tensor_parallel_workers",
                "n_embd",
                "n_expanded_embd",
                "n_head",
                "n_kv_head",
                "use_gated_mlp",
            }
        ),
        vidur,
    ),
)


def tidy(frame: pl.DataFrame) -> Tidy:
    """A table in a public layout in the tidy form; any other table as it is."""
    for layout in LAYOUTS:
        if layout.columns <= set(frame.columns):
            return layout.tidy(frame)
    return frame, {}
