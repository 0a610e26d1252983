"""One sweep by this package and by numpy: `python -m benchmarks.contenders NAME ROWS PATH`.

Each contender runs in a process of its own. numpy has the formulas of the matmul written by hand in
its cheapest form: terms without B are computed once, for every D and F.
"""

from __future__ import annotations

import json
import math
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from benchmarks.sweeps import DTYPES, SHARDINGS, SHARDS, SIZES, config
from rooflines import load_config
from rooflines.dictionary.columns import columns_of
from rooflines.evaluation.row_frames import OperationTable
from rooflines.run.jobs import ROWS_AT_ONCE, write_part
from rooflines.run.plan import plan
from rooflines.theory.resources import RESOURCES, collective_rate, math_rate, memory_rate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooflines.sweep.operation_sweep import Sweep

BOUNDS = [resource.bound for resource in RESOURCES]

FLOATS = (
    *("flops", "memory_bytes", "network_bytes", "footprint_bytes"),
    *("t_math_s", "t_memory_s", "t_network_s", "t_lower_s", "t_upper_s"),
    *("memory_intensity", "network_intensity", "attained_flops_per_s", "utilization"),
)
"""The metrics that are numbers."""

ESTIMATES = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
"""Null, as `estimate_bound`: the chip has no calibration."""

BLOCK = 8192
"""Rows of a block of numpy, which fits the cache [1]."""

WRITTEN = 2**18
"""Rows that numpy hands to the writer at once, at least [1]."""

Arrays = dict[str, Any]


# ---------------------------------------------------------------- this package


def rooflines_parquet(sweep: Sweep, path: Path, chips: int | None = 1, **keys: object) -> None:
    """Write the table as a job does; `keys` are those of the sweep."""
    given = load_config(config(sweep.rows, chips, rows_per_part=10**9, **keys))
    (part,) = plan(given).parts
    write_part(part.spec, path)


def rooflines_unwritten(sweep: Sweep, _: Path) -> None:
    """Compute every column as a job does, and write only sums."""
    names = [column.name for column in columns_of("table", sweep.op.dims)]
    with pl.Config(streaming_chunk_size=ROWS_AT_ONCE):
        frame = OperationTable(sweep).frame(0, sweep.rows, columns=names, enums=True)
        coded = pl.col(pl.Enum).to_physical().max()
        frame.select(pl.col(pl.Float64, pl.Int64).sum(), coded).collect(engine="streaming")


# ---------------------------------------------------------------- what numpy computes from


def cases(sweep: Sweep) -> Arrays:
    """Bytes, rates and keys of every (dtypes, sharding, shards), in order."""
    rows = []
    for case in sweep.cases:
        machine, compute = case.machine, case.combination.compute
        sent, share = case.scheme.transfers, machine.efficiency["network"]
        network = collective_rate(case.route, sent[0][1], share) if case.route and sent else None
        rows.append(
            {
                "shards": case.shards,
                **{f"{name}_bytes": float(bits) / 8 for name, bits in case.workload.bits.items()},
                "reduces": case.sharding.startswith("contracting"),
                "math_rate": float(math_rate(machine, compute)),
                "memory_rate": float(memory_rate(machine, compute)),
                "network_rate": float(network.per_s) if network else 1.0,
                "latency_s": float(len(sent) * network.latency_s) if network else 0.0,
                "peak": float(case.peak),
            }
        )
    return {key: np.array([row[key] for row in rows]) for key in rows[0]}


def panel(sweep: Sweep) -> Arrays:
    """All terms without B, for every case and every D and F."""
    given, per_case = cases(sweep), len(SIZES) ** 2
    at = np.repeat(np.arange(len(given["shards"])), per_case)
    of = {key: values[at] for key, values in given.items()}
    d = np.tile(np.repeat(SIZES, len(SIZES)), len(given["shards"]))
    f = np.tile(SIZES, len(at) // len(SIZES))
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
        **{name: of[name] for name in ("math_rate", "memory_rate", "network_rate")},
        **{name: of[name] for name in ("latency_s", "peak")},
    }


def constants(sweep: Sweep) -> dict[str, str | None]:
    """Keys that are constant over all rows."""
    (block,) = sweep.blocks
    keys = {"operation": sweep.op.name, "chip": block.place.chip, "unit": sweep.unit}
    return {**keys, "memory": block.place.memory, "network": block.place.network, "shape": None}


# ---------------------------------------------------------------- numpy


