"""Files that docs/trace.md reads: a decode step of six layers, before and after, and a log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

LAYERS = 6
SEQUENCES = 64
D, QKV, F = 4096, 6144, 14336
"""Sizes of a model with 8 billion parameters."""

LAUNCH_US = 5.0
"""Time of a launch call [us]."""

PYTHON_US = {"step.json": 22.0, "after.json": 9.0}
"""Time from one launch to the next, by file: the second has less Python between them [us]."""

SLOW_LAYER, SLOW_FACTOR = 2, {"step.json": 5.0, "after.json": 1.0}
"""Layer whose first matmul is slow in the first file, as when a clock drops."""

OPERATORS = (
    ("aten::mm", ((SEQUENCES, D), (D, QKV)), "nvjet_qkv", 24.5),
    ("aten::add", ((SEQUENCES, QKV), (QKV,)), "vectorized_elementwise_kernel", 2.9),
    ("aten::mm", ((SEQUENCES, D), (D, D)), "nvjet_o", 17.5),
    ("aten::add", ((SEQUENCES, D), (SEQUENCES, D)), "vectorized_elementwise_kernel", 2.4),
    ("aten::mm", ((SEQUENCES, D), (D, 2 * F)), "nvjet_gate_up", 88.0),
    ("aten::silu", ((SEQUENCES, F),), "vectorized_elementwise_kernel", 3.1),
    ("aten::mul", ((SEQUENCES, F), (SEQUENCES, F)), "vectorized_elementwise_kernel", 3.6),
    ("aten::mm", ((SEQUENCES, F), (F, D)), "nvjet_down", 51.0),
)
"""Operators of a layer: name, dims, kernel and its time [us]."""

DEVICE = {
    "id": 0,
    "name": "NVIDIA H100 80GB HBM3",
    "totalGlobalMem": 85018279936,
    "computeMajor": 9,
    "computeMinor": 0,
    "numSms": 132,
}


LOG_START = """\
INFO [core.py:61] Initializing a V1 LLM engine (v0.11.0) with config: model='Qwen/Qwen3-8B', \
dtype=torch.bfloat16, tensor_parallel_size=2, pipeline_parallel_size=1, data_parallel_size=1, \
quantization=None, kv_cache_dtype=auto
INFO [kv_cache_utils.py:1305] GPU KV cache size: 906,224 tokens
"""
"""Start lines of a log of vLLM."""

LOG_LINES = (
    (2000.0, 300.0, 20, 2.1),
    (8000.0, 2100.0, 64, 9.5),
    *((0.0, 4700.0 + 15 * (n % 9), 64, 9.6 + 0.3 * n) for n in range(16)),
    (0.0, 2000.0, 30, 7.0),
    (0.0, 0.0, 0, 0.0),
)
"""Periodic lines: tokens/s of prompts and of output, running requests, KV cache use [%]."""


def write_examples(folder: Path) -> None:
    """Write both traces and the log.

    Args:
        folder: Their folder.
    """
    for name, python_us in PYTHON_US.items():
        (folder / name).write_text(_step(python_us, SLOW_FACTOR[name]))
    periodic = [
        f"INFO [loggers.py:236] Engine 000: Avg prompt throughput: {prompts:.1f} tokens/s, "
        f"Avg generation throughput: {rate:.1f} tokens/s, Running: {running} reqs, "
        f"Waiting: 0 reqs, GPU KV cache usage: {use:.1f}%, Prefix cache hit rate: 0.0%\n"
        for prompts, rate, running, use in LOG_LINES
    ]
    (folder / "server.log").write_text(LOG_START + "".join(periodic))


def _step(python_us: float, slow_factor: float) -> str:
    """Text of a trace."""
    events: list[dict[str, Any]] = []
    host = free = 1000.0
    for layer in range(LAYERS):
        for number, (name, dims, kernel, length) in enumerate(OPERATORS):
            correlation = len(events)
            slow = slow_factor if layer == SLOW_LAYER and number == 0 else 1.0
            shapes = {
                "Input Dims": dims,
                "Input type": ["c10::BFloat16"] * len(dims),
                "Concrete Inputs": [""] * len(dims),
            }
            events.append(_event("cpu_op", name, host - 6, 14.0, 1, shapes))
            call = {"correlation": correlation}
            events.append(_event("cuda_runtime", "cudaLaunchKernel", host, LAUNCH_US, 1, call))
            begin = max(free + 0.9, host + LAUNCH_US + 1.5)
            place = {"device": 0, "stream": 7, "correlation": correlation}
            events.append(_event("kernel", kernel, begin, length * slow, 7, place))
            free = begin + length * slow
            host += python_us
    events.append(_event("user_annotation", "ProfilerStep#3", 990.0, host - 990.0, 1, {}))
    return json.dumps({"deviceProperties": [DEVICE], "traceEvents": events})


def _event(  # noqa: PLR0913, PLR0917, the fields
    category: str, name: str, begin: float, length: float, thread: int, args: dict[str, Any]
) -> dict[str, Any]:
    """Event in Chrome's format; times in us."""
    fields = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread}
    return fields | {"ts": begin, "dur": length, "args": args}
