"""numpy, in blocks that fit the cache; written by pyarrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.contenders.panel import BOUNDS, ESTIMATES, FLOATS, THREADS, Arrays, keys, panel
from benchmarks.grids import DTYPES, SHARDINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from rooflines.sweep.sweep import Sweep

BLOCK = 8192
"""Rows of a block [1]."""


def by_chip(sweep: Sweep, capacity: float) -> Iterator[tuple[int, slice, Arrays, Arrays]]:
    """Every metric, in blocks that fit the cache and reused buffers.

    Yields:
        B, the rows of the panel, their metrics, the panel.
    """
    fixed = panel(sweep)
    rows = len(fixed["D"])
    buffers: Arrays = {name: np.empty(BLOCK) for name in FLOATS}
    buffers |= {
        "fits": np.empty(BLOCK, bool),
        "bound": np.empty(BLOCK, np.int8),
        "slow": np.empty(BLOCK, bool),
        "slower": np.empty(BLOCK, bool),
    }
    assert sweep.lead  # noqa: S101
    with np.errstate(divide="ignore"):
        for b in sweep.lead.columns["B"]:
            for start in range(0, rows, BLOCK):
                here = slice(start, min(start + BLOCK, rows))
                p = {name: values[here] for name, values in fixed.items()}
                m = {name: values[: here.stop - start] for name, values in buffers.items()}
                compute(float(b), p, m, capacity)
                yield b, here, m, p


def compute(b: float, p: Arrays, m: Arrays, capacity: float) -> None:
    """Compute the metrics of a block into its buffers."""
    np.multiply(p["flops_per_b"], b, out=m["flops"])
    np.multiply(p["memory_per_b"], b, out=m["memory_bytes"])
    np.add(m["memory_bytes"], p["memory_fixed"], out=m["memory_bytes"])
    np.multiply(p["network_per_b"], b, out=m["network_bytes"])
    np.copyto(m["footprint_bytes"], m["memory_bytes"])
    np.divide(m["flops"], p["math_rate"], out=m["t_math_s"])
    np.divide(m["memory_bytes"], p["memory_rate"], out=m["t_memory_s"])
    np.divide(m["network_bytes"], p["network_rate"], out=m["t_network_s"])
    np.maximum(m["t_network_s"], p["latency_s"], out=m["t_network_s"])
    np.maximum(m["t_math_s"], m["t_memory_s"], out=m["t_lower_s"])
    np.maximum(m["t_lower_s"], m["t_network_s"], out=m["t_lower_s"])
    np.add(m["t_math_s"], m["t_memory_s"], out=m["t_upper_s"])
    np.add(m["t_upper_s"], m["t_network_s"], out=m["t_upper_s"])
    np.divide(m["flops"], m["memory_bytes"], out=m["memory_intensity"])
    np.divide(m["flops"], m["network_bytes"], out=m["network_intensity"])
    np.divide(m["flops"], m["t_lower_s"], out=m["attained_flops_per_s"])
    np.divide(m["attained_flops_per_s"], p["peak"], out=m["utilization"])
    np.less_equal(m["footprint_bytes"], capacity, out=m["fits"])
    np.less(m["t_math_s"], m["t_lower_s"], out=m["slow"])
    np.less(m["t_memory_s"], m["t_lower_s"], out=m["slower"])
    np.logical_and(m["slow"], m["slower"], out=m["slower"])
    np.add(m["slow"], m["slower"], out=m["bound"], dtype=np.int8)


def numpy_sums(sweep: Sweep, capacity: float, _: Path) -> dict[str, float]:
    """The sum of every column, block by block."""
    sums = dict.fromkeys([*FLOATS, "fits", "bound", "B", "D", "F", "shards"], 0.0)
    for b, here, m, p in by_chip(sweep, capacity):
        for name in FLOATS:
            values = m[name]
            sums[name] += (
                values.sum(where=values < np.inf) if name == "network_intensity" else values.sum()
            )
        for name in ("D", "F", "shards"):
            sums[name] += p[name].sum()
        sums["fits"] += m["fits"].sum()
        sums["bound"] += m["bound"].sum()
        sums["B"] += b * (here.stop - here.start)
    return sums


def batch(sweep: Sweep, b: int, m: Mapping[str, Any], p: Mapping[str, Any]) -> Any:  # noqa: ANN401, pyarrow has no types
    """A block as a pyarrow record batch with all columns of a table."""
    import pyarrow as pa  # noqa: PLC0415

    rows = len(p["D"])
    zeros = np.zeros(rows, np.int8)

    def coded(codes: Any, names: Any) -> Any:  # noqa: ANN401
        return pa.DictionaryArray.from_arrays(
            pa.array(codes.astype(np.int8)), pa.array(names, pa.string())
        )

    same = {
        name: pa.nulls(rows, pa.string()) if value is None else coded(zeros, [value])
        for name, value in keys(sweep).items()
    }
    columns = {
        **same,
        "dtypes": coded(p["dtypes"], list(DTYPES)),
        "sharding": coded(p["sharding"], list(SHARDINGS)),
        "shards": pa.array(p["shards"]),
        "B": pa.array(np.full(rows, b)),
        "D": pa.array(p["D"]),
        "F": pa.array(p["F"]),
        **{name: pa.array(m[name].copy()) for name in FLOATS if name != "network_intensity"},
        "network_intensity": pa.array(
            m["network_intensity"].copy(), mask=np.isinf(m["network_intensity"])
        ),
        **{name: pa.nulls(rows, pa.float64()) for name in ESTIMATES},
        "estimate_bound": pa.nulls(rows, pa.string()),
        "bound": coded(m["bound"], BOUNDS),
        "fits": pa.array(m["fits"]),
    }
    return pa.record_batch(columns)


def numpy_parquet(sweep: Sweep, capacity: float, path: Path) -> None:
    """Blocks of numpy, written by pyarrow: dictionaries for keys only, no statistics, zstd."""
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    pa.set_cpu_count(THREADS)
    writer, waiting = None, []
    for b, _, m, p in by_chip(sweep, capacity):
        waiting.append(batch(sweep, b, m, p))
        if writer is None:
            floats = {*FLOATS, *ESTIMATES, "B", "D", "F", "shards", "fits"}
            coded = [name for name in waiting[0].schema.names if name not in floats]
            options = {
                "compression": "zstd",
                "compression_level": 1,
                "use_dictionary": [*coded, "B", "D", "F", "shards"],
            }
            writer = parquet.ParquetWriter(
                path, waiting[0].schema, write_statistics=False, **options
            )
        if sum(map(len, waiting)) >= 2**18:
            writer.write_table(pa.Table.from_batches(waiting), row_group_size=2**20)
            waiting = []
    assert writer  # noqa: S101
    if waiting:
        writer.write_table(pa.Table.from_batches(waiting), row_group_size=2**20)
    writer.close()