def compute(b: float, p: Arrays, m: Arrays, room: float) -> None:
    """Compute the metrics of a block into its buffers.

    Args:
        b: B.
        p: The rows of the panel.
        m: Buffers of the metrics.
        room: Bytes of the memory [byte].
    """
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
    np.less_equal(m["footprint_bytes"], room, out=m["fits"])
    np.less(m["t_math_s"], m["t_lower_s"], out=m["not_math"])
    np.less(m["t_memory_s"], m["t_lower_s"], out=m["network"])
    np.logical_and(m["not_math"], m["network"], out=m["network"])
    np.add(m["not_math"], m["network"], out=m["bound"], dtype=np.int8)


def blocks(sweep: Sweep) -> Iterator[Any]:
    """Record batches of pyarrow with all columns of a table, computed in reused buffers."""
    import pyarrow as pa  # noqa: PLC0415, of this contender alone

    def coded(codes: Any, names: Any) -> Any:  # noqa: ANN401, pyarrow has no types
        texts = pa.array(names, pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int8)), texts)

    fixed, (slow,) = panel(sweep), sweep.axes[0]
    room = float(sweep.cases[0].machine.level.capacity_bytes or math.inf)
    buffers: Arrays = {name: np.empty(BLOCK) for name in FLOATS}
    buffers |= {name: np.empty(BLOCK, bool) for name in ("fits", "not_math", "network")}
    buffers["bound"] = np.empty(BLOCK, np.int8)
    for b in slow.columns["B"]:
        for start in range(0, len(fixed["D"]), BLOCK):
            p = {name: values[start : start + BLOCK] for name, values in fixed.items()}
            rows = len(p["D"])
            m = {name: values[:rows] for name, values in buffers.items()}
            with np.errstate(divide="ignore"):
                compute(float(b), p, m, room)
            zeros = np.zeros(rows, np.int8)
            columns = {
                name: pa.nulls(rows, pa.string()) if value is None else coded(zeros, [value])
                for name, value in constants(sweep).items()
            }
            columns |= {
                "dtypes": coded(p["dtypes"], list(DTYPES)),
                "sharding": coded(p["sharding"], list(SHARDINGS)),
                "B": pa.array(np.full(rows, b)),
                **{name: pa.array(p[name]) for name in ("shards", "D", "F")},
                **{name: pa.array(m[name].copy()) for name in FLOATS},
                **{name: pa.nulls(rows, pa.float64()) for name in ESTIMATES},
                "estimate_bound": pa.nulls(rows, pa.string()),
                "bound": coded(m["bound"], BOUNDS),
                "fits": pa.array(m["fits"]),
            }
            intensity = m["network_intensity"].copy()
            columns["network_intensity"] = pa.array(intensity, mask=np.isinf(intensity))
            yield pa.record_batch(columns)


def numpy_parquet(sweep: Sweep, path: Path) -> None:
    """Blocks of numpy, written by pyarrow: dictionaries for keys only, no statistics, zstd."""
    import pyarrow as pa  # noqa: PLC0415, of this contender alone
    from pyarrow import parquet  # noqa: PLC0415, the same

    pa.set_cpu_count(1)
    found = blocks(sweep)
    first = next(found)
    coded = [name for name in first.schema.names if name not in (*FLOATS, *ESTIMATES, "fits")]
    options = {"compression": "zstd", "compression_level": 1, "use_dictionary": coded}
    with parquet.ParquetWriter(path, first.schema, write_statistics=False, **options) as writer:
        waiting = [first]
        for block in found:
            waiting.append(block)
            if sum(map(len, waiting)) >= WRITTEN:
                writer.write_table(pa.Table.from_batches(waiting), row_group_size=2**20)
                waiting = []
        if waiting:
            writer.write_table(pa.Table.from_batches(waiting), row_group_size=2**20)


CALIBRATED: dict[str, Any] = {"chips": None, "calibration": ["trtllm", "nccl"]}

CONTENDERS: dict[str, Callable[[Sweep, Path], None]] = {
    "unwritten": rooflines_unwritten,
    "rooflines": rooflines_parquet,
    "lz4": partial(rooflines_parquet, compression="lz4"),
    "core": partial(rooflines_parquet, columns="core"),
    "core-lz4": partial(rooflines_parquet, columns="core", compression="lz4"),
    "estimates": partial(rooflines_parquet, **CALIBRATED),
    "numpy": numpy_parquet,
}
"""Programs that write, or only compute, the rows of a sweep on one thread, by name."""


def main(name: str, rows: str, path: str) -> None:
    """Run one contender; print its CPU seconds without startup.

    A run of few rows before is part of the start: it imports what is used.
    """
    for count in (1, float(rows)):
        sweep = load_config(config(count)).sweep("bench")
        started_s = time.process_time()
        CONTENDERS[name](sweep, Path(path))
    print(json.dumps({"cpu_s": time.process_time() - started_s}))


if __name__ == "__main__":
    main(*sys.argv[1:])
