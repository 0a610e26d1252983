"""Public layouts for timings, recognized by their columns, in the tidy form."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping  # noqa: TC003, a named tuple reads it
from typing import NamedTuple

import polars as pl

from rooflines.basics.errors import Mistakes, RooflinesError
from rooflines.fits.kernel_profiles import AITER_COLUMNS, LAYER_COLUMNS, aiter_tuned, llmservingsim
from rooflines.fits.timings import ATTENTION_SIZES, DTYPES, EXPERTS_SIZES, PARALLEL
from rooflines.models.architecture import DECODE, PREFILL

PER_MS = 1e-3
"""Seconds per millisecond [s]."""

Tidy = tuple[pl.DataFrame, dict[str, int]]
"""Timings in the tidy form, and counts by reason for those left out [1]."""


AICONFIGURATOR_DTYPES: Mapping[str, tuple[str, str, str, str]] = {
    "bfloat16": ("bf16", "bf16", "bf16", "bf16"),
    "float16": ("fp16", "fp16", "fp16", "fp16"),
    "fp8": ("fp8", "fp8", "bf16", "fp8"),
    "nvfp4": ("nvfp4", "nvfp4", "bf16", "nvfp4"),
    "int8_wo": ("bf16", "int8", "bf16", "bf16"),
}
"""`DTYPES` by aiconfigurator's `gemm_dtype`; for others the storage is not certain."""


def aiconfigurator(frame: pl.DataFrame) -> Tidy:
    """Matmul timings from aiconfigurator's collector: one row per m, n, k [ms].

    Source: ai-dynamo/aiconfigurator, `gemm_perf.parquet` in its systems.
    """
    modelled = pl.col("gemm_dtype").is_in(list(AICONFIGURATOR_DTYPES))
    left_out = {
        f"are in {name}, whose storage is not certain": count
        for name, count in frame.filter(~modelled)["gemm_dtype"].value_counts(sort=True).iter_rows()
    }
    frame = frame.filter(modelled)
    columns = zip(*AICONFIGURATOR_DTYPES.values(), strict=True)
    dtypes = {
        column: pl.col("gemm_dtype").replace_strict(
            dict(zip(AICONFIGURATOR_DTYPES, stored, strict=True)), return_dtype=pl.String
        )
        for column, stored in zip(DTYPES, columns, strict=True)
    }
    frame = frame.with_columns(**dtypes, B="m", D="k", F="n", seconds=pl.col("latency") * PER_MS)
    return _with_source(frame), left_out


COLLECTIVES = {
    "all_gather": "all-gather",
    "all_reduce": "all-reduce",
    "reduce_scatter": "reduce-scatter",
    "alltoall": "all-to-all",
}
"""Collectives by nccl-tests program."""

ELEMENT = {"half": 2, "int8": 1}
"""Bytes per payload element [byte]."""


def aiconfigurator_nccl(frame: pl.DataFrame) -> Tidy:
    """Collective timings from aiconfigurator's nccl-tests collector: payloads in elements [ms].

    Source: ai-dynamo/aiconfigurator, `nccl_perf.txt` in its systems, and its collector.
    """
    modelled = pl.col("op_name").is_in([*COLLECTIVES]) & pl.col("nccl_dtype").is_in([*ELEMENT])
    supported = frame.filter(modelled)
    size = pl.col("nccl_dtype").replace_strict(ELEMENT, default=None, return_dtype=pl.Int64)
    tidy_frame = supported.with_columns(
        collective=pl.col("op_name").replace(COLLECTIVES),
        shards="num_gpus",
        bytes=pl.col("message_size").cast(pl.Int64, strict=False) * size,
        seconds=pl.col("latency") * PER_MS,
        software=pl.lit("nccl"),
    )
    excluded = frame.height - supported.height
    return tidy_frame, {"are of another collective or dtype": excluded} if excluded else {}


def attention(frame: pl.DataFrame) -> Tidy:
    """Attention timings from aiconfigurator's collector, selected and in SI units.

    Source: ai-dynamo/aiconfigurator, `context_attention_perf.parquet` and
    `generation_attention_perf.parquet` in its systems, columns renamed.
    """
    dtypes = {name: stored[-1] for name, stored in AICONFIGURATOR_DTYPES.items()}
    all_tokens = pl.col("window") == 0
    left_out = {"have a window": frame.filter(~all_tokens).height}
    frame = frame.filter(all_tokens).with_columns(
        compute=pl.col("attention").replace(dtypes), cache=pl.col("cache").replace(dtypes)
    )
    return frame.drop("attention"), {reason: n for reason, n in left_out.items() if n}


