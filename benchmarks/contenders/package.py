"""This package: the rows as a job computes and writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from benchmarks.contenders.panel import FLOATS
from benchmarks.grids import config
from rooflines import load_config
from rooflines.model.columns import table_columns
from rooflines.results.tables import PAGE_BYTES, ROW_GROUP_ROWS
from rooflines.run.jobs import ROWS_AT_ONCE, write_part
from rooflines.run.plan import plan
from rooflines.sweep.rows import OperationTable

if TYPE_CHECKING:
    from pathlib import Path

    from rooflines.sweep.sweep import Sweep


def rooflines_sums(sweep: Sweep, _: float, __: Path) -> dict[str, float]:
    """The same sums with this package, computed as in a job."""
    names = [*FLOATS, "fits", "B", "D", "F", "shards"]
    with pl.Config(streaming_chunk_size=ROWS_AT_ONCE):
        columns = [column.name for column in table_columns(sweep.op.dims)]
        frame = (
            OperationTable(sweep)
            .frame(0, sweep.rows, columns=columns, enums=True)
            .select(pl.col(names).sum(), pl.col("bound").to_physical().sum())
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
    from rooflines.run.jobs import ROWS_AT_ONCE  # noqa: PLC0415

    names = [column.name for column in table_columns(sweep.op.dims)]
    with pl.Config(streaming_chunk_size=ROWS_AT_ONCE):
        OperationTable(sweep).frame(0, sweep.rows, columns=names, enums=True).sink_parquet(
            path,
            row_group_size=ROW_GROUP_ROWS,
            data_page_size=PAGE_BYTES,
            statistics=False,
            **options,
        )
