"""FLOP, bytes and bounds of public traces: by shapes, with captures, and on models.

`ROOFLINES_PUBLIC_DATA` names a folder with `traces`: its `values.csv` has totals by trace and
options, `reference.csv` FLOP and bytes of an operator with its arguments.
"""

import ast
import csv
import os
import sys
from pathlib import Path

import polars as pl
import pytest

from rooflines import RooflinesError
from rooflines.hardware.chip_catalogue import chip_entries
from rooflines.traces.bound_times import TraceRates
from rooflines.traces.call_frames import call_frame, faster_counts
from rooflines.traces.laid_traces import lay_trace
from rooflines.traces.operator_rules import operator_cost
from rooflines.traces.trace_records import Arguments

DATA = Path(os.environ.get("ROOFLINES_PUBLIC_DATA") or "-") / "traces"
pytestmark = pytest.mark.skipif(
    not (DATA / "values.csv").is_file(), reason="ROOFLINES_PUBLIC_DATA has no traces"
)
csv.field_size_limit(min(sys.maxsize, 1 << 31))

CLOSE = 1e-3
"""Relative difference of sums in `values.csv` [1]."""

ROUNDED = 6e-7
"""Times in `values.csv` have six digits of ms [ms]."""

MOVED = {
    # Backward of a norm reads no statistics, and writes the gradients of weights.
    ("torch/mi300x-norms.json.gz", ""): ("memory_bytes", "t_lower_ms", "least_ms"),
    # Collectives have hop latencies, and a broadcast takes in the whole tensor.
    ("torch/mi300x-resnet-ddp.json.gz", ""): ("t_lower_ms",),
    ("ranks/mi300x-resnet-4-ranks.json.gz", "chip=mi300x"): ("t_lower_ms",),
    # The catalogue has another memory rate than when the sums were made.
    ("other/mi250-toy.json.gz", "chip=mi250x"): ("t_lower_ms", "least_ms"),
}
"""Sums that rules of kernels moved beyond `CLOSE`, by trace and options."""

MOVED_OPERATORS = {
    "aten::native_batch_norm_backward": "reads no running statistics; gradients of weights count",
    "aten::miopen_batch_norm_backward": "the same",
    "aten::native_layer_norm_backward": "the same",
    "aten::native_group_norm_backward": "the same",
    "aten::_fused_rms_norm_backward": "the same",
    "sgl_kernel::rotary_embedding": "positions and tables can be computed",
}
"""Operators whose bytes rules of kernels moved, and how."""

DECODE = "engines/mi300x-sglang-qwen3-8b-decode.json.gz"
CAPTURE = "engines/mi300x-sglang-qwen3-8b-decode.capture.json.gz"
PREFILL = "engines/b200-vllm-gpt-oss-120b-tp8-prefill.json.gz"
MIXED = "engines/mi300x-vllm-gpt-oss-20b-mixed.json.gz"


def laid(trace, chip=None, **options):
    if "capture" in options:
        options["capture"] = str(DATA / options["capture"])
    return lay_trace(str(DATA / trace), chip, **options)


def values():
    if not (DATA / "values.csv").is_file():
        return []
    rows = pl.read_csv(DATA / "values.csv", infer_schema_length=None).rows(named=True)
    return [pytest.param(row, id=f"{row['trace']} {row['with'] or ''}") for row in rows]


def options_of(row):
    options = {}
    for word in (row["with"] or "").split():
        key, _, value = word.partition("=")
        if key == "capture":
            options["capture"] = row["trace"].replace(".json.gz", ".capture.json.gz")
        elif key == "tp":
            options["tp"] = int(value)
        elif key != "chip":
            options["model"] = word
    return options


def sums_of(answer):
    frame = call_frame(answer)
    compared = [bounded for bounded in answer.compared if bounded.lower_s is not None]
    total = answer.total
    return {
        "flops": frame["flops"].sum(),
        "memory_bytes": frame["memory_bytes"].sum(),
        "t_lower_ms": 1e3 * sum(bounded.lower_s or 0.0 for bounded in answer.inside),
        "least_ms": 1e3 * sum(min(bounded.seconds, bounded.lower_s) for bounded in compared),
        "lost_ms": total.above_ns / 1e6,
        "no_bound_ms": total.no_bound_ns / 1e6,
    }


@pytest.mark.parametrize("row", values())
def test_sums_are_those_of_the_public_traces(row):
    answer = laid(row["trace"], row["chip"], **options_of(row))
    covered = answer.covered(exact=True) or 0.0
    assert covered >= (row["covered_exact"] or 0.0) - 0.01
    if (row["covered_exact"] or 0.0) > 0.9:
        moved = MOVED.get((row["trace"], row["with"] or ""), ())
        sums = sums_of(answer)
        for name, value in sums.items():
            within = pytest.approx(row[name], rel=CLOSE, abs=ROUNDED)
            assert (value == within) != (name in moved), (name, value, row[name])
    if row["covered_exact"] == 1.0:
        counts = faster_counts(answer.inside)
        said = "; ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
        assert said == (row["below"] or "")


def reference():
    with (DATA / "reference.csv").open(encoding="utf-8") as file:
        yield from csv.DictReader(file)


