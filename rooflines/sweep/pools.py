"""Prefill on chips of its own: what a server of it takes, beside servers that decode.

A server is the chips of a split. Times are those of kernels one after another. Handing caches over
overlaps with computing, so that its time is stated and not added.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from rooflines.catalogue.unsupported import interconnects
from rooflines.models.footprint import cache_on_chip
from rooflines.models.split import Split
from rooflines.sweep.requests import first_token
from rooflines.sweep.sheet import CASE, quotient
from rooflines.sweep.step_rows import cost_columns
from rooflines.sweep.steps import REQUEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from fractions import Fraction

    from rooflines.sweep.cases import Block
    from rooflines.sweep.steps import ModelSweep, StepCase

WHOLE = Split.model_validate({})
"""On one chip, whose cache has no copies."""

POOL = {
    CASE: pl.UInt32,
    REQUEST: pl.Int64,
    "ttft_pool_s": pl.Float64,
    "handover_bytes": pl.Float64,
    "handover_s": pl.Float64,
    "#pool_replicas": pl.Float64,
    "#pool_chips": pl.Float64,
    "#pool_usd_per_s": pl.Float64,
}
"""What is joined to the rows of requests, by case and request."""


def with_pool(frame: pl.LazyFrame, sweep: ModelSweep, block: Block[StepCase]) -> pl.LazyFrame:
    """Rows of requests with the columns of `POOL_METRICS`; without a pool as they are.

    Args:
        frame: Rows of the block, with `CASE` and `REQUEST`.
        sweep: The sweep.
        block: The cases that decode.
    """
    if sweep.prefill_pool is None:
        return frame
    records = pl.DataFrame(list(_records(sweep, sweep.prefill_pool, block)), POOL, orient="row")
    frame = frame.join(records.lazy(), on=[CASE, REQUEST], how="left", maintain_order="left")
    prompt_s = quotient(pl.col("ttft_pool_s"), pl.col("#pool_replicas"))
    answer_s = pl.col("output").cast(pl.Float64) * quotient(
        pl.col("tpot_ops_s"), pl.col("B").cast(pl.Float64)
    )
    servers = pl.col("prefill_servers")
    return frame.with_columns(prefill_servers=quotient(prompt_s, answer_s)).with_columns(
        tokens_per_s_per_chip_pools=quotient(
            pl.col("tokens_per_s_ops"), pl.col("chips") + servers * pl.col("#pool_chips")
        ),
        usd_per_mtok_input=pl.col("#pool_usd_per_s")
        * 1e6
        * quotient(prompt_s, pl.col("input").cast(pl.Float64)),
    )


def _records(
    sweep: ModelSweep, pool: ModelSweep, block: Block[StepCase]
) -> Iterator[tuple[object, ...]]:
    """The values of `POOL` of every case and request; none where the pool lacks a dtype."""
    servers = {(case.name, case.dtypes.label): case for each in pool.blocks for case in each.cases}
    for index, case in enumerate(block.cases):
        server = servers.get((case.name, case.dtypes.label))
        if server is None:
            continue
        (usd_per_s,) = cost_columns([server], sweep.config.prices)["#usd_per_s"]
        for number, request in enumerate(sweep.config.requests or ()):
            moved = cache_on_chip(server.model.shape, request.input, server.sharing.bits, WHOLE)
            longest = handover_s(moved, [server, case])
            yield (
                index,
                number,
                first_token(server, request).ops,
                float(moved),
                None if longest is None else float(longest),
                server.split.dp,
                server.split.chips,
                usd_per_s,
            )


def handover_s(moved: Fraction, ends: Sequence[StepCase]) -> Fraction | None:
    """How long caches take between servers, over the interconnect around their first one [s].

    Args:
        moved: The caches [byte].
        ends: The servers; each of the chips of a replica moves its part, and the slower counts.

    Returns:
        None where a chip has no interconnect.
    """
    times = []
    for end in ends:
        entry = end.place.entry
        _, links, missing = interconnects(entry, [*entry.networks][:2][-1:])
        if missing:
            return None
        times.append(moved / (links[0].bytes_per_s * links[0].links * end.split.shards))
    return max(times)
