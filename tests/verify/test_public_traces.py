"""Public traces: totals to the nanosecond, work and bounds to a thousandth, or a reason.

The folder that ROOFLINES_PUBLIC_DATA names has `traces/` with `values.csv`: a row a trace and its
options; `python -m benchmarks.trace_totals` recomputes it.
"""

import csv
import os
from functools import lru_cache
from pathlib import Path

import pytest

from benchmarks.trace_totals import lay_public_trace

FOLDER = Path(os.environ.get("ROOFLINES_PUBLIC_DATA", "")) / "traces"
VALUES = FOLDER / "values.csv"

TEXT = VALUES.read_text(encoding="utf-8") if VALUES.is_file() else ""
ROWS = list(csv.DictReader(TEXT.splitlines()))

pytestmark = pytest.mark.skipif(not ROWS, reason="ROOFLINES_PUBLIC_DATA has no traces/values.csv")

TIMES = {
    "span_ms": "total_ns",
    "idle_host_ms": "not_launched_ns",
    "idle_call_ms": "in_call_ns",
    "queued_ms": "queued_ns",
    "break_ms": "break_ns",
    "exposed_comm_ms": "communication_ns",
    "before_ms": "before_ns",
}
"""Times that agree to 1 ns a device: columns and parts."""

TWO_PROCESSES = (
    "numbers of launches count alike in both processes: a kernel is of a launch of its own process"
)
MOVED_TIMES = {"other/nsys-h100-2gpu.sqlite": TWO_PROCESSES}
"""Traces whose idle times and parts differ, and why."""

MOVED_WORK = {
    "torch/mi300x-norms.json.gz": "a backward's gradients of weights are written too",
    "torch/mi300x-resnet-ddp.json.gz": "bounds of collectives have the network's passes and hops",
    "ranks/mi300x-resnet-4-ranks.json.gz": "the same",
    "other/a100-resnet-nccl.json.gz": "the same",
    "other/mi250-toy.json.gz": "vector units of fp32 products",
    "other/nsys-h100-2gpu.sqlite": TWO_PROCESSES,
}
"""Traces with exact work whose bound or bytes differ by over a thousandth, and why."""

MS = 1e6
"""Nanoseconds in a millisecond [ns]."""


def name(row):
    return f"{row['trace']} {row['with']}".strip()


@lru_cache(maxsize=2)
def laid(trace, options):
    return lay_public_trace(FOLDER, trace, options)


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_times_agree_to_a_nanosecond_a_device(row):
    answer = laid(row["trace"], row["with"])
    devices = int(row["devices"])
    assert len(answer.accounts) == devices
    assert len(answer.trace.activities) == int(row["activities"])
    assert len(answer.trace.steps) == int(row["steps"])
    assert (answer.chip.chip or "") == row["chip"]
    total = answer.total
    ours = {column: getattr(total, part) for column, part in TIMES.items()}
    ours["busy_ms"] = answer.busy_ns
    ours["exposed_copy_ms"] = sum(account.copies_ns for account in answer.accounts)
    differ = {
        column: (time, row[column])
        for column, time in ours.items()
        if abs(time - float(row[column]) * MS) > devices + 0.5
    }
    if row["trace"] in MOVED_TIMES:
        assert differ, "take it off the list"
        assert not {"span_ms", "busy_ms"} & differ.keys()
    else:
        assert differ == {}
    parts = sum(ours[column] for column in TIMES if column != "span_ms")
    bounded = total.at_bound_ns + total.above_ns + total.no_bound_ns
    assert parts + bounded == ours["span_ms"]


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_work_and_bounds_agree_to_a_thousandth_or_cover_more(row):
    answer = laid(row["trace"], row["with"])
    covered = answer.covered() or 0.0
    assert covered >= float(row["covered"] or 0) - 0.01
    costs = [bounded.call.cost for bounded in answer.inside if bounded.call.cost is not None]
    ours = {
        "flops": sum(cost.flops for cost in costs),
        "memory_bytes": sum(cost.memory_bytes for cost in costs),
        "t_lower_ms": sum(bounded.lower_s or 0.0 for bounded in answer.inside) * 1e3,
        "least_ms": answer.total.at_bound_ns / MS,
        "lost_ms": answer.total.above_ns / MS,
    }
    exact = float(row["covered_exact"] or 0) > 0.9
    differ = {
        column: (value, row[column])
        for column, value in ours.items()
        if value != pytest.approx(float(row[column] or 0), rel=1e-3, abs=1.5e-6)
    }
    if exact and row["trace"] not in MOVED_WORK:
        assert differ == {}