def literal(text):
    return lists(ast.literal_eval(text)) if text not in ("", "None") else []


def lists(value):
    return [lists(item) for item in value] if isinstance(value, (list, tuple)) else value


def test_flop_and_bytes_of_operators_are_those_of_the_reference():
    compared = 0
    moved = set()
    for row in reference():
        if not row["memory_bytes"]:
            continue
        types = [name.replace("longint", "long int") for name in literal(row["input_types"])]
        dims, strides, concrete = map(
            literal, (row["input_dims"], row["input_strides"], row["concrete"])
        )
        cost = operator_cost(row["op"], Arguments(dims, types, strides, concrete))
        assert cost
        assert cost.flops == pytest.approx(float(row["flops"]), rel=1e-6)
        compared += 1
        if cost.memory_bytes != pytest.approx(float(row["memory_bytes"]), rel=1e-6):
            moved.add(row["op"])
            assert cost.memory_bytes == pytest.approx(float(row["memory_bytes"]), rel=0.04)
    assert compared == 240
    assert moved == {*MOVED_OPERATORS}


def test_a_step_in_a_graph_is_laid_on_its_model():
    answer = laid(DECODE, model="qwen3-8b")
    assert 1e3 * answer.lower_s == pytest.approx(3.834, abs=6e-4)
    groups = call_frame(answer).group_by("op").agg(pl.col("kernel_s", "t_lower_s").sum(), pl.len())
    rows = {op: numbers for op, *numbers in groups.iter_rows()}
    for op, measured, bound, count in (
        ("gate-up", 2417.659, 1374.624, 36),
        ("attention", 2127.869, 915.702, 36),
        ("down", 1461.907, 690.873, 36),
        ("qkv", 903.515, 346.327, 36),
        ("norm", 683.953, 11.79, 145),
        ("o", 602.344, 231.478, 36),
        ("unembed", 396.832, 236.726, 1),
        ("activation", 324.367, 16.025, 36),
        ("rotary", 195.815, 4.452, 36),
        ("cache write", 173.545, 1.781, 36),
    ):
        assert rows[op][0] * 1e6 == pytest.approx(measured, abs=1e-3)
        assert rows[op][1] * 1e6 == pytest.approx(bound, rel=CLOSE)
        assert rows[op][2] == count


def test_a_capture_covers_the_step_by_shapes():
    answer = laid(DECODE, capture=CAPTURE, model="qwen3-8b")
    assert 1e3 * answer.lower_s == pytest.approx(3.855971, rel=1e-5)
    assert answer.covered() == pytest.approx(0.9982, abs=1e-4)
    assert "agree on the FLOP of 145 matmuls of 145" in " ".join(answer.lines)
    bounds = {"mi355x": 2.555, "h100-sxm": 6.100, "h200-sxm": 4.258, "b200": 2.654}
    for chip, expected in bounds.items():
        lower_s = sum(bounded.lower_s or 0.0 for bounded in answer.on(chip))
        assert 1e3 * lower_s == pytest.approx(expected, abs=6e-4)


@pytest.mark.parametrize(
    ("trace", "chip", "model", "tp", "agreeing"),
    [(PREFILL, "b200", "gpt-oss-120b", 8, 109), (MIXED, "mi300x", "gpt-oss-20b", 1, 73)],
)
def test_models_agree_with_shapes(trace, chip, model, tp, agreeing):
    capture = {"capture": MIXED.replace(".json", ".capture.json")} if trace == MIXED else {}
    answer = laid(trace, chip, model=model, tp=tp, **capture)
    assert f"agree on the FLOP of {agreeing} matmuls of {agreeing}" in " ".join(answer.lines)


@pytest.mark.parametrize(
    ("trace", "model", "message"),
    [
        (DECODE, "llama-3.1-8b", "36 attention kernels are no multiple of llama-3.1-8b's 32"),
        (DECODE, "gpt-oss-20b", "36 attention kernels are no multiple of gpt-oss-20b's 24"),
        (DECODE, "auto", "qwen3-4b, qwen3-8b all fit"),
        (PREFILL, "gpt-oss-20b", "36 attention kernels are no multiple of gpt-oss-20b's 24"),
        (PREFILL, "qwen3-8b", "fits 0 of 36 layers: 3 matmuls where"),
    ],
)
def test_another_model_is_refused(trace, model, message):
    with pytest.raises(RooflinesError, match=message):
        laid(trace, model=model)


def test_the_quickest_all_reduce_is_above_its_bound():
    answer = laid("ranks/mi300x-resnet-4-ranks.json.gz", "mi300x")
    rates = TraceRates("mi300x", chip_entries()["mi300x"])
    large = [
        bounded
        for bounded in answer.calls
        if bounded.call.cost and bounded.call.cost.payload_bytes == 27_291_648
    ]
    assert len(large) == 12
    cost = large[0].call.cost
    seconds = rates.seconds(cost) if cost else None
    assert seconds
    assert seconds.network == pytest.approx(213.2e-6, rel=CLOSE)
    assert min(bounded.call.kernel_ns for bounded in large) > 300_000
