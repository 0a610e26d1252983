"""pandas, and DuckDB with SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.contenders.panel import BOUNDS, ESTIMATES, FLOATS, THREADS, keys, panel
from benchmarks.grids import DTYPES, SHARDINGS

if TYPE_CHECKING:
    from pathlib import Path

    from rooflines.sweep.sweep import Sweep


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