ATTENTION_OPS = {"context_attention": PREFILL, "generation_attention": DECODE}
"""Phases by aiconfigurator's operation."""


def aiconfigurator_attention(frame: pl.DataFrame) -> Tidy:
    """Attention timings from aiconfigurator's collector: one row per shape [ms].

    In decode a new token's context is `isl` + `step`.

    Source: ai-dynamo/aiconfigurator, `context_attention_perf` and `generation_attention_perf`.
    """
    supported = frame.filter(pl.col("op_name").is_in([*ATTENTION_OPS]))
    phase, prompt = (
        pl.col("op_name").replace(ATTENTION_OPS),
        pl.col("isl").cast(pl.Int64, strict=False),
    )
    step = pl.col("step").cast(pl.Int64, strict=False) if "step" in frame.columns else pl.lit(0)
    window = pl.col("window_size") if "window_size" in frame.columns else pl.lit(0)
    renamed = supported.with_columns(
        phase=phase,
        B="batch_size",
        S=pl.when(phase == DECODE).then(prompt + step).otherwise(prompt),
        T=pl.when(phase == DECODE).then(pl.lit(1, pl.Int64)).otherwise(prompt),
        N="num_heads",
        K="num_key_value_heads",
        H="head_dim",
        window=window,
        attention="attn_dtype",
        cache="kv_cache_dtype",
        seconds=pl.col("latency") * PER_MS,
    )
    tidy_frame, left_out = attention(_with_source(renamed))
    excluded = frame.height - supported.height
    return tidy_frame, {**left_out, **({"are of another operation": excluded} if excluded else {})}


EXPERTS_DTYPES: Mapping[str, tuple[str, str]] = {
    "bfloat16": ("bf16", "bf16"),
    "float16": ("fp16", "fp16"),
    "fp8": ("fp8", "fp8"),
    "fp8_block": ("fp8", "fp8"),
    "nvfp4": ("nvfp4", "nvfp4"),
    "int4_wo": ("int4-g128", "bf16"),
    "w4a16_mxfp4": ("mxfp4", "bf16"),
    "w4a8_mxfp4_mxfp8": ("mxfp4", "fp8"),
}
"""Storage and compute dtypes for experts by aiconfigurator's `moe_dtype`."""

BLOCKED = "fp8_block"
"""Its format with a scale for each block."""

GATED, PLAIN, NONGATED = 3, 2, "nongated"
"""Matrices in an expert with and without a gate, and the word for the second in a kernel's name."""


def experts(frame: pl.DataFrame) -> Tidy:
    """Fused experts from aiconfigurator's collector, selected and in SI units.

    Experts are without a gate wherever a kernel for their shape says so.

    Source: ai-dynamo/aiconfigurator, `moe_perf.parquet` in its systems, columns renamed.
    """
    modelled = pl.col("dtype").is_in([*EXPERTS_DTYPES])
    left_out = {
        f"are in {name}, which is not modelled": count
        for name, count in frame.filter(~modelled)["dtype"].value_counts(sort=True).iter_rows()
    }
    stored, compute = (
        {name: dtypes[place] for name, dtypes in EXPERTS_DTYPES.items()} for place in (0, 1)
    )
    shape = pl.struct("D", "Fe", "k", "E")
    plain = frame.filter(pl.col("kernel").str.contains(NONGATED)).select(shape.alias("shape"))
    return frame.filter(modelled).with_columns(
        experts=pl.col("dtype").replace_strict(stored, return_dtype=pl.String),
        compute=pl.col("dtype").replace_strict(compute, return_dtype=pl.String),
        matrices=pl.when(shape.is_in(plain["shape"].unique().to_list()))
        .then(pl.lit(PLAIN, pl.Int64))
        .otherwise(GATED),
        contents=pl.when(pl.col("dtype") == BLOCKED).then(pl.lit("block scales")),
    ), left_out


def aiconfigurator_experts(frame: pl.DataFrame) -> Tidy:
    """Fused experts from aiconfigurator's collector: one row per shape [ms].

    Source: ai-dynamo/aiconfigurator, `moe_perf` in its systems.
    """
    kernel = "kernel_source" if "kernel_source" in frame.columns else pl.lit(None, pl.String)
    return experts(
        _with_source(frame).with_columns(
            dtype="moe_dtype",
            kernel=kernel,
            tokens="num_tokens",
            D="hidden_size",
            Fe="inter_size",
            k="topk",
            E="num_experts",
            tp="moe_tp_size",
            ep="moe_ep_size",
            seconds=pl.col("latency") * PER_MS,
        )
    )


