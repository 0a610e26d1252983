"""What the other tools compute from: all terms without B, for every variant and every D and F."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.grids import DTYPES, SHARDINGS, SHARDS, SIZES
from rooflines.model.resources import RESOURCES

if TYPE_CHECKING:
    from rooflines.sweep.sweep import Sweep

THREADS = int(os.environ.get("BENCH_THREADS", "1"))
"""Threads of a contender [1]."""

BOUNDS = [resource.bound for resource in RESOURCES]

Arrays = dict[str, Any]

FLOATS = (
    "flops",
    "memory_bytes",
    "network_bytes",
    "footprint_bytes",
    "t_math_s",
    "t_memory_s",
    "t_network_s",
    "t_lower_s",
    "t_upper_s",
    "memory_intensity",
    "network_intensity",
    "attained_flops_per_s",
    "utilization",
)
"""The metrics that are numbers."""

ESTIMATES = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
"""Null, as `estimate_bound`: the chip has no calibration."""


def variants(sweep: Sweep) -> Arrays:
    """Bits, rates and keys of every (dtypes, sharding, shards), in order."""
    rows = []
    for own in sweep.cases:
        case, target = own.workload, own.target
        rates = [resource.rate(target) for resource in RESOURCES]
        math_rate, memory_rate, network_rate = (
            float(rate.per_s) if rate else 1.0 for rate in rates
        )
        rows.append(
            {
                "dtypes": own.dtypes,
                "sharding": own.variant.sharding,
                "shards": own.shards,
                **{f"{operand}_bytes": float(bits) / 8 for operand, bits in case.bits.items()},
                "reduces": own.variant.sharding.startswith("contracting"),
                "math_rate": math_rate,
                "memory_rate": memory_rate,
                "network_rate": network_rate,
                "latency_s": float(rates[-1].latency_s) if rates[-1] else 0.0,
                "peak": float(target.peak),
                "network": own.network,
            }
        )
    assert len(rows) == len(DTYPES) * len(SHARDINGS) * len(SHARDS)  # noqa: S101
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def panel(sweep: Sweep) -> Arrays:
    """All terms without B, for every variant and every D and F."""
    at, given = (
        np.repeat(np.arange(len(DTYPES) * len(SHARDINGS) * len(SHARDS)), len(SIZES) ** 2),
        variants(sweep),
    )
    of = {key: values[at] for key, values in given.items()}
    repeats = len(at) // len(SIZES) ** 2
    d, f = np.tile(np.repeat(SIZES, len(SIZES)), repeats), np.tile(SIZES, repeats * len(SIZES))
    n, reduces = of["shards"].astype(float), of["reduces"]
    x, out = of["x_bytes"] * d, of["out_bytes"] * f
    return {
        "dtypes": at // (len(SHARDINGS) * len(SHARDS)),
        "sharding": at // len(SHARDS) % len(SHARDINGS),
        "shards": of["shards"],
        "D": d,
        "F": f,
        "flops_per_b": 2.0 * d * f / n,
        "memory_per_b": np.where(reduces, x / n + out, x + out / n),
        "memory_fixed": of["w_bytes"] * d * f / n,
        "network_per_b": np.where(reduces, 2 * (n - 1) / n * out, (n - 1) / n * x),
        **{
            key: of[key]
            for key in ("math_rate", "memory_rate", "network_rate", "latency_s", "peak")
        },
    }


def keys(sweep: Sweep) -> dict[str, str | None]:
    """Keys that are constant over all rows."""
    (chip_rows,) = sweep.blocks
    return {
        "operation": sweep.op.name,
        "chip": chip_rows.chip,
        "unit": sweep.unit,
        "memory": chip_rows.memory,
        "network": chip_rows.network,
        "shape": None,
    }
