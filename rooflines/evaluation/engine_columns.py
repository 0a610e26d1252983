"""Pools of serving engines, as columns."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.evaluation.compiler import CASE_INDEX
from rooflines.evaluation.space import whole_numbers
from rooflines.sweep.engine_pools import pool_of_case
from rooflines.sweep.step_sweep import REQUEST, ModelSweep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.evaluation.operation_rows import Stages
    from rooflines.models.engine_pool import EnginePool
    from rooflines.sweep.step_sweep import StepCase


Number = TypeVar("Number", int, float)


def pool_stages(cases: Sequence[StepCase]) -> Stages:
    """Columns about pools, for every context or request in every case; empty without engines.

    Args:
        cases: The cases, in order.
    """
    sweep = cases[0].place.sweep
    if not isinstance(sweep, ModelSweep) or not sweep.started:
        return []
    if sweep.config.requests:
        contexts = [request.input + request.output for request in sweep.config.requests]
        context_index = pl.col(REQUEST).cast(pl.Int64)
    else:
        contexts = [*dict.fromkeys(sweep.contexts)]
        indices = range(len(contexts))
        context_index = pl.col("S").replace_strict(contexts, indices, return_dtype=pl.Int64)
    pools = [_pool(case, context) for case in cases for context in contexts]
    index = pl.col(CASE_INDEX).cast(pl.Int64) * len(contexts) + context_index
    columns = {name: whole_numbers(_numbers(pools, number)) for name, number in COUNTED.items()}
    columns |= {
        name: pl.Series(_numbers(pools, number), dtype=pl.Float64) for name, number in REAL.items()
    }
    return [{name: pl.lit(numbers).gather(index) for name, numbers in columns.items()}]


def _numbers(
    pools: Sequence[EnginePool | None], number: Callable[[EnginePool], Number]
) -> list[Number | None]:
    """Number of every pool; None where there is none."""
    return [None if pool is None else number(pool) for pool in pools]


COUNTED: Mapping[str, Callable[[EnginePool], int]] = {
    "pool_bytes": lambda pool: max(pool.pool_bytes, 0),
    "engine_reserved_bytes": lambda pool: pool.reserved_bytes,
    "block_tokens": lambda pool: pool.block_tokens,
    "groups": lambda pool: pool.groups,
    "blocks": lambda pool: pool.blocks,
    "pool_tokens": lambda pool: pool.tokens,
}
"""Whole numbers of a pool by column; see the column dictionary."""

REAL: Mapping[str, Callable[[EnginePool], float]] = {
    "page_bytes": lambda pool: float(pool.page_bytes),
    "concurrency": lambda pool: float(pool.concurrency),
}
"""Further numbers of a pool by column."""


@lru_cache(maxsize=2**12)
def _pool(case: StepCase, context: int) -> EnginePool | None:
    """Pool of a case; None without rules for its caches."""
    if case.started is None:
        return None
    try:
        return pool_of_case(case, case.started, context)
    except RooflinesError:
        return None