def _with_source(frame: pl.DataFrame) -> pl.DataFrame:
    """Add software and source to aiconfigurator's rows, if its table names them."""
    if not {"framework", "version"} <= set(frame.columns):
        return frame
    software = pl.col("framework").cast(pl.String).str.to_lowercase()
    source = pl.format("aiconfigurator/{}/{}", software, "version")
    return frame.with_columns(software=software, source=source)


class Projection(NamedTuple):
    """Matmul in a layer, as vidur's table has it.

    Attributes:
        D: The contracted size on one chip [1].
        F: The output size on one chip [1].
    """

    D: pl.Expr
    F: pl.Expr


def _projections() -> dict[str, Projection]:
    """Matmuls in a layer by name; tensor parallelism splits sizes over chips."""
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
    """Timings from vidur's profiler, in fp16: one row per number of tokens [ms].

    A row has a layer's four matmuls, by `median` and, if it is there, `min`.

    Source: microsoft/vidur, `data/profiling/compute/<chip>/<model>/mlp.csv`.
    """
    parts = []
    for name, projection in _projections().items():
        median, minimum = (f"time_stats.{name}.{kind}" for kind in ("median", "min"))
        if median in frame.columns:
            fastest = pl.col(minimum) if minimum in frame.columns else pl.lit(None, pl.Float64)
            part = frame.select(
                "#",
                pl.lit("vidur").alias("source"),
                *(pl.lit("fp16").alias(column) for column in DTYPES),
                B="num_tokens",
                D=projection.D,
                F=projection.F,
                seconds=pl.col(median) * PER_MS,
                seconds_min=fastest * PER_MS,
                note=pl.lit(name),
            )
            parts.append(part.drop_nulls("seconds"))
    return pl.concat(parts), {}


RECORDED_CHIPS = 8
"""Most chips in an InferenceX run whose split is recorded [1]."""

SAME_RUN = ("model", "chip", "engine", "input_tokens", "output_tokens", "ttft_s", "tpot_s")
"""Rows that agree in these, times to the last digit, are one measurement."""


def chips_of_run() -> pl.Expr:
    """Chips in a run: max(tp * attention_dp, moe_tp * moe_ep) [1]."""
    tp, replicas, by_width, by_expert = (pl.max_horizontal(name, 1) for name in PARALLEL)
    return pl.max_horizontal(tp * replicas, by_width * by_expert)


def with_requests(frame: pl.DataFrame) -> pl.DataFrame:
    """Add `software` to InferenceX runs, and concurrent requests where missing.

    Missing requests are the batch over all replicas.
    """
    batch = pl.col("batch") if "batch" in frame.columns else pl.lit(None, pl.Int64)
    all_replicas = batch * pl.max_horizontal("attention_dp", 1)
    return frame.with_columns(
        software="engine", concurrency=pl.col("concurrency").fill_null(all_replicas)
    )


def inferencex(frame: pl.DataFrame) -> Tidy:
    """InferenceX runs as aiconfigurator collects them, with times in seconds.

    Source: ai-dynamo/aiconfigurator, `systems/silicon_sample.csv`, columns renamed.
    """
    recorded = frame.filter(chips_of_run() <= RECORDED_CHIPS)
    runs = recorded.sort(chips_of_run(), maintain_order=True).unique(
        SAME_RUN, keep="first", maintain_order=True
    )
    left_out = {
        f"are of more than {RECORDED_CHIPS} chips, whose split is not fully recorded": (
            frame.height - recorded.height
        ),
        "are the same measurement as another row": recorded.height - runs.height,
    }
    runs = with_requests(runs)
    if "id" in runs.columns:
        runs = runs.with_columns(disaggregated=pl.col("id").str.contains("disagg").cast(pl.Int64))
    return runs, {reason: count for reason, count in left_out.items() if count}


DECODE_PARALLEL = tuple(f"decode_{name}" for name in PARALLEL)
"""Parallelism in a decode server, in tables with two pools."""


def two_pools(frame: pl.DataFrame) -> Tidy:
    """Runs with servers for prefill and for decode, times in seconds.

    Source: ai-dynamo/aiconfigurator, `systems/silicon_sample.csv`, columns renamed.
    """
    decode = dict(zip(PARALLEL, DECODE_PARALLEL, strict=True))
    return frame.with_columns(
        **decode,
        software="engine",
        servers="decode_servers",
        disaggregated=pl.lit(1, pl.Int64),
    ), {}


