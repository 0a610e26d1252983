"""Tables of requests as data of the page of models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.basics.table_files import read_parquet, scan_parquet
from rooflines.site.packing import packed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rooflines.site.packing import Packed

COLUMNS = (
    *("chip", "memory", "network", "dtypes", "split", "input", "output", "B", "fits"),
    *("ttft_s", "tpot_s", "tpot_ops_s", "t_estimate_s", "tokens_per_s_per_chip"),
)

DIGITS = 12
"""Significant digits of a real number in the page [1]; the download has all."""


def request_rows(tables: Iterable[Path]) -> dict[tuple[str, str], dict[str, Packed]]:
    """The rows of requests by sweep and model.

    Args:
        tables: Parts of tables of whole models, in folders named like their sweeps.

    Returns:
        The columns, packed.
    """
    found: dict[str, list[pl.DataFrame]] = {}
    for path in tables:
        stored = scan_parquet(path).collect_schema()
        if "input" in stored:
            columns = [name for name in ("model", *COLUMNS) if name in stored]
            rows = read_parquet(path, columns)
            found.setdefault(path.parent.name, []).append(
                rows.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
            )
    return {
        (sweep, str(model)): {column.name: _packed(column) for column in rows.drop("model")}
        for sweep, parts in found.items()
        for (model,), rows in pl.concat(parts).group_by("model", maintain_order=True)
    }


def _packed(column: pl.Series) -> Packed:
    rounded = column.round_sig_figs(DIGITS) if column.dtype.is_float() else column
    return packed(rounded.to_list())
