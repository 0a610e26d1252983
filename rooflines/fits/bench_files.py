"""Serving benchmark results (vLLM, SGLang, TensorRT-LLM) as runs with served models.

A file has one JSON object, or one on each line. Times are means, in milliseconds.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.basics.numbers import MAX_SIZE
from rooflines.models.library import load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooflines.basics.yaml_file import JSON

PER_MS = 1e-3
"""Seconds per millisecond [s]."""

ENGINES = {"vllm": "vllm", "sglang": "sglang", "tensorrt": "trtllm", "trtllm": "trtllm"}
"""Software by the first letters in a backend's name."""

ENGINE_BY_KIND = {"vllm-serve": "vllm", "sglang-serve": "sglang", "trtllm-bench": "trtllm"}
"""Software by file kind, for files that do not name it."""

TP_KEYS = ("tp", "tp_size", "tensor_parallel_size", "tensor_parallel")
MODEL_KEYS = ("model_id", "model", "model_name", "base_model_id")
ACCEPTANCE_KEYS = ("accept_length", "spec_decode_acceptance_length")
"""Keys with the mean number of tokens that a speculative decoding step adds to an answer [1]."""

OTHER_SPLITS = ("pp_size", "dp_size", "ep_size")
"""Parallelism in SGLang's server besides tp [1]."""

MAX_DIGITS = 16
"""Length from which a text with digits is not read as a number [1]."""

FORMATS = {
    "fp8": "fp8",
    "nvfp4": "nvfp4",
    "fp4": "nvfp4",
    "fp8_block_scales": "fp8_block",
    "none": "bf16",
    "": "bf16",
}
"""Weight formats by a report's name for the quantization."""

COLUMNS = {
    **dict.fromkeys(("model", "software", "linear"), pl.String),
    **dict.fromkeys(("tp", "moe_ep", "input_tokens", "output_tokens", "concurrency"), pl.Int64),
    **dict.fromkeys(("ttft_s", "tpot_s"), pl.Float64),
}


def read_bench(text: str, kind: str) -> pl.DataFrame:
    """Runs in a benchmark's result file.

    Args:
        text: The file's text.
        kind: The file's kind in `file_kinds.yaml`.

    Returns:
        A row for each run: input_tokens and output_tokens, the means [1]; concurrency [1]; ttft_s
        and tpot_s [s]; where the file says it, model, software, tp [1], moe_ep [1] and linear.

    Raises:
        RooflinesError: It is no JSON, or lacks a time or a count.
    """
    runs = list(_objects(text.removeprefix("\ufeff")))
    for run in runs:
        _check_comparable(run)
    rows = [_trtllm_row(run) if "world_info" in run else _serving_row(run, kind) for run in runs]
    if not rows:
        raise RooflinesError("", "has no result of a benchmark", "give the JSON that it wrote")
    frame = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    return frame.select(name for name in COLUMNS if frame[name].null_count() < frame.height)