class PublicLayout(NamedTuple):
    """Public layout: its columns, and its conversion to the tidy form.

    Attributes:
        columns: The columns that tell it from others.
        texts: Columns with text or truth values; the others have numbers.
        tidy: Conversion to the tidy form.
    """

    columns: frozenset[str]
    texts: Mapping[str, pl.DataType]
    tidy: Callable[[pl.DataFrame], Tidy]


DTYPES_OF_TORCH = {
    "bfloat16": "bf16",
    "bf16": "bf16",
    "half": "fp16",
    "fp16": "fp16",
    "float16": "fp16",
    "float": "fp32",
    "fp32": "fp32",
    "float32": "fp32",
    "double": "fp64",
    "fp64": "fp64",
    "float8_e4m3fn": "fp8",
    "float8_e4m3fnuz": "fp8",
    "float8_e5m2": "fp8",
    "fp8": "fp8",
}
"""Dtypes by their names in libraries, in lower case."""

PREFIX = r"^(c10::|torch\.)"
"""Prefixes that such names may have."""


def _sized(names: tuple[str, str, str], time: str, scale: float) -> PublicLayout:
    """Layout for matmuls m x k times k x n with a time in one unit, and nothing else."""
    m, n, k = names

    def tidy_sized(frame: pl.DataFrame) -> Tidy:
        if "dtype" in frame.columns and "compute" not in frame.columns:
            word = pl.col("dtype").cast(pl.String).str.to_lowercase().str.replace(PREFIX, "")
            frame = frame.with_columns(compute=word.replace(DTYPES_OF_TORCH))
        return frame.with_columns(B=m, F=n, D=k, seconds=pl.col(time).cast(pl.Float64) * scale), {}

    return PublicLayout(frozenset({*names, time}), {}, tidy_sized)


UNITS = {"us": 1e-6, "ms": PER_MS, "ns": 1e-9}
"""Seconds per time unit, by its name in column names [s]."""

SIZED = tuple(
    _sized(names, time, scale)
    for names in (("m", "n", "k"), ("M", "N", "K"))
    for unit, scale in UNITS.items()
    for time in (unit, f"time_{unit}", f"latency_{unit}", f"duration_{unit}", f"avg_{unit}")
)
"""Tables with m, n, k and a time."""

TRACELENS = tuple(f"param: {size}" for size in "MNK")
TRACELENS_TIMES = ("Kernel Time (µs)_mean", "Kernel Time (µs)_median", "Kernel Time (µs)")
TRACELENS_BATCH = "param: B"
TRACELENS_SUM = "Kernel Time (µs)_sum"


def tracelens(frame: pl.DataFrame) -> Tidy:
    """Matmuls in TraceLens' report: sizes, and the kernels' mean time [us].

    Source: AMD-AGI/TraceLens, sheet GEMM in its report.
    """
    M, N, K = TRACELENS  # noqa: N806, letters of sizes
    time = next((name for name in TRACELENS_TIMES if name in frame.columns), None)
    if time is None and {TRACELENS_SUM, "name_count"} <= set(frame.columns):
        frame = frame.with_columns(
            mean=pl.col(TRACELENS_SUM).cast(pl.Float64, strict=False)
            / pl.col("name_count").cast(pl.Float64, strict=False)
        )
        time = "mean"
    if time is None:
        fix = "write the report of TraceLens again: it has Kernel Time (µs)_mean"
        raise RooflinesError("", "is a table of TraceLens without times of kernels", fix)
    frame = frame.with_columns(
        B=M, F=N, D=K, seconds=pl.col(time).cast(pl.Float64, strict=False) * 1e-6
    )
    if TRACELENS_BATCH in frame.columns:
        frame = frame.with_columns(batch=pl.col(TRACELENS_BATCH).cast(pl.Int64, strict=False))
    if "param: dtype_A_B" not in frame.columns:
        return frame, {}
    word = r"(?:c10::|torch\.)?(\w+)"
    names = pl.col("param: dtype_A_B").cast(pl.String).str.to_lowercase().str.extract_all(word)
    first, last = (
        names.list.get(place, null_on_oob=True).str.replace(PREFIX, "") for place in (0, -1)
    )
    dtypes = [dtype.replace_strict(DTYPES_OF_TORCH, default=None) for dtype in (first, last)]
    frame = frame.with_columns(dtype_x=dtypes[0], dtype_w=dtypes[1])
    modelled = frame.drop_nulls(["dtype_x", "dtype_w"])
    out = pl.when(pl.col("dtype_x") == "fp8").then(pl.lit("bf16")).otherwise("dtype_x")
    left_out = {"have a dtype that is not modelled": frame.height - modelled.height}
    return modelled.with_columns(dtype_out=out, compute="dtype_x"), {
        reason: count for reason, count in left_out.items() if count
    }


