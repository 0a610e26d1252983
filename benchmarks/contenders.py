"""The same rows with other tools: `python -m benchmarks.contenders NAME ROWS PATH`.

The formulas of the matmul are hand-written in the cheapest form for each tool: terms without B
are computed once. Names that end in `-sums` write nothing; they print the sum of every column, to
compare the formulas alone.
"""

# The same rows by every tool: long, but one thing.

from __future__ import annotations

import json
import math
import os
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.grids import DTYPES, SHARDINGS, SHARDS, SIZES, config
from rooflines import load_config
from rooflines.model.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rooflines.sweep.sweep import Sweep

THREADS = int(os.environ.get("BENCH_THREADS", "1"))
BOUNDS = [resource.bound for resource in RESOURCES]
BLOCK = 8192
Arrays = dict[str, Any]


def variants(sweep: Sweep) -> Arrays:
    """Bits, rates and keys of every (dtypes, sharding, shards), in order."""
    (chip_rows,) = sweep.by_chip
    rows = []
    for variant in chip_rows.variants:
        case, target = sweep.case(chip_rows, variant), sweep.target(chip_rows, variant)
        rates = [resource.rate(target) for resource in RESOURCES]
        math_rate, memory_rate, network_rate = (
            float(rate.per_s) if rate else 1.0 for rate in rates
        )
        rows.append(
            {
                "dtypes": variant.dtypes,
                "sharding": variant.sharding,
                "shards": variant.shards,
                **{f"{operand}_bytes": float(bits) / 8 for operand, bits in case.bits.items()},
                "reduces": variant.sharding.startswith("contracting"),
                "math_rate": math_rate,
                "memory_rate": memory_rate,
                "network_rate": network_rate,
                "latency_s": float(rates[-1].latency_s) if rates[-1] else 0.0,
                "peak": float(target.peak),
                "network": chip_rows.network,
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


FLOATS = (
    *(
        "flops",
        "memory_bytes",
        "network_bytes",
        "footprint_bytes",
        "t_math_s",
        "t_memory_s",
        "t_network_s",
        "t_lower_s",
        "t_upper_s",
    ),
    *("memory_intensity", "network_intensity", "attained_flops_per_s", "utilization"),
)

ESTIMATES = ("t_estimate_s", "t_estimate_p10_s", "t_estimate_p90_s")
"""Null, as `estimate_bound`: the chip has no calibration."""


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


def rooflines_sums(sweep: Sweep, _: float, __: Path) -> dict[str, float]:
    """The same sums with this package, computed as in a job."""
    import polars as pl  # noqa: PLC0415, the others do without

    from rooflines.model.columns import table_columns  # noqa: PLC0415
    from rooflines.run.jobs import ROWS_AT_ONCE  # noqa: PLC0415
    from rooflines.sweep.rows import whole_rows  # noqa: PLC0415

    names = [*FLOATS, "fits", "B", "D", "F", "shards"]
    with pl.Config(streaming_chunk_size=ROWS_AT_ONCE):
        columns = [column.name for column in table_columns(sweep.op.dims)]
        frame = whole_rows(sweep, columns, 0, sweep.rows).select(
            pl.col(names).sum(), pl.col("bound").to_physical().sum()
        )
        return {
            name: float(value)
            for name, value in frame.collect(engine="streaming").row(0, named=True).items()
        }


def rooflines_parquet(
    sweep: Sweep,
    _: float,
    path: Path,
    chips: int | None = 1,
    **keys: Any,  # noqa: ANN401, any key of a sweep
) -> None:
    """Write the table as a job does."""
    from rooflines.run.jobs import write_part  # noqa: PLC0415
    from rooflines.run.plan import plan  # noqa: PLC0415

    given = load_config(config(sweep.rows, chips, rows_per_part=10**9, **keys))
    (part,) = plan(given).parts
    write_part(part.spec, path)


def rooflines_written(
    sweep: Sweep,
    _: float,
    path: Path,
    **options: Any,  # noqa: ANN401
) -> None:
    """Write the rows to Parquet, without statistics as a job does, with other compression."""
    import polars as pl  # noqa: PLC0415, the others do without

    from rooflines.model.columns import table_columns  # noqa: PLC0415
    from rooflines.results.tables import PAGE_BYTES, ROW_GROUP_ROWS  # noqa: PLC0415
    from rooflines.run.jobs import ROWS_AT_ONCE  # noqa: PLC0415
    from rooflines.sweep.rows import whole_rows  # noqa: PLC0415

    names = [column.name for column in table_columns(sweep.op.dims)]
    with pl.Config(streaming_chunk_size=ROWS_AT_ONCE):
        whole_rows(sweep, names, 0, sweep.rows).sink_parquet(
            path,
            row_group_size=ROW_GROUP_ROWS,
            data_page_size=PAGE_BYTES,
            statistics=False,
            **options,
        )


def keys(sweep: Sweep) -> dict[str, str | None]:
    """Keys that are constant over all rows."""
    (chip_rows,) = sweep.by_chip
    return {
        "operation": sweep.op.name,
        "chip": chip_rows.chip,
        "unit": sweep.unit,
        "memory": chip_rows.memory,
        "network": chip_rows.network,
        "shape": None,
    }


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


def pandas_parquet(sweep: Sweep, capacity: float, path: Path) -> None:
    """Whole columns of pandas, one frame per 16 batch sizes."""
    import pandas as pd  # noqa: PLC0415
    import pyarrow as pa  # noqa: PLC0415
    from pyarrow import parquet  # noqa: PLC0415

    pa.set_cpu_count(THREADS)
    fixed = pd.DataFrame(panel(sweep))
    for name, names in (("dtypes", DTYPES), ("sharding", SHARDINGS)):
        fixed[name] = pd.Categorical.from_codes(fixed[name].astype("int8"), list(names))
    assert sweep.lead  # noqa: S101
    batches, writer = sweep.lead.columns["B"], None
    for start in range(0, len(batches), 16):
        f = pd.DataFrame({"B": batches[start : start + 16]}).merge(fixed, how="cross")
        for name, value in keys(sweep).items():
            f[name] = (
                pd.Categorical([value] * len(f))
                if value is None
                else pd.Categorical.from_codes(np.zeros(len(f), np.int8), [value])
            )
        f["flops"] = f["B"] * f["flops_per_b"]
        f["memory_bytes"] = f["footprint_bytes"] = f["B"] * f["memory_per_b"] + f["memory_fixed"]
        f["network_bytes"] = f["B"] * f["network_per_b"]
        for name, work in (
            ("math", "flops"),
            ("memory", "memory_bytes"),
            ("network", "network_bytes"),
        ):
            f[f"t_{name}_s"] = f[work] / f[f"{name}_rate"]
        f["t_network_s"] = np.maximum(f["t_network_s"], f["latency_s"])
        times = f[["t_math_s", "t_memory_s", "t_network_s"]]
        f["t_lower_s"] = np.maximum(np.maximum(f["t_math_s"], f["t_memory_s"]), f["t_network_s"])
        f["t_upper_s"] = times["t_math_s"] + times["t_memory_s"] + times["t_network_s"]
        f[[*ESTIMATES]] = np.nan
        f["estimate_bound"] = pd.Categorical([None] * len(f))
        f["memory_intensity"] = f["flops"] / f["memory_bytes"]
        f["network_intensity"] = (f["flops"] / f["network_bytes"]).where(f["network_bytes"] > 0)
        f["attained_flops_per_s"] = f["flops"] / f["t_lower_s"]
        f["utilization"] = f["attained_flops_per_s"] / f["peak"]
        slow = f["t_math_s"] < f["t_lower_s"]
        f["bound"] = pd.Categorical.from_codes(
            slow.astype("int8") + (slow & (f["t_memory_s"] < f["t_lower_s"])).astype("int8"), BOUNDS
        )
        f["fits"] = f["footprint_bytes"] <= capacity
        kept = [
            *keys(sweep),
            "dtypes",
            "sharding",
            "shards",
            "B",
            "D",
            "F",
            *FLOATS,
            *ESTIMATES,
            "estimate_bound",
            "bound",
            "fits",
        ]
        table = pa.Table.from_pandas(f[kept], preserve_index=False)
        if writer is None:
            coded = [name for name in kept if name not in FLOATS]
            writer = parquet.ParquetWriter(
                path, table.schema, compression="zstd", compression_level=1, use_dictionary=coded
            )
        writer.write_table(table.cast(writer.schema))
    assert writer  # noqa: S101
    writer.close()


QUERY = """
COPY (
  WITH rows AS (
    SELECT b.B, p.*, b.B * p.flops_per_b AS flops,
           b.B * p.memory_per_b + p.memory_fixed AS memory_bytes,
           b.B * p.network_per_b AS network_bytes
    FROM b CROSS JOIN p),
  times AS (
    SELECT *, flops / math_rate AS t_math_s, memory_bytes / memory_rate AS t_memory_s,
           greatest(network_bytes / network_rate, latency_s) AS t_network_s
    FROM rows),
  longest AS (SELECT *, greatest(t_math_s, t_memory_s, t_network_s) AS t_lower_s FROM times)
  SELECT {keys}, dtypes, sharding, shards, B, D, F, flops, memory_bytes, network_bytes,
         memory_bytes AS footprint_bytes, t_math_s, t_memory_s, t_network_s, t_lower_s,
         t_math_s + t_memory_s + t_network_s AS t_upper_s,
         {estimates}, NULL::VARCHAR AS estimate_bound, flops / memory_bytes AS memory_intensity,
         CASE WHEN network_bytes > 0 THEN flops / network_bytes END AS network_intensity,
         flops / t_lower_s AS attained_flops_per_s, flops / t_lower_s / peak AS utilization,
         CASE WHEN t_math_s >= t_lower_s THEN 'compute'
              WHEN t_memory_s >= t_lower_s THEN 'memory' ELSE 'network' END::bounds AS bound,
         memory_bytes <= {capacity} AS fits
  FROM longest
) TO '{path}' (FORMAT parquet, {compression})
"""


def duckdb_parquet(
    sweep: Sweep,
    capacity: float,
    path: Path,
    compression: str = "COMPRESSION zstd, COMPRESSION_LEVEL 1",
) -> None:
    """DuckDB: COPY of a cross join of batch sizes and panel, keys as enums, in any order."""
    import duckdb  # noqa: PLC0415
    import pandas as pd  # noqa: PLC0415

    connection = duckdb.connect()
    connection.execute(
        f"SET threads = {THREADS}; SET preserve_insertion_order = false; "
        f"CREATE TYPE bounds AS ENUM {tuple(BOUNDS)}"
    )
    fixed = pd.DataFrame(panel(sweep))
    for name, names in (("dtypes", DTYPES), ("sharding", SHARDINGS)):
        fixed[name] = pd.Categorical.from_codes(fixed[name].astype("int8"), list(names))
    assert sweep.lead  # noqa: S101
    connection.register("fixed", fixed)
    connection.register("sizes", pd.DataFrame({"B": sweep.lead.columns["B"]}))
    connection.execute("CREATE TABLE p AS FROM fixed; CREATE TABLE b AS FROM sizes")
    spelt = ", ".join(
        f"{'NULL::VARCHAR' if value is None else repr(value)} AS {name}"
        for name, value in keys(sweep).items()
    )
    estimates = ", ".join(f"NULL::DOUBLE AS {name}" for name in ESTIMATES)
    connection.execute(
        QUERY.format(
            keys=spelt,
            estimates=estimates,
            capacity=capacity,
            path=path,
            compression=compression,
        )
    )


CONTENDERS: Mapping[str, Callable[[Sweep, float, Path], Mapping[str, float] | None]] = {
    "rooflines-sums": rooflines_sums,
    "numpy-sums": numpy_sums,
    "rooflines": rooflines_parquet,
    "rooflines-lz4": partial(rooflines_parquet, compression="lz4"),
    "rooflines-float32": partial(rooflines_parquet, floats="float32"),
    "rooflines-core": partial(rooflines_parquet, columns="core"),
    "rooflines-core-lz4": partial(rooflines_parquet, columns="core", compression="lz4"),
    "rooflines-estimates": partial(rooflines_parquet, chips=None, calibration=["trtllm", "nccl"]),
    "plain": partial(rooflines_written, compression="uncompressed"),
    "lz4": partial(rooflines_written, compression="lz4"),
    "duckdb": duckdb_parquet,
    "duckdb-lz4": partial(duckdb_parquet, compression="COMPRESSION lz4_raw"),
    "pandas": pandas_parquet,
    "numpy-pyarrow": numpy_parquet,
}


def main(name: str, rows: str, path: str) -> None:
    """Run one contender; print its sums, if any, and the CPU seconds without startup.

    A run of few rows before is part of the start: it imports what is used.
    """
    for count in (1, float(rows)):
        given = load_config(config(count))
        capacity = given.chips["chip-00"].memory["hbm"].capacity_bytes or math.inf
        started_s = time.process_time()
        sums = CONTENDERS[name](given.sweep("bench"), capacity, Path(path))
    print(json.dumps({"cpu_s": time.process_time() - started_s, "sums": sums}))


if __name__ == "__main__":
    main(*sys.argv[1:])