def _objects(text: str) -> Iterator[JSON]:
    """JSON objects in a text: one, a list, or one on each line."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        try:
            content = [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            raise RooflinesError("", "is cut off, or no JSON", "write it again") from None
    for item in content if isinstance(content, list) else [content]:
        if isinstance(item, dict):
            yield item


def _check_comparable(run: JSON) -> None:
    """Refuse runs with speculative decoding or pipeline stages.

    Raises:
        RooflinesError: TPOT is no step time, or the chips do not make a split.
    """
    world = run.get("world_info")
    if any((_number(run, key) or 0) > 1 for key in ACCEPTANCE_KEYS) or run.get("decoding_stats"):
        problem = "is a result of a benchmark with speculative decoding, of several tokens a step"
        raise RooflinesError("", problem, "run it without a draft model")
    if isinstance(world, dict) and (_number(world, "pp_size") or 1) > 1:
        problem = f"is a report of trtllm-bench of {world['pp_size']} pipeline stages"
        raise RooflinesError("", f"{problem}, which are not compared", "run it with --pp 1")


def _serving_row(run: JSON, kind: str) -> dict[str, Any]:
    """Row from a `vllm bench serve` or `sglang.bench_serving` result."""
    requests = _number(run, "completed", "num_prompts")
    concurrency = _number(run, "max_concurrency", "concurrency")
    rate = _number(run, "request_throughput")
    latency_ms = _number(run, "mean_e2el_ms", "mean_e2e_latency_ms")
    if rate and latency_ms and (concurrency is None or _number(run, "request_rate")):
        # by Little's law; a limit is not reached
        mean_requests = max(rate * latency_ms * PER_MS, 1.0)
        concurrency = min(concurrency or mean_requests, mean_requests)
    if concurrency and requests:
        concurrency = min(concurrency, requests)
    backend = str(run.get("backend", "")).lower()
    engines = (engine for word, engine in ENGINES.items() if backend.startswith(word))
    tokens = (
        _number(run, *keys)
        for keys in (("total_input_tokens", "total_input"), ("total_output_tokens", "total_output"))
    )
    tokens_each = [total / requests if total and requests else None for total in tokens]
    server = info if isinstance(info := run.get("server_info"), dict) else {}
    names = [run.get(key) for key in MODEL_KEYS] + [server.get("model_path")]
    quantization = server.get("quantization")
    return _row(
        model=_model(next(filter(None, names), None)),
        software=next(engines, ENGINE_BY_KIND.get(kind)),
        linear=FORMATS.get(quantization, quantization) if isinstance(quantization, str) else None,
        tp=_number(run, *TP_KEYS) or _tp_of_server(server),
        input_tokens=tokens_each[0],
        output_tokens=tokens_each[1],
        concurrency=concurrency,
        ttft_s=_number(run, "mean_ttft_ms", "median_ttft_ms"),
        tpot_s=_number(run, "mean_tpot_ms", "median_tpot_ms"),
    )


def _trtllm_row(run: JSON) -> dict[str, Any]:
    """Row from a `trtllm-bench` report."""
    engine, world, requests, times = (
        part if isinstance(part := run.get(key), dict) else {}
        for key in ("engine", "world_info", "request_info", "streaming_metrics")
    )
    tpot_ms = _number(times, "avg_tpot_ms")
    if not tpot_ms:
        problem = "is a report of trtllm-bench without TPOT"
        raise RooflinesError("", problem, "run trtllm-bench throughput --streaming --report_json")
    quantization = str(engine.get("quantization") or "none").lower()
    return _row(
        model=_model(engine.get("model")),
        software="trtllm",
        linear=FORMATS.get(quantization, quantization),
        tp=_number(world, "tp_size"),
        moe_ep=_number(world, "ep_size"),
        input_tokens=_number(requests, "avg_input_length"),
        output_tokens=_number(requests, "avg_output_length"),
        concurrency=_number(requests, "avg_num_concurrent_requests"),
        ttft_s=_number(times, "avg_ttft_ms"),
        tpot_s=tpot_ms,
    )


def _tp_of_server(server: JSON) -> float | None:
    """SGLang server's tp_size [1]; None: not stated, or split in other ways too."""
    if any((_number(server, key) or 1) > 1 for key in OTHER_SPLITS):
        return None
    return _number(server, "tp_size")


def _row(**values: str | float | None) -> dict[str, Any]:
    """Row with counts as whole numbers and times in seconds; a missing value is None."""
    row: dict[str, Any] = dict.fromkeys(COLUMNS)
    for name, value in values.items():
        if isinstance(value, str):
            row[name] = value
        elif value is not None:
            whole = COLUMNS[name] == pl.Int64
            row[name] = max(round(value), 1) if whole else value * PER_MS
    needed = ("input_tokens", "output_tokens", "concurrency", "ttft_s", "tpot_s")
    if missing := [name for name in needed if not row[name]]:
        problem = f"is a result of a benchmark that says no {', '.join(missing)}"
        fix = "run it with --max-concurrency and several requests, and save its result"
        raise RooflinesError("", problem, fix)
    return row


def _number(run: Mapping[str, Any], *keys: str) -> float | None:
    """First number above zero under some keys; None without.

    A text with digits counts: `vllm bench serve --metadata` writes such.
    """
    cells = (run.get(key) for key in keys)
    values = (
        int(value)
        if isinstance(value, str) and value.isdecimal() and len(value) < MAX_DIGITS
        else value
        for value in cells
    )
    numbers = (value for value in values if isinstance(value, int | float))
    return next((float(value) for value in numbers if 0 < value < MAX_SIZE), None)


def _model(name: object) -> str | None:
    """Catalogue id for a model's name or path; None if the catalogue lacks it."""
    if not isinstance(name, str):
        return None
    for word in (name, name.rstrip("/").rpartition("/")[2]):
        try:
            return load(word).name
        except RooflinesError:
            continue
    return None
