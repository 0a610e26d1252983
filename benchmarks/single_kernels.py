"""Bounds of single kernels: CPU time of a call, and of a frame of shapes."""

from __future__ import annotations

import time
from itertools import count
from timeit import repeat
from typing import Any

import polars as pl

import rooflines
from benchmarks.measure import demand

ATTENTION: dict[str, Any] = {"N": 32, "K": 8, "H": 128, "phase": "decode"}
"""Letters and options that all shapes share."""

CALLS: dict[str, dict[str, Any]] = {
    "attention": {"B": 8, **ATTENTION},
    "experts": {"D": 7168, "F": 2048, "E": 256, "k": 8, "dtypes": "fp8"},
    "rmsnorm": {"D": 8192},
    "conv2d": {"C": 64, "HW": 56, "F": 64, "k": 3, "pad": 1},
}
"""Calls without the letter that varies."""

VARIED = {"attention": "S"}
"""Letter that varies from call to call; B in other kinds."""

CALLS_AT_ONCE, ROUNDS = 5000, 7
"""Calls that are timed together, and rounds, of which the quickest counts [1]."""


def single_kernels(rows: float) -> dict[str, Any]:
    """CPU time of a call with a new size, after the first one, and of a row of a frame.

    Args:
        rows: Rows of the frame [1].
    """
    call_us = {kind: _call_us(kind, VARIED.get(kind, "B"), CALLS[kind]) for kind in CALLS}
    height = int(rows)
    shapes = pl.select(S=pl.int_range(1, height + 1), B=pl.int_range(height) % 256 + 1)
    started_s = time.process_time()
    found = rooflines.kernels(shapes, "h100", "attention", **ATTENTION)
    frame_s = time.process_time() - started_s
    last = found.row(-1, named=True)
    single = rooflines.kernel("h100", "attention", S=last["S"], B=last["B"], **ATTENTION)
    demand(last["memory_bytes"] == single.memory_bytes, "a frame and a call differ")
    return {"call_us": call_us, "rows": height, "frame_cpu_s": round(frame_s, 2)}


def _call_us(kind: str, letter: str, arguments: dict[str, Any]) -> float:
    """CPU time of a call whose letter has a new size each time [us]."""
    sizes = count(1)

    def call() -> None:
        varied: dict[str, Any] = {letter: next(sizes)}
        rooflines.kernel("h100", kind, **varied, **arguments)

    call()
    quickest = min(repeat(call, timer=time.process_time, number=CALLS_AT_ONCE, repeat=ROUNDS))
    return round(quickest / CALLS_AT_ONCE * 1e6, 1)
