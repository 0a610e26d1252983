"""Pools of serving engines, as columns."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from rooflines.basics.errors import RooflinesError
from rooflines.dictionary.columns import EXACT_BATCH
from rooflines.evaluation.compiler import CASE_INDEX
from rooflines.evaluation.space import whole_numbers
from rooflines.sweep.engine_pools import pool_of_case
from rooflines.sweep.step_sweep import REQUEST, ModelSweep

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rooflines.evaluation.operation_rows import Stages
    from rooflines.models.engine_pool import EnginePool
    from rooflines.models.split import Parallelism
    from rooflines.sweep.step_sweep import StepCase


Number = TypeVar("Number", int, float)

HELD = "concurrency"
"""Column with the requests that a pool holds."""


def pool_stages(cases: Sequence[StepCase]) -> Stages:
    """Columns about pools, for every context or request in every case; empty without engines.

    With an engine `fits` and `max_B` are by its pool, where its rules are known; `max_B_exact` has
    the exact need.

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
    pools = [pool_or_none(case, context) for case in cases for context in contexts]
    index = pl.col(CASE_INDEX).cast(pl.Int64) * len(contexts) + context_index
    columns = {name: whole_numbers(_numbers(pools, number)) for name, number in COUNTED.items()}
    columns |= {
        name: pl.Series(_numbers(pools, number), dtype=pl.Float64) for name, number in REAL.items()
    }
    most = held_sequences(pl.lit(_requests(pools)).gather(index), pl.col("max_B"))
    return [
        {name: pl.lit(numbers).gather(index) for name, numbers in columns.items()},
        {
            EXACT_BATCH: pl.col("max_B"),
            "max_B": most,
            "fits": pl.when(pl.col(HELD).is_null()).then("fits").otherwise(pl.col("B") <= most),
        },
    ]


def held_sequences(requests: pl.Expr, exact: pl.Expr) -> pl.Expr:
    """Sequences that the pools of all replicas hold; where none is known, the exact need's [1].

    Args:
        requests: Whole requests in the pool of a replica [1].
        exact: Sequences that fit by the exact need [1].
    """
    return pl.when(requests.is_null()).then(exact).otherwise(requests * pl.col("dp"))


def requests_held(cases: Sequence[StepCase], contexts: Sequence[int]) -> pl.Expr:
    """Column with the whole requests that a replica's pool holds, by case and S [1].

    Args:
        cases: The cases, in order.
        contexts: S, tokens in a request [1].
    """
    pools = [pool_or_none(case, context) for case in cases for context in contexts]
    place = pl.col("S").replace_strict(contexts, range(len(contexts)), return_dtype=pl.Int64)
    index = pl.col(CASE_INDEX).cast(pl.Int64) * len(contexts) + place
    return pl.lit(_requests(pools)).gather(index)


def _requests(pools: Sequence[EnginePool | None]) -> pl.Series:
    """Whole requests in every pool [1]."""
    return pl.Series(_numbers(pools, lambda pool: pool.requests), dtype=pl.Int64)


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
    HELD: lambda pool: float(pool.concurrency),
}
"""Further numbers of a pool by column."""


@lru_cache(maxsize=2**12)
def pool_or_none(
    case: StepCase, context: int, split: Parallelism | None = None
) -> EnginePool | None:
    """Pool that a case's engine makes; None without one, or without rules for its caches.

    Args:
        case: The case.
        context: S, tokens in a request [1].
        split: Another split; None: the case's.
    """
    if case.started is None:
        return None
    try:
        return pool_of_case(case, case.started, context, split)
    except RooflinesError:
        return None