LAYOUTS = (
    PublicLayout(
        frozenset({*SAME_RUN, *DECODE_PARALLEL, "decode_servers", "prefill_servers"}),
        dict.fromkeys(("model", "chip", "engine"), pl.String()),
        two_pools,
    ),
    PublicLayout(
        frozenset({*SAME_RUN, *PARALLEL, "concurrency"}),
        dict.fromkeys(("model", "chip", "engine"), pl.String()),
        inferencex,
    ),
    PublicLayout(
        frozenset({*ATTENTION_SIZES, "phase", "attention", "cache", "window", "seconds"}),
        dict.fromkeys(("phase", "attention", "cache"), pl.String()),
        attention,
    ),
    PublicLayout(
        frozenset({"gemm_dtype", "m", "n", "k", "latency"}),
        {"gemm_dtype": pl.String()},
        aiconfigurator,
    ),
    PublicLayout(
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
        {"use_gated_mlp": pl.Boolean()},
        vidur,
    ),
    PublicLayout(
        frozenset(
            {
                "op_name",
                "batch_size",
                "isl",
                "num_heads",
                "num_key_value_heads",
                "head_dim",
                "attn_dtype",
                "kv_cache_dtype",
                "latency",
            }
        ),
        dict.fromkeys(("op_name", "attn_dtype", "kv_cache_dtype"), pl.String()),
        aiconfigurator_attention,
    ),
    PublicLayout(
        frozenset({*EXPERTS_SIZES[:-1], "dtype", "kernel", "seconds"}),
        dict.fromkeys(("dtype", "kernel"), pl.String()),
        experts,
    ),
    PublicLayout(
        frozenset(
            {
                "moe_dtype",
                "num_tokens",
                "hidden_size",
                "inter_size",
                "topk",
                "num_experts",
                "moe_tp_size",
                "moe_ep_size",
                "latency",
            }
        ),
        {"moe_dtype": pl.String()},
        aiconfigurator_experts,
    ),
    PublicLayout(
        frozenset({"nccl_dtype", "num_gpus", "message_size", "op_name", "latency"}),
        dict.fromkeys(("nccl_dtype", "op_name"), pl.String()),
        aiconfigurator_nccl,
    ),
    PublicLayout(frozenset(TRACELENS), {}, tracelens),
    PublicLayout(AITER_COLUMNS, {}, aiter_tuned),
    PublicLayout(LAYER_COLUMNS, {"layer_name": pl.String()}, llmservingsim),
    *SIZED,
)

TIMES = re.compile(r"time_stats\.\w+\.(median|min)")
"""Time columns in vidur's table."""


def layout_of(columns: Collection[str]) -> PublicLayout | None:
    """Public layout of a table with these columns; None: any other."""
    return next((layout for layout in LAYOUTS if layout.columns <= set(columns)), None)


def tidy(frame: pl.DataFrame) -> Tidy:
    """Convert a public layout to the tidy form; any other table stays as it is.

    Raises:
        RooflinesError: A layout's column has another type.
    """
    layout = layout_of(frame.columns)
    return layout.tidy(_with_types(frame, layout)) if layout else (frame, {})


def _with_types(frame: pl.DataFrame, layout: PublicLayout) -> pl.DataFrame:
    """Table with its layout's types, or a refusal.

    Categories are text; text is also what CSV has where no row has a value.
    """
    frame = frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    with Mistakes() as mistakes:
        for name, kind in frame.schema.items():
            if not (name in layout.columns or TIMES.fullmatch(name)):
                continue
            text_type = layout.texts.get(name)
            if frame[name].null_count() == frame.height:
                frame = frame.with_columns(pl.lit(None, text_type or pl.Float64()).alias(name))
            elif not (kind.is_numeric() if text_type is None else kind == text_type):
                expected = "numbers" if text_type is None else f"values of type {text_type}"
                fix = "correct the column, or write the table again"
                problem = f"has values of type {kind} instead of {expected}"
                mistakes.add(RooflinesError(name, problem, fix))
    return frame
